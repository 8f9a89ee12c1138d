"""The tables of a comparison: differences with their intervals drawn, a matrix, leaderboards."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from modelgauge.comparison.difference import Difference, MacroComparison, MeasurementComparison
from modelgauge.comparison.result import Comparison, LeaderboardTable, RankedSystem
from modelgauge.comparison.units import Unit, choose_unit
from modelgauge.data.results import Direction
from modelgauge.documents.axis import Axis
from modelgauge.documents.columns import cells
from modelgauge.documents.document import (
    Block,
    Cell,
    Finding,
    Heading,
    Interval,
    TableBlock,
    TableColumn,
    Text,
    joined,
)
from modelgauge.reports.comparisons.words import VERDICTS
from modelgauge.wording.figures import figure, p_text
from modelgauge.wording.phrases import counted, one_line

ARROW = " → "
_NAMES = ("Test", "Measurement", "Candidate")
_NARROWEST_NAME = 8  # characters to which names may be folded
_SIDES = ("baseline", "candidate")
_LABEL = 18  # characters of a system's name that fit over a column of values
_SHORT = 14  # characters of a system's name that fit over a half of a drawing
_COUNTS = ("won", "lost", "equal")
_P_HEADS = ("p", "adj. p")
_WIDTH = 240  # pixels of a drawing on a page
_MOST_BOARDS = 3  # leaderboards that are shown in full
_MOST_OF_A_LINE = 500
_LEGEND: dict[Finding, str] = {"untold": "cannot tell", "untested": "untested"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _DifferenceLine:
    """A row of a table of differences: a comparison, one of its groups, or a mean over tests.

    Args:
        names: the test, the measurement and the candidate.
        is_mean: whether it is a mean over tests.
        group: the group with the number of its items; empty for no group.
        row: that has the difference, with its standard error and interval.
        finding: whether it is a finding.
        other: its other cells, by the heads of their columns.
    """

    names: tuple[str, str, str]
    is_mean: bool = False
    group: str = ""
    row: Difference
    finding: Finding = "untested"
    other: dict[str, Cell] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Lines:
    """Lines of one unit and direction.

    Args:
        unit: of all of them.
        direction: which values are better; None if unknown.
        lines: the rows of the table.
    """

    unit: Unit
    direction: Direction | None
    lines: list[_DifferenceLine] = field(default_factory=list)


def difference_tables(
    comparison: Comparison, *, only_means: bool = False, labelled: bool = True, items: str = ""
) -> list[TableBlock]:
    """Return the tables of a comparison, groups and means over tests included.

    Args:
        comparison: what was found.
        only_means: leave out the single comparisons.
        labelled: name systems over their values, where their names are short.
        items: the address of compared items on a page, with braces for the place of the comparison and for the
            outcome; empty if there are none.
    """
    tables: dict[object, _Lines] = {}

    def lines_of(row: MeasurementComparison | MacroComparison) -> list[_DifferenceLine]:
        unit = choose_unit(row.value_range)
        key = unit, "" if unit.name else row.measurement, row.direction
        return tables.setdefault(key, _Lines(unit, row.direction)).lines

    for place in () if only_means else _by_test(comparison.comparisons):
        found = _lines(place, comparison, labelled=labelled, items=items)
        lines_of(comparison.comparisons[place]).extend(found)
    for mean in comparison.macro:
        lines_of(mean).append(_mean_line(mean, comparison))
    all_names = {line.names for table in tables.values() for line in table.lines}
    return [_table(table, all_names, comparison.labels) for table in tables.values()]


def _table(found: _Lines, all_names: Collection[tuple[str, str, str]], labels: Sequence[str]) -> TableBlock:
    lines, names = found.lines, [*_names(found.lines)]
    intervals = [_interval(line, found.unit) for line in lines]
    ends = [end for cell in intervals for end in cell.ends or (cell.value or 0.0,)]
    axis = Axis.over(ends, zero=True).sized(_WIDTH)
    drawn = TableColumn("", intervals, axis=axis, sides=_sides(found.direction, labels))
    legend = [(look, words) for look, words in _LEGEND.items() if any(line.finding == look for line in lines)]
    of = _unnamed([column.head for column in names], lines[0].names, all_names)
    return TableBlock(
        [*names, drawn, *_numbers(lines, found.unit)],
        caption=_about(found, of),
        legend=legend,
        kind="results forest",
        apart=[place for place, line in enumerate(lines) if line.is_mean],
    )


def _about(found: _Lines, of: str) -> str:
    """Say what the numbers of a table are."""
    better = f", {found.direction} is better" if found.direction else "; which values are better is not known"
    points = f" in {found.unit.name}" if found.unit.name else ""
    start = f"{of}: candidate" if of else "Candidate"
    return f"{start} less baseline{points}{better}"


def _unnamed(
    heads: Collection[str], own: tuple[str, str, str], all_names: Collection[tuple[str, str, str]]
) -> str:
    """Name the test, measurement or candidate of a table where no column has it, and other tables have others."""
    return ", ".join(
        name
        for head, name, others in zip(_NAMES, own, zip(*all_names, strict=True), strict=True)
        if head not in heads and len({*others}) > 1
    )


def _names(lines: Sequence[_DifferenceLine]) -> Iterator[TableColumn]:
    """Return the columns of names, as far as they tell the rows apart; in the first of them the names of groups."""
    found = [
        (head, [line.names[place] for line in lines])
        for place, head in enumerate(_NAMES)
        if len({line.names[place] for line in lines}) > 1
        or (place == 0 and any(line.is_mean for line in lines))
    ] or [("Measurement", [line.names[1] for line in lines])]
    for at in range(len(lines) - 1, 0, -1):
        if len(found) > 1 and found[0][1][at] == found[0][1][at - 1]:
            found[0][1][at] = ""
    for at, line in enumerate(lines):
        if line.group:
            for _, column in found:
                column[at] = ""
            found[0][1][at] = f"  {line.group}"
    return (TableColumn(head, names, fold=_NARROWEST_NAME, kind="name") for head, names in found)


def _numbers(lines: Sequence[_DifferenceLine], unit: Unit) -> Iterator[TableColumn]:
    """Return the columns of numbers that any row has."""
    differences = [unit.signed(line.row.difference, line.row.stderr) for line in lines]
    yield TableColumn("difference", differences, right=True, kind="number")
    intervals = [unit.between(line.row.interval, line.row.stderr) for line in lines]
    yield TableColumn("95 % interval", intervals, kind="number")
    for head in dict.fromkeys(name for line in lines for name in line.other):
        column = TableColumn(
            head, [line.other.get(head, "") for line in lines], right=head in _P_HEADS, kind="number"
        )
        if not column.is_empty:
            yield column


def _interval(line: _DifferenceLine, unit: Unit) -> Interval:
    row = line.row
    if row.difference is None:
        return Interval(None, finding=line.finding)
    known, ends = f"{unit.signed(row.difference, row.stderr)} {unit.name}".strip(), None
    if row.interval is not None:
        low, high = row.interval
        ends = unit.scale * low, unit.scale * high
        known += f", from {unit.between(row.interval, row.stderr)}"
    return Interval(unit.scale * row.difference, ends, line.finding, mark=0.0, label=known)


def _sides(direction: Direction | None, labels: Sequence[str]) -> tuple[str, str]:
    """Name what values on the left and on the right of 0 mean."""
    short = len(labels) == 2 and max(map(len, labels)) <= _SHORT
    first, second = labels if short else _SIDES
    if direction is None:
        return f"{second} lower", f"{second} higher"
    better = f"{first} better", f"{second} better"
    return better if direction == "higher" else better[::-1]


def _by_test(rows: Sequence[MeasurementComparison]) -> list[int]:
    """Return the places of comparisons, those of each test together, in the order of the tests."""
    tests = {test: place for place, test in enumerate(dict.fromkeys(row.test for row in rows))}
    names = {name: place for place, name in enumerate(dict.fromkeys(row.measurement for row in rows))}
    return sorted(
        range(len(rows)), key=lambda place: (tests[rows[place].test], names[rows[place].measurement])
    )


def _lines(place: int, comparison: Comparison, *, labelled: bool, items: str) -> Iterator[_DifferenceLine]:
    row = comparison.comparisons[place]
    head = _values_head(comparison) if labelled else ARROW.join(_SIDES)
    names = row.test, row.measurement, row.candidate
    missing = len(comparison.comparisons) > 1 and row.bounds is not None and row.bounds[0] < row.bounds[1]
    counts = zip(_COUNTS, (row.wins, row.losses, row.ties), strict=True)
    yield _DifferenceLine(
        names=names,
        row=row,
        finding="untold" if row.verdict == "cannot_tell" else "told",
        other={
            _p_head(comparison): "" if row.p_adjusted is None else p_text(row.p_adjusted, comparison.alpha),
            head: values_text(row),
            "/".join(_COUNTS): joined(
                "/", [Text(f"{count:,}", items.format(place, name)) for name, count in counts]
            ),
            "worst to best": choose_unit(row.value_range).between(row.worst_to_best, row.stderr)
            if missing
            else "",
        },
    )
    for group in row.groups:
        yield _DifferenceLine(
            names=names,
            group=f"{group.group} ({group.n_paired:,})",
            row=group,
            other={head: values_text(group)},
        )


def _mean_line(mean: MacroComparison, comparison: Comparison) -> _DifferenceLine:
    p = "" if mean.p_adjusted is None else p_text(mean.p_adjusted, comparison.alpha)
    return _DifferenceLine(
        names=(f"mean of {counted(len(mean.tests), 'test')}", mean.measurement, mean.candidate),
        is_mean=True,
        row=mean,
        finding="untold" if mean.verdict == "cannot_tell" else "told",
        other={_p_head(comparison): p},
    )


def _p_head(comparison: Comparison) -> str:
    return _P_HEADS[comparison.family > 1]


def _values_head(comparison: Comparison) -> str:
    """Return the head of the column of values: the systems' names where they are short."""
    labels = comparison.labels
    short = len(labels) == 2 and max(map(cells, labels)) <= _LABEL
    return ARROW.join(labels if short else _SIDES)


