"""Workers that freeze, lie or cannot start: each is treated as dead, and others do its items."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lying_worker import LIES
from tiers import sample

from modelgauge.engine.executors import base, pool, processes
from modelgauge.errors import RunStoppedError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

_POPEN = subprocess.Popen
_LIAR = str(Path(__file__).with_name("lying_worker.py"))
_ALL = 40


@pytest.fixture
def liar(monkeypatch):
    """`liar(lie)`: the first worker of the next run lies."""

    def lie(name):
        class OneLiar(processes.Processes):
            begun = 0

            async def start(self):
                self.begun += 1
                if self.begun > 1:
                    return await super().start()
                with pytest.MonkeyPatch.context() as patched:
                    patched.setattr(subprocess, "Popen", _POPEN)
                    patched.setattr(processes, "_COMMAND", ("-P", _LIAR, name))
                    return await super().start()

        monkeypatch.setattr(base, "Processes", OneLiar)

    return lie


@pytest.mark.parametrize("lie", sample([*LIES], 4))
def test_worker_that_lies_ends_and_its_items_are_recovered(counting, liar, caplog, lie):
    liar(lie)
    record = counting.run(workers=1, concurrency=2, options={"seconds": 0.001})  # few items in a message
    assert (record.counts.items, record.counts.scored, record.failure) == (_ALL, _ALL, None)
    assert 0 < record.counts.sut_calls.paid <= len(counting.calls())
    assert sorted(item.index for item in record.iter_items()) == list(range(_ALL))
    assert "ended after it sent" in caplog.text
    assert "another takes its place" in caplog.text
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("freezes", ["stop", "interpreter", "deadlock"])
def test_frozen_worker_is_given_up_and_its_items_are_recovered(counting, caplog, monkeypatch, freezes):
    monkeypatch.setattr(pool, "_GRACE", 1.0)
    record = counting.run(options={"freezes": freezes}, attempt_timeout=2)
    assert (record.counts.scored, record.failure) == (_ALL, None)
    assert "ended after 3 s without a sign of life; another takes its place" in caplog.text


def test_worker_that_is_blocked_for_less_than_a_call_may_take_is_kept(counting, caplog, monkeypatch):
    monkeypatch.setattr(pool, "_GRACE", 1.0)
    record = counting.run("words?number=8", options={"busy": 1.5}, attempt_timeout=2, workers=1)
    assert (record.counts.scored, caplog.text.count("sign of life")) == (8, 0)


def test_workers_that_die_while_they_start_do_not_end_a_run_with_a_healthy_one(counting, caplog):
    record = counting.run(options={"mood": "crowded"}, workers=3)
    assert (record.counts.scored, record.failure) == (_ALL, None)
    assert caplog.text.count("The run goes on with fewer workers.") == 2
    assert len({process for process, _ in counting.calls()}) == 1


def test_run_ends_when_no_worker_can_be_kept(counting):
    (counting.folder / "place").touch()
    with pytest.raises(
        RunStoppedError, match=r"3 workers in a row ended before it was ready, .* exit code 3"
    ):
        counting.run(options={"mood": "crowded"}, workers=2)
    assert counting.calls() == []


def test_items_that_wait_end_with_the_last_worker(counting, liar):
    liar("an empty line")
    (counting.folder / "place").touch()  # taken: the workers after the liar cannot start
    record = counting.run(options={"mood": "aging", "seconds": 0.01}, workers=1)
    assert "3 workers in a row ended before it was ready" in record.failure.message
    assert 0 < record.counts.scored < _ALL
    resumed = counting.resume(record, executor="local", workers=None)
    assert (resumed.counts.scored, resumed.failure) == (_ALL, None)


def test_process_that_a_dead_worker_leaves_behind_holds_nobody_up(counting, monkeypatch):
    child = counting.folder / "child"
    monkeypatch.setenv("COUNTED_CHILD", str(child))
    begun = time.monotonic()
    try:
        record = counting.run(options={"freezes": "child"})
    finally:
        os.kill(int(child.read_text()), signal.SIGKILL)
    assert (record.counts.scored, record.failure) == (_ALL, None)
    assert time.monotonic() - begun < 50
