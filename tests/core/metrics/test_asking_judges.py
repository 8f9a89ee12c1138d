"""Metrics of authors that ask their judge in a way that cannot work are told how."""

import asyncio

import pytest

from modelgauge.errors import CallError, DefinitionError
from modelgauge.evals import LLMTestCase, evaluate
from modelgauge.metrics import Metric

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
