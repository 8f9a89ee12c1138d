"""Using an observed app: for several questions at once in a loop, or for one in the thread that asks.

An app is held to the deadlines of a run as a SUT is, and what it raises is its golden's failure, whatever it is.
"""

import asyncio
import inspect
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from modelgauge.config.options import RunOptions
from modelgauge.data.shown import is_stream
from modelgauge.engine.bookkeeping.failures import add_note, as_exception, is_from_outside
from modelgauge.engine.loop.blocking import blocking
from modelgauge.engine.loop.deadlines import Deadlines, call_timed_out
from modelgauge.engine.loop.threads import CallPool
from modelgauge.engine.progress import Standing, show_progress
from modelgauge.errors import CallTimeoutError, ModelGaugeError
from modelgauge.observe.spans import (
    OpenSpan,
    OpenTrace,
    Sink,
    begin_use,
    collecting,
    metrics_of_observed,
    observation_of,
    trace_of_use,
)

App: TypeAlias = Callable[[str], Any]

_OF_ANOTHER_LOOP = ("different loop", "different event loop", "Event loop is closed")
_LOOPS = (
    "An app is used in an event loop of modelgauge's own. What belongs to the loop in which it was made (a client, a "
    "pool, a lock) is made within the app, when it is first called, and not before it is evaluated."
)


@dataclass(frozen=True, slots=True)
class Used:
    """What the app did, and what it returned or raised; `called` where the observed function itself was at work."""

    trace: OpenTrace
    value: Any
    error: Exception | None
    called: bool


Check: TypeAlias = Callable[[Used], None]


class Uses:
    """Uses an app.

    Args:
        app: decorated with `@observe`.
        options: of the run: deadlines, and whether progress is shown.
        check: raises where the app must not be used any more.
        at_once: most uses at once; None for one after the other, plain code in the thread that asks.
    """

    def __init__(self, app: App, options: RunOptions, check: Check, at_once: int | None) -> None:
        self.app = app
        self._options, self._check, self._at_once = options, check, at_once

    def on(self, questions: Sequence[str]) -> list[Used]:
        """Use it once for each question; blocks, also inside a running event loop.

        Raises:
            ModelGaugeError: the check did; what was under way has ended, and nothing more began.
        """
        if self._at_once is not None:
            return blocking(lambda: self._used(questions)) if questions else []
        uses = []
        for asked in questions:
            uses.append(self._use_here(asked))
            self._check(uses[-1])
        return uses

    async def _used(self, questions: Sequence[str]) -> list[Used]:
        places = asyncio.Semaphore(self._at_once or 1)
        refused: list[ModelGaugeError] = []
        done: list[Used] = []
        pool, deadlines = CallPool(), Deadlines()

        async def checked(asked: str) -> list[Used]:
            async with places:
                if refused:
                    return []
                used = await self._use(asked, pool, deadlines)
                done.append(used)
                try:
                    self._check(used)
                except ModelGaugeError as error:
                    refused.append(error)
                return [used]

        def standing() -> Standing:
            failed = sum(one.error is not None for one in done)
            oldest = max(pool.oldest or 0.0, deadlines.oldest or 0.0)
            return Standing(len(done), len(questions), 0, failed, 0.0, oldest)

        showing = asyncio.create_task(show_progress(standing)) if self._options.progress else None
        try:
            uses = await asyncio.gather(*map(checked, questions))
        finally:
            deadlines.close()
            pool.close()
            if showing is not None:
                showing.cancel()
                await asyncio.wait([showing])  # it takes its line away
        if refused:
            raise refused[0]
        return [one for several in uses for one in several]

    async def _use(self, asked: str, pool: CallPool, deadlines: Deadlines) -> Used:
        """Use the app once; plain code runs in a thread, where it may block, and is left there when its time is up."""
        span = self._begun(asked)

        async def answer() -> Any:
            value = await pool.run(lambda one: _drained(self.app(one)), asked, self._seconds)
            return await deadlines.within(self._seconds, _awaited(value)) if _goes_on(value) else value

        with collecting() as sink:
            try:
                value = await self._in_time(answer())
            except Exception as error:  # noqa: BLE001  the author's; it stands in the record
                return _ended(sink, span, error=_advised(error))
        return _ended(sink, span, value)

    def _use_here(self, asked: str) -> Used:
        """Use the app once; plain code runs in this thread, whose debugger and fixtures it knows, and is not ended."""
        span = self._begun(asked)
        with collecting() as sink:
            try:
                value = _drained(self.app(asked))
                if _goes_on(value):
                    value = blocking(lambda: self._in_time(_within(self._seconds, value)))
            except BaseException as error:  # likewise; pytest.fail and sys.exit too
                if is_from_outside(error) or is_skip(error):
                    raise
                return _ended(sink, span, error=_advised(as_exception(error)))
        return _ended(sink, span, value)

    @property
    def _seconds(self) -> float:
        return min(self._options.attempt_timeout, self._options.call_timeout)

    async def _in_time(self, answer: Awaitable[Any]) -> Any:
        try:
            return await answer
        except CallTimeoutError as error:
            if self._options.call_timeout >= self._options.attempt_timeout:
                raise
            raise call_timed_out(self._options.call_timeout) from error

    def _begun(self, asked: str) -> OpenSpan:
        """What stands for a use of which the observed function knows nothing: a wrapper may answer by itself."""
        name = str(getattr(self.app, "__name__", type(self.app).__name__))
        return begin_use(name, {"input": asked}, observation_of(self.app), metrics_of_observed(self.app))


def is_skip(error: BaseException) -> bool:
    """Whether an error is how a test of pytest says that it is skipped."""
    pytest = sys.modules.get("pytest")
    return pytest is not None and isinstance(error, pytest.skip.Exception)


def _ended(sink: Sink, use: OpenSpan, value: Any = None, error: Exception | None = None) -> Used:
    trace = trace_of_use(sink, use, value, error)
    return Used(trace, value, error, called=trace is not use.trace)


def _advised(error: Exception) -> Exception:
    """An error of the app, with advice where asyncio says only that some loop is not the right one."""
    if isinstance(error, RuntimeError) and any(told in str(error) for told in _OF_ANOTHER_LOOP):
        add_note(error, _LOOPS)
    return error


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
