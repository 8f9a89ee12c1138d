import asyncio
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from modelgauge import FunctionSUT, load_record
from modelgauge.cli.main import cli
from modelgauge.data.results import Threshold
from modelgauge.datasets.differences import link_to
from modelgauge.errors import (
    CallError,
    InvalidDataError,
    InvalidOptionError,
    MissingParameterError,
    RunStoppedError,
    UnknownNameError,
)
from modelgauge.evals import (
    CacheConfig,
    ConversationalGolden,
    ConversationalTestCase,
    DisplayConfig,
    ErrorConfig,
    EvaluationDataset,
    Golden,
    LLMTestCase,
    Turn,
    evaluate,
    log_hyperparameters,
    observe,
    update_current_span,
)
from modelgauge.metrics import ExactMatchMetric, LevenshteinMetric, Metric, TokenF1Metric, TurnRelevancyMetric

pytestmark = pytest.mark.usefixtures("here")

RIGHT = LLMTestCase("q", "yes", "yes", name="right")
WRONG = LLMTestCase("q", "no way", "yes", name="wrong")


def test_a_case_passes_only_if_all_its_metrics_pass(match, length):
    result = evaluate([RIGHT, WRONG], [match(threshold=0.7), length(threshold=3)])
    assert [one.success for one in result] == [True, False]
    assert not result.success
    right, wrong = result.test_results
    assert [(metric.name, metric.score, metric.success) for metric in wrong.metrics_data] == [
        ("Match", 0.5, False),
        ("Length", 2.0, True),
    ]
    assert wrong.failures == ["Metric Match failed: score 0.5 < threshold 0.7, because: they differ"]
    assert right.metrics_data[0].reason == "same"
    assert right.test_case is RIGHT


def test_the_run_is_recorded_with_its_statistics(match):
    result = evaluate([RIGHT, WRONG], [match(threshold=0.7)], hyperparameters={"model": "m"}, identifier="x")
    record = load_record(result.run_id)
    assert record == result.record
    assert (record.test_uid, record.sut_uid, record.identifier) == ("x", "given_outputs", "x")
    assert record.result["Match"].value == 0.75
    assert record.result["passed"].value == 0.5
    assert record.hyperparameters == {"model": "m"}
    assert [item.test_item.id for item in record.test_item_records] == ["right", "wrong"]
    assert record.counts.sut_calls.paid == 0


def test_logged_hyperparameters_are_recorded_below_given_ones(match):
    log_hyperparameters(model="a", temperature=0)(dict)
    record = evaluate(RIGHT, match(), hyperparameters={"model": "b"}).record
    assert record.hyperparameters == {"model": "b", "temperature": 0}


@pytest.mark.parametrize("by_name", [False, True])
def test_a_single_case_by_position_or_by_name(match, by_name):
    result = evaluate(test_cases=RIGHT, metrics=[match()]) if by_name else evaluate(RIGHT, match())
    assert len(result) == 1
    assert result.success


def test_equal_inputs_with_different_outputs_are_told_apart(match):
    result = evaluate([LLMTestCase("q", "a", "a"), LLMTestCase("q", "b", "a")], [match(threshold=0.7)])
    assert [one.success for one in result] == [True, False]


def test_the_data_set_is_recorded_and_shown_also_for_its_list_of_cases(match, capsys):
    dataset = EvaluationDataset([Golden("q", expected_output="yes")], name="mine")
    dataset.add_test_case(dataset.goldens[0].to_test_case("yes"))
    record = evaluate(dataset, [match()]).record
    first = record.dataset
    assert (first.name, first.digest) == ("mine", dataset.content_hash)
    named = f"mine, SHA-256 {dataset.content_hash[:12]}"
    assert f"Data set: {named}" in capsys.readouterr().out
    for command, told in (
        (("show", record.run_id), f"data set  {named}"),
        (("runs",), f"evaluate ({named})"),
    ):
        assert told in CliRunner(env={"COLUMNS": "120"}).invoke(cli, command).stdout
    assert evaluate(dataset.test_cases, [match()]).record.dataset == first
    assert evaluate(list(dataset.test_cases), [match()]).record.dataset is None


def test_a_list_of_runs_says_how_many_cases_passed(match):
    evaluate([RIGHT, LLMTestCase("q", "a", "b"), LLMTestCase("r", "a", "b")], [match(threshold=0.7)])
    shown = CliRunner().invoke(cli, ("runs",)).stdout
    assert "1 of 3 passed" in " ".join(shown.split())
    assert max(map(len, shown.splitlines())) <= 80


