"""One run of a comparison: `Side`, whose items are read once, into `ItemColumns`; single records by their places.

Of texts the columns hold hashes.
"""

import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic_core import from_json

from modelgauge.comparison.pairing.paired_items import ReadRepeats
from modelgauge.data.base import items_of
from modelgauge.data.case_fields import RUNTIME_FIELDS
from modelgauge.data.item_records import ItemRecord, item_from_json
from modelgauge.data.records import TestRecord
from modelgauge.data.responses import hashable
from modelgauge.data.results import GIVEN
from modelgauge.engine.items.measurement_columns import MeasurementColumns
from modelgauge.engine.items.source import field_of_context, fields_of
from modelgauge.engine.run_files.lines import counted_lines, records_at
from modelgauge.errors import RecordError
from modelgauge.runs.recorded_run import RecordedRun
from modelgauge.stats.intervals import joined_clusters
from modelgauge.wording.did_you_mean import did_you_mean

_READ = {"kind", "index", "test_item", "measurements", "binary", "repeat_measurements"}
ABSENT = 0
"""The hash of a key that an item does not have."""

_MOST = 2**63  # as many items as an index of 64 bits holds
# Names, inputs and notes of goldens and test cases; the other fields say what a good answer is.
_UNJUDGED = ("name", "input", "comments", "tags", "source_file")
_OF_AN_ANSWER = (*RUNTIME_FIELDS, "turns")  # in a test case whose answer was given


class ItemColumns:
    """The items of a run, one row for each in the order in which they are added.

    Args:
        record: of the run.
        match: a field of the items' contexts by which items are paired; None for none.
        group: the field by whose values items form groups; None for none.

    Attributes:
        index: the place of each item in the test.
        failed: 1 for an item that failed.
        keys: hashes of what items can be paired by: "id", "source", "name", "input" (the prompts without options),
            and "field" (that of `match`); `ABSENT` where an item does not have it.
        targets: hashes of the contexts, which answers are judged by.
        questions: hashes of the prompts with their options; empty if no SUT was asked.
        clusters: hashes of the field by which the run's items form clusters; empty if it names none.
        groups: for each item the number of its group in `group_names`; empty without `group`.
        measurements: by name.
        repeats: the values in all repeats, by measurement; empty if prompts were asked once.
    """

    def __init__(self, record: TestRecord, match: str | None = None, group: str | None = None) -> None:
        self._is_given = record.sut_uid == GIVEN
        self._match, self._group, self._cluster = match, group, record.cluster
        self._over = record.sut_options
        self._ignored = (*_UNJUDGED, *(_OF_AN_ANSWER if self._is_given else ()))
        self.index, self.failed = array("q"), array("b")
        self.keys = {name: array("q") for name in ("id", "source", "name", "input", "field")}
        self.targets, self.questions, self.clusters = array("q"), array("q"), array("q")
        self.groups = array("q")
        self.group_names: dict[str, int] = {}
        self.measurements = MeasurementColumns({})
        self.repeats: dict[str, RepeatedValues] = {}

    def add(self, line: Mapping[str, Any]) -> None:
        """Add an item.

        Args:
            line: the JSON of its record.

        Raises:
            LookupError, TypeError, AttributeError: it is not the JSON of a record as it is written; nothing is added.
        """
        _check_types(line)
        index, item, repeats = line["index"], line["test_item"], line.get("repeat_measurements", ())
        prompts = item["prompts"][:1] if self._is_given else item["prompts"]
        context = _context_of(item, prompts)
        is_case = _is_case(context)
        asked = hash(tuple([_question_of(prompt["prompt"]) for prompt in prompts]))
        sources = [prompt["source_id"] for prompt in prompts]
        judged_by = hashable(self._judged_by(context) if is_case else context)
        if len(prompts) > 1:
            judged_by = (judged_by, *[hashable(prompt["context"]) for prompt in prompts])

        self.index.append(index)
        self.failed.append(line["kind"] != "item")
        self.keys["id"].append(hash(item["id"]))
        self.keys["source"].append(ABSENT if self._is_given or None in sources else hash(tuple(sources)))
        self.keys["name"].append(_hash_of(context.get("name")) if is_case else ABSENT)
        self.keys["input"].append(asked)
        if self._match is not None:
            self.keys["field"].append(_hash_of(field_of_context(context, self._match)))
        self.targets.append(hash(judged_by))
        if not self._is_given:
            self.questions.append(self._question(asked, prompts))
        if self._cluster is not None:
            value = field_of_context(context, self._cluster)
            self.clusters.append(hash(("alone", index)) if value is None else _hash_of(value))
        if self._group is not None:
            group = _group_name(field_of_context(context, self._group))
            self.groups.append(self.group_names.setdefault(group, len(self.group_names)))
        for name in {name: None for values in repeats for name in values}:
            values = [repeat[name] for repeat in repeats if name in repeat]
            self.repeats.setdefault(name, RepeatedValues()).add(len(self.index) - 1, values)
        self.measurements.add(index, line["measurements"], line["binary"])

    def target(self, item: Mapping[str, Any]) -> Any:
        """Return what the answer to an item is judged by, apart from the contexts of several prompts.

        Args:
            item: the JSON of an item.
        """
        context = _context_of(item, item["prompts"][:1] if self._is_given else item["prompts"])
        return self._judged_by(context) if _is_case(context) else context

    def _judged_by(self, case: Mapping[str, Any]) -> dict[str, Any]:
        """The references of a golden or test case for a good answer."""
        return {
            name: value for name, value in case.items() if value is not None and name not in self._ignored
        }

    def _question(self, asked: int, prompts: Sequence[Mapping[str, Any]]) -> int:
        """The hash of prompts with the options that they were asked with, beside those of the run."""
        own = [prompt["prompt"]["options"] for prompt in prompts if "options" in prompt["prompt"]]
        if not own:
            return asked
        over = {name: value for name, value in self._over.items() if value is not None}
        laid_over = [
            {name: value for name, value in {**options, **over}.items() if value is not None}
            for options in own
        ]
        return asked if all(options == over for options in laid_over) else hash((asked, hashable(laid_over)))


