"""`resume` and `rescore`: what they need not be told again, what they show, what they refuse."""

import json
import platform

import pytest


@pytest.fixture
def stopped(run, only_run):
    """A run that was stopped after four of ten calls, without a cache."""
    given = ("--sut", "echo", "--test", "numbers", "--no-caching", "--concurrency", "1", "--max-calls", "4")
    ended = run("run-test", *given)
    assert ended.code == 4
    assert f"To go on: modelgauge resume {only_run().name} --max-calls N\n" in ended.err
    return only_run()


@pytest.fixture
def ran(run, only_run):
    """A run with two failures."""
    run("run-test", "--sut", "flaky", "--test", "numbers", "--max-retries", "0")
    return only_run()


def edit(here, old, new, name="plugin.py"):
    text = (here / name).read_text(encoding="utf-8")
    assert old in text
    (here / name).write_text(text.replace(old, new), encoding="utf-8")


# --- resume ------------------------------------------------------------------------------------------


def test_a_stopped_run_is_continued_without_saying_anything_again(run, stopped, calls):
    assert f"modelgauge resume {stopped.name}" in run("show", stopped.name).out
    ended = run("resume", stopped.name, "--max-calls", "10", plugin=False)
    assert ended.code == 0
    assert "10 scored, 0 failed" in ended.out
    assert "SUT 10 paid, 0 cached" in ended.out
    assert len(calls()) == 6
    assert len((stopped / "items.jsonl").read_text(encoding="utf-8").splitlines()) == 10


@pytest.mark.parametrize("name", ["", "run.json", "record.json", "items.jsonl"])
def test_a_run_can_be_named_by_its_folder_or_a_file_in_it(run, stopped, here, monkeypatch, name):
    (here / "elsewhere").mkdir()
    monkeypatch.chdir(here / "elsewhere")
    path = f"../run_data/runs/{stopped.name}/{name}"
    ended = run("resume", path, "--json", "--output-file", "out.json", "--max-calls", "10", plugin=False)
    assert ended.code == 0
    assert ended.json["records"][0]["counts"]["scored"] == 10
    assert (
        len(json.loads((here / "elsewhere" / "out.json").read_text(encoding="utf-8"))["test_item_records"])
        == 10
    )
    assert not (here / "elsewhere" / "run_data").exists()


def test_a_run_can_be_named_by_the_folder_that_one_is_in(run, stopped, monkeypatch):
    monkeypatch.chdir(stopped)
    assert run("resume", ".", "--max-calls", "10", plugin=False).code == 0


def test_a_complete_run_is_shown_and_judged_as_it_is(run, ran, calls):
    ended = run("resume", ran.name)
    assert ended.code == 3
    assert "8 scored, 2 failed" in ended.out
    assert "2 of 10 items failed" in ended.err
    assert calls() == []
    assert run("resume", ran.name, "--max-errors", "20%").code == 0


def test_all_runs_of_an_invocation_are_continued_with_their_local_data(run, here, monkeypatch):
    (here / "words.txt").write_text("one two three", encoding="utf-8")
    tests = ("--test", "numbers", "--test", "with_data", "--dependency", "words=words.txt")
    stopped = run("run-test", "--sut", "echo", *tests, "--max-calls", "0", "--data-dir", "data", "--json")
    assert stopped.code == 4
    invocation = stopped.json["records"][0]["invocation_id"]
    assert f"To go on: modelgauge resume {invocation} --data-dir data --max-calls N\n" in stopped.err
    (here / "elsewhere").mkdir()
    monkeypatch.chdir(here / "elsewhere")
    ended = run("resume", invocation, "--data-dir", "../data", "--json", "--max-calls", "13", plugin=False)
    assert ended.code == 0
    assert [(one["test_uid"], one["counts"]["scored"]) for one in ended.json["records"]] == [
        ("numbers", 10),
        ("with_data", 3),
    ]


def test_a_cap_counts_what_was_spent_before(run, stopped, calls):
    ended = run("resume", stopped.name)
    assert ended.code == 4
    assert "The cap of 4 calls is reached. Raise --max-calls" in " ".join(ended.out.split())
    assert calls() == []
    ended = run("resume", stopped.name, "--max-calls", "6")
    assert ended.code == 4
    assert "6 scored, 0 failed" in ended.out
    assert len(calls()) == 2
    assert f"To go on: modelgauge resume {stopped.name} --max-calls N\n" in ended.err
    again = run("resume", stopped.name)
    assert again.code == 4
    assert "The cap of 6 calls is reached" in again.out  # the higher one holds from then on
    assert calls() == []