def _of_goldens(number, *outputs):
    """A data set with some goldens, and a case for each output."""
    dataset = EvaluationDataset([Golden(f"q{place}", expected_output="yes") for place in range(number)])
    for golden, output in zip(dataset.goldens, outputs, strict=False):
        dataset.add_test_case(golden.to_test_case(output))
    return dataset


def test_cases_of_some_goldens_are_not_recorded_as_the_whole_data_set(match):
    some = _of_goldens(4, "yes", "yes")
    told = "The cases are of 2 of the 4 goldens of the data set whose hash is recorded."
    assert evaluate(some, match()).record.notes == (told,)
    chosen = evaluate(_of_goldens(2, "yes", "yes"), match(), max_test_items=1, print_results=False).record
    assert any("of 1 of the 2 goldens" in note for note in chosen.notes)
    repeated = _of_goldens(1, "yes")
    repeated.add_test_case(repeated.goldens[0].to_test_case("no"))
    (note,) = evaluate(repeated, match()).record.notes
    assert note == "1 item repeats the prompts of an earlier item, with ids that end in ~2, ~3, …"


def test_cases_of_goldens_that_were_edited_since_are_told(match, capsys):
    dataset = _of_goldens(1, "old")
    dataset.goldens[0].expected_output = "new"
    notes = evaluate(dataset, match()).record.notes
    assert any("1 test case matches no golden of the data set as it is now" in note for note in notes)
    assert any("of 0 of the 1 golden " in note for note in notes)
    assert "matches no golden" in " ".join(capsys.readouterr().out.split())


def test_a_conversation_is_of_the_golden_that_it_goes_on_from():
    begun = ConversationalGolden("s", turns=[Turn("user", "hi")])
    alone = ConversationalGolden("other")
    said = [Turn("user", "hi"), Turn("assistant", "yo"), Turn("user", "bye")]
    dataset = EvaluationDataset([begun, alone])
    of_both = [begun.to_test_case(said), alone.to_test_case(said)]
    assert link_to(dataset, of_both).notes == ()
    (partly,) = link_to(dataset, of_both[:1]).notes
    assert "1 of the 2 goldens" in partly
    others = link_to(dataset, [alone.replaced(scenario="third").to_test_case(said)] * 2).notes
    assert any("2 test cases match no golden" in note for note in others)


@pytest.mark.parametrize("case", [Golden("q"), {"input": "q"}, "text", 5, [{"input": "q"}]])
def test_something_else_than_a_case_is_named(match, case):
    kind = type(case[0] if isinstance(case, list) else case).__name__
    with pytest.raises(InvalidDataError, match=f"An? {kind} is not a test case"):
        evaluate(case, match())


@pytest.mark.parametrize(
    ("cases", "metrics"), [([RIGHT], []), ([RIGHT], None), ([], "match"), (None, "match"), ("text", "match")]
)
def test_no_case_and_no_metric_is_an_error(match, cases, metrics):
    with pytest.raises(InvalidDataError):
        evaluate(cases, [match()] if metrics == "match" else metrics)


def test_goldens_alone_are_no_test_cases(match):
    with pytest.raises(InvalidDataError, match="goldens and no test cases"):
        evaluate(EvaluationDataset([Golden("q")]), [match()])


def test_a_metrics_class_is_no_metric(match):
    with pytest.raises(InvalidDataError, match="the class Match"):
        evaluate(RIGHT, [match])


def test_a_metric_may_be_named_by_its_uid():
    assert evaluate(RIGHT, "exact_match").success
    with pytest.raises(UnknownNameError):
        evaluate(RIGHT, "exact_mach")


def test_a_missing_parameter_names_metric_parameter_and_case(match):
    with pytest.raises(MissingParameterError, match=r"Match needs 'expected_output'.*'bare'"):
        evaluate([RIGHT, LLMTestCase("q", "a", name="bare")], [match()])


def test_a_metric_can_be_skipped_but_not_all(match, length):
    bare = LLMTestCase("q", "a", name="bare")
    result = evaluate([RIGHT, bare], [match(), length(threshold=2)], skip_on_missing_params=True)
    assert [len(one.metrics_data) for one in result] == [2, 1]
    assert result.success
    with pytest.raises(InvalidDataError, match=r"Every metric was skipped.*'bare'"):
        evaluate([RIGHT, bare], [match()], error_config=ErrorConfig(skip_on_missing_params=True))


