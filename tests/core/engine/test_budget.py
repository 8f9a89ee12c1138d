"""Caps of what is known only after a call: tokens and dollars. Caps of calls are in `test_limits.py`."""

import asyncio

import pytest

from modelgauge import FunctionSUT, Usage
from modelgauge.engine.budget import Budget


class Priced(FunctionSUT):
    """Each answer takes 10 tokens and a cent."""

    def translate_response(self, request, response):
        usage = Usage(input_tokens=7, output_tokens=3, cost_usd=0.01)
        return super().translate_response(request, response).replaced(usage=usage)


@pytest.mark.parametrize("caching", [True, False])
@pytest.mark.parametrize("cap", [{"max_cost": 0.25}, {"max_tokens_total": 250}])
def test_calls_under_way_count_against_a_cap_of_what_is_known_only_after_them(caching, cap, make_test, run):
    answering = []

    async def answer(text):
        answering.append(text)
        for _ in range(20):  # long enough for many to be under way
            await asyncio.sleep(0)
        return "yes"

    record = run(make_test(200), Priced("sut", answer, version=1), caching=caching, **cap)
    assert record.failure.error_type == "RunStoppedError"
    assert len(answering) == record.counts.scored == 25
    assert record.spent.tokens == 250
    assert record.spent.cost_usd == pytest.approx(0.25)


def test_a_cap_that_is_not_reached_stops_nothing(make_test, run):
    record = run(make_test(60), Priced("sut", lambda text: "yes", version=1), max_cost=0.601)
    assert (record.failure, record.counts.scored) == (None, 60)


def test_a_cap_that_answers_which_cannot_be_read_do_not_reach_is_told_of(make_test, run):
    class Unread(FunctionSUT):
        def translate_response(self, request, response):
            raise ValueError(response)

    record = run(make_test(5), Unread("sut", lambda text: "yes", version=1), max_cost=1, max_tokens_total=9)
    assert [note.partition(" ")[0] for note in record.notes] == ["--max-cost", "--max-tokens-total"]


def test_calls_that_fail_make_room_for_others(make_test, run):
    async def answer(text):
        await asyncio.sleep(0)
        if text.endswith(("3", "7")):
            raise ValueError(text)
        return "yes"

    record = run(make_test(50), Priced("sut", answer, version=1), max_cost=0.405)
    assert (record.failure, record.counts.scored, record.counts.sut_errors) == (None, 40, 10)


def test_nobody_waits_for_room_when_the_run_is_given_up():
    async def main():
        budget = Budget(max_cost=1.0)
        budget.begun()
        budget.spend(Usage(cost_usd=0.6))
        waiting = asyncio.create_task(budget.room())
        await asyncio.sleep(0)
        assert not waiting.done()
        budget.give_up()
        await waiting

    asyncio.run(main())
