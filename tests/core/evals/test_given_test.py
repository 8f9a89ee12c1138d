"""What metrics see of answers that are given: the case as it is, in `evaluate`, `assert_test` and `measure`."""

import warnings

import pytest

from modelgauge import SUTCompletion
from modelgauge.errors import InvalidDataError
from modelgauge.evals import (
    Golden,
    LLMTestCase,
    ToolCall,
    assert_test,
    evaluate,
    observe,
    update_current_trace,
)
from modelgauge.metrics import Metric, ToolCorrectnessMetric

pytestmark = pytest.mark.usefixtures("here")

UNANSWERED = LLMTestCase("q", expected_output="yes", retrieval_context=["doc"])


class Seeing(Metric):
    """1 where there is an answer; keeps the cases that it saw."""

    def __init__(self, uid=None, **settings):
        super().__init__(uid, **settings)
        self._seen = []

    @property
    def seen(self):
        return self._seen

    def score(self, test_case):
        self._seen.append(test_case)
        return float(test_case.actual_output is not None)


@pytest.mark.parametrize("output", [None, "", "text", "<think>kept</think>as it is"])
def test_a_metric_sees_a_case_as_it_was_given(output):
    case = UNANSWERED.replaced(actual_output=output)
    metric = Seeing()
    result = evaluate(case, metric, print_results=False)
    if output is None:
        with pytest.raises(AssertionError, match=r"score 0\.0 < threshold 0\.5"):
            assert_test(case, [metric])
    else:
        assert_test(case, [metric])
    score = metric.measure(case)
    assert metric.seen == [case] * 3
    assert (result.success, score.value) == (output is not None, float(output is not None))


class Careless(Metric):
    """Edits the case that it judges; 1 where nobody did so before."""

    def score(self, test_case):
        test_case.retrieval_context.append("mine")
        test_case.metadata["pages"].append(2)
        return float(
            test_case.retrieval_context == ["doc", "mine"] and test_case.metadata == {"pages": [1, 2]}
        )


def test_what_a_metric_edits_is_neither_the_next_ones_case_nor_the_callers():
    case = LLMTestCase("q", "a", retrieval_context=["doc"], metadata={"pages": [1]})
    result = evaluate(case, [Careless("one"), Careless("two")], print_results=False)
    assert result.success
    assert Careless().measure(case) == Careless().measure(case)
    assert (case.retrieval_context, case.metadata) == (["doc"], {"pages": [1]})


def test_nor_is_what_a_test_case_of_ones_own_class_holds():
    class Noted(LLMTestCase):
        notes: list[str]

    class Notes(Metric):
        def score(self, test_case):
            test_case.notes.append("mine")
            return float(test_case.notes == ["mine"])

    case = Noted("q", "a", notes=[])
    assert evaluate(case, [Notes("one"), Notes("two")], print_results=False).success
    assert case.notes == []


@pytest.mark.parametrize("judge", [evaluate, assert_test, lambda case, metrics: metrics[0].measure(case)])
def test_a_case_that_was_edited_into_none_is_refused_before_it_is_judged(judge):
    case, metric = LLMTestCase("q", "a", retrieval_context=["doc"], name="mine"), Seeing()
    list.append(case.retrieval_context, 5)  # past the read-only list
    with pytest.raises(
        InvalidDataError, match=r"The test case 'mine' was edited in place.*retrieval_context\.1"
    ):
        judge(case, [metric])
    assert metric.seen == []


def test_an_app_that_returns_none_has_no_answer_whatever_the_golden_holds():
    metric = Seeing()

    @observe(metrics=[metric])
    def app(question):
        return None

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        goldens = [Golden("q"), Golden("q", actual_output="of an earlier run")]
    for golden in goldens:
        with pytest.raises(AssertionError, match="Seeing failed"):
            assert_test(golden=golden, observed_callback=app)
    result = evaluate(goldens=goldens, observed_callback=app, print_results=False)
    assert [one.success for one in result] == [False, False]
    assert {one.actual_output for one in metric.seen} == {None}


def test_a_component_without_output_has_none():
    inner, outer = Seeing("inner"), Seeing("outer")

    @observe(metrics=[inner])
    def look_up(question):
        return None

    @observe(metrics=[outer])
    def app(question):
        look_up(question)
        return "yes"

    with pytest.raises(
        AssertionError, match=r"^Metric inner failed in 'look_up': score 0\.0 < threshold 0\.5$"
    ):
        assert_test(golden=Golden("q"), observed_callback=app)
    assert [one.actual_output for one in (*inner.seen, *outer.seen)] == [None, "yes"]


@pytest.mark.parametrize("returned", ["<think>hm</think>\nyes", SUTCompletion("<think>hm</think>\nyes")])
def test_what_a_model_thought_is_no_part_of_an_answer_and_stands_in_the_record(returned):
    metric = Seeing()

    @observe(metrics=[metric])
    def app(question):
        return returned

    record = evaluate(goldens=[Golden("q")], observed_callback=app, print_results=False).record
    said = record.test_item_records[0].interactions[0].response.completions[0].completion
    assert (said.text, said.reasoning, said.raw_text) == ("yes", "hm", "<think>hm</think>\nyes")
    assert [one.actual_output for one in metric.seen] == ["yes"]


def test_what_an_app_says_of_its_tools_goes_before_what_it_returns():
    metric = Seeing()

    @observe(metrics=[metric])
    def app(question):
        update_current_trace(tools_called=[ToolCall(name="told")])
        return SUTCompletion("yes", tool_calls=[ToolCall(name="returned")])

    assert_test(golden=Golden("q"), observed_callback=app)
    assert [one.tools_called for one in metric.seen] == [[ToolCall(name="told")]]


def test_what_a_golden_holds_of_an_earlier_answer_is_not_taken_for_what_the_app_does():
    metric = Seeing()

    @observe(metrics=[metric])
    def app(question):
        return "yes"

    with pytest.warns(UserWarning, match="A golden with"):
        golden = Golden(
            "q",
            actual_output="no",
            retrieval_context=["given"],
            tools_called=[ToolCall(name="look")],
            expected_tools=[ToolCall(name="look")],
            token_cost=0.5,
            completion_time=2,
        )
    assert_test(golden=golden, observed_callback=app)
    seen = LLMTestCase("q", "yes", retrieval_context=["given"], expected_tools=[ToolCall(name="look")])
    assert metric.seen == [seen]
    result = evaluate(
        goldens=[golden], observed_callback=app, metrics=[ToolCorrectnessMetric()], ignore_errors=True
    )
    tools = next(
        metric for metric in result.test_results[0].metrics_data if metric.name == "ToolCorrectnessMetric"
    )
    assert tools.score is None
    assert "needs 'tools_called'" in tools.error
