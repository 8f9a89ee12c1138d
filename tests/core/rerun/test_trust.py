"""An earlier run as its manifest tells it: what it names, and what of that the caller must name again."""

import json
import re

import pytest

from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.errors import RecordError
from modelgauge.rerun.original import Names, OriginalRun
from modelgauge.rerun.trust import check_names

OPTIONS = {
    "max_test_items": None,
    "seed": 0,
    "repeats": 1,
    "reduce": "mean",
    "caching": True,
    "sut_options": {},
}
URL = "postgresql://team@db.example.org/modelgauge"
PLAIN = {
    "test_uid": "sums", "test_initialization": {}, "sut_uid": "adder", "sut_initialization": {},
    "dependency_versions": {}, "options": OPTIONS,
}  # fmt: skip
OF_GOLDENS = {
    "dataset": {"name": "goldens", "digest": "0" * 64},
    "inputs": {
        "datasets": {"sums": "goldens.csv"},
        "metrics": ["plain", "one?x=1", "other/two"],
        "judge": "j",
    },
}


@pytest.fixture
def run_of(tmp_path, monkeypatch):
    """`run_of(field=…)`: the folder of somebody else's run."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("MODELGAUGE_TRUSTED", raising=False)

    def make(**changes):
        folder = tmp_path / "a run"
        folder.mkdir(exist_ok=True)
        (folder / "run.json").write_text(json.dumps(PLAIN | changes), encoding="utf-8")
        return RunFolder(folder)

    return make


def lacking(folder, names, verb):
    """The options that the caller is asked for; none where all is well."""
    try:
        check_names(OriginalRun(folder), names, verb)
    except RecordError as error:
        return re.search(r"It names (.*): this is used only", error.problem)[1]
    return ""


@pytest.mark.parametrize(
    ("run", "names", "of_resume", "of_rescore"),
    [
        # The SUT is asked by resume alone.
        ({}, Names(), "--sut adder", ""),
        ({}, Names(sut="adder"), "", ""),
        ({}, Names(sut="other"), "--sut adder", ""),
        ({}, Names(sut=object()), "", ""),  # an object is the caller's
        # Any cache of the caller's will do.
        ({"options": {**OPTIONS, "cache": URL}}, Names(sut="adder"), f"--cache {URL}", f"--cache {URL}"),
        ({"options": {**OPTIONS, "cache": URL}}, Names(sut="adder", cache="folder"), "", ""),
        ({"options": {**OPTIONS, "cache": None}}, Names(sut="adder"), "", ""),
        # A bare name of a test means what is installed; one with parts may reach out.
        ({"test_uid": "sums?x=1"}, Names(sut="adder"), "--test 'sums?x=1'", "--test 'sums?x=1'"),
        ({"test_uid": "acme/sums"}, Names(sut="adder"), "--test acme/sums", "--test acme/sums"),
        ({"test_uid": "sums?x=1"}, Names(sut="adder", test="sums?x=1"), "", ""),
        ({"test_uid": "sums?x=1"}, Names(sut="adder", test="other"), "--test 'sums?x=1'", ""),
        ({"test_uid": "sums?x=1"}, Names(sut="adder", test=object()), "", ""),
        # Plugins are known by the names of their files, wherever they lie, and count where they are loaded by name.
        ({"inputs": {"plugins": ["/a/p.py", "C:\\b\\q.py", "/a/p.py"]}}, Names(sut="adder", plugins=()),
         "--plugin /a/p.py --plugin 'C:\\b\\q.py'", "--plugin /a/p.py --plugin 'C:\\b\\q.py'"),
        ({"inputs": {"plugins": ["/a/p.py", "C:\\b\\q.py"]}}, Names(sut="adder", plugins=("x/q.py", "p.py")), "", ""),
        ({"inputs": {"plugins": ["/a/p.py"]}}, Names(sut="adder"), "", ""),
        # Goldens and metrics.
        (OF_GOLDENS, Names(sut="adder", judge="j"), "--dataset goldens.csv --metric 'one?x=1' --metric other/two",
         "--dataset goldens.csv --metric 'one?x=1' --metric other/two"),
        (OF_GOLDENS, Names(sut="adder", judge="j", dataset="g", metrics=("one?x=1",)), "--metric other/two", ""),
        (OF_GOLDENS, Names(sut="adder", judge="j", dataset="g", metrics=("one?x=1", "other/two")), "", ""),
        (OF_GOLDENS, Names(sut="adder", dataset="g", metrics=("one?x=1", "other/two")), "--judge j", "--judge j"),
        (OF_GOLDENS, Names(sut="adder", judge="k", dataset="g", metrics=("one?x=1", "other/two")), "--judge j", ""),
        (OF_GOLDENS, Names(sut="adder", judge="j", test="sums"),
         "--dataset goldens.csv --metric 'one?x=1' --metric other/two",
         "--dataset goldens.csv --metric 'one?x=1' --metric other/two"),
        (OF_GOLDENS, Names(sut="adder", judge="j", test=object()), "", ""),
        # Local data of this test.
        ({"test_uid": "sums", "dependency_versions": {"facts": "1"},
          "inputs": {"dependencies": {"facts": "a b", "sums:facts": "c", "other:facts": "d", "more": "e"}}},
         Names(sut="adder", dependencies={"facts": "mine"}),
         "--dependency sums:facts=c", "--dependency sums:facts=c"),
    ],
)  # fmt: skip
def test_of_a_strangers_run_every_name_that_is_used_is_named_again(run_of, run, names, of_resume, of_rescore):
    assert lacking(run_of(**run), names, "resume") == of_resume
    assert lacking(run_of(**run), names, "rescore") == of_rescore


def test_the_options_of_a_test_do_not_hide_whose_data_is_given(run_of):
    given = {"dependencies": {"sums:facts": "c"}}
    run = run_of(test_uid="sums?x=1", dependency_versions={"facts": "1"}, inputs=given)
    assert lacking(run, Names(), "rescore") == "--test 'sums?x=1' --dependency sums:facts=c"


def test_what_to_do_with_a_strangers_run_is_told(run_of):
    run = run_of(test_uid="sums?x=1")
    with pytest.raises(RecordError) as caught:
        check_names(OriginalRun(run), Names(test="sums?x=1"), "resume")
    assert caught.value.problem == (
        "Run a run is not known to be your own. It names --sut adder: this is used only if you give it yourself."
    )
    assert caught.value.fix.splitlines() == [
        "If you trust what it names, give it again:",
        f"  modelgauge resume '{run.path}' --sut adder --test 'sums?x=1'",
        "To trust all that lies there:",
        f"  export MODELGAUGE_TRUSTED='{run.path.resolve()}'",
    ]


@pytest.mark.parametrize("verb", ["resume", "rescore"])
def test_goldens_of_which_nobody_knows_what_they_held_are_not_used(run_of, verb):
    run = run_of(**OF_GOLDENS | {"dataset": None})
    names = Names(sut="adder", judge="j", dataset="g", metrics=("one?x=1", "other/two"))
    with pytest.raises(RecordError, match="does not say what its data set held"):
        check_names(OriginalRun(run), names, verb)


@pytest.mark.parametrize("names", [Names(dataset="g"), Names(metrics=("exact_match",))])
def test_a_run_is_resumed_by_what_it_was_begun_with(run_of, names, monkeypatch, tmp_path):
    monkeypatch.setenv("MODELGAUGE_TRUSTED", str(tmp_path))
    with pytest.raises(RecordError, match="was begun with other metrics, or no data set"):
        check_names(OriginalRun(run_of()), names, "resume")
    check_names(OriginalRun(run_of()), names, "rescore")


def test_a_trusted_run_needs_no_names_and_loads_its_plugins(run_of, monkeypatch, tmp_path):
    run = run_of(test_uid="sums?x=1", inputs={"plugins": ["p.py"]})
    assert not OriginalRun(run).plugins
    monkeypatch.setenv("MODELGAUGE_TRUSTED", str(tmp_path))
    assert OriginalRun(run).plugins == ("p.py",)
    check_names(OriginalRun(run), Names(plugins=()), "resume")


@pytest.mark.parametrize("change", [{"rescores": "another"}, {"sut_uid": "given_outputs"}])
def test_what_cannot_be_resumed_is_refused_for_that_and_not_for_its_names(run_of, change):
    check_names(OriginalRun(run_of(test_uid="sums?x=1", **change)), Names(), "resume")
    assert lacking(run_of(test_uid="sums?x=1", **change), Names(), "rescore") == "--test 'sums?x=1'"


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["pytest", "a b.py"], "pytest 'a b.py'"),
        (["modelgauge", "test", "run"], "modelgauge test run"),
        (["rm", "-rf", "/"], "pytest"),
        (None, "pytest"),
        ([], "pytest"),
    ],
)
def test_a_session_of_pytest_is_run_again_by_its_own_command_and_no_other(run_of, command, shown):
    run = run_of(sut_uid="given_outputs", test_initialization={"class_name": "pytest"}, command=command)
    assert f"Run the tests again: {shown}. " in OriginalRun(run).of_given_outputs("why").fix


@pytest.mark.parametrize(
    "change",
    [
        {"options": {**OPTIONS, "repeats": 0}}, {"options": {**OPTIONS, "max_test_items": 0}},
        {"options": {**OPTIONS, "first_repeat": -1}}, {"options": {**OPTIONS, "seed": "1"}}, {"options": {}},
        {"test_uid": 3}, {"inputs": {"plugins": "p.py"}}, {"inputs": {"datasets": []}},
    ],
)  # fmt: skip
def test_a_damaged_manifest_is_told(run_of, change):
    with pytest.raises(RecordError, match=r"run\.json is damaged"):
        OriginalRun(run_of(**change))


def test_the_limits_of_a_run_are_those_that_it_was_given(run_of):
    said = {"concurrency": 3, "max_cost": 1.5, "call_timeout": 2.0}
    made = OriginalRun(run_of(options={**OPTIONS, **said, "repeats": 1, "max_test_items": 1, "unknown": 1}))
    assert made.described.chosen("calls", "limits") == said
