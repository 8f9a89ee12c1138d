"""Contents of a page about runs: results, their uncertainty, and failures; below these, the parts of `run_parts.py`."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from modelgauge.comparison.named_runs import named_run
from modelgauge.data.estimates import Estimate, uncertainty
from modelgauge.data.records import TestRecord
from modelgauge.data.results import GIVEN
from modelgauge.data.thresholds import PASSED
from modelgauge.documents.axis import Axis
from modelgauge.documents.document import (
    Block,
    Cell,
    Conclusion,
    Fact,
    FactList,
    Heading,
    Inline,
    Interval,
    Section,
    Sentences,
    TableBlock,
    TableColumn,
    Text,
    Troubles,
)
from modelgauge.reports.pages.item_columns import ItemVerdicts
from modelgauge.reports.pages.item_data import ItemTable
from modelgauge.reports.pages.run_parts import address, latency_in_words, parts_of
from modelgauge.reports.pages.verdicts import verdict_blocks, verdicts_on
from modelgauge.reports.run_report import (
    STAGES,
    facts,
    has_spread,
    interval_with_missing,
    is_prefix,
    passed_beside,
    result_rows,
    shown_results,
)
from modelgauge.reports.thresholds import label_of
from modelgauge.runs.group_means import GroupMean, group_means
from modelgauge.runs.passing import why_not_passed
from modelgauge.runs.recorded_run import RecordedRun
from modelgauge.wording.figures import between, figure, width
from modelgauge.wording.labels import title_labels
from modelgauge.wording.phrases import counted, keep_ends

_TIMES = "\N{MULTIPLICATION SIGN}"
_MOST_KINDS = 8  # of failures
_MOST_ROWS = 12  # of one group of results
_WITH_MISSING = "The 95 % interval whatever the missing items would have scored"
_TROUBLES = ("stopped", "state")


def run_document(
    run: RecordedRun | TestRecord,
    table: ItemTable,
    *,
    sut: str = "",
    items: str = "#run=0&{}",
    without_texts: bool = False,
) -> Iterator[Block]:
    """Return what a page shows of a run: the first screen, and the details that a page shows below the items.

    Args:
        run: its record.
        table: its items.
        sut: what the title calls the SUT; by default its label or the last part of its uid.
        items: the address of its items, with braces where fields of the search come; by default their place on the
            page of one run that `write_page` writes.
        without_texts: leave out the messages of errors too, since they may quote prompts and answers.
    """
    run = named_run(run) if isinstance(run, TestRecord) else run
    yield from first_screen(run, table, sut=sut, items=items, without_texts=without_texts)
    yield from run_details(run, table, items=items, without_texts=without_texts)


def first_screen(
    run: RecordedRun, table: ItemTable, *, sut: str = "", items: str, without_texts: bool = False
) -> Iterator[Block]:
    """Return what a page shows of a run above its items; for the arguments see `run_document`."""
    record = run.record
    when = record.run_timestamp.replace("T", " ")[:16]
    yield Heading(
        title_of(record, sut), beside=f"{when} · {record.identifier}" if record.identifier else when
    )
    verdicts = _verdicts(run, table)
    if verdicts is None:
        yield _verdict(run)
    else:
        yield _verdict_on_items(record, verdicts)
        yield from verdict_blocks(items, table, verdicts)
    troubles = [*(fact for fact in facts(run, errors=()) if fact.label in _TROUBLES), *_next(run)]
    if troubles and not without_texts:
        yield Troubles("What failed", troubles)
    if failures := [*_failures(items, table)]:
        yield Troubles("Kinds of failures", failures)
    if record.result and verdicts is None:
        yield _results_table(items, run, table)


def run_details(
    run: RecordedRun, table: ItemTable, *, items: str, without_texts: bool = False
) -> Iterator[Block]:
    """Return what a page shows of a run below its items; for the arguments see `run_document`."""
    about = [*facts(run, errors=())]
    if run.record.result and _verdicts(run, table) is not None:
        yield _scores(items, run, table)
    if latency := latency_in_words(table):
        about.append(Fact("latency", latency))
    beside = [fact for fact in about if fact.label not in (*_TROUBLES, "note")]
    yield FactList([*beside, Fact("run", run.record.run_id)])
    if notes := [fact.text for fact in about if fact.label == "note"]:
        yield Sentences(notes, look="dim")
    yield from parts_of(items, run, table, without_texts=without_texts)


def _verdicts(run: RecordedRun, table: ItemTable) -> ItemVerdicts | None:
    """Return the verdicts on the items of a whole run with thresholds; None for any other run."""
    is_whole = not (run.going_on or is_prefix(run.record))
    return verdicts_on(table) if is_whole and run.record.thresholds else None


def sut_titles(runs: Sequence[RecordedRun]) -> list[str]:
    """Return the names of the SUTs of runs for people; of given answers, the ids of the runs.

    Args:
        runs: of a page.
    """
    names = [run.record.run_id if run.record.sut_uid == GIVEN else run.record.sut_name for run in runs]
    return title_labels(names)


def title_of(record: TestRecord, sut: str = "") -> str:
    """Return the title of a run: its test, and its SUT unless its answers were given.

    Args:
        record: of the run.
        sut: what it calls the SUT; by default its label or the last part of its uid.
    """
    sut = sut or title_labels([record.sut_name])[0]
    return record.test_uid if record.sut_uid == GIVEN else f"{record.test_uid} on {sut}"


def _next(run: RecordedRun) -> Iterator[Fact]:
    """Return the command that goes on with a run that ended early."""
    command = run.to_go_on() if run.record.ended_early and not run.going_on else None
    if command is not None:
        yield Fact("to go on", command)


def _failures(items: str, table: ItemTable) -> Iterator[Fact]:
    """Return the kinds of failures, the most frequent first, each with the address of its items."""
    kinds = [*table.failures]
    shown = table.failures.most_common(_MOST_KINDS)
    for key, count in shown:
        stage, uid, error_type = key[:3]
        behind = address(items, failure=str(kinds.index(key) + 1))
        kind = Text(f"{error_type} at {STAGES.get(stage, stage)} {uid}", behind)
        yield Fact((f"{count:,} {_TIMES} ", kind), keep_ends(table.messages[key], 600))
    rest = table.failures.total() - sum(count for _, count in shown)
    if rest:
        yield Fact((f"{rest:,} {_TIMES} ", Text("others", address(items, show="failed"))), "")


def _verdict_on_items(record: TestRecord, verdicts: ItemVerdicts) -> Conclusion:
    """Return whether the items passed, and how many of them have no verdict."""
    missed = why_not_passed(record)
    all_passed = "All judged items passed" if verdicts.unjudged else "All items passed"
    text = f"{all_passed} their thresholds." if missed is None else f"{missed[0].upper()}{missed[1:]}."
    unjudged = f" {verdicts.unjudged:,} could not be judged." if verdicts.unjudged else ""
    return Conclusion(f"{text}{unjudged}", "met" if missed is None else "missed")


def _verdict(run: RecordedRun) -> Conclusion:
    record = run.record
    sentences = []
    for name, estimate in _first(record):
        right = (
            f"{figure(round(estimate.value * estimate.n, 6))} of {estimate.n:,}: "
            if estimate.interval_kind == "wilson"
            else ""
        )
        sentences.append(f"{right}{label_of(record, name)} {_in_words(estimate)}.")
    if run.going_on:
        return Conclusion(" ".join([*sentences, "The run is going on: this is what is known so far."]))
    if is_prefix(record):
        sentences.append("The run was stopped: these are its first items, not a sample.")
        return Conclusion(" ".join(sentences), "stopped")
    if not sentences:
        text = "Nothing was scored." if not record.counts.scored else "There is no estimate."
        return Conclusion(text, "stopped")
    if not record.thresholds:
        return Conclusion(" ".join(sentences))
    missed = why_not_passed(record)
    sentences.append(
        "All items passed their thresholds." if missed is None else f"{missed[0].upper()}{missed[1:]}."
    )
    return Conclusion(" ".join(sentences), "met" if missed is None else "missed")


def overview_table(runs: Sequence[RecordedRun], suts: Sequence[str]) -> TableBlock:
    """Return a row for each run, with the first results of all on one axis, and for the means over groups of tests.

    Args:
        runs: of the page.
        suts: what the rows call their SUTs.
    """
    means = _group_means(runs)
    titles = {run.record.sut_name: sut for run, sut in zip(runs, suts, strict=True)}
    names: list[Inline] = [
        (Text(run.record.test_uid, f"#run={number}"), " ", Text(sut, look="small"))
        for number, (run, sut) in enumerate(zip(runs, suts, strict=True))
    ]
    names += [(mean.label, " ", Text(titles[mean.sut], look="small")) for mean in means]
    firsts = [next((estimate for _, estimate in _first(run.record)), None) for run in runs]
    estimates = [*firsts, *(mean.mean for mean in means)]
    verdicts = [*map(_verdict_of_row, runs)]
    results: list[Cell] = [Text(verdict.text, look=verdict.kind) for verdict in verdicts]
    results += [f"{mean.result} {_in_words(mean.mean)}." for mean in means]
    drawn = [
        Interval(None) if value is None else Interval(value.value, value.interval) for value in estimates
    ]
    return TableBlock(
        [
            TableColumn("Run", names, kind="name"),
            TableColumn("", drawn, axis=_axis([estimate for estimate in estimates if estimate is not None])),
            TableColumn("Result", results),
        ],
        label="All runs",
        kind="results all",
    )


def _verdict_of_row(run: RecordedRun) -> Conclusion:
    """Return the verdict of a run, and how many more results the page of the run shows."""
    verdict, record = _verdict(run), run.record
    if (missed := why_not_passed(record)) is not None and verdict.kind == "missed":
        verdict = replace(
            verdict, text=f"{missed[0].upper()}{missed[1:]}. {verdict.text.partition('. ')[0]}."
        )
    others = [
        name
        for name in shown_results(record)
        if record.measurement_of(name) != PASSED or not record.thresholds
    ]
    more = len(others) - len(_first(record))
    return replace(verdict, text=f"{verdict.text} {counted(more, 'more result')}.") if more > 0 else verdict


def _group_means(runs: Sequence[RecordedRun]) -> list[GroupMean]:
    """Return the means over groups of tests of each command, of the results that the rows of the runs show."""
    commands: dict[str, list[TestRecord]] = {}
    for run in runs:
        commands.setdefault(run.record.invocation_id, []).append(run.record)
    shown = {name for run in runs for name, _ in _first(run.record)}
    return [mean for records in commands.values() for mean in group_means(records) if mean.result in shown]


def _in_words(estimate: Estimate) -> str:
    """Return a value, with its interval."""
    interval = f" ({_interval_text(estimate)})" if estimate.interval else ""
    return f"{_value(estimate)}{interval}"


def _first(record: TestRecord) -> list[tuple[str, Estimate]]:
    """Return the first estimate of a run, in a list; an empty list where there is none."""
    found = ((name, value) for name, value in record.result.items() if isinstance(value, Estimate))
    return list(islice(found, 1))


def _axis(estimates: Sequence[Estimate]) -> Axis:
    """Return the axis that estimates share: that of shares, from 0 to 1, where all are within."""
    ends = [end for estimate in estimates for end in (estimate.value, *(estimate.interval or ()))]
    return Axis(0, 1) if all(0 <= end <= 1 for end in ends) else Axis.over(ends)


def _address_of_group(items: str, group: str, table: ItemTable) -> str:
    """Return the address of the items of a group, where one label has its name; else nothing."""
    names = [name for name, labels in table.facets.items() if group in labels.values]
    return address(items, **{f"is-{names[0]}": group}) if len(names) == 1 else ""


def _scores(items: str, run: RecordedRun, table: ItemTable) -> Section:
    """Return the table of results as a part that opens: the verdicts on the items come first."""
    record = run.record
    means = [
        f"{name} {_value(value)}"
        for name, value in record.result.items()
        if name in record.thresholds and isinstance(value, Estimate)
    ]
    summary = ", ".join(means) or "results with their intervals"
    return Section("Scores", summary, [_results_table(items, run, table)])


def _results_table(items: str, run: RecordedRun, table: ItemTable) -> TableBlock:
    record = run.record
    names, values = zip(*result_rows(record, _MOST_ROWS), strict=True)
    estimates = [value if isinstance(value, Estimate) else None for value in values]
    rows = [*zip(names, estimates, strict=True)]
    passed = ["" if value is None else passed_beside(record, name) for name, value in rows]
    missing = [
        TableColumn("Worst to best", [_bounds(record, name, value) for name, value in rows]),
        TableColumn("95 % with missing", [*map(interval_with_missing, values)], about=_WITH_MISSING),
        TableColumn("Passed", passed),
    ]
    columns = [
        TableColumn("Result", [_name(record, name, items, table) for name in names]),
        TableColumn("Value", [*map(_value, values)], kind="number"),
        TableColumn("95 % interval", ["" if value is None else _interval_text(value) for value in estimates]),
        TableColumn(
            "",
            [_drawn(record, name, value) for name, value in rows],
            axis=_axis([value for value in estimates if value is not None]),
        ),
        TableColumn("n", ["" if value is None else f"{value.n:,}" for value in estimates], kind="number"),
        *(column for column in missing if not column.is_empty),
    ]
    return TableBlock(columns, label="Results", kind="results own")


def _name(record: TestRecord, name: str, items: str, table: ItemTable) -> Text:
    """Return the name of a result with its threshold; that of a group leads to its items."""
    is_part = name.startswith(" ")
    behind = _address_of_group(items, name.strip(), table) if is_part else ""
    return Text(" " * is_part + label_of(record, name).strip(), behind)


def _value(value: Any) -> str:
    if isinstance(value, Estimate):
        return figure(value.value, uncertainty(value))
    return "" if value is None else figure(value)


def _interval_text(estimate: Estimate) -> str:
    return between(estimate.interval, uncertainty(estimate))


def _drawn(record: TestRecord, name: str, estimate: Estimate | None) -> Interval:
    if estimate is None:
        return Interval(None)
    threshold = record.thresholds.get(record.measurement_of(name))
    mark = None if threshold is None else threshold.value
    return Interval(estimate.value, estimate.interval, mark=mark)


def _bounds(record: TestRecord, name: str, estimate: Estimate | None) -> str:
    bounds = record.worst_to_best(name, estimate) if estimate and has_spread(estimate) else None
    return between(bounds, abs(width(bounds)))
