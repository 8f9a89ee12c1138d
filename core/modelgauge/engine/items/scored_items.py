"""The measured items of a run, which stay in its journal: memory holds offsets and columns of numbers only."""

import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from modelgauge.config.run_options import RunOptions
from modelgauge.data.annotations import MeasuredTestItem
from modelgauge.data.item_records import ItemRecord
from modelgauge.data.items import TestItem
from modelgauge.data.prompts import AnyPrompt, TextPrompt, asks_nothing
from modelgauge.engine.items.contexts import ContextClasses, context_classes, with_contexts
from modelgauge.engine.items.measurement_columns import MeasurementColumns
from modelgauge.engine.items.source import field_of
from modelgauge.engine.run_files.lines import JournalLines
from modelgauge.stats.intervals import joined_clusters
from modelgauge.stats.measured import MeasuredItems, Range

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from modelgauge.data.results import Direction


class JournalIndex:
    """An index of the journal that grows with it: the place of each line, and measurements as columns.

    Args:
        path: of the journal.
        declared: the test's `measurement_ranges`.
        options: of the run.
        is_asked: whether a SUT is asked, or was: then items with equal prompts share an answer.

    Attributes:
        is_asked: as above.
        prompts: hashes of the prompts of all items.
        unclustered: how many measured items lack the field by which items form clusters.
    """

    def __init__(
        self,
        path: Path,
        declared: Mapping[str, Range],
        options: RunOptions | None = None,
        *,
        is_asked: bool = False,
    ) -> None:
        self.path = path
        self.options = options if options is not None else RunOptions()
        self._over = None if asks_nothing(self.options.sut_options) else self.options.sut_options
        self.prompts = array("q")
        self.unclustered = 0
        self.columns = MeasurementColumns(declared)
        self.is_asked = is_asked
        self._questions = array("q")  # of each measured item: a hash of its prompts
        self._clusters = array("q")  # of each measured item: a hash of the field of its cluster
        self._shares = array("d")  # of each measured item: the share of its repeats that failed
        self.measured = array("q")
        self.measured_offsets = array("q")
        self.failed = array("q")
        self.failed_offsets = array("q")
        # Of the failed items that were measured in part: their places among the measured, and among the failed.
        self.in_part = array("q")
        self.in_part_failed = array("q")
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
        if self.is_asked:
            self.prompts.extend([self._question_hash(prompt.prompt) for prompt in item.prompts])
        if record.is_scored:
            self._add_measured(record, offset, item)
            return
        if record.measurements:
            self.in_part.append(len(self.measured))
            self.in_part_failed.append(len(self.failed))
            self._add_measured(record, offset, item)
        self.failed.append(record.index)
        self.failed_offsets.append(offset)

    def _add_measured(self, record: ItemRecord, offset: int, item: TestItem) -> None:
        index = record.index
        self.measured.append(index)
        self.measured_offsets.append(offset)
        if self.is_asked:
            asked = self.prompts[-len(item.prompts) :]
            self._questions.append(asked[0] if len(asked) == 1 else hash(tuple(asked)))
        if self.options.cluster is not None:
            value = field_of(item, self.options.cluster)
            self.unclustered += value is None
            self._clusters.append(hash(index if value is None else json.dumps(value, sort_keys=True)))
        self._shares.append(self._share_failed(record))
        self.columns.add(index, record.measurements, record.binary)

    def _question_hash(self, prompt: AnyPrompt) -> int:
        """A hash of a prompt, as it is asked: good for this process."""
        asked = prompt if self._over is None else prompt.with_options(self._over)
        if isinstance(asked, TextPrompt) and asks_nothing(asked.options):  # nearly always
            return hash(("text", asked.text))
        return hash(asked.model_dump_json())

    def _share_failed(self, record: ItemRecord) -> float:
        """The share of repeats that failed; 1 for a reduction other than the mean, where any may change the result."""
        if not record.is_scored or not record.failures:
            return 0.0
        failed, measured = len(record.failures), len(record.repeat_measurements)
        return failed / (failed + measured) if self.options.reduction is None else 1.0

    def distinct_prompts(self) -> int | None:
        """How many different prompts the items have; None if nobody was asked."""
        return len(np.unique(_places(self.prompts))) if self.is_asked else None

    def shared(self) -> "NDArray[np.int64] | None":
        """The clusters of the measured items: those that share an answer, or that have one value in their field."""
        labelings = [_places(labels) for labels in (self._questions, self._clusters) if len(labels)]
        return joined_clusters(
            *(labeling for labeling in labelings if len(np.unique(labeling)) < len(labeling))
        )

    def shares(self) -> "NDArray[np.float64] | None":
        """For each measured item the share of it that failed; None if nothing did."""
        shares: NDArray[np.float64] = np.frombuffer(self._shares, dtype=np.float64)
        return shares if shares.any() else None

    def records(self, offsets: Iterable[int]) -> Iterator[ItemRecord]:
        """Read the records whose lines begin at these offsets."""
        return (line.record() for line in JournalLines(self.path).at(offsets))

    def context_classes(self, index: int) -> ContextClasses | None:
        """The classes noted for an item; None if all its contexts are plain JSON."""
        number = self._class_of.get(index)
        return None if number is None else list(self._classes)[number]

    def items(
        self,
        known: int | None,
        population: int | None = None,
        directions: "Mapping[str, Direction] | None" = None,
    ) -> "JournaledItems":
        """All that is scored so far, in the order of the test.

        Args:
            known: how many items there are, those without a line too; None if nobody knows.
            population: see `MeasuredItems`.
            directions: see `MeasuredItems`.
        """
        scored = np.delete(np.arange(len(self.measured)), _places(self.in_part))
        unfinished = None if known is None else max(0, known - len(scored) - len(self.failed))
        about = _About(self.shared(), self.shares(), population, directions or {})
        return JournaledItems(self, scored, np.arange(len(self.failed)), unfinished, about, is_all=True)


