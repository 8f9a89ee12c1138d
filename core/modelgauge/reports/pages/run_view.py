"""What a page shows first of runs: what came out, how sure that is, what failed. Data for the templates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from markupsafe import Markup

from modelgauge.comparison.named_runs import named_run
from modelgauge.data.estimates import Estimate, uncertainty
from modelgauge.data.records import TestRecord
from modelgauge.data.results import GIVEN
from modelgauge.data.thresholds import PASSED
from modelgauge.reports.layout import Style, ends_of
from modelgauge.reports.pages.charts import Axis, axis_ruler, interval_bar
from modelgauge.reports.pages.item_data import ItemTable
from modelgauge.reports.pages.run_parts import Part, address, latency_in_words, parts_of
from modelgauge.reports.run_report import (
    STAGES,
    facts,
    has_spread,
    interval_with_missing,
    is_prefix,
    result_rows,
    shown_results,
)
from modelgauge.reports.thresholds import label_of
from modelgauge.runs.group_means import GroupMean, group_means
from modelgauge.runs.passing import passed_of, why_not_passed
from modelgauge.runs.recorded_run import RecordedRun
from modelgauge.wording.figures import between, figure, width
from modelgauge.wording.labels import title_labels
from modelgauge.wording.phrases import counted

_MOST_KINDS = 8  # of failures
_STYLE = Style(width=160, most_rows=12)
_TROUBLES = ("stopped", "state")


@dataclass(frozen=True, slots=True)
class ResultRow:
    """A row of the table of results.

    Args:
        label: the result, with its threshold.
        address: of the items of its group; empty if it is of all.
        indent: whether it is part of the group above.
        value: with the digits that its uncertainty allows.
        interval: in words.
        chart: the value and its interval on the table's axis.
        n: the number of items.
        bounds: worst to best, where items are missing.
        bounds_interval: the interval whatever the missing items would have scored.
        passed: how many items passed the threshold.
    """

    label: str
    address: str
    indent: bool
    value: str = ""
    interval: str = ""
    chart: str = ""
    n: str = ""
    bounds: str = ""
    bounds_interval: str = ""
    passed: str = ""


@dataclass(frozen=True, slots=True)
class FailureRow:
    """A kind of failures.

    Args:
        count: how many failed in this way.
        kind: the exception, and what failed.
        message: of the first; empty on a page without texts.
        address: of the items.
    """

    count: str
    kind: str
    message: str
    address: str


@dataclass(frozen=True, slots=True)
class RunView:
    """The parts of a run's page: texts, charts and addresses, for a template.

    Args:
        number: its place on the page.
        title: the test and the SUT.
        record: of the run.
        when: when the run began.
        verdict: what came out, in a sentence, and its kind: "met", "missed", "stopped" or nothing.
        troubles: why it ended early: label and text of each.
        failures: the kinds of failures, the most frequent first.
        results: the rows of the table of results.
        ruler: the axis of their charts.
        facts: label and text of each fact shown with the results.
        notes: what a reader should know.
        parts: what follows the first screen.
        left_out: how many items the page does not have.
        show: the command that shows the run in a terminal.
    """

    number: int
    title: str
    record: TestRecord
    when: str
    verdict: tuple[str, str]
    troubles: list[tuple[str, str]]
    failures: list[FailureRow]
    results: list[ResultRow]
    ruler: Markup
    facts: list[tuple[str, str]]
    notes: list[str]
    parts: list[Part]
    left_out: int
    show: str


def run_view(
    number: int,
    run: RecordedRun | TestRecord,
    table: ItemTable,
    *,
    sut: str = "",
    items: str = "",
    without_texts: bool = False,
) -> RunView:
    """Return the parts of a run's page.

    Args:
        number: its place on the page.
        run: its record.
        table: its items.
        sut: what the title calls the SUT; by default its label or the last part of its uid.
        items: the address of its items, with braces where fields of the search come; by default their place on the
            page that `write_page` writes.
        without_texts: leave out the messages of errors too, since they may quote prompts and answers.
    """
    run = named_run(run) if isinstance(run, TestRecord) else run
    sut = sut or title_labels([run.record.sut_name])[0]
    items = items or f"#run={number}&{{}}"
    record, about = run.record, [(label, text) for label, text, _ in facts(run, errors=())]
    if latency := latency_in_words(table):
        about.append(("latency", latency))
    return RunView(
        number,
        title=record.test_uid if record.sut_uid == GIVEN else f"{record.test_uid} on {sut}",
        record=record,
        when=record.run_timestamp.replace("T", " ")[:16],
        verdict=_verdict(run),
        troubles=[] if without_texts else [*(fact for fact in about if fact[0] in _TROUBLES), *_next(run)],
        failures=list(_failures(items, table)),
        results=list(_result_rows(items, run, table)),
        ruler=axis_ruler(_axis(_estimates(record))),
        facts=[fact for fact in about if fact[0] not in (*_TROUBLES, "note")],
        notes=[text for label, text in about if label == "note"],
        parts=parts_of(items, run, table, without_texts=without_texts),
        left_out=record.counts.finished - table.number,
        show=run.command("show"),
    )


def _next(run: RecordedRun) -> Iterator[tuple[str, str]]:
    """The command that goes on with a run that ended early."""
    command = run.to_go_on() if run.record.ended_early and not run.going_on else None
    if command is not None:
        yield "to go on", command


def _failures(items: str, table: ItemTable) -> Iterator[FailureRow]:
    """The kinds of failures, the most frequent first, each with the address of its items."""
    kinds = [*table.failures]
    shown = table.failures.most_common(_MOST_KINDS)
    for key, count in shown:
        stage, uid, error_type = key[:3]
        kind = f"{error_type} at {STAGES.get(stage, stage)} {uid}"
        behind = address(items, failure=str(kinds.index(key) + 1))
        yield FailureRow(f"{count:,}", kind, ends_of(table.messages[key], 600), behind)
    rest = table.failures.total() - sum(count for _, count in shown)
    if rest:
        yield FailureRow(f"{rest:,}", "others", "", address(items, show="failed"))


def _verdict(run: RecordedRun) -> tuple[str, str]:
    """What came out, in a sentence, and its kind: "met", "missed", "stopped" or nothing."""
    record = run.record
    sentences = []
    for name, estimate in _first(record):
        right = (
            f"{figure(round(estimate.value * estimate.n, 6))} of {estimate.n:,}: "
            if estimate.interval_kind == "wilson"
            else ""
        )
        sentences.append(f"{right}{label_of(record, name, _STYLE)} {_in_words(estimate)}.")
    if run.going_on:
        return " ".join([*sentences, "The run is going on: this is what is known so far."]), ""
    if is_prefix(record):
        sentences.append("The run was stopped: these are its first items, not a sample.")
        return " ".join(sentences), "stopped"
    if not sentences:
        return "Nothing was scored." if not record.counts.scored else "There is no estimate.", "stopped"
    if not record.thresholds:
        return " ".join(sentences), ""
    missed = why_not_passed(record)
    sentences.append(
        "All items passed their thresholds." if missed is None else f"{missed[0].upper()}{missed[1:]}."
    )
    return " ".join(sentences), "met" if missed is None else "missed"


def overview(runs: Sequence[RecordedRun], suts: Sequence[str]) -> tuple[list[dict[str, Any]], Markup]:
    """Return a row for each run, with the first results of all on one axis, and this axis.

    Below them are the means over groups of tests.

    Args:
        runs: of the page.
        suts: what the rows call their SUTs.
    """
    means = _group_means(runs)
    axis = _axis(
        [*(estimate for run in runs for _, estimate in _first(run.record)), *(group.mean for group in means)]
    )
    titles = {run.record.sut_name: sut for run, sut in zip(runs, suts, strict=True)}
    rows = [
        {
            "address": f"#run={number}",
            "test": run.record.test_uid,
            "sut": sut,
            "verdict": _verdict_of_row(run),
            "chart": next(
                (interval_bar(axis, estimate.value, estimate.interval) for _, estimate in _first(run.record)),
                "",
            ),
        }
        for number, (run, sut) in enumerate(zip(runs, suts, strict=True))
    ]
    rows += [
        {
            "address": "",
            "test": mean.label,
            "sut": titles[mean.sut],
            "verdict": (f"{mean.result} {_in_words(mean.mean)}.", ""),
            "chart": interval_bar(axis, mean.mean.value, mean.mean.interval),
        }
        for mean in means
    ]
    return rows, axis_ruler(axis)


def _verdict_of_row(run: RecordedRun) -> tuple[str, str]:
    """Return the verdict of a run, and how many more results the page of the run shows."""
    sentences, kind = _verdict(run)
    record = run.record
    others = [
        name
        for name in shown_results(record)
        if record.measurement_of(name) != PASSED or not record.thresholds
    ]
    more = len(others) - len(_first(record))
    return f"{sentences} {counted(more, 'more result')}." if more > 0 else sentences, kind


def _group_means(runs: Sequence[RecordedRun]) -> list[GroupMean]:
    """The means over groups of tests of each command, of the results that the rows of the runs show."""
    commands: dict[str, list[TestRecord]] = {}
    for run in runs:
        commands.setdefault(run.record.invocation_id, []).append(run.record)
    shown = {name for run in runs for name, _ in _first(run.record)}
    return [mean for records in commands.values() for mean in group_means(records) if mean.result in shown]


def _in_words(estimate: Estimate) -> str:
    """A value, with its interval."""
    interval = f" ({between(estimate.interval, uncertainty(estimate))})" if estimate.interval else ""
    return f"{figure(estimate.value, uncertainty(estimate))}{interval}"


def _first(record: TestRecord) -> list[tuple[str, Estimate]]:
    """The first estimate of a run, in a list; an empty list where there is none."""
    found = ((name, value) for name, value in record.result.items() if isinstance(value, Estimate))
    return list(islice(found, 1))


def _estimates(record: TestRecord) -> list[Estimate]:
    return [
        estimate for _, estimate in result_rows(record, _STYLE.most_rows) if isinstance(estimate, Estimate)
    ]


def _axis(estimates: Sequence[Estimate]) -> Axis:
    """The axis that estimates share: that of shares, from 0 to 1, where all are within."""
    ends = [end for estimate in estimates for end in (estimate.value, *(estimate.interval or ()))]
    return Axis(0, 1) if all(0 <= end <= 1 for end in ends) else Axis.over(ends)


def _address_of_group(items: str, group: str, table: ItemTable) -> str:
    """The address of the items of a group, where one label has its name; else nothing."""
    names = [name for name, labels in table.facets.items() if group in labels.values]
    return address(items, **{f"is-{names[0]}": group}) if len(names) == 1 else ""


def _result_rows(items: str, run: RecordedRun, table: ItemTable) -> Iterator[ResultRow]:
    record, axis = run.record, _axis(_estimates(run.record))
    for name, value in result_rows(record, _STYLE.most_rows):
        label, indent = label_of(record, name, _STYLE).strip(), name.startswith(" ")
        behind = _address_of_group(items, name.strip(), table) if indent else ""
        if not isinstance(value, Estimate):
            yield ResultRow(label, behind, indent, "" if value is None else figure(value))
            continue
        measured = record.measurement_of(name)
        threshold = record.thresholds.get(measured)
        bounds = record.worst_to_best(name, value) if has_spread(value) else None
        yield ResultRow(
            label,
            behind,
            indent,
            figure(value.value, uncertainty(value)),
            between(value.interval, uncertainty(value)),
            interval_bar(
                axis, value.value, value.interval, mark=None if threshold is None else threshold.value
            ),
            f"{value.n:,}",
            between(bounds, abs(width(bounds))),
            interval_with_missing(value),
            passed_of(record, None if measured == PASSED else measured) or "",
        )
