"""Data sets from the command line: thresholds and exit codes."""

import json

import pytest

PLUGIN = """
from modelgauge import FunctionSUT, hookimpl
from modelgauge.evals import observe, update_current_trace
from modelgauge.metrics import Metric


@observe(type="retriever")
def look_up(question):
    return [f"about {question}"]


@observe(type="agent")
def app(question):
    if question == "broken":
        raise LookupError("the app is broken")
    update_current_trace(retrieval_context=look_up(question))
    return question


def judge(question):
    return '{"verdicts": [{"verdict": "yes"}], "statements": ["a"], "reason": "ok"}'


class Grounded(Metric):
    required_params = ("retrieval_context",)

    def score(self, test_case):
        return 1.0


class Length(Metric):
    higher_is_better = False
    best_score = 0.0

    def score(self, test_case):
        return len(test_case.actual_output)


@hookimpl
def modelgauge_register_suts(register):
    register("app", FunctionSUT, app, version=1)
    register("judge", FunctionSUT, judge, version=1)


@hookimpl
def modelgauge_register_metrics(register):
    register("grounded", Grounded)
    register("length", Length)
"""


@pytest.fixture
def here(here):
    """The working directory, with a plugin and data sets: the app answers with the question."""
    (here / "app.py").write_text(PLUGIN, encoding="utf-8")
    for name, rows in {
        "good.csv": "a,a\nb,b\n",
        "bad.csv": "a,a\nb,b\nc,x\n",
        "broken.csv": "a,a\nbroken,x\n",
    }.items():
        (here / name).write_text(f"input,expected_output\n{rows}", encoding="utf-8")
    return here


@pytest.fixture
def run_dataset(run):
    """Run a data set on the app; by default by `exact_match`."""

    def run_dataset(*args, metrics=("exact_match",)):
        named = [part for metric in metrics for part in ("--metric", metric)]
        return run(
            "run-test",
            "--plugin",
            "app.py",
            "--sut",
            "app",
            "--max-retries",
            "0",
            *named,
            *args,
            plugin=False,
        )

    return run_dataset


# --- thresholds --------------------------------------------------------------------------------------


def test_a_case_below_a_threshold_fails_the_command_and_is_counted_for_each_metric(program, here):
    command = ["run-test", "--plugin", "app.py", "--sut", "app"]
    metrics = ["--metric", "exact_match", "--metric", "grounded"]
    ended = program(*command, *metrics, "--dataset", "bad.csv")
    assert ended.code == 1, ended.err
    rows = {line.split("  ")[0]: line for line in ended.out.splitlines()}
    assert rows["ExactMatchMetric ≥ 1"].endswith("2 of 3")
    assert rows["Grounded ≥ 0.5"].endswith("3 of 3")
    assert rows["passed"].endswith("2 of 3")
    assert "Failed: bad on app: only 2 of 3 items passed all thresholds." in ended.err
    passing = program(*command, *metrics, "--dataset", "good.csv")
    assert passing.code == 0
    assert passing.err == ""


def test_one_of_several_data_sets_is_enough_to_fail(run_dataset):
    ended = run_dataset("--dataset", "good.csv", "--dataset", "bad.csv", "--json")
    assert ended.code == 1
    good, bad = ended.json["records"]
    assert (good["result"]["passed"]["value"], bad["result"]["passed"]["n"]) == (1, 3)
    assert bad["thresholds"] == {"ExactMatchMetric": {"value": 1.0, "higher_is_better": True}}
    assert "Failed: bad on app" in ended.err
    assert "good on app" not in ended.err


def test_a_metric_where_lower_is_better_fails_above_its_threshold(run_dataset):
    assert run_dataset("--dataset", "good.csv", metrics=["length?threshold=1"]).code == 0
    ended = run_dataset("--dataset", "good.csv", metrics=["length?threshold=0.5"])
    assert ended.code == 1
    assert "Length ≤ 0.5" in ended.out
    assert "only 0 of 2 items passed" in ended.err


def test_more_errors_than_allowed_go_before_a_threshold(run_dataset):
    ended = run_dataset("--dataset", "broken.csv", "--dataset", "bad.csv")
    assert ended.code == 3
    assert "Error: 1 of 2 items failed in broken on app" in ended.err
    assert "Failed: bad on app" in ended.err
    allowed = run_dataset("--dataset", "broken.csv", "--dataset", "bad.csv", "--max-errors", "1")
    assert allowed.code == 1


def test_errors_that_are_allowed_do_not_fail_a_threshold_but_nothing_scored_passes_nothing(run_dataset, here):
    assert run_dataset("--dataset", "broken.csv", "--max-errors", "1").code == 0
    (here / "broken.csv").write_text("input,expected_output\nbroken,x\n", encoding="utf-8")
    ended = run_dataset("--dataset", "broken.csv", "--max-errors", "1")
    assert ended.code == 1
    assert "nothing was scored, so nothing passed" in ended.err


def test_a_run_that_stops_early_goes_before_a_threshold(run_dataset):
    ended = run_dataset("--dataset", "bad.csv", "--max-calls", "0")
    assert ended.code == 4
    assert "Failed" not in ended.err


# --- traces ------------------------------------------------------------------------------------------


def test_the_spans_of_an_app_of_a_plugin_stand_in_the_record_and_feed_the_metrics(run_dataset, here):
    for cached in (0, 2):
        ended = run_dataset(
            "--dataset", "good.csv", "--output-file", "out.json", "--json", metrics=["grounded"]
        )
        assert ended.code == 0, ended.err
        assert ended.json["records"][0]["counts"]["sut_calls"]["cached"] == cached
        items = json.loads((here / "out.json").read_text(encoding="utf-8"))["test_item_records"]
        for item in items:
            (completion,) = item["interactions"][0]["response"]["completions"]
            spans = completion["completion"]["metadata"]["trace"]["spans"]
            assert [(one["name"], one["type"], one["parent"]) for one in spans] == [
                ("app", "agent", None),
                ("look_up", "retriever", 0),
            ]
