"""The tables of a comparison for a terminal: differences with their intervals drawn, a matrix, leaderboards."""

import math
from collections.abc import Iterable, Mapping, Sequence

from modelgauge.comparison.result import Comparison
from modelgauge.comparison.units import Unit, unit_of
from modelgauge.reports.comparisons.difference_tables import (
    NAMES,
    Columns,
    DifferenceLine,
    DifferenceTable,
    difference_tables,
    leaderboard_items,
    leaderboard_rows,
    ranks,
)
from modelgauge.reports.comparisons.words import VERDICTS
from modelgauge.reports.layout import Page, cells, one_line

_MOST_OF_A_LINE = 500
_MANY = 12  # rows, from which on each must do with one line
_MOST_BOARDS = 3  # leaderboards that are shown in full
_KEPT = 3  # columns beside the drawing that are shown however little room there is
_LEAST_CHART, _GOOD_CHART, _MOST_CHART = 13, 21, 41
_WIDE_NAME = 20
_GAP = 3  # between the columns of a table with a rule
_STEPS = (1, 2, 2.5, 5, 10)
_MOST_STEPS = 4  # between the ends of an axis
_UNICODE, _ASCII = tuple("│┼─├┤"), tuple(":+-[]")
_FOLDS = dict.fromkeys((*NAMES, "System"), 8)


class TextAxis:
    """An axis from the lowest to the highest value, both rounded outwards; 0 is on it.

    Args:
        values: that must have room on it; those that are not finite are left out.
        width: how many characters it has, 3 or more.
        symbols: whether the terminal has more than ASCII.
    """

    def __init__(self, values: Iterable[float], width: int, *, symbols: bool) -> None:
        finite = [0.0, *(value for value in values if math.isfinite(value))]
        step = _step(max(finite) - min(finite))
        self._low, self._high = math.floor(min(finite) / step) * step, math.ceil(max(finite) / step) * step
        if self._low == self._high:
            self._low, self._high = -step, step
        self._width = width
        self._lines = _UNICODE if symbols else _ASCII

    def head(self) -> str:
        """The ends of the axis and its 0, as the head of a column of drawings."""
        low, high = (f"{end:+.6g}" if end else "0" for end in (self._low, self._high))
        line = f"{low}{high:>{max(1 + len(high), self._width - len(low))}}"
        zero = self._at(0)
        free = len(low) < zero < self._width - len(high) - 1
        return f"{line[:zero]}0{line[zero + 1 :]}" if free else line

    def drawn(self, value: float | None, interval: tuple[float, float] | None, mark: str) -> str:
        """A value with its interval, and where 0 is.

        Args:
            value: None for no value.
            interval: its ends, on the axis like the value.
            mark: the character that stands for the value.
        """
        zero, crossing, inside, low_end, high_end = self._lines
        line = [" "] * self._width
        line[self._at(0)] = zero
        if interval is not None:
            low, high = map(self._at, interval)
            line[low : high + 1] = inside * (high + 1 - low)
            if low <= self._at(0) <= high:
                line[self._at(0)] = crossing
            line[low], line[high] = low_end, high_end
        if value is not None:
            line[self._at(value)] = mark
        return "".join(line)

    def _at(self, value: float) -> int:
        place = (value - self._low) / (self._high - self._low) * (self._width - 1)
        return min(max(round(place), 0), self._width - 1)


def _step(span: float) -> float:
    """The smallest step of 1, 2, 2.5 or 5 times a power of ten that divides a span into a few parts."""
    if span <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(span / _MOST_STEPS))
    return next(step * power for step in _STEPS if step * power * _MOST_STEPS >= span * (1 - 1e-9))


def add_differences(comparison: Comparison, page: Page, *, only_means: bool = False) -> None:
    """Add a table of differences for each unit and direction, groups and means over tests included.

    Args:
        comparison: what was found.
        page: where to.
        only_means: leave out the single comparisons, and say so.
    """
    for table in difference_tables(comparison, page.style.arrow, only_means=only_means):
        _add_table(table, page)
    if only_means:
        page.add("The interval of each comparison: with fewer candidates, or with --json.", "dim")
        page.add_gap()


def _add_table(differences: DifferenceTable, page: Page) -> None:
    names, beside, lines = differences.names(), differences.numbers(), differences.lines
    axis = TextAxis(differences.ends, _chart_width(names, beside, page), symbols=page.style.symbols)
    drawings = [_drawing(line, differences.unit, axis, page) for line in lines]
    table = [*names, (axis.head(), drawings), *beside]
    left_out = _drop_what_has_no_room(table, axis.head(), page)
    page.add(_caption(differences, page), "dim")
    _add(table, page, axis.head())
    if left_out:
        page.add(f"Also there, in a wider terminal or with --json: {', '.join(left_out)}.", "dim")
        page.add_gap()


