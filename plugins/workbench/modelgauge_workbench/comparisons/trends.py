"""Results over time: of a data set, a test file or a test, one line for each SUT. `trend_charts.py` draws them."""

import sqlite3
import statistics
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from modelgauge.comparison.pairing.comparability import differences
from modelgauge.comparison.result import RunDifference
from modelgauge.data.annotations import MeasuredTestItem
from modelgauge.data.estimates import Estimate
from modelgauge.data.records import TestRecord
from modelgauge.data.results import get_range
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.errors import RecordError
from modelgauge.reports.comparisons.words import short_json
from modelgauge.runs.recorded_run import recorded_run
from modelgauge.stats import MeasuredItems, mean_of_each
from modelgauge.wording.phrases import beginning
from modelgauge_workbench.comparisons.baselines import shown_baseline
from modelgauge_workbench.comparisons.trend_charts import Point, line_blocks, shared_axes
from modelgauge_workbench.index.queries import finished_runs, options, seconds_of, test_files
from modelgauge_workbench.index.scan import folder_of
from modelgauge_workbench.rendering import page
from modelgauge_workbench.workbench import Workbench, workbench_of

_KINDS = {"dataset": "Data sets", "file": "Test files", "test": "Tests"}
"""What can be looked at over time: the fields of addresses, and what the page calls them."""
_MOST_RUNS = 300  # the latest ones
_INCOMPARABLE = ("test", "data", "judge", "reduction", "thresholds", "options", "sample")
"""Kinds of differences between runs that make a step of a result look like one of the SUT."""
_LONGEST, _DIGEST = 32, 8  # characters of a value that changed, and of a digest


class _Outcome(NamedTuple):
    """The outcome of a run, or of its cases of a test file."""

    results: Mapping[str, Estimate]
    failed: int
    cost: float | None


def show_trends(request: Request) -> Response:
    """Answer with the results of what the address names, one line for each SUT."""
    workbench, asked = workbench_of(request), request.query_params
    with workbench.index.reading() as db:
        choices = {kind: options(db)[kind] for kind in _KINDS}
    kind, name = _subject(asked, choices)
    runs = _runs(workbench, kind, name)
    names = [*dict.fromkeys(result for _, _, outcome in runs for result in outcome.results)]
    result = asked["result"] if asked.get("result") in names else names[0] if names else ""
    lines = {
        sut: [
            *_points(
                workbench, [run for run in runs if run[0]["sut"] == sut], result, name * (kind == "file")
            )
        ]
        for sut in dict.fromkeys(row["sut"] for row, _, _ in runs)
    }
    lines = {sut: points for sut, points in lines.items() if points}
    axes = shared_axes(result, [point for points in lines.values() for point in points]) if lines else None
    return page(
        request,
        "comparisons/trends.html.j2",
        title=f"{name} over time" if name else "Over time",
        kinds=_KINDS,
        choices=choices,
        kind=kind,
        name=name,
        result=result,
        results=names,
        baseline=None if kind == "file" else shown_baseline(workbench, kind, name),
        lines={sut: [*line_blocks(sut, points, axes)] for sut, points in lines.items()} if axes else {},
    )


def _subject(asked: Mapping[str, str], choices: Mapping[str, Sequence[str]]) -> tuple[str, str]:
    """Return the kind and the name of what an address asks for: `of=dataset:NAME`, or `dataset=NAME`."""
    kind, _, name = asked.get("of", "").partition(":")
    if kind in _KINDS and name:
        return kind, name
    known = [(kind, asked[kind]) for kind in _KINDS if asked.get(kind)]
    return next(iter([*known, *((kind, names[0]) for kind, names in choices.items() if names)]), ("test", ""))


def _runs(workbench: Workbench, kind: str, name: str) -> list[tuple[sqlite3.Row, TestRecord, _Outcome]]:
    """Return the finished runs, the oldest first, without damaged ones, which the list of runs shows."""
    with workbench.index.reading() as db:
        rows = finished_runs(db, kind, name, _MOST_RUNS)
        files = test_files(db, rows)
    found = []
    for row in reversed(rows):
        file = name if kind == "file" and len(files[row["number"]]) > 1 else ""
        try:
            found.append((row, *_read(folder_of(workbench.index, row).path, row["stamp"], file)))
        except RecordError:
            continue
    return found


@lru_cache(maxsize=2 * _MOST_RUNS)
def _read(path: Path, stamp: str, file: str) -> tuple[TestRecord, _Outcome]:
    """Read a run whose files are as the index knows them; on request, the outcome of the cases of a test file alone."""
    del stamp
    run = recorded_run(RunFolder(path))
    record = run.record
    if not file:
        results = {name: value for name, value in record.result.items() if isinstance(value, Estimate)}
        cost = record.spent.cost_usd if record.spent else None
        return record, _Outcome(results, record.counts.failed, cost)
    items = [item for item in run.items().records() if (item.test_item.id or "").startswith(f"{file}::")]
    measured = [MeasuredTestItem(item.test_item, item.measurements) for item in items if item.is_scored]
    ranges = {name: get_range(ends) for name, ends in (record.ranges or {}).items()}
    means = mean_of_each(MeasuredItems.of(measured, ranges=ranges)) if measured else {}
    return record, _Outcome(means, len(items) - len(measured), None)


def _points(
    workbench: Workbench, runs: Sequence[tuple[sqlite3.Row, TestRecord, _Outcome]], result: str, file: str
) -> Iterator[Point]:
    """Yield the points of a line."""
    before: TestRecord | None = None
    for row, record, outcome in runs:
        if result not in outcome.results:
            continue
        before = record if before is None else before
        found = [*differences(record.test_uid, record.sut_name, before, record)]
        yield Point(
            row["key"],
            datetime.fromisoformat(row["began"]),
            outcome.results[result],
            failed=outcome.failed,
            cost=outcome.cost,
            seconds=_median_seconds(workbench, row, file),
            changes=[
                _change(difference, before, record)
                for difference in found
                if difference.kind in _INCOMPARABLE
            ],
            settings=[
                _change(difference, before, record)
                for difference in found
                if difference.kind == "hyperparameters"
            ],
        )
        before = record


def _change(difference: RunDifference, before: TestRecord, after: TestRecord) -> str:
    """Say what changed between two runs: of a saved data set the versions, of other data the digests."""
    values = [difference.baseline, difference.candidate_value]
    shown = ["not set" if value is None else beginning(short_json(value), _LONGEST) for value in values]
    if difference.kind == "data":
        shown = ["none" if value is None else str(value)[:_DIGEST] for value in values]
        datasets = [record.dataset for record in (before, after) if record.dataset is not None]
        versions = [dataset.version for dataset in datasets if dataset.version is not None]
        if len(versions) == len(values):
            shown = [f"version {version}" for version in versions]
    kind = "" if difference.kind in ("data", "hyperparameters", difference.name) else f"{difference.kind}, "
    return f"{kind}{difference.name}: {' → '.join(shown)}"


@lru_cache(maxsize=2 * _MOST_RUNS)
def _median_of(workbench: Workbench, run: int, stamp: str, file: str) -> float | None:
    del stamp
    with workbench.index.reading() as db:
        seconds = seconds_of(db, run, file)
    return statistics.median(seconds) if seconds else None


def _median_seconds(workbench: Workbench, row: sqlite3.Row, file: str) -> float | None:
    """Return the median of the seconds that the answers of a run took; None if it does not say that."""
    return _median_of(workbench, row["number"], row["stamp"], file)
