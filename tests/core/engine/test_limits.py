"""Limiters: fair, never above their ceiling, and adapting to a server that is modelled here."""

import asyncio
import heapq
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelgauge import CompletionAnnotator
from modelgauge.data.responses import Usage
from modelgauge.engine.calls.budget import Budget
from modelgauge.engine.calls.limits import AdaptiveLimiter, Limiter, Outcome
from modelgauge.errors import RunStoppedError


def clock():
    return 0.0


def simulate(capacity, *, start=20, ceiling=256, calls=5000, fault=None, share=0.0, seed=0):
    """A server that refuses what is above its capacity, and a share of all else; calls end in random order.

    With a `fault` that share ends so, and is not refused. Time is counted, not waited for.
    """
    chance = random.Random(seed)
    limits, refused, most = [], 0, 0

    async def main():
        nonlocal refused, most
        limiter = AdaptiveLimiter(start, ceiling, clock)
        under_way, now = 0, 0
        ends = []  # a heap: when a call ends, and what it waits for

        numbers = iter(range(calls))

        async def caller():
            nonlocal under_way, refused, most
            for number in numbers:
                await limiter.acquire()
                under_way += 1
                most = max(most, under_way)
                assert under_way <= limiter.in_use <= ceiling
                outcome = Outcome.rate_limited if under_way > capacity else Outcome.ok
                if share and outcome is Outcome.ok and chance.random() < share:
                    outcome = fault or Outcome.rate_limited
                refused += outcome is Outcome.rate_limited
                end = asyncio.get_running_loop().create_future()
                heapq.heappush(ends, (now + chance.randint(1, 20), number, end))
                await end
                under_way -= 1
                limiter.release(outcome)
                limits.append(limiter.limit)

        everything = asyncio.gather(*(caller() for _ in range(ceiling + 20)))  # so that some always wait
        while not everything.done():
            await asyncio.sleep(0)
            now = ends[0][0] if ends else now
            while ends and ends[0][0] == now:
                heapq.heappop(ends)[2].set_result(None)
        await everything
        assert limiter.in_use == 0
        return limiter

    limiter = asyncio.run(main())
    return limiter, limits, refused, most


def test_concurrency_grows_to_its_ceiling_while_it_is_used_up():
    limiter, limits, _, most = simulate(10_000, ceiling=100)
    assert limits[-1] == most == 100
    assert [change.limit for change in limiter.changes] == sorted(change.limit for change in limiter.changes)
    assert {change.why for change in limiter.changes} == {"saturated"}


