"""Data sets from the command line: thresholds and exit codes, traces, and runs of theirs that are done again."""

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


def strict_judge(question):
    return '{"verdicts": [{"verdict": "no"}], "statements": ["a"], "reason": "no"}'


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
    register("strict", FunctionSUT, strict_judge, version=1)


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


# --- done again --------------------------------------------------------------------------------------


@pytest.fixture
def judged(run_dataset):
    """Run a data set on the app without a cache, judged by the judge of the command line too."""
    metrics = ["exact_match", "answer_relevancy?include_reason=false"]
    return lambda *args: run_dataset("--no-caching", "--judge", "judge", *args, metrics=metrics)


@pytest.fixture
def killed(judged, only_run):
    """A run of `bad.csv` that was killed when one of its three items was done."""
    assert judged("--dataset", "bad.csv").code == 1
    journal = only_run() / "items.jsonl"
    first, second, _ = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(first + second[:40])
    (only_run() / "record.json").unlink()
    return only_run()


def record_of(folder):
    return json.loads((folder / "record.json").read_text(encoding="utf-8"))


def check_resumed(ended, folder, paid):
    """The whole run of `bad.csv`, of which some answers were paid by the command that ended."""
    assert ended.code == 1, ended.err
    record = record_of(folder)
    assert record["counts"]["scored"] == 3
    assert record["counts"]["sut_calls"] == {"paid": paid, "cached": 0}
    assert record["result"]["AnswerRelevancyMetric"]["value"] == 1
    assert record["result"]["ExactMatchMetric"]["value"] == pytest.approx(2 / 3)
    lines = (folder / "items.jsonl").read_text(encoding="utf-8").splitlines()
    assert sorted(json.loads(line)["index"] for line in lines) == [0, 1, 2]


def test_a_run_of_a_data_set_that_was_killed_is_resumed_without_saying_anything_again(
    program, here, killed, monkeypatch
):
    monkeypatch.setenv("MODELGAUGE_JUDGE", "strict")  # this shell's; the run has its own
    check_resumed(program("resume", str(killed)), killed, paid=2)


def test_a_run_of_a_data_set_that_was_stopped_says_how_to_go_on(program, judged, only_run):
    ended = judged("--dataset", "bad.csv", "--max-calls", "0")
    assert ended.code == 4
    assert f"To go on: modelgauge resume {only_run().name}\n" in ended.err
    check_resumed(program("resume", only_run().name), only_run(), paid=3)


def test_the_manifest_says_what_a_run_of_a_data_set_is_done_again_with(judged, only_run, here):
    judged("--dataset", "bad.csv")
    manifest = json.loads((only_run() / "run.json").read_text(encoding="utf-8"))
    assert manifest["inputs"] == {
        "plugins": [str(here / "app.py")],
        "dependencies": {},
        "datasets": {"bad": str(here / "bad.csv")},
        "metrics": ["exact_match", "answer_relevancy?include_reason=false"],
        "judge": "judge",
    }
    assert manifest["dataset"] == record_of(only_run())["dataset"]
    assert manifest["judges"]["AnswerRelevancyMetric"]["judge"]["uid"] == "judge"


def without_the_file(here):
    (here / "bad.csv").unlink()


def with_another_golden(here):
    with (here / "bad.csv").open("a", encoding="utf-8") as file:
        file.write("d,d\n")


def with_another_reference(here):
    text = (here / "bad.csv").read_text(encoding="utf-8")
    (here / "bad.csv").write_text(text.replace("c,x", "c,c"), encoding="utf-8")


def without_goldens(here):
    (here / "bad.csv").write_text("input\n", encoding="utf-8")


@pytest.mark.parametrize("command", ["resume", "rescore"])
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (without_the_file, "cannot be read any more"),
        (with_another_golden, "is not what it was in run"),
        (with_another_reference, "is not what it was in run"),
        (without_goldens, "is not what it was in run"),
    ],
)
def test_a_data_set_that_has_changed_is_told_before_any_call(run, here, killed, command, change, told):
    before = (killed / "items.jsonl").read_bytes()
    change(here)
    ended = run(command, killed.name, plugin=False)
    assert ended.code == 2
    assert told in ended.err
    assert f"modelgauge rescore {killed.name} --dataset FILE" in ended.err
    assert (killed / "items.jsonl").read_bytes() == before
    assert len(list(killed.parent.iterdir())) == 1


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            'register("app", FunctionSUT, app, version=1)',
            'register("app", FunctionSUT, app, version=2)',
            "'app'",
        ),
        (
            'register("judge", FunctionSUT, judge, version=1)',
            'register("judge", FunctionSUT, judge, version=2)',
            "'judge' is not what it was",
        ),
    ],
)
def test_an_app_or_a_judge_that_has_changed_is_not_mixed_with_what_it_was(run, here, killed, old, new, told):
    text = (here / "app.py").read_text(encoding="utf-8")
    assert old in text
    (here / "app.py").write_text(text.replace(old, new), encoding="utf-8")
    ended = run("resume", killed.name, plugin=False)
    assert ended.code == 2
    assert told in ended.err
    assert "Start a new run" in ended.err


