"""Observers of a run, whose errors never affect it, and the progress bar on a terminal."""

import asyncio
import importlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from threading import current_thread, main_thread
from typing import Any, NamedTuple, Protocol

from modelgauge.data.item_records import ItemRecord
from modelgauge.data.records import TestRecord
from modelgauge.data.results import TotalUsage

log = logging.getLogger(__name__)

_PERIOD = 0.25  # seconds between two looks of the progress bar at the run


class Observer(Protocol):
    """The events of a run; the engine calls all but the last on the event loop, so they must be quick."""

    def run_started(self, run: Mapping[str, Any]) -> None:
        """Handle the manifest of a run once it is written."""

    def item_finished(self, run_id: str, record: ItemRecord) -> None:
        """Handle the record of an item once it is committed."""

    def run_finished(self, record: TestRecord) -> None:
        """Handle the record of a run once it is written. Called in a thread while other runs continue."""


class Observers:
    """Collection of all observers of a run. The first error of each is logged; none affects the run."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = list(observers)
        self._failed: set[int] = set()

    def run_started(self, run: Mapping[str, Any]) -> None:
        self._tell(lambda observer: observer.run_started(run))

    def item_finished(self, run_id: str, record: ItemRecord) -> None:
        if self._observers:
            self._tell(lambda observer: observer.item_finished(run_id, record))

    def run_finished(self, record: TestRecord) -> None:
        self._tell(lambda observer: observer.run_finished(record))

    def _tell(self, event: Callable[[Observer], None]) -> None:
        for observer in self._observers:
            try:
                event(observer)
            # A CancelledError too: it is the observer's own, since nothing is awaited here.
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt) and current_thread() is main_thread():
                    _interrupt(error)
                    continue
                if id(observer) not in self._failed:
                    log.exception("An observer of the run failed; the run goes on.")
                self._failed.add(id(observer))


def _interrupt(error: KeyboardInterrupt) -> None:
    """Pass Ctrl-C on: in a step of the loop of its own, since this step may hold what the run waits for."""

    def interrupt() -> None:
        raise error

    try:
        asyncio.get_running_loop().call_soon(interrupt)
    except RuntimeError:  # no loop runs
        interrupt()


class Progress(NamedTuple):
    """The progress of a run.

    Args:
        done: items that have a record.
        known: items that there are; None while a test still makes some.
        failed: items that failed.
        used: by all calls.
        oldest: seconds that the oldest call under way has taken; None if there is none.
    """

    done: int
    known: int | None
    failed: int
    used: TotalUsage = TotalUsage()
    oldest: float | None = None


async def show_progress(progress: Callable[[], Progress]) -> None:
    """Show a progress bar on a terminal until cancelled. It looks at the run now and then; no call waits for it.

    Args:
        progress: called now and then.
    """
    # tqdm takes as long to import as all the rest of a small run; nobody waits for what ends at once.
    begun = time.monotonic()
    await asyncio.sleep(_PERIOD)
    bar = importlib.import_module("tqdm").tqdm(
        total=None, unit=" items", dynamic_ncols=True, disable=None, smoothing=0.1, leave=False
    )
    if bar.disable:  # no terminal
        return
    bar.start_t -= time.monotonic() - begun
    bar.last_print_t = bar.start_t
    try:
        while True:
            _draw(bar, progress())
            await asyncio.sleep(_PERIOD)
    finally:
        bar.close()


def _draw(bar: Any, now: Progress) -> None:
    bar.total = now.known
    postfix = [f"errors={now.failed}", f"cached={now.used.cached}"]
    if now.oldest is not None and now.oldest >= 1:
        postfix.insert(1, f"oldest call={now.oldest:.0f} s")
    if now.used.cost_usd:
        postfix.append(f"cost=${now.used.cost_usd:.2f}")
    if now.done > bar.n:  # an update by nothing would leave the time that it took out of the rate
        bar.update(now.done - bar.n)
    while postfix and not _fits(bar, ", ".join(postfix)):  # what matters least stands last
        postfix.pop()
    bar.set_postfix_str(", ".join(postfix), refresh=False)
    bar.refresh()


def _fits(bar: Any, postfix: str) -> bool:
    """Return whether a text leaves room for the bar, which is ten characters long if no width is given."""
    line = bar.format_dict
    return (
        line["ncols"] is None
        or len(bar.format_meter(**{**line, "ncols": None, "postfix": postfix})) <= line["ncols"]
    )
