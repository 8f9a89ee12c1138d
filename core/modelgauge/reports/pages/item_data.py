"""The data of items as a page has them: short rows for the table, and whole records in compressed parts.

Records are read as plain JSON, and are never made into objects: 10,000 items shall take a second. Nothing here is
markup: the page's script shows texts as texts.
"""

import math
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import Any

from pydantic_core import to_json

from modelgauge.config.redaction import redacted_json
from modelgauge.data.records import TestRecord
from modelgauge.data.results import Threshold
from modelgauge.engine.items.item_frame import ItemRecords, read_lines
from modelgauge.engine.run_files.lines import ItemLine
from modelgauge.reports.failures import failure_key
from modelgauge.reports.pages.classes import (
    ANSWERED,
    LONGEST_CLASS,
    MOST_CLASSES,
    MOST_ENDINGS,
    RIGHT,
    classified,
    ending_of,
)
from modelgauge.reports.pages.columns import Labels, Packed, json_numbers, packed
from modelgauge.reports.pages.item_columns import ItemColumn, item_columns, reasons, title_of_failure
from modelgauge.reports.pages.item_rows import SECONDS, SNIPPET, Row, answer_end
from modelgauge.runs.recorded_run import RecordedRun
from modelgauge.wording.phrases import in_common

MOST_ITEMS = 100_000
"""Items of a run that a page holds: more make a file that browsers do not open."""

PART = 100
"""Items whose records are compressed together."""
_MOST_BYTES = 1 << 24  # of lines that are held at once
_LONGEST_NAME, _MOST_FACETS = 80, 16  # more controls than that hide the items
_MOST_KINDS = 1100  # of failures: above what `failure_key` tells apart
_FEW = 3  # questions: so few may begin alike by chance
_IN_PAGES_WITHOUT_TEXTS = ("kind", "index", "measurements", "stage", "source_uid", "error_type")
_SENTENCE_END = re.compile(r"\n\n|[.?!]\s+")


def _first_of(lines: Iterator[ItemLine], most: int) -> Iterator[ItemLine]:
    """Return the next lines, up to a number; fewer if they are long."""
    size = 0
    for line in islice(lines, most):
        yield line
        size += len(line.text)
        if size > _MOST_BYTES:
            return


