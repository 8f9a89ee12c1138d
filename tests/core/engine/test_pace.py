"""Methods that are to be quick: one that is not is named once, with what to do about it. The clock is ours."""

from types import SimpleNamespace

import pytest

from modelgauge import PromptResponseSUT, SUTCompletion, SUTResponse
from modelgauge.engine import pace


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

    async def evaluate(self, request):
        self.clock.now += 1.0  # as long as it likes
        return request

    def translate_response(self, request, response):
        self._take_time("translate_response")
        return SUTResponse([SUTCompletion(response)])


def said(caplog):
    return [one.getMessage() for one in caplog.records if one.name == pace.__name__]


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
