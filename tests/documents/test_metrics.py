"""deepeval.com/docs: the page of each metric, metrics-introduction, metrics-llm-evals; its guide to RAG evaluation.

The judge calls every text with the word "wrong" bad, so that each score is worked out here.
"""

import pytest

SNIPPET = """
from deepeval import evaluate
from deepeval.metrics import {name}
from deepeval.test_case import LLMTestCase

# What your app answered and found.
actual_output = "The bridge is right. It is long. The date is wrong."
expected_output = "The bridge is old. The year is wrong."
context = ["The bridge is long.", "The wrong bridge.", "It is old.", "Boats pass."]
retrieval_context = ["A wrong guide. A right map.", "The bridge is old."]

metric = {name}(
    threshold=0.7,
    model="gpt-4.1",
    include_reason=True
)
test_case = LLMTestCase(
    input="How old is the bridge?",
    actual_output=actual_output,
    expected_output=expected_output,
    context=context,
    retrieval_context=retrieval_context
)

result = evaluate(test_cases=[test_case], metrics=[metric])
"""


@pytest.mark.parametrize(
    ("name", "score", "success"),
    [
        ("AnswerRelevancyMetric", 2 / 3, False),  # three statements of the output, one of them wrong
        ("FaithfulnessMetric", 2 / 3, False),
        ("ContextualPrecisionMetric", 1 / 2, False),  # the second of two texts is the only good one
        ("ContextualRecallMetric", 1 / 2, False),  # two statements of the expected output
        ("ContextualRelevancyMetric", 2 / 3, False),  # three statements of the retrieved texts
        ("HallucinationMetric", 1 / 4, True),  # one of four texts is contradicted; lower is better
    ],
)
def test_a_judge_metric_of_a_test_case(reader, name, score, success):
    names = reader.run(SNIPPET.format(name=name))
    (data,) = names["result"].test_results[0].metrics_data
    assert data.name == name
    assert data.score == pytest.approx(score)
    assert data.success is success
    assert "By the rule." in data.reason
    assert names["metric"].measure(names["test_case"]).value == data.score


def test_a_metric_without_settings_asks_the_default_judge(reader):
    names = reader.run("""
from deepeval import evaluate
from deepeval.metrics import AnswerRelevancyMetric
from deepeval.test_case import LLMTestCase

result = evaluate(
    metrics=[AnswerRelevancyMetric()],
    test_cases=[LLMTestCase(input="What is it?", actual_output="A bridge.")]
)
""")
    assert names["result"].success
    assert names["result"].record.counts.judge_calls.paid == 2


@pytest.mark.parametrize("params", ["LLMTestCaseParams", "SingleTurnParams"])
def test_g_eval_by_a_criterion(reader, params):
    names = reader.run(f"""
from deepeval.test_case import LLMTestCase, {params}
from deepeval.metrics import GEval

correctness_metric = GEval(
    name="Correctness",
    criteria="Find out whether the 'actual output' says what the 'expected output' says.",
    evaluation_params=[{params}.ACTUAL_OUTPUT, {params}.EXPECTED_OUTPUT],
    threshold=0.5
)
test_case = LLMTestCase(input="How old is it?", actual_output="A wrong answer.", expected_output="Old.")
score = correctness_metric.measure(test_case)
""")
    assert names["score"].value == 0.7  # ten less three for one text
    assert names["score"].breakdown["steps"] == ["Read it.", "Look for the word."]
    assert names["correctness_metric"].is_successful(names["score"])