class ItemTable:
    """The rows of a run's items, gathered while their records are written.

    Exhaust `parts` or `taken` first: all else is complete, and may be read, once it has taken in the last line.

    Args:
        redact: takes secrets out of a text; those that were known when the run was made are taken out already.
        without_texts: whether prompts, answers and contexts are left out.

    Attributes:
        measured: the values of each measurement, NaN for items that have none.
        used: what items took: seconds, tokens and dollars, NaN where that is not known.
        common: what all questions begin with.
    """

    def __init__(self, *, redact: Callable[[str], str] = str, without_texts: bool = False) -> None:
        self._redact, self._without_texts = redact, without_texts
        self.number = 0
        self.states = Labels()
        self._labels: dict[str, Labels] = defaultdict(Labels)
        self.binary: dict[str, None] = {}
        self.failures: Counter[tuple[str, ...]] = Counter()
        self.messages: dict[tuple[str, ...], str] = {}
        self.started: list[tuple[float, float]] = []
        self.measured: dict[str, array[float]] = {}
        self.used: dict[str, array[float]] = {}
        self._failed = Labels(most=_MOST_KINDS)
        self._expected, self._endings = Labels(most=MOST_CLASSES), Labels(most=MOST_ENDINGS)
        self._texts = Packed()
        self.common = ""
        self.has_expected = False
        self.thresholds = dict[str, Threshold]()

    def parts(self, run: RecordedRun | TestRecord) -> Iterator[str]:
        """Take in the first `MOST_ITEMS` items of a run, and return them in parts of `PART` as base64 of gzipped JSON.

        Args:
            run: the run, or its record.

        Raises:
            RecordError: an item cannot be read.
        """
        part = Packed()
        for records in self.taken(run):
            part.add(b",".join(records))
            if not self.number % PART:
                yield part.text()
                part = Packed()
        if self.number % PART:
            yield part.text()

    def taken(self, run: RecordedRun | TestRecord) -> Iterator[list[bytes]]:
        """Take in the items of a run, and yield their JSON for the page in groups of `PART` or fewer.

        Args:
            run: see `parts`.

        Raises:
            RecordError: an item cannot be read.
        """
        record = run if isinstance(run, TestRecord) else run.record
        self.thresholds = dict(record.thresholds)
        items = ItemRecords(read_lines(run)) if isinstance(run, TestRecord) else run.items()
        left = islice(items.lines(), MOST_ITEMS)
        while group := list(_first_of(left, PART - self.number % PART)):
            is_clean = self._is_clean(group)
            part = [self._read(line, is_clean=is_clean) for line in group]
            rows = [row for _, row in part]
            if not self.number and not self._without_texts:
                self.common = _common_beginning([row.question for row in rows])
            self._add(rows)
            yield [record for record, _ in part]

    @cached_property
    def facets(self) -> Mapping[str, Labels]:
        """The labels by which items can be filtered: those that have few values."""
        named = (
            (name, labels)
            for name, labels in self._labels.items()
            if 1 < len(labels.values) <= min(labels.most, self.number // 2) and len(name) <= _LONGEST_NAME
        )
        few = dict(islice(named, _MOST_FACETS))
        if self.answered is not None:
            few |= {self.label_of_right_class: self.answered[0], ANSWERED: self.answered[1]}
        return few

    def measured_of_some(self) -> Iterator[str]:
        """Return the measurements that some scored items lack. A failed item might have lacked them too."""
        failed = self.states.values.get("failed", -1)
        scored = [place for place, state in enumerate(self.states.of) if state != failed]
        for name, values in self.measured.items():
            if any(math.isnan(values[place]) for place in scored):
                yield name

    @property
    def label_of_right_class(self) -> str:
        """Return the label of the right class: that of a context, if a context has it."""
        return next((name for name, label in self._labels.items() if label == self._expected), RIGHT)

    @cached_property
    def answered(self) -> "tuple[Labels, Labels] | None":
        """The right class and the answered class of each item, where there are few classes; else None."""
        return classified(self._expected, self._endings)

    def blocks(self) -> Iterator[tuple[str, str]]:
        """Return the rows as named blocks: `texts` has id, question, answer and right answer of each item, `rows`
        the rest.
        """
        yield "texts", self._texts.text()
        titles = [title_of_failure(key) for key in self.failures]
        rows = {
            "part": PART,
            "common": self.common.strip(),
            "state": self.states.data(self.number),
            "failures": {
                **self._failed.data(self.number),
                "titles": titles,
            },
            "measured": {name: json_numbers(values) for name, values in self.measured.items()},
            "used": {name: json_numbers(values) for name, values in self.used.items()},
            "columns": self.columns,
            **(self._verdicts(titles) if self.thresholds else {}),
            "facets": {name: labels.data(self.number) for name, labels in self.facets.items()},
        }
        yield "rows", packed(rows)

    @property
    def columns(self) -> list[ItemColumn]:
        """The columns that people may choose."""
        has_answers = not self._without_texts
        return item_columns(self.measured, has_answers=has_answers, has_expected=self.has_expected)

    def _verdicts(self, titles: Sequence[str]) -> dict[str, Any]:
        """Return the thresholds, and the verdict on each item.

        Args:
            titles: of the kinds of failures.
        """
        known = [*self._failed.values]
        of = [*self._failed.of, *[-1] * (self.number - len(self._failed.of))]
        failures = ["" if at < 0 else titles[int(known[at]) - 1] for at in of]
        return {
            "thresholds": {
                name: (threshold.value, threshold.higher_is_better)
                for name, threshold in self.thresholds.items()
            },
            "reasons": reasons(self.measured, self.thresholds, failures).data(self.number),
        }

    def _is_clean(self, lines: list[ItemLine]) -> bool:
        """Return whether lines have no secrets, as nearly always."""
        text = b"\n".join([line.text for line in lines]).decode("utf-8", "replace")
        return self._redact(text) == text

    def _read(self, line: ItemLine, *, is_clean: bool) -> tuple[bytes, Row]:
        """Return the parts of a line that the page has, and its row. Whole records burden the garbage collector."""

        def read(record: dict[str, Any]) -> tuple[Row, dict[str, Any]]:
            clean = record if is_clean else redacted_json(record, self._redact)
            return Row.of(clean), clean

        text, (row, record) = line.read_json(read)
        if self._without_texts:
            text = to_json({name: record[name] for name in _IN_PAGES_WITHOUT_TEXTS if name in record})
        elif not is_clean:
            text = to_json(record)
        return text, row

    def _add(self, rows: Sequence[Row]) -> None:
        _add_numbers(self.measured, self.number, [row.measured for row in rows])
        _add_numbers(self.used, self.number, [row.used for row in rows])
        self.binary.update(dict.fromkeys(name for row in rows for name in row.binary))
        self.started += [(row.started, row.used[SECONDS]) for row in rows if row.started is not None]
        for place, row in enumerate(rows, self.number):
            self.states.add(place, row.state)
            for failure in row.failures:
                self._add_failure(place, failure[:3], "" if self._without_texts else failure[3])
            if not self._without_texts:
                self._add_labels(place, row)
        self._texts.add(to_json([self._texts_of(row) for row in rows])[1:-1])
        self.number += len(rows)

    def _add_failure(self, place: int, kind: tuple[str, str, str], message: str) -> None:
        key = failure_key(kind, message, known=self.failures)
        self.failures[key] += 1
        self.messages.setdefault(key, message)
        if len(self._failed.of) <= place:  # of several repeats that failed, the first
            self._failed.add(place, str([*self.failures].index(key) + 1))

    def _add_labels(self, place: int, row: Row) -> None:
        for name, label in row.labels.items():
            self._labels[name].add(place, label)
        self.has_expected = self.has_expected or bool(row.expected)
        self._expected.add(place, row.expected[: LONGEST_CLASS + 1])
        if row.state != "failed":
            self._endings.add(place, ending_of(row.answer))

    def _texts_of(self, row: Row) -> tuple[str, str, str, str]:
        if self._without_texts:
            return row.id, "", "", ""
        question = row.question.removeprefix(self.common)[:SNIPPET]
        return row.id, question, answer_end(row.answer), row.expected[:SNIPPET]


def _add_numbers(
    columns: dict[str, "array[float]"], number: int, rows: Sequence[Mapping[str, float]]
) -> None:
    """Append the numbers of some items to their columns, which have so many items before: NaN where there is none."""
    for name in dict.fromkeys(chain(columns, *rows)):
        if name not in columns:
            columns[name] = array("d", [math.nan] * number)
        columns[name].extend([row.get(name, math.nan) for row in rows])


def _common_beginning(questions: list[str]) -> str:
    """Return the common beginning of all questions, up to the end of a paragraph or sentence: instructions and
    examples.
    """
    if len(questions) < _FEW:
        return ""
    first, last = min(questions), max(questions)  # what these share, all between them share
    same = first[: in_common(first, last)] if first != last else ""
    return same[: max((end.end() for end in _SENTENCE_END.finditer(same)), default=0)]
