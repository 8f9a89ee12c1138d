"""Messages of a worker to the driver besides records: heartbeats, counts, and log lines."""

import asyncio
import logging
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

from modelgauge.data.results import CallCounts
from modelgauge.engine.bookkeeping.tally import CallTally, Tally
from modelgauge.engine.executors.messages import BEAT

Post = Callable[..., None]
"""Sends a message to the driver: its kind and fields."""

_Counts = tuple[CallCounts, frozenset[str], Counter[str]]


class WorkerCounts:
    """Counts that are sent to the driver before the calls are committed.

    Args:
        tallies: of the works.
        post: sends a message to the driver.
    """

    def __init__(self, tallies: Sequence[Tally], post: Post) -> None:
        self._tallies, self._post = tallies, post
        self._sent = [_list_counts(tally) for tally in tallies]

    def send_growth(self) -> None:
        """Send what was counted since the last time; called in the writer's thread alone."""
        for work, tally in enumerate(self._tallies):
            now, before = _list_counts(tally), self._sent[work]
            if now != before:
                self._sent[work] = now
                self._post("tally", work, [_growth(*each) for each in zip(now, before, strict=True)])


def _list_counts(tally: Tally) -> list[_Counts]:
    def of(calls: CallTally) -> _Counts:
        return calls.counts, frozenset(calls.metrics), calls.unkept.copy()

    return [of(calls) for calls in tally.calls]


def _growth(now: _Counts, before: _Counts) -> list[Any]:
    """Return the arguments for `CallTally.add`."""
    grown = now[0] - before[0]
    return [grown.paid, grown.cached, sorted(now[1] - before[1]), now[2] - before[2]]


# --- signs of life ----------------------------------------------------------------------------------------------------


class SignsOfLife:
    """Heartbeats, sent from a thread while the event loop makes progress. A context manager.

    While the worker starts, every beat is sent, since constructors may block the loop for long. Afterwards, one is
    sent only if the loop has turned or begun another task since the last beat.

    Args:
        post: sends a message to the driver.
    """

    def __init__(self, post: Post) -> None:
        self._post, self._loop = post, asyncio.get_running_loop()
        self._turns = 0  # of the loop; 0 while the worker starts
        self._has_ended = threading.Event()

    def __enter__(self) -> Self:
        threading.Thread(target=self._beat, name="modelgauge-beat", daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._has_ended.set()

    async def keep_turning(self) -> None:
        """Count the turns of the loop."""
        while True:
            self._turns += 1
            await asyncio.sleep(BEAT / 2)

    def _beat(self) -> None:
        before: object = None
        while not self._has_ended.wait(BEAT):
            now = self._turns, id(asyncio.current_task(self._loop))
            if now != before or not self._turns:
                self._post("alive")
            before = now


# --- logs -------------------------------------------------------------------------------------------------------------


@contextmanager
def quiet() -> Iterator[None]:
    """Neither warn nor log: the driver did so when it made the same objects."""
    logging.disable(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)


def log_to(post: Post, level: int) -> None:
    """Send the lines of all logs, and all warnings, for the rest of the process.

    Args:
        post: sends a message to the driver.
        level: of the driver's log.
    """
    logging.basicConfig(handlers=[_Handler(post)], level=level, force=True)

    def show(message: Warning | str, *_: object, **__: object) -> None:
        post("log", None, logging.WARNING, str(message))

    warnings.showwarning = show


class _Handler(logging.Handler):
    """Sends the lines of a log."""

    def __init__(self, post: Post) -> None:
        super().__init__()
        self._post = post

    def emit(self, record: logging.LogRecord) -> None:
        """Send a line."""
        self._post("log", record.name, record.levelno, self.format(record))
