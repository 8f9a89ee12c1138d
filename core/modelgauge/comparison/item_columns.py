"""`ItemColumns`: what a comparison needs of the items of a run, as columns of numbers: texts are hashed."""

import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from modelgauge.data.case_fields import RUNTIME_FIELDS
from modelgauge.data.records import TestRecord
from modelgauge.data.results import GIVEN
from modelgauge.engine.measurement_columns import MeasurementColumns
from modelgauge.engine.source import fields_of_context

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ABSENT = 0
"""The hash of a key that an item does not have."""

_UNJUDGED = ("comments", "tags", "source_file")  # notes in a golden
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
        questions: hashes of the prompts with their options; empty where nobody was asked.
        clusters: hashes of the field by which the run's items form clusters; empty where it names none.
        groups: for each item the number of its group in `group_names`; empty without `group`.
        measurements: by name.
        repeats: the values in all repeats, by measurement; empty where prompts were asked once.
    """

    def __init__(self, record: TestRecord, match: str | None = None, group: str | None = None) -> None:
        self._is_given = record.sut_uid == GIVEN
        self._match, self._group, self._cluster = match, group, record.cluster
        self._reads_fields = (match, group, record.cluster) != (None, None, None)
        self._over = record.sut_options
        self._without_options = _json(self._over)
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
        index, item, measurements = line["index"], line["test_item"], line["measurements"]
        repeats, binary = line.get("repeat_measurements", ()), line["binary"]
        for values in (measurements, *repeats):
            _check_floats(values)
        if type(index) is not int or type(item["id"]) is not str or type(binary) not in (list, tuple):
            raise TypeError(index)
        prompts = item["prompts"][:1] if self._is_given else item["prompts"]
        context = prompts[0]["context"] if item["context"] is None and len(prompts) == 1 else item["context"]
        is_case = type(context) is dict and ("input" in context or "turns" in context)
        asked = tuple([_asked(one["prompt"]) for one in prompts])
        keys = {
            "id": hash(item["id"]),
            "source": ABSENT if self._is_given else _hash_of_all([one["source_id"] for one in prompts]),
            "name": _hash_of_all([context.get("name")]) if is_case else ABSENT,
            "input": hash(asked),
        }
        fields = fields_of_context(context) if self._reads_fields else {}
        further = [one["context"] for one in prompts] if len(prompts) > 1 else []
        target = hash(_json([self._judged_by(context) if is_case else context, *further]))
        question = hash((asked, *[self._options(one["prompt"]) for one in prompts]))

        self.index.append(index)
        self.failed.append(line["kind"] != "item")
        for name, key in keys.items():
            self.keys[name].append(key)
        if self._match is not None:
            value = fields.get(self._match)
            self.keys["field"].append(ABSENT if value is None else hash(_json(value)))
        self.targets.append(target)
        if not self._is_given:
            self.questions.append(question)
        if self._cluster is not None:
            value = fields.get(self._cluster)
            self.clusters.append(hash(index if value is None else _json(value)))
        if self._group is not None:
            value = fields.get(self._group, "")
            group = value if isinstance(value, str) else _json(value)
            self.groups.append(self.group_names.setdefault(group, len(self.group_names)))
        for name in {name: None for values in repeats for name in values}:
            values = [one[name] for one in repeats if name in one]
            self.repeats.setdefault(name, RepeatedValues()).add(len(self.index) - 1, values)
        self.measurements.add(index, measurements, binary)

    def _judged_by(self, case: Mapping[str, Any]) -> dict[str, Any]:
        """What is known of a good answer to a golden or test case."""
        return {name: one for name, one in case.items() if one is not None and name not in self._ignored}

    def _options(self, prompt: Mapping[str, Any]) -> str | None:
        """The options with which a prompt was asked, as text; None for those of the run alone."""
        own = prompt.get("options")
        if own is None:
            return None
        asked = _json({name: one for name, one in {**own, **self._over}.items() if one is not None})
        return None if asked == self._without_options else asked


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

    def of_row(self, row: int) -> "array[float]":
        """The values of a row, (repeats,)."""
        if row >= len(self._ends):
            return array("d")
        return self._values[self._ends[row - 1] if row else 0 : self._ends[row]]


class RepeatsOfItems(Sequence[Sequence[float]]):
    """The values of a measurement in all repeats of some items, (n, R_i); none for an item that failed.

    Args:
        values: of all items of a run.
        rows: (n,) of the items.
    """

    def __init__(self, values: RepeatedValues, rows: "NDArray[np.int64]") -> None:
        self._values, self._rows = values, rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, place: int) -> Sequence[float]: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Sequence[float]]: ...
    def __getitem__(self, place: int | slice) -> Sequence[float] | Sequence[Sequence[float]]:
        if isinstance(place, slice):
            return RepeatsOfItems(self._values, self._rows[place])
        return self._values.of_row(int(self._rows[place]))


def _check_floats(values: Mapping[str, Any]) -> None:
    for one in values.values():
        if type(one) is not float:
            raise TypeError(one)


def _asked(prompt: Mapping[str, Any]) -> str | tuple[tuple[str, str], ...]:
    if "messages" in prompt:
        return tuple([(one["role"], one["text"]) for one in prompt["messages"]])
    text: str = prompt["text"]
    return text


def _hash_of_all(parts: Sequence[object]) -> int:
    """The hash of some texts; `ABSENT` where one is missing."""
    return ABSENT if None in parts else hash(tuple(parts))


def _json(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
