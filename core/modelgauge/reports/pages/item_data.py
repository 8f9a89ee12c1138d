"""The data of items as a page has them: short rows for the table, and whole records in compressed parts.

Records are read as plain JSON, and are never made into objects: 10,000 items shall take a second. Nothing here is
markup: the page's script shows texts as texts.
"""

import math
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import chain, islice
from typing import Any, NamedTuple

from pydantic_core import to_json

from modelgauge.config.redaction import redacted_json
from modelgauge.data.item_records import Outcome, outcome
from modelgauge.data.prompts import parts_in
from modelgauge.data.records import TestRecord
from modelgauge.data.spans import TRACE
from modelgauge.engine.items.item_frame import ItemRecords, lines_of
from modelgauge.engine.run_files.lines import ItemLine
from modelgauge.reports.failures import failure_key
from modelgauge.reports.item_texts import expected_text
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
from modelgauge.runs.recorded_run import RecordedRun
from modelgauge.wording.phrases import in_common

MOST_ITEMS = 100_000
"""Items of a run that a page holds: more make a file that browsers do not open."""

PART = 100
"""Items whose records are compressed together."""
SNIPPET = 240
_MOST_BYTES = 1 << 24  # of lines that are held at once
_LONGEST_NAME, _MOST_FACETS = 80, 16  # more controls than that hide the items
_END = 64
_MOST_KINDS = 1100  # of failures: above what `failure_key` tells apart
_FEW = 3  # questions: so few may begin alike by chance
_IN_PAGES_WITHOUT_TEXTS = ("kind", "index", "measurements", "stage", "source_uid", "error_type")
_USAGE = {
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    "reasoning_tokens": "reasoning tokens",
    "cost_usd": "dollars",
}
SECONDS = "seconds"
_SENTENCE_END = re.compile(r"\n\n|[.?!]\s+")


def _first_of(lines: Iterator[ItemLine], most: int) -> Iterator[ItemLine]:
    """Return the next lines, up to a number; fewer if they are long."""
    size = 0
    for line in islice(lines, most):
        yield line
        size += len(line.text)
        if size > _MOST_BYTES:
            return


class Row(NamedTuple):
    """What the table shows of an item.

    Args:
        id: of the item.
        state: its outcome.
        measured: its measurements.
        question: its last message.
        answer: its first completion.
        expected: the right answers.
        labels: short values by which it can be found.
        used: seconds of its longest answer, tokens, dollars, by name; those that are known.
        binary: the measurements that are right or wrong.
        started: when its first answer was asked for, in Unix time; None if that is not known.
        failures: of it or its repeats: stage, uid of what failed, class and message of each exception.
    """

    id: str
    state: Outcome
    measured: dict[str, float]
    question: str
    answer: str
    expected: str
    labels: dict[str, str]
    used: dict[str, float]
    binary: Sequence[str]
    started: float | None
    failures: list[tuple[str, str, str, str]]

    @classmethod
    def of(cls, record: dict[str, Any]) -> "Row":
        """The row of an item, from its line in a journal."""
        item, asked = record["test_item"], record.get("interactions") or ()
        prompts = item["prompts"]
        prompt = prompts[0]["prompt"]
        completions = [completion for each in asked for completion in each["response"]["completions"]]
        all_contexts = [item.get("context"), *[prompt.get("context") for prompt in prompts]]
        contexts = [context for context in all_contexts if isinstance(context, dict)]
        measured = {name: float(value) for name, value in (record.get("measurements") or {}).items()}
        failures = [record] if record["kind"] == "exception" else record.get("failed_repeats") or []
        times = [time for each in asked for time in _times(each)]
        usages = [usage for each in asked if (usage := each["response"].get("usage"))]
        question = [text for role, text in parts_in(prompt) if role != "continuation"][-1]
        answer = _answer([each["completion"] for each in completions])
        labels = _labels(
            [*contexts, *[own for completion in completions if (own := completion.get("annotations"))]]
        )
        return cls(
            str(item.get("id") or ""),
            outcome(record["kind"], measured, record.get("binary") or (), has_failures=bool(failures)),
            measured,
            question,
            answer,
            expected_text(contexts),
            {name: label for name, label in labels.items() if label not in (question, answer)},
            _usage(times, usages),
            record.get("binary") or (),
            min((began for began, _ in times), default=None),
            [_failure(failure) for failure in failures],
        )


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
        self._thresholds: dict[str, tuple[float, bool]] = {}

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
        """Take in the items of a run, and return what the page has of them: `PART` at a time, or fewer long ones.

        Args:
            run: see `parts`.

        Raises:
            RecordError: an item cannot be read.
        """
        record = run if isinstance(run, TestRecord) else run.record
        self._thresholds = {
            name: (threshold.value, threshold.higher_is_better)
            for name, threshold in record.thresholds.items()
        }
        items = ItemRecords(lines_of(run)) if isinstance(run, TestRecord) else run.items()
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
        """The rows as named blocks: `texts` has id, question, answer and right answer of each item, `rows` the rest."""
        yield "texts", self._texts.text()
        rows = {
            "part": PART,
            "common": self.common.strip(),
            "state": self.states.data(self.number),
            "failures": {
                **self._failed.data(self.number),
                "titles": [f"{error_type} at {stage}" for stage, _, error_type, _ in self.failures],
            },
            "measured": {name: json_numbers(values) for name, values in self.measured.items()},
            "used": {name: json_numbers(values) for name, values in self.used.items()},
            **({"thresholds": self._thresholds} if self._thresholds else {}),
            "facets": {name: labels.data(self.number) for name, labels in self.facets.items()},
        }
        yield "rows", packed(rows)

    def _is_clean(self, lines: list[ItemLine]) -> bool:
        """Return whether lines have no secrets, as nearly always."""
        text = b"\n".join([line.text for line in lines]).decode("utf-8", "replace")
        return self._redact(text) == text

    def _read(self, line: ItemLine, *, is_clean: bool) -> tuple[bytes, Row]:
        """What the page has of a line, and its row: a hundred whole records would keep the garbage collector busy."""

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