def values_text(row: Difference) -> str:
    """Return the values of both systems, with an arrow between them."""
    values = row.baseline_value, row.candidate_value
    return ARROW.join(figure(value, row.stderr) for value in values if value is not None)


# --- several candidates -----------------------------------------------------------------------------


def matrix_table(comparison: Comparison) -> TableBlock | None:
    """Return a row for each test and measurement, a column for each candidate; None if a list says as much."""
    labels = comparison.labels[1:]
    found: dict[tuple[str, str], dict[str, str]] = {}
    for row in comparison.comparisons:
        word = "" if row.verdict == "cannot_tell" else VERDICTS[row.verdict]
        shown = f"{choose_unit(row.value_range).signed(row.difference, row.stderr)} {word}".strip()
        found.setdefault((row.test, row.measurement), {})[row.candidate] = shown
    if len(labels) < 2 or len(found) < 2:
        return None
    units = {choose_unit(row.value_range).name for row in comparison.comparisons}
    points = f", in {units.pop()}" if len(units) == 1 and "" not in units else ""
    about = f"Less {comparison.baseline.label}{points}; without a word, it cannot be told"
    return TableBlock([*_by_system(found, labels)], caption=one_line(about, _MOST_OF_A_LINE))


def leaderboard_blocks(comparison: Comparison) -> Iterator[Block]:
    """Return the systems by rank, with indistinguishable systems; for many tests and measurements the ranks alone."""
    if len(comparison.leaderboard) > _MOST_BOARDS:
        found = {
            (board.test, board.measurement): {system.system: ranks(system) for system in board.systems}
            for board in comparison.leaderboard
        }
        yield TableBlock([*_by_system(found, comparison.labels)], caption="Ranks that each system may have")
        return
    for board in comparison.leaderboard:
        yield Heading(f"{board.test}, {board.measurement}: {leaderboard_items(board)}")
        yield leaderboard_table(board)


