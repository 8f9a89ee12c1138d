"""`resume` and `rescore`: what they need not be told again, what they show, what they refuse."""

import json
import os
import re
from pathlib import Path

import pytest

from modelgauge import load_record, rescore, resume
from modelgauge.errors import RecordError


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
    assert "SUT 10 made, 0 cached" in ended.out
    assert len(calls()) == 6
    assert len((stopped / "items.jsonl").read_text(encoding="utf-8").splitlines()) == 10


def test_dry_run_of_resume_takes_test_and_sut_by_name_and_writes_nothing(run, stopped, calls):
    named = ("--test", "numbers", "--sut", "echo", "--max-calls", "10")
    before = {path: path.read_bytes() for path in stopped.iterdir()}
    ended = run("resume", stopped.name, "--dry-run", "--json", *named)
    assert ended.code == 0, ended.err
    (plan,) = ended.json["plans"]
    assert (plan["test_uid"], plan["sut_uid"], plan["items"]) == ("numbers", "echo", 6)
    assert (calls(), {path: path.read_bytes() for path in stopped.iterdir()}) == ([], before)


def test_thresholds_of_a_run_with_a_damaged_manifest_are_those_of_its_record(run, ran):
    (ran / "run.json").write_text("{}", encoding="utf-8")
    assert (
        run("resume", ran.name, "--threshold", "accuracy=0.5").code == 3
    )  # as of each resume: two items failed
    ended = run("resume", ran.name, "--threshold", "other:accuracy=0.5")
    assert (ended.code, "The tests are: numbers." in ended.err) == (2, True)


@pytest.mark.parametrize("name", ["", "run.json", "record.json", "items.jsonl"])
def test_a_run_can_be_named_by_its_folder_or_a_file_in_it(run, stopped, here, monkeypatch, name):
    (here / "elsewhere").mkdir()
    monkeypatch.chdir(here / "elsewhere")
    path = f"../run_data/runs/{stopped.name}/{name}"
    given = ("--plugin", "../plugin.py", "--json", "--output-file", "out.json", "--max-calls", "10")
    ended = run("resume", path, *given, plugin=False)
    assert ended.code == 0
    assert ended.json["records"][0]["counts"]["scored"] == 10
    assert (
        len(json.loads((here / "elsewhere" / "out.json").read_text(encoding="utf-8"))["test_item_records"])
        == 10
    )
    assert not (here / "elsewhere" / "run_data").exists()


def test_a_run_can_be_named_by_the_folder_that_one_is_in(run, stopped, monkeypatch):
    monkeypatch.chdir(stopped)
    given = ("--data-dir", "../..", "--max-calls", "10")
    assert run("resume", ".", *given, plugin=False).code == 0


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
    assert calls() == []


def test_a_run_whose_folder_was_moved_is_resumed_and_shown_where_it_is(run, stopped, here, calls):
    moved = here / "kept" / "my run"
    moved.parent.mkdir()
    stopped.rename(moved)
    ended = run("resume", str(moved), "--max-calls", "20")
    assert ended.code == 0, ended.err
    assert "10 scored" in ended.out
    assert len(calls()) == 6
    assert str(moved) in ended.out.replace("\n", "")
    assert ended.err == ""
    assert sorted(one.name for one in here.iterdir() if one.is_dir()) == ["kept", "run_data"]
    again = run("rescore", str(moved))
    assert again.code == 0, again.err
    assert len(list(moved.parent.iterdir())) == 2


@pytest.mark.parametrize("named_by", ["", "record.json"])
def test_a_complete_run_whose_folder_was_renamed_has_its_items(run, ran, monkeypatch, named_by):
    renamed = ran.with_name("renamed")
    ran.rename(renamed)
    ended = run("resume", "renamed", "--output-file", "all.json", "--max-errors", "2")
    assert (ended.code, ended.err) == (0, "")
    assert "record  run_data/runs/renamed\n" in ended.out
    assert len(json.loads(Path("all.json").read_text(encoding="utf-8"))["test_item_records"]) == 8
    monkeypatch.chdir(renamed)
    assert load_record(named_by).run_id == "renamed"