def _answer(completions: Sequence[Mapping[str, Any]]) -> str:
    """Return the answer of a row: the first completion, or the likeliest of scored continuations."""
    if not completions:
        return ""
    scored = [completion for completion in completions if completion.get("logprob") is not None]
    shown = max(scored, key=lambda completion: completion["logprob"]) if scored else completions[0]
    return str(shown["text"])


def _failure(record: Mapping[str, Any]) -> tuple[str, str, str, str]:
    kind = (record["stage"], record["source_uid"], record["error_type"], record.get("message", ""))
    return str(kind[0]), str(kind[1]), str(kind[2]), str(kind[3])


def _times(asked: Mapping[str, Any]) -> Iterator[tuple[float, float]]:
    """When an answer was asked for, and its seconds: of the observed app, if an app was observed, else of the call."""
    traces = [
        completion["completion"].get("metadata", {}).get(TRACE)
        for completion in asked["response"]["completions"]
    ]
    if own := [trace for trace in traces if isinstance(trace, dict)]:
        yield from (
            (datetime.fromisoformat(span["started"]).timestamp(), float(span["seconds"])) for span in own
        )
    elif time := asked.get("time"):
        yield time[0], time[1]


def _usage(times: Sequence[tuple[float, float]], usages: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """What an item took: the seconds of its longest answer, and what its SUT reported."""
    found = {SECONDS: max(seconds for _, seconds in times)} if times else {}
    for usage in usages:
        for field, name in _USAGE.items():
            if usage.get(field) is not None:
                found[name] = found.get(name, 0.0) + float(usage[field])
    return found


def answer_end(answer: str) -> str:
    """The end of an answer, where the result stands if it is long; an ellipsis stands for what is before."""
    before, _, line = answer.rstrip().rpartition("\n")
    last = line.strip()
    if len(last) > _END:
        end = last[-_END:]
        last = end[max(end.find(". ") + 1, end.find(" ")) :].strip()  # whole sentences, else whole words
    return f"… {last}" if before or len(last) < len(line.strip()) else last


def _labels(parts: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Short values by which items can be filtered: fields of contexts, and annotations."""
    return {
        name: str(value)
        for part in parts
        for name, value in part.items()
        if (isinstance(value, str) and len(value) <= SNIPPET) or isinstance(value, bool | int)
    }


def _common_beginning(questions: list[str]) -> str:
    """What all questions begin with, up to the end of a paragraph or sentence: instructions and examples."""
    if len(questions) < _FEW:
        return ""
    first, last = min(questions), max(questions)  # what these share, all between them share
    same = first[: in_common(first, last)] if first != last else ""
    return same[: max((end.end() for end in _SENTENCE_END.finditer(same)), default=0)]
