"""The record of a session of pytest, which the process that began it makes of all cases."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from modelgauge.data.records import SCHEMA_VERSION, TestRecord
from modelgauge.data.results import GIVEN, Counts, Threshold, known_directions, recorded_ranges
from modelgauge.engine.run_files.journal import JOURNAL_VERSION
from modelgauge.engine.run_files.manifest import surroundings
from modelgauge.evals.display import Shown, rendered
from modelgauge.evals.evaluate_options import TestRunOptions
from modelgauge.evals.session_cases import Case, Cases, agreed
from modelgauge.evals.session_run import Redact, SessionRun
from modelgauge.reports.layout import counted

UID = "pytest"
"""How the record of a session calls its test, where the user gave no identifier."""


OUTSIDE = "no test"
"""What stands for the test of cases that are judged while tests are collected, say."""


class SessionRecord:
    """Makes the record of a session.

    Args:
        options: of `modelgauge test run`.
        command: the command line.
    """

    def __init__(self, options: TestRunOptions, command: Sequence[str]) -> None:
        self._options, self._command = options, command

    def write(
        self, run: SessionRun, cases: Cases, notes: Iterable[str], collected: int | None, redact: Redact
    ) -> str:
        """Make one run of all cases.

        Args:
            run: of the session.
            cases: at least one.
            notes: what a reader should know, beside what the cases say.
            collected: where the session was interrupted, the number of tests that it had, 0 where it is not known;
                None where it came to its end.
            redact: takes secrets out of a JSON text.

        Returns:
            What is shown at the end of the session.
        """
        items, number = list(cases.items()), len(cases.by_id())
        known = number if collected is None else None  # of those that were not begun, nobody knows
        ranges = agreed(one.ranges() for one in cases.listed)
        result, ranges = run.write_items(items, ranges, known, redact)
        all_notes = [*cases.notes, *notes, *_interrupted(cases.listed, collected)]
        record = self._record(run, cases, cases.counts(items), result=result, notes=all_notes)
        record = record.replaced(cancelled=collected is not None, ranges=recorded_ranges(ranges))
        run.write(record, {**self._manifest(record), **cases.manifest()}, cases.used, redact)
        shown = told_apart([(one.test, one.shown(redact)) for one in cases.listed])
        told = run.folder.read_record().notes  # without secrets
        return rendered(shown, run.folder.path, self._options.display, told, cases=number)

    def first_manifest(self, run: SessionRun) -> dict[str, Any]:
        """What is known of the run when it begins."""
        return self._manifest(self._record(run, Cases.of((), ()), Counts(), result={}, notes=()))

    def _manifest(self, record: TestRecord) -> dict[str, Any]:
        said = record.model_dump(mode="json", exclude={"counts", "result", "seconds", "spent"})
        known = {"journal_version": JOURNAL_VERSION, "options": self._options.recorded()}
        return {**said, **surroundings(self._command, []), **known}

    def _record(
        self, run: SessionRun, cases: Cases, counts: Counts, *, result: dict[str, Any], notes: Iterable[str]
    ) -> TestRecord:
        uid = self._options.identifier or UID
        made = {"uid": uid, "class_name": UID, "cache_version": 0, "arguments": {}, "opaque": []}
        given = {**made, "uid": GIVEN, "class_name": GIVEN}
        written = agreed(one.thresholds for one in cases.listed)
        thresholds = {name: Threshold.load(one) for name, one in written.items()}
        judged_by = cases.manifest()
        return TestRecord(
            schema_version=SCHEMA_VERSION,
            run_id=run.folder.run_id,
            invocation_id=run.folder.run_id,  # of a command with this run alone
            run_timestamp=run.began.isoformat(timespec="seconds"),
            test_uid=uid,
            test_initialization=made,
            sut_uid=GIVEN,
            sut_initialization=given,
            hyperparameters=cases.hyperparameters,
            identifier=self._options.identifier,
            repeats=self._options.repeat,
            annotators=judged_by["annotators"],
            judges=judged_by["judges"],
            plugins=judged_by["plugins"],
            thresholds=thresholds,
            ranges=recorded_ranges(agreed(one.ranges() for one in cases.listed)),
            directions=known_directions(agreed(one.directions() for one in cases.listed), thresholds),
            counts=counts,
            result=result,
            seconds=cases.used.seconds,
            spent=cases.used.spent,
            notes=tuple(dict.fromkeys(notes)),
        )


def _interrupted(cases: Sequence[Case], collected: int | None) -> list[str]:
    """What a reader should know of a session that was interrupted."""
    if collected is None:
        return []
    tests = counted(collected, "test") if collected else "tests, nobody knows how many"
    judged = len({one.test for one in cases} - {OUTSIDE})
    return [f"The session was interrupted: pytest had collected {tests}. There are cases of {judged:,} here."]


def told_apart(shown: Sequence[tuple[str, Shown]]) -> list[Shown]:
    """Cases, of which those with one title are told apart by their tests.

    Args:
        shown: each with the id of its test.
    """
    times = Counter(one.title for _, one in shown)
    short = Counter(_within_file(test) for test in {test for test, _ in shown})
    made: list[Shown] = []
    numbers: Counter[str] = Counter()
    for test, one in shown:
        numbers[test] += 1
        if times[one.title] > 1:
            named = _within_file(test) if short[_within_file(test)] == 1 else test
            number = "" if numbers[test] == 1 else f"~{numbers[test]}"
            made.append(replace(one, title=f"{one.title} ({named}{number})"))
        else:
            made.append(one)
    return made


def _within_file(test: str) -> str:
    return test.partition("::")[2] or test