def test_a_case_that_lacks_something_fails_by_itself_where_errors_are_ignored(match, length):
    bare = LLMTestCase("q", "yes", name="bare")
    result = evaluate([RIGHT, bare], [match(), length(threshold=2)], ignore_errors=True)
    right, lacking = result.test_results
    assert (right.success, lacking.success) == (True, False)
    assert lacking.error.startswith("MissingParameterError: Match needs 'expected_output'")
    assert [metric.score for metric in lacking.metrics_data] == [None, 1.0]
    assert (result.record.counts.scored, result.record.counts.annotator_errors) == (1, 1)
    assert {name: result.record.result[name].n for name in ("Match", "Length")} == {"Match": 1, "Length": 2}
    skipping = evaluate([RIGHT, bare], [match()], ignore_errors=True, skip_on_missing_params=True)
    assert skipping.test_results[1].error.endswith(
        "Give the case what its metrics need, or use metrics that need less."
    )


def test_what_could_not_be_judged_raises_at_the_end_or_is_returned_and_never_passes(match, broken):
    with pytest.raises(CallError, match=r"1 of 2 .* could not be judged.*Broken.*no way to judge\. See `"):
        evaluate([RIGHT, WRONG], [match(), OnlyRight()])
    result = evaluate([RIGHT, WRONG], [match(), broken()], ignore_errors=True)
    assert [one.success for one in result] == [False, False]
    first = result.test_results[0]
    assert [(metric.name, metric.score) for metric in first.metrics_data] == [
        ("Match", 1.0),
        ("Broken", None),
    ]
    assert "no way to judge" in first.metrics_data[1].error
    assert result.record.counts.annotator_errors == 2


class OnlyRight(Metric):
    """Judges the right answer, and nothing else."""

    def __init__(self, uid="Broken", **settings):
        super().__init__(uid, **settings)

    def score(self, test_case):
        if test_case.name == "right":
            return 1.0
        raise ZeroDivisionError("no way to judge")


def test_metrics_of_one_name_do_not_hide_each_other(match):
    result = evaluate(WRONG, [match(threshold=0.4), match(threshold=0.6)])
    assert [metric.success for metric in result.test_results[0].metrics_data] == [True, False]
    names = ["Match(threshold=0.4)", "Match(threshold=0.6)"]
    assert [metric.name for metric in result.test_results[0].metrics_data] == names
    assert {*names, *(f"{name}.passed" for name in names)} < set(result.record.result)


def test_conversations(length):
    class Turns(Metric):
        test_case_type = ConversationalTestCase

        def score(self, test_case):
            return float(len(test_case.turns) == 2)

    case = ConversationalTestCase([Turn("user", "hi"), Turn("assistant", "hello")])
    assert evaluate(case, Turns()).success
    with pytest.raises(MissingParameterError):
        evaluate(case, length())


def test_inside_a_running_loop(match):
    async def main():
        return evaluate(RIGHT, match()).success

    assert asyncio.run(main())


def test_a_long_error_is_shown_with_its_fix(capsys):
    class Talkative(Metric):
        def score(self, test_case):
            raise ValueError(f"{'It said no. ' * 100} Set it: export ACME_URL=https://acme.example")

    evaluate(RIGHT, Talkative(), ignore_errors=True)
    words = re.sub(r"\s+", "", capsys.readouterr().out)
    assert "ValueError:Itsaidno." in words
    assert "Setit:exportACME_URL=https://acme.example" in words


def test_display_says_what_came_out_and_can_be_switched_off(match, capsys):
    result = evaluate([RIGHT, WRONG], match(threshold=0.7), display="failing")
    shown = capsys.readouterr().out
    assert "wrong" in shown
    assert "right" not in shown
    assert "1 of 2 test cases passed." in shown
    assert result.run_id in shown
    evaluate(RIGHT, match(), display_config=DisplayConfig(print_results=False))
    assert capsys.readouterr().out == ""
    with pytest.raises(InvalidOptionError):
        evaluate(RIGHT, match(), display="everything")


