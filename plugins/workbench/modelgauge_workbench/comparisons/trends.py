"""A result of a test over time: the value of each run with its error bar, and where data, judge or test changed."""

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from modelgauge.comparison.pairing.comparability import differences
from modelgauge.data.estimates import Estimate, uncertainty
from modelgauge.data.records import TestRecord
from modelgauge.documents.axis import Axis
from modelgauge.documents.charts import axis_ruler, interval_bar, line
from modelgauge.documents.plots import Plot
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.errors import RecordError
from modelgauge.wording.figures import between, figure
from modelgauge.wording.phrases import counted
from modelgauge_workbench.comparisons.baselines import shown_baseline
from modelgauge_workbench.index.queries import options
from modelgauge_workbench.index.scan import folder_of
from modelgauge_workbench.rendering import page
from modelgauge_workbench.workbench import workbench_of

_MOST_RUNS = 300  # of a test, the latest ones
_CHANGES = ("test", "data", "judge", "reduction", "thresholds", "options", "sample")
"""Kinds of differences between runs that make a step of a result look like one of the SUT."""
_LONGEST = 16  # characters of a value that changed: enough of a digest
_UNITS = {"days": 86400.0, "hours": 3600.0, "minutes": 60.0, "seconds": 1.0}


@dataclass(frozen=True, slots=True)
class Point:
    """A run on a line of a trend.

    Args:
        key: of the run.
        when: it began.
        estimate: the result.
        changes: what differs from the run of this SUT before, so that the values do not compare.
    """

    key: str
    when: datetime
    estimate: Estimate
    changes: tuple[str, ...]


def show_trends(request: Request) -> Response:
    """The results of the test that the address names, one line for each SUT."""
    workbench, asked = workbench_of(request), request.query_params
    query = "SELECT * FROM runs WHERE test = ? AND state = 'finished' ORDER BY began DESC, name DESC LIMIT ?"
    with workbench.index.reading() as db:
        tests = options(db)["test"]
        test = asked.get("test") or (tests[0] if tests else "")
        rows = db.execute(query, (test, _MOST_RUNS)).fetchall()[::-1]
    records = [_record(folder_of(workbench.index, row).path, row["stamp"]) for row in rows]
    recorded = [(row, record) for row, record in zip(rows, records, strict=True) if record is not None]
    names = [*dict.fromkeys(name for _, record in recorded for name in _estimates(record))]
    result = asked.get("result") if asked.get("result") in names else names[0] if names else ""
    lines = {
        sut: [*_points([entry for entry in recorded if entry[0]["sut"] == sut], result or "")]
        for sut in dict.fromkeys(row["sut"] for row, _ in recorded)
    }
    return page(
        request,
        "comparisons/trends.html.j2",
        title=f"{test} over time" if test else "Over time",
        test=test,
        tests=tests,
        result=result,
        results=names,
        baseline=shown_baseline(workbench, "test", test),
        lines=_views({sut: points for sut, points in lines.items() if points}),
    )


@lru_cache(maxsize=2 * _MOST_RUNS)
def _record(path: Path, stamp: str) -> TestRecord | None:
    """The record of a run while its files are as the index knows them; None if it is damaged."""
    del stamp
    try:
        return RunFolder(path).read_record()
    except RecordError:  # the list of runs says so
        return None


def _estimates(record: TestRecord) -> dict[str, Estimate]:
    return {name: estimate for name, estimate in record.result.items() if isinstance(estimate, Estimate)}


def _points(runs: Sequence[tuple[sqlite3.Row, TestRecord]], result: str) -> Iterator[Point]:
    before: TestRecord | None = None
    for row, record in runs:
        estimate = _estimates(record).get(result)
        if estimate is not None:
            changes = () if before is None else tuple(_changes(before, record))
            yield Point(row["key"], datetime.fromisoformat(row["began"]), estimate, changes)
            before = record


def _changes(before: TestRecord, after: TestRecord) -> Iterator[str]:
    for difference in differences(after.test_uid, after.sut_name, before, after):
        if difference.kind in _CHANGES:
            values = [str(value)[:_LONGEST] for value in (difference.baseline, difference.candidate_value)]
            yield f"{difference.kind}, {difference.name}: {' → '.join(values)}"


# --- what is drawn ----------------------------------------------------------------------------------------


def _views(lines: dict[str, list[Point]]) -> list[dict[str, Any]]:
    """A chart and a table for each SUT, all on the same axes."""
    points = [point for of_sut in lines.values() for point in of_sut]
    if not points:
        return []
    ends = [end for point in points for end in (point.estimate.value, *(point.estimate.interval or ()))]
    values, begin = Axis.over(ends), min(point.when for point in points)
    span = (max(point.when for point in points) - begin).total_seconds()
    unit, seconds = next((unit for unit in _UNITS.items() if span > 2 * unit[1]), ("seconds", 1.0))
    times = Axis.over([0.0, span / seconds])
    plot = Plot(times, values, (f"{unit} since {begin:%Y-%m-%d %H:%M}", "value"), width=640, height=220)

    def across(point: Point) -> float:
        return (point.when - begin).total_seconds() / seconds

    return [
        {
            "sut": sut,
            "plot": _plot(plot, sut, [(across(point), point) for point in of_sut]) if len(of_sut) > 1 else "",
            "ruler": axis_ruler(values),
            "rows": [
                _row(point) | {"chart": interval_bar(values, point.estimate.value, point.estimate.interval)}
                for point in reversed(of_sut)
            ],
        }
        for sut, of_sut in lines.items()
    ]


def _plot(plot: Plot, sut: str, points: Sequence[tuple[float, Point]]) -> Markup:
    parts = []
    for x, point in points:
        if point.changes:
            parts.append(
                line("mark", plot.across(x), plot.down(plot.y.high), plot.across(x), plot.down(plot.y.low))
            )
        if point.estimate.interval is not None:
            low, high = map(plot.down, point.estimate.interval)
            parts.append(line("bar", plot.across(x), low, plot.across(x), high))
    places = [(x, point.estimate.value) for x, point in points]
    parts.append(plot.path(places))
    seen, pressed = plot.dots(places, radius=3.5), plot.dots(places, radius=10)
    parts += [_link(point, [*dots]) for (_, point), *dots in zip(points, pressed, seen, strict=True)]
    first, last = (figure(point.estimate.value) for _, point in (points[0], points[-1]))
    return plot.drawn(
        "plot",
        f"{counted(len(points), 'run')} of {sut} over time, from {first} to {last}",
        parts,
        role="group",
    )


def _link(point: Point, parts: Sequence[Markup]) -> Markup:
    """What leads to a run from its dot. By keyboard one goes there from the table below, in which all runs are."""
    link = Markup('<a href="/runs/{}" data-run="{}" tabindex="-1" aria-label="{}"><title>{}</title>{}</a>')
    row = _row(point)
    about = f"{row['when']}: {row['value']}" + (f" ({row['interval']})" if row["interval"] else "")
    return link.format(quote(point.key), point.key, about, about, Markup("").join(parts))


def _row(point: Point) -> dict[str, Any]:
    estimate = point.estimate
    return {
        "key": point.key,
        "when": f"{point.when:%Y-%m-%d %H:%M}",
        "value": figure(estimate.value, uncertainty(estimate) or None),
        "interval": between(estimate.interval, uncertainty(estimate)) if estimate.interval else "",
        "n": f"{estimate.n:,}",
        "changes": point.changes,
    }
