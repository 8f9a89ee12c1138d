"""Asking judges: what they answered is kept, and metrics that ask in a way that cannot work are told how."""

import asyncio

import pytest
from judge_scripts import verdicts

from modelgauge.errors import CallError, DefinitionError
from modelgauge.evals import LLMTestCase, evaluate
from modelgauge.metrics import GEval, Judge, JudgeMetric, Metric, Procedure
from modelgauge.metrics.judge_base import take_texts
from modelgauge.stats.exact import exact_mean

CASE = LLMTestCase("q", actual_output="a")


def judge(question):
    return "yes"


class Silent(Metric):
    """Does not say that it needs a judge."""

    async def score(self, test_case):
        return len((await self.ask("judge", test_case.input)).completions[0].text)


class Looping(Metric):
    needs_judge = True

    def score(self, test_case):
        return asyncio.run(self.ask("judge", test_case.input))


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MODELGAUGE_JUDGE", raising=False)


def test_one_that_does_not_say_that_it_needs_a_judge():
    with pytest.raises(DefinitionError, match=r"needs_judge = True in the class Silent"):
        Silent().measure(CASE)
    with pytest.raises(CallError, match=r"needs_judge = True in the class Silent"):
        evaluate(CASE, Silent(), print_results=False)
    assert Silent(model=judge).measure(CASE).value == 3


def test_one_that_asks_in_an_event_loop_of_its_own():
    with pytest.raises(DefinitionError, match=r"in an event loop of its own.*without asyncio\.run"):
        Looping(model=judge).measure(CASE)
    with pytest.raises(CallError, match=r"in an event loop of its own"):
        evaluate(CASE, Looping(model=judge), print_results=False)


# --- what judges answered is kept ---------------------------------------------------------------------------


def declared(words="Is it true?", reduce=exact_mean, **changes):
    """A metric that always has the same name, whatever it declares."""

    class Declared(JudgeMetric):
        required_params = ("context",)
        procedure = Procedure(take_texts("context"), Judge(words, **changes), reduce)

    return Declared


@pytest.mark.parametrize(
    ("changes", "questions", "value"),
    [
        ({}, 0, 1 / 2),
        ({"words": "Is it really true?"}, 1, 1 / 2),
        ({"reduce": min}, 0, 0),
        ({"verdicts": {"yes": 0.5, "no": 0}}, 0, 1 / 4),
    ],
)
def test_a_changed_formula_shows_at_once_and_a_changed_word_is_asked_again(changes, questions, value, sut):
    asked = []

    def replies(question):
        asked.append(question)
        return verdicts("yes", "no")

    case = LLMTestCase("?", "!", context=["a", "b"])
    declared()(model=sut(replies)).measure(case)
    before = len(asked)
    assert declared(**changes)(model=sut(replies)).measure(case).value == value
    assert (before, len(asked) - before) == (1, questions)


@pytest.mark.parametrize("model_count", [1, 2])
def test_a_second_evaluation_asks_no_judge(model_count, sut):
    asked = []

    def replies(question):
        asked.append(question)
        return '{"steps": ["Look."]}' if '"steps"' in question else '{"score": 7, "reason": "good"}'

    counts = []
    for _ in range(2):
        models = [sut(replies, f"judge{number}") for number in range(model_count)]
        done = evaluate([CASE] * 3, GEval("good", "Is it good?", model=models), print_results=False)
        assert done.record.counts.scored == 3
        counts.append(done.record.counts)
    first, second = counts
    assert first.judge_calls.paid == len(asked) == 2 * model_count
    assert second.judge_calls.paid == second.sut_calls.paid == 0
    assert second.judge_calls.cached == first.judge_calls.paid + first.judge_calls.cached


@pytest.mark.parametrize(("version", "scored"), [(0, 1), (2, 2)])
def test_scores_that_cost_something_are_kept_under_the_version_of_their_class(version, scored, sut):
    made = []

    class Local(Metric):
        needs_judge = True
        is_cheap = False

        async def score(self, test_case):
            made.append(await self.ask("judge", test_case.input))
            return 1.0

    assert Local(model=sut(judge)).measure(CASE).value == 1
    Local.cache_version = version
    assert Local(model=sut(judge)).measure(CASE).value == 1
    assert len(made) == scored
