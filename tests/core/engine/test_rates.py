"""Requests and tokens a minute: kept, by calls of unknown tokens too, and no reason to wait where a run ends."""

import asyncio
import os
import signal
import threading
import time

import pytest

from modelgauge import FunctionSUT
from modelgauge.data.responses import Usage
from modelgauge.engine.calls.budget import Rate
from modelgauge.errors import InvalidOptionError


def test_requests_a_minute_are_kept(jumping):
    async def main(clock):
        rate, sent = Rate(30, None), []

        async def call():
            await rate.before()
            sent.append(clock())
            rate.ended()

        await asyncio.gather(*(call() for _ in range(61)))
        return sent

    sent = jumping(main)
    assert all(len([one for one in sent if t <= one < t + 60]) <= 31 for t in sent)
    assert sent[-1] == pytest.approx(120, abs=1)


def test_less_than_one_request_a_minute_is_kept(jumping):
    async def main(clock):
        rate, sent = Rate(2 / 3, None), []
        for _ in range(3):
            await rate.before()
            sent.append(clock())
            rate.ended()
        return sent

    assert jumping(main) == pytest.approx([0, 90, 180], abs=1)


@pytest.mark.parametrize("given", [0, -1, True, "1", float("inf"), float("nan")])
def test_what_is_no_number_of_requests_is_refused(given, runner):
    with pytest.raises(InvalidOptionError, match=r"requests_per_minute is .* Give a number above 0"):
        runner(requests_per_minute=given)


@pytest.mark.parametrize("seconds", [0.1, 5.0])
@pytest.mark.parametrize("tokens", [10, 30, 250])
def test_tokens_a_minute_hold_back_the_calls_that_come_after(jumping, tokens, seconds):
    async def main(clock):
        rate, told = Rate(None, 100), []

        async def call():
            await rate.before()
            await asyncio.sleep(seconds)
            told.append(clock())
            rate.ended()
            rate.after(tokens)

        await call()  # the first tells how many a call takes
        await asyncio.gather(*(call() for _ in range(40)))
        return told

    told = jumping(main)
    most = max(100, tokens)
    # A full bucket, what leaks meanwhile, and a call that is longer than a minute's tokens.
    for begin in told:
        within = [one for one in told if begin <= one < begin + 60]
        assert len(within) * tokens <= 100 + most + 1
    assert told[-1] == pytest.approx(
        60 * (41 * tokens - most) / 100, abs=60 + 42 * seconds
    )  # and hardly slower


def test_calls_that_went_before_any_had_told_its_tokens_are_made_up_for(jumping):
    async def main(clock):
        rate, sent = Rate(None, 100), []

        async def call():
            await rate.before()
            sent.append(clock())
            await asyncio.sleep(1)
            rate.ended()
            rate.after(50)

        await asyncio.gather(*(call() for _ in range(6)))
        await call()
        return sent

    sent = jumping(main)
    assert sent[:6] == [0] * 6
    assert sent[6] == pytest.approx(
        1 + 60 * 2.5, abs=1
    )  # 300 tokens were taken: until 50 are left, a call's own


def test_a_call_that_fails_or_is_cancelled_takes_no_tokens(jumping):
    async def main(clock):
        rate = Rate(None, 100)
        await rate.before()
        rate.ended()
        rate.after(60)
        for _ in range(5):
            waiting = asyncio.create_task(rate.before())
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])
        for _ in range(5):
            await rate.before()
            rate.ended()
        return clock()

    assert jumping(main) == pytest.approx(12, abs=1)  # until 20 have leaked


def test_nobody_waits_for_a_minute_to_learn_that_no_call_is_sent_any_more():
    async def main():
        rate = Rate(requests=1, tokens=10)
        await rate.before()
        rate.ended()
        rate.after(35)
        spent = Rate(requests=1, tokens=None)
        await spent.before()
        waiting = [asyncio.create_task(one.before()) for one in (rate, rate, spent, spent)]
        for _ in range(5):
            await asyncio.sleep(0)
        assert not any(task.done() for task in waiting)
        for one in (rate, spent):
            one.give_up()
        await asyncio.wait_for(asyncio.gather(*waiting, rate.before(), spent.before()), timeout=10)

    asyncio.run(main())


def test_the_tokens_of_a_minute_hold_back_the_calls_of_a_run(make_test, run):
    class Telling(FunctionSUT):
        def translate_response(self, request, response):
            return super().translate_response(request, response).replaced(usage=Usage(input_tokens=1000))

    asked = []

    def answer(text):
        asked.append(text)
        if len(asked) == 3:
            threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        return "yes"

    with pytest.raises(KeyboardInterrupt):
        run(make_test(100), Telling("sut", answer), caching=False, tokens_per_minute=1000)
    assert len(asked) <= 3  # those that go first; 100 would be two hours' tokens


def test_a_cap_ends_a_run_whose_calls_wait_for_their_minute(make_test, make_sut, run):
    sut = make_sut()
    record = run(make_test(20), sut, max_calls=1, requests_per_minute=1, concurrency=5, caching=False)
    assert (len(sut.asked), record.counts.scored) == (1, 1)
    assert "The cap of 1 call is reached" in record.failure.message


def test_a_cap_that_the_last_answer_reaches_ends_a_run_whose_calls_wait_for_their_minute(make_test, run):
    class Telling(FunctionSUT):
        def translate_response(self, request, response):
            return super().translate_response(request, response).replaced(usage=Usage(input_tokens=10))

    def answer(text):
        asked.append(text)
        return "yes"

    asked, begun = [], time.monotonic()
    limits = {"max_tokens_total": 10, "requests_per_minute": 1, "concurrency": 2}
    record = run(make_test(2), Telling("sut", answer), caching=False, **limits)
    assert (len(asked), record.counts.scored, record.counts.failed) == (1, 1, 0)
    assert time.monotonic() - begun < 30  # the second did not wait for its minute
