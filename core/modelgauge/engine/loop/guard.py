"""The engine's loop and tasks, guarded against authors' code that would stop or cancel them.

A context variable tells authors' code from the engine's, also in tasks and callbacks that it starts.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, TypeVar

from modelgauge.errors import CallError

T = TypeVar("T")

_call: ContextVar[object | None] = ContextVar("modelgauge_call", default=None)
"""The call whose author's code is running; None in the engine's code."""


class LentToAuthor:
    """Context manager around author's code, which may cancel its own task, as time-outs do.

    This is a class because a generator would modify the exceptions that leave the block.
    """

    def __enter__(self) -> None:
        task = asyncio.current_task()
        self._task = task if isinstance(task, _EngineTask) else None
        call = object()
        self._before = _call.set(call)
        if self._task is not None:
            self._task.lent_to = call

    def __exit__(self, *error: object) -> None:
        _call.reset(self._before)
        if self._task is not None:
            self._task.lent_to = None


class _EngineTask(asyncio.Task[T]):
    """A task that only the engine, and the call that it is lent to, can cancel."""

    lent_to: object | None = None
    _cancels_itself = False

    @property
    def has_cancelled_itself(self) -> bool:
        """Return whether the call that it is lent to has cancelled it."""
        return self._cancels_itself and self.cancelling() > 0

    def cancel(self, msg: Any = None) -> bool:
        """Cancel the task, unless another call's code asks for it."""
        call = _call.get()
        self._cancels_itself |= call is not None and call is self.lent_to
        return call in (None, self.lent_to) and super().cancel(msg)


def has_cancelled_itself() -> bool:
    """Return whether the call that runs in the current task has cancelled it."""
    task = asyncio.current_task()
    return isinstance(task, _EngineTask) and task.has_cancelled_itself


def engine_task(
    coroutine: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop, **options: Any
) -> asyncio.Task[T]:
    """Start a task of the engine. A SUT's code that cancels all tasks of the loop does not cancel this one."""
    return _EngineTask(coroutine, loop=loop, **options)


def _task(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
    """Start a task of the engine, or one that an author's code starts."""
    kind = _EngineTask if _call.get() is None else asyncio.Task
    return kind(coroutine, loop=loop, **options)


def makes_tasks_by_itself(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether a loop has no task factory of somebody else."""
    return loop.get_task_factory() in (None, _task)


def guard_loop(loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
    """Prevent authors' code from stopping a loop, which fails their call, and from cancelling the engine's tasks.

    Returns:
        A function that removes the guard.
    """
    if loop.get_task_factory() is not None:
        return lambda: None
    stop = loop.stop

    def guarded() -> None:
        if _call.get() is not None:
            raise CallError(
                "A call tried to stop the event loop, on which all calls of the run depend.",
                fix="Remove `stop()` from the code that the SUT or the annotator runs.",
            )
        stop()

    def unguard() -> None:
        loop.set_task_factory(None)
        with suppress(AttributeError):
            del loop.stop  # uncovers the method of the class

    loop.set_task_factory(_task)
    with suppress(AttributeError):  # a loop in C has no settable attributes
        loop.stop = guarded  # type: ignore[method-assign]  # of this loop alone
    return unguard
