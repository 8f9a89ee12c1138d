"""What makes the event loop stand still: Python's search for reference cycles, made rarer here, and authors' code that
blocks the loop, of which a thread warns.

Whenever 700 more objects have been made than freed (2,000 from Python 3.13 on), Python looks through the young ones,
and time and again through all that the process has: 60 ms in which no call is sent. What thousands of items keep for a
while is no garbage.

An author's `async def` that blocks stops every call of the run, its time-outs and its first Ctrl-C. Without a warning
nobody would know why.
"""

import asyncio
import gc
import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from types import FrameType

log = logging.getLogger(__name__)

_YOUNG = 10_000
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
    """The author's function that the engine or the loop has called, and where it is now."""
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
    """Whether this code calls that of authors: what is further out calls nobody but the loop."""
    return file.startswith(_ENGINE) or file in _LOOP
