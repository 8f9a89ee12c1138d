"""The items of a run in the order of the test: `ItemFrame`, their columns; `ItemRecords`, read when asked for."""

from array import array
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelgauge.data.item_records import ItemRecord
from modelgauge.data.records import TestRecord
from modelgauge.engine.items.item_columns import ItemColumns, ReadRepeats
from modelgauge.engine.run_files.folder import JOURNAL
from modelgauge.engine.run_files.lines import ItemLine, ItemLines, JournalLines, RecordLines, Summary
from modelgauge.errors import RecordError
from modelgauge.stats.intervals import joined_clusters
from modelgauge.stats.measured import Range

Places = Iterable[int] | NDArray[np.int64] | NDArray[np.bool_]


class Rows:
    """Positions and summaries of records, in the order in which they were written."""

    def __init__(self) -> None:
        self.offsets, self.indices = array("q"), array("q")
        self.scored, self.failures = array("b"), array("b")

    def add(self, offset: int, summary: Summary) -> None:
        """Add a record."""
        self.offsets.append(offset)
        self.indices.append(summary.index)
        self.scored.append(summary.is_scored)
        self.failures.append(summary.has_failures)


class ItemRecords:
    """The records of a run's items, in the order of the test. If an item has several records, the last one counts.

    The beginnings of the lines are read at once, and memory holds 26 bytes for each item. Records stay in their file.

    Args:
        lines: the records, in the order in which they were written.
        skip_damaged: leave out damaged lines that are noticed while the lines are read.

    Raises:
        RecordError: the beginning of a line is damaged; the message names file and line. Damage behind it is found when
            the record is read.

    Attributes:
        index: (n,) the place of each item in the test, from 0.
        failed: (n,) whether each item failed; it may have measurements all the same.
        has_failures: (n,) whether each item failed, or a repeat of it did.
    """

    def __init__(self, lines: ItemLines, *, skip_damaged: bool = False) -> None:
        self._lines = lines
        rows = Rows()
        for line in lines:
            try:
                summary = self._read(line)
            except RecordError:
                if skip_damaged:
                    continue
                raise
            rows.add(line.offset, summary)
        self._sort(rows)

    def _sort(self, rows: Rows) -> None:
        """Take over rows, in the order of the test."""
        indices = _numbers(rows.indices)
        order = np.argsort(indices, kind="stable")
        ordered = indices[order]
        is_last = np.append(ordered[1:] != ordered[:-1], np.ones(min(1, len(order)), dtype=bool))
        self._rows: NDArray[np.int64] = order[is_last]
        self.index: NDArray[np.int64] = ordered[is_last]
        self.failed: NDArray[np.bool_] = ~self._of_items(rows.scored).astype(bool)
        self.has_failures: NDArray[np.bool_] = self._of_items(rows.failures).astype(bool)
        self._offsets: NDArray[np.int64] = self._of_items(rows.offsets)

    def _read(self, line: ItemLine) -> Summary:
        return line.summary()

    def _of_items(self, column: "array[int] | array[float]") -> NDArray[Any]:
        """Return a column, which has a row for each line, in the order of the test."""
        return _numbers(column)[self._rows]

    def __len__(self) -> int:
        return len(self.index)

    def record(self, place: int) -> ItemRecord:
        """Read the record of an item.

        Args:
            place: of the item among those of this frame.
        """
        return next(self.records([place]))

    def records(self, places: Places | None = None) -> Iterator[ItemRecord]:
        """Read the records of items one by one.

        Args:
            places: of the items among those of this frame, or for each item whether it is wanted; None for all items.

        Raises:
            RecordError: a line is damaged; the message names file and line.
        """
        return (line.record() for line in self.lines(places))

    def lines(self, places: Places | None = None) -> Iterator[ItemLine]:
        """Read the lines of items one by one; see `records`."""
        offsets = self._offsets if places is None else self._offsets[_indexer(places)]
        return self._lines.at(map(int, offsets)) if len(offsets) else iter(())

    @property
    def written(self) -> NDArray[np.int64]:
        """The places of the items in the order in which they were written, (n,)."""
        return np.argsort(self._offsets)


