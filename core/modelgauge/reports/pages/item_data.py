"""The data of items as a page has them: short rows for the table, and whole records in compressed parts.

Records are lines of the journal, and are never made into objects: 10,000 items shall take a second. Nothing here is
markup: the page's script shows texts as texts.
"""

import base64
import math
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from pydantic_core import from_json, to_json

from modelgauge.data.item_records import Outcome, item_from_json, outcome
from modelgauge.reports.item_texts import expected_text

PART = 100
"""Items whose records are compressed together."""
_LEVEL = 4  # of gzip: higher ones take three times as long for a fiftieth less
_SNIPPET = 240
_MOST_VALUES = 30
_FEW = 3  # questions: so few may begin alike by chance
_IN_PAGES_WITHOUT_TEXTS = ("kind", "index", "measurements", "stage", "source_uid", "error_type")
_UNUSUAL = (ValueError, TypeError, LookupError, AttributeError, RecursionError)


class Packed:
    """A JSON list that is compressed as it grows: gzip as base64; the same elements give the same bytes."""

    def __init__(self) -> None:
        self._compressor = zlib.compressobj(
            _LEVEL, wbits=zlib.MAX_WBITS | 16
        )  # with gzip's header, without a time
        self._done: list[bytes] = []
        self._before = b"["

    def add(self, element: bytes) -> None:
        """Append an element, which is JSON."""
        self._done.append(self._compressor.compress(self._before + element))
        self._before = b","

    def text(self) -> str:
        """The whole list, to which nothing can be added any more."""
        end = b"[]" if self._before == b"[" else b"]"
        self._done += [self._compressor.compress(end), self._compressor.flush()]
        return base64.b64encode(b"".join(self._done)).decode("ascii")


def packed(value: Any) -> str:
    """A JSON value alone in a list, as `Packed` writes it."""
    only = Packed()
    only.add(to_json(value))
    return only.text()


@dataclass(slots=True)
class Labels:
    """A label of each item, where few labels occur.

    Args:
        most: how many may occur: of more, none is kept.
        values: the labels, in the order in which they came.
        of: for each item the place of its label, -1 without one.
    """

    most: int = _MOST_VALUES
    values: dict[str, int] = field(default_factory=dict)
    of: "array[int]" = field(default_factory=lambda: array("l"))

    def add(self, place: int, value: str) -> None:
        """Label the item at a place; those before it that were not labelled have none."""
        if len(self.values) > self.most:
            return
        self.of.extend([-1] * (place - len(self.of)))
        self.of.append(self.values.setdefault(value, len(self.values)))

    def data(self, number: int) -> dict[str, Any]:
        """The labels of all items as JSON."""
        return {"values": list(self.values), "of": [*self.of, *[-1] * (number - len(self.of))]}


@dataclass(frozen=True, slots=True)
class Row:
    """What the table shows of an item.

    Args:
        id: of the item.
        state: what became of it.
        measured: its measurements.
        question: its last message.
        answer: its first completion.
        expected: the right answers.
        labels: short values by which it can be found.
    """

    id: str
    state: Outcome
    measured: dict[str, float]
    question: str
    answer: str
    expected: str
    labels: dict[str, str]

    @classmethod
    def of(cls, record: dict[str, Any]) -> "Row":
        """The row of an item, from its line in a journal."""
        item, asked = record["test_item"], record.get("interactions") or ()
        prompt = item["prompts"][0]["prompt"]
        completions = [one for each in asked for one in each["response"]["completions"]]
        contexts = [item.get("context"), *(one.get("context") for one in item["prompts"])]
        measured = {name: float(value) for name, value in (record.get("measurements") or {}).items()}
        has_failures = bool(record.get("failed_repeats"))
        return cls(
            str(item.get("id") or ""),
            outcome(record["kind"], measured, record.get("binary") or (), has_failures=has_failures),
            measured,
            str(prompt["messages"][-1]["text"] if "messages" in prompt else prompt["text"]),
            str(completions[0]["completion"]["text"]) if completions else "",
            expected_text(contexts),
            _labels(contexts, (one.get("annotations") or {} for one in completions)),
        )


