"""The runs of which the run of a pytest session is made: one for each `assert_test`, whole or cut short."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from modelgauge.data.records import (
    CallCounts,
    Counts,
    ItemRecord,
    Spent,
    TestItemExceptionRecord,
    TestRecord,
    Threshold,
)
from modelgauge.data.results import PASSED
from modelgauge.engine.journal import RECORD, RunFolder
from modelgauge.engine.totals import Totals, read_totals
from modelgauge.errors import RecordError
from modelgauge.evals.display import LONGEST_TITLE, Shown
from modelgauge.report.plain import one_line

SHOWN = "shown.jsonl"
"""Beside the journal of a run: what is shown of its cases at the end."""

TEST = "test.txt"
"""In the folder of an `assert_test`: the id of the test that called it."""

_CUT_SHORT = "Its process ended before it could say why."


class Part:
    """The run of one `assert_test`. Where its process ended before it wrote its record, journal and totals tell.

    Args:
        path: its folder.

    Attributes:
        test: the id of the test.
        items: one, but where its process ended before it was judged.
        record: None where its process ended before, and where nothing was run.
    """

    def __init__(self, path: Path) -> None:
        folder = RunFolder(path)
        self.test = (path.parent / TEST).read_text(encoding="utf-8")
        self.items: list[ItemRecord] = list(folder.items())
        self.record: TestRecord | None = folder.read_record() if (path / RECORD).exists() else None
        self._path = path
        self._totals, self._damage = Totals(), ""
        try:
            self._totals = read_totals(folder) or Totals()
        except RecordError as error:
            self._damage = f"What {self.test} used is not known: {error.problem}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of it."""
        if self.record is not None:
            return self.record.notes
        return (self._damage,) if self._damage else ()

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self._totals.seconds if self.record is None else self.record.seconds or 0.0

    @property
    def spent(self) -> Spent:
        """What its calls took."""
        return self._totals.spent if self.record is None else self.record.spent or Spent()

    @property
    def counts(self) -> Counts:
        """Its calls, and what became of its cases."""
        if self.record is not None:
            return self.record.counts
        stages = [item.stage for item in self.items if isinstance(item, TestItemExceptionRecord)]
        return Counts(
            items=len(self.items),
            scored=len(self.items) - len(stages),
            sut_errors=stages.count("sut"),
            annotator_errors=stages.count("annotator"),
            unscored=stages.count("measure"),
            sut_calls=self._totals.sut_calls,
            annotator_calls=self._totals.annotator_calls,
            judge_calls=self._totals.judge_calls,
        )

    def shown(self, redact: Callable[[str], str]) -> list[Shown]:
        """What is shown of its cases.

        Args:
            redact: takes secrets out of a JSON text.
        """
        file = self._path / SHOWN
        if not file.exists():
            return [self._shown(item, redact) for item in self.items]
        return [Shown.from_json(redact(line)) for line in file.read_text(encoding="utf-8").splitlines()]

    def _shown(self, item: ItemRecord, redact: Callable[[str], str]) -> Shown:
        if isinstance(item, TestItemExceptionRecord):
            error = f"{item.error_type}: {item.message}"
        else:
            error = "" if item.measurements[PASSED] else _CUT_SHORT
        shown = Shown(one_line(self.test, LONGEST_TITLE), not error, (), error or None)
        return Shown.from_json(redact(shown.as_json()))


def parts_of(folder: Path) -> list[Part]:
    """The runs of all `assert_test` of a session, in the order of its tests.

    Args:
        folder: of the session.
    """
    return [Part(path) for call in sorted(folder.glob("*/")) for path in sorted(call.glob("*/"))]


def numbered(parts: Sequence[Part]) -> Iterator[ItemRecord]:
    """The items of all parts, in order, under the names of their tests.

    Args:
        parts: of a session.
    """
    times: dict[str, int] = {}
    index = 0
    for part in parts:
        for record in part.items:
            times[part.test] = times.get(part.test, 0) + 1
            number = times[part.test]
            item_id = part.test if number == 1 else f"{part.test}~{number}"
            yield record.replaced(index=index, test_item=record.test_item.replaced(id=item_id))
            index += 1


def agreed(several: Iterable[Mapping[str, Threshold]]) -> dict[str, Threshold]:
    """The thresholds of all cases, but for those that differ from case to case.

    Args:
        several: those of each case.
    """
    found: dict[str, set[Threshold]] = {}
    for thresholds in several:
        for name, one in thresholds.items():
            found.setdefault(name, set()).add(one)
    return {name: next(iter(ones)) for name, ones in found.items() if len(ones) == 1}


def total_counts(parts: Sequence[Part]) -> Counts:
    """The cases that were judged, and all calls, also those of cases that never were.

    Args:
        parts: of a session.
    """
    judged = [part.counts for part in parts if part.items]
    called = [part.counts for part in parts]
    numbers = {
        name: sum(getattr(one, name) for one in judged)
        for name in ("items", "scored", "sut_errors", "annotator_errors", "unscored")
    }
    calls = {
        name: CallCounts(
            paid=sum(getattr(one, name).paid for one in called),
            cached=sum(getattr(one, name).cached for one in called),
        )
        for name in ("sut_calls", "annotator_calls", "judge_calls")
    }
    return Counts(**numbers, **calls)


def total_spent(parts: Sequence[Part]) -> Spent:
    """What all calls of a session took.

    Args:
        parts: of the session.
    """
    return Spent(
        attempts=sum(part.spent.attempts for part in parts),
        tokens=sum(part.spent.tokens for part in parts),
        cost_usd=sum(part.spent.cost_usd for part in parts),
    )
