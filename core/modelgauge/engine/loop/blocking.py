"""Coroutines for callers who wait for them, in loops that stay open: a client that an app or a judge keeps from one
call to the next belongs to the loop in which it was made.
"""

import asyncio
import atexit
import contextvars
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Any, TypeVar

from modelgauge.errors import RunStoppedError

T = TypeVar("T")
Work = Callable[[], Coroutine[Any, Any, T]]

_LOOKS = 0.2
"""Seconds between two looks at whether whoever waits was cancelled."""

_ENDING = 5.0
"""Seconds that the background loop gets to end with the process."""


def blocking(work: Work[T]) -> T:
    """Run a coroutine to its end.

    The main thread has one loop for all its calls. Where a loop is running in the calling thread (in a notebook, say),
    one in the background serves, a call at a time. Otherwise a call has a loop of its own, which it closes.

    Args:
        work: makes the coroutine.

    Raises:
        BaseException: whatever the coroutine raised.
        KeyboardInterrupt: Ctrl-C; the coroutine was cancelled, and has ended.
        RunStoppedError: it was cancelled by code that ran in its loop; from outside nobody can.
    """
    try:
        return _run(work)
    except asyncio.CancelledError as error:
        raise RunStoppedError(
            "The run was cancelled by code of a SUT, an annotator or a client that ran in it.",
            fix="Find what cancels all tasks of the event loop (asyncio.all_tasks), and let it cancel its own only.",
        ) from error


def _run(work: Work[T]) -> T:
    if not _loop_is_running():
        return (
            _main.run(work) if threading.current_thread() is threading.main_thread() else asyncio.run(work())
        )
    if _background.taken.acquire(blocking=False):
        try:
            return _background.run(work)
        finally:
            _background.taken.release()
    nested = _Background()  # a call within the call that the other serves would wait for itself
    try:
        return nested.run(work)
    finally:
        nested.close()


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


_INTERRUPTIONS = 3
"""That work which ends may meet; the last leaves the rest to the loop."""


class _Main:
    """The loop of the main thread."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None

    def run(self, work: Work[T]) -> T:
        if self._runner is None:
            self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)  # and no default of the thread
        tasks: list[asyncio.Task[Any] | None] = []

        async def main() -> T:
            tasks.append(asyncio.current_task())
            return await work()

        try:
            return self._runner.run(main(), context=contextvars.copy_context())
        except KeyboardInterrupt:
            try:
                self._end([task for task in tasks if task is not None])
            finally:
                self.close()  # what is left of the work must not go on in the next call
            raise

    def _end(self, tasks: list[asyncio.Task[Any]]) -> None:
        """Let work that was interrupted in the middle (by a second Ctrl-C, say) end before all that it has begun:
        closing the loop would cancel all at once, and wait for what swallows that.
        """
        for _ in range(_INTERRUPTIONS):
            for task in tasks:
                task.cancel()
            try:
                if self._runner is not None and not all(task.done() for task in tasks):
                    self._runner.get_loop().run_until_complete(asyncio.wait(tasks))
            except KeyboardInterrupt:
                continue
            return

    def close(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.close()


class _Background:
    """The loop of a thread of its own, for callers that have a running one; used by whoever holds `taken`."""

    def __init__(self) -> None:
        self.taken = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, work: Work[T]) -> T:
        loop = self._started()
        outcome: Future[T] = Future()
        tasks: list[asyncio.Task[None]] = []

        async def main() -> None:
            try:
                outcome.set_result(await work())
            except BaseException as error:  # noqa: BLE001  raised again by the caller, whatever it is
                outcome.set_exception(error)

        def begin() -> None:
            task = loop.create_task(main())
            task.add_done_callback(never_begun)
            tasks.append(task)

        def never_begun(_: asyncio.Task[None]) -> None:
            if not outcome.done():  # it was cancelled before its first step
                outcome.set_exception(asyncio.CancelledError())

        loop.call_soon_threadsafe(begin)
        waiting = asyncio.current_task()
        cancellations = waiting.cancelling() if waiting is not None else 0
        try:
            while not wait([outcome], timeout=_LOOKS).done:
                # Ctrl-C under `asyncio.run` is no exception here: it cancels the task that waits, and stands still.
                if waiting is not None and waiting.cancelling() > cancellations:
                    raise KeyboardInterrupt  # noqa: TRY301  like one that comes to this thread
        except KeyboardInterrupt:
            loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])
            wait([outcome])  # it is cancelled, and writes what is done
            raise
        return outcome.result()

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            ready: Future[asyncio.AbstractEventLoop] = Future()
            self._thread = threading.Thread(
                target=_serve, args=(ready,), name="modelgauge-background", daemon=True
            )
            self._thread.start()
            self._loop = ready.result()
        return self._loop

    def close(self) -> None:
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_ENDING)


def _serve(ready: "Future[asyncio.AbstractEventLoop]") -> None:
    runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
    ready.set_result(runner.get_loop())
    try:
        runner.get_loop().run_forever()
    finally:
        with suppress(RuntimeError):  # as in `_close`
            runner.close()


_main, _background = _Main(), _Background()
_of_the_parent: list[object] = []  # closing a loop that a fork has copied would end its parent's


def _forked() -> None:
    global _main, _background
    asyncio._set_running_loop(None)  # noqa: SLF001  as Python 3.12 does: the child cannot wait in its parent's
    _of_the_parent.extend([_main, _background])
    _main, _background = _Main(), _Background()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


@atexit.register
def _close() -> None:
    with suppress(RuntimeError):  # some versions of Python start no thread any more, which closing may need
        _main.close()
    _background.close()
