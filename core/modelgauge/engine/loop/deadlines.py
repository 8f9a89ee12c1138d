"""Deadlines of awaited attempts, driven by a single timer, and enforced whatever the attempt does."""

import asyncio
import dis
import inspect
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import lru_cache
from time import monotonic, sleep
from types import CodeType
from typing import Any, TypeVar

from modelgauge.engine.bookkeeping.failures import (
    as_exception,
    awaited_of_author,
    of_author,
)
from modelgauge.engine.loop.blocking import interrupt_is_possible
from modelgauge.engine.loop.guard import (
    LentToAuthor,
    engine_task,
    guard_loop,
    has_cancelled_itself,
    makes_tasks_by_itself,
)
from modelgauge.errors import CallError, CallTimeoutError

T = TypeVar("T")

_CLEANING_UP = 5.0
"""Seconds that an attempt gets to end after it was cancelled; then nobody waits for it any more."""


@dataclass(slots=True, eq=False)
class _Watch:
    outcome: "asyncio.Future[Any]"
    seconds: float
    begun: float
    expires: float
    task: "asyncio.Task[Any] | None" = None
    has_begun: bool = False
    is_late: bool = False
    pauses: int = 0
    paused_at: float = 0.0


_LONG = 0.001
"""Seconds that an attempt which never waits may keep the loop."""


_current: ContextVar[_Watch | None] = ContextVar("modelgauge_watch", default=None)


