"""Deadlines of awaited attempts, all behind one timer: `asyncio.timeout` costs as much as the rest of a quick call."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from modelgauge.engine.failures import NOT_OF_THE_ITEM, as_exception
from modelgauge.errors import CallError, CallTimeoutError


@dataclass(slots=True, eq=False)
class _Watch:
    task: "asyncio.Task[Any]"
    begun: float
    expires: float
    cancelled: int = 0  # how often, since the time was up
    pauses: int = 0
    paused_at: float = 0.0


_AGAIN = 5.0

_current: ContextVar[_Watch | None] = ContextVar("modelgauge_watch", default=None)


class Deadlines:
    """Ends what takes too long.

    Args:
        clock: seconds, monotonic; the loop's own by default.
    """

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._clock = clock or self._loop.time
        self._watched: dict[_Watch, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._next_check = 0.0

    async def within(self, seconds: float, awaitable: Awaitable[Any]) -> Any:
        """Await something; it is cancelled when its time is up.

        Raises:
            CallTimeoutError: it did not end in time. A time-out of the author's own stays a `TimeoutError`.
            CallError: it was cancelled by its own code, not from outside.
            CancelledError: the task was cancelled from outside.
        """
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("deadlines are for tasks")
        cancelled_before = task.cancelling()
        now = self._clock()
        watch = _Watch(task, now, now + seconds)
        self._watch(watch)
        outer = _current.set(watch)
        try:
            return await awaitable
        except BaseException as error:
            if watch.cancelled and task.cancelling() == cancelled_before + watch.cancelled:  # by us alone
                raise timed_out(seconds) from error
            if isinstance(error, asyncio.CancelledError) and task.cancelling() <= cancelled_before:
                raise _cancelled_itself() from error
            if isinstance(error, (Exception, *NOT_OF_THE_ITEM)):
                raise
            raise as_exception(error) from None
        finally:
            _current.reset(outer)
            del self._watched[watch]
            for _ in range(watch.cancelled):
                task.uncancel()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clock of the attempt that this is a part of: a judge whose question waits is not slow."""
        watch = _current.get()
        if watch is None:
            yield
            return
        if not watch.pauses:
            watch.paused_at = self._clock()
        watch.pauses += 1
        try:
            yield
        finally:
            watch.pauses -= 1
            if not watch.pauses:
                watch.expires += self._clock() - watch.paused_at
                if watch in self._watched:
                    self._watch(watch)

    def _watch(self, watch: _Watch) -> None:
        self._watched[watch] = None
        if self._timer is None or watch.expires < self._next_check:
            self._schedule(watch.expires)

    @property
    def oldest(self) -> float | None:
        """Seconds since the oldest attempt under way began; None where there is none."""
        first = next(iter(self._watched), None)
        return None if first is None else self._clock() - first.begun

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def _schedule(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._next_check = when
        self._timer = self._loop.call_later(max(0.0, when - self._clock()), self.check)

    def check(self) -> None:
        """Cancel what has expired; called by the timer. What goes on all the same (an `except:` in a loop) is cancelled
        again after a while, in which others clean up."""
        self._timer = None
        now = self._clock()
        running = [one for one in self._watched if not one.pauses]
        for watch in running:
            if watch.expires <= now:
                watch.expires = now + _AGAIN
                watch.cancelled += 1
                watch.task.cancel()
        if running:
            self._schedule(min(one.expires for one in running))


def _cancelled_itself() -> CallError:
    return CallError(
        "A call was cancelled by its own code.",
        fix="Find out what cancels it: a client that is closed, or a task group.",
    )


def timed_out(seconds: float) -> CallTimeoutError:
    """The error of an attempt whose time is up."""
    return CallTimeoutError(
        f"A call did not return within {seconds:g} s.",
        fix="Raise --timeout, or find out why the system hangs.",
    )
