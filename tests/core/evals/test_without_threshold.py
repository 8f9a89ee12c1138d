"""Metrics whose threshold is None: their scores are recorded, and pass no verdict."""

import pytest
from pytest_sessions import records, summary_of

from modelgauge import Estimate, FunctionSUT, run_test
from modelgauge.errors import CallError
from modelgauge.evals import DatasetTest, Golden, LLMTestCase, assert_test, evaluate, observe
from modelgauge.metrics import CostMetric, ExactMatchMetric, LatencyMetric, LevenshteinMetric, Metric
from modelgauge.runs.passing import have_all_passed, why_not_passed

pytestmark = pytest.mark.usefixtures("here")

RIGHT, WRONG = LLMTestCase("q", "yes", "yes"), LLMTestCase("r", "no", "yes")
FREE = LevenshteinMetric(threshold=None)


class Broken(Metric):
    threshold = None

    def score(self, test_case):
        raise ZeroDivisionError("no way")


def scores_of(result):
    return [record.measurements for record in result.record.test_item_records]


def test_a_score_without_a_threshold_is_recorded_and_nothing_is_said_of_it(capsys):
    result = evaluate([RIGHT, WRONG], [FREE])
    assert scores_of(result) == [{"LevenshteinMetric": 1.0}, {"LevenshteinMetric": 0.0}]
    assert set(result.record.result) == {"LevenshteinMetric"}
    assert result.record.thresholds == {}
    assert result.record.result["LevenshteinMetric"].bounds == (0.5, 0.5)
    assert result.success
    assert [data.success for one in result for data in one.metrics_data] == [None, None]
    assert [one.failures for one in result] == [[], []]
    assert why_not_passed(result.record) is None
    shown = capsys.readouterr().out
    assert "passed   " not in shown
    assert "failed" not in shown
    assert "≥" not in shown
    assert "2 of 2 test cases passed, 2 without a threshold." in shown


def test_whether_a_case_passes_is_for_the_other_metrics_to_say(capsys):
    result = evaluate([RIGHT, WRONG], [FREE, ExactMatchMetric()])
    assert scores_of(result)[1] == {
        "LevenshteinMetric": 0.0,
        "ExactMatchMetric": 0.0,
        "ExactMatchMetric.passed": 0.0,
        "passed": 0.0,
    }
    assert list(result.record.thresholds) == ["ExactMatchMetric"]
    assert [one.success for one in result] == [True, False]
    assert not have_all_passed(result.record)
    (failure,) = result.test_results[1].failures
    assert failure.startswith("Metric ExactMatchMetric failed")
    assert "1 of 2 test cases passed.\n" in capsys.readouterr().out


def test_any_sut_can_be_measured_without_a_threshold():
    goldens = [Golden("a", expected_output="a"), Golden("b", expected_output="x")]
    test = DatasetTest("goldens", goldens, [ExactMatchMetric(threshold=None)])
    record = run_test(test, FunctionSUT("echo", str, version=1))
    assert isinstance(record.result["ExactMatchMetric"], Estimate)
    assert (set(record.result), record.thresholds) == ({"ExactMatchMetric"}, {})


def test_assert_test_has_nothing_to_fail():
    assert_test(WRONG, [FREE])
    with pytest.raises(AssertionError, match=r"^Metric ExactMatchMetric failed: .*$"):
        assert_test(WRONG, [FREE, ExactMatchMetric()])


def test_a_part_of_an_app_may_have_none():
    @observe(metrics=[FREE])
    def part(question):
        return "no"

    @observe(metrics=[ExactMatchMetric()])
    def app(question):
        part(question)
        return question

    golden = Golden("yes", expected_output="yes")
    (item,) = evaluate(
        goldens=[golden], observed_callback=app, skip_on_missing_params=True
    ).record.iter_items()
    assert item.measurements["passed"] == 1.0


def test_what_a_metric_without_a_threshold_cannot_judge_leaves_the_verdict_of_the_others():
    result = evaluate([RIGHT, WRONG], [Broken(), ExactMatchMetric()], ignore_errors=True)
    assert [one.success for one in result] == [False, False]
    assert [failure.measurements["passed"] for failure in result.record.test_item_exceptions] == [1.0, 0.0]
    with pytest.raises(CallError, match="could not be judged"):
        evaluate([RIGHT], [Broken()])


def test_what_decides_by_more_than_the_value_needs_a_threshold_too():
    class Decides(Metric):
        def score(self, test_case):
            return 0.2

        def is_successful(self, score):
            return score > 0.5

    (free,) = evaluate([RIGHT], [Decides(threshold=None)])
    (bound,) = evaluate([RIGHT], [Decides(threshold=0)])
    assert (free.success, free.metrics_data[0].success) == (True, None)
    assert (bound.success, bound.metrics_data[0].success) == (False, False)


def test_limits_need_a_threshold_or_none():
    case = LLMTestCase("q", "a", token_cost=0.02, completion_time=3.0)
    result = evaluate([case], [LatencyMetric(threshold=None), CostMetric(threshold=None)])
    assert scores_of(result) == [{"LatencyMetric": 3.0, "CostMetric": 0.02}]


def test_the_share_that_passed_in_a_session_is_of_the_cases_with_a_threshold(session, here, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    source = (
        "from modelgauge.evals import LLMTestCase, assert_test\n"
        "from modelgauge.metrics import ExactMatchMetric, LevenshteinMetric\n"
        "def test_free(): assert_test(LLMTestCase('a', 'a', 'b'), [LevenshteinMetric(threshold=None)])\n"
        "def test_right(): assert_test(LLMTestCase('b', 'a', 'a'), [ExactMatchMetric()])\n"
        "def test_wrong(): assert_test(LLMTestCase('c', 'a', 'b'), [ExactMatchMetric()])\n"
    )
    code, output = session("--tb=no", source=source)
    assert code == 1
    assert "2 of 3 test cases passed, 1 without a threshold." in summary_of(output)
    (record,) = records(here)
    assert (record.result["passed"].n, record.result["passed"].value) == (2, 0.5)
    assert record.result["LevenshteinMetric"].n == 1
