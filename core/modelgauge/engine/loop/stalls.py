"""Stalls of the event loop: Python's garbage collector, run less often here, and authors' code that blocks the loop.

Whenever 700 more objects have been created than freed (2,000 from Python 3.13 on), Python scans the young objects, and
from time to time all objects of the process, which takes 60 ms in which no call is sent. Objects that thousands of
items keep for a while are not garbage.

An author's `async def` that blocks the loop delays every call of the run, its time-outs and its first Ctrl-C. A thread
warns when the loop stalls, and each method that is repeatedly slow is reported once.
"""

import asyncio
import gc
import inspect
import logging
import os
import statistics
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, perf_counter
from types import FrameType
from typing import Any, TypeVar, TypeVarTuple

from modelgauge.engine.bookkeeping.failures import of_author
from modelgauge.interfaces.identity import Identified
from modelgauge.interfaces.sut import PromptResponseSUT

log = logging.getLogger(__name__)

R = TypeVar("R")
Ts = TypeVarTuple("Ts")

_YOUNG = 20_000
_lock = threading.Lock()
_runs = 0
_before = 0

_PERIOD = 1.0
_PATIENCE = 5.0  # longer than any garbage collection or slow disk
_ENGINE = f"{Path(__file__).parents[1]}{os.sep}"
_PACKAGE = f"{Path(__file__).parents[2]}{os.sep}"  # with its end: a plugin's folder may begin with its name
_LOOP = (  # the second for loops that are not asyncio's own
    asyncio.Handle.cancel.__code__.co_filename,
    asyncio.run.__code__.co_filename,
)
_STANDS = (
    "The run has stood still for %.0f s: %s blocks the event loop. Write it as plain `def`, which runs in a thread, "
    "or await what it waits for."
)


@contextmanager
def rarer_collections() -> Iterator[None]:
    """Have young objects looked through less often, until the last of the runs in this process has ended.

    Where the process has them looked through less often already, or never, nothing is changed. A threshold that
    somebody sets during the runs stays.
    """
    global _runs, _before  # noqa: PLW0603  Python has one threshold for all runs in the process
    with _lock:
        _runs += 1
        if _runs == 1:
            _before = gc.get_threshold()[0]
            if 0 < _before < _YOUNG:
                gc.set_threshold(_YOUNG, *gc.get_threshold()[1:])
    try:
        yield
    finally:
        with _lock:
            _runs -= 1
            if not _runs and 0 < _before < _YOUNG == gc.get_threshold()[0]:
                gc.set_threshold(_before, *gc.get_threshold()[1:])


@contextmanager
def watching_the_loop(patience: float = _PATIENCE, period: float = _PERIOD) -> Iterator[None]:
    """Warn, once for each time, when the running loop stands still.

    Args:
        patience: seconds that it may.
        period: seconds between two looks.
    """
    loop, thread_id, ended = asyncio.get_running_loop(), threading.get_ident(), threading.Event()
    turned = [monotonic()]
    timer: list[asyncio.TimerHandle] = []

    def turn() -> None:
        turned[0] = monotonic()
        timer[:] = [loop.call_later(period / 2, turn)]

    def watch() -> None:
        warned = 0.0
        while not ended.wait(period):
            last, seconds = turned[0], monotonic() - turned[0]
            if seconds > patience and last != warned:
                warned = last
                log.warning(_STANDS, seconds, _where(sys._current_frames().get(thread_id)))  # noqa: SLF001  documented

    turn()
    threading.Thread(target=watch, name="modelgauge-watchdog", daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        timer[0].cancel()


def _where(frame: FrameType | None) -> str:
    """Return the author's function called by the engine or the loop, and its current position."""
    ours = authors = None
    while frame is not None and not _begins_here(frame.f_code.co_filename):
        if frame.f_code.co_filename.startswith(_PACKAGE):
            ours = frame
        else:
            authors = frame
        frame = frame.f_back
    found = authors or ours
    if found is None:
        return "something"
    return f"{found.f_code.co_qualname} ({found.f_code.co_filename}, line {found.f_lineno})"


def _begins_here(file: str) -> bool:
    """Return whether this is code of the engine or the loop, below which author's code begins."""
    return file.startswith(_ENGINE) or file in _LOOP


# --- methods that are slow time and again -----------------------------------------------------------------------------

_SLOW = 0.02
_SAMPLE = 20
_FEW = 5  # calls: each of them may hold up the run for a second
_BLOCKS = "all other calls wait meanwhile. Write it as plain `def`, which runs in a thread, or await what it waits for"


class Pace:
    """Timer of the first calls of a method, which warns once if it is slow.

    Args:
        method: whose it is, for the author, and what it does for some milliseconds.
        advice: what to do about it.
        each: how often it does.
        sample: how many calls are timed.
    """

    def __init__(self, method: str, advice: str, each: str = "an item", sample: int = _SAMPLE) -> None:
        self._method, self._advice, self._each, self._sample = method, advice, each, sample
        self._seconds: list[float] | None = []

    def of(self, function: Callable[[*Ts], R], *args: *Ts) -> R:
        """Call the method, and time the call as long as a sample is taken."""
        begun = perf_counter()
        try:
            return of_author(function, *args)
        finally:
            self._took(perf_counter() - begun)

    def of_steps(self, awaitable: Any) -> Any:
        """Wrap an awaitable so that a coroutine is timed from each wait to the next; the longest step counts."""
        if self._seconds is None or not inspect.iscoroutine(awaitable):
            return awaitable
        return _TimedCoroutine(awaitable, self._took)

    def _took(self, seconds: float) -> None:
        if self._seconds is None:  # another call was the last one
            return
        self._seconds.append(seconds)
        if len(self._seconds) < self._sample:
            return
        usual, self._seconds = statistics.median(self._seconds), None
        self.of = of_author  # type: ignore[method-assign]  # nothing is left to time
        if usual > _SLOW:
            log.warning("%s %.0f ms %s; %s.", self._method, 1000 * usual, self._each, self._advice)


class _TimedCoroutine(Coroutine[Any, Any, Any]):
    """A coroutine that measures how long it keeps the loop at most, from one wait to the next.

    Args:
        coroutine: does the work.
        took: called at its end with the seconds.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, Any], took: Callable[[float], None]) -> None:
        self._coroutine, self._took, self._longest = coroutine, took, 0.0

    def send(self, value: Any) -> Any:
        return self._step(self._coroutine.send, value)

    def throw(self, *error: Any) -> Any:
        return self._step(self._coroutine.throw, *error)

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def _step(self, step: Callable[..., Any], *given: Any) -> Any:
        begun, waits = perf_counter(), False
        try:
            waits_for = step(*given)
            waits = True
            return waits_for
        finally:
            self._longest = max(self._longest, perf_counter() - begun)
            if not waits:
                self._took(self._longest)


class Paces:
    """Timers for the methods of a SUT or annotator that run on the loop: making requests, sending, reading
    responses.

    Args:
        owner: the object.
    """

    def __init__(self, owner: Identified) -> None:
        is_sut = isinstance(owner, PromptResponseSUT)
        method = "evaluate" if is_sut else "annotate"
        advice = f"it holds up every call: do in {method} what takes long"
        asks = "the translation of a prompt" if is_sut else "translate_request"
        self.request = Pace(f"{asks} of '{owner.uid}' takes", advice)
        self.response = Pace(f"translate_response of '{owner.uid}' takes", advice)
        self.call = Pace(
            f"async def {method} of '{owner.uid}' blocks the event loop for", _BLOCKS, "a call", _FEW
        )
