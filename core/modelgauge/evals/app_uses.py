"""Using an observed app: for several questions at once in a loop, or for one in the thread that asks.

An app is held to the deadlines of a run as a SUT is, and what it raises is its golden's failure, whatever it is.
"""

import asyncio
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from modelgauge.config.options import RunOptions
from modelgauge.data.readable import is_stream
from modelgauge.engine.bookkeeping.failures import add_note, as_exception, is_from_outside
from modelgauge.engine.loop.blocking import blocking
from modelgauge.engine.loop.deadlines import Deadlines, call_timed_out
from modelgauge.engine.loop.threads import CallPool
from modelgauge.engine.observers import Standing, show_progress
from modelgauge.errors import CallTimeoutError, ModelGaugeError
from modelgauge.observe.spans import Observation, OpenTrace, Use

App: TypeAlias = Callable[[str], Any]

_OF_ANOTHER_LOOP = ("different loop", "different event loop", "Event loop is closed")
_LOOPS = (
    "An app is used in an event loop of modelgauge's own. What belongs to the loop in which it was made (a client, a "
    "pool, a lock) is made within the app, when it is first called, and not before it is evaluated."
)


@dataclass(frozen=True, slots=True)
class Used:
    """What the app did, and what it returned or raised."""

    trace: OpenTrace
    value: Any
    error: Exception | None = None


Check: TypeAlias = Callable[[Used], None]


class Uses:
    """Uses an app.

    Args:
        app: decorated with `@observe`.
        observation: of its calls.
        options: of the run: deadlines, and whether progress is shown.
        check: raises where the app must not be used any more.
    """

    def __init__(self, app: App, observation: Observation, options: RunOptions, check: Check) -> None:
        self._app, self._observation, self._options, self._check = app, observation, options, check
        self._seconds = min(options.attempt_timeout, options.call_timeout)

    def on(self, questions: Sequence[str], at_once: int) -> list[Used]:
        """Use it once for each question; blocks, also inside a running event loop.

        Raises:
            ModelGaugeError: the check did; what was under way has ended, and nothing more began.
        """
        return blocking(lambda: self._used(questions, at_once)) if questions else []

    async def _used(self, questions: Sequence[str], at_once: int) -> list[Used]:
        places = asyncio.Semaphore(at_once)
        refused: list[ModelGaugeError] = []
        done: dict[int, Used] = {}
        pool, deadlines = CallPool(), Deadlines()

        async def use(number: int, asked: str) -> None:
            async with places:
                if refused:
                    return
                done[number] = await self._use(asked, pool, deadlines)
                try:
                    self._check(done[number])
                except ModelGaugeError as error:
                    refused.append(error)

        def standing() -> Standing:
            failed = sum(one.error is not None for one in done.values())
            oldest = max(pool.oldest or 0.0, deadlines.oldest or 0.0)
            return Standing(len(done), len(questions), 0, failed, 0.0, oldest)

        showing = asyncio.create_task(show_progress(standing)) if self._options.progress else None
        try:
            await asyncio.gather(*map(use, range(len(questions)), questions))
        finally:
            deadlines.close()
            pool.close()
            if showing is not None:
                showing.cancel()
                await asyncio.wait([showing])  # it takes its line away
        if refused:
            raise refused[0]
        return [used for _, used in sorted(done.items())]

    async def _use(self, asked: str, pool: CallPool, deadlines: Deadlines) -> Used:
        """Use the app once; plain code runs in a thread, where it may block, and is left there when its time is up."""

        async def answer() -> Any:
            value = await pool.run(lambda one: _drained(self._app(one)), asked, self._seconds)
            return await deadlines.within(self._seconds, _awaited(value)) if _goes_on(value) else value

        use = self._begun(asked)
        try:
            with use:
                value = await answer()
        except Exception as error:  # noqa: BLE001  the author's; it stands in the record
            return self._failed(use, error)
        return Used(use.ended(value), value)

    def here(self, asked: str) -> Used:
        """Use it once; plain code runs in this thread, whose debugger and fixtures it knows, and is not ended.

        Raises:
            ModelGaugeError: the check did.
        """
        use = self._begun(asked)
        try:
            with use:
                value = _drained(self._app(asked))
                if _goes_on(value):
                    value = blocking(lambda: _within(self._seconds, value))
            used = Used(use.ended(value), value)
        except BaseException as error:  # likewise; pytest.fail and sys.exit too
            if is_from_outside(error) or is_skip(error):
                raise
            used = self._failed(use, as_exception(error))
        self._check(used)
        return used

    def _begun(self, asked: str) -> Use:
        return Use(self._observation.name, {"input": asked}, self._observation)

    def _failed(self, use: Use, error: Exception) -> Used:
        """What the app did until it failed; with advice where asyncio says only that some loop is not the right one."""
        if isinstance(error, CallTimeoutError) and self._options.call_timeout < self._options.attempt_timeout:
            error = call_timed_out(self._options.call_timeout)
        if isinstance(error, RuntimeError) and any(told in str(error) for told in _OF_ANOTHER_LOOP):
            add_note(error, _LOOPS)
        return Used(use.ended(None, error), None, error)


def is_skip(error: BaseException) -> bool:
    """Whether an error is how a test of pytest says that it is skipped."""
    pytest = sys.modules.get("pytest")
    return pytest is not None and isinstance(error, pytest.skip.Exception)


async def _within(seconds: float, value: Any) -> Any:
    deadlines = Deadlines()
    try:
        return await deadlines.within(seconds, _awaited(value))
    finally:
        deadlines.close()


async def _awaited(value: Any) -> Any:
    answer = await value if inspect.isawaitable(value) else value
    if _is_async_stream(answer):
        return [part async for part in answer]
    return _drained(answer)


def _drained(value: Any) -> Any:
    return list(value) if is_stream(value) else value


def _goes_on(value: Any) -> bool:
    return inspect.isawaitable(value) or _is_async_stream(value)


def _is_async_stream(value: Any) -> bool:
    return hasattr(type(value), "__anext__")
