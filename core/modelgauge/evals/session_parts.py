"""The cases of which the run of a pytest session is made: what each `assert_test` left, however it ended."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from modelgauge.data.records import (
    CallCounts,
    Counts,
    ItemRecord,
    Spent,
    TestItemExceptionRecord,
    TestRecord,
)
from modelgauge.data.results import PASSED
from modelgauge.engine.journal import RECORD, RunFolder
from modelgauge.engine.totals import Totals, read_totals
from modelgauge.errors import RecordError
from modelgauge.evals.display import LONGEST_TITLE, Shown
from modelgauge.report.plain import one_line

T = TypeVar("T")

SHOWN = "shown.json"
"""Beside the journal of a run: what is shown of its case at the end, with its title uncut."""

TEST = "test.txt"
"""In the folder of an `assert_test`: the id of the test that called it."""

REPEAT = "repeat.json"
"""Beside it: the id without the repeat, and which repeat it is."""

_CUT_SHORT = "Its process ended before it could say why."
_UNJUDGED = "It was begun and not judged: it was interrupted, or its process ended."


@dataclass(frozen=True, slots=True)
class Repeat:
    """Which of the times it is that a test is run.

    Args:
        test: the id of the test, without the repeat.
        number: from 0.
    """

    test: str
    number: int = 0


class Part:
    """One `assert_test`: one case.

    Its folder holds the folder of its run; none where its process ended before, a second one where it was refused.

    Args:
        path: its folder.

    Attributes:
        test: the id of the test.
        repeat: which time it was run.
        item: what became of its case; None where it was not judged, since its process ended.
        records: of its runs that came to their end.
        used: by the calls of its runs, as far as their totals tell.
        notes: what a reader should know of it.
    """

    def __init__(self, path: Path) -> None:
        self.test = (path / TEST).read_text(encoding="utf-8")
        told = path / REPEAT
        self.repeat = (
            Repeat(**json.loads(told.read_text(encoding="utf-8"))) if told.exists() else Repeat(self.test)
        )
        self.item: ItemRecord | None = None
        self.records: list[TestRecord] = []
        self.used: list[Totals] = []
        self.notes: list[str] = []
        self._shown: str | None = None
        for run in sorted(path.glob("*/")):
            self._read(RunFolder(run))
        if self.item is None:
            self.notes.append(f"{self.test}: {_UNJUDGED}")

    def _read(self, run: RunFolder) -> None:
        file = run.path / SHOWN
        for item in run.items():  # of a refused case the later one says why
            self.item, self._shown = item, file.read_text(encoding="utf-8") if file.exists() else None
        if (run.path / RECORD).exists():
            self.records.append(run.read_record())
            self.notes.extend(self.records[-1].notes)
        try:
            self.used.append(read_totals(run) or Totals())
        except RecordError as error:
            self.notes.append(f"What {self.test} used is not known: {error.problem}")

    def shown(self, redact: Callable[[str], str]) -> Shown:
        """What is shown of its case.

        Args:
            redact: takes secrets out of a JSON text.
        """
        shown = Shown.from_json(redact(self._shown or self._without_its_say().as_json()))
        return replace(shown, title=one_line(shown.title, LONGEST_TITLE))

    def ranges(self) -> dict[str, tuple[float, float]]:
        """What the scores of its metrics can be, by the names of their measurements, where it is known."""
        data = () if self._shown is None else Shown.from_json(self._shown).metrics_data
        return {
            one.name if one.component is None else f"{one.component}.{one.name}": (low, high)
            for one in data
            if one.score_range is not None
            for low, high in [one.score_range]
        }

    def _without_its_say(self) -> Shown:
        """The same where its process ended before it said what is shown."""
        error = _UNJUDGED
        if isinstance(self.item, TestItemExceptionRecord):
            error = f"{self.item.error_type}: {self.item.message}"
        elif self.item is not None:
            error = "" if self.item.measurements[PASSED] else _CUT_SHORT
        return Shown(self.test, not error, (), error or None)


def parts_of(folder: Path) -> list[Part]:
    """All `assert_test` of a session, in the order of its tests.

    Args:
        folder: of the session.
    """
    return [Part(file.parent) for file in sorted(folder.glob(f"*/{TEST}"))]


def agreed(several: Iterable[Mapping[str, T]]) -> dict[str, T]:
    """The thresholds of all cases, or the ranges of scores, but for those that differ from case to case.

    Args:
        several: those of each case.
    """
    found: dict[str, set[T]] = {}
    for of_case in several:
        for name, one in of_case.items():
            found.setdefault(name, set()).add(one)
    return {name: next(iter(ones)) for name, ones in found.items() if len(ones) == 1}


def total_counts(parts: Sequence[Part], cases: int, items: Sequence[ItemRecord]) -> Counts:
    """What became of all cases, those that were not judged too, and their calls.

    Args:
        parts: of a session.
        cases: how many there were.
        items: of those that were judged.
    """
    failed = [item.stage for item in items if isinstance(item, TestItemExceptionRecord)]
    used = [one for part in parts for one in part.used]
    return Counts(
        items=cases,
        scored=len(items) - len(failed),
        sut_errors=failed.count("sut"),
        annotator_errors=failed.count("annotator"),
        unscored=failed.count("measure"),
        sut_calls=_sum(one.sut_calls for one in used),
        annotator_calls=_sum(one.annotator_calls for one in used),
        judge_calls=_sum(one.judge_calls for one in used),
    )


def _sum(calls: Iterable[CallCounts]) -> CallCounts:
    listed = list(calls)
    return CallCounts(paid=sum(one.paid for one in listed), cached=sum(one.cached for one in listed))


def total_spent(parts: Sequence[Part]) -> Spent:
    """What all calls of a session took.

    Args:
        parts: of the session.
    """
    used = [one for part in parts for one in part.used]
    return Spent(
        attempts=sum(one.attempts for one in used),
        tokens=sum(one.tokens for one in used),
        cost_usd=sum(one.cost for one in used),
    )
