"""Judges behind the protocol, on a server in a process of its own: structured output and log-probabilities.

What the judge replies is written into the test case: the server obeys the directives that it finds.
"""

import json

import jsonschema
import pytest
from chat_server import ChatServer, Plan

from modelgauge.errors import CallError
from modelgauge.evals import LLMTestCase, evaluate
from modelgauge.metrics import AnswerRelevancyMetric, GEval, HallucinationMetric, Rubric, judging_by_default


@pytest.fixture(scope="module")
def process():
    with ChatServer() as running:
        yield running


@pytest.fixture
def server(process):
    process.set_plan(Plan())
    process.reset()
    return process


@pytest.fixture
def judge(server):
    return f"openai/judge?base_url={server.base_url}"


def says(reply):
    return f"[[answer {reply if isinstance(reply, str) else json.dumps(reply)}]]"


def verdicts(*words):
    return {
        "verdicts": [{"item": place, "verdict": word, "reason": word} for place, word in enumerate(words, 1)]
    }


def bodies(server):
    return [one["body"] for one in server.stats().recent]


def schema_of(body):
    """The schema that a request asks for, which is a sound one."""
    asked = body["response_format"]["json_schema"]
    assert (body["response_format"]["type"], asked["strict"]) == ("json_schema", True)
    jsonschema.Draft202012Validator.check_schema(asked["schema"])
    return asked["schema"]


# --- structured output --------------------------------------------------------------------------------------

STATEMENTS = {"statements": ["You get a refund.", "It is sunny."]}
RELEVANCY = LLMTestCase(input=says(verdicts("yes", "no")), actual_output=says(STATEMENTS))