class RepeatedValues:
    """The values of a measurement in all repeats of the items, in one row for each item."""

    def __init__(self) -> None:
        self._values = array("d")
        self._ends = array("q")  # of the values of each row

    def add(self, row: int, values: Iterable[float]) -> None:
        """Add the values of a row; the rows before it that were not added have none."""
        self._ends.extend([len(self._values)] * (row - len(self._ends)))
        self._values.extend(values)
        self._ends.append(len(self._values))

    def of_items(self, rows: NDArray[np.int64]) -> ReadRepeats:
        """What gives the values of the item at a place among those in these rows."""
        return lambda place: self._of_row(int(rows[place]))

    def _of_row(self, row: int) -> "array[float]":
        if row >= len(self._ends):
            return array("d")
        return self._values[self._ends[row - 1] if row else 0 : self._ends[row]]


def _check_types(line: Mapping[str, Any]) -> None:
    """Refuse a line whose values have other types than those that are written."""
    index, measured = line["index"], (line["measurements"], *line.get("repeat_measurements", ()))
    if not (
        type(index) is int
        and 0 <= index < _MOST
        and type(line["test_item"]["id"]) is str
        and type(line["binary"]) in (list, tuple)
        and all(type(number) is float for values in measured for number in values.values())
    ):
        raise TypeError(index)


def _context_of(item: Mapping[str, Any], prompts: Sequence[Mapping[str, Any]]) -> Any:
    return prompts[0]["context"] if item["context"] is None and len(prompts) == 1 else item["context"]


def _is_case(context: Any) -> bool:
    return type(context) is dict and ("input" in context or "turns" in context)


def _question_of(prompt: Mapping[str, Any]) -> str | tuple[tuple[str, str], ...]:
    if "messages" in prompt:
        return tuple([(message["role"], message["text"]) for message in prompt["messages"]])
    text: str = prompt["text"]
    return text


def _group_name(value: object) -> str:
    """The name of the group of items with a value; "" where there is none."""
    if value is None or isinstance(value, str):
        return value or ""
    return str(value) if type(value) is int else json.dumps(value, sort_keys=True)  # which takes its time


