"""`modelgauge run`: the options of `run-test` in a file, checked as the command line checks them."""

import json

import click
import pytest

from modelgauge.cli.commands.measure import run_test
from modelgauge.cli.run_file import list_keys

SUITE = """\
tests = ["numbers", "judged"]
plugins = ["../plugin.py"]
max_test_items = 5
temperature = 0
no_report = true

[suts]
yes = "echo"
no = "echo?answer=no"
"""


@pytest.fixture
def suite(run, here):
    """Write a file in a folder of its own, and run it."""
    (here / "evals").mkdir()

    def suite(text, *args):
        (here / "evals" / "suite.toml").write_text(text, encoding="utf-8")
        return run("run", "evals/suite.toml", "--no-progress-bar", *args, plugin=False)

    return suite


def said(ended):
    return " ".join(ended.err.split())


def test_a_file_says_what_is_run_and_the_record_holds_it(suite, here):
    ended = suite(SUITE, "--json")
    assert ended.code == 0
    records = ended.json["records"]
    assert [(record["test_uid"], record["sut_label"]) for record in records] == [
        ("numbers", "yes"),
        ("numbers", "no"),
        ("judged", "yes"),
        ("judged", "no"),
    ]
    assert [record["counts"]["items"] for record in records] == [5, 5, 2, 2]
    assert records[0]["sut_options"] == {"temperature": 0.0}
    folder = here / "run_data" / "runs" / records[0]["run_id"]
    manifest = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    assert manifest["inputs"]["run_file"]["text"] == SUITE
    assert not (folder / "report.html").exists()


OBSERVER = """
import json
from modelgauge import hookimpl


@hookimpl
def modelgauge_run_started(run):
    with open("seen.json", "w") as file:
        json.dump(run["inputs"], file)
"""


def test_secrets_in_the_file_are_neither_recorded_nor_shown_to_observers(suite, here, monkeypatch):
    monkeypatch.setenv("ACME_TOKEN", "a-secret-value-of-acme")
    (here / "observer.py").write_text(OBSERVER, encoding="utf-8")
    text = SUITE.replace('"echo"', '"secretive"').replace(
        '"../plugin.py"', '"../plugin.py", "../observer.py"'
    )
    ended = suite(text + "# a-secret-value-of-acme\n", "--json")
    assert ended.code == 0
    manifests = [*(here / "run_data" / "runs").glob("*/run.json")]
    assert len(manifests) == 4
    for path in (here / "seen.json", *manifests):
        assert "max_test_items = 5" in path.read_text(encoding="utf-8")
        assert "a-secret-value" not in path.read_text(encoding="utf-8")


def test_the_command_line_takes_the_place_of_what_the_file_says(suite):
    given = ("--test", "numbers", "--sut", "flaky", "-m", "2", "--max-errors", "9", "--json")
    (record,) = suite(SUITE + '[thresholds]\njudged.yes = 1\n"accuracy" = 0\n', *given).json["records"]
    assert (record["sut_uid"], record["counts"]["items"]) == ("flaky", 2)


def test_a_dry_run_sends_nothing_and_resume_goes_on(suite, run, calls):
    assert "\nTo pay: " in suite(SUITE, "--dry-run").out
    assert calls() == []
    assert suite(SUITE, "--max-calls", "3").code == 4
    ended = run("resume", "latest", "--max-calls", "100", "--json", plugin=False)
    assert ended.code == 0
    assert [one["counts"]["scored"] for one in ended.json["records"]] == [5, 5, 2, 2]


def test_goldens_thresholds_and_a_baseline_are_options_too(suite, here):
    (here / "evals" / "goldens.csv").write_text("question,expected_output\na,yes\nb,yes\n", encoding="utf-8")
    text = """
datasets = ["goldens.csv"]
columns = {input = "question"}
metrics = "exact_match"
suts = {SUT}
plugins = "../plugin.py"
thresholds = {ExactMatchMetric = 0.5}
"""
    assert suite(text.replace("{SUT}", '"a=echo"'), "--output-file", "evals/main.json").code == 0
    more = 'baseline = "main.json"\nfail_if_worse = true\nhigher_is_better = "ExactMatchMetric"\n'
    ended = suite(text.replace("{SUT}", '"b=echo?answer=no"') + more)
    assert ended.code == 1
    assert "Failed: goldens on b: ExactMatchMetric is 0, below 0.5." in ended.err
    assert "Is b better than a on goldens?" in ended.out


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('tets = "numbers"', "suite.toml, line 2: there is no key 'tets'. Did you mean 'tests'"),
        ('"max-calls" = 1', "line 2: there is no key 'max-calls'. Did you mean 'max_calls'?"),
        ("json = true", "line 2: there is no key 'json'"),
        ("dry_run = true", "line 2: there is no key 'dry_run'"),
        (
            'seed = "many"',
            "line 2, seed: 'many' is not a whole number. `modelgauge run-test --help` says what --seed",
        ),
        ("seed = true", "line 2, seed: 'true' is not a whole number"),
        ("seed = [1, 2]", "line 2, seed: it takes one value"),
        ("seed = 2026-01-31", "line 2, seed: a date is neither a text nor a number"),
        ("top_k = 1.5", "line 2, top_k: '1.5' is not a whole number of 1 or more"),
        ("finite = 1", "line 2, finite: 1 is neither true nor false"),
        (
            '[thresholds]\naccuracy = "high"',
            "line 2, thresholds: 'accuracy=high' is not a threshold. Write accuracy=0.8",
        ),
        ("[seed]\nx = 1", "line 2, seed: a dict is neither a text nor a number"),
        ('test = "x"\ntests = "y"', "line 3: 'tests' is given twice"),
        ('datasets = "goldens.csv"', "--dataset needs at least one --metric"),
        ("fail_if_worse = true", "--fail-if-worse and the like compare with a baseline"),
        ("seed = ", "suite.toml is not valid TOML: Invalid value (at line 2, column 8)"),
        ('seed = "\\u0000', "is not valid TOML"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(suite, line, says, here):
    ended = suite(f'suts = "echo"\n{line}\n')
    assert ended.code == 2
    assert says in said(ended)
    assert not (here / "run_data").exists()


def test_a_file_that_is_not_there_or_not_text_is_an_error(run, here):
    assert run("run", "nowhere.toml", plugin=False).code == 2
    (here / "binary.toml").write_bytes(b"\xff\xfe")
    assert "this is not UTF-8" in run("run", "binary.toml", plugin=False).err
    assert "Missing argument 'FILE'" in run("run", plugin=False).err


def test_each_option_of_run_test_is_a_key_but_those_of_one_call():
    options = {
        str(param.name) for param in run_test.params if isinstance(param, click.Option) and not param.hidden
    }
    keys = list_keys(run_test)
    assert options - {str(key.name) for key in keys.values()} == {
        "as_json",
        "dry_run",
        "verbose",
        "no_progress_bar",
    }
    assert {"tests", "suts", "plugins", "columns", "max_test_items", "timeout", "no_report"} <= keys.keys()
