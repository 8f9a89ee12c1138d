"""Charts as static SVG: error bars on a common axis, and distributions.

Colours and strokes are in `page.css` of the pages, by the classes of the elements. Each chart says in `aria-label` what
it shows.
"""

from collections.abc import Sequence

from markupsafe import Markup

from modelgauge.documents.axis import MARGIN, Axis
from modelgauge.documents.document import Portion
from modelgauge.wording.figures import figure
from modelgauge.wording.phrases import counted

_ROW = 20
_BEYOND = 100  # pixels by which marks reach out of their row, as far as its cell shows them


def interval_bar(
    axis: Axis,
    value: float,
    interval: tuple[float, float] | None,
    *,
    mark: float | None = None,
    label: str = "",
    look: str = "",
) -> Markup:
    """Draw a value with its interval on an axis.

    Args:
        axis: of the table.
        value: the estimate.
        interval: its confidence interval; None if it has none.
        mark: a value to compare with, such as a threshold, or 0 for differences.
        label: what it says in words; by default the value and the ends of the interval.
        look: of the dot: "told", "untold" or "untested" for differences.
    """
    middle = _ROW / 2
    parts = [] if mark is None else [line("mark", axis.at(mark), -_BEYOND, axis.at(mark), _ROW + _BEYOND)]
    words = figure(value)
    if interval is not None:
        low, high = map(axis.at, interval)
        words += f", from {figure(interval[0])} to {figure(interval[1])}"
        parts.append(line("bar", low, middle, high, middle))
        parts += [line("bar", end, middle - 4, end, middle + 4) for end in (low, high)]
    parts.append(_dot(look, axis.at(value), middle))
    return svg("interval", label or words, axis.width, _ROW, parts)


def _dot(look: str, x: float, y: float) -> Markup:
    """Draw a circle; for what was not tested, a square on its tip."""
    if look == "untested":
        tip = Markup('<path class="dot untested" d="M{:.1f} {:.1f}l4 4 -4 4 -4 -4z"/>')
        return tip.format(x, y - 4)
    return Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="3.5"/>').format(f"dot {look}".strip(), x, y)


def dot_sample(look: str) -> Markup:
    """Draw a dot as in charts, for their legend.

    Args:
        look: "told", "untold" or "untested".
    """
    dot = _dot(look, 6, 6)
    return Markup('<svg class="sample" aria-hidden="true" width="12" height="12">{}</svg>').format(dot)


def axis_ruler(axis: Axis) -> Markup:
    """Draw the ticks of an axis with their values, for a place below its charts."""
    parts = [line("axis", axis.at(axis.low), 1, axis.at(axis.high), 1)]
    ticks = axis.ticks
    for tick in ticks:
        place = axis.at(tick)
        anchor = "start" if tick is ticks[0] else "end" if tick is ticks[-1] else "middle"
        text = Markup('<text x="{:.1f}" y="14" text-anchor="{}">{}</text>')
        shown = figure(round(tick, 12))
        parts += [line("axis", place, 1, place, 4), text.format(place, anchor, shown)]
    return svg("ruler", f"Axis from {figure(axis.low)} to {figure(axis.high)}", axis.width, 18, parts)


def histogram(values: Sequence[float], *, bins: int = 20, width: int = 260, height: int = 60) -> Markup:
    """Draw the distribution of finite numbers: how many are in each of equally wide parts of their range.

    Args:
        values: at least one.
        bins: how many parts.
        width: pixels.
        height: pixels of the highest column.
    """
    axis = Axis.over(values)
    counts = [0] * bins
    for value in values:
        counts[min(bins - 1, int((value - axis.low) / (axis.high - axis.low) * bins))] += 1
    most, wide = max(counts), (width - 2 * MARGIN) / bins
    column = Markup('<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>')
    parts = []
    for place, count in enumerate(counts):
        tall = height * count / most
        start = axis.low + place * (axis.high - axis.low) / bins
        about = f"{count:,} from {figure(start)} to {figure(start + (axis.high - axis.low) / bins)}"
        parts.append(column.format(MARGIN + place * wide, height - tall, max(wide - 1, 0.5), tall, about))
    ends = f"{counted(len(values), 'value')} from {figure(min(values))} to {figure(max(values))}"
    return svg("histogram", f"Distribution of {ends}", width, height, parts)


def portions_bar(parts: Sequence[Portion], *, width: int = 640, height: int = 16) -> Markup:
    """Draw a whole as a bar of its parts.

    Args:
        parts: from left to right; at least one has members.
        width: pixels.
        height: pixels.
    """
    whole, start, drawn = sum(part.count for part in parts), 0.0, []
    rect = Markup('<rect class="{}" x="{:.1f}" y="0" width="{:.1f}" height="{}"><title>{}</title></rect>')
    for part in parts:
        wide = width * part.count / whole
        drawn.append(rect.format(part.look, start, max(wide - 2, 1), height, part.words))
        start += wide
    return svg("portions", ", ".join(part.words for part in parts), width, height, drawn)


def line(name: str, x1: float, y1: float, x2: float, y2: float) -> Markup:
    """Draw a straight line.

    Args:
        name: its class.
        x1: from the left edge to its beginning, in pixels.
        y1: from the upper edge to its beginning, in pixels.
        x2: from the left edge to its end, in pixels.
        y2: from the upper edge to its end, in pixels.
    """
    drawn = Markup('<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>')
    return drawn.format(name, x1, y1, x2, y2)


def svg(
    name: str, label: str, width: int, height: int, parts: Sequence[Markup], *, role: str = "img"
) -> Markup:
    """Join the parts of a chart.

    Args:
        name: its class.
        label: what it shows, in words.
        width: pixels.
        height: pixels.
        parts: elements of SVG.
        role: `group` where links are among the parts.
    """
    start = Markup('<svg class="{}" role="{}" aria-label="{}" viewBox="0 0 {} {}" width="{}" height="{}">')
    return (
        start.format(name, role, label, width, height, width, height)
        + Markup("").join(parts)
        + Markup("</svg>")
    )