def _hash_of(value: object) -> int:
    """The hash of a JSON value; `ABSENT` where there is none."""
    return ABSENT if value is None else hash(("value", hashable(value)))  # the hash of 0 and "" is 0


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
        names: of the measurements that any item of the run has.
        bool_ranges: (0, 1) for each measurement whose values were all given as bool.
        failed: (n,) whether each item failed; it may have measurements all the same.
        targets: (n,) hashes of what each answer is judged by: the item's context.
        clusters: (n,) codes; items with equal codes are not independent. None if every item is its own cluster.
        questions: (n,) hashes of the prompts with their options; None if no SUT was asked.
        origins: (n,) hashes of the data set and the item's id in it; None if the record names no data.
        groups: (n,) the group of each item, "" where it has none; None without `group`.
    """

    def __init__(self, run: RecordedRun, match: str | None = None, group: str | None = None) -> None:
        self.run = run
        self._columns = columns = ItemColumns(run.record, match, group)
        offsets = array("q", _add_items(run, columns))
        self.names, self.bool_ranges = columns.measurements.names, columns.measurements.ranges()
        indices = np.frombuffer(columns.index, dtype=np.int64)
        order = np.argsort(indices, kind="stable")
        ordered = indices[order]
        is_last = np.append(ordered[1:] != ordered[:-1], np.ones(min(1, len(order)), dtype=bool))
        self._rows: NDArray[np.int64] = order[is_last]
        self._offsets = self._of_rows(offsets)
        self.failed = self._of_rows(columns.failed).astype(bool)
        self.targets = self._of_rows(columns.targets)
        self.questions = self._of_rows(columns.questions) if len(columns.questions) else None
        self.origins = self._origins()
        labels = [self._of_rows(column) for column in (columns.questions, columns.clusters) if len(column)]
        self.clusters = joined_clusters(
            *(labeling for labeling in labels if len(np.unique(labeling)) < len(labeling))
        )
        names = list(columns.group_names)
        self.groups = None if group is None else [names[number] for number in self._of_rows(columns.groups)]

    def __len__(self) -> int:
        return len(self._rows)

    def _origins(self) -> NDArray[np.int64] | None:
        """Return hashes of the data set, or else of the data that the test read, and the item's id."""
        record = self.run.record
        data = record.dataset.digest if record.dataset else tuple(sorted(record.dependency_versions.values()))
        if not data:
            return None
        return np.fromiter((hash((data, key)) for key in self.keys("id").tolist()), np.int64, count=len(self))

    def keys(self, name: str) -> NDArray[np.int64]:
        """Hashes of what items can be paired by, (n,): see `ItemColumns.keys`."""
        return self._of_rows(self._columns.keys[name])

    def values(self, name: str) -> NDArray[np.float64]:
        """A measurement of the items, (n,); NaN where an item does not have it."""
        values: NDArray[np.float64] = self._columns.measurements.values(name)[self._rows]
        return values

    def repeats(self, places: NDArray[np.int64]) -> dict[str, ReadRepeats]:
        """For each measurement what gives its values in all repeats of an item; empty if prompts were asked once.

        Args:
            places: of the items among those of this run.
        """
        rows = self._rows[places]
        return {name: held.of_items(rows) for name, held in self._columns.repeats.items()}

    def target(self, place: int) -> Any:
        """Return what the answer to an item is judged by: the fields of its context."""
        (record,) = self.read([place])
        return self._columns.target(record.test_item.model_dump(mode="json"))

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

    def _of_rows(self, column: "array[int]") -> NDArray[Any]:
        held: NDArray[Any] = np.frombuffer(column, dtype=column.typecode)[self._rows]
        return held


def _add_items(run: RecordedRun, columns: ItemColumns) -> Iterator[int]:
    """Add all items of a run to columns, and where the line of each begins in the journal (without it, its number)."""
    if run.folder is None:
        for number, item in enumerate(run.record.iter_items()):
            columns.add(item.model_dump(mode="json", include=_READ))
            yield number
        return
    journal = run.folder.journal
    for number, offset, line in counted_lines(journal):
        try:  # the quick way, which validates no answers
            columns.add(from_json(line, allow_inf_nan=False))
        except (LookupError, TypeError, AttributeError, ValueError):
            record = item_from_json(line, f"{journal}, line {number}")  # says what is wrong
            columns.add(record.model_dump(mode="json", include=_READ))
        yield offset
