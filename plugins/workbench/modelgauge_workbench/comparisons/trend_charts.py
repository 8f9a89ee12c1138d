"""A line of a trend as charts and a table: score with interval, failures, cost, latency, and what changed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import NamedTuple
from urllib.parse import quote

from markupsafe import Markup

from modelgauge.data.estimates import Estimate, interval_text, uncertainty
from modelgauge.documents.axis import Axis
from modelgauge.documents.charts import line
from modelgauge.documents.document import Interval, RowChoice, TableBlock, TableColumn, Text
from modelgauge.documents.html import as_html
from modelgauge.documents.plots import Plot
from modelgauge.wording.figures import dollars, duration, figure
from modelgauge.wording.phrases import counted

_WIDE, _HIGH, _NARROW, _LOW = 540, 240, 260, 140
"""The sizes of the chart of the score, and of those beside it, in pixels."""
_DRAWING = 180  # pixels of an interval in the table
_APART = 6  # pixels between a mark and the interval behind it, at least
_UNITS = {"days": 86400.0, "hours": 3600.0, "minutes": 60.0, "seconds": 1.0}


@dataclass(frozen=True, slots=True)
class Point:
    """A run on a line of a trend.

    Args:
        key: of the run.
        when: it began.
        estimate: the result.
        failed: the number of its items that failed.
        cost: in dollars; None if unknown.
        seconds: the median of what an answer took; None if unknown.
        changes: what differs from the run of this SUT before, so that the values do not compare.
        settings: the hyperparameters that differ from those of that run.
    """

    key: str
    when: datetime
    estimate: Estimate
    failed: int = 0
    cost: float | None = None
    seconds: float | None = None
    changes: Sequence[str] = field(default=())
    settings: Sequence[str] = field(default=())

    @property
    def began(self) -> str:
        """The minute in which the run began."""
        return f"{self.when:%Y-%m-%d %H:%M}"

    @property
    def words(self) -> str:
        """When the run began, and its result."""
        ends = interval_text(self.estimate)
        value = figure(self.estimate.value, uncertainty(self.estimate) or None)
        return f"{self.began}: {value}" + (f" ({ends})" if ends else "")


class Axes(NamedTuple):
    """The axes that all lines share.

    Args:
        begin: the beginning of the axis of time.
        seconds: of its unit.
        time: the axis.
        time_label: its label.
        value: the axis of the result.
        result: its name.
    """

    begin: datetime
    seconds: float
    time: Axis
    time_label: str
    value: Axis
    result: str

    def across(self, point: Point) -> float:
        """Return the place of a run on the axis of time."""
        return (point.when - self.begin).total_seconds() / self.seconds


def shared_axes(result: str, points: Sequence[Point]) -> Axes:
    """Return the axes of all points.

    Args:
        result: its name.
        points: of all lines, at least one.
    """
    ends = [end for point in points for end in (point.estimate.value, *(point.estimate.interval or ()))]
    begin = min(point.when for point in points)
    span = (max(point.when for point in points) - begin).total_seconds()
    unit, seconds = next((unit for unit in _UNITS.items() if span > 2 * unit[1]), ("seconds", 1.0))
    label = f"{unit} since {begin:%Y-%m-%d %H:%M}"
    return Axes(begin, seconds, Axis.over([0.0, span / seconds]), label, Axis.over(ends), result)


def line_blocks(sut: str, points: Sequence[Point], axes: Axes) -> Iterator[Markup]:
    """Yield the charts of a line, where it has several points, and its table.

    Args:
        sut: whose line it is.
        points: the oldest first.
        axes: of all lines.
    """
    numbers = count(1)
    marks = {point.key: next(numbers) for point in points if point.changes}
    if len(points) > 1:
        charts = [_score_chart(sut, points, axes, marks), *_beside(sut, points, axes)]
        yield Markup('<div class="charts">{}</div>').format(Markup("").join(charts))
    yield as_html([_table(sut, points, axes, marks)])


# --- charts -------------------------------------------------------------------------------------------


def _score_chart(sut: str, points: Sequence[Point], axes: Axes, marks: Mapping[str, int]) -> Markup:
    """Draw the score with its intervals; between two runs, a numbered line where something else changed."""
    start = f"; the axis starts at {figure(round(axes.value.low, 12))}" if axes.value.low else ""
    plot = Plot(axes.time, axes.value, (axes.time_label, f"{axes.result}{start}"), width=_WIDE, height=_HIGH)
    places = [(axes.across(point), point.estimate.value) for point in points]
    parts = [plot.path(places)]
    for point, (x, _) in zip(points, places, strict=True):
        if point.estimate.interval is not None:
            low, high = map(plot.down, point.estimate.interval)
            parts.append(line("bar", plot.across(x), low, plot.across(x), high))
    for (left, _), (right, _), after in zip(places, places[1:], points[1:], strict=False):
        if after.key in marks:
            place = min(plot.across((left + right) / 2), plot.across(right) - _APART)
            parts += _change_mark(plot, place, marks[after.key], after)
    seen, pressed = plot.dots(places, radius=3.5), plot.dots(places, radius=10)
    parts += [_link(point, [*dots]) for point, *dots in zip(points, pressed, seen, strict=True)]
    first, last = (figure(point.estimate.value) for point in (points[0], points[-1]))
    about = f"{counted(len(points), 'run')} of {sut} over time, from {first} to {last}"
    scroll = Markup('<div class="scroll" tabindex="0" role="region" aria-label="Chart of {}">{}</div>')
    return scroll.format(sut, plot.drawn("plot", about, parts, role="group"))


def _change_mark(plot: Plot, x: float, number: int, after: Point) -> list[Markup]:
    """Draw a mark with a number between two runs, apart from their intervals."""
    text = Markup(
        '<text class="change" x="{:.1f}" y="{:.1f}" text-anchor="middle">◆{}<title>{}</title></text>'
    )
    top, bottom = plot.down(plot.y.high), plot.down(plot.y.low)
    return [line("mark", x, top, x, bottom), text.format(x, top - 4, number, "; ".join(after.changes))]


def _link(point: Point, parts: Sequence[Markup]) -> Markup:
    """Return what leads to a run from its dot. By keyboard one goes there from the table, in which all runs are."""
    link = Markup('<a href="/runs/{}" data-run="{}" tabindex="-1" aria-label="{}"><title>{}</title>{}</a>')
    return link.format(quote(point.key), point.key, point.words, point.words, Markup("").join(parts))


def _beside(sut: str, points: Sequence[Point], axes: Axes) -> Iterator[Markup]:
    """Draw failures, cost and latency, as far as they are known and not all 0."""
    known: dict[str, Callable[[Point], float | None]] = {
        "failed items": lambda point: point.failed,
        "cost, $": lambda point: point.cost,
        "median latency, s": lambda point: point.seconds,
    }
    for what, value in known.items():
        found = [(axes.across(point), said) for point in points if (said := value(point)) is not None]
        values = [said for _, said in found]
        if any(values):
            plot = Plot(
                axes.time, Axis.over(values, zero=True), (axes.time_label, what), width=_NARROW, height=_LOW
            )
            ends = f"from {figure(min(values))} to {figure(max(values))}"
            parts = [plot.path(found), *plot.dots(found, radius=2.5)]
            yield plot.drawn("plot", f"{what} of {sut} over time, {ends}", parts)


# --- the table ----------------------------------------------------------------------------------------


def _table(sut: str, points: Sequence[Point], axes: Axes, marks: Mapping[str, int]) -> TableBlock:
    """Return a row for each run, the latest first."""
    rows = points[::-1]
    estimates = [point.estimate for point in rows]
    names = [
        (
            RowChoice("runs", point.key, f"compare the run of {point.began}"),
            Text(point.began, f"/runs/{quote(point.key, safe='')}"),
        )
        for point in rows
    ]
    columns = [
        TableColumn("Began (UTC)", names, kind="name"),
        TableColumn(
            axes.result, [figure(each.value, uncertainty(each) or None) for each in estimates], kind="number"
        ),
        TableColumn("95 % interval", [interval_text(each) for each in estimates]),
        TableColumn(
            "", [Interval(each.value, each.interval) for each in estimates], axis=axes.value.sized(_DRAWING)
        ),
        TableColumn("n", [f"{each.n:,}" for each in estimates], kind="number"),
        TableColumn("failed", [f"{point.failed:,}" if point.failed else "" for point in rows], kind="number"),
        TableColumn("cost", [dollars(point.cost) if point.cost else "" for point in rows], kind="number"),
        TableColumn(
            "median latency",
            ["" if point.seconds is None else duration(point.seconds) for point in rows],
            kind="number",
        ),
        TableColumn(
            "Changed",
            [_changed(point, marks) for point in rows],
            kind="name",
            about="Since the run before; ◆ is a mark in the chart",
        ),
    ]
    shown = [column for column in columns if not column.is_empty]
    return TableBlock(shown, label=f"Runs of {sut}", kind="results rows cards")


def _changed(point: Point, marks: Mapping[str, int]) -> str:
    """Say what changed; the number is that of the mark in the chart."""
    mark = [f"◆{marks[point.key]}"] if point.key in marks else []
    return " ".join([*mark, " · ".join([*point.changes, *point.settings])])
