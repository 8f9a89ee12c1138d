"""Those who watch a run: told of its start, of each finished item and of its end; they can never break it."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from modelgauge.data.records import ItemRecord, TestRecord

log = logging.getLogger(__name__)


class Observer(Protocol):
    """What an observer may be told. Called on the event loop: be quick."""

    def run_started(self, run: Mapping[str, Any]) -> None:
        """A run's manifest, when it is written."""

    def item_finished(self, run_id: str, record: ItemRecord) -> None:
        """An item's record, when it is committed."""

    def run_finished(self, record: TestRecord) -> None:
        """The run's record, when it is written."""


class Observers:
    """Tells all observers; the first thing that one raises is logged, and nothing goes any further."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = list(observers)
        self._failed: set[int] = set()

    def run_started(self, run: Mapping[str, Any]) -> None:
        self._tell(lambda one: one.run_started(run))

    def item_finished(self, run_id: str, record: ItemRecord) -> None:
        if self._observers:
            self._tell(lambda one: one.item_finished(run_id, record))

    def run_finished(self, record: TestRecord) -> None:
        self._tell(lambda one: one.run_finished(record))

    def _tell(self, event: Callable[[Observer], None]) -> None:
        for one in self._observers:
            try:
                event(one)
            except KeyboardInterrupt:
                raise
            # A CancelledError too: it is the observer's own, since nothing is awaited here.
            except BaseException:
                if id(one) not in self._failed:
                    log.exception("An observer of the run failed; the run goes on.")
                self._failed.add(id(one))