class Deadlines:
    """Canceller of attempts whose time is up, driven by a single timer.

    Each attempt is a task of its own, since one that swallows its cancellation (a bare `except:` in a loop) can only be
    left behind, and whoever awaits it in its own task is left behind with it.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._loop = asyncio.get_running_loop()
        self._unguard = guard_loop(self._loop)
        self._clock = clock
        self._watched: dict[_Watch, None] = {}
        self._left_behind: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._next_check = 0.0

    async def within(self, seconds: float, awaitable: Awaitable[Any]) -> Any:
        """Await something, in a task of its own; it is cancelled when its time is up.

        Raises:
            CallTimeoutError: it did not end in time. A time-out of the author's own stays a `TimeoutError`.
            CallError: it was cancelled by its own code, not from outside.
            CancelledError: whoever awaits this was cancelled.
        """
        now = self._clock()
        watch = _Watch(self._loop.create_future(), seconds, now, now + seconds)
        self._watch(watch)
        task = watch.task = _begun(_attempt(watch, awaitable), self._loop)
        try:
            # One that ended at once, but took long, has kept the loop from all others, and from Ctrl-C.
            if task.done() and self._clock() - now > _LONG:
                await asyncio.sleep(0)
            return await watch.outcome
        except asyncio.CancelledError:
            if not watch.has_begun and asyncio.iscoroutine(awaitable):
                awaitable.close()  # the loop ends, and it will not begin
            if not task.done():
                task.cancel()
                await asyncio.wait([task], timeout=_CLEANING_UP)
            raise
        finally:
            self._watched.pop(watch, None)
            if not task.done():
                self._left_behind.add(task)
            else:
                # An error in it holds this frame: what both hold is freed now, not by some collection.
                del watch.outcome

    async def at_once(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Return the result of a coroutine that never waits, and so needs no deadline.

        Raises:
            CallError: it cancelled itself.
        """
        begun, task = self._clock(), asyncio.current_task(self._loop)
        cancelled_before = 0 if task is None else task.cancelling()
        try:
            result = copy_context().run(of_author, _result_of_author, coroutine)
            if task is not None and task.cancelling() > cancelled_before:
                await _taken_back(task)
        except asyncio.CancelledError as error:
            raise _cancelled_itself() from error
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and interrupt_is_possible():
                raise
            raise as_exception(error) from None
        else:
            return result
        finally:
            if self._clock() - begun > _LONG:
                await asyncio.sleep(0)

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
    def under_way(self) -> int:
        """The number of attempts in flight."""
        return len(self._watched)

    @property
    def oldest(self) -> float | None:
        """Seconds since the oldest attempt under way began; None if there is none."""
        first = next(iter(self._watched), None)
        return None if first is None else self._clock() - first.begun

    def close(self) -> None:
        """Stop the timer, and let the loop end without what was left behind, or is still waited for to end."""
        self._unguard()
        if self._timer is not None:
            self._timer.cancel()
        ending = {watch.task for watch in self._watched if watch.task is not None}
        for task in self._left_behind | ending:
            if not task.done():
                _forget(task)

    def _schedule(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._next_check = when
        self._timer = self._loop.call_later(max(0.0, when - self._clock()), self.check)

    def check(self) -> None:
        """Cancel what has expired, and give up what goes on all the same; called by the timer."""
        self._timer = None
        now = self._clock()
        for watch in [watch for watch in self._watched if not watch.pauses and watch.expires <= now]:
            if not watch.has_begun:  # its outcome would not be set: it gets its first step
                continue
            if watch.is_late and not watch.outcome.done():
                watch.outcome.set_exception(timed_out(watch.seconds))
            if watch.task is not None:
                watch.task.cancel()
            watch.is_late, watch.expires = True, now + _CLEANING_UP
        running = [watch.expires for watch in self._watched if not watch.pauses]
        if running:
            self._schedule(min(running))


async def in_this_task(seconds: float, awaitable: Awaitable[Any]) -> Any:
    """Await something as `Deadlines.within` does, but in the task that awaits it, which some clients insist on.

    Raises:
        CallTimeoutError: it did not end in time.
        CallError: it was cancelled by its own code, not from outside.
    """
    task = asyncio.current_task()
    cancelled_before = 0 if task is None else task.cancelling()
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            with LentToAuthor():
                return await awaited_of_author(awaitable)
    except TimeoutError as error:
        if limit.expired():
            raise timed_out(seconds) from error
        raise
    except asyncio.CancelledError as error:
        if task is not None and task.cancelling() <= cancelled_before:
            raise _cancelled_itself() from error
        raise
    except BaseException as error:  # what would end the loop (`SystemExit`) becomes an error of the call
        is_interrupt = isinstance(error, KeyboardInterrupt) and interrupt_is_possible()
        if is_interrupt or isinstance(error, (Exception, asyncio.CancelledError, GeneratorExit)):
            raise
        raise as_exception(error) from None


def _begun(attempt: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop) -> "asyncio.Task[None]":
    """Create a task for an attempt. From Python 3.12 on it starts eagerly, so one that never waits costs no turn of
    the loop.
    """
    if not makes_tasks_by_itself(loop):
        return loop.create_task(attempt)
    if sys.version_info >= (3, 12):
        return engine_task(attempt, loop, eager_start=True)
    return engine_task(attempt, loop)


async def _attempt(watch: _Watch, awaitable: Awaitable[Any]) -> None:
    """Await an author's code, and set its outcome; that of a late answer too, since it is paid."""
    if watch.outcome.done():
        return  # cancelled before it began: by Ctrl-C, while the code of another blocked the loop
    _current.set(watch)  # in this task's context alone
    watch.has_begun = True
    try:
        with LentToAuthor():
            result = await awaited_of_author(awaitable)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and interrupt_is_possible():
            # It ends the loop, so asyncio need not report it too.
            if (task := asyncio.current_task()) is not None:
                task.add_done_callback(asyncio.Task.exception)
            raise
        # It is the outcome, whatever it is.
        if not watch.outcome.done() and not watch.outcome.get_loop().is_closed():
            watch.outcome.set_exception(_as_awaited(error, watch))
            watch.outcome.exception()  # where nobody waits for it any more, that is no news
    else:
        if not watch.outcome.done() and has_cancelled_itself():
            watch.outcome.set_exception(_cancelled_itself())
        elif not watch.outcome.done():
            watch.outcome.set_result(result)


def _as_awaited(error: BaseException, watch: _Watch) -> Exception:
    """Convert the error of an attempt for its awaiter."""
    was_cancelled = isinstance(error, asyncio.CancelledError)
    if watch.is_late:
        late = timed_out(watch.seconds)
        late.__cause__ = None if was_cancelled else error
        return late
    return _cancelled_itself() if was_cancelled else as_exception(error)


def _forget(task: "asyncio.Task[Any]") -> None:
    """Let the process end without a task that does not.

    `asyncio.run` would wait for it for ever, and so would the interpreter, which closes coroutines as it ends: what
    swallows its cancellation swallows that too. Nothing takes a variable away from a thread that sleeps.
    """
    asyncio.tasks._unregister_task(task)  # noqa: SLF001  documented under "Extending asyncio"
    threading.Thread(target=_keep, args=(task,), name="modelgauge-left-behind", daemon=True).start()


def _keep(task: "asyncio.Task[Any]") -> None:
    while not task.done():
        sleep(3600)


async def _taken_back(task: "asyncio.Task[Any]") -> None:
    """Undo the cancellation of this task by a coroutine that ran in it.

    Raises:
        CancelledError: in any case.
    """
    try:
        await asyncio.sleep(0)
    finally:
        task.uncancel()
    raise asyncio.CancelledError


def _cancelled_itself() -> CallError:
    return CallError(
        "A call was cancelled by its own code.",
        fix="Find out what cancels it: a client that is closed, or a task group.",
    )


def call_timed_out(seconds: float) -> CallTimeoutError:
    """Return the error for a call that timed out over all its attempts."""
    return CallTimeoutError(
        f"A call and its further attempts did not end within {seconds:g} s.",
        fix="Raise --call-timeout (in Python call_timeout), or find out why the system takes so long.",
    )


def timed_out(seconds: float) -> CallTimeoutError:
    """Return the error for an attempt that timed out."""
    return CallTimeoutError(
        f"A call did not return within {seconds:g} s.",
        fix="Raise --timeout (in Python attempt_timeout, under pytest MODELGAUGE_TIMEOUT), or find out why the "
        "system hangs.",
    )


# --- coroutines that never wait: they need no task, no turn of a loop, no deadline ------------------------------------


def never_waits(function: object) -> bool:
    """Return whether an `async def` always finishes in one step, whatever its arguments."""
    plain = getattr(function, "__func__", function)
    if not inspect.isfunction(plain) or not plain.__code__.co_flags & inspect.CO_COROUTINE:
        return False  # a function that is only marked as one (`markcoroutinefunction`) returns another's coroutine
    return _ends_in_one_step(plain.__code__)


@lru_cache(maxsize=1024)
def _ends_in_one_step(code: CodeType) -> bool:
    return not any(instruction.opname == "YIELD_VALUE" for instruction in dis.get_instructions(code))


def _result_of_author(coroutine: Coroutine[Any, Any, T]) -> T:
    with LentToAuthor():
        return run_without_waiting(coroutine)


def run_without_waiting(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits, and return its result.

    Raises:
        BaseException: what it raises.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    coroutine.close()
    raise RuntimeError("A coroutine waited that never waits.")