def leaderboard_table(board: LeaderboardTable) -> TableBlock:
    """Return a row for each system. Systems with the same letter are indistinguishable."""
    values = [system.value for system in board.systems]
    error = (max(values) - min(values)) / 10
    several = [group for group in board.groups if len(group) > 1]
    letters = [
        " ".join(_letter(place) for place, group in enumerate(several) if system.system in group)
        for system in board.systems
    ]
    return TableBlock(
        [
            TableColumn("rank", [*map(ranks, board.systems)], right=True),
            TableColumn(
                "System", [system.system for system in board.systems], fold=_NARROWEST_NAME, kind="name"
            ),
            TableColumn("value", [figure(value, error) for value in values], kind="number"),
            TableColumn("not told apart", letters),
        ]
    )


def _by_system(
    found: Mapping[tuple[str, str], Mapping[str, str]], labels: Sequence[str]
) -> Iterator[TableColumn]:
    """Return a row for each test and measurement, a column for each system."""
    yield TableColumn("Test", [test for test, _ in found], fold=_NARROWEST_NAME, kind="name")
    if len({measurement for _, measurement in found}) > 1:
        yield TableColumn(
            "Measurement", [measurement for _, measurement in found], fold=_NARROWEST_NAME, kind="name"
        )
    for label in labels:
        yield TableColumn(label, [own.get(label, "") for own in found.values()])


def ranks(system: RankedSystem) -> str:
    """Return the ranks that a system may have."""
    best, worst = system.ranks
    return f"{best}" if best == worst else f"{best} to {worst}"


def leaderboard_items(board: LeaderboardTable) -> str:
    """Describe the number of items of a leaderboard."""
    numbers = [board.n if system.n is None else system.n for system in board.systems]
    if min(numbers) == max(numbers) == board.n:
        return f"{counted(board.n, 'item')} that all systems have"
    return f"{min(numbers):,} to {counted(max(numbers), 'item')} of each system, compared in pairs"


def _letter(place: int) -> str:
    return chr(ord("a") + place) if place < 26 else f"{_letter(place // 26 - 1)}{_letter(place % 26)}"