def test_data_sets_of_one_name_in_one_command_are_told_apart(run_dataset, run, here):
    (here / "more").mkdir()
    (here / "more" / "good.csv").write_text("input,expected_output\nz,z\n", encoding="utf-8")
    both = ("--dataset", "good.csv", "--dataset", "more/good.csv")
    ended = run_dataset(*both, "--max-calls", "0", "--no-caching", "--json")
    assert ended.code == 4
    records = ended.json["records"]
    assert [one["test_uid"] for one in records] == ["good.csv", "more/good.csv"]
    resumed = run("resume", records[0]["invocation_id"], "--json", plugin=False)
    assert resumed.code == 0, resumed.err
    assert [one["counts"]["scored"] for one in resumed.json["records"]] == [2, 1]


# --- measured anew -----------------------------------------------------------------------------------


@pytest.fixture
def ran(run_dataset, only_run):
    """A run of `bad.csv`."""
    assert run_dataset("--dataset", "bad.csv").code == 1
    return only_run()


def scored(ended):
    """The only record that a command printed."""
    (record,) = ended.json["records"]
    assert record["counts"]["sut_calls"] == {"paid": 0, "cached": 0}
    return record


def test_a_run_of_a_data_set_is_rescored_as_it_was(run, ran):
    ended = run("rescore", ran.name, "--json", plugin=False)
    assert ended.code == 1
    record = scored(ended)
    assert record["result"] == record_of(ran)["result"]
    again = run("rescore", record["run_id"], "--json", plugin=False)  # which may be done any number of times
    assert scored(again)["result"] == record["result"]


def test_answers_are_rescored_by_other_metrics_and_another_judge(program, ran):
    ended = program("rescore", ran.name, "--metric", "levenshtein", "--metric", "answer_relevancy", "--json")
    assert ended.code == 2
    assert "--judge SUT" in ended.err
    for judge, relevancy in (("judge", 1), ("strict", 0)):
        ended = program("rescore", ran.name, "--metric", "answer_relevancy", "--judge", judge, "--json")
        assert ended.code == 1 - relevancy, ended.err
        assert scored(ended)["result"]["AnswerRelevancyMetric"]["value"] == relevancy
        again = program("rescore", scored(ended)["run_id"], "--json")
        assert scored(again)["result"] == scored(ended)["result"]


def test_answers_are_rescored_by_mended_references(program, ran, here):
    with_another_reference(here)
    ended = program("rescore", ran.name, "--dataset", "bad.csv", "--json")
    assert ended.code == 0, ended.err
    assert scored(ended)["result"]["ExactMatchMetric"]["value"] == 1
    assert scored(ended)["dataset"]["digest"] != record_of(ran)["dataset"]["digest"]


def test_goldens_that_ask_something_else_cannot_measure_the_answers(run, ran):
    ended = run("rescore", ran.name, "--dataset", "good.csv", plugin=False)
    assert ended.code == 4
    assert "is not among the items of the test any more" in ended.err
    assert f"To go on: modelgauge rescore {ran.name} --dataset good.csv\n" in ended.err


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--test", "numbers", "--metric", "exact_match"), "by a test, or by the metrics of a data set"),
        (("--metric", "exact_mach"), "exact_match"),
        (("--dataset", "gone.csv"), "gone.csv"),
        (("--judge", "nobody", "--metric", "answer_relevancy"), "nobody"),
    ],
)
def test_what_cannot_measure_a_run_is_told(run, ran, args, told):
    ended = run("rescore", ran.name, *args)
    assert ended.code == 2
    assert told in ended.err
    assert len(list(ran.parent.iterdir())) == 1


@pytest.mark.parametrize(
    ("args", "told"),
    [(("--metric", "exact_match"), "--dataset FILE"), (("--dataset", "good.csv"), "--metric")],
)
def test_a_run_of_a_test_needs_goldens_and_metrics_to_be_measured_by_metrics(run, only_run, here, args, told):
    assert run("run-test", "--sut", "echo", "--test", "numbers").code == 0
    ended = run("rescore", only_run().name, *args)
    assert ended.code == 2
    assert told in ended.err
