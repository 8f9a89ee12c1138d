"""The text that a person reads after runs: of one its report, of several a table first, and the details on request.

`render` makes a text and prints nothing. What it says of one run is in `run_report.py`.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from modelgauge.data.estimates import Estimate, interval_text, uncertainty, value_text
from modelgauge.data.records import TestRecord
from modelgauge.data.results import Spent
from modelgauge.data.thresholds import PASSED
from modelgauge.reports.failures import group_failures
from modelgauge.reports.layout import Page, Style, ends_of
from modelgauge.reports.run_report import (
    add_run,
    calls_in_words,
    is_prefix,
    shown_results,
    spent_in_words,
)
from modelgauge.reports.thresholds import name_of
from modelgauge.runs.group_means import group_means
from modelgauge.runs.passing import passed_of
from modelgauge.runs.recorded_run import RecordedRun, higher_cap
from modelgauge.wording.figures import dollars, duration, figure
from modelgauge.wording.phrases import counted, first_few

_RESULTS = 3  # of one run, where there is room
_ROWS = 12  # that are filled with further results
_LONGEST_HEAD = 12
_TIME = "   time"  # as wide as most times, so that tables of like runs look alike
_TROUBLES = 5
_MOST_NAMED = 8


class _Row(NamedTuple):
    """A row of the table: a result of a run, or a mean over a group. What stands in the row above is left empty."""

    test: str
    sut: str
    result: str
    value: str
    interval: str
    n: str
    failed: str
    used: str  # the cost, or the time


def render(
    runs: Sequence[RecordedRun],
    style: Style,
    redact: Callable[[str], str] = str,
    *,
    shown_by: str = "",
    details: bool = False,
    differences: Sequence[str] = (),
) -> str:
    """The report of one or more runs.

    Args:
        runs: records with their folders.
        style: of the terminal.
        redact: takes secrets out of a text; each cell goes through it before lines are broken.
        shown_by: the command, which is not advised again: `show`, `resume`, `rescore`, or another.
        details: whether the report of each of several runs follows.
        differences: what differs between the SUTs, in words.

    Returns:
        Lines without white space at their ends; with ANSI codes only where the style has colour.
    """
    page = Page(style, redact)
    if len(runs) > 1:
        _add_table(runs, page)
        _add_facts(runs, page, differences, shown_by, details=details)
    for run in runs if details or len(runs) == 1 else ():
        add_run(run, page, shown_by)
    return page.rendered()


def headline(record: TestRecord, style: Style) -> str:
    """The headline of a run: how many items passed, else its first result that is no group."""
    passed = passed_of(record)
    if passed is not None:
        return f"{passed} {PASSED}"
    for name, value in record.result.items():
        if not isinstance(value, Mapping):
            return f"{name_of(record, name)} {value_text(value, style.plus_minus)}"
    return ""


# --- the table --------------------------------------------------------------------------------------


def _add_table(runs: Sequence[RecordedRun], page: Page) -> None:
    """Add a row for each result of each pair, and for the means over the tests of groups."""
    records = [run.record for run in runs]
    tests, suts = ({getattr(record, name) for record in records} for name in ("test_uid", "sut_name"))
    many = (len(tests), "test", records[0].test_uid), (len(suts), "SUT", records[0].sut_name)
    page.add(
        " on ".join(counted(number, word) if number > 1 else alone for number, word, alone in many), "bold"
    )
    most = _most_results(runs)
    rows = [row for record in records for row in _rows_of_run(record, most)]
    known = {row.result for row in rows} - {""}
    rows += [row for row in _rows_of_groups(records) if row.result in known]
    rows = [*_without_repeated_tests(rows)] if len(suts) > 1 else rows
    costs = any(record.spent is not None and record.spent.cost_usd for record in records)
    head = _Row(
        "Test", "SUT", "Result", "value", "95 % interval", "n", "failed", "cost" if costs else _TIME
    )._asdict()
    if len(known) == 1 and len(name := known.pop()) <= _LONGEST_HEAD:
        head["value"] = name
        del head["result"]
    if len(tests) == 1:
        del head["test"]
    if len(suts) == 1:
        del head["sut"]
    for column in ("interval", "n", "failed", "used"):
        if not any(getattr(row, column) for row in rows):
            del head[column]
    page.add_table(
        [[getattr(row, column) for column in head] for row in rows],
        [*head.values()],
        folds={"Test": 8, "SUT": 3, "Result": 6},
        right={"n", "failed", _TIME, "cost"},
        optional={_TIME},
    )


def _rows_of_run(record: TestRecord, most: int) -> Iterator[_Row]:
    """The first results of a run; its items, failures, cost or time stand in the first row."""
    spent = record.spent or Spent()
    took = "" if record.seconds is None else duration(record.seconds)
    rest = _failed(record), dollars(spent.cost_usd) if spent.cost_usd else took
    about = record.test_uid, record.sut_name
    for name, value in _results(record)[0][:most]:
        number = f"{value.n:,}" if isinstance(value, Estimate) else ""
        yield _Row(*about, name, _value(value), interval_text(value), number, *rest)
        about = rest = "", ""


def _without_repeated_tests(rows: Sequence[_Row]) -> Iterator[_Row]:
    """The rows, of which only the first of each test names it; the others tell by their SUT what they are."""
    above = ""
    for row in rows:
        yield row._replace(test="") if row.test == above else row
        above = row.test or above


def _value(value: Any) -> str:
    """A value for a cell that has its interval beside it."""
    if isinstance(value, Estimate):
        return figure(value.value, uncertainty(value))
    return value if isinstance(value, str) else figure(value)


def _failed(record: TestRecord) -> str:
    return f"{record.counts.failed:,}{', stopped' if record.ended_early else ''}"


def _most_results(runs: Sequence[RecordedRun]) -> int:
    """Return how many results of each run get a row."""
    return max(1, min(_RESULTS, _ROWS // len(runs)))


def _results(record: TestRecord) -> tuple[list[tuple[str, Any]], list[str]]:
    """Return the results that can have a row, by name, the number of passed items first, and the groups that cannot.

    Groups get rows if there is nothing else.
    """
    passed, results = passed_of(record), shown_results(record)
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


def _rows_of_groups(records: Sequence[TestRecord]) -> Iterator[_Row]:
    for group in group_means(records):
        mean = group.mean
        cells = _value(mean), interval_text(mean), f"{mean.n:,}", f"{group.failed:,}"
        named = next(record for record in records if record.test_uid == group.tests[0])
        yield _Row(group.label, group.sut, name_of(named, group.result), *cells, used="")


# --- what all have in common ------------------------------------------------------------------------


def _add_facts(
    runs: Sequence[RecordedRun],
    page: Page,
    differences: Sequence[str],
    shown_by: str,
    *,
    details: bool,
) -> None:
    records = [run.record for run in runs]
    facts = [*(("errors", text) for text in _troubles(runs, page.style.width - 9))]
    facts += [("differs", text) for text in differences]
    facts += [("note", text) for text in _without_rows(runs, details=details)]
    if any(is_prefix(record) for record in records):
        facts.append(("note", "Results of stopped runs are of the items that came first; others may differ."))
    if empty := sum(record.counts.empty for record in records):
        facts.append(("answers", f"{empty:,} empty"))
    facts.append(("calls", calls_in_words(records)))
    used = sum((record.spent for record in records if record.spent is not None), Spent())
    if used.tokens or used.cost_usd:
        facts.append(("used", spent_in_words(used)))
    shown, label = [], ""
    for name, text in facts:
        shown.append(("" if name == label else name, text, "red" if name == "errors" else ""))
        label = name
    commands = [] if details else [*_next(runs, shown_by)]
    page.add_facts(shown, list(zip_longest(["next"][: len(commands)], commands, fillvalue="")))
    page.add_gap()


def _without_rows(runs: Sequence[RecordedRun], *, details: bool) -> Iterator[str]:
    """Return the results without a row: those that do not fit, unless details follow, and those that a run lacks.

    A run lacks results that other runs of its test have, and results with a threshold.
    """
    records = [run.record for run in runs]
    most, found = _most_results(runs), [_results(record) for record in records]
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


def _troubles(runs: Sequence[RecordedRun], width: int) -> Iterator[str]:
    """What went wrong in each run, on three lines at most; the same of several runs once."""
    found: dict[str, list[TestRecord]] = {}
    for run in runs:
        for text in _trouble(run):
            found.setdefault(text, []).append(run.record)
    for text, (record, *others) in list(found.items())[:_TROUBLES]:
        more = f" and {counted(len(others), 'more pair')}" if others else ""
        yield ends_of(f"{record.test_uid} on {record.sut_name}{more}: {text}", 3 * width)
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
    """The commands that show more of the runs, or continue those that were stopped."""
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
