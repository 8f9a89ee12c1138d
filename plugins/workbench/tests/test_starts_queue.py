"""The queue of jobs: real processes, killed and cancelled, and servers that find what others left."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from children import PATIENCE, Forked

from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.errors import InputFileError, UsageError
from modelgauge.plugins.discovery import discover
from modelgauge.runs.recorded_run import read_state
from modelgauge_workbench.starts.estimate import estimate
from modelgauge_workbench.starts.jobs import Job, JobState, find_job, new_job
from modelgauge_workbench.starts.order import Order, Shelf
from modelgauge_workbench.starts.queue import Queue

T = TypeVar("T")


@pytest.fixture(autouse=True)
def forked_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of jobs are forked; those of a server of its own are interpreters, as those of users are."""
    monkeypatch.setattr(subprocess, "Popen", Forked)


def copied(folder: Path) -> Path:
    """A plugin with the SUT `slow`."""
    return Path(shutil.copy(Path(__file__).with_name("slow_sut.py"), folder))


class Desk:
    """A queue over a data folder; `again` is what another server makes of the same folder."""

    def __init__(self, data_dir: Path, plugin: Path | None = None) -> None:
        plugins = [str(plugin)] if plugin else []
        self.data_dir = data_dir
        self.shelf = Shelf(discover(plugins), [data_dir])
        self.queue = Queue(
            data_dir, self.shelf, [part for plugin in plugins for part in ("--plugin", plugin)]
        )

    def order(self, **fields: str) -> Job:
        order = Order.of_fields({name: text.split() for name, text in fields.items()})
        return new_job(self.data_dir, text=order.run_file(self.shelf))

    def wait(self, job: Job, *states: JobState) -> JobState:
        return self._until(job, lambda: state if (state := self.queue.state(job)) in states else None)

    def pid(self, job: Job) -> int:
        return int(self._until(job, lambda: job.process.exists() and job.process.read_text("ascii")))

    def asked(self, job: Job) -> RunFolder:
        """Its run, once the first item has a record."""

        def begun() -> RunFolder | None:
            runs = (RunFolder(self.data_dir / "runs" / run_id) for run_id in job.run_ids())
            return next((run for run in runs if run.journal.exists() and run.journal.stat().st_size), None)

        return self._until(job, begun)

    def _until(self, job: Job, found: Callable[[], T | None]) -> T:
        until = time.monotonic() + PATIENCE
        while not (it := found()):
            assert time.monotonic() < until, (self.queue.state(job), job.log_end())
            time.sleep(0.02)
        return it


def test_job_cancelled_while_its_interpreter_starts_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    desk = Desk(tmp_path / "data")
    job = desk.order(tests="demo_01", suts="demo_yes_no")
    desk.queue.approve(job)
    desk.wait(job, "running")
    desk.queue.cancel(job)
    assert desk.wait(job, "cancelled", "killed", "failed", "done") == "cancelled"


def test_jobs_run_in_turn_after_a_yes_and_name_their_runs(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "data")
    first = desk.order(tests="demo_01", suts="demo_yes_no demo_constant", max_test_items="3")
    second = desk.order(tests="demo_01", suts="demo_yes_no")
    assert [desk.queue.state(first), desk.queue.state(second)] == ["draft", "draft"]
    estimate(first, desk.data_dir)
    plans = (first.plans() or {})["plans"]
    assert [(plan["items"], plan["sut_calls"]["paid"]) for plan in plans] == [(3, 3), (3, 3)]
    desk.queue.approve(first)
    desk.queue.approve(second)
    assert desk.queue.ahead(second) <= 1
    desk.wait(second, "done")
    assert first.state() == "done"
    runs = [RunFolder(desk.data_dir / "runs" / run_id) for run_id in first.run_ids()]
    assert [read_state(run)[0] for run in runs] == ["finished", "finished"]
    assert max(first.run_ids()) < min(second.run_ids())
    with pytest.raises(UsageError, match="started before"):
        desk.queue.approve(first)
    desk.queue.close()


