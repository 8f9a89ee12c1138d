"""Coroutines for blocking callers, in loops that stay open: a client that an app or a judge keeps from one call to
the next belongs to the loop in which it was created.
"""

import asyncio
import atexit
import contextvars
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any, TypeVar

from modelgauge.engine.loop.guard import engine_task
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
        if threading.current_thread() is threading.main_thread():
            return _main.run(work)
        with asyncio.Runner() as runner:
            return _finish(runner.get_loop(), work())
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


def _finish(
    loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T], context: contextvars.Context | None = None
) -> T:
    """Run a coroutine to completion, even if code in a task or a callback stops the loop or exits."""
    task = engine_task(work, loop, context=context)
    while True:
        try:
            return loop.run_until_complete(task)
        except (SystemExit, RuntimeError):  # raised in a task or a callback; or the loop was stopped
            if task.done():
                raise


def interrupt_is_possible() -> bool:
    """Return whether a KeyboardInterrupt in this thread may come from Ctrl-C. Otherwise, code raised it."""
    if threading.current_thread() is not threading.main_thread():
        return False
    interrupts = _main.interrupts
    return interrupts is None or not interrupts.handles_all or interrupts.count > 0


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


_MOST_CANCELLATIONS = 3
"""Times that Ctrl-C cancels the work; the next leaves the rest to the loop."""

_APART = 0.05
"""Seconds between two cancellations, at least."""

_HELD_UP = 0.3
"""Seconds in which a loop hears of Ctrl-C, unless code holds it up."""


class _Interrupts:
    """Handler of Ctrl-C while the main thread runs its loop: it cancels the work.

    At the second, asyncio's own runner raises KeyboardInterrupt wherever the thread is. Between two steps of the loop
    this loses a step, and what waits for the step waits for ever. So it is raised here only where a further
    cancellation would not help: while code holds up the loop, or after several.

    Args:
        loop: of the main thread.

    Attributes:
        count: how many there were.
        handles_all: whether Ctrl-C is handled here, not by a handler of the caller's program.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.count = 0
        self.handles_all = False
        self._loop = loop
        self._task: asyncio.Task[Any] | None = None
        self._unheard_since: float | None = None

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Handle Ctrl-C in the block, unless the caller's program does."""
        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return
        signal.signal(signal.SIGINT, self.interrupt)
        self.handles_all = True
        try:
            yield
        finally:
            self.handles_all = False
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def begin(self) -> None:
        """Learn that the work begins, in the task that runs now."""
        self._task = asyncio.current_task()
        if self.count:
            self._cancel()

    def end(self) -> None:
        """Let work that was broken off end before all that it has begun: closing the loop would cancel all at once."""
        for _ in range(_MOST_CANCELLATIONS):
            self._cancel()
            with suppress(KeyboardInterrupt):
                if self._task is not None and not self._task.done():
                    self._loop.run_until_complete(asyncio.wait([self._task]))
                return

    def interrupt(self, *_: object) -> None:
        """Handle Ctrl-C, or another signal that means the same."""
        self.count += 1
        now = monotonic()
        if self._unheard_since is None:
            self._unheard_since = now
        if now - self._unheard_since > _HELD_UP or self.count > _MOST_CANCELLATIONS:
            raise KeyboardInterrupt
        # Apart, so that work which handles one cancellation gets the next one too. In a context of its own, since a
        # signal may interrupt authors' code, which cannot cancel the engine's tasks.
        delay = _APART * (self.count - 1)
        self._loop.call_soon_threadsafe(
            self._loop.call_later, delay, self._cancel, context=contextvars.Context()
        )

    def _cancel(self) -> None:
        self._unheard_since = None
        if self._task is not None:
            self._task.cancel()


class _Main:
    """The loop of the main thread.

    Attributes:
        interrupts: handles Ctrl-C while the loop runs; else None.
    """

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None
        self.interrupts: _Interrupts | None = None

    def run(self, work: Work[T]) -> T:
        if self._runner is None:
            self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)  # and no default of the thread
        interrupts = self.interrupts = _Interrupts(self._runner.get_loop())

        async def main() -> T:
            interrupts.begin()
            return await work()

        with interrupts.handled():
            try:
                result = _finish(self._runner.get_loop(), main(), contextvars.copy_context())
                if not interrupts.count:
                    return result
            except asyncio.CancelledError:
                if not interrupts.count:
                    raise
            except KeyboardInterrupt:
                interrupts.end()
            finally:
                self.interrupts = None
        self.close()  # what is left of the work must not go on in the next call
        raise KeyboardInterrupt

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
        self._ended = threading.Event()

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
            task = engine_task(main(), loop)
            task.add_done_callback(never_begun)
            tasks.append(task)

        def never_begun(_: asyncio.Task[None]) -> None:
            if not outcome.done():  # it was cancelled before its first step
                outcome.set_exception(asyncio.CancelledError())

        waiting = asyncio.current_task()
        cancellations = waiting.cancelling() if waiting is not None else 0  # before there is work to cancel
        loop.call_soon_threadsafe(begin)
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
                target=_serve, args=(ready, self._ended), name="modelgauge-background", daemon=True
            )
            self._thread.start()
            self._loop = ready.result()
        return self._loop

    def close(self) -> None:
        if self._loop is not None and self._thread is not None:
            self._ended.set()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_ENDING)


def _serve(ready: "Future[asyncio.AbstractEventLoop]", ended: threading.Event) -> None:
    runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
    ready.set_result(runner.get_loop())
    try:
        while not ended.is_set():  # code in a callback can stop the loop, or exit
            with suppress(SystemExit, KeyboardInterrupt):
                runner.get_loop().run_forever()
    finally:
        with suppress(RuntimeError):  # as in `_close`
            runner.close()


_main, _background = _Main(), _Background()


def interrupt_main() -> None:
    """Do what Ctrl-C does in the main thread, also in a process that ignores Ctrl-C; called by a signal's handler.

    Raises:
        KeyboardInterrupt: no loop runs that could be told, or it does not hear.
    """
    if _main.interrupts is None:
        raise KeyboardInterrupt
    _main.interrupts.interrupt()


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