def spent(here):
    totals = (here / "run_data" / "runs").glob("*/totals.json")
    return sum(json.loads(one.read_text(encoding="utf-8"))["attempts"] for one in totals)


def test_a_cap_of_several_runs_counts_what_all_of_them_spent(run, here, calls):
    tests = ("--test", "numbers", "--test", "judged")
    ended = run("run-test", "--sut", "echo", *tests, "--no-caching", "--max-calls", "5", "--json")
    assert spent(here) == 5
    invocation = ended.json["records"][0]["invocation_id"]
    assert run("resume", invocation).code == 4
    assert calls() == []
    assert run("resume", invocation, "--max-calls", "8").code == 4
    assert spent(here) == 8


def test_a_test_that_has_changed_is_not_mixed_with_what_it_was(run, stopped, here, calls):
    edit(here, 'register("numbers", Numbers)', 'register("numbers", Judged)')
    ended = run("resume", stopped.name)
    assert ended.code == 2
    assert "is not what it was" in ended.err
    assert "Python" not in ended.err
    assert calls() == []
    edit(stopped, f'"python": "{platform.python_version()}"', '"python": "3.10.2"', "run.json")
    assert "It was begun with Python 3.10, and this is 3." in run("resume", stopped.name).err


def test_a_run_whose_folder_was_moved_is_resumed_and_shown_where_it_is(run, stopped, here, calls):
    moved = here / "kept" / "my run"
    moved.parent.mkdir()
    stopped.rename(moved)
    ended = run("resume", str(moved), "--max-calls", "20")
    assert ended.code == 0, ended.err
    assert "10 scored" in ended.out
    assert len(calls()) == 6
    assert str(moved) in ended.out.replace("\n", "") or "kept/my run" in ended.out
    assert sorted(one.name for one in here.iterdir() if one.is_dir()) == ["kept", "run_data"]
    again = run("rescore", str(moved))
    assert again.code == 0, again.err
    assert len(list(moved.parent.iterdir())) == 2


@pytest.mark.parametrize("command", ["resume", "rescore"])
@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("nothing",), "There is no run 'nothing'"),
        ((), "Missing argument 'RUN'"),
        (("x", "--seed", "1"), "--seed"),
        (("plugin.py",), "There is no run '"),
    ],
)
def test_wrong_usage_is_told(run, ran, command, args, told):
    ended = run(command, *args)
    assert ended.code == 2
    assert told in ended.err
    assert ended.out == ""


# --- rescore -----------------------------------------------------------------------------------------


def test_recorded_answers_are_measured_anew_without_the_sut(run, ran, here, calls):
    edit(here, '"accuracy": item.text == "yes"', '"accuracy": item.text == "flaky"')
    edit(here, 'register("flaky", Echo, "flaky")', "")
    ended = run("rescore", ran.name, "--max-errors", "2", "--json", plugin=False)
    assert ended.code == 0
    (record,) = ended.json["records"]
    assert record["run_id"] != ran.name
    assert record["sut_uid"] == "flaky"
    assert record["result"]["accuracy"]["value"] == 1
    assert record["counts"]["sut_errors"] == 2
    assert record["counts"]["sut_calls"] == {"paid": 0, "cached": 0}
    assert calls() == []


def test_another_test_may_measure(run, ran, here):
    edit(here, 'register("broken", Broken)', 'register("broken", Broken)\n    register("numbers2", Numbers)')
    ended = run("rescore", ran.name, "--test", "numbers2", "--max-errors", "2")
    assert ended.code == 0
    assert "numbers2 on flaky" in ended.out
    unknown = run("rescore", ran.name, "--test", "numbers3")
    assert unknown.code == 2
    assert "'numbers2'?" in unknown.err


def test_what_was_not_answered_before_a_stop_is_not_scored(run, stopped):
    ended = run("rescore", stopped.name, plugin=False)
    assert ended.code == 0
    assert "4 scored, 0 failed" in ended.out


def test_a_rescoring_that_stops_is_done_again_and_not_resumed(run, ran, here):
    edit(here, "for number in range(self.items):", "for number in range(1 // 0):")
    ended = run("rescore", ran.name)
    assert ended.code == 4
    assert f"To go on: modelgauge rescore {ran.name}\n" in ended.err
    made = max(ran.parent.iterdir())
    assert f"rescore {ran.name}\n" in run("show", made.name).out
    refused = run("resume", made.name)
    assert refused.code == 2
    assert f"modelgauge rescore {ran.name}" in refused.err
