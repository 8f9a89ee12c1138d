"""Caps of what is known only after a call: tokens and dollars. Caps of calls are in `test_limits.py`."""

import asyncio

import pytest

from modelgauge import FunctionSUT, Retry, Usage
from modelgauge.engine.calls.budget import Budget
from modelgauge.errors import CallError, RunStoppedError


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


@pytest.mark.parametrize(
    ("caps", "answers", "under_way", "waits"),
    [
        ({"max_tokens": 100}, 0, 5, False),  # nobody knows what a call takes
        ({"max_tokens": 100}, 1, 0, False),
        ({"max_tokens": 100}, 4, 5, False),
        ({"max_tokens": 100}, 4, 6, True),
        ({"max_tokens": 101}, 4, 6, False),
        ({"max_cost": 10.0}, 4, 5, False),
        ({"max_cost": 10.0}, 4, 6, True),
        ({"max_cost": 10.5}, 4, 6, False),
        ({"max_tokens": 101, "max_cost": 10.0}, 4, 6, True),
        ({"max_tokens": 100}, 10, 1, False),  # it is reached: the next call learns so
        ({"max_calls": 1}, 4, 6, False),
        ({}, 4, 6, False),
    ],
)
def test_a_call_waits_while_those_under_way_may_reach_a_cap(caps, answers, under_way, waits):
    async def main():
        budget = Budget(**caps)
        for _ in range(answers):
            budget.spend(Usage(input_tokens=6, output_tokens=4, cost_usd=1.0))
        for _ in range(under_way):
            budget.begun()
        waiting = asyncio.create_task(budget.room())
        for _ in range(under_way):
            await asyncio.sleep(0)
            assert waiting.done() != waits
            if waits:
                break
            budget.ended()
        budget.ended()
        await asyncio.sleep(0)
        await asyncio.wait_for(waiting, timeout=10)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("caps", "usage", "reached"),
    [
        ({"max_calls": 2}, {}, None),
        ({"max_calls": 1}, {}, "The cap of 1 call is reached. Raise --max-calls, and"),
        ({"max_tokens": 7}, {"input_tokens": 4, "output_tokens": 2}, None),
        (
            {"max_tokens": 6},
            {"input_tokens": 4, "output_tokens": 2},
            "6 tokens is reached. Raise --max-tokens-total",
        ),
        ({"max_tokens": 4}, {"input_tokens": 4}, "4 tokens"),
        ({"max_tokens": 2}, {"output_tokens": 2}, "2 tokens"),
        ({"max_tokens": 2}, {"cost_usd": 5.0}, None),
        ({"max_cost": 0.5}, {"cost_usd": 0.49}, None),
        ({"max_cost": 0.5}, {"cost_usd": 0.5}, "$0.5 is reached. Raise --max-cost, and"),
        ({"max_cost": 0.5}, {"input_tokens": 5}, None),
    ],
)
def test_a_cap_is_reached_when_as_much_is_spent(caps, usage, reached):
    budget = Budget(**caps)
    budget.spend_call()
    budget.spend(Usage(**usage))
    assert budget.is_reached == (reached is not None)
    assert budget.is_metered == ("max_calls" not in caps)
    if reached is None:
        budget.check()
    else:
        with pytest.raises(RunStoppedError) as caught:
            budget.check()
        assert reached in str(caught.value)


@pytest.mark.parametrize(("price", "calls"), [(0.1, 10), (0.01, 25), (0.001, 50), (0.07, 10)])
def test_the_noise_of_sums_of_prices_lets_no_further_call_begin(price, calls):
    async def main():
        for answers in range(1, calls):
            budget = Budget(max_cost=round(price * calls, 9))
            for _ in range(answers):
                budget.spend(Usage(cost_usd=price))
            for _ in range(calls - answers - 1):
                await asyncio.wait_for(budget.room(), timeout=10)
                budget.begun()
            assert not budget.is_reached
            budget.begun()
            waiting = asyncio.create_task(budget.room())
            await asyncio.sleep(0)
            assert not waiting.done()
            for _ in range(calls - answers):
                budget.spend(Usage(cost_usd=price))
                budget.ended()
            await asyncio.wait_for(waiting, timeout=10)
            assert budget.is_reached

    asyncio.run(main())


# --- answers that are refused, and paid all the same --------------------------------------------------------------

PAID = Usage(input_tokens=7, output_tokens=3, cost_usd=0.01)


class Refusing(FunctionSUT):
    """Refuses what it is answered, and says what that took."""

    verdict = None

    def classify_error(self, error):
        return self.verdict


class RefusingToRead(Refusing):
    """Refuses it when it reads the kept answer."""

    def translate_response(self, request, response):
        raise CallError("It broke off.", fix="Ask again.", usage=PAID)


async def broken_off(text):
    raise CallError("It broke off.", fix="Ask again.", usage=PAID)


@pytest.mark.parametrize("caching", [True, False])
@pytest.mark.parametrize(("cls", "answer"), [(Refusing, broken_off), (RefusingToRead, lambda text: "yes")])
def test_an_answer_that_is_refused_counts_once(cls, answer, caching, make_test, run):
    record = run(make_test(4), cls("sut", answer, version=1), caching=caching)
    assert (record.counts.sut_errors, record.counts.sut_calls.paid) == (4, 4)
    assert (record.spent.attempts, record.spent.tokens) == (4, 40)
    assert record.spent.cost_usd == pytest.approx(0.04)
    assert record.notes == ()


@pytest.mark.parametrize("cap", [{"max_cost": 0.05}, {"max_tokens_total": 50}])
@pytest.mark.parametrize(("cls", "answer"), [(Refusing, broken_off), (RefusingToRead, lambda text: "yes")])
def test_caps_see_answers_that_are_refused(cls, answer, cap, make_test, run):
    record = run(make_test(50), cls("sut", answer, version=1), concurrency=1, **cap)
    assert record.spent.attempts == record.counts.sut_errors == 5
    assert "is reached" in record.failure.message


def test_each_attempt_that_is_answered_and_refused_is_paid(make_test, run, slept):
    left = [0, 0]

    async def answer(text):
        if left:
            left.pop()
            await broken_off(text)
        return "yes"

    sut = Refusing("sut", answer, version=1)
    sut.verdict = Retry()
    record = run(make_test(1), sut)
    assert (record.counts.scored, record.counts.sut_calls.paid, record.spent.tokens) == (1, 3, 20)


def test_what_translate_response_refuses_is_kept_and_never_paid_again(make_test, run):
    sut = RefusingToRead("sut", lambda text: "yes", version=1)
    first, second = run(make_test(3), sut), run(make_test(3), sut)
    assert (first.counts.sut_calls.paid, second.counts.sut_calls.paid) == (3, 0)
    assert (second.spent.attempts, second.spent.tokens) == (0, 0)
    assert "the same command reads it there and pays nothing" in second.test_item_exceptions[0].message


def test_an_answer_that_nobody_can_keep_is_paid(make_test, run):
    record = run(make_test(2), FunctionSUT("sut", lambda text: float("nan"), version=1), max_cost=1)
    assert (record.counts.sut_errors, record.counts.sut_calls.paid, record.spent.attempts) == (2, 2, 2)
    assert "--max-cost does not hold" in record.notes[0]


def test_an_attribute_of_that_name_on_another_error_counts_nothing(make_test, run):
    async def answer(text):
        error = ValueError("x")
        error.usage = {"input_tokens": 5}
        raise error

    record = run(make_test(2), FunctionSUT("sut", answer, version=1))
    assert (record.counts.sut_calls.paid, record.spent.tokens) == (0, 0)