def test_a_job_that_cannot_run_says_why(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "data")
    job = desk.order(tests="demo_01", suts="openai/x")  # which wants a key
    estimate(job, desk.data_dir)
    assert "OPENAI_API_KEY" in (job.plans() or {})["problem"]
    desk.queue.approve(job)
    assert desk.wait(job, "failed", "done") == "failed"
    assert "OPENAI_API_KEY" in job.log_end()
    desk.queue.close()


def test_cancel_keeps_what_was_answered_and_resume_does_the_rest(tmp_path: Path) -> None:
    slow = copied(tmp_path)
    desk = Desk(tmp_path / "data", slow)
    job = desk.order(tests="demo_01", suts="slow", max_test_items="3")
    waiting = desk.order(tests="demo_01", suts="slow")
    desk.queue.approve(job)
    desk.queue.approve(waiting)
    run = desk.asked(job)
    desk.queue.cancel(waiting)
    assert desk.queue.state(waiting) == "withdrawn"
    with pytest.raises(UsageError, match="Put it back"):
        desk.queue.approve(waiting)
    desk.queue.put_back(waiting)
    assert desk.queue.state(waiting) == "draft"
    desk.queue.cancel(job)
    desk.queue.cancel(job)  # again, for at once
    assert desk.wait(job, "cancelled") == "cancelled"
    assert read_state(run)[0] == "interrupted"
    slow.with_name("go").touch()
    resumed = new_job(desk.data_dir, resumes=run.path)
    desk.queue.approve(resumed)
    desk.wait(resumed, "done")
    state, record = read_state(run)
    assert state == "finished"
    assert record is not None
    assert record.counts.scored == 3
    assert resumed.run_ids() == [run.run_id]
    desk.queue.close()


def test_what_a_killed_server_leaves(tmp_path: Path) -> None:
    """Its job goes on and can be cancelled; one that had not begun waits for a person; one that is killed says so."""
    data_dir, slow = tmp_path / "data", copied(tmp_path)
    script = f"""
import sys, time
from pathlib import Path
sys.path[:] = {[str(Path(__file__).parent), *sys.path]!r}
from test_starts_queue import Desk
desk = Desk(Path({str(data_dir)!r}), Path({str(slow)!r}))
jobs = [desk.order(tests="demo_01", suts="slow", max_test_items="3") for _ in range(2)]
for job in jobs:
    desk.queue.approve(job)
print(*(job.id for job in jobs), flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        first, second = (find_job(data_dir, one) for one in server.stdout.readline().split())
        desk = Desk(data_dir, slow)
        run = desk.asked(first)
        server.kill()
    assert desk.queue.state(first) == "running"
    assert desk.queue.state(second) == "queued"
    assert not desk.queue.waits(second)
    desk.queue.approve(second)
    assert desk.queue.waits(second)
    desk.queue.cancel(first)  # no child of this server
    desk.queue.cancel(first)
    desk.wait(first, "cancelled")
    assert read_state(run)[0] == "interrupted"
    os.kill(desk.pid(second), signal.SIGKILL)
    desk.wait(second, "killed")
    assert not second.send(signal.SIGTERM)  # its id may be another's by now
    desk.queue.close()


@pytest.mark.parametrize(
    "text",
    [
        'tests = ["demo_01"]\nsuts = ["demo_yes_no"]\nplugins = ["evil.py"]\n',
        'tests = ["demo_01"]\nsuts = ["replay//etc/passwd"]\n',
        'datasets = ["/etc/passwd"]\nmetrics = ["exact_match"]\nsuts = ["demo_yes_no"]\n',
        'tests = ["demo_01"]\nsuts = ["openai/x?base_url=http%3A%2F%2Fevil"]\n',
    ],
)
def test_a_run_file_that_no_form_wrote_is_not_run(tmp_path: Path, text: str) -> None:
    desk = Desk(tmp_path)
    job = new_job(tmp_path, text=text)
    with pytest.raises((InputFileError, UsageError)):
        desk.queue.approve(job)
    assert desk.queue.state(job) == "draft"