def unsigned(folder, **changes):
    """Let a run be anybody's: its manifest says other things, and is not signed."""
    manifest = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    del manifest["signature"]
    (folder / "run.json").write_text(json.dumps(manifest | changes), encoding="utf-8")


@pytest.fixture
def stranger(run, here):
    """A folder that somebody else sent: its run was stopped, and names a plugin that says when it is loaded."""
    theirs, mark = here / "sent" / "theirs.py", here / "ran.txt"
    theirs.parent.mkdir()
    code = f"from pathlib import Path\nPath({str(mark)!r}).write_text('ran', encoding='utf-8')\n"
    theirs.write_text(code + (here / "plugin.py").read_text(encoding="utf-8"), encoding="utf-8")
    asked = ("--sut", "echo", "--test", "numbers", "--no-caching", "--max-calls", "4", "--data-dir", "sent")
    assert run("run-test", *asked, "--plugin", "sent/theirs.py", plugin=False).code == 4
    mark.unlink()
    (folder,) = (theirs.parent / "runs").iterdir()
    unsigned(folder)
    return folder, theirs, mark


@pytest.mark.parametrize("command", ["resume", "rescore"])
def test_a_folder_from_elsewhere_runs_no_code_unasked(run, stranger, command):
    folder, theirs, mark = stranger
    before = sorted(folder.parent.parent.rglob("*"))
    for given in (
        (),
        ("--plugin", "plugin.py"),
        ("--plugin", "plugin.py", "--sut", "echo")[: 4 if command == "resume" else 2],
    ):
        refused = run(command, str(folder), *given, plugin=False)
        assert refused.code == 2
        assert f"is not known to be your own. It names --plugin {theirs}" in refused.err
        assert f"\n  modelgauge {command} {folder} --plugin {theirs}" in refused.err
        assert not mark.exists()
    assert sorted(folder.parent.parent.rglob("*")) == before


@pytest.mark.parametrize("verb", [resume, rescore])
def test_a_folder_from_elsewhere_runs_no_code_unasked_from_python_either(stranger, verb):
    folder, theirs, mark = stranger
    more = {"sut": "echo", "max_calls": 20} if verb is resume else {}
    for lacking in ({}, more):
        with pytest.raises(RecordError, match="names --plugin"):
            verb(folder, **lacking)
    assert not mark.exists()
    (record,) = verb(folder, plugin_files=[str(theirs)], **more)
    assert record.counts.scored == (10 if verb is resume else 4)
    assert mark.exists()


def test_a_folder_from_elsewhere_goes_on_with_what_is_trusted(run, stranger, here):
    folder, theirs, mark = stranger
    ended = run("resume", str(folder), "--plugin", "sent/theirs.py", "--sut", "echo", plugin=False)
    assert ended.code == 4  # the cap of the run
    assert mark.exists()
    again = f"modelgauge resume {folder} --plugin sent/theirs.py --sut echo --max-calls N"
    assert f"To go on: {again}\n" in ended.err
    assert run("resume", str(folder), plugin=False).code == 2  # named once, it is not one's own
    theirs.rename(here / "theirs.py")  # a file of that name is the plugin, wherever it is by now
    ended = run("rescore", str(folder), "--plugin", "theirs.py", plugin=False)
    assert ended.code == 0, ended.err
    assert "4 scored, 0 failed" in ended.out


