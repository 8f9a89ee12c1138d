"""Methods that are to be quick: one that is not is named once, with what to do about it. The clock is ours."""

import asyncio
import contextlib
from types import SimpleNamespace

import pytest

from modelgauge import (
    CompletionAnnotator,
    FunctionSUT,
    PromptResponseSUT,
    SUTCompletion,
    SUTResponse,
    TextPrompt,
)
from modelgauge.engine.loop import stalls as pace


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(pace, "perf_counter", lambda: clock.now)
    return clock


class Slow(PromptResponseSUT[str, str]):
    """Takes its time with the named methods."""

    cacheable = False

    def __init__(self, uid, clock, slow, seconds=0.03):
        super().__init__(uid)
        self.clock, self.slow, self.seconds, self.asked = clock, slow, seconds, 0

    def _take_time(self, method):
        if method in self.slow:
            self.clock.now += self.seconds

    def translate_text_prompt(self, prompt):
        self._take_time("translate_text_prompt")
        return prompt.text

    def evaluate(self, request):
        self.clock.now += 1.0  # as long as it likes, in its thread
        return request

    def translate_response(self, request, response):
        self._take_time("translate_response")
        return SUTResponse([SUTCompletion(response)])


def said(caplog):
    return [record.getMessage() for record in caplog.records if record.name == pace.__name__]


@pytest.mark.parametrize(
    ("method", "named"),
    [
        ("translate_text_prompt", "the translation of a prompt of 'slow' takes 30 ms"),
        ("translate_response", "translate_response of 'slow' takes 30 ms"),
    ],
)
def test_a_slow_translation_of_a_sut_is_named_once(make_test, run, caplog, clock, method, named):
    run(make_test(60), Slow("slow", clock, {method}))
    (one,) = said(caplog)
    assert named in one
    assert "evaluate" in one


@pytest.mark.parametrize("method", ["translate_request", "translate_response"])
def test_a_slow_translation_of_an_annotator_is_named_once(
    make_test, make_sut, make_annotator, judged_class, run, caplog, clock, method
):
    class SlowJudge(judged_class):
        def translate_request(self, prompt, completion):
            clock.now += 0.03 if method == "translate_request" else 0.0
            return super().translate_request(prompt, completion)

        def translate_response(self, request, response):
            clock.now += 0.03 if method == "translate_response" else 0.0
            return super().translate_response(request, response)

    test = make_test(60, annotators={"judged": SlowJudge("judge", lambda prompt, text: True)})
    run(test, make_sut())
    (one,) = said(caplog)
    assert f"{method} of 'judge' takes 30 ms" in one
    assert "annotate" in one


def test_what_is_quick_or_slow_only_now_and_then_is_not_named(make_test, run, caplog, clock):
    run(make_test(60), Slow("quick", clock, {"translate_text_prompt", "translate_response"}, seconds=0.019))
    run(make_test(19), Slow("few", clock, {"translate_text_prompt"}))
    assert said(caplog) == []


def blocking_after(place, clock, seconds=0.3):
    """A SUT whose `async def evaluate` blocks at one of three places."""

    async def answer(text):
        if place == "at once":
            clock.now += seconds
        await asyncio.sleep(0)
        clock.now += 10.0 if place == "nowhere" else 0.0  # what others do meanwhile is not its
        return text

    async def answer_later(text):
        with contextlib.suppress(ValueError):
            await waits_in_vain()
        clock.now += seconds
        await asyncio.sleep(0)
        return text

    async def waits_in_vain():
        await asyncio.sleep(0)
        raise ValueError

    async def answer_without_waiting(text):
        clock.now += seconds
        return text

    by_place = {"after a wait": answer_later, "without a wait": answer_without_waiting}
    return FunctionSUT("blocking", by_place.get(place, answer))


@pytest.mark.parametrize("place", ["at once", "after a wait", "without a wait"])
def test_an_async_sut_that_blocks_is_named_after_a_few_calls(make_test, run, caplog, clock, place):
    run(make_test(5), blocking_after(place, clock))
    (one,) = said(caplog)
    assert "async def evaluate of 'blocking' blocks the event loop for 300 ms a call" in one
    assert "plain `def`" in one
    run(make_test(4), blocking_after(place, clock))
    run(make_test(60), blocking_after(place, clock, seconds=0.019))
    assert len(said(caplog)) == 1


def test_what_an_async_sut_raises_is_raised(make_test, run, clock):
    async def answer(text):
        await asyncio.sleep(0)
        raise ValueError("no")

    (failed,) = run(make_test(1), FunctionSUT("sut", answer)).test_item_exceptions
    assert (failed.error_type, failed.message) == ("ValueError", "no")


def test_a_coroutine_that_a_plain_evaluate_returns_is_timed_too(make_test, run, caplog, clock):
    blocking = blocking_after("at once", clock)

    def plain(text):
        return blocking.function(text)

    run(make_test(5), FunctionSUT("blocking", plain))
    assert len(said(caplog)) == 1


def test_a_judge_is_not_named_for_the_sut_that_it_asks(make_test, make_sut, run, caplog, clock):
    class Judge(CompletionAnnotator):
        def get_suts(self):
            return {"judge": blocking_after("without a wait", clock)}

        def translate_request(self, prompt, completion):
            return completion.text

        async def annotate(self, request):
            return (await self.ask("judge", TextPrompt(request))).completions[0].text

        def translate_response(self, request, response):
            return response

    run(make_test(9, annotators={"judged": Judge("judge")}), make_sut())
    (one,) = said(caplog)
    assert "async def evaluate of 'blocking'" in one
