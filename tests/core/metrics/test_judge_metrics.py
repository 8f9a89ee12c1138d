"""Each judge metric of one answer, on cases whose score is worked out by hand."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_scripts import items_in

from modelgauge.errors import MissingParameterError
from modelgauge.evals import LLMTestCase
from modelgauge.metrics import (
    AnswerRelevancyMetric,
    ContextualPrecisionMetric,
    ContextualRecallMetric,
    ContextualRelevancyMetric,
    FaithfulnessMetric,
    GEval,
    HallucinationMetric,
    Rubric,
    ToolCorrectnessMetric,
    definition,
)
from modelgauge.metrics.judge_metrics import average_precision

CASE = LLMTestCase(
    "What if these shoes don't fit?",
    "You get a full refund. It is sunny.",
    "Refunds are possible for 30 days.",
    context=["Refunds take 30 days.", "The shop is in Rome."],
    retrieval_context=["All about socks.", "Refunds within 30 days.", "Shoes can be returned."],
)


@pytest.mark.parametrize(
    ("said", "value"),
    [(["yes", "no"], 1 / 2), (["yes", "idk", "no"], 2 / 3), (["no"], 0), (["idk"], 1), ([], 1)],
)
@pytest.mark.parametrize("metric", [AnswerRelevancyMetric, FaithfulnessMetric])
def test_answer_relevancy_and_faithfulness(metric, said, value, lookup):
    listed = [f"{place} {word}" for place, word in enumerate(said)]
    judge = lookup(listed, lambda item: item.split()[1])
    assert metric(model=judge).measure(CASE).value == pytest.approx(value)
    assert CASE.actual_output in judge.asked[0]
    shown = CASE.input if metric is AnswerRelevancyMetric else CASE.retrieval_context[2]
    assert all(shown in asked for asked in judge.asked[1:])


@pytest.mark.parametrize(
    ("said", "value"),
    [
        (["yes", "yes", "yes"], 1),
        (["no", "yes", "yes"], (1 / 2 + 2 / 3) / 2),
        (["yes", "no", "yes"], (1 + 2 / 3) / 2),
        (["no", "no", "yes"], 1 / 3),
        (["no", "no", "no"], 0),
    ],
)
def test_contextual_precision(said, value, scripted, say):
    judge = scripted(say(*said))
    assert ContextualPrecisionMetric(model=judge).measure(CASE).value == pytest.approx(value)
    assert items_in(judge.asked[0]) == CASE.retrieval_context
    assert CASE.expected_output in judge.asked[0]


@pytest.mark.parametrize(("said", "value"), [(["yes", "no", "no"], 1 / 3), (["yes"], 1), ([], 0)])
@pytest.mark.parametrize("metric", [ContextualRecallMetric, ContextualRelevancyMetric])
def test_contextual_recall_and_relevancy(metric, said, value, lookup):
    listed = [f"{place} {word}" for place, word in enumerate(said)]
    judge = lookup(listed, lambda item: item.split()[1])
    assert metric(model=judge).measure(CASE).value == pytest.approx(value)
    listed_from = CASE.expected_output if metric is ContextualRecallMetric else CASE.retrieval_context[0]
    assert listed_from in judge.asked[0]


@pytest.mark.parametrize(("said", "value"), [(["yes", "no"], 1 / 2), (["yes", "yes"], 0), (["no", "no"], 1)])
def test_hallucination(said, value, scripted, say):
    metric = HallucinationMetric(threshold=0.5, model=scripted(say(*said)))
    score = metric.measure(CASE)
    assert score.value == value
    assert metric.is_successful(score) == (value <= 0.5)


def test_the_reason_of_a_hallucination_tells_what_is_contradicted(scripted, say):
    score = HallucinationMetric(model=scripted(say("yes", "no"))).measure(CASE)
    assert score.reason == "Of 2: 1 yes, 1 no.\n2: it is no"


@pytest.mark.parametrize("metric", [ContextualPrecisionMetric, ContextualRelevancyMetric])
def test_nothing_retrieved_scores_0(metric, lookup):
    case = LLMTestCase("?", "!", "!", retrieval_context=[])
    assert metric(model=lookup([], None)).measure(case).value == 0


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1))
def test_average_precision_is_a_share_and_best_when_sorted(worths):
    value = average_precision(worths)
    assert 0 <= value <= average_precision(sorted(worths, reverse=True)) <= 1 + 1e-12


@pytest.mark.parametrize(
    "metric", [ContextualPrecisionMetric, ContextualRecallMetric, ContextualRelevancyMetric]
)
def test_where_nothing_was_retrieved_nobody_is_asked(metric, scripted):
    case = LLMTestCase("?", "!", expected_output="The bridge is old.", retrieval_context=[])
    score = metric(model=scripted()).measure(case)
    assert (score.value, score.breakdown) == (0, {"items": []})


def test_the_judge_is_told_of_an_empty_list(scripted):
    judge = scripted('{"statements": ["It is old."]}', '{"verdicts": [{"verdict": "idk"}]}')
    FaithfulnessMetric(model=judge).measure(LLMTestCase("?", "It is old.", retrieval_context=[]))
    assert " retrieval_context>\n[] (the list is empty)\n</" in judge.asked[1]


@pytest.mark.parametrize(
    "metric",
    [ContextualPrecisionMetric, ContextualRecallMetric, ContextualRelevancyMetric, ToolCorrectnessMetric],
)
def test_what_was_answered_is_asked_for_as_the_documents_say(metric):
    case = LLMTestCase(
        "?", expected_output="!", retrieval_context=["text"], tools_called=[], expected_tools=[]
    )
    with pytest.raises(MissingParameterError, match="needs 'actual_output'"):
        metric(model=lambda question: "nobody asks").measure(case)


def test_where_deepeval_scores_otherwise_is_said_once(caplog):
    definition.say_once.cache_clear()
    rubrics = [
        [Rubric((1, 2), "poor"), Rubric((3, 5), "good")],
        [Rubric((0, 4), "poor"), Rubric((5, 10), "good")],
    ]
    for _ in range(2):
        HallucinationMetric()
        FaithfulnessMetric()
        for rubric in rubrics:
            GEval("Kind", "Is it kind?", rubric=rubric)
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2
    assert "lower is better, as in DeepEval before 4.2" in caplog.messages[0]
    assert "A rubric of GEval from 1 to 5 keeps the scale from 0 to 10" in caplog.messages[1]


EACH = LLMTestCase("asked", "said", "expected", context=["known"], retrieval_context=["found"])


def shown(question):
    """The names of what a judge is shown, those of lists and items without their numbers."""
    key = re.search(r"with the key ([0-9a-f]{16})", question)[1]
    return {name.partition("[")[0] for name in re.findall(rf"<material {key} (\S+)>", question)}


@pytest.mark.parametrize(
    ("metric", "needed", "steps"),
    [
        (AnswerRelevancyMetric, {"input", "actual_output"}, [{"actual_output"}, {"input", "item"}]),
        (
            FaithfulnessMetric,
            {"actual_output", "retrieval_context"},
            [{"actual_output"}, {"retrieval_context", "item"}],
        ),
        (
            ContextualPrecisionMetric,
            {"input", "actual_output", "expected_output", "retrieval_context"},
            [{"input", "expected_output", "item"}],
        ),
        (
            ContextualRecallMetric,
            {"actual_output", "expected_output", "retrieval_context"},
            [{"expected_output"}, {"retrieval_context", "item"}],
        ),
        (
            ContextualRelevancyMetric,
            {"input", "actual_output", "retrieval_context"},
            [{"retrieval_context"}, {"input", "item"}],
        ),
        (HallucinationMetric, {"actual_output", "context"}, [{"actual_output", "item"}]),
    ],
)
def test_what_a_case_must_have_and_what_the_judge_is_shown_of_it(metric, needed, steps, lookup):
    judge = lookup(["It is so."], lambda item: "yes")
    metric(model=judge).measure(EACH)
    assert set(metric.required_params) == needed
    assert [shown(question) for question in judge.asked] == steps


def test_where_there_is_no_context_nothing_is_contradicted(scripted):
    assert HallucinationMetric(model=scripted()).measure(LLMTestCase("?", "!", context=[])).value == 0
