"""`ItemColumns`: measurements and hashes of items, read from the JSON of their records."""

import json
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelgauge.data.case_fields import RUNTIME_FIELDS
from modelgauge.data.prompts import parts_in
from modelgauge.data.records import TestRecord
from modelgauge.data.responses import hashable
from modelgauge.data.results import GIVEN
from modelgauge.engine.items.measurement_columns import MeasurementColumns
from modelgauge.engine.items.source import get_context_field
from modelgauge.engine.run_files.lines import Summary

ReadRepeats = Callable[[int], Sequence[float]]
"""Gives the values of a measurement in all repeats of the item at a place; none if it failed."""

ABSENT = 0
"""The hash of a key that an item does not have."""

_MOST = 2**63  # as many items as an index of 64 bits holds
# Names, inputs and notes of goldens and test cases; the other fields say what a good answer is.
_UNJUDGED = ("name", "input", "comments", "tags", "source_file")
_OF_AN_ANSWER = (*RUNTIME_FIELDS, "turns")  # in a test case whose answer was given


class ItemColumns:
    """The items of a run, one row for each in the order in which they are added.

    Args:
        run: its record.
        match: a field of the items' contexts by which items are paired; None for none.
        group: the field by whose values items form groups; None for none.

    Attributes:
        keys: hashes of what items can be paired by: "id", "source", "name", "input" (the prompts without options),
            and "field" (that of `match`); `ABSENT` where an item does not have it.
        targets: hashes of the contexts, which answers are judged by.
        questions: hashes of the prompts with their options; empty if no SUT was asked.
        clusters: hashes of the field by which the run's items form clusters; empty if it names none.
        groups: for each item the number of its group in `group_names`; empty without `group`.
        measurements: by name.
        repeats: the values in all repeats, by measurement; empty if prompts were asked once.
    """

    def __init__(self, run: TestRecord, match: str | None = None, group: str | None = None) -> None:
        self._is_given = run.sut_uid == GIVEN
        self._match, self._group, self._cluster = match, group, run.cluster
        self._over = run.sut_options
        self._ignored = (*_UNJUDGED, *(_OF_AN_ANSWER if self._is_given else ()))
        self.keys = {name: array("q") for name in ("id", "source", "name", "input", "field")}
        self.targets, self.questions, self.clusters = array("q"), array("q"), array("q")
        self.groups = array("q")
        self.group_names: dict[str, int] = {}
        self.measurements = MeasurementColumns({})
        self.repeats: dict[str, RepeatedValues] = {}

    def add(self, line: Mapping[str, Any]) -> Summary:
        """Add an item, and return its summary.

        Args:
            line: the JSON of its record.

        Raises:
            LookupError, TypeError, AttributeError: it is not the JSON of a record as it is written; nothing is added.
        """
        _check_types(line)
        index, item, repeats = line["index"], line["test_item"], line.get("repeat_measurements", ())
        prompts = item["prompts"][:1] if self._is_given else item["prompts"]
        context = _get_context(item, prompts)
        is_case = _is_case(context)
        asked = hash(tuple([parts_in(prompt["prompt"]) for prompt in prompts]))
        sources = [prompt["source_id"] for prompt in prompts]
        judged_by = hashable(self._judged_by(context) if is_case else context)
        if len(prompts) > 1:
            judged_by = (judged_by, *[hashable(prompt["context"]) for prompt in prompts])

        self.keys["id"].append(hash(item["id"]))
        self.keys["source"].append(ABSENT if self._is_given or None in sources else hash(tuple(sources)))
        self.keys["name"].append(_hash_json(context.get("name")) if is_case else ABSENT)
        self.keys["input"].append(asked)
        if self._match is not None:
            self.keys["field"].append(_hash_json(get_context_field(context, self._match)))
        self.targets.append(hash(judged_by))
        if not self._is_given:
            self.questions.append(self._question(asked, prompts))
        if self._cluster is not None:
            value = get_context_field(context, self._cluster)
            self.clusters.append(hash(("alone", index)) if value is None else _hash_json(value))
        if self._group is not None:
            group = _group_name(get_context_field(context, self._group))
            self.groups.append(self.group_names.setdefault(group, len(self.group_names)))
        for name in {name: None for values in repeats for name in values}:
            values = [repeat[name] for repeat in repeats if name in repeat]
            self.repeats.setdefault(name, RepeatedValues()).add(len(self.measurements), values)
        self.measurements.add(index, line["measurements"], line["binary"])
        is_scored = line["kind"] == "item"
        return Summary(index, is_scored, not is_scored or bool(line.get("failed_repeats")))

    def target(self, item: Mapping[str, Any]) -> Any:
        """Return what the answer to an item is judged by, apart from the contexts of several prompts.

        Args:
            item: the JSON of an item.
        """
        context = _get_context(item, item["prompts"][:1] if self._is_given else item["prompts"])
        return self._judged_by(context) if _is_case(context) else context

    def _judged_by(self, case: Mapping[str, Any]) -> dict[str, Any]:
        """Return the references for a good answer in a golden or test case."""
        return {
            name: value for name, value in case.items() if value is not None and name not in self._ignored
        }

    def _question(self, asked: int, prompts: Sequence[Mapping[str, Any]]) -> int:
        """Return a hash of the prompts with their options, other than those of the run."""
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
        """Return a function that maps an item's position in these rows to its values."""
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


def _get_context(item: Mapping[str, Any], prompts: Sequence[Mapping[str, Any]]) -> Any:
    return prompts[0]["context"] if item["context"] is None and len(prompts) == 1 else item["context"]


def _is_case(context: Any) -> bool:
    return type(context) is dict and ("input" in context or "turns" in context)


def _group_name(value: object) -> str:
    """Return the name of the group for a value; "" if there is none."""
    if value is None or isinstance(value, str):
        return value or ""
    return str(value) if type(value) is int else json.dumps(value, sort_keys=True)  # which takes its time


def _hash_json(value: object) -> int:
    """Return the hash of a JSON value, or `ABSENT`."""
    return ABSENT if value is None else hash(("value", hashable(value)))  # the hash of 0 and "" is 0
