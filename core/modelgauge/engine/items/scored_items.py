"""The measured items of a run, which stay in its journal: memory holds offsets and columns of numbers only."""

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from modelgauge.config.run_options import RunOptions
from modelgauge.data.annotations import MeasuredTestItem
from modelgauge.data.item_records import ItemRecord
from modelgauge.data.items import TestItem
from modelgauge.data.prompts import AnyPrompt, TextPrompt, asks_nothing
from modelgauge.engine.items.contexts import ContextClasses, context_classes, with_contexts
from modelgauge.engine.items.item_frame import ItemRecords, Rows
from modelgauge.engine.items.measurement_columns import MeasurementColumns
from modelgauge.engine.items.source import get_field
from modelgauge.engine.run_files.lines import JournalLines, Summary
from modelgauge.stats.intervals import joined_clusters
from modelgauge.stats.measured import MeasuredItems, Range

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from modelgauge.data.results import Direction


class JournalIndex(ItemRecords):
    """The items of a journal that is being written: each record is added with the place of its line.

    Args:
        path: of the journal.
        declared: the test's `measurement_ranges`.
        options: of the run.
        is_asked: whether a SUT is asked, or was: then items with equal prompts share an answer.

    Attributes:
        options: as above.
        is_asked: as above.
        columns: the measurements, with a row for each record in the order in which they are added.
        prompts: hashes of the prompts of all items.
        unclustered: how many measured items lack the field by which items form clusters.
        is_measured_in_part: whether an item failed and has measurements.
    """

    def __init__(
        self,
        path: Path,
        declared: Mapping[str, Range],
        options: RunOptions | None = None,
        *,
        is_asked: bool = False,
    ) -> None:
        self._lines, self._added = JournalLines(path), Rows()
        self.options = options if options is not None else RunOptions()
        self._over = None if asks_nothing(self.options.sut_options) else self.options.sut_options
        self.is_asked = is_asked
        self.columns = MeasurementColumns(declared)
        self.prompts = array("q")
        self.unclustered = 0
        self.is_measured_in_part = False
        self._all_measured = array("b")
        self._questions = array("q")  # hashes of the prompts
        self._clusters = array("q")  # hashes of the field of the cluster
        self._all_shares = array("d")  # the share of the repeats that failed
        self._classes: dict[ContextClasses, int] = {}
        self._class_of: dict[int, int] = {}

    def note_context(self, index: int, item: TestItem) -> None:
        """Note the classes of an item's contexts, of which they are made when the item is read from the journal."""
        if (classes := context_classes(item)) is not None:
            self._class_of[index] = self._classes.setdefault(classes, len(self._classes))

    def add(self, record: ItemRecord, offset: int, item: TestItem) -> None:
        """Add a record of the journal.

        Args:
            record: of an item.
            offset: where its line begins.
            item: as it was asked: in the record, prompts that differ in secrets alone are equal.
        """
        is_measured = record.is_scored or bool(record.measurements)
        self._added.add(offset, Summary(record.index, record.is_scored, bool(record.failures)))
        self._all_measured.append(is_measured)
        self.is_measured_in_part |= is_measured and not record.is_scored
        if self.is_asked:
            asked = [self._question_hash(prompt.prompt) for prompt in item.prompts]
            self.prompts.extend(asked)
            self._questions.append(asked[0] if len(asked) == 1 else hash(tuple(asked)))
        if self.options.cluster is not None:
            value = get_field(item, self.options.cluster)
            self.unclustered += value is None and is_measured
            self._clusters.append(hash(record.index if value is None else json.dumps(value, sort_keys=True)))
        self._all_shares.append(self._share_failed(record))
        self.columns.add(record.index, record.measurements, record.binary)

    def _question_hash(self, prompt: AnyPrompt) -> int:
        """Hash a prompt with its options, for use within this process."""
        asked = prompt if self._over is None else prompt.with_options(self._over)
        if isinstance(asked, TextPrompt) and asks_nothing(asked.options):  # nearly always
            return hash(("text", asked.text))
        return hash(asked.model_dump_json())

    def _share_failed(self, record: ItemRecord) -> float:
        """Return the share of failed repeats; 1 for reductions other than the mean, where any repeat may change the
        result.
        """
        if not record.is_scored or not record.failures:
            return 0.0
        failed, measured = len(record.failures), len(record.repeat_measurements)
        return failed / (failed + measured) if self.options.reduction is None else 1.0

    def distinct_prompts(self) -> int | None:
        """Return the number of distinct prompts; None if no SUT was asked."""
        return len(np.unique(np.frombuffer(self.prompts, np.int64))) if self.is_asked else None

    def values(self, name: str) -> "NDArray[np.float64]":
        """Return a measurement of the items, (n,); NaN where an item does not have it."""
        values: NDArray[np.float64] = self.columns.values(name)[self._rows]
        return values

    def _shared(self) -> "NDArray[np.int64] | None":
        """Return the clusters of the measured items: those that share an answer, or a value in the cluster field."""
        measured = self._of_items(self._all_measured).astype(bool)
        labelings = [
            self._of_items(labels)[measured] for labels in (self._questions, self._clusters) if labels
        ]
        joined = joined_clusters(
            *(labeling for labeling in labelings if len(np.unique(labeling)) < len(labeling))
        )
        if joined is None:
            return None
        shared = np.full(len(self), -1, dtype=np.int64)
        shared[measured] = joined
        return shared

    def _shares(self) -> "NDArray[np.float64] | None":
        """Return the failed share of each measured item; None if nothing failed."""
        shares: NDArray[np.float64] = self._of_items(self._all_shares)
        return shares if shares.any() else None

    def context_classes(self, index: int) -> ContextClasses | None:
        """Return the recorded classes of an item's contexts; None if all are plain JSON."""
        number = self._class_of.get(index)
        return None if number is None else list(self._classes)[number]

    def items(
        self,
        known: int | None,
        population: int | None = None,
        directions: "Mapping[str, Direction] | None" = None,
    ) -> "JournaledItems":
        """Return all items scored so far, in the order of the test.

        Args:
            known: how many items there are, those without a line too; None if nobody knows.
            population: see `MeasuredItems`.
            directions: see `MeasuredItems`.
        """
        self._sort(self._added)
        unfinished = None if known is None else max(0, known - len(self))
        about = _ItemFacts(self._shared(), self._shares(), population, directions or {})
        scored, failed = np.flatnonzero(~self.failed), np.flatnonzero(self.failed)
        return JournaledItems(self, scored, failed, unfinished, about, is_all=True)