def test_answers_of_judges_are_kept_unless_the_cache_is_off():
    asked = []

    class Echo(Metric):
        needs_judge = True

        async def score(self, test_case):
            return float((await self.ask("judge", "good?")).completions[0].text)

    def judge(text):
        asked.append(text)
        return "1"

    metric = Echo(model=FunctionSUT("judge", judge, version=1))
    for _ in range(2):
        assert evaluate(RIGHT, metric).success
    assert asked == ["good?"]
    evaluate(RIGHT, metric, cache_config=CacheConfig(use_cache=False))
    assert asked == ["good?", "good?"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"ignore_error": True}, "Did you mean 'ignore_errors'"),
        ({"use_cahe": False}, "Did you mean 'use_cache'"),
        ({"data_dri": "x"}, "Did you mean 'data_dir'"),
        ({"error_config": {"ignore_errors": True}}, "error_config is {.*ErrorConfig"),
        ({"max_concurrent": 0}, "max_concurrent is 0"),
        ({"max_concurrent": 1.5}, "max_concurrent is 1.5"),
        ({"throttle_value": -1}, "throttle_value is -1"),
        ({"throttle_value": float("nan")}, "throttle_value is nan"),
    ],
)
def test_an_option_that_does_not_exist_or_has_no_such_value_is_refused(match, given, told):
    with pytest.raises(InvalidOptionError, match=told):
        evaluate(RIGHT, match(), **given)


def test_an_observed_app_on_goldens(match, length):
    @observe(type="retriever", metrics=[length(threshold=1)])
    async def retrieve(question):
        update_current_span(test_case=LLMTestCase(question, "one document" if question == "b" else "one"))

    @observe(metrics=[match(threshold=0.7)])
    async def app(question):
        await retrieve(question)
        return "yes"

    goldens = [Golden("a", expected_output="yes"), Golden("b", expected_output="yes")]
    result = evaluate(goldens=goldens, observed_callback=app)
    assert [one.success for one in result] == [True, False]
    assert result.test_results[1].failures == ["Metric Length failed in 'retrieve': score 2.0 > threshold 1"]
    assert [span.name for span in result.record.test_item_records[0].spans] == ["app", "retrieve"]
    assert result.record.result["retrieve.Length"].value == 1.5
    assert result.record.thresholds == {
        "Match": Threshold(value=0.7),
        "retrieve.Length": Threshold(value=1, higher_is_better=False),
    }
    with pytest.raises(InvalidDataError, match="either test_cases and metrics, or goldens"):
        evaluate(RIGHT, match(), observed_callback=app)


def test_an_app_that_raises_is_the_callers_to_mend(match):
    @observe(metrics=[match()])
    def app(question):
        raise LookupError(question)

    with pytest.raises(LookupError, match="a"):
        evaluate(goldens=[Golden("a", expected_output="a")], observed_callback=app)


@pytest.mark.parametrize("max_concurrent", [1, 2])
def test_an_app_that_raises_fails_its_golden_and_the_others_are_judged(match, capsys, max_concurrent):
    @observe(type="retriever")
    def look_up(text):
        if text == "b":
            raise LookupError("no index")

    @observe(metrics=[match(threshold=0.7)])
    def app(question):
        look_up(question)
        return "yes"

    goldens = [Golden(one, expected_output="yes", name=one) for one in "abc"]
    options = {"goldens": goldens, "observed_callback": app, "max_concurrent": max_concurrent}
    result = evaluate(**options, ignore_errors=True)
    assert [(one.name, one.success) for one in result] == [("a", True), ("b", False), ("c", True)]
    assert result.test_results[1].error == "LookupError: no index"
    assert isinstance(result.test_results[1].raised, LookupError)
    assert [(span.name, span.error) for span in result.test_results[1].spans] == [
        ("app", "LookupError: no index"),
        ("look_up", "LookupError: no index"),
    ]
    assert result.record.counts.sut_errors == 1
    assert result.record.test_item_exceptions[0].spans == result.test_results[1].spans
    assert result.record.result["Match"].n == 2
    assert "LookupError: no index" in capsys.readouterr().out
    with pytest.raises(LookupError, match="no index"):
        evaluate(**options)


def test_the_folder_of_the_run_is_told_in_one_line(match, here, capsys):
    result = evaluate(RIGHT, match())
    assert f"Run: {Path('run_data', 'runs', result.run_id)}" in capsys.readouterr().out.splitlines()
    far = here.parent / ("far_" * 25)
    result = evaluate(RIGHT, match(), data_dir=far)
    assert f"Run: {far / 'runs' / result.run_id}" in capsys.readouterr().out.splitlines()


