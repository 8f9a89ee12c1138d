"""Signals to a run on several processes: to its driver, and to its workers."""

import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest
from children import Nesting
from commands import PATIENCE, calls, done, ended, record, runs, said, started, until
from killing import committed
from tiers import sample

from modelgauge import load_record

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

COUNTED = str(Path(__file__).with_name("counted_plugin.py"))
KILLS = int(os.environ.get("TESTS_KILLS", "4"))
CAP = 4
ON_TWO = ("--executor", "processes", "--workers", "2", "--concurrency", str(CAP), "--no-progress-bar")


def gated(folder, free):
    """A run whose first calls are answered, and whose next ones wait, as many as there may be at once."""
    names = ("--test", "numbered?number=30", "--sut", f"gated?folder={folder}&free={free}")
    process = started(folder, "run-test", *names, *ON_TWO, kind=Nesting)
    until(lambda: len(calls(folder)) == free + CAP, process)
    return process


def workers_of(process):
    """The numbers of its workers, which lead sessions of their own."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii")
    return [pid for pid in map(int, children.split()) if os.getsid(pid) == pid]


def has_ended(pid):
    """Whether a process has ended; nobody may have waited for it."""
    status = Path(f"/proc/{pid}/status")
    return not status.exists() or "State:\tZ" in status.read_text(encoding="ascii")


def test_ctrl_c_lets_calls_end_and_the_run_is_resumed(tmp_path):
    process = gated(tmp_path, 6)
    process.send_signal(signal.SIGINT)
    said(process, f"Stopping: {CAP} calls under way")
    (tmp_path / "open").touch()
    code, _, err = ended(process)
    assert code == 130, err
    [run] = runs(tmp_path)
    stopped = record(run)
    assert (stopped["cancelled"], stopped["failure"], stopped["counts"]["scored"]) == (True, None, 6 + CAP)
    assert f"modelgauge resume {run.name}" in err
    assert "Traceback" not in err
    code, _, err = done(tmp_path, "resume", run.name, kind=Nesting)
    assert code == 0, err
    assert len(calls(tmp_path)) == len(set(calls(tmp_path))) == 30
    assert record(run)["counts"]["scored"] == 30
    assert record(run)["counts"]["sut_calls"] == {"paid": 30, "cached": 0}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc says which processes there are")
def test_workers_end_with_a_killed_driver_and_the_run_is_resumed_on_one_process(tmp_path):
    process = gated(tmp_path, 6)
    workers = workers_of(process)
    assert len(workers) == 2
    process.kill()
    process.communicate()
    (tmp_path / "open").touch()
    patience = time.monotonic() + PATIENCE
    while not all(has_ended(pid) for pid in workers):
        assert time.monotonic() < patience
        time.sleep(0.01)
    [run] = runs(tmp_path)
    code, _, err = done(tmp_path, "resume", run.name, "--executor", "local")
    assert code == 0, err
    finished = record(run)
    assert finished["counts"]["scored"] == 30
    again = [call for call in set(calls(tmp_path)) if calls(tmp_path).count(call) > 1]
    assert len(again) <= CAP


@pytest.mark.parametrize("seed", sample(range(KILLS), 1))
def test_killed_workers_lose_nothing_and_double_nothing(tmp_path, seed):
    chosen = random.Random(seed)
    names = ("--test", "words?number=120", "--sut", f"counted?folder={tmp_path}&seconds=0.02")
    process = started(tmp_path, "run-test", *names, *ON_TWO, plugin=COUNTED, kind=Nesting)
    kept = []
    for place in sorted(chosen.sample(range(5, 110), 2)):
        until(lambda place=place: len(calls(tmp_path)) >= 2 * place, process)
        os.kill(int(calls(tmp_path)[-1].split("\t")[1]), signal.SIGKILL)
        kept.append((committed(tmp_path / "run_data"), len(calls(tmp_path))))
    code, _, err = ended(process)
    assert code == 0, err
    assert "ended by signal 9 (SIGKILL); another takes its place." in err
    [run] = runs(tmp_path)
    made = load_record(run)
    assert sorted(record.index for record in made.iter_items()) == list(range(120))
    assert (made.counts.items, made.counts.scored) == (120, 120)
    for prompts, place in kept:
        later = [line for line in calls(tmp_path)[place:] if line.startswith("begin")]
        assert prompts.isdisjoint(line.split("\t")[2] for line in later)
    # A worker may die before it sends what it may.
    assert made.spent.attempts >= len([line for line in calls(tmp_path) if line.startswith("begin")])
