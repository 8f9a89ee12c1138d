"""`Side`: one run of a comparison, whose items are read once, into columns; single records are read by their places."""

from array import array
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic_core import from_json

from modelgauge.comparison.pairing.item_columns import ItemColumns, RepeatsOfItems
from modelgauge.data.base import items_of
from modelgauge.data.item_records import ItemRecord, item_from_json
from modelgauge.engine.items.source import fields_of
from modelgauge.engine.run_files.folder import RunFolder, records_at, whole_lines
from modelgauge.errors import RecordError
from modelgauge.runs.recorded_run import RecordedRun
from modelgauge.stats.intervals import joined_clusters
from modelgauge.wording.did_you_mean import did_you_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

_READ = {"kind", "index", "test_item", "measurements", "binary", "repeat_measurements"}


class Side:
    """The items of a run as columns, in the order of the test; of an item that stands twice, the last record.

    Args:
        run: its record, and where it lies.
        match: a field of the items' contexts by which items are paired; None for none.
        group: the field by whose values items form groups; None for none.

    Raises:
        RecordError: a line of the journal is damaged; the message names file and line.

    Attributes:
        run: as above.
        failed: (n,) whether each item failed; it may have measurements all the same.
        targets: (n,) hashes of what each answer is judged by: the item's context.
        clusters: (n,) codes; items with equal codes are not independent. None if every item is its own cluster.
        groups: (n,) the group of each item, "" where it has none; None without `group`.
    """

    def __init__(self, run: RecordedRun, match: str | None = None, group: str | None = None) -> None:
        self.run = run
        self._columns = columns = ItemColumns(run.record, match, group)
        offsets = array("q", _add_items(run, columns))
        indices = np.frombuffer(columns.index, dtype=np.int64)
        order = np.argsort(indices, kind="stable")
        ordered = indices[order]
        is_last = np.append(ordered[1:] != ordered[:-1], np.ones(min(1, len(order)), dtype=bool))
        self._rows: NDArray[np.int64] = order[is_last]
        self._offsets = self._of_rows(offsets)
        self.failed = self._of_rows(columns.failed).astype(bool)
        self.targets = self._of_rows(columns.targets)
        labels = [self._of_rows(column) for column in (columns.questions, columns.clusters) if len(column)]
        self.clusters = joined_clusters(
            *(labeling for labeling in labels if len(np.unique(labeling)) < len(labeling))
        )
        names = list(columns.group_names)
        self.groups = None if group is None else [names[number] for number in self._of_rows(columns.groups)]

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the measurements that any item of the run has."""
        return self._columns.measurements.names

    @property
    def bool_ranges(self) -> dict[str, tuple[float, float]]:
        """(0, 1) for each measurement whose values were all given as bool."""
        return self._columns.measurements.ranges()

    def keys(self, name: str) -> "NDArray[np.int64]":
        """Hashes of what items can be paired by, (n,): see `ItemColumns.keys`."""
        return self._of_rows(self._columns.keys[name])

    def values(self, name: str) -> "NDArray[np.float64]":
        """A measurement of the items, (n,); NaN where an item does not have it."""
        values: NDArray[np.float64] = self._columns.measurements.values(name)[self._rows]
        return values

    def repeats(self, places: "NDArray[np.int64]") -> dict[str, RepeatsOfItems]:
        """For each measurement its values in all repeats of some items; empty if prompts were asked once.

        Args:
            places: of the items among those of this run.
        """
        rows = self._rows[places]
        return {name: RepeatsOfItems(held, rows) for name, held in self._columns.repeats.items()}

    def read(self, places: Iterable[int]) -> Iterator[ItemRecord]:
        """The records of some items.

        Args:
            places: of the items among those of this run.
        """
        offsets = (int(self._offsets[place]) for place in places)
        if self.run.folder is None:
            order = list(offsets)
            wanted = set(order)
            held = {
                number: record
                for number, record in enumerate(self.run.record.iter_items())
                if number in wanted
            }
            yield from (held[number] for number in order)
            return
        yield from records_at(self.run.folder.journal, offsets)

    def without_field(self, field: str, purpose: str, others: str = "") -> RecordError:
        """The error for a field that no item of the run has.

        Args:
            field: that a caller named.
            purpose: what it was to serve for.
            others: what else would serve.
        """
        known = fields_of(next(self.read([0])).test_item)
        return RecordError(
            f"No item of run {self.run.record.run_id} has the field '{field}' to {purpose}.",
            fix=f"{did_you_mean(field, known)}Its fields are: {items_of(known)}{others}.",
        )

    def _of_rows(self, column: "array[int]") -> "NDArray[Any]":
        held: NDArray[Any] = np.frombuffer(column, dtype=column.typecode)[self._rows]
        return held


def _add_items(run: RecordedRun, columns: ItemColumns) -> Iterator[int]:
    """Add all items of a run to columns, and where the line of each begins in the journal (without it, its number)."""
    if run.folder is None:
        for number, item in enumerate(run.record.iter_items()):
            columns.add(item.model_dump(mode="json", include=_READ))
            yield number
    else:
        yield from _added_lines(run.folder, columns)


def _added_lines(folder: RunFolder, columns: ItemColumns) -> Iterator[int]:
    offset = 0
    for number, line in enumerate(whole_lines(folder.journal), start=1):
        try:  # the quick way, which validates no answers
            columns.add(from_json(line, allow_inf_nan=False))
        except (LookupError, TypeError, AttributeError, ValueError):
            item = item_from_json(line, f"{folder.journal}, line {number}")  # says what is wrong
            columns.add(item.model_dump(mode="json", include=_READ))
        yield offset
        offset += len(line)
