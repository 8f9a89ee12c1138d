"""Report after runs: for one run its report, for several a table first, and details on request.

The report of one run is in `run_report.py`.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from modelgauge.data.estimates import Estimate, interval_text, uncertainty, value_text
from modelgauge.data.records import TestRecord
from modelgauge.data.results import Spent
from modelgauge.data.thresholds import PASSED
from modelgauge.documents.document import Block, Fact, FactList, Heading, TableBlock, TableColumn
from modelgauge.reports.failures import group_failures
from modelgauge.reports.run_report import calls_in_words, is_prefix, run_blocks, shown_results, spent_in_words
from modelgauge.reports.thresholds import name_of
from modelgauge.runs.group_means import group_means
from modelgauge.runs.passing import describe_passed
from modelgauge.runs.recorded_run import RecordedRun, higher_cap
from modelgauge.wording.figures import dollars, duration, figure
from modelgauge.wording.phrases import counted, first_few

_RESULTS = 3  # of one run, where there is room
_ROWS = 12  # that are filled with further results
_LONGEST_HEAD = 12
_TIME = "   time"  # as wide as most times, so that tables of like runs look alike
_TROUBLES = 5
_MOST_NAMED = 8


def runs_document(
    runs: Sequence[RecordedRun],
    *,
    shown_by: str = "",
    details: bool = False,
    differences: Sequence[str] = (),
    most_rows: int | None = None,
) -> Iterator[Block]:
    """Return the report of one or more runs.

    Args:
        runs: records with their folders.
        shown_by: the command, which is not advised again: `show`, `resume`, `rescore`, or another.
        details: whether the report of each of several runs follows.
        differences: what differs between the SUTs, in words.
        most_rows: rows of one group of results, and groups of errors; None for all.
    """
    if len(runs) > 1:
        yield Heading(_title([run.record for run in runs]))
        yield _table([run.record for run in runs])
        yield _facts(runs, differences, shown_by, details=details)
    for run in runs if details or len(runs) == 1 else ():
        yield from run_blocks(run, shown_by, most_rows)


def headline(record: TestRecord) -> str:
    """Return the headline of a run: how many items passed, else its first result that is no group."""
    passed = describe_passed(record)
    if passed is not None:
        return f"{passed} {PASSED}"
    for name, value in record.result.items():
        if not isinstance(value, Mapping):
            return f"{name_of(record, name)} {value_text(value)}"
    return ""


# --- the table --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ResultLine:
    """A line of the table: a result of a run, or a mean over a group of tests.

    Args:
        of: the test and the SUT.
        name: of the result.
        value: the result.
        failed: the number of failed items; empty where the line above has it.
        used: the cost or the time; empty where the line above has it, and for means.
        is_first: whether it is the first line of its run.
    """

    of: tuple[str, str]
    name: str
    value: Any
    failed: str
    used: str = ""
    is_first: bool = True


def _title(records: Sequence[TestRecord]) -> str:
    tests, suts = ({getattr(record, name) for record in records} for name in ("test_uid", "sut_name"))
    many = (len(tests), "test", records[0].test_uid), (len(suts), "SUT", records[0].sut_name)
    return " on ".join(counted(number, word) if number > 1 else alone for number, word, alone in many)


def _table(records: Sequence[TestRecord]) -> TableBlock:
    """Return a row for each result of each pair, and for the means over the tests of groups."""
    most = _most_results(len(records))
    lines = [line for record in records for line in _lines_of_run(record, most)]
    known = {line.name for line in lines if line.name}
    lines += [line for line in _lines_of_groups(records) if line.name in known]
    only = min(known) if len(known) == 1 and len(min(known)) <= _LONGEST_HEAD else ""
    costs = any(record.spent is not None and record.spent.cost_usd for record in records)
    columns = [
        *_names(records, lines),
        *([] if only else [TableColumn("Result", [line.name for line in lines], fold=6)]),
        TableColumn(only or "value", [_value(line.value) for line in lines]),
    ]
    beside = [
        TableColumn("95 % interval", [interval_text(line.value) for line in lines]),
        TableColumn(
            "n",
            [f"{line.value.n:,}" if isinstance(line.value, Estimate) else "" for line in lines],
            right=True,
        ),
        TableColumn("failed", [line.failed for line in lines], right=True),
        TableColumn(
            "cost" if costs else _TIME, [line.used for line in lines], right=True, is_optional=not costs
        ),
    ]
    return TableBlock([*columns, *(column for column in beside if not column.is_empty)])


def _names(records: Sequence[TestRecord], lines: Sequence[_ResultLine]) -> Iterator[TableColumn]:
    """Return the columns of tests and of SUTs, where there are several; what the row above has is left empty."""
    tests, suts = ({getattr(record, name) for record in records} for name in ("test_uid", "sut_name"))
    names = [line.of[0] if line.is_first else "" for line in lines]
    if len(tests) > 1:
        yield TableColumn("Test", [*_without_repeated(names)] if len(suts) > 1 else names, fold=8)
    if len(suts) > 1:
        yield TableColumn("SUT", [line.of[1] if line.is_first else "" for line in lines], fold=3)


def _without_repeated(names: Sequence[str]) -> Iterator[str]:
    """Leave each name empty that repeats the last one before it; the SUTs tell such rows apart."""
    above = ""
    for name in names:
        yield "" if name == above else name
        above = name or above


def _lines_of_run(record: TestRecord, most: int) -> Iterator[_ResultLine]:
    """Return the first results of a run; its failures, cost or time are in the first line."""
    spent = record.spent or Spent()
    took = "" if record.seconds is None else duration(record.seconds)
    first = _ResultLine(
        (record.test_uid, record.sut_name),
        "",
        None,
        _failed(record),
        dollars(spent.cost_usd) if spent.cost_usd else took,
    )
    for place, (name, value) in enumerate(_results(record)[0][:most]):
        line = replace(first, name=name, value=value)
        yield replace(line, failed="", used="", is_first=False) if place else line


def _value(value: Any) -> str:
    """Return a value for a cell that has its interval beside it."""
    if isinstance(value, Estimate):
        return figure(value.value, uncertainty(value))
    return value if isinstance(value, str) else figure(value)


def _failed(record: TestRecord) -> str:
    return f"{record.counts.failed:,}{', stopped' if record.ended_early else ''}"


def _most_results(runs: int) -> int:
    """Return how many results of each of so many runs get a row."""
    return max(1, min(_RESULTS, _ROWS // runs))


def _results(record: TestRecord) -> tuple[list[tuple[str, Any]], list[str]]:
    """Return the results that can have a row, by name, the number of passed items first, and the groups that cannot.

    Groups get rows if there is nothing else.
    """
    passed, results = describe_passed(record), shown_results(record)
    single = [(name, value) for name, value in results.items() if not isinstance(value, Mapping)]
    groups = {name: value for name, value in results.items() if isinstance(value, Mapping)}
    parts = [(f"{name} {key}", value) for name, group in groups.items() for key, value in group.items()]
    rows: list[tuple[str, Any]] = [] if passed is None else [(PASSED, passed)]
    rows += [
        (name_of(record, name), value)
        for name, value in single or parts
        if passed is None or record.measurement_of(name) != PASSED
    ]
    return rows or [("", "no result")], [*groups] if single else []


def _lines_of_groups(records: Sequence[TestRecord]) -> Iterator[_ResultLine]:
    for group in group_means(records):
        named = next(record for record in records if record.test_uid == group.tests[0])
        yield _ResultLine(
            (group.label, group.sut), name_of(named, group.result), group.mean, f"{group.failed:,}"
        )


# --- what all have in common ------------------------------------------------------------------------


def _facts(
    runs: Sequence[RecordedRun], differences: Sequence[str], shown_by: str, *, details: bool
) -> FactList:
    records = [run.record for run in runs]
    facts = [*(Fact("errors", text, "alarm", most_lines=3) for text in _troubles(runs))]
    facts += [Fact("differs", text) for text in differences]
    facts += [Fact("note", text) for text in _without_rows(runs, details=details)]
    if any(is_prefix(record) for record in records):
        note = "Results of stopped runs are of the items that came first; others may differ."
        facts.append(Fact("note", note))
    if empty := sum(record.counts.empty for record in records):
        facts.append(Fact("answers", f"{empty:,} empty"))
    facts.append(Fact("calls", calls_in_words(records)))
    used = sum((record.spent for record in records if record.spent is not None), Spent())
    if used.tokens or used.cost_usd:
        facts.append(Fact("used", spent_in_words(used)))
    commands = () if details else _next(runs, shown_by)
    facts += [Fact("next", command, is_whole=True) for command in commands]
    return FactList([*_without_repeated_labels(facts)])


def _without_repeated_labels(facts: Sequence[Fact]) -> Iterator[Fact]:
    for fact, above in zip(facts, [None, *facts], strict=False):
        yield fact if above is None or fact.label != above.label else replace(fact, label="")


def _without_rows(runs: Sequence[RecordedRun], *, details: bool) -> Iterator[str]:
    """Return the results without a row: those that do not fit, unless details follow, and those that a run lacks.

    A run lacks results that other runs of its test have, and results with a threshold.
    """
    records = [run.record for run in runs]
    most, found = _most_results(len(runs)), [_results(record) for record in records]
    hidden = [[*(name for name, _ in rows[most:]), *groups] for rows, groups in found]
    if not details and any(hidden):
        yield f"Not shown: {_named_by_runs(records, hidden)}."
    named = [[*(name for name, _ in rows if name), *groups] for rows, groups in found]
    of_tests: dict[str, dict[str, None]] = {}
    for record, names in zip(records, named, strict=True):
        measured = {record.measurement_of(name) for name in record.result}
        judged = [name for name in record.thresholds if name not in measured]
        of_tests.setdefault(record.test_uid, {}).update(dict.fromkeys([*names, *judged]))
    lacking = [
        [name for name in of_tests[record.test_uid] if names and name not in names]
        for record, names in zip(records, named, strict=True)
    ]
    if any(lacking):
        yield f"No result: {_named_by_runs(records, lacking)}."


def _named_by_runs(records: Sequence[TestRecord], results: Sequence[Sequence[str]]) -> str:
    """Describe the results of each run. Runs with the same results are named together."""
    has_suts = len({record.sut_name for record in records}) > 1
    has_tests = len({record.test_uid for record in records}) > 1 or not has_suts
    pairs: dict[tuple[str, ...], list[str]] = {}
    for record, names in zip(records, results, strict=True):
        pair = [record.test_uid] * has_tests + [record.sut_name] * has_suts
        pairs.setdefault(tuple(names), []).append(" on ".join(pair))
    named = [(names, runs) for names, runs in pairs.items() if names]
    parts = [f"{first_few(names, _MOST_NAMED)} ({first_few(runs, 2)})" for names, runs in named[:_TROUBLES]]
    rest = sum(len(runs) for _, runs in named[_TROUBLES:])
    return "; ".join([*parts, *([f"results of {rest:,} more"] if rest else [])])


def _troubles(runs: Sequence[RecordedRun]) -> Iterator[str]:
    """Say what went wrong in each run; the same of several runs once."""
    found: dict[str, list[TestRecord]] = {}
    for run in runs:
        for text in _trouble(run):
            found.setdefault(text, []).append(run.record)
    for text, (record, *others) in list(found.items())[:_TROUBLES]:
        more = f" and {counted(len(others), 'more pair')}" if others else ""
        yield f"{record.test_uid} on {record.sut_name}{more}: {text}"
    if len(found) > _TROUBLES:
        yield f"{len(found) - _TROUBLES:,} more"


def _trouble(run: RecordedRun) -> Iterator[str]:
    record, failure = run.record, run.record.failure
    if failure is not None:
        yield f"stopped: {failure.error_type}: {failure.message}" if run.ended else failure.message
    elif record.cancelled:
        yield "interrupted"
    elif record.counts.failed or record.counts.partial:
        for first, *others in filter(None, [group_failures(run.failures())]):
            kinds = f" and {counted(len(others), 'other kind')}" if others else ""
            yield f"{first.count:,} x {first.failure.error_type}{kinds}: {first.failure.message}"


def _next(runs: Sequence[RecordedRun], shown_by: str) -> Iterator[str]:
    """Return the commands that show more of the runs, or continue those that were stopped."""
    first = runs[0]
    invocation = first.record.invocation_id
    if first.folder is None or any(run.record.invocation_id != invocation for run in runs):
        return
    show, compare, report, resume = (
        first.command(verb).replace(first.record.run_id, invocation)
        for verb in ("show", "compare", "report", "resume")
    )
    yield f"{show} -v"
    if len({run.record.sut_name for run in runs}) > 1:
        yield f"{compare} --baseline-sut {shlex.quote(first.record.sut_name)}"
        yield f"{report} --open"
    if any(run.record.counts.failed or run.record.counts.partial for run in runs):
        yield f"{show} --failures"
    if shown_by in ("run-test", "resume") and any(run.record.counts.failed for run in runs):
        yield f"{resume} --retry-failed"
    stopped = [run for run in runs if run.record.ended_early]
    if shown_by == "show" and any(run.to_go_on() is not None and not run.going_on for run in stopped):
        yield f"{resume}{higher_cap(run.record for run in stopped)}"
