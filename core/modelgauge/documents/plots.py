"""Plots with two axes as static SVG: points over time, steps, and how often forecasts come true.

Charts with one axis are in `charts.py`; colours and strokes in `page.css` of the pages.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from markupsafe import Markup

from modelgauge.documents.axis import Axis
from modelgauge.documents.charts import line, svg
from modelgauge.documents.document import Bin
from modelgauge.wording.figures import figure

_MOST_DOTS = 500
_LEFT, _BELOW, _ABOVE, _RIGHT = 44, 34, 22, 12


@dataclass(frozen=True, slots=True)
class Plot:
    """The frame of a plot.

    Args:
        x: the horizontal axis; its width is not used.
        y: the vertical axis; its width is not used.
        labels: what the axes are, with units.
        width: pixels.
        height: pixels.
    """

    x: Axis
    y: Axis
    labels: tuple[str, str]
    width: int = 340
    height: int = 190

    def across(self, value: float) -> float:
        """Return the horizontal place of a value, in pixels."""
        return _LEFT + self.x.share(value) * (self.width - _LEFT - _RIGHT)

    def down(self, value: float) -> float:
        """Return the vertical place of a value, in pixels."""
        return self.height - _BELOW - self.y.share(value) * (self.height - _BELOW - _ABOVE)

    def dots(self, points: Iterable[tuple[float, float]], radius: float = 2) -> list[Markup]:
        """Draw points as dots of a radius in pixels."""
        dot = Markup('<circle class="dot" cx="{:.1f}" cy="{:.1f}" r="{}"/>')
        return [dot.format(self.across(x), self.down(y), radius) for x, y in points]

    def path(self, points: Sequence[tuple[float, float]], name: str = "path") -> Markup:
        """Draw a line through points.

        Args:
            points: at least one.
            name: its class.
        """
        places = " ".join(f"{self.across(x):.1f},{self.down(y):.1f}" for x, y in points)
        return Markup('<polyline class="{}" points="{}"/>').format(name, places)

    def drawn(self, name: str, about: str, parts: Iterable[Markup], *, role: str = "img") -> Markup:
        """Draw the plot with its axes.

        Args:
            name: its class.
            about: what it shows, in words.
            parts: what stands in it.
            role: see `svg`.
        """
        bottom, left = self.height - _BELOW, _LEFT
        frame = [
            line("axis", left, _ABOVE, left, bottom),
            line("axis", left, bottom, self.width - _RIGHT, bottom),
        ]
        text = Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>')
        for tick in self.x.ticks:
            place = self.across(tick)
            frame.append(line("axis", place, bottom, place, bottom + 3))
            frame.append(text.format(place, bottom + 14, "middle", figure(round(tick, 12))))
        for tick in self.y.ticks:
            place = self.down(tick)
            frame.append(line("axis", left - 3, place, left, place))
            frame.append(text.format(left - 5, place + 4, "end", figure(round(tick, 12))))
        frame.append(text.format(self.width - _RIGHT, self.height - 4, "end", self.labels[0]))
        frame.append(text.format(2, 11, "start", self.labels[1]))
        return svg(name, about, self.width, self.height, [*frame, *parts], role=role)


def over_time(points: Sequence[tuple[float, float]], what: str) -> Markup:
    """Draw values over time; of many values also the medians of equal parts of the time, as a line.

    Args:
        points: seconds since the beginning and value of each; at least one.
        what: what the values are, with their unit.
    """
    last = max(x for x, _ in points) or 1.0
    plot = Plot(Axis.over([0.0, last]), Axis.over([y for _, y in points], zero=True), ("seconds", what))
    every = -(-len(points) // _MOST_DOTS)  # more of them are one blot, and a large file
    drawn = plot.dots(points[::every])
    bins = min(20, len(points) // 10)
    if bins > 1:
        parts: dict[int, list[float]] = {}
        for x, y in points:
            parts.setdefault(min(bins - 1, int(bins * x / last)), []).append(y)
        middles = [((at + 0.5) / bins * last, median(values)) for at, values in sorted(parts.items())]
        drawn.append(plot.path(middles))
    return plot.drawn("plot", f"{what} of {len(points):,} over {figure(last)} seconds", drawn)


def steps(changes: Sequence[tuple[float, float]], end: float, what: str) -> Markup:
    """Draw a value that changes by steps.

    Args:
        changes: seconds and the value from then on; at least one.
        end: seconds.
        what: what the value is.
    """
    last = max(end, changes[-1][0]) or 1.0
    values = [value for _, value in changes]
    plot = Plot(Axis.over([0.0, last]), Axis.over(values, zero=True), ("seconds", what), height=150)
    corners = [changes[0]]
    for (_, before), (when, value) in pairwise(changes):
        corners += [(when, before), (when, value)]
    about = f"{what} from {figure(min(values))} to {figure(max(values))} over {figure(last)} seconds"
    return plot.drawn("plot", about, [plot.path([*corners, (last, values[-1])])])


def reliability(bins: Sequence[Bin], what: str) -> Markup:
    """Draw how often forecasts came true, with the diagonal on which forecasts are right.

    Args:
        bins: of forecasts: their mean, the share that came true with its interval, how many they are.
        what: the event that was forecast.
    """
    plot = Plot(
        Axis(0, 1, step=0.2), Axis(0, 1, step=0.2), ("score", f"share with {what}"), width=240, height=240
    )
    parts = [plot.path([(0, 0), (1, 1)], "mark")]
    for mean, _, interval, _ in bins:
        if interval is not None:
            x = plot.across(mean)
            parts.append(line("bar", x, plot.down(interval[0]), x, plot.down(interval[1])))
    parts += plot.dots([(mean, share) for mean, share, _, _ in bins], radius=3.5)
    return plot.drawn("plot", f"Share with {what} by score, in {len(bins)} parts", parts)