class ItemTable:
    """The rows of a run's items, gathered while their records are written.

    Args:
        redact: whether prompts, answers and contexts are left out.
    """

    def __init__(self, *, redact: bool = False) -> None:
        self._redact = redact
        self.number = 0
        self.states = Labels()
        self.labels: dict[str, Labels] = {}
        self._measured: dict[str, array[float]] = {}
        self._texts = Packed()
        self._common = ""

    def parts(self, lines: Iterable[bytes]) -> Iterator[str]:
        """Take in the lines of a journal, and return them in parts of `PART` as base64 of gzipped JSON.

        Args:
            lines: in the order of the test.
        """
        left = iter(lines)
        while part := [_read(line) for line in islice(left, PART)]:
            if not self.number and not self._redact:
                self._common = _common_beginning([row.question for _, row, _ in part])
            records = Packed()
            for line, row, record in part:
                self._add(row)
                kept = {name: record[name] for name in _IN_PAGES_WITHOUT_TEXTS if name in record}
                records.add(to_json(kept) if self._redact else line)
            yield records.text()

    def measured(self) -> Iterator[tuple[str, list[float]]]:
        """Each measurement, with its values of the items that have it."""
        for name, values in self._measured.items():
            yield name, [value for value in values if math.isfinite(value)]

    def blocks(self) -> Iterator[tuple[str, str]]:
        """The rows as named blocks: `texts` has id, question, answer and right answer of each item, `rows` the rest."""
        yield "texts", self._texts.text()
        facets = {
            name: labels.data(self.number)
            for name, labels in self.labels.items()
            if 1 < len(labels.values) <= min(labels.most, self.number // 2)
        }
        measured = {
            name: [value if math.isfinite(value) else None for value in self._padded(values)]
            for name, values in self._measured.items()
        }
        rows = {
            "part": PART,
            "common": self._common.strip(),
            "state": self.states.data(self.number),
            "measured": measured,
            "facets": facets,
        }
        yield "rows", packed(rows)

    def _add(self, row: Row) -> None:
        self.states.add(self.number, row.state)
        for name, value in row.measured.items():
            self._padded(self._measured.setdefault(name, array("d"))).append(value)
        texts = [row.id, "", "", ""]
        if not self._redact:
            for name, label in row.labels.items():
                self.labels.setdefault(name, Labels()).add(self.number, label)
            question = row.question.removeprefix(self._common)[:_SNIPPET]
            texts[1:] = question, _ending(row.answer), row.expected[:_SNIPPET]
        self._texts.add(to_json(texts))
        self.number += 1

    def _padded(self, values: "array[float]") -> "array[float]":
        """The values of a measurement, with NaN for the latest items that have none."""
        values.extend([math.nan] * (self.number - len(values)))
        return values


def _read(line: bytes) -> tuple[bytes, Row, dict[str, Any]]:
    """A line as a page has it, its row and its JSON.

    Raises:
        RecordError: it is no line of a journal.
    """
    try:  # the quick way, as in `item_from_json`
        record = from_json(line, allow_inf_nan=False)
        return line, Row.of(record), record
    except _UNUSUAL:
        line = item_from_json(line, "A line of the journal").model_dump_json().encode()
        record = from_json(line)
        return line, Row.of(record), record


def _ending(answer: str) -> str:
    """The last line of an answer, where the result stands if it is long; an ellipsis stands for what is before."""
    lines = answer.rstrip().rsplit("\n", 1)
    last = lines[-1].strip()
    return f"{'… ' if len(lines) > 1 or len(last) > _SNIPPET else ''}{last[-_SNIPPET:]}"


def _labels(contexts: Iterable[Any], annotations: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Short values by which items can be filtered: fields of the context, and annotations."""
    return {
        name: str(value)
        for part in (*contexts, *annotations)
        if isinstance(part, dict)
        for name, value in part.items()
        if (isinstance(value, str) and len(value) <= _SNIPPET) or isinstance(value, bool | int)
    }


def _common_beginning(questions: list[str]) -> str:
    """What all questions begin with, up to the end of a paragraph: instructions and examples."""
    if len(questions) < _FEW:
        return ""
    first, last = min(questions), max(questions)  # what these share, all between them share
    same = next(
        (place for place, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), 0
    )
    return first[: first.rfind("\n\n", 0, same) + 2] if "\n\n" in first[:same] else ""