def test_g_eval_by_steps(reader):
    names = reader.run("""
from deepeval import evaluate
from deepeval.metrics import GEval
from deepeval.test_case import LLMTestCase, SingleTurnParams

correctness_metric = GEval(
    name="Correctness",
    criteria="Find out whether the actual output is correct.",
    evaluation_steps=[
        "Compare the facts of both outputs",
        "Take off for what is missing"
    ],
    evaluation_params=[
        SingleTurnParams.INPUT, SingleTurnParams.ACTUAL_OUTPUT, SingleTurnParams.EXPECTED_OUTPUT
    ],
)
strict = GEval(
    name="Correctness",
    evaluation_steps=["Compare the facts of both outputs"],
    evaluation_params=[SingleTurnParams.ACTUAL_OUTPUT],
    model="o1",
    strict_mode=True
)
test_case = LLMTestCase(input="wrong?", actual_output="wrong!", expected_output="right")
result = evaluate(test_cases=[test_case], metrics=[correctness_metric, strict])
""")
    scores = [data.score for data in names["result"].test_results[0].metrics_data]
    assert scores == [0.4, 0]  # ten less three for each of two texts; in strict mode, nothing but ten counts
    assert not names["result"].success


def test_g_eval_by_a_rubric(reader):
    names = reader.run("""
from deepeval.metrics import GEval
from deepeval.metrics.g_eval import Rubric
from deepeval.test_case import LLMTestCase, SingleTurnParams

correctness_metric = GEval(
    name="Correctness",
    criteria="Find out whether the actual output is correct.",
    evaluation_params=[SingleTurnParams.ACTUAL_OUTPUT, SingleTurnParams.EXPECTED_OUTPUT],
    rubric=[
        Rubric(score_range=(0,2), expected_outcome="Not correct."),
        Rubric(score_range=(3,6), expected_outcome="Correct for the most part."),
        Rubric(score_range=(7,9), expected_outcome="Correct, but something small is missing."),
        Rubric(score_range=(10,10), expected_outcome="Correct."),
    ]
)
score = correctness_metric.measure(
    LLMTestCase(input="How old is it?", actual_output="Wrong, as it is wrong.", expected_output="Old.")
)
""")
    assert names["score"].value == 0.7  # ten less three for one text


def test_json_correctness(reader):
    names = reader.run("""
from typing import List

from deepeval import evaluate
from deepeval.metrics import JsonCorrectnessMetric
from deepeval.test_case import LLMTestCase
from pydantic import BaseModel, RootModel

class ExampleSchema(BaseModel):
    name: str

class ExampleSchemaList(RootModel[List[ExampleSchema]]):
    pass

metric = JsonCorrectnessMetric(
    expected_schema=ExampleSchema,
    model="gpt-4",
    include_reason=True
)
several = JsonCorrectnessMetric(expected_schema=ExampleSchemaList)
test_case = LLMTestCase(input="JSON with a 'name', please", actual_output='{"name": null}')
result = evaluate(test_cases=[test_case], metrics=[metric])
""")
    (data,) = names["result"].test_results[0].metrics_data
    assert (data.score, data.success) == (0, False)
    assert "name" in data.reason
    case = names["LLMTestCase"](input="two", actual_output='[{"name": "a"}, {"name": "b"}]')
    assert names["several"].measure(case).value == 1
    assert names["metric"].measure(case).value == 0


def test_exact_match_and_pattern_match(reader):
    names = reader.run(r"""
from deepeval import evaluate
from deepeval.metrics import ExactMatchMetric, PatternMatchMetric
from deepeval.test_case import LLMTestCase

exact = ExactMatchMetric(
    threshold=1.0,
    verbose_mode=True,
)
pattern = PatternMatchMetric(
    pattern=r"^[a-z]+@[a-z]+\.org$",
    ignore_case=False,
    threshold=1.0,
    verbose_mode=True
)
test_case = LLMTestCase(
    input="An address, please.",
    actual_output="somebody@example.org",
    expected_output="Somebody@example.org"
)
result = evaluate(test_cases=[test_case], metrics=[exact, pattern])
""")
    assert [data.score for data in names["result"].test_results[0].metrics_data] == [0, 1]
    upper = names["LLMTestCase"](input="q", actual_output="SOMEBODY@example.org")
    assert names["pattern"].measure(upper).value == 0
    loose = names["PatternMatchMetric"](pattern=r"[a-z]+@example\.org", ignore_case=True)
    assert loose.measure(upper).value == 1


