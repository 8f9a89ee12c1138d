"""Signals to a real command: Ctrl-C, a second one, a termination, `kill -9`; and going on afterwards."""

import json
import signal
import sys
import time
from subprocess import Popen

import pytest
from children import Forked
from commands import calls, done, ended, record, runs, started, until
from tiers import sample

from modelgauge import load_record

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

CAP = 4


def running(folder, *, free=6, number=30, more=(), sut="gated", **options):
    """A run whose first calls are answered, and whose next ones wait, as many as there may be at once."""
    process = started(folder, *command(folder, free=free, number=number, sut=sut), *more, **options)
    until(lambda: len(calls(folder)) == free + CAP, process)
    return process


def command(folder, *, free=6, number=30, sut="gated"):
    sut = f"{sut}?folder={folder}&free={free}"
    test = f"numbered?number={number}"
    return "run-test", "--test", test, "--sut", sut, "--concurrency", str(CAP), "--no-progress-bar"


@pytest.mark.parametrize(
    ("sent", "more", "kind"),
    [(signal.SIGINT, (), Popen), (signal.SIGINT, ("--no-caching",), Forked), (signal.SIGTERM, (), Popen)],
)
def test_an_interrupted_run_makes_no_new_call_keeps_what_is_under_way_and_is_resumed(
    tmp_path, sent, more, kind
):
    process = running(tmp_path, more=more, kind=kind)
    process.send_signal(sent)
    time.sleep(0.2)  # not needed, since signals come first; a wrong order would show
    (tmp_path / "open").touch()
    code, _, err = ended(process)
    assert code == 130, err
    assert len(calls(tmp_path)) == 6 + CAP
    [run] = runs(tmp_path)
    stopped = record(run)
    assert stopped["cancelled"] is True
    assert stopped["failure"] is None
    assert stopped["counts"]["scored"] == 6 + CAP
    assert f"modelgauge resume {run.name}" in err
    assert "Traceback" not in err
    code, _, err = done(tmp_path, "resume", run.name)
    assert code == 0, err
    assert len(calls(tmp_path)) == len(set(calls(tmp_path))) == 30
    finished = record(run)
    assert finished["cancelled"] is False
    assert finished["counts"]["scored"] == finished["counts"]["items"] == 30


def test_the_output_file_of_an_interrupted_run_holds_what_was_scored(tmp_path):
    process = running(tmp_path, more=("--output-file", "out.json"))
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    (tmp_path / "open").touch()
    code, out, err = ended(process)
    assert code == 130, err
    assert "interrupted" in out
    stopped = load_record(tmp_path / "out.json")
    assert f"To go on: modelgauge resume {stopped.run_id}\n" in err
    assert stopped.cancelled
    assert len(stopped.test_item_records) == stopped.counts.scored == 6 + CAP
    code, out, err = done(tmp_path, "resume", stopped.run_id, "--concurrency", "200", "--json")
    assert code == 0, err
    (resumed,) = json.loads(out)["records"]
    assert resumed["run_id"] == stopped.run_id
    assert resumed["counts"]["scored"] == resumed["counts"]["sut_calls"]["paid"] == 30
    assert resumed["seconds"] > stopped.seconds
    assert resumed["run_timestamp"] == stopped.run_timestamp


def test_an_interrupt_that_also_ends_the_reader_of_stdout_says_how_to_go_on(tmp_path):
    process = running(tmp_path)
    process.stdout.close()  # as Ctrl-C ends all that stands in a pipe
    process.send_signal(signal.SIGINT)
    (tmp_path / "open").touch()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 130
    [run] = runs(tmp_path)
    assert f"To go on: modelgauge resume {run.name}\n" in err
    assert "Traceback" not in err


def test_calls_that_hang_are_given_up_after_a_grace(tmp_path):
    process = running(tmp_path)
    process.send_signal(signal.SIGINT)
    code, _, err = ended(process)
    assert code == 130, err
    [run] = runs(tmp_path)
    assert record(run)["cancelled"] is True
    assert record(run)["counts"]["scored"] == 6
    assert len(calls(tmp_path)) == 6 + CAP


