"""The cases of which the run of a pytest session is made: what each `assert_test` left, however it ended."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from modelgauge.data.records import ItemRecord, TestItemExceptionRecord, TestItemRecord, TestRecord
from modelgauge.data.results import PASSED, CallCounts, Counts
from modelgauge.engine.bookkeeping.tally import Tally
from modelgauge.engine.files.journal import MANIFEST, RECORD, RunFolder
from modelgauge.engine.totals import Totals, read_totals
from modelgauge.errors import RecordError
from modelgauge.evals.display import LONGEST_TITLE, Shown
from modelgauge.evals.results import MetricData
from modelgauge.reports.plain import one_line

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
        manifests: of its runs.
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
        self.manifests: list[dict[str, Any]] = []
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
        if (run.path / MANIFEST).exists():
            self.manifests.append(run.read_manifest())
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
            error = "" if self.item.measurements.get(PASSED, True) else _CUT_SHORT
        return Shown(self.test, not error, () if error else tuple(self._passed()), error or None)

    def _passed(self) -> Iterator[MetricData]:
        """The scores of its metrics, all of which it passed."""
        measured = self.item.measurements if isinstance(self.item, TestItemRecord) else {}
        thresholds = self.records[-1].thresholds if self.records else {}
        for name, one in thresholds.items():
            if name in measured:
                yield MetricData(name, measured[name], one.value, True, one.higher_is_better)


def parts_of(*folders: Path) -> list[Part]:
    """All `assert_test` of a session, in the order of its tests.

    Args:
        folders: where its processes left them.
    """
    files = [file for folder in folders for file in folder.glob(f"*/{TEST}")]
    return [Part(file.parent) for file in sorted(files, key=lambda file: file.parent.name)]


def named(item: ItemRecord, index: int, test: str, number: int) -> ItemRecord:
    """An item under the name of its test.

    Args:
        item: the record of a case.
        index: its place in the session.
        test: the id.
        number: of the case among those of the test, from 1.
    """
    item_id = test if number == 1 else f"{test}~{number}"
    return renamed(item, index, item_id)


def renamed(item: ItemRecord, index: int, item_id: str) -> ItemRecord:
    """An item with another place and id."""
    return item.replaced(index=index, test_item=item.test_item.replaced(id=item_id), digests=None)


def made_by(parts: Sequence[Part]) -> dict[str, Any]:
    """What judged the cases and what it was made of, as manifests say it.

    Metrics that share a name and differ (in their threshold, say, or their judges) are numbered.

    Args:
        parts: of a session.
    """
    manifests = [one for part in parts for one in part.manifests]
    annotators: dict[str, Any] = {}
    judges: dict[str, Any] = {}
    seen: set[tuple[str, str]] = set()
    times: dict[str, int] = {}
    for one in manifests:
        for name, made in one["annotators"].items():
            asked = one["judges"].get(name)
            known = (name, json.dumps([made, asked], sort_keys=True))
            if known not in seen:
                seen.add(known)
                times[name] = number = times.get(name, 0) + 1
                key = name if number == 1 else f"{name}~{number}"
                annotators[key] = made
                judges.update({} if asked is None else {key: asked})
    versions = {name: version for one in manifests for name, version in one["plugins"].items()}
    inputs = _union(one["inputs"] for one in manifests)
    return {"annotators": annotators, "judges": judges, "inputs": inputs, "plugins": versions}


def _union(several: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """All that lists and mappings of one name hold; of what else differs from case to case, None."""
    made: dict[str, Any] = {}
    for name, value in [pair for one in several for pair in one.items()]:
        held = made.setdefault(name, value)
        if isinstance(held, list) and isinstance(value, list):
            made[name] = [*held, *(one for one in value if one not in held)]
        elif isinstance(held, dict) and isinstance(value, dict):
            made[name] = {**held, **value}
        elif held != value:
            made[name] = None
    return made


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


def total_counts(cases: int, items: Sequence[ItemRecord], used: Totals) -> Counts:
    """What became of all cases, those that were not judged too, and their calls.

    Args:
        cases: how many there were.
        items: of those that were judged.
        used: by all calls.
    """
    tally = Tally(items=cases)
    for item in items:
        tally.count(item)
    used.begin(tally)
    return tally.frozen()


def _sum(calls: Iterable[CallCounts]) -> CallCounts:
    listed = list(calls)
    return CallCounts(paid=sum(one.paid for one in listed), cached=sum(one.cached for one in listed))


def total_used(parts: Sequence[Part]) -> Totals:
    """What all calls of a session took.

    Args:
        parts: of the session.
    """
    used = [one for part in parts for one in part.used]
    return Totals(
        ended=True,
        seconds=round(sum(one.seconds for one in used), 3),
        sut_calls=_sum(one.sut_calls for one in used),
        annotator_calls=_sum(one.annotator_calls for one in used),
        judge_calls=_sum(one.judge_calls for one in used),
        attempts=sum(one.attempts for one in used),
        tokens=sum(one.tokens for one in used),
        cost=sum(one.cost for one in used),
        unkept=sum(one.unkept for one in used),
    )