def test_measurements_of_parts_are_kept_apart_from_those_of_the_whole(match, length):
    @observe(metrics=[match(threshold=0.7)], name="part")
    def part(question):
        update_current_span(expected_output="no")
        return "yes"

    @observe(metrics=[length("part.Match", threshold=3)])
    def app(question):
        return part(question)

    result = evaluate(goldens=[Golden("q")], observed_callback=app, print_results=False)
    assert result.record.test_item_records[0].measurements == {
        "part.Match": 1.0,
        "part.Match.passed": 1.0,
        "part.Match~2": 0.5,
        "part.Match~2.passed": 0.0,
        "passed": 0.0,
    }
    assert result.record.thresholds == {
        "part.Match": Threshold(value=3, higher_is_better=False),
        "part.Match~2": Threshold(value=0.7),
    }


def test_a_notebook_shows_a_result_in_one_line(match):
    result = evaluate([LLMTestCase("q", "a", "a"), LLMTestCase("q", "a", "b")], [match(threshold=0.7)])
    assert repr(result) == f"<EvaluationResult: 1 of 2 test cases passed; modelgauge show {result.run_id}>"


def test_failed_cases_are_listed_first_where_not_all_fit_and_show_lists_them(match, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "120")
    cases = [LLMTestCase(str(n), "a", "a" if n % 150 else "b", name=f"case {n}") for n in range(1, 201)]
    result = evaluate(cases, match(threshold=0.7))
    shown = capsys.readouterr().out
    rows = re.findall(r"^case \d+", shown, re.MULTILINE)
    assert (rows[:2], len(rows)) == (["case 150", "case 1"], 50)
    assert f"150 more:  {result.shown_by} --items\nfailed:    {result.shown_by} --failures\n" in shown
    assert "199 of 200 test cases passed." in shown

    def show(*options):
        ended = CliRunner().invoke(cli, ["show", result.run_id, *options])
        assert ended.exit_code == 0, ended.output
        return ended.output

    assert f"modelgauge show {result.run_id} --failures" in show()
    failures = show("--failures")
    assert re.findall(r"^\d+\. (.+)", failures, re.MULTILINE) == ["case 150"]
    assert "NOT PASSED: Match = 0.5" in failures
    assert failures.endswith("0 failed items, 1 below a threshold.\n")
    (record,) = json.loads(show("--failures", "--json"))["records"]
    assert [one["test_item"]["id"] for one in record["test_item_records"]] == ["case 150"]
    assert record["test_item_exceptions"] == []


def test_where_all_pass_no_command_for_failed_ones_is_shown(match, capsys):
    result = evaluate([LLMTestCase(str(n), "a", "a") for n in range(51)], match())
    shown = capsys.readouterr().out
    assert f"1 more:  {result.shown_by} --items\n" in shown
    assert "--failures" not in shown
    assert "--failures" not in CliRunner().invoke(cli, ["show", result.run_id]).output


def test_a_case_that_nothing_could_judge_says_why_it_failed():
    @observe(metrics=["exact_match"])
    def app(question):
        raise LookupError("no shelf")

    (one,) = evaluate(goldens=[Golden("q")], observed_callback=app, ignore_errors=True).test_results
    assert one.failures == [one.error] == ["LookupError: no shelf"]


def test_names_of_metrics_are_not_broken_at_80_columns(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    case = LLMTestCase("q", "a", "b", name="a test case of a rather long name here", context=["x"])
    evaluate([case], [ExactMatchMetric(), LevenshteinMetric(), TokenF1Metric()])
    lines = capsys.readouterr().out.splitlines()
    for name in ("ExactMatchMetric ", "LevenshteinMetric ", "TokenF1Metric "):
        assert any(name in line for line in lines)
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(("value", "verdict"), [(0.69999999, "failed"), (0.69999999999, "passed")])
def test_a_score_is_not_shown_as_its_threshold_where_it_fails(value, verdict, capsys):
    class Fixed(Metric):
        def score(self, test_case):
            return value

    evaluate([LLMTestCase("?", "!")], [Fixed(threshold=0.7)])
    (row,) = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("?")]
    shown = {"failed": "0.69999999", "passed": "0.7"}[verdict]
    assert row[1:6] == ["Fixed", shown, "≥", "0.7", verdict]
    (run,) = Path("run_data/runs").iterdir()
    failures = CliRunner().invoke(cli, ["show", run.name, "--failures"]).stdout
    assert ("NOT PASSED: Fixed = 0.69999999\n" in failures) == (verdict == "failed")


