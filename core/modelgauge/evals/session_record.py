"""The record of a session of pytest, made of its cases; and how these are called where it is shown."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from modelgauge.data.records import SCHEMA_VERSION, TestRecord
from modelgauge.data.results import GIVEN, PYTEST, Threshold, known_directions
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.engine.run_files.journal import JOURNAL_VERSION
from modelgauge.engine.run_files.manifest import surroundings
from modelgauge.evals.display import Shown
from modelgauge.evals.evaluate_options import TestRunOptions
from modelgauge.evals.session_cases import Cases


def record_of(
    folder: RunFolder, began: str, options: TestRunOptions, cases: Cases, **facts: Any
) -> TestRecord:
    """Make the record of a session of pytest.

    Args:
        folder: of the run.
        began: when the session did, as ISO 8601 has it.
        options: of `modelgauge test run`.
        cases: that were judged until now.
        facts: further fields, of what came out; ranges at least.
    """
    uid = options.identifier or PYTEST
    made = {"uid": uid, "class_name": PYTEST, "cache_version": 0, "arguments": {}, "opaque": []}
    thresholds = {name: Threshold.load(threshold) for name, threshold in cases.declared("thresholds").items()}
    judged_by = cases.manifest()
    return TestRecord(
        schema_version=SCHEMA_VERSION,
        run_id=folder.run_id,
        invocation_id=folder.run_id,  # of a command with this run alone
        run_timestamp=began,
        test_uid=uid,
        test_initialization=made,
        sut_uid=GIVEN,
        sut_initialization={**made, "uid": GIVEN, "class_name": GIVEN},
        hyperparameters=cases.hyperparameters,
        identifier=options.identifier,
        repeats=options.repeat,
        **{name: judged_by[name] for name in ("annotators", "judges", "plugins")},
        thresholds=thresholds,
        directions=known_directions(cases.declared("directions"), thresholds),
        seconds=cases.used.seconds,
        spent=cases.used.spent,
        **facts,
    )


def manifest_of(record: TestRecord, options: TestRunOptions, command: Sequence[str]) -> dict[str, Any]:
    """The manifest of a session.

    Args:
        record: as far as it is known.
        options: of `modelgauge test run`.
        command: the command line.
    """
    fields = record.model_dump(mode="json", exclude={"counts", "result", "seconds", "spent"})
    known = {"journal_version": JOURNAL_VERSION, "options": options.recorded()}
    return {**fields, **surroundings(command, []), **known}


def with_distinct_titles(shown: Sequence[tuple[str, Shown]]) -> list[Shown]:
    """The cases with distinct titles: those that share one get the name of their test added.

    Args:
        shown: each with the id of its test.
    """
    times = Counter(case.title for _, case in shown)
    short = Counter(_within_file(test) for test in {test for test, _ in shown})
    made: list[Shown] = []
    numbers: Counter[str] = Counter()
    for test, case in shown:
        numbers[test] += 1
        if times[case.title] > 1:
            named = _within_file(test) if short[_within_file(test)] == 1 else test
            number = "" if numbers[test] == 1 else f"~{numbers[test]}"
            made.append(replace(case, title=f"{case.title} ({named}{number})"))
        else:
            made.append(case)
    return made


def _within_file(test: str) -> str:
    return test.partition("::")[2] or test
