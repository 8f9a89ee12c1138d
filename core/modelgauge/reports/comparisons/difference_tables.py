"""The differences of a comparison as tables, a table for each axis, for terminal and page."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from modelgauge.comparison.difference import Difference, MacroComparison, MeasurementComparison
from modelgauge.comparison.result import Comparison, LeaderboardTable, RankedSystem
from modelgauge.comparison.units import Unit, unit_of
from modelgauge.data.results import Direction
from modelgauge.reports.layout import cells
from modelgauge.wording.figures import figure, p_text
from modelgauge.wording.phrases import counted

NAMES = ("Test", "Measurement", "Candidate")
_SIDES = ("baseline", "candidate")
_LABEL = 18  # characters of a system's name that fit over a column of values

Columns = list[tuple[str, list[str]]]
"""Heads with their cells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceLine:
    """A row of a table of differences: a comparison, one of its groups, or a mean over tests.

    Args:
        names: the test, the measurement and the candidate.
        place: of the comparison that it is, or is a group of, among all; None for a mean over tests.
        group: the group with the number of its items; empty for no group.
        row: that has the difference, with its standard error and interval.
        is_finding: whether it is a finding; None if it was not tested.
        other: its other cells, by the heads of their columns.
    """

    names: tuple[str, str, str]
    place: int | None = None
    group: str = ""
    row: Difference
    is_finding: bool | None = None
    other: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DifferenceTable:
    """Differences of one unit and direction.

    Args:
        unit: of all of them.
        direction: which values are better; None if unknown.
        lines: its rows.
        of: what all its lines are of, if no column shows it and other tables are of something else; else empty.
    """

    unit: Unit
    direction: Direction | None
    lines: list[DifferenceLine] = field(default_factory=list)
    of: str = ""

    @property
    def about(self) -> str:
        """What its numbers are."""
        better = (
            f", {self.direction} is better" if self.direction else "; which values are better is not known"
        )
        points = f" in {self.unit.name}" if self.unit.name else ""
        start = f"{self.of}: candidate" if self.of else "Candidate"
        return f"{start} less baseline{points}{better}"

    @property
    def ends(self) -> list[float]:
        """The values that its axis must hold, in its unit."""
        return [
            self.unit.scale * end
            for line in self.lines
            for end in line.row.interval or (line.row.difference or 0.0,)
        ]

    def names(self) -> Columns:
        """The columns of names, as far as they tell the rows apart; in the first of them the names of groups."""
        lines = self.lines
        found = [
            (head, [line.names[place] for line in lines])
            for place, head in enumerate(NAMES)
            if len({line.names[place] for line in lines}) > 1
            or (place == 0 and any(line.place is None for line in lines))
        ] or [("Measurement", [line.names[1] for line in lines])]
        for at in range(len(lines) - 1, 0, -1):
            if len(found) > 1 and found[0][1][at] == found[0][1][at - 1]:
                found[0][1][at] = ""
        for at, line in enumerate(lines):
            if line.group:
                for _, column in found:
                    column[at] = ""
                found[0][1][at] = f"  {line.group}"
        return found

    def numbers(self) -> Columns:
        """The columns of numbers that any row has."""
        found: Columns = [
            ("difference", [self.unit.signed(line.row.difference, line.row.stderr) for line in self.lines]),
            ("95 % interval", [self.unit.between(line.row.interval, line.row.stderr) for line in self.lines]),
        ]
        for head in dict.fromkeys(name for line in self.lines for name in line.other):
            column = [line.other.get(head, "") for line in self.lines]
            found += [(head, column)] if any(column) else []
        return found


def difference_tables(
    comparison: Comparison, arrow: str, *, only_means: bool = False, labelled: bool = True
) -> list[DifferenceTable]:
    """The tables of a comparison, groups and means over tests included.

    Args:
        comparison: what was found.
        arrow: between the baseline's value and the candidate's.
        only_means: leave out the single comparisons.
        labelled: name systems over their values, where their names are short.
    """
    tables: dict[object, DifferenceTable] = {}

    def table_of(row: MeasurementComparison | MacroComparison) -> DifferenceTable:
        unit = unit_of(row.value_range)
        key = unit, "" if unit.name else row.measurement, row.direction
        return tables.setdefault(key, DifferenceTable(unit, row.direction))

    for place in () if only_means else _by_test(comparison.comparisons):
        table_of(comparison.comparisons[place]).lines.extend(_lines(place, comparison, arrow, labelled))
    for mean in comparison.macro:
        table_of(mean).lines.append(_mean_line(mean, comparison))
    all_names = {line.names for table in tables.values() for line in table.lines}
    return [replace(table, of=_unnamed(table, all_names)) for table in tables.values()]


