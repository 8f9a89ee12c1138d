"""Daemon threads of the engine, so that authors' code can never keep the process from exiting.

`BatchThread` works on whatever is waiting as one group, for the cache and the journals; `CallPool` runs authors' plain
functions, each with a deadline. Both wake the event loop once a group, since each wake-up costs a system call.
"""

import asyncio
import contextvars
import logging
import os
import queue
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Generic, TypeVar

from modelgauge.engine.bookkeeping.failures import as_exception, of_author
from modelgauge.engine.loop.deadlines import timed_out
from modelgauge.engine.loop.together import settle
from modelgauge.errors import RunStoppedError
from modelgauge.wording.phrases import counted

log = logging.getLogger(__name__)

Job = TypeVar("Job")
T = TypeVar("T")


class BatchThread(Generic[Job]):
    """One thread that takes all waiting jobs at once.

    Args:
        name: of the thread.
        work: does a group of jobs, in the thread.
        done: called on the loop after each group, with the exception that `work` raised, or None.
        closing: called in the thread when it ends.
        most: jobs in a group.
        linger: seconds that the thread waits after the first job of a group, so that fewer groups are made: each costs
            a commit and two switches between threads. `hurry` ends the wait.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[list[Job]], None],
        done: Callable[[list[Job], Exception | None], None],
        *,
        closing: Callable[[], None] = lambda: None,
        most: int = 1000,
        linger: float = 0.0,
    ) -> None:
        self._hurry = threading.Event()
        self._linger = linger
        self._work, self._done, self._closing, self._most = work, done, closing, most
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, name=f"modelgauge-{name}", daemon=True).start()

    def submit(self, job: Job) -> None:
        """Queue a job; never blocks."""
        self._jobs.put(job)

    def hurry(self) -> None:
        """Work on what is queued now, without waiting for more."""
        self._hurry.set()

    async def close(self) -> None:
        """Finish what is queued, and end the thread."""
        self._jobs.put(None)
        self._hurry.set()
        await self._ended

    def _run(self) -> None:
        ending = False
        while not ending:
            group, ending = self._next_group()
            error: Exception | None = None
            if group:
                try:
                    self._work(group)
                except Exception as raised:  # noqa: BLE001  handed to the loop, which decides
                    error = raised
                self._on_loop(self._done, group, error)
        try:
            self._closing()
        except Exception:
            log.exception("A thread of the run could not close what it used.")
        self._on_loop(self._end)  # whoever closes it waits for this

    def _next_group(self) -> tuple[list[Job], bool]:
        group: list[Job] = []
        job = self._jobs.get()
        if self._linger:
            self._hurry.wait(self._linger)
            self._hurry.clear()
        while job is not None:
            group.append(job)
            if len(group) >= self._most:
                return group, False
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return group, False
        return group, True

    def _on_loop(self, callback: Callable[..., None], *args: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody is waiting
            self._loop.call_soon_threadsafe(callback, *args)

    def _end(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)


class OneThread:
    """One thread for what must not move between threads: an author's iterator, say, which may read a database.

    Args:
        name: of the thread.
    """

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        _idle_thread().put((self._work, f"modelgauge-{name}"))

    def submit(self, job: Callable[[], object]) -> None:
        """Do something in the thread, after all that was submitted before; it raises nothing."""
        self._jobs.put(job)

    def close(self) -> None:
        """Let the thread go, when it has done what was submitted."""
        self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            del job  # and what it holds


async def in_thread(function: Callable[[], T], name: str, thread: OneThread | None = None) -> T:
    """Run a function once in a daemon thread, with a copy of the context variables.

    A thread that is done waits a while for the next function: the loop stands still while a thread starts.

    Args:
        function: to run.
        name: of the thread meanwhile.
        thread: where it must run; None for any.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def run() -> None:
        result, error = None, None
        try:
            result = context.run(of_author, function)
        except BaseException as raised:  # noqa: BLE001  given to the waiting coroutine, SystemExit of an author too
            error = as_exception(raised)
        with suppress(RuntimeError):  # the loop is closed: nobody is waiting
            loop.call_soon_threadsafe(settle, future, result, error)

    if thread is None:
        _idle_thread().put((run, f"modelgauge-{name}"))
    else:
        thread.submit(run)
    return await future


_Inbox = queue.SimpleQueue[tuple[Callable[[], None], str]]
_idle: list[_Inbox] = []  # one of each thread that waits for work; `append` and `pop` are atomic
_IDLE_SECONDS = 5.0

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # a fork takes no threads along


def _idle_thread() -> _Inbox:
    """Return the inbox of an idle thread."""
    try:
        return _idle.pop()
    except IndexError:
        inbox: _Inbox = queue.SimpleQueue()
        threading.Thread(target=_serve, args=(inbox,), daemon=True).start()
        return inbox


