"""An observed app while it is used: its deadlines, what it may raise, and what must not cost its answers."""

import asyncio
import threading
import time

import pytest

from modelgauge import SUTCompletion
from modelgauge.errors import CallError, CallTimeoutError, RunStoppedError
from modelgauge.evals import Golden, assert_test, evaluate, observe
from modelgauge.evals import apps as module
from modelgauge.metrics import ExactMatchMetric

pytestmark = pytest.mark.usefixtures("here")

EXACT = ExactMatchMetric()
GOLDENS = [Golden(one, expected_output=one) for one in "abc"]
BOTH = pytest.mark.parametrize("max_concurrent", [1, 3])


def judged(app, **options):
    options = {"ignore_errors": True, "print_results": False, **options}
    return evaluate(goldens=GOLDENS, observed_callback=observe(metrics=[EXACT])(app), **options)


def errors_of(result):
    return {one.name: one.error for one in result if one.error is not None}


async def cancelled(question):
    if question == "b":
        raise asyncio.CancelledError
    return question


@BOTH
def test_an_app_that_cancels_itself_fails_its_golden_alone(max_concurrent):
    result = judged(cancelled, max_concurrent=max_concurrent)
    assert result.record.counts.sut_errors == 1
    assert errors_of(result).keys() == {"b"}
    assert "cancelled by its own code" in errors_of(result)["b"]
    assert [span.name for span in result.test_results[1].spans] == ["cancelled"]


def test_an_app_of_a_test_that_cancels_itself_raises_an_error():
    app = observe(metrics=[EXACT])(cancelled)
    with pytest.raises(Exception, match="cancelled by its own code"):
        assert_test(golden=GOLDENS[1], observed_callback=app)


def test_whoever_cancels_an_evaluation_still_does():
    begun, ended = threading.Event(), []

    @observe(metrics=[EXACT])
    async def app(question):
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(question)

    async def caller():
        task = asyncio.current_task()
        # As Ctrl-C does under asyncio.run: the loop stands still meanwhile.
        threading.Thread(target=lambda: begun.wait(30) and task.cancel()).start()
        evaluate(goldens=GOLDENS, observed_callback=app)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(caller())
    assert sorted(ended) == ["a", "b", "c"]


@BOTH
@pytest.mark.parametrize("option", ["attempt_timeout", "call_timeout"])
@pytest.mark.parametrize("is_async", [True, False])
def test_an_app_that_takes_too_long_fails_its_golden_alone(is_async, option, max_concurrent):
    released = threading.Event()

    def app(question):
        if question == "b":
            released.wait(30)
        return question

    async def slow(question):
        if question == "b":
            await asyncio.sleep(30)
        return question

    begun = time.monotonic()
    try:
        result = judged(slow if is_async else app, max_concurrent=max_concurrent, **{option: 0.6})
    finally:
        released.set()
    assert time.monotonic() - begun < 20
    told = errors_of(result)
    assert told.keys() == {"b"}
    assert told["b"].startswith("CallTimeoutError: ")
    assert option in told["b"]
    assert [len(one.spans) for one in result] == [1, 1, 1]


def test_a_test_waits_for_an_async_app_no_longer_than_the_settings_say(here):
    (here / "modelgauge.toml").write_text("timeout = 0.2", encoding="utf-8")

    @observe(metrics=[EXACT])
    async def app(question):
        await asyncio.sleep(30)

    with pytest.raises(CallTimeoutError, match="MODELGAUGE_TIMEOUT"):
        assert_test(golden=GOLDENS[0], observed_callback=app)


def test_progress_is_shown_while_an_app_is_used(monkeypatch):
    seen = []

    async def show(standing):
        while True:
            seen.append(standing())
            await asyncio.sleep(0.01)

    monkeypatch.setattr(module, "show_progress", show)

    async def app(question):
        await asyncio.sleep(0.05)
        return question

    judged(app, max_concurrent=1)
    assert {one.done for one in seen} >= {0, 1, 2}
    assert {one.known for one in seen} == {3}
    seen.clear()
    judged(app, show_indicator=False)
    assert seen == []


def test_an_app_is_not_used_where_its_answers_could_not_be_recorded(here):
    (here / "run_data").write_text("in the way", encoding="utf-8")
    asked = []
    with pytest.raises(RunStoppedError, match="cannot be made"):
        judged(asked.append)
    assert asked == []


@pytest.mark.parametrize("ends", [SystemExit, GeneratorExit, KeyboardInterrupt])
def test_only_an_interruption_of_the_test_itself_is_no_failure_of_its_app(ends):
    @observe(metrics=[EXACT])
    def app(question):
        raise ends(question)

    with pytest.raises(ends):
        assert_test(golden=GOLDENS[0], observed_callback=app)


def test_what_belongs_to_another_loop_is_told_with_what_to_do():
    async def caller():
        ready = asyncio.get_running_loop().create_future()

        async def app(question):
            return await ready

        return errors_of(judged(app))

    errors = asyncio.run(caller())
    assert len(errors) == len(GOLDENS)
    assert any("different loop" in error for error in errors.values())
    assert all("made within the app, when it is first called" in error for error in errors.values())


def test_blocked_answer_of_app_is_failure_that_no_metric_judged():
    def app(question):
        return SUTCompletion("part", blocked=True) if question == "b" else question

    result = judged(app)
    blocked = result.test_results[1]
    assert [one.success for one in result] == [True, False, True]
    assert blocked.metrics_data == ()
    assert blocked.failures == [blocked.error]
    assert blocked.error.startswith("BlockedError: The service blocked the answer.")
    assert (result.record.counts.sut_errors, result.record.counts.blocked) == (1, 1)
    with pytest.raises(CallError, match="could not be judged: BlockedError"):
        assert_test(golden=GOLDENS[1], observed_callback=observe(metrics=[EXACT])(app))


def test_cancellation_as_work_begins_is_not_missed(monkeypatch):
    @observe(metrics=[EXACT])
    async def app(question):
        await asyncio.sleep(60)

    async def caller():
        task = asyncio.current_task()

        def cancel_at_once(self, callback, *args, **options):
            # The thread that waits may stand still until the work has begun and was cancelled.
            handle = schedule(self, callback, *args, **options)
            if asyncio.current_task() is task and not task.cancelling():
                task.cancel()
            return handle

        schedule = asyncio.SelectorEventLoop.call_soon_threadsafe
        monkeypatch.setattr(asyncio.SelectorEventLoop, "call_soon_threadsafe", cancel_at_once)
        evaluate(goldens=GOLDENS, observed_callback=app)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(caller())