def test_one_golden_alone_may_be_given(match):
    @observe(metrics=[match()])
    def app(question):
        return "yes"

    assert len(evaluate(goldens=Golden("q", expected_output="yes"), observed_callback=app)) == 1


def test_some_cases_of_a_data_set_without_goldens_are_not_recorded_as_all_of_it(match):
    told = "The cases are of 1 of the 2 test cases of the data set whose hash is recorded."
    dataset = EvaluationDataset(test_cases=[RIGHT, WRONG])
    assert told in evaluate(dataset, match(), max_test_items=1).record.notes
    assert evaluate(dataset, match()).record.notes == ()


class Asking(Metric):
    """What the judge says."""

    async def score(self, test_case):
        return float((await self.ask("judge", test_case.actual_output)).completions[0].text)


@pytest.mark.parametrize(
    ("version", "caching", "told"),
    [
        (1, True, "What judges answered is in the cache, and not paid again."),
        (1, False, "is paid again where it could not be cached."),
        (None, True, "is paid again where it could not be cached."),
    ],
)
def test_a_run_that_stops_early_is_an_error_that_says_what_is_paid_again(version, caching, told):
    judge = FunctionSUT("judge", lambda question: "1", version=version)
    with pytest.raises(RunStoppedError, match=r"^The run \S+ stopped early: .*1 call") as stopped:
        evaluate([RIGHT, WRONG], Asking(model=judge), max_calls=1, caching=caching, concurrency=1)
    assert stopped.value.fix.endswith(told)


def test_a_metric_of_another_kind_of_cases_is_told_where_it_is_skipped():
    metric = TurnRelevancyMetric(model=lambda question: "nobody asks")
    result = evaluate(RIGHT, metric, ignore_errors=True, skip_on_missing_params=True)
    assert "Every metric was skipped for 'right'" in result.test_results[0].error
    assert "TurnRelevancyMetric judges a ConversationalTestCase" in result.test_results[0].error


def test_a_case_with_an_empty_input_has_a_title(capsys):
    cases = [LLMTestCase(input=text, actual_output="a", expected_output="a") for text in ("", " \n")]
    result = evaluate(cases, [ExactMatchMetric()])
    assert [found.name for found in result.test_results] == ["(empty input)"] * 2
    assert capsys.readouterr().out.count("(empty input)") == 2


@pytest.mark.parametrize(
    ("outputs", "metrics", "reason"),
    [
        (
            ["yes", "no", "yes no", "x"],
            [ExactMatchMetric, TokenF1Metric],
            " ExactMatchMetric is the usual reason (3).",
        ),
        (["yes", "no", "yes no", "x"], [ExactMatchMetric], ""),  # there is no other
        (["yes", "yes", "x"], [ExactMatchMetric, TokenF1Metric], ""),  # one case is no use
        (["yes", "x", "x"], [ExactMatchMetric, TokenF1Metric], ""),  # both are
    ],
)
def test_headline_names_the_metric_that_most_failed_cases_failed(outputs, metrics, reason, capsys):
    cases = [LLMTestCase(f"q {place}", output, "yes") for place, output in enumerate(outputs)]
    result = evaluate(cases, [metric(threshold=0.5) for metric in metrics])
    passed = sum(one.success for one in result)
    assert f"\n{passed} of {len(outputs)} test cases passed.{reason}\n" in capsys.readouterr().out


def test_evaluation_ends_with_a_line_for_each_metric(capsys):
    cases = [LLMTestCase(f"q {place}", output, "yes") for place, output in enumerate(["yes", "yes no"])]
    record = evaluate(cases, [ExactMatchMetric(), TokenF1Metric(threshold=0.5)]).record
    table = [line.split("   ") for line in capsys.readouterr().out.split("\n\n")[1].splitlines()]
    rows = {row[0].strip(): [cell.strip() for cell in row if cell.strip()] for row in table if row[0]}
    for name, threshold, passed in (("ExactMatchMetric", 1, "1 of 2"), ("TokenF1Metric", 0.5, "2 of 2")):
        low, high = record.result[name].interval
        assert rows[f"{name} ≥ {threshold}"][2:] == [f"{low:.2f} to {high:.2f}", "2", passed]
    assert "passed" not in rows