def _chart_width(names: Columns, beside: Columns, page: Page) -> int:
    """How wide drawings are: a good width beside as many columns as that leaves room for, else what is left."""
    room = page.style.width
    for number in range(len(beside), min(_KEPT, len(beside)) - 1, -1):
        room = page.style.width - sum(_width(column) + _GAP for column in (*names, *beside[:number]))
        if room >= _GOOD_CHART:
            break
    return min(max(room, _LEAST_CHART), _MOST_CHART)


def _width(column: tuple[str, list[str]]) -> int:
    return max(_FOLDS.get(column[0], 0), *map(cells, (column[0], *column[1])))


def _drawing(line: DifferenceLine, unit: Unit, axis: TextAxis, page: Page) -> str:
    difference, ends = line.row.difference, line.row.interval
    value = None if difference is None else unit.scale * difference
    scaled = None if ends is None else (unit.scale * ends[0], unit.scale * ends[1])
    return axis.drawn(value, scaled, _mark(line.is_finding, page))


def _mark(is_finding: bool | None, page: Page) -> str:
    found, untold, untested = "●○◇" if page.style.symbols else "#ox"
    return untested if is_finding is None else found if is_finding else untold


def _caption(differences: DifferenceTable, page: Page) -> str:
    legend = [
        f"{_mark(is_finding, page)} {word}"
        for is_finding, word in ((False, "cannot tell"), (None, "untested"))
        if any(line.is_finding is is_finding for line in differences.lines)
    ]
    return ". ".join(filter(None, [differences.about, ", ".join(legend)]))


def _drop_what_has_no_room(table: Columns, drawn: str, page: Page) -> list[str]:
    """Take out the last columns of a long table until each row has one line, and return their names."""
    dropped: list[str] = []
    least = next(at for at, (head, _) in enumerate(table) if head == drawn) + 1 + _KEPT
    while len(table[0][1]) > _MANY and len(table) > least and not _fits(table, page):
        dropped.insert(0, table.pop()[0])
    return dropped


def _fits(table: Columns, page: Page) -> bool:
    """Whether the columns of a table stand side by side, with names folded a little."""
    wide = [min(_width(column), _WIDE_NAME) if column[0] in NAMES else _width(column) for column in table]
    return sum(wide) + _GAP * (len(wide) - 1) <= page.style.width


def _add(table: Columns, page: Page, drawn: str = "") -> None:
    rows = list(zip(*(column for _, column in table), strict=True))
    right = {"difference", "adj. p", "p", "rank"}
    page.add_table(rows, [head for head, _ in table], folds=_FOLDS, right=right, drawn={drawn})


# --- several candidates -----------------------------------------------------------------------------


def add_matrix(comparison: Comparison, page: Page) -> bool:
    """Add a row for each test and measurement, a column for each candidate, where that says more than a list.

    Returns:
        Whether it was added.
    """
    labels = comparison.labels[1:]
    found: dict[tuple[str, str], dict[str, str]] = {}
    for row in comparison.comparisons:
        word = "" if row.verdict == "cannot_tell" else VERDICTS[row.verdict]
        shown = f"{unit_of(row.value_range).signed(row.difference, row.stderr)} {word}".strip()
        found.setdefault((row.test, row.measurement), {})[row.candidate] = shown
    table = _by_system(found, labels)
    if len(labels) < 2 or len(found) < 2 or not _fits(table, page):
        return False
    units = {unit_of(row.value_range).name for row in comparison.comparisons}
    points = f", in {units.pop()}" if len(units) == 1 and "" not in units else ""
    about = f"Less {comparison.baseline.label}{points}; without a word, it cannot be told"
    page.add(one_line(about, _MOST_OF_A_LINE), "dim")
    _add(table, page)
    return True


def add_leaderboards(comparison: Comparison, page: Page) -> None:
    """Add the systems by rank, with indistinguishable systems; for many tests and measurements the ranks alone."""
    if len(comparison.leaderboard) > _MOST_BOARDS:
        _add_ranks(comparison, page)
        return
    for board in comparison.leaderboard:
        page.add(f"{board.test}, {board.measurement}: {leaderboard_items(board)}", "bold")
        columns = map(list, zip(*leaderboard_rows(board), strict=True))
        _add(list(zip(("rank", "System", "value", "not told apart"), columns, strict=True)), page)


def _add_ranks(comparison: Comparison, page: Page) -> None:
    found = {
        (board.test, board.measurement): {system.system: ranks(system) for system in board.systems}
        for board in comparison.leaderboard
    }
    page.add("Ranks that each system may have", "dim")
    _add(_by_system(found, comparison.labels), page)


def _by_system(found: Mapping[tuple[str, str], Mapping[str, str]], labels: Sequence[str]) -> Columns:
    """A row for each test and measurement, a column for each system."""
    table: Columns = [("Test", [test for test, _ in found])]
    if len({measurement for _, measurement in found}) > 1:
        table.append(("Measurement", [measurement for _, measurement in found]))
    return table + [(label, [own.get(label, "") for own in found.values()]) for label in labels]