def test_tool_correctness(reader):
    names = reader.run("""
from deepeval import evaluate
from deepeval.metrics import ToolCorrectnessMetric
from deepeval.test_case import LLMTestCase, ToolCall, ToolCallParams

test_case = LLMTestCase(
    input="Does it rain?",
    actual_output="Yes.",
    tools_called=[ToolCall(name="Forecast", input={"city": "Rome"}), ToolCall(name="ToolQuery")],
    expected_tools=[ToolCall(name="Forecast", input={"city": "Oslo"})],
)
metric = ToolCorrectnessMetric()
careful = ToolCorrectnessMetric(
    evaluation_params=[ToolCallParams.INPUT_PARAMETERS], should_consider_ordering=True, threshold=0.7
)
exact = ToolCorrectnessMetric(should_exact_match=True)
result = evaluate(test_cases=[test_case], metrics=[metric, careful, exact])
""")
    assert [data.score for data in names["result"].test_results[0].metrics_data] == [1, 0, 0]


@pytest.mark.parametrize(
    "name", ["TurnRelevancyMetric", "ConversationRelevancyMetric", "RoleAdherenceMetric"]
)
def test_a_metric_of_a_conversation(reader, name):
    names = reader.run(f"""
from deepeval import evaluate
from deepeval.metrics import {name}
from deepeval.test_case import ConversationalTestCase, Turn

convo_test_case = ConversationalTestCase(
    chatbot_role="A guide",
    turns=[
        Turn(role="user", content="Hello"), Turn(role="assistant", content="Hello! Right this way."),
        Turn(role="user", content="And now?"), Turn(role="assistant", content="The wrong way.")
    ]
)
metric = {name}(threshold=0.5)
result = evaluate(test_cases=[convo_test_case], metrics=[metric])
strict = {name}(threshold=0.5, window_size=1, strict_mode=True, model="gpt-4o").measure(convo_test_case)
""")
    (data,) = names["result"].test_results[0].metrics_data
    assert (data.score, data.success) == (0.5, True)  # one of two turns
    assert names["strict"].value == 0


def test_the_metrics_of_a_rag_app_beside_each_other(reader):
    names = reader.run("""
from deepeval import evaluate
from deepeval.metrics import (
    AnswerRelevancyMetric,
    ContextualPrecisionMetric,
    ContextualRecallMetric,
    ContextualRelevancyMetric,
    FaithfulnessMetric,
    GEval
)
from deepeval.test_case import LLMTestCase, SingleTurnParams

test_case = LLMTestCase(
    input="How long may I stay?",
    actual_output="You may stay 30 days, which is wrong.",
    expected_output="You may stay 60 days.",
    retrieval_context=["Visitors may stay 60 days."]
)
humour = GEval(
    name="Humour",
    criteria="Find out how funny the actual output is",
    evaluation_params=[SingleTurnParams.ACTUAL_OUTPUT],
)
result = evaluate(
    test_cases=[test_case],
    metrics=[
        ContextualPrecisionMetric(),
        ContextualRecallMetric(),
        ContextualRelevancyMetric(),
        AnswerRelevancyMetric(),
        FaithfulnessMetric(),
        humour
    ]
)
""")
    scores = {data.name: data.score for data in names["result"].test_results[0].metrics_data}
    assert list(scores.values()) == [1, 1, 1, 0, 0, 0.7]
    assert "Humour" in scores


def test_a_judge_that_is_the_users_own(reader):
    """What is a subclass of DeepEvalBaseLLM there is a function here."""
    names = reader.run("""
from deepeval.metrics import AnswerRelevancyMetric
from deepeval.test_case import LLMTestCase

def custom_llm(prompt: str) -> str:
    if '{"statements"' in prompt:
        return '{"statements": ["It is a bridge"]}'
    return '{"verdicts": [{"verdict": "idk"}]}'

metric = AnswerRelevancyMetric(model=custom_llm, async_mode=False)
score = metric.measure(LLMTestCase(input="What is it?", actual_output="It is a bridge."))
""")
    assert names["score"].value == 1
