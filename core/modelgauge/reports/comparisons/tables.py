"""The tables of a comparison: differences with their intervals on a common axis, a matrix, leaderboards."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from modelgauge.comparison.result import (
    Comparison,
    GroupDifference,
    Interval,
    LeaderboardTable,
    MacroComparison,
    MeasurementComparison,
    RankedSystem,
)
from modelgauge.data.figures import figure, p_text
from modelgauge.data.results import Direction
from modelgauge.reports.comparisons.interval_chart import Axis
from modelgauge.reports.comparisons.words import VERDICTS, Unit, unit_of
from modelgauge.reports.layout import Page, cells, counted, one_line

_MOST_OF_A_LINE = 500
_MANY = 12  # rows, from which on each must do with one line
_MOST_BOARDS = 3  # leaderboards that are shown in full
_LABEL = 18  # characters of a system's name that fit over a column of values
_KEPT = 3  # columns beside the drawing that are shown however little room there is
_LEAST_CHART, _GOOD_CHART, _MOST_CHART = 13, 21, 41
_WIDE_NAME = 20
_GAP = 3  # between the columns of a table with a rule
_NAMES = ("Test", "Measurement", "Candidate")
_FOLDS = dict.fromkeys((*_NAMES, "System"), 8)

_Table = list[tuple[str, list[str]]]  # heads with their cells


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A row of a table of differences: a comparison, one of its groups, or a mean over tests.

    Args:
        names: the test, the measurement and the candidate.
        indented: stands in place of the names where it is a part of the row above.
        of_tests: whether it is a mean over tests, which its first name says.
        difference: None where nothing was paired.
        stderr: of the difference.
        interval: of the difference.
        told: whether it is a finding, of whatever kind; None where that was not tested.
        other: its other cells, by the heads of their columns.
    """

    names: tuple[str, str, str]
    indented: str = ""
    of_tests: bool = False
    difference: float | None
    stderr: float | None
    interval: Interval | None
    told: bool | None = None
    other: dict[str, str] = field(default_factory=dict)


def add_differences(comparison: Comparison, page: Page, *, only_means: bool = False) -> None:
    """Add a table of differences for each unit and direction, groups and means over tests included.

    Args:
        comparison: what was found.
        page: where to.
        only_means: leave out the single comparisons, and say so.
    """
    tables: dict[tuple[Unit, str, Direction | None], list[_Line]] = {}
    for row in () if only_means else _by_test(comparison.comparisons):
        tables.setdefault(_table_of(row), []).extend(_lines(row, comparison, page))
    for mean in comparison.macro:
        tables.setdefault(_table_of(mean), []).append(_mean_line(mean, comparison))
    for (unit, _, direction), lines in tables.items():
        _add_table(lines, unit, direction, page)
    if only_means:
        page.add("The interval of each comparison: with fewer candidates, or with --json.", "dim")
        page.add_gap()


def _by_test(rows: Sequence[MeasurementComparison]) -> list[MeasurementComparison]:
    """The comparisons of each test together, in the order of the tests."""
    tests = {test: place for place, test in enumerate(dict.fromkeys(row.test for row in rows))}
    names = {name: place for place, name in enumerate(dict.fromkeys(row.measurement for row in rows))}
    return sorted(rows, key=lambda row: (tests[row.test], names[row.measurement]))


def _table_of(row: MeasurementComparison | MacroComparison) -> tuple[Unit, str, Direction | None]:
    """What a row must have in common with others to be drawn on one axis with them."""
    unit = unit_of(row.value_range)
    return unit, "" if unit.name else row.measurement, row.direction


def _lines(row: MeasurementComparison, comparison: Comparison, page: Page) -> Iterator[_Line]:
    values, names = _values_head(comparison, page), (row.test, row.measurement, row.candidate)
    missing = len(comparison.comparisons) > 1 and row.bounds is not None and row.bounds[0] < row.bounds[1]
    yield _Line(
        names=names,
        difference=row.difference,
        stderr=row.stderr,
        interval=row.interval,
        told=row.verdict != "cannot_tell",
        other={
            _p_head(comparison): "" if row.p_adjusted is None else p_text(row.p_adjusted, comparison.alpha),
            values: _values(row, page),
            "won/lost/equal": f"{row.wins:,}/{row.losses:,}/{row.ties:,}",
            "worst to best": unit_of(row.value_range).between(row.bounds, row.stderr) if missing else "",
        },
    )
    for group in row.groups:
        yield _Line(
            names=names,
            indented=f"  {group.group} ({group.n_paired:,})",
            difference=group.difference,
            stderr=group.stderr,
            interval=group.interval,
            other={values: _values(group, page)},
        )