def test_concurrency_settles_near_what_the_server_bears():
    limiter, limits, refused, _ = simulate(40)
    late = limits[len(limits) // 2 :]
    assert 40 / 3 <= min(late) <= max(late) <= 1.5 * 40
    assert sum(late) / len(late) > 0.6 * 40
    assert refused < 5000 / 10
    assert {"saturated", "rate limited"} <= {change.why for change in limiter.changes}


@pytest.mark.parametrize("share", [0.03, 0.1])
def test_refusals_that_do_not_depend_on_the_concurrency_leave_it_as_it_is(share):
    """On average: cuts in a row may be taken for what helps, and cost one server much of a run."""
    late = []
    for seed in range(3):
        limiter, limits, _, _ = simulate(10_000, start=100, ceiling=100, share=share, seed=seed)
        late += limits[len(limits) // 2 :]
        assert "cut in vain" in {change.why for change in limiter.changes}
    assert sum(late) / len(late) > 75


@pytest.mark.parametrize("seed", range(3))
def test_concurrency_grows_although_some_calls_are_refused_and_some_fail(seed):
    _, refusing, _, _ = simulate(10_000, share=0.1, calls=10_000, seed=seed)
    assert sum(refusing[5000:]) / 5000 > 100
    _, failing, _, _ = simulate(10_000, share=0.02, fault=Outcome.server_error, seed=seed)
    assert failing[-1] == 256


@pytest.mark.parametrize("seed", range(3))
def test_a_limit_is_found_behind_refusals_that_do_not_depend_on_it(seed):
    limiter, limits, _, _ = simulate(40, share=0.1, calls=20_000, seed=seed)
    late = limits[len(limits) // 2 :]
    assert 15 < sum(late) / len(late) < 60
    assert {"saturated", "rate limited", "cut in vain"} == {change.why for change in limiter.changes}


@pytest.mark.parametrize("seed", range(3))
def test_more_refusals_than_calls_can_bear_are_never_borne(seed):
    _, limits, _, _ = simulate(10_000, share=0.4, seed=seed)
    late = limits[len(limits) // 2 :]
    assert sum(late) / len(late) < 5


def test_a_server_that_recovers_is_asked_as_before():
    """After refusals that had to be borne, a single one among many is met with a cut again."""

    async def main():
        limiter = AdaptiveLimiter(100, 100, clock)

        async def end(outcomes):
            for outcome in outcomes:
                await limiter.acquire()
                limiter.release(outcome)

        refusals = [Outcome.rate_limited if n % 10 == 9 else Outcome.ok for n in range(3000)]
        await end(refusals)
        assert limiter.limit == 100
        borne = len(limiter.changes)
        await end(refusals)
        assert len(limiter.changes) == borne  # a share that is known is no reason to try anything
        await end([Outcome.ok] * 5000)
        await end([Outcome.rate_limited])
        return limiter.limit

    assert asyncio.run(main()) == 66


def test_a_place_is_kept_until_it_is_given_back_however_the_attempt_ended():
    async def main():
        limiter = AdaptiveLimiter(1, 1, clock)
        await limiter.acquire()
        limiter.note(Outcome.rate_limited)
        waiting = asyncio.ensure_future(limiter.acquire())
        await asyncio.sleep(0)
        assert not waiting.done()
        limiter.release(None)
        await waiting
        return limiter.in_use

    assert asyncio.run(main()) == 1


def test_one_wave_of_refusals_is_one_cut():
    async def main():
        limiter = AdaptiveLimiter(60, 60, clock)
        for _ in range(60):
            await limiter.acquire()
        for _ in range(60):
            limiter.release(Outcome.rate_limited)
        return limiter.limit

    assert asyncio.run(main()) == 40


def test_server_errors_pause_growth_and_cut_nothing():
    _, limits, _, _ = simulate(10_000, calls=500, fault=Outcome.server_error, share=1.0)
    assert set(limits) == {20}


def test_attempts_that_find_no_server_change_nothing():
    async def main():
        limiter = AdaptiveLimiter(4, 256, clock)
        waiting = [asyncio.ensure_future(limiter.acquire()) for _ in range(100)]
        for one in waiting:
            await one
            limiter.release(Outcome.unreachable)
        return limiter.changes

    assert asyncio.run(main()) == []


def test_concurrency_does_not_grow_where_nobody_waits():
    async def main():
        limiter = AdaptiveLimiter(20, 256, clock)
        for _ in range(500):
            await limiter.acquire()
            limiter.release(Outcome.ok)
        return limiter.limit

    assert asyncio.run(main()) == 20


def test_an_explicit_concurrency_is_start_and_cap():
    _, limits, _, most = simulate(10_000, start=7, ceiling=7, calls=300)
    assert set(limits) == {7}
    assert most == 7


def test_it_never_falls_below_one_call():
    _, limits, _, _ = simulate(0, calls=300)
    assert min(limits) == 1


@settings(max_examples=40)
@given(
    st.integers(1, 4), st.lists(st.sampled_from(["acquire", "release", "cancel"]), max_size=60), st.randoms()
)
def test_no_place_is_lost_when_waiting_is_cancelled(places, steps, chance):
    async def main():
        limiter = AdaptiveLimiter(places, places, clock)
        waiting, holding = [], 0

        for step in steps:
            if step == "acquire":
                waiting.append(asyncio.ensure_future(limiter.acquire()))
            elif step == "release" and holding:
                limiter.release(Outcome.ok)
                holding -= 1
            elif step == "cancel" and waiting:
                chance.choice(waiting).cancel()
            if chance.random() < 0.5:
                await asyncio.sleep(0)
            for one in [one for one in waiting if one.done()]:
                waiting.remove(one)
                holding += not one.cancelled()
        for one in waiting:
            one.cancel()
        for result in await asyncio.gather(*waiting, return_exceptions=True):
            holding += result is None
        for _ in range(holding):
            limiter.release(Outcome.ok)
        assert limiter.in_use == 0
        for _ in range(places):
            await asyncio.wait_for(limiter.acquire(), 60)

    asyncio.run(main())


def test_first_come_first_served():
    async def main():
        limiter, order = AdaptiveLimiter(1, 1, clock), []

        async def call(n):
            await limiter.acquire()
            order.append(n)
            await asyncio.sleep(0)
            limiter.release(Outcome.ok)

        await asyncio.gather(*(call(n) for n in range(20)))
        return order

    assert asyncio.run(main()) == list(range(20))


def test_the_log_of_changes_is_bounded():
    limiter, _, _, _ = simulate(1, calls=5000)
    assert len(limiter.changes) <= 200


def test_no_limit_admits_everybody():
    async def main():
        limiter = Limiter(1)
        for _ in range(1000):
            await limiter.acquire()
        limiter.release(Outcome.ok)
        return limiter.most

    assert asyncio.run(main()) == 1


def test_caps_are_exact():
    calls = Budget(max_calls=3)
    for _ in range(3):
        calls.check()
        calls.spend_call()
    with pytest.raises(RunStoppedError, match="3 calls"):
        calls.check()
    assert calls.spent.attempts == 3
    tokens = Budget(max_tokens=10)
    tokens.spend_call()
    tokens.spend(Usage(input_tokens=4, output_tokens=5))
    tokens.check()
    tokens.spend(Usage(output_tokens=1))
    with pytest.raises(RunStoppedError, match="10 tokens"):
        tokens.check()
    cost = Budget(max_cost=0.5)
    cost.spend(Usage(cost_usd=0.5))
    with pytest.raises(RunStoppedError, match=r"\$0\.5"):
        cost.check()


@pytest.mark.parametrize("caching", [True, False])
def test_a_cap_of_calls_stops_a_run_at_exactly_that_many_and_a_resume_goes_on(
    caching, make_test, make_sut, make_annotator, run, resumed, accounted
):
    judged = []

    def judge(prompt, completion):
        judged.append(prompt)
        return True

    sut = make_sut()
    test = make_test(10, annotators={"a": make_annotator(judge)})
    record = run(test, sut, max_calls=7, caching=caching)
    assert len(sut.asked) + len(judged) == 7
    assert record.failure.stage == "run"
    assert "cap of 7 calls" in record.failure.message
    assert record.counts.failed == 0
    again = resumed(record, test, sut)
    assert len(sut.asked) + len(judged) == 7  # those of the first session count
    assert "cap of 7 calls" in again.failure.message
    whole = accounted(resumed(record, test, sut, max_calls=100))
    assert whole.failure is None
    assert whole.counts.scored == 10
    if caching:
        assert len(sut.asked) == len(set(sut.asked)) == len(judged) == 10


@pytest.mark.parametrize("kind", ["plain", "never waits"])
def test_what_only_computes_lets_no_more_items_begin(kind, make_test, make_sut, run):
    class Computing(CompletionAnnotator):
        def translate_request(self, prompt, completion):
            return completion.text

        async def annotate(self, request):
            return request

        def translate_response(self, request, response):
            return response

    annotators = {} if kind == "plain" else {"a": Computing("a")}
    record = run(make_test(500, annotators=annotators), make_sut(), max_calls=1, concurrency=1, caching=False)
    assert record.counts.items < 10
    assert record.counts.items + record.counts.not_begun == 500
