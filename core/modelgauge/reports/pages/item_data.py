"""The data of items as a page has them: short rows for the table, and whole records in compressed parts.

Records have the form of `modelgauge show --items --json`. Nothing here is markup: the page's script shows texts as
texts.
"""

import base64
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from typing import Any

from modelgauge.data.item_records import ItemRecord, outcome_of
from modelgauge.data.prompts import ChatPrompt
from modelgauge.reports.item_texts import expected_text

PART = 100
"""Items whose records are compressed together."""
_LEVEL = 3  # of gzip: higher ones take twice the time for a tenth less
_SNIPPET, _SEARCHED = 240, 2000
_SEARCHED_IN_ALL = 20_000_000  # characters that a browser searches in less than 100 ms
_MOST_VALUES = 30
_FEW = 3  # questions: so few may begin alike by chance


@dataclass(slots=True)
class ItemTable:
    """The rows of a run's items, gathered while their records are written.

    Args:
        number: about how many items there will be.
        redact: whether prompts, answers and contexts are left out.
        rows: one for each item.
        names: of all measurements, in the order in which they came.
        common: what the questions begin with, as the first ones show: instructions and examples.
    """

    number: int
    redact: bool = False
    rows: list[dict[str, Any]] = field(default_factory=list)
    names: dict[str, None] = field(default_factory=dict)
    common: str = ""

    def parts(self, records: Iterable[ItemRecord]) -> Iterator[str]:
        """Take in records, and return them in parts of `PART` as base64 of gzipped JSON.

        Args:
            records: in the order of the test.
        """
        left = iter(records)
        while part := list(islice(left, PART)):
            if not self.rows and not self.redact:
                self.common = _common_beginning([_question(record) for record in part])
            for record in part:
                self.rows.append(self._row(record))
                self.names.update(dict.fromkeys(record.measurements))
            yield packed(_list(map(self._whole, part)))

    def measured(self, name: str) -> list[float]:
        """The values of a measurement, of the items that have it."""
        return [row["measured"][name] for row in self.rows if name in row["measured"]]

    def packed(self) -> str:
        """The rows as columns: base64 of gzipped JSON; see `static/run_items.js` for what it does with each."""
        columns: dict[str, Iterable[Any]] = {
            name: map(itemgetter(name), self.rows)
            for name in ("id", "question", "answer", "expected", "search", "state")
        }
        measured = {name: [row["measured"].get(name) for row in self.rows] for name in self.names}
        others = {
            "part": PART,
            "common": self.common.strip(),
            "measured": measured,
            "facets": dict(_facets([row["facets"] for row in self.rows])),
        }
        return packed(_object(others, columns))

    def _row(self, record: ItemRecord) -> dict[str, Any]:
        row = {
            "id": record.test_item.id or "",
            "state": outcome_of(record),
            "measured": record.measurements,
            "facets": {},
            **dict.fromkeys(("question", "answer", "expected", "search"), ""),
        }
        if self.redact:
            return row
        question, answer = _question(record), _answer(record)
        expected = expected_text(record.test_item)
        most = min(_SEARCHED, max(_SNIPPET, _SEARCHED_IN_ALL // max(self.number, 1)))
        searched = "\n".join([record.test_item.id or "", answer[:most], expected, question[-most:]])
        row.update(
            question=question.removeprefix(self.common)[:_SNIPPET],
            answer=_ending(answer),
            expected=expected[:_SNIPPET],
            search=searched[: 2 * most].lower(),
            facets=_labels(record),
        )
        return row

    def _whole(self, record: ItemRecord) -> str:
        if not self.redact:
            return record.model_dump_json(exclude_none=True)
        kept = {"kind", "index", "measurements", "stage", "source_uid", "error_type"}
        return record.model_dump_json(include=kept)


def packed(texts: Iterable[str]) -> str:
    """Texts behind each other as base64 of their gzipped UTF-8; the same texts give the same bytes."""
    compressor = zlib.compressobj(
        _LEVEL, wbits=zlib.MAX_WBITS | 16
    )  # with the header of gzip, without a time
    data = b"".join(compressor.compress(text.encode("utf-8")) for text in texts)
    return base64.b64encode(data + compressor.flush()).decode("ascii")


def _list(elements: Iterable[str]) -> Iterator[str]:
    yield "["
    for place, element in enumerate(elements):
        yield f",{element}" if place else element
    yield "]"


def _object(values: Mapping[str, Any], lists: Mapping[str, Iterable[Any]]) -> Iterator[str]:
    """A JSON object in pieces, so that long lists are never one text."""
    yield json.dumps(values, ensure_ascii=False)[:-1]
    for name, elements in lists.items():
        yield f",{json.dumps(name)}:"
        yield from _list(json.dumps(element, ensure_ascii=False) for element in elements)
    yield "}"


def _question(record: ItemRecord) -> str:
    prompt = record.test_item.prompts[0].prompt
    return prompt.messages[-1].text if isinstance(prompt, ChatPrompt) else prompt.text


def _answer(record: ItemRecord) -> str:
    for interaction in record.interactions:
        for one in interaction.response.completions:
            return one.completion.text
    return ""


def _ending(answer: str) -> str:
    """The last line of an answer, where the result stands if it is long; an ellipsis stands for what is before."""
    lines = answer.split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f"{'… ' if len(lines) > 1 or len(last) > _SNIPPET else ''}{last[-_SNIPPET:]}"


def _labels(record: ItemRecord) -> dict[str, str]:
    """Short values by which items can be filtered: fields of the context, and annotations."""
    found: dict[str, Any] = {}
    contexts = [record.test_item.context, *[one.context for one in record.test_item.prompts]]
    for context in contexts:
        found.update(context if isinstance(context, dict) else {})
    for interaction in record.interactions:
        for one in interaction.response.completions:
            found.update(one.annotations)
    return {
        name: str(value)
        for name, value in found.items()
        if isinstance(value, str | bool | int) and len(str(value)) <= _SNIPPET
    }


def _facets(labels: list[dict[str, str]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The labels that have few values: (name, values and for each item the place of its value, -1 without one)."""
    for name in dict.fromkeys(name for one in labels for name in one):
        values = dict.fromkeys(one[name] for one in labels if name in one)
        if 1 < len(values) <= min(_MOST_VALUES, len(labels) // 2):
            places = {value: place for place, value in enumerate(values)}
            yield name, {"values": list(values), "of": [places.get(one.get(name, ""), -1) for one in labels]}


def _common_beginning(questions: list[str]) -> str:
    """What all questions begin with, up to the end of a paragraph: instructions and examples."""
    if len(questions) < _FEW:
        return ""
    first, last = min(questions), max(questions)  # what these share, all between them share
    same = next(
        (place for place, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), 0
    )
    return first[: first.rfind("\n\n", 0, same) + 2] if "\n\n" in first[:same] else ""