def _mean_line(mean: MacroComparison, comparison: Comparison) -> _Line:
    return _Line(
        names=(f"mean of {counted(len(mean.tests), 'test')}", mean.measurement, mean.candidate),
        of_tests=True,
        difference=mean.difference,
        stderr=mean.stderr,
        interval=mean.interval,
        told=mean.verdict != "cannot_tell",
        other={
            _p_head(comparison): "" if mean.p_adjusted is None else p_text(mean.p_adjusted, comparison.alpha)
        },
    )


def _p_head(comparison: Comparison) -> str:
    return "adj. p" if comparison.family > 1 else "p"


def _values_head(comparison: Comparison, page: Page) -> str:
    """The head of the column of values: the systems' names where they are short."""
    labels = [comparison.baseline.label, *(one.label for one in comparison.candidates)]
    short = len(labels) == 2 and max(map(cells, labels)) <= _LABEL
    return page.style.arrow.join(labels if short else ("baseline", "candidate"))


def _values(row: MeasurementComparison | GroupDifference, page: Page) -> str:
    values = row.baseline_value, row.candidate_value
    return page.style.arrow.join(figure(value, row.stderr) for value in values if value is not None)


def _add_table(lines: Sequence[_Line], unit: Unit, direction: Direction | None, page: Page) -> None:
    names = _named(lines)
    beside: _Table = [
        ("difference", [unit.signed(one.difference, one.stderr) for one in lines]),
        ("95 % interval", [unit.between(one.interval, one.stderr) for one in lines]),
    ]
    for head in dict.fromkeys(name for one in lines for name in one.other):
        column = [one.other.get(head, "") for one in lines]
        beside += [(head, column)] if any(column) else []
    ends = [end for one in lines for end in one.interval or (one.difference or 0.0,)]
    axis = Axis(
        [unit.scale * end for end in ends],
        _chart_width(names, beside, page),
        symbols=page.style.symbols,
    )
    table = [*names, (axis.head(), [_drawing(one, unit, axis, page) for one in lines]), *beside]
    left_out = _drop_what_has_no_room(table, axis.head(), page)
    page.add(_caption(lines, unit, direction, page), "dim")
    _add(table, page, axis.head())
    if left_out:
        page.add(f"Also there, in a wider terminal or with --json: {', '.join(left_out)}.", "dim")
        page.add_gap()


def _chart_width(names: _Table, beside: _Table, page: Page) -> int:
    """How wide drawings are: a good width beside as many columns as that leaves room for, else what is left."""
    room = page.style.width
    for number in range(len(beside), min(_KEPT, len(beside)) - 1, -1):
        room = page.style.width - sum(_width(column) + _GAP for column in (*names, *beside[:number]))
        if room >= _GOOD_CHART:
            break
    return min(max(room, _LEAST_CHART), _MOST_CHART)


def _width(column: tuple[str, list[str]]) -> int:
    return max(_FOLDS.get(column[0], 0), *map(cells, (column[0], *column[1])))


def _drawing(line: _Line, unit: Unit, axis: Axis, page: Page) -> str:
    value = None if line.difference is None else unit.scale * line.difference
    ends = line.interval
    scaled = None if ends is None else (unit.scale * ends[0], unit.scale * ends[1])
    return axis.drawn(value, scaled, _mark(line.told, page))


def _mark(told: bool | None, page: Page) -> str:
    found, untold, untested = "●○◇" if page.style.symbols else "#ox"
    return untested if told is None else found if told else untold


def _caption(lines: Sequence[_Line], unit: Unit, direction: Direction | None, page: Page) -> str:
    better = f", {direction} is better" if direction else "; which values are better is not known"
    marks = {True: "", False: "cannot tell", None: "untested"}
    legend = [
        f"{_mark(told, page)} {word}"
        for told, word in marks.items()
        if word and any(one.told is told for one in lines)
    ]
    points = f" in {unit.name}" if unit.name else ""
    return ". ".join(filter(None, [f"Candidate less baseline{points}{better}", ", ".join(legend)]))


def _named(lines: Sequence[_Line]) -> _Table:
    """The columns of names, as far as they tell the rows apart; in the first of them the names of groups."""
    found = [
        (head, [one.names[place] for one in lines])
        for place, head in enumerate(_NAMES)
        if len({one.names[place] for one in lines}) > 1 or (place == 0 and any(one.of_tests for one in lines))
    ] or [("Measurement", [one.names[1] for one in lines])]
    for at in range(len(lines) - 1, 0, -1):
        if len(found) > 1 and found[0][1][at] == found[0][1][at - 1]:
            found[0][1][at] = ""
    for at, one in enumerate(lines):
        if one.indented:
            for _, column in found:
                column[at] = ""
            found[0][1][at] = one.indented
    return found


