"""Report of one run: results, their uncertainty, failures, and where to find it.

`runs_report.py` combines one run or several.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from modelgauge.data.estimates import Estimate
from modelgauge.data.records import TestRecord
from modelgauge.data.results import CallsByKind, Spent, listed, results_table
from modelgauge.data.thresholds import PASSED
from modelgauge.documents.document import Block, Fact, FactList, Heading, TableBlock, TableColumn
from modelgauge.engine.run_files.folder import REPORT, RunFolder
from modelgauge.reports.failures import group_failures
from modelgauge.reports.thresholds import label_of
from modelgauge.runs.passing import describe_passed, have_all_passed
from modelgauge.runs.recorded_run import RecordedRun, higher_cap
from modelgauge.wording.figures import between, duration, width
from modelgauge.wording.phrases import counted, keep_ends

_RECORD = "record"
_AGAIN = "run the same command again: it asks only what failed"
STAGES = {"sut": "SUT", "annotator": "annotator", "measure": "measure_quality of"}
_PARTS = {"items": "make_test_items", "aggregate": "aggregate_measurements", "run": "the run"}


def run_blocks(run: RecordedRun, shown_by: str = "", most_rows: int | None = None) -> Iterator[Block]:
    """Return the report of one run.

    Args:
        run: a record, with its folder.
        shown_by: the command, which is not advised again: `show`, `resume`, `rescore`, or another.
        most_rows: rows of one group of results, and groups of errors; None for all.
    """
    record = run.record
    yield Heading(f"{record.test_uid} on {record.sut_name}")
    if record.result:
        yield results_of(record, most_rows)
    where = [] if run.folder is None else [*_where(run, run.folder.path, shown_by)]
    yield FactList([*facts(run, errors=_errors(run, most_rows)), *where], indent=len(_RECORD))


# --- results of one run ---------------------------------------------------------------------------


def results_of(record: TestRecord, most_rows: int | None = None) -> TableBlock:
    """Return the table of the results of a run, each with its interval and how many items passed its threshold.

    Args:
        record: of the run, with at least one result.
        most_rows: rows of one group; None for all.
    """
    names, values = zip(*result_rows(record, most_rows), strict=True)
    labels = [label_of(record, name) for name in names]
    columns = [*results_table(zip(labels, values, strict=True)).columns]
    estimates = [value for value in values if isinstance(value, Estimate)]
    missing = record.counts.failed or record.counts.partial or is_prefix(record)
    if (estimates and missing) or any(map(has_spread, estimates)):
        columns.append(TableColumn("worst to best", [*map(partial(_bounds, record), names, values)]))
    if any(estimate.bounds_interval for estimate in estimates):
        columns.append(TableColumn("95 % with missing", [*map(interval_with_missing, values)]))
    if record.thresholds:
        columns.append(TableColumn("passed", [passed_beside(record, name) for name in names]))
    return TableBlock(columns)


def passed_beside(record: TestRecord, name: str) -> str:
    """Return how many items passed the threshold of a result, or all thresholds; empty if that is unknown."""
    measured = record.measurement_of(name)
    return describe_passed(record, None if measured == PASSED else measured) or ""


def is_prefix(record: TestRecord) -> bool:
    """Return whether a run was stopped before all its items were done."""
    counts = record.counts
    return record.ended_early and (counts.not_begun != 0 or counts.items > counts.finished)


def has_spread(value: Estimate) -> bool:
    """Return whether missing items could change a result."""
    return value.bounds is not None and value.bounds[0] != value.bounds[1]


def _bounds(record: TestRecord, name: str, value: Any) -> str:
    if not isinstance(value, Estimate):
        return ""
    bounds = record.worst_to_best(name, value)
    return "bounds not known" if bounds is None else between(bounds, abs(width(bounds)))


def interval_with_missing(value: Any) -> str:
    """Return the 95 % interval of a result whatever its missing items would have scored, as text; empty if none."""
    if not isinstance(value, Estimate) or value.bounds_interval is None:
        return ""
    return between(value.bounds_interval, width(value.bounds_interval) / 4)


def shown_results(record: TestRecord) -> Mapping[str, Any]:
    """Return the results that get a row; the share of items that passed a threshold is shown with its result."""
    measured = {record.measurement_of(name): name for name in record.result}
    beside = {measured.get(f"{name}.{PASSED}") for name in record.thresholds if name in measured}
    return {name: value for name, value in record.result.items() if name not in beside}


def result_rows(record: TestRecord, most: int | None) -> Iterator[tuple[str, Any]]:
    """Return the rows of the table of results: names with values; `Estimate`s of groups follow a name without one.

    Args:
        record: of the run.
        most: rows of one group; None for all.
    """
    yield from listed(shown_results(record), most)


# --- facts of one run -----------------------------------------------------------------------------


def facts(run: RecordedRun, *, errors: Iterable[str]) -> Iterator[Fact]:
    """Return the facts shown with the results.

    Args:
        run: its record and where it is.
        errors: why items failed, each kind in a line.
    """
    record = run.record
    if record.dataset is not None:
        yield Fact("data set", str(record.dataset))
    counts = record.counts
    yield Fact("items", _items(run), "alarm" if counts.failed or counts.partial else "")
    if record.prompts is not None and record.distinct_prompts != record.prompts:
        yield Fact("prompts", _prompts(record))
    if counts.empty:
        yield Fact("answers", f"{counts.empty:,} empty", "alarm")
    if run.ended or record.seconds is not None:
        yield Fact("calls", calls_in_words([record]))
    if record.spent is not None and (record.spent.tokens or record.spent.cost_usd):
        yield Fact("used", spent_in_words(record.spent))
    if record.seconds is not None:
        yield Fact("time", duration(record.seconds))
    for label, content in _why_ended_early(run):
        yield Fact(label, content, "alarm" if label == "stopped" else "")
    for error in errors:
        yield Fact("errors", error, "alarm")
    for note in [*_prefix(record), *record.notes, *_cuts(record)]:
        yield Fact("note", note)


def _where(run: RecordedRun, path: Path, shown_by: str) -> Iterator[Fact]:
    """Return the path of the run, and the commands that show more of it or continue it."""
    record, to_copy = run.record, partial(Fact, is_whole=True)
    yield to_copy(_RECORD, str(path))
    if RunFolder(path).is_imported():
        yield to_copy("origin", "a bundle, so it is not known to be your own run")
    if (path / REPORT).exists():
        yield to_copy("report", str(path / REPORT))
    failed = record.counts.failed or record.counts.partial or not have_all_passed(record)
    options = " --failures" if failed else " --items" if shown_by == "show" else ""
    yield to_copy("next", f"{run.command('show')}{options}")
    stopped = record.ended_early and not run.going_on
    in_vain = shown_by in ("resume", "rescore") and not record.cancelled and not higher_cap([record])
    if stopped and not in_vain and (command := run.to_go_on()) is not None:
        yield to_copy("then" if run.needs_correction else "", command)
    if shown_by in ("run-test", "resume") and not stopped and record.counts.failed:
        yield to_copy("", f"{run.command('resume')} --retry-failed")
    elif shown_by in ("run-test", "rescore") and not stopped and _keeps_answers(run):
        yield to_copy("", _AGAIN)


def _keeps_answers(run: RecordedRun) -> bool:
    """Return whether calls of a run have failed, and the answers to the others are in the cache."""
    counts, options = run.record.counts, run.folder and run.folder.read_manifest().get("options")
    has_failed = counts.sut_errors > counts.blocked or counts.annotator_errors or counts.failed_repeats
    if not has_failed or not isinstance(options, dict) or options.get("caching") is not True:
        return False
    return not any(note.startswith("Not cached") for note in run.record.notes)


def _cuts(record: TestRecord) -> Iterator[str]:
    """Name servers that refused so many calls at once, so that fewer were sent."""
    for uid, changes in record.concurrency.items():
        cuts = [
            change.limit
            for change, then in zip_longest(changes, changes[1:])
            if change.why == "rate limited" and (then is None or then.why != "cut in vain")
        ]
        if cuts:
            yield f"concurrency cut to {min(cuts)} by the server's rate limit ({uid})"


def _prompts(record: TestRecord) -> str:
    """Say how many prompts differ; equal prompts share an answer."""
    items = record.counts.finished
    prompts = "" if record.prompts == items else f", {counted(record.prompts or 0, 'prompt')}"
    return f"{counted(items, 'item')}{prompts}, {counted(record.distinct_prompts or 0, 'distinct prompt')}"


def _prefix(record: TestRecord) -> Iterator[str]:
    """Return a note that the results of a stopped run are of its first items."""
    if record.result and is_prefix(record):
        estimates = (value for _, value in listed(record.result, None) if isinstance(value, Estimate))
        bounded = " Worst to best does." if all(estimate.bounds for estimate in estimates) else ""
        yield (
            "The run was stopped: its results are of the items that came first. Those of the others may differ, which "
            f"the intervals do not allow for.{bounded}"
        )


def _items(run: RecordedRun) -> str:
    counts, sample = run.record.counts, run.record.sample
    chosen = "" if sample is None else f"{sample.size:,} of {sample.total:,}, seed {sample.seed}: "
    partial = f", {counts.partial:,} of them in part ({counted(counts.failed_repeats, 'failed repeat')})"
    kinds = {"SUT error": counts.sut_errors - counts.blocked, "annotator error": counts.annotator_errors}
    parts = [counted(number, kind) for kind, number in kinds.items() if number]
    parts += [f"{counts.blocked:,} blocked by the service"] if counts.blocked else []
    parts += [f"{counts.unscored:,} unscored"] if counts.unscored else []
    unfinished = counts.items - counts.finished
    failed = f"{counts.failed:,} failed" + (f" ({', '.join(parts)})" if parts else "")
    missing = f", {unfinished:,} not finished" if unfinished > 0 else ""
    scored = f"{counts.scored:,} scored{partial if counts.partial else ''}"
    return f"{chosen}{scored}, {failed}{missing}{_not_begun(run)}{'' if run.ended else ' so far'}"


def _not_begun(run: RecordedRun) -> str:
    """Say how many items were never taken up, where the run was stopped."""
    number, record = run.record.counts.not_begun, run.record
    if number is None and run.ended and record.ended_early:
        return "; the test's items were not read to their end"
    return f", {number:,} not begun" if number else ""


def calls_in_words(records: Sequence[TestRecord]) -> str:
    """Say how many calls runs paid, and how many the cache answered, of each kind that was made."""
    calls = sum((record.counts for record in records), CallsByKind())
    kinds = {"SUT": calls.sut_calls, "annotators": calls.annotator_calls, "judges": calls.judge_calls}
    return "; ".join(
        f"{kind} {counts.paid:,} made, {counts.cached:,} cached"
        for kind, counts in kinds.items()
        if kind == "SUT" or counts.paid or counts.cached
    )


def spent_in_words(spent: Spent) -> str:
    """Return tokens, dollars and forward passes as text, where a SUT reports them."""
    tokens = [counted(spent.tokens, "token")] if spent.tokens else []
    cost = [f"${spent.cost_usd:,.{4 if spent.cost_usd < 1 else 2}f}"] if spent.cost_usd else []
    passes = [counted(spent.forward_passes, "forward pass", "forward passes")] if spent.forward_passes else []
    return ", ".join(tokens + cost + passes)


def _why_ended_early(run: RecordedRun) -> Iterator[tuple[str, str]]:
    record = run.record
    if record.cancelled:
        yield "stopped", "interrupted; what was finished is kept"
    failure = record.failure
    if failure is not None and not run.ended:
        yield "state", failure.message
    elif failure is not None:
        yield "stopped", f"{_PARTS[failure.stage]}: {failure.error_type}: {keep_ends(failure.message, 900)}"


def _errors(run: RecordedRun, most_rows: int | None) -> Iterator[str]:
    """Say why items failed, each kind in a line."""
    record, failure = run.record, run.record.failure
    if not (record.counts.failed or record.counts.partial):
        return
    groups = group_failures(run.failures())
    shown = groups if most_rows is None else groups[: min(most_rows, 5)]
    for group in shown:
        first = group.failure
        same = failure is not None and first.message.rstrip(". ") in failure.message
        message = "see above" if same else keep_ends(first.message, 600)
        where = f"{STAGES[first.stage]} {first.source_uid}"
        yield f"{group.count:,} x {where}: {first.error_type}: {message}"
    rest = sum(group.count for group in groups[len(shown) :])
    if rest:
        yield f"{rest:,} x others"
