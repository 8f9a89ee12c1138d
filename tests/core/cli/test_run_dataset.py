"""Data sets from the command line: thresholds and exit codes, and traces."""

import json

import pytest

# --- thresholds --------------------------------------------------------------------------------------


def test_a_case_below_a_threshold_fails_the_command_and_is_counted_for_each_metric(program, run_dataset):
    ended = run_dataset("--dataset", "bad.csv", metrics=["exact_match", "grounded"])
    assert ended.code == 1, ended.err
    rows = {line.split("  ")[0]: line for line in ended.out.splitlines()}
    assert rows["ExactMatchMetric ≥ 1"].endswith("2 of 3")
    assert rows["Grounded ≥ 0.5"].endswith("3 of 3")
    assert rows["passed"].endswith("2 of 3")
    assert "Failed: bad on app: 2 of 3 items passed all thresholds." in ended.err
    command = [
        "run-test",
        "--plugin",
        "app.py",
        "--sut",
        "app",
        "--metric",
        "exact_match",
        "--metric",
        "grounded",
    ]
    passing = program(*command, "--dataset", "good.csv")
    assert passing.code == 0
    assert passing.err == ""


def test_a_test_of_ones_own_needs_no_more_than_thresholds_for_its_failures_to_count(here, run):
    (here / "strict.py").write_text(
        "import modelgauge as mg\n"
        "from modelgauge import Threshold\n\n\n"
        "class Strict(mg.PromptResponseTest):\n"
        "    thresholds = {'length': Threshold(value=4)}\n\n"
        "    def make_test_items(self, dependencies):\n"
        "        return [mg.TestItem(word) for word in ('four', 'six')]\n\n"
        "    def measure_quality(self, item):\n"
        "        return {'length': len(item.text.split('|')[0])}\n\n\n"
        "@mg.hookimpl\n"
        "def modelgauge_register_tests(register):\n"
        "    register('strict', Strict)\n"
        "@mg.hookimpl\n"
        "def modelgauge_register_suts(register):\n"
        "    register('same', lambda uid: mg.FunctionSUT(uid, str))\n",
        encoding="utf-8",
    )
    ended = run("run-test", "--plugin", "strict.py", "--sut", "same", "--test", "strict")
    assert ended.code == 1, ended.err
    assert "Failed: strict on same: 1 of 2 items passed all thresholds." in ended.err


def test_one_of_several_data_sets_is_enough_to_fail(run_dataset):
    ended = run_dataset("--dataset", "good.csv", "--dataset", "bad.csv", "--json")
    assert ended.code == 1
    good, bad = ended.json["records"]
    assert (good["result"]["passed"]["value"], bad["result"]["passed"]["n"]) == (1, 3)
    assert bad["thresholds"] == {"ExactMatchMetric": {"value": 1.0, "higher_is_better": True}}
    assert "Failed: bad on app" in ended.err
    assert "good on app" not in ended.err


def test_a_threshold_of_what_no_metric_gives_is_refused_before_anything_is_asked(run_dataset, here):
    named = ("--dataset", "good.csv", "--repeats", "2", "--reduce", "pass@2")
    ended = run_dataset(*named, "--threshold", "ExactMatch=0.5")
    assert (ended.code, ended.out) == (2, "")
    assert "There is no result 'ExactMatch' for the threshold." in ended.err
    assert (
        "The results are: ExactMatchMetric.pass@2, ExactMatchMetric.passed.pass@2, passed.pass@2."
        in ended.err
    )
    assert not [*here.glob("run_data/runs/*")]
    ended = run_dataset(
        *named, "--threshold", "passed.pass@2=0.5", "--threshold", "ExactMatchMetric.pass@2=0.5"
    )
    assert ended.code == 0, ended.err


def test_a_metric_where_lower_is_better_fails_above_its_threshold(run_dataset):
    assert run_dataset("--dataset", "good.csv", metrics=["length?threshold=1"]).code == 0
    ended = run_dataset("--dataset", "good.csv", metrics=["length?threshold=0.5"])
    assert ended.code == 1
    assert "Length ≤ 0.5" in ended.out
    assert "0 of 2 items passed" in ended.err


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


# --- wrong usage -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--dataset", "good.csv", "--column", "inptu=a"), "Did you mean 'input'"),
        (("--dataset", "good.csv", "--column", "input"), "FIELD=COLUMN"),
        (("--dataset", "good.csv", "--column", "input=a"), "there is no column 'a'"),
        (("--dataset", "empty.csv"), "empty.csv holds no goldens"),
    ],
)
def test_wrong_columns_and_files_are_told(run_dataset, here, args, told):
    (here / "empty.csv").write_text("input\n", encoding="utf-8")
    ended = run_dataset(*args)
    assert ended.code == 2
    assert told in ended.err
    assert not (here / "run_data" / "runs").exists()


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--column", "input=a"), "--column, --delimiter and --encoding describe a --dataset"),
        (("--metric", "exact_match"), "--metric judges the goldens of a --dataset, which is missing."),
        (("--dataset", "good.csv"), "--dataset needs at least one --metric"),
    ],
)
def test_what_needs_a_data_set_or_a_metric_is_told(run, datasets, args, told):
    ended = run("run-test", "--sut", "echo", "--test", "numbers", *args)
    assert ended.code == 2
    assert told in ended.err


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
            assert [(span["name"], span["type"], span["parent"]) for span in spans] == [
                ("app", "agent", None),
                ("look_up", "retriever", 0),
            ]