def test_the_data_folder_makes_no_run_ones_own_and_a_trusted_folder_does(run, stranger, here, monkeypatch):
    folder, _, mark = stranger
    more = ("--data-dir", "sent", "--max-calls", "20")
    refused = run("resume", folder.name, *more, plugin=False)
    assert refused.code == 2
    assert f"\n  export MODELGAUGE_TRUSTED={folder}\n" in refused.err
    assert not mark.exists()
    monkeypatch.setenv("MODELGAUGE_TRUSTED", f"{here / 'other'}{os.pathsep}{here / 'sent'}")
    ended = run("resume", folder.name, *more, plugin=False)
    assert ended.code == 0, ended.err
    assert mark.exists()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"sut_uid": "openai/x?base_url=https%3A%2F%2Fevil.example"}, "--sut 'openai/x?base_url="),
        ({"test_uid": "numbers?file=secret.txt"}, "--test 'numbers?file="),
        ({"inputs": {"judge": "openai/x?base_url=evil"}}, "--judge 'openai/x?base_url=evil'"),
        (
            {
                "dependency_versions": {"words": "0" * 64},
                "inputs": {"dependencies": {"words": "/etc/passwd"}},
            },
            "--dependency words=/etc/passwd",
        ),
    ],
)
def test_no_name_of_a_changed_manifest_is_used_unasked(run, stopped, change, told, calls):
    manifest = json.loads((stopped / "run.json").read_text(encoding="utf-8"))
    (stopped / "run.json").write_text(json.dumps(manifest | change), encoding="utf-8")
    named = ("--sut", "echo") if "sut_uid" not in change else ("--sut", "other")
    refused = run("resume", stopped.name, *named)
    assert refused.code == 2
    assert f"names {told}" in refused.err
    assert len(calls()) == 4  # before it was stopped


def test_a_run_is_ones_own_by_a_key_that_only_the_user_can_read(run, stopped, here, monkeypatch):
    key = Path(os.environ["XDG_CONFIG_HOME"]) / "modelgauge" / "runs.key"
    assert os.name != "posix" or key.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in key.parent.iterdir()] == ["runs.key"]
    signature = json.loads((stopped / "run.json").read_text(encoding="utf-8"))["signature"]
    assert run("resume", stopped.name, "--max-calls", "5").code == 4
    again = json.loads((stopped / "run.json").read_text(encoding="utf-8"))["signature"]
    assert signature != again  # the cap was changed, and the run is the user's own still
    assert run("resume", stopped.name).code == 4
    monkeypatch.setenv("XDG_CONFIG_HOME", str(here / "another user"))
    assert "not known to be your own" in run("resume", stopped.name).err
    assert not (here / "another user").exists()


def test_where_no_key_can_be_kept_nothing_is_signed_and_the_run_goes_its_way(
    run, here, only_run, monkeypatch
):
    (here / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(here / "file"))
    assert run("run-test", "--sut", "echo", "--test", "numbers", "--max-calls", "4").code == 4
    assert "signature" not in json.loads((only_run() / "run.json").read_text(encoding="utf-8"))
    assert run("resume", only_run().name, "--sut", "echo", "--max-calls", "20").code == 0


def test_a_moved_run_writes_nothing_where_its_manifest_says_that_its_data_was(run, stopped, here):
    named = here / "named"
    named.mkdir()
    moved = here / "kept" / "moved"
    moved.parent.mkdir()
    stopped.rename(moved)
    options = json.loads((moved / "run.json").read_text(encoding="utf-8"))["options"]
    unsigned(moved, options=options | {"data_dir": str(named), "caching": True})
    ended = run("resume", str(moved), "--sut", "echo", "--data-dir", "mine", "--max-calls", "20")
    assert ended.code == 0, ended.err
    assert list(named.iterdir()) == []
    assert (here / "mine" / "cache").is_dir()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda run_id: {"rescores": run_id}, "rescores: "),
        (lambda run_id: {"rescores": ["x"]}, "rescores: "),
        (lambda run_id: {"rescores": "../../../../etc"}, "rescores: "),
        (lambda run_id: {"rescores": ".."}, "rescores: "),
        (lambda run_id: {"rescores": "x" * 256}, "rescores: "),
        (lambda run_id: {"rescores": "x", "command": 5}, "command: "),
        (lambda run_id: {"rescores": "x", "command": ["modelgauge", 5]}, "command: "),
    ],
)
def test_a_damaged_manifest_is_named_with_its_field(run, stopped, change, told):
    manifest = json.loads((stopped / "run.json").read_text(encoding="utf-8"))
    (stopped / "run.json").write_text(json.dumps(manifest | change(stopped.name)), encoding="utf-8")
    ended = run("show", stopped.name)
    assert ended.code == 2
    assert f"run.json is damaged: {told}" in " ".join(ended.err.split())