def test_an_interrupt_before_the_first_run_says_that_nothing_was_asked(tmp_path):
    process = started(
        tmp_path, "run-test", "--test", "numbered", "--sut", f"never_opens?folder={tmp_path}&free=0"
    )
    until((tmp_path / "opening").exists, process)
    process.send_signal(signal.SIGINT)
    code, out, err = ended(process)
    assert code == 130, err
    assert err == "Interrupted before a run began: nothing was asked.\n"
    assert out == ""
    assert runs(tmp_path) == []
    assert calls(tmp_path) == []


def test_a_second_interrupt_ends_at_once_and_loses_nothing(tmp_path):
    process = running(tmp_path)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)  # two signals at once are one
    process.send_signal(signal.SIGINT)
    code, _, err = ended(process)
    assert code == 130, err
    assert "Traceback" not in err
    [run] = runs(tmp_path)
    assert not (run / "record.json").exists() or record(run)["cancelled"]  # there may have been time for one
    (tmp_path / "open").touch()
    code, _, err = done(tmp_path, "resume", run.name)
    assert code == 0, err
    assert len(calls(tmp_path)) == 30 + CAP  # what hung is asked again
    assert record(run)["counts"]["scored"] == 30


@pytest.mark.parametrize("times", [2, 3])
def test_further_interrupts_end_also_what_swallows_its_cancellation(times, tmp_path):
    process = running(tmp_path, sut="stubborn")
    [run] = runs(tmp_path)
    until(lambda: (run / "items.jsonl").read_bytes().count(b"\n") == 6, process)
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
    code, _, err = ended(process)
    assert code == 130, err
    assert "Traceback" not in err
    assert "destroyed" not in err
    assert record(run)["cancelled"] is True
    assert record(run)["counts"]["scored"] == 6


def test_a_run_that_is_going_on_is_not_resumed_beside_it(tmp_path):
    process = running(tmp_path)
    [run] = runs(tmp_path)
    before = (run / "items.jsonl").read_bytes()
    code, _, err = done(tmp_path, "resume", run.name)
    assert code == 2
    assert "is going on in another process" in err
    assert (run / "items.jsonl").read_bytes().startswith(before)
    (tmp_path / "open").touch()
    code, _, err = ended(process)
    assert code == 0, err
    assert record(run)["counts"]["scored"] == 30
    assert len(calls(tmp_path)) == 30


def test_a_job_in_the_background_ignores_an_interrupt_and_ends_by_a_termination(tmp_path):
    ignored = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = running(tmp_path)
    finally:
        signal.signal(signal.SIGINT, ignored)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    (tmp_path / "open").touch()
    code, _, err = ended(process)
    assert code == 130, err
    assert "Traceback" not in err
    [run] = runs(tmp_path)
    assert record(run)["cancelled"] is True
    assert record(run)["counts"]["scored"] == 6 + CAP


@pytest.mark.parametrize("kind", [Forked, Popen])
def test_the_same_command_after_a_kill_asks_only_what_was_in_flight_and_what_was_left(tmp_path, kind):
    process = running(tmp_path, kind=kind)
    [run] = runs(tmp_path)
    until(lambda: (run / "items.jsonl").read_bytes().count(b"\n") == 6, process)
    process.kill()
    code, *_ = ended(process)
    assert code == -signal.SIGKILL
    in_flight = set(calls(tmp_path)) - {f"question {n}" for n in range(6)}  # sent in any order
    (tmp_path / "open").touch()
    code, _, err = done(tmp_path, *command(tmp_path), "--json")
    assert code == 0, err
    asked = calls(tmp_path)
    assert sorted(asked) == sorted([*in_flight, *(f"question {n}" for n in range(30))])
    assert len(in_flight) == CAP
    assert record(runs(tmp_path)[-1])["counts"]["sut_calls"] == {"paid": 24, "cached": 6}
    code, _, err = done(tmp_path, "resume", run.name)
    assert code == 0, err
    assert record(run)["counts"]["scored"] == 30
    assert len(calls(tmp_path)) == 30 + CAP


def test_interrupts_at_one_moment_end_as_one_after_the_other(tmp_path):
    # The second comes while the loop handles the first: at some step, another each time.
    for number in sample(range(6), 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        process = running(folder)
        process.send_signal(signal.SIGINT)
        time.sleep(number / 2000)
        process.send_signal(signal.SIGTERM)
        code, _, err = ended(process)
        assert code == 130, err
        assert "Traceback" not in err
        assert record(runs(folder)[0])["counts"]["scored"] == 6