class _ItemFacts(NamedTuple):
    """Facts about all items, known at the end of a run.

    Args:
        shared: the clusters of those that were measured.
        shares: of each that which failed.
        population: how many items the test has, where intervals are about these.
        directions: which values of each measurement are better.
    """

    shared: "NDArray[np.int64] | None"
    shares: "NDArray[np.float64] | None"
    population: int | None
    directions: "Mapping[str, Direction]"


class JournaledItems(MeasuredItems):
    """`MeasuredItems` read from a journal.

    Args:
        index: of the journal; no line may be added while this is in use.
        measured: the places of the items.
        failed: the places of their failed items.
        unfinished: how many items have no line; None if nobody knows.
        about: what is known of all items.
        is_all: whether these are all items of the run, so that `having` finds what was measured of failed items.
    """

    def __init__(
        self,
        index: JournalIndex,
        measured: "NDArray[np.int64]",
        failed: "NDArray[np.int64]",
        unfinished: int | None,
        about: _ItemFacts,
        *,
        is_all: bool,
    ) -> None:
        self._index, self._about = index, about
        self._is_all = is_all
        self.names, self.ranges, self.unfinished = index.columns.names, index.columns.ranges(), unfinished
        self._places = measured
        self.shared = None if about.shared is None else about.shared[measured]
        self.failed_shares = None if about.shares is None else about.shares[measured]
        self.population, self.directions = about.population, about.directions
        self.failed = _FailedItems(index, failed)

    def having(self, name: str) -> MeasuredItems:
        """Return the items that have a measurement, including items in which another annotator failed."""
        index = self._index
        if not self._is_all or not index.is_measured_in_part or name not in index.columns:
            return super().having(name)
        held = ~np.isnan(index.values(name))
        measured, failed = np.flatnonzero(held), np.flatnonzero(index.failed & ~held)
        return JournaledItems(index, measured, failed, self.unfinished, self._about, is_all=False)

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[MeasuredTestItem]:
        return map(self._measured_item, self._index.records(self._places))

    def _item(self, index: int) -> MeasuredTestItem:
        return self._measured_item(self._index.record(self._places[index]))

    def _measured_item(self, record: ItemRecord) -> MeasuredTestItem:
        item = _live(self._index, record)
        return MeasuredTestItem(item, record.measurements, interactions=record.interactions)

    def _column_values(self, name: str) -> "NDArray[np.float64]":
        return self._index.values(name)[self._places]


class _FailedItems(Sequence[TestItem]):
    """The items of the exception records, read when asked for."""

    def __init__(self, index: JournalIndex, places: "NDArray[np.int64]") -> None:
        self._index, self._places = index, places

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self._at(index) for index in range(len(self))[place]]
        return self._at(range(len(self))[place])

    def _at(self, place: int) -> TestItem:
        return _live(self._index, self._index.record(self._places[place]))


def _live(index: JournalIndex, record: ItemRecord) -> TestItem:
    """Return the item with the context objects that `make_test_items` created."""
    return with_contexts(record.test_item, index.context_classes(record.index))
