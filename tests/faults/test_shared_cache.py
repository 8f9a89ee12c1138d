"""Processes that share a cache: each key is paid once, also where one is killed, stopped, or has another clock."""

import signal
import sys
from subprocess import Popen

import pytest
from commands import calls, ended, record, runs, started, until

from modelgauge import load_record

NUMBER, CAP = 30, 4

of_posix = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


def opened(folder):
    """The files of the processes that have the cache open."""
    return list((folder / "run_data" / "cache").glob("*.leases"))


def start(folder, *more, sut="gated", **options):
    return started(
        folder,
        *("run-test", "--test", f"numbered?number={NUMBER}", "--sut", f"{sut}?folder={folder}"),
        *("--concurrency", str(CAP), "--no-progress-bar", *more),
        **options,
    )


def test_three_processes_pay_for_each_key_once(tmp_path):
    first = start(tmp_path)
    until(lambda: len(calls(tmp_path)) == CAP, first)
    others = [start(tmp_path) for _ in range(2)]
    until(lambda: len(opened(tmp_path)) == 3, others[-1])
    (tmp_path / "open").touch()
    for process in (first, *others):
        code, _, err = ended(process)
        assert code == 0, err
    assert sorted(calls(tmp_path)) == sorted(f"question {n}" for n in range(NUMBER))
    counts = [record(run)["counts"] for run in runs(tmp_path)]
    assert [count["scored"] for count in counts] == [NUMBER] * 3
    assert sum(count["sut_calls"]["paid"] for count in counts) == NUMBER
    assert opened(tmp_path) == []  # who leaves, leaves nothing


@of_posix
@pytest.mark.parametrize("kind", ["gated", "forking"])
def test_what_a_killed_process_asked_is_taken_over_though_its_children_live(tmp_path, kind):
    killed = start(tmp_path, sut=kind)
    until(lambda: len(calls(tmp_path)) == CAP, killed)
    survivor = start(tmp_path, sut=kind)
    until(lambda: len(opened(tmp_path)) == 2, survivor)
    killed.kill()
    killed.wait()
    (tmp_path / "open").touch()
    try:
        code, _, err = ended(survivor)
        resumed = started(tmp_path, "resume", runs(tmp_path)[0].name)
        assert ended(resumed)[0] == 0
    finally:
        (tmp_path / "quit").touch()  # the children, which have the output of their parents open
    ended(killed)
    assert code == 0, err
    assert sorted(set(calls(tmp_path))) == sorted(f"question {n}" for n in range(NUMBER))
    assert len(calls(tmp_path)) == NUMBER + CAP
    assert opened(tmp_path) == []


@of_posix
def test_a_stopped_process_keeps_its_leases_and_who_waits_fails_by_its_own_deadline(tmp_path):
    stopped = start(tmp_path)
    until(lambda: len(calls(tmp_path)) == CAP, stopped)
    asked = calls(tmp_path)
    stopped.send_signal(signal.SIGSTOP)
    (tmp_path / "open").touch()
    try:
        code, _, err = ended(start(tmp_path, "--call-timeout", "1"))
    finally:
        stopped.send_signal(signal.SIGCONT)
    assert code == 3, err
    failed = load_record(runs(tmp_path)[1]).test_item_exceptions
    assert {one.error_type for one in failed} == {"CallTimeoutError"}
    assert all(
        f"Process {stopped.pid}, which shares the cache, is asking it" in one.message for one in failed
    )
    assert {one.test_item.prompts[0].prompt.text for one in failed} >= set(asked)
    code, _, err = ended(stopped)
    assert code == 0, err
    assert sorted(calls(tmp_path)) == sorted(f"question {n}" for n in range(NUMBER))


def test_a_clock_that_is_ahead_makes_nobody_pay_twice(tmp_path):
    ahead = "import time\nnow = time.time\ntime.time = lambda: now() + 3600\n"
    (tmp_path / "sitecustomize.py").write_text(ahead, encoding="utf-8")
    first = start(tmp_path)
    until(lambda: len(calls(tmp_path)) == CAP, first)
    second = start(tmp_path, env={"PYTHONPATH": str(tmp_path)}, kind=Popen)
    until(lambda: len(opened(tmp_path)) == 2, second)
    (tmp_path / "open").touch()
    assert [ended(one)[0] for one in (first, second)] == [0, 0]
    assert sorted(calls(tmp_path)) == sorted(f"question {n}" for n in range(NUMBER))
