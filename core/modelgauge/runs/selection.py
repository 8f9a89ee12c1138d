"""The choice of items of a run to show: by id, outcome, text or measurements."""

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass

from modelgauge.data.item_records import ItemRecord
from modelgauge.errors import UnknownNameError
from modelgauge.runs.conditions import Condition, check_known
from modelgauge.runs.recorded_run import RecordedRun
from modelgauge.wording.did_you_mean import did_you_mean


@dataclass(frozen=True, slots=True)
class Selection:
    """The items that are wanted, and their order.

    Args:
        ids: of items, or their numbers from 1 in the test; empty for all.
        wrong: only those that are wrong or below a threshold.
        text: only those with this text, in any case, in a prompt, a completion, an annotation or an error.
        conditions: on measurements; an item without the measurement fails them.
        sort: the measurement to sort by, lowest first, or with `-` before its name highest first; items without it
            are last. None for the order of the test.
        limit: at most so many; None for all.
    """

    ids: tuple[str, ...] = ()
    wrong: bool = False
    text: str | None = None
    conditions: tuple[Condition, ...] = ()
    sort: str | None = None
    limit: int | None = None

    def __bool__(self) -> bool:
        return self != Selection()

    def of(self, run: RecordedRun) -> Iterator[ItemRecord]:
        """Return the selected items of a run, sorted.

        Raises:
            UnknownNameError: the run has no item with one of the ids.
            InvalidOptionError: no item has a measurement that is named.
        """
        known: dict[str, None] = {}
        ids: list[str] = []
        wanted = self._selected(run, known, ids)
        if self.sort is not None:
            if self.limit is None:
                wanted = iter(sorted(wanted, key=self._rank))
            else:
                wanted = iter(heapq.nsmallest(self.limit, wanted, self._rank))
            check_known(self.sort.removeprefix("-"), known, "measurements", "to sort by")
        for number, record in enumerate(wanted):
            if number == self.limit:
                return
            yield record
        for condition in self.conditions:
            condition.check_name(known, "measurements")

    def _selected(self, run: RecordedRun, known: dict[str, None], ids: list[str]) -> Iterator[ItemRecord]:
        """Yield the selected items in the order of the test; add all measurements to `known`, all ids to `ids`."""
        left = set(self.ids)
        for record in run.items().records():
            known.update(dict.fromkeys(record.measurements))
            name = record.test_item.id or ""
            if self.ids:
                ids.append(name)
                named = {name, str(record.index + 1)} & set(self.ids)
                left -= named
                if not named:
                    continue
            if self._fits(record):
                yield record
        for missing in sorted(left):
            raise UnknownNameError(
                f"The run has no item '{missing}'.",
                fix=f"{did_you_mean(missing, ids)}`modelgauge show RUN --items` lists all.",
            )

    def _rank(self, record: ItemRecord) -> tuple[float, int]:
        """Return the sort key of an item for a measurement."""
        name = str(self.sort)
        value = record.measurements.get(name.removeprefix("-"))
        sign = -1.0 if name.startswith("-") else 1.0
        return math.inf if value is None else sign * value, record.index

    def _fits(self, record: ItemRecord) -> bool:
        if self.wrong and record.outcome not in ("wrong", "below threshold"):
            return False
        measured = record.measurements
        if not all(
            condition.name in measured and condition.holds(measured[condition.name])
            for condition in self.conditions
        ):
            return False
        return self.text is None or self.text.casefold() in _texts(record).casefold()


def _texts(record: ItemRecord) -> str:
    """Return all texts of an item as JSON, without escapes of quotes and line ends."""
    return record.model_dump_json().replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\")