def _unnamed(table: DifferenceTable, all_names: Collection[tuple[str, str, str]]) -> str:
    """The test, measurement or candidate of a table, where none of its columns has it, and other tables have others."""
    heads, own = [head for head, _ in table.names()], table.lines[0].names
    return ", ".join(
        name
        for head, name, others in zip(NAMES, own, zip(*all_names, strict=True), strict=True)
        if head not in heads and len({*others}) > 1
    )


def _by_test(rows: Sequence[MeasurementComparison]) -> list[int]:
    """The places of comparisons, those of each test together, in the order of the tests."""
    tests = {test: place for place, test in enumerate(dict.fromkeys(row.test for row in rows))}
    names = {name: place for place, name in enumerate(dict.fromkeys(row.measurement for row in rows))}
    return sorted(
        range(len(rows)), key=lambda place: (tests[rows[place].test], names[rows[place].measurement])
    )


def _lines(place: int, comparison: Comparison, arrow: str, labelled: bool) -> Iterator[DifferenceLine]:
    row = comparison.comparisons[place]
    head = _values_head(comparison, arrow) if labelled else arrow.join(_SIDES)
    names = row.test, row.measurement, row.candidate
    missing = len(comparison.comparisons) > 1 and row.bounds is not None and row.bounds[0] < row.bounds[1]
    yield DifferenceLine(
        names=names,
        place=place,
        row=row,
        is_finding=row.verdict != "cannot_tell",
        other={
            _p_head(comparison): "" if row.p_adjusted is None else p_text(row.p_adjusted, comparison.alpha),
            head: values_text(row, arrow),
            "won/lost/equal": f"{row.wins:,}/{row.losses:,}/{row.ties:,}",
            "worst to best": unit_of(row.value_range).between(row.worst_to_best, row.stderr)
            if missing
            else "",
        },
    )
    for group in row.groups:
        yield DifferenceLine(
            names=names,
            place=place,
            group=f"{group.group} ({group.n_paired:,})",
            row=group,
            other={head: values_text(group, arrow)},
        )


def _mean_line(mean: MacroComparison, comparison: Comparison) -> DifferenceLine:
    p = "" if mean.p_adjusted is None else p_text(mean.p_adjusted, comparison.alpha)
    return DifferenceLine(
        names=(f"mean of {counted(len(mean.tests), 'test')}", mean.measurement, mean.candidate),
        row=mean,
        is_finding=mean.verdict != "cannot_tell",
        other={_p_head(comparison): p},
    )


def _p_head(comparison: Comparison) -> str:
    return "adj. p" if comparison.family > 1 else "p"


def _values_head(comparison: Comparison, arrow: str) -> str:
    """The head of the column of values: the systems' names where they are short."""
    labels = comparison.labels
    short = len(labels) == 2 and max(map(cells, labels)) <= _LABEL
    return arrow.join(labels if short else _SIDES)


def values_text(row: Difference, arrow: str) -> str:
    """The values of both systems, with an arrow between them."""
    values = row.baseline_value, row.candidate_value
    return arrow.join(figure(value, row.stderr) for value in values if value is not None)


# --- leaderboards -----------------------------------------------------------------------------------


def ranks(system: RankedSystem) -> str:
    """The ranks that a system may have."""
    best, worst = system.ranks
    return f"{best}" if best == worst else f"{best} to {worst}"


def leaderboard_items(board: LeaderboardTable) -> str:
    """Describe the number of items of a leaderboard."""
    numbers = [board.n if system.n is None else system.n for system in board.systems]
    if min(numbers) == max(numbers) == board.n:
        return f"{counted(board.n, 'item')} that all systems have"
    return f"{min(numbers):,} to {counted(max(numbers), 'item')} of each system, compared in pairs"


def leaderboard_rows(board: LeaderboardTable) -> Iterator[tuple[str, str, str, str]]:
    """For each system its ranks, label and value, and the letters of its groups of two or more.

    Systems with the same letter are indistinguishable.
    """
    values = [system.value for system in board.systems]
    error = (max(values) - min(values)) / 10
    several = [group for group in board.groups if len(group) > 1]
    for system, value in zip(board.systems, values, strict=True):
        own = [_letter(place) for place, group in enumerate(several) if system.system in group]
        yield ranks(system), system.system, figure(value, error), " ".join(own)


def _letter(place: int) -> str:
    return chr(ord("a") + place) if place < 26 else f"{_letter(place // 26 - 1)}{_letter(place % 26)}"
