"""What a worker tells the driver beside records: what it has counted, and the lines of its log."""

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from modelgauge.engine.bookkeeping.tally import CallTally, Tally

Tell = Callable[..., None]
"""Sends a message to the driver: its kind and fields."""

_Counts = tuple[int, int, frozenset[str], dict[str, int]]


class WorkerCounts:
    """Counts that are sent to the driver before the calls are committed.

    Args:
        tallies: of the works.
        tell: sends a message to the driver.
    """

    def __init__(self, tallies: Sequence[Tally], tell: Tell) -> None:
        self._tallies, self._tell = tallies, tell
        self._told = [_counts_of(tally) for tally in tallies]

    def tell(self) -> None:
        """Send what was counted since the last time; called in the writer's thread alone."""
        for work, tally in enumerate(self._tallies):
            now, before = _counts_of(tally), self._told[work]
            if now != before:
                self._told[work] = now
                self._tell("tally", work, [_growth(*each) for each in zip(now, before, strict=True)])


def _counts_of(tally: Tally) -> list[_Counts]:
    def of(calls: CallTally) -> _Counts:
        return calls.paid, calls.cached, frozenset(calls.metrics), dict(calls.unkept)

    return [of(calls) for calls in tally.calls]


def _growth(now: _Counts, before: _Counts) -> list[Any]:
    """What `CallTally.add` takes."""
    unkept = {name: number - before[3].get(name, 0) for name, number in now[3].items()}
    return [now[0] - before[0], now[1] - before[1], sorted(now[2] - before[2]), unkept]


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


def log_to(tell: Tell, level: int) -> None:
    """Send the lines of all logs, and all warnings, for the rest of the process.

    Args:
        tell: sends a message to the driver.
        level: of the driver's log.
    """
    logging.basicConfig(handlers=[_Handler(tell)], level=level, force=True)

    def show(message: Warning | str, *_: object, **__: object) -> None:
        tell("log", None, logging.WARNING, str(message))

    warnings.showwarning = show


class _Handler(logging.Handler):
    """Sends the lines of a log."""

    def __init__(self, tell: Tell) -> None:
        super().__init__()
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        """Send a line."""
        self._tell("log", record.name, record.levelno, self.format(record))