def _serve(inbox: _Inbox) -> None:
    while True:
        try:
            work, name = inbox.get(timeout=_IDLE_SECONDS)
        except queue.Empty:
            try:
                _idle.remove(inbox)
            except ValueError:  # somebody has just taken it: the work comes
                continue
            return
        threading.current_thread().name = name
        work()
        threading.current_thread().name = "modelgauge-idle"
        del work  # and what it holds
        _idle.append(inbox)


@dataclass(slots=True, eq=False)
class _ThreadJob:
    function: Callable[..., Any]
    argument: Any
    context: contextvars.Context
    future: asyncio.Future[Any]
    timeout: float
    started: float | None = None
    finished: bool = False
    abandoned: bool = False
    result: Any = None
    error: BaseException | None = None


@dataclass(slots=True)
class CallPool:
    """Pool of threads for authors' plain functions, created on demand.

    A thread whose call outlives its deadline is abandoned: Python cannot end it. Another takes its place; should the
    call return after all, its result is dropped and the thread takes calls again.

    Args:
        most_abandoned: stop the run when this many threads hang.
        clock: seconds, monotonic.

    Attributes:
        abandoned: how many threads hang now.
    """

    most_abandoned: int = 64
    clock: Callable[[], float] = monotonic
    abandoned: int = 0
    _calls: "queue.SimpleQueue[_ThreadJob | None]" = field(default_factory=queue.SimpleQueue)
    _running: set[_ThreadJob] = field(default_factory=set)
    _finished: deque[_ThreadJob] = field(default_factory=deque)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _waking: bool = False
    _watch: asyncio.TimerHandle | None = None
    _threads: int = 0
    _outstanding: int = 0
    _closed: bool = False

    async def run(self, function: Callable[..., Any], argument: Any, seconds: float) -> Any:
        """Call `function(argument)` in a thread.

        Args:
            function: an author's plain function.
            argument: its only argument.
            seconds: that it may take, from when a thread takes the call.

        Raises:
            CallTimeoutError: the deadline passed; the thread goes on without anyone listening.
            RunStoppedError: too many threads hang already.
        """
        if self.abandoned >= self.most_abandoned:
            raise RunStoppedError(
                f"{counted(self.abandoned, 'call hangs', 'calls hang')} in a thread and cannot be ended.",
                fix="Give the SUT's client a time-out of its own, shorter than --timeout.",
            )
        call = _ThreadJob(function, argument, contextvars.copy_context(), self._loop.create_future(), seconds)
        self._outstanding += 1
        if self._outstanding > self._threads:
            self._threads += 1
            threading.Thread(target=self._work, name=f"modelgauge-call-{self._threads}", daemon=True).start()
        self._running.add(call)
        self._calls.put(call)
        if self._watch is None:
            self._watch = self._loop.call_later(min(seconds / 4, 1.0), self._check, min(seconds / 4, 1.0))
        try:
            return await call.future
        finally:
            del call  # an error in it holds this frame: what it holds is freed now, not some time

    @property
    def under_way(self) -> int:
        """The number of calls without an answer."""
        return len(self._running)

    @property
    def oldest(self) -> float | None:
        """Seconds since the oldest call under way was taken by a thread; None if there is none."""
        begun = [call.started for call in self._running if call.started is not None]
        return self.clock() - min(begun) if begun else None

    def close(self) -> None:
        """End idle threads now, and busy ones when their call returns."""
        self._closed = True
        for _ in range(self._threads):
            self._calls.put(None)
        if self._watch is not None:
            self._watch.cancel()

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            if call.future.cancelled():  # nobody waits for it any more: do not pay
                call.error = RuntimeError("cancelled before it was sent")
            else:
                self._do(call)
            call.finished = True
            self._finished.append(call)
            del call  # while it waits for the next one
            if not self._waking:
                self._waking = True
                try:
                    self._loop.call_soon_threadsafe(self._settle)
                except RuntimeError:  # the loop is closed: nobody is waiting
                    return
            if self._closed:
                return

    def _do(self, call: _ThreadJob) -> None:
        call.started = self.clock()
        try:
            call.result = call.context.run(of_author, call.function, call.argument)
        except BaseException as raised:  # noqa: BLE001  given to the waiting coroutine, SystemExit of an author too
            call.error = as_exception(raised)
        finally:
            del call  # as in `run`

    def _settle(self) -> None:
        self._waking = False
        while self._finished:
            call = self._finished.popleft()
            if call.abandoned:  # it came back, and so did its thread
                self.abandoned -= 1
                self._threads += 1
                continue
            self._running.discard(call)
            self._outstanding -= 1
            settle(call.future, call.result, call.error)

    def _check(self, period: float) -> None:
        now = self.clock()
        for call in [job for job in self._running if not job.finished]:
            if call.started is not None and now - call.started > call.timeout:
                self._abandon(call)
        self._watch = self._loop.call_later(period, self._check, period) if self._running else None

    def _abandon(self, call: _ThreadJob) -> None:
        call.abandoned = True
        self._running.discard(call)
        self.abandoned += 1
        self._threads -= 1
        self._outstanding -= 1
        settle(call.future, None, timed_out(call.timeout))