class _About(NamedTuple):
    """What is known of all measured rows at the end.

    Args:
        shared: their clusters.
        shares: of each that which failed.
        population: how many items the test has, where intervals are about these.
        directions: which values of each measurement are better.
    """

    shared: "NDArray[np.int64] | None"
    shares: "NDArray[np.float64] | None"
    population: int | None
    directions: "Mapping[str, Direction]"


class JournaledItems(MeasuredItems):
    """`MeasuredItems` over a journal.

    Args:
        index: of the journal; no line may be added while this is in use.
        measured: the rows of the items.
        failed: the places of their failed items among all.
        unfinished: how many items have no line; None if nobody knows.
        about: what is known of all rows.
        is_all: whether these are all items of the run, so that `having` finds what was measured of failed items.
    """

    def __init__(
        self,
        index: JournalIndex,
        measured: "NDArray[np.int64]",
        failed: "NDArray[np.int64]",
        unfinished: int | None,
        about: _About,
        *,
        is_all: bool,
    ) -> None:
        self._index, self._about = index, about
        self._is_all = is_all
        self.names, self.ranges, self.unfinished = index.columns.names, index.columns.ranges(), unfinished
        self._order = _in_order(measured, index.measured)
        self.shared = None if about.shared is None else about.shared[self._order]
        self.failed_shares = None if about.shares is None else about.shares[self._order]
        self.population, self.directions = about.population, about.directions
        self.failed = _FailedItems(index, _in_order(failed, index.failed))

    def having(self, name: str) -> MeasuredItems:
        """Return the items that have a measurement, including items in which another annotator failed."""
        index = self._index
        if not self._is_all or not index.in_part or name not in index.columns:
            return super().having(name)
        held = ~np.isnan(index.columns.values(name))
        measured = _places(index.in_part_failed)[held[_places(index.in_part)]]
        failed = np.delete(np.arange(len(index.failed)), measured)
        rows = np.flatnonzero(held)
        return JournaledItems(index, rows, failed, self.unfinished, self._about, is_all=False)

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[MeasuredTestItem]:
        offsets = (self._index.measured_offsets[place] for place in self._order)
        return map(self._measured_item, self._index.records(offsets))

    def _item(self, index: int) -> MeasuredTestItem:
        offset = self._index.measured_offsets[self._order[index]]
        (record,) = self._index.records([offset])
        return self._measured_item(record)

    def _measured_item(self, record: ItemRecord) -> MeasuredTestItem:
        return MeasuredTestItem(test_item=_live(self._index, record), measurements=record.measurements)

    def _column_values(self, name: str) -> "NDArray[np.float64]":
        ordered: NDArray[np.float64] = self._index.columns.values(name)[self._order]
        return ordered


def _in_order(places: "NDArray[np.int64]", indices: "array[int]") -> "NDArray[np.int64]":
    """Places, by the indices that stand there."""
    ordered: NDArray[np.int64]
    ordered = places[np.argsort(_places(indices)[places], kind="stable")]
    return ordered


def _places(held: "array[int]") -> "NDArray[np.int64]":
    return np.frombuffer(held, dtype=np.int64)


class _FailedItems(Sequence[TestItem]):
    """The items of the exception records, read when asked for."""

    def __init__(self, index: JournalIndex, order: "NDArray[np.int64]") -> None:
        self._index = index
        self._order = order

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self._at(index) for index in range(len(self))[place]]
        return self._at(range(len(self))[place])

    def _at(self, place: int) -> TestItem:
        (record,) = self._index.records([self._index.failed_offsets[self._order[place]]])
        return _live(self._index, record)


def _live(index: JournalIndex, record: ItemRecord) -> TestItem:
    """The item with its contexts as the objects that `make_test_items` put in."""
    return with_contexts(record.test_item, index.context_classes(record.index))