def test_each_question_comes_with_the_schema_of_its_answer(server, judge):
    score = AnswerRelevancyMetric(model=judge).measure(RELEVANCY)
    assert score.value == 1 / 2
    listing, judging = map(schema_of, bodies(server))
    jsonschema.validate(STATEMENTS, listing)
    jsonschema.validate(verdicts("yes", "idk", "no"), judging)
    for wrong in (verdicts("maybe"), {"verdict": "yes"}, {"verdicts": [{"item": 1, "verdict": "yes"}]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, judging)


def test_without_a_reason_the_schema_has_none(server, judge):
    AnswerRelevancyMetric(model=judge, include_reason=False).measure(RELEVANCY)
    item = schema_of(bodies(server)[1])["properties"]["verdicts"]["items"]
    assert item["required"] == ["item", "verdict"]


def test_a_server_that_refuses_it_is_told_so_in_its_name(server, judge):
    server.set_plan(Plan(refuses=("response_format",)))
    with pytest.raises(CallError, match=r"\?structured_output=false"):
        AnswerRelevancyMetric(model=judge).measure(RELEVANCY)
    server.reset()
    assert AnswerRelevancyMetric(model=f"{judge}&structured_output=false").measure(RELEVANCY).value == 1 / 2
    assert all("response_format" not in body for body in bodies(server))


def test_a_server_that_ignores_it_is_read_like_any_other(server, judge):
    """The prose is more than what the schema allows; the wish is no part of what is judged, which may not be quoted."""
    wordy = 'Let me see. {"score": 8, "reason": "polite"} I hope this helps.'
    metric = GEval("Polite", evaluation_steps=[says(wordy)], model=judge)
    assert metric.measure(LLMTestCase("?", "Good morning.")).value == 0.8


@pytest.mark.parametrize("bad", ["No, off-topic", " ", "[[refusal I cannot judge that.]]"])
def test_a_reply_that_cannot_be_used_is_repaired_once_with_the_same_schema(server, judge, bad):
    case = LLMTestCase("?", bad if bad.startswith("[[") else says(bad), context=["The sky is blue."])
    result = evaluate(case, [HallucinationMetric(model=judge)], print_results=False, ignore_errors=True)
    (unscored,) = result.test_results
    assert unscored.metrics_data[0].score is None
    assert "cannot be used" in unscored.metrics_data[0].error
    first, second = bodies(server)
    assert schema_of(first) == schema_of(second)
    assert second["messages"][0]["content"].startswith(first["messages"][0]["content"])


# --- log-probabilities --------------------------------------------------------------------------------------

ODDS = {"8": 0.6, "7": 0.2, "10": 0.1, "x": 0.05, "11": 0.05}
WEIGHTED = (0.6 * 8 + 0.2 * 7 + 0.1 * 10) / (0.6 + 0.2 + 0.1) / 10
GRADED = LLMTestCase("Who?", f"{says({'score': 8, 'reason': 'so'})} [[odds {json.dumps(ODDS)}]]")


def g_eval(**settings):
    return GEval("Clarity", evaluation_steps=["Is it clear?"], **settings)


def test_a_grade_of_a_judge_by_name_is_weighted(server, judge):
    score = g_eval(model=judge).measure(GRADED)
    assert score.value == pytest.approx(WEIGHTED)
    (body,) = bodies(server)
    assert (body["logprobs"], body["top_logprobs"]) == (True, 20)
    jsonschema.validate({"score": 10, "reason": "so"}, schema_of(body))


def test_a_grade_of_the_default_judge_too(server, judge):
    with judging_by_default(judge):
        result = evaluate(GRADED, [g_eval()], print_results=False)
    assert result.test_results[0].metrics_data[0].score == pytest.approx(WEIGHTED)


def test_of_several_judges_each_is_asked_for_what_it_has(server, judge):
    """One has log-probabilities, one is said to have none: their mean."""
    score = g_eval(model=[judge, f"{judge}&logprobs=false"]).measure(GRADED)
    assert score.value == pytest.approx((WEIGHTED + 0.8) / 2)
    assert sorted(body.get("logprobs", False) for body in bodies(server)) == [False, True]


def test_a_rubric_leaves_the_chances_of_other_scores_out(server, judge):
    rubric = [
        Rubric(score_range=(0, 7), expected_outcome="bad"),
        Rubric(score_range=(8, 9), expected_outcome="good"),
    ]
    score = g_eval(model=judge, rubric=rubric).measure(GRADED)
    assert score.value == pytest.approx((0.6 * 8 + 0.2 * 7) / 0.8 / 10)
    assert schema_of(bodies(server)[0])["properties"]["score"]["enum"] == [*range(10)]


def test_a_strict_grade_is_the_score_itself(server, judge):
    perfect = LLMTestCase(
        "?", f"{says({'score': 10, 'reason': ''})} [[odds {json.dumps({'10': 0.9, '9': 0.1})}]]"
    )
    assert g_eval(model=judge).measure(perfect).value == pytest.approx(0.99)
    assert g_eval(model=judge, strict_mode=True).measure(perfect).value == 1
    assert "logprobs" not in bodies(server)[-1]


def test_a_server_that_refuses_log_probabilities_is_told_so_in_its_name(server, judge):
    server.set_plan(Plan(refuses=("logprobs",)))
    with pytest.raises(CallError, match=r"\?logprobs=false"):
        g_eval(model=judge).measure(GRADED)
    assert g_eval(model=f"{judge}&logprobs=false").measure(GRADED).value == 0.8


def test_steps_are_written_once_and_all_is_cached(server, judge):
    """The criteria say what the steps are, and each case what its score is."""
    criteria = f"Is it clear? {says({'steps': ['Look.']})}"
    cases = [LLMTestCase("?", says({"score": score, "reason": ""})) for score in (3, 5, 10)]
    for _ in range(2):
        result = evaluate(cases, [GEval("Clarity", criteria=criteria, model=judge)], print_results=False)
        scores = [one.metrics_data[0].score for one in result.test_results]
        assert scores == pytest.approx([0.3, 0.5, 1.0])
        assert server.stats().calls == 1 + len(cases)