def _drop_what_has_no_room(table: _Table, drawn: str, page: Page) -> list[str]:
    """Take out the last columns of a long table until each row has one line, and return their names."""
    dropped: list[str] = []
    least = next(at for at, (head, _) in enumerate(table) if head == drawn) + 1 + _KEPT
    while len(table[0][1]) > _MANY and len(table) > least and not _fits(table, page):
        dropped.insert(0, table.pop()[0])
    return dropped


def _fits(table: _Table, page: Page) -> bool:
    """Whether the columns of a table stand side by side, with names folded a little."""
    wide = [min(_width(one), _WIDE_NAME) if one[0] in _NAMES else _width(one) for one in table]
    return sum(wide) + _GAP * (len(wide) - 1) <= page.style.width


def _add(table: _Table, page: Page, drawn: str = "") -> None:
    rows = list(zip(*(column for _, column in table), strict=True))
    right = {"difference", "adj. p", "p", "rank"}
    page.add_table(rows, [head for head, _ in table], folds=_FOLDS, right=right, drawn={drawn})


# --- several candidates -----------------------------------------------------------------------------


def add_matrix(comparison: Comparison, page: Page) -> bool:
    """Add a row for each test and measurement, a column for each candidate, where that says more than a list.

    Returns:
        Whether it was added.
    """
    labels = [one.label for one in comparison.candidates]
    found: dict[tuple[str, str], dict[str, str]] = {}
    for row in comparison.comparisons:
        word = "" if row.verdict == "cannot_tell" else VERDICTS[row.verdict]
        shown = f"{unit_of(row.value_range).signed(row.difference, row.stderr)} {word}".strip()
        found.setdefault((row.test, row.measurement), {})[row.candidate] = shown
    several = len({measurement for _, measurement in found}) > 1
    table: _Table = [("Test", [test for test, _ in found])]
    table += [("Measurement", [name for _, name in found])] if several else []
    table += [(label, [by_label.get(label, "") for by_label in found.values()]) for label in labels]
    if len(labels) < 2 or len(found) < 2 or not _fits(table, page):
        return False
    units = {unit_of(row.value_range).name for row in comparison.comparisons}
    points = f", in {units.pop()}" if len(units) == 1 and "" not in units else ""
    about = f"Less {comparison.baseline.label}{points}; without a word, it cannot be told"
    page.add(one_line(about, _MOST_OF_A_LINE), "dim")
    _add(table, page)
    return True


def add_leaderboards(comparison: Comparison, page: Page) -> None:
    """Add the systems by rank, with who cannot be told apart; of many tests and measurements the ranks alone."""
    if len(comparison.leaderboard) > _MOST_BOARDS:
        _add_ranks(comparison, page)
        return
    for board in comparison.leaderboard:
        page.add(
            f"{board.test}, {board.measurement}: {counted(board.n, 'item')} that all systems have", "bold"
        )
        values = [one.value for one in board.systems]
        error = (max(values) - min(values)) / 10
        _add(
            [
                ("rank", [_ranks(one) for one in board.systems]),
                ("System", [one.system for one in board.systems]),
                ("value", [figure(value, error) for value in values]),
                ("not told apart", [_letters(board, one.system) for one in board.systems]),
            ],
            page,
        )


def _add_ranks(comparison: Comparison, page: Page) -> None:
    labels = [comparison.baseline.label, *(one.label for one in comparison.candidates)]
    boards = comparison.leaderboard
    several = len({board.measurement for board in boards}) > 1
    by_label = [{one.system: _ranks(one) for one in board.systems} for board in boards]
    table: _Table = [("Test", [board.test for board in boards])]
    table += [("Measurement", [board.measurement for board in boards])] if several else []
    table += [(label, [ranks.get(label, "") for ranks in by_label]) for label in labels]
    page.add("Ranks that each system may have", "dim")
    _add(table, page)


def _ranks(one: RankedSystem) -> str:
    best, worst = one.ranks
    return f"{best}" if best == worst else f"{best} to {worst}"


def _letters(board: LeaderboardTable, system: str) -> str:
    """The letters of the groups of two or more that a system is in."""
    several = [group for group in board.groups if len(group) > 1]
    return " ".join(_letter(place) for place, group in enumerate(several) if system in group)


def _letter(place: int) -> str:
    return chr(ord("a") + place) if place < 26 else f"{_letter(place // 26 - 1)}{_letter(place % 26)}"