class ItemFrame(ItemRecords):
    """The items of a run as columns, in the order of the test. They are read in one pass.

    Args:
        lines: see `ItemRecords`.
        run: the record of the run.
        match: a field of the items' contexts by which items are paired; None for none.
        group: the field by whose values items form groups; None for none.
        skip_damaged: see `ItemRecords`.

    Raises:
        RecordError: a line is damaged; the message names file and line.

    Attributes:
        run: as above.
    """

    def __init__(
        self,
        lines: ItemLines,
        run: TestRecord,
        *,
        match: str | None = None,
        group: str | None = None,
        skip_damaged: bool = False,
    ) -> None:
        self.run, self._group = run, group
        self._columns = ItemColumns(run, match, group)
        super().__init__(lines, skip_damaged=skip_damaged)

    def _read(self, line: ItemLine) -> Summary:
        return line.read_json(self._columns.add)[1]

    @property
    def names(self) -> tuple[str, ...]:
        """The measurements of all items, in the order in which the items of the test have them first."""
        return self._columns.measurements.names

    @property
    def bool_ranges(self) -> dict[str, Range]:
        """(0, 1) for each measurement whose values were all given as bool."""
        return self._columns.measurements.ranges()

    def values(self, name: str) -> NDArray[np.float64]:
        """Return a measurement of the items, (n,); NaN where an item does not have it."""
        values: NDArray[np.float64] = self._columns.measurements.values(name)[self._rows]
        return values

    def repeats(self, places: NDArray[np.int64]) -> dict[str, ReadRepeats]:
        """Return for each measurement a function of the values in all repeats; nothing if prompts were asked once.

        Args:
            places: of the items among those of this frame. The functions take a place among these.
        """
        rows = self._rows[places]
        return {name: held.of_items(rows) for name, held in self._columns.repeats.items()}

    def keys(self, name: str) -> NDArray[np.int64]:
        """Return hashes of what items can be paired by, (n,); see `ItemColumns`."""
        return self._of_items(self._columns.keys[name])

    @cached_property
    def targets(self) -> NDArray[np.int64]:
        """Hashes of what each answer is judged by, (n,): the item's context."""
        return self._of_items(self._columns.targets)

    def target(self, place: int) -> Any:
        """Return what the answer to an item is judged by: the fields of its context."""
        return self._columns.target(self.record(place).test_item.model_dump(mode="json"))

    @cached_property
    def questions(self) -> NDArray[np.int64] | None:
        """Hashes of the prompts with their options, (n,); None if no SUT was asked."""
        questions = self._columns.questions
        return self._of_items(questions) if len(questions) else None

    @cached_property
    def clusters(self) -> NDArray[np.int64] | None:
        """Codes, (n,); items with equal codes are not independent. None if every item is its own cluster."""
        labelings = [
            self._of_items(column)
            for column in (self._columns.questions, self._columns.clusters)
            if len(column)
        ]
        return joined_clusters(*(labels for labels in labelings if len(np.unique(labels)) < len(labels)))

    @cached_property
    def origins(self) -> NDArray[np.int64] | None:
        """Hashes of the data set, else of the test's data, with the item's id, (n,); None if the run names no data."""
        run = self.run
        data = run.dataset.digest if run.dataset else tuple(sorted(run.dependency_versions.values()))
        if not data:
            return None
        return np.fromiter((hash((data, key)) for key in self.keys("id").tolist()), np.int64, count=len(self))

    @cached_property
    def groups(self) -> list[str] | None:
        """The group of each item, "" where it has none; None without `group`."""
        if self._group is None:
            return None
        names = list(self._columns.group_names)
        return [names[number] for number in self._of_items(self._columns.groups)]


def read_lines(run: TestRecord) -> ItemLines:
    """Return the records of a run's items: the lines of its journal, if it has a folder."""
    return RecordLines(run) if run.folder is None else JournalLines(run.folder / JOURNAL)


def _numbers(column: "array[int] | array[float]") -> NDArray[Any]:
    return np.frombuffer(column, dtype=column.typecode)


def _indexer(places: Places) -> NDArray[Any]:
    return places if isinstance(places, np.ndarray) else np.fromiter(places, np.int64)