@pytest.mark.parametrize("command", ["resume", "rescore"])
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"test_initialization": {"class_name": "pytest"}, "command": 5}, "command: 5"),
        ({"test_initialization": ["x"]}, "test_initialization"),
    ],
)
def test_a_damaged_manifest_of_a_session_is_named_with_its_field(run, stopped, command, change, told):
    manifest = json.loads((stopped / "run.json").read_text(encoding="utf-8"))
    changed = manifest | {"sut_uid": "given_outputs"} | change
    (stopped / "run.json").write_text(json.dumps(changed), encoding="utf-8")
    ended = run(command, stopped.name)
    assert ended.code == 2
    assert "run.json is damaged: " in " ".join(ended.err.split())
    assert told in ended.err


def test_runs_that_measure_each_other_are_damaged(run, ran):
    assert run("rescore", ran.name, "--max-errors", "2").code == 0
    made = max(ran.parent.iterdir())
    manifest = json.loads((ran / "run.json").read_text(encoding="utf-8"))
    (ran / "run.json").write_text(json.dumps(manifest | {"rescores": made.name}), encoding="utf-8")
    ended = run("resume", ran.name)
    assert ended.code == 2
    assert "run.json is damaged: rescores: " in " ".join(ended.err.split())


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


AGGREGATION = "    items = 10\n\n    def aggregate_measurements(self, items):\n        return {'a': 1 // 0}\n"


@pytest.mark.parametrize("other", ["other prompts", "other items", "no items"])
def test_answers_to_other_prompts_are_refused_before_a_run_is_made(run, ran, here, other):
    made = {
        "other prompts": 'mg.TestItem([f"what is {number}?"], id=f"n{number}")',
        "other items": 'mg.TestItem([f"number {number}"], id=f"m{number}")',
        "no items": "1 // 0",
    }
    body = f"for number in range(10):\n            yield {made[other]}"
    source = f"def make_test_items(self, dependencies):\n        {body}"
    edit(here, "class WithData(", f"class Other(Numbers):\n    {source}\n\n\nclass WithData(")
    edit(here, 'register("broken", Broken)', 'register("broken", Broken)\n    register("other", Other)')
    ended = run("rescore", ran.name, "--test", "other")
    assert ended.code == 2
    told = {"other prompts": "are not those that were answered", "other items": "has no recorded answer"}
    assert told.get(other, "plugin.py, line 93)") in ended.err
    assert "To go on" not in ended.err
    assert list(ran.parent.iterdir()) == [ran]


@pytest.mark.parametrize("verb", ["resume", "rescore"])
def test_a_command_that_failed_does_not_advise_itself(run, stopped, here, verb):
    edit(here, "    items = 10\n", AGGREGATION)
    ended = run(verb, stopped.name, *(["--max-calls", "100"] if verb == "resume" else []))
    assert ended.code == 4
    assert re.search(r"ZeroDivisionError: [a-z ]+ by zero \(", " ".join(ended.out.split()))
    assert "To go on, correct that and run the same command again.\n" in ended.err
    assert f"modelgauge {verb}" not in ended.out + ended.err


def test_a_rescoring_that_stops_is_done_again_and_not_resumed(run, ran, here):
    edit(here, "    items = 10\n", AGGREGATION)
    ended = run("rescore", ran.name)
    assert ended.code == 4
    made = max(ran.parent.iterdir())
    assert f"rescore {ran.name}\n" in run("show", made.name).out
    refused = run("resume", made.name)
    assert refused.code == 2
    assert f"modelgauge rescore {ran.name}" in refused.err
