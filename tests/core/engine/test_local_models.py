"""Local models as the engine sees them: opened by a plain `def`, without deadlines, with forward passes."""

import threading
import time

import pytest

from modelgauge import PromptResponseSUT, SUTCompletion, SUTResponse, TestItem, Usage
from modelgauge.reports.run_report import spent_in_words


class Loading(PromptResponseSUT[str, str]):
    """Loads something before its first call."""

    batch_size = 4

    def __init__(self, uid: str, error: str = ""):
        super().__init__(uid)
        self.error = error
        self.events: list[str] = []

    def open(self) -> None:
        assert threading.current_thread() is not threading.main_thread()
        self.events.append("open")
        time.sleep(0.05)  # while the others wait
        if self.error:
            raise OSError(self.error)

    async def close(self) -> None:
        self.events.append("close")

    def translate_text_prompt(self, prompt):
        return prompt.text

    def evaluate_batch(self, requests):
        self.events.append("call")
        return [request.upper() for request in requests]

    def translate_response(self, request, response):
        return SUTResponse([SUTCompletion(response)])


@pytest.fixture
def test(make_test):
    return make_test(
        lambda: [TestItem(f"word {number}") for number in range(10)], measure=lambda item: {"x": 1}
    )


def test_plain_open_comes_once_before_first_call(test, run):
    sut = Loading("sut")
    assert run(test, sut).counts.scored == 10
    assert sut.events[0] == "open"
    assert sut.events[-1] == "close"
    assert sorted(sut.events) == ["call"] * sut.events.count("call") + ["close", "open"]


def test_run_that_cache_answers_opens_nothing(test, run):
    sut = Loading("sut")
    run(test, sut)
    sut.events.clear()
    assert run(test, sut).counts.sut_calls.cached == 10
    assert sut.events == []


def test_failed_opening_ends_pair_with_its_reason(test, make_sut, runner):
    broken = Loading("broken", "no such file")
    bad, good = runner().run([test], [broken, make_sut(uid="fine")])
    assert bad.failure.stage == "run"
    assert "'broken' could not be opened: OSError: no such file" in bad.failure.message
    assert bad.counts.scored == bad.counts.failed == 0
    assert good.counts.scored == 10
    assert broken.events == ["open"]


def test_loading_does_not_count_as_time_of_call(test, run):
    record = run(test, Loading("sut"), attempt_timeout=0.04, max_retries=0)
    assert record.counts.scored == 10


class Computing(Loading):
    """Takes its time."""

    has_deadline = False

    def open(self) -> None:
        super().open()
        time.sleep(0.3)

    def evaluate_batch(self, requests):
        time.sleep(0.5)
        return super().evaluate_batch(requests)


class Late(Computing):
    open = Loading.open
    has_deadline = True


def test_call_without_deadline_outlasts_timeouts(test, run):
    options = {"attempt_timeout": 0.1, "call_timeout": 0.2, "max_retries": 0}
    assert run(test, Computing("sut"), **options).counts.scored == 10
    assert run(test, Late("late"), **options).counts.sut_errors == 10


class Passing(Loading):
    def translate_response(self, request, response):
        return SUTResponse([SUTCompletion(response)], Usage(output_tokens=2, forward_passes=3))


def test_record_counts_forward_passes_of_paid_calls_only(test, run):
    for passes, words in ((30, "20 tokens, 30 forward passes"), (0, "")):
        record = run(test, Passing("sut"))
        assert record.spent.forward_passes == passes
        assert spent_in_words(record.spent) == words
        assert ("forward_passes" in record.model_dump_json()) == bool(passes)
