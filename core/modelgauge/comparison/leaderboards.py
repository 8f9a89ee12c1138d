"""Leaderboards of three systems or more, decided pair by pair with the tests that the verdicts have."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelgauge.comparison.contrasts import pair_difference
from modelgauge.comparison.families import Family
from modelgauge.comparison.options import CompareOptions
from modelgauge.comparison.pairing.paired_items import PairedItems
from modelgauge.comparison.result import LeaderboardTable, MeasurementComparison, RankedSystem
from modelgauge.stats.comparisons.families import holm
from modelgauge.stats.comparisons.leaderboard import groups_of
from modelgauge.stats.comparisons.paired import PairedDifference
from modelgauge.stats.intervals import joined_clusters

Pair = tuple[int, int]
"""Two systems of a leaderboard by their places, the baseline's being 0."""


class _Board(NamedTuple):
    """The systems of a leaderboard.

    Args:
        name: of the measurement.
        rows: the comparison of each candidate with the baseline.
        items: the items of each candidate, paired with the baseline's.
        questions: for each candidate the place of the first row with the same values.
    """

    name: str
    rows: list[MeasurementComparison]
    items: list[PairedItems]
    questions: list[int]

    @property
    def pairs(self) -> list[Pair]:
        """All pairs of two systems, the earlier first."""
        return [*combinations(range(len(self.items) + 1), 2)]

    def items_of(self, pair: Pair) -> PairedItems:
        """Pair the items of two systems, as the baseline's and the candidate's."""
        first, second = pair
        other = self.items[second - 1]
        return other if first == 0 else _paired_candidates(self.items[first - 1], other)

    def question(self, pair: Pair, p_value: float) -> Hashable:
        """What a p value of two candidates answers; measurements of equal values ask the same."""
        return ("pair", *(self.questions[place - 1] for place in pair), p_value)


def leaderboards(
    pairs: Sequence[tuple[PairedItems, str]], family: Family, baseline: str, options: CompareOptions
) -> Iterator[LeaderboardTable]:
    """Yield each measurement of each test that three systems or more have values of.

    A candidate and the baseline are told apart where the verdict does so. Two candidates are told apart by the same
    test, adjusted for all p values that are shown together and those of all pairs of candidates (Holm).

    Args:
        pairs: for each row of the family the paired items and the name of the measurement.
        family: the comparisons with the baseline, adjusted.
        baseline: its label.
        options: of the comparison.
    """
    boards = [*_boards(pairs, family)]
    number = len(family.p_values) + sum(first > 0 for board in boards for first, _ in board.pairs)
    confidence = 1 - options.alpha / max(1, number)
    found = [
        {pair: pair_difference(board.items_of(pair), board.name, options, confidence) for pair in board.pairs}
        for board in boards
    ]
    p_values = dict(family.p_values)
    for board, differences in zip(boards, found, strict=True):
        p_values |= {
            board.question(pair, each.p_value): each.p_value
            for pair, each in differences.items()
            if pair[0] > 0 and each is not None and each.p_value is not None
        }
    of_all = dict(zip(p_values, holm([*p_values.values()]), strict=True))
    for board, differences in zip(boards, found, strict=True):
        is_apart = {
            pair: _is_apart(board, pair, each, of_all, options.alpha) for pair, each in differences.items()
        }
        yield _table(board, baseline, differences, is_apart)


def _boards(pairs: Sequence[tuple[PairedItems, str]], family: Family) -> Iterator[_Board]:
    places: dict[tuple[str, str], list[int]] = {}
    for place, ((items, name), row) in enumerate(zip(pairs, family.rows, strict=True)):
        if not np.isnan(items.after.values[name]).all():
            places.setdefault((row.test, name), []).append(place)
    for (_, name), own in places.items():
        rows = [family.rows[place] for place in own]
        units = [row.n_paired if row.n_clusters is None else row.n_clusters for row in rows]
        if len(own) > 1 and max(units) > 1:
            yield _Board(
                name, rows, [pairs[place][0] for place in own], [family.questions[place] for place in own]
            )


def _is_apart(
    board: _Board,
    pair: Pair,
    found: PairedDifference | None,
    adjusted: Mapping[Hashable, float],
    alpha: float,
) -> bool:
    """Return whether two systems are told apart."""
    if found is None or found.p_value is None or not found.difference.value:
        return False
    p_value = adjusted[board.question(pair, found.p_value)] if pair[0] else board.rows[pair[1] - 1].p_adjusted
    return p_value is not None and p_value < alpha


def _table(
    board: _Board,
    baseline: str,
    found: Mapping[Pair, PairedDifference | None],
    is_apart: Mapping[Pair, bool],
) -> LeaderboardTable:
    labels = [baseline, *(items.candidate for items in board.items)]
    values = _values(board)
    direction = board.rows[0].direction
    sign = -1 if direction == "lower" else 1
    means = [float(np.mean(own)) for own in values]
    order = sorted(range(len(labels)), key=lambda place: -sign * means[place])
    # better[row, column]: the column's system is better than the row's
    better = np.zeros((len(labels), len(labels)), dtype=bool)
    for (first, second), each in found.items():
        if each is not None and is_apart[first, second]:
            worst, best = (first, second) if sign * each.difference.value > 0 else (second, first)
            better[worst, best] = True
    ranks = [
        (1 + int(better[place].sum()), len(labels) - int(better[:, place].sum()))
        for place in range(len(labels))
    ]
    return LeaderboardTable(
        test=board.rows[0].test,
        measurement=board.name,
        n=_n_common(board),
        direction=direction,
        systems=tuple(
            RankedSystem(system=labels[place], value=means[place], n=len(values[place]), ranks=ranks[place])
            for place in order
        ),
        groups=tuple(
            tuple(labels[place] for place in group) for group in groups_of(better | better.T, order)
        ),
        intervals=tuple(_intervals(labels, order, found)),
    )


def _intervals(
    labels: Sequence[str], order: Sequence[int], found: Mapping[Pair, PairedDifference | None]
) -> Iterator[tuple[str, str, float, float]]:
    for first, second in combinations(order, 2):
        turned = first < second  # differences are those of the later less the earlier
        each = found[(first, second) if turned else (second, first)]
        if each is not None and each.difference.interval is not None:
            low, high = each.difference.interval
            yield (labels[first], labels[second], *((-high, -low) if turned else (low, high)))


# --- the items of two systems -----------------------------------------------------------------------


def _paired_candidates(first: PairedItems, second: PairedItems) -> PairedItems:
    """Pair the items of two candidates, which both have in common with the baseline."""
    common, rows, others = np.intersect1d(first.before.places, second.before.places, return_indices=True)
    before = {name: values[rows] for name, values in first.after.values.items()}
    after = {name: values[others] for name, values in second.after.values.items()}
    clusters = joined_clusters(
        None if first.clusters is None else first.clusters[rows],
        None if second.clusters is None else second.clusters[others],
    )
    return replace(
        second,
        before=replace(first.after, places=common, values=before, failed=None, repeats={}),
        after=replace(second.after, places=common, values=after, failed=None, repeats={}),
        clusters=clusters,
        questions=None,
        origins=None,
        groups=None,
    )


def _values(board: _Board) -> list[NDArray[np.float64]]:
    """Return the values of each system on its items that the baseline's run has too."""
    of_baseline: dict[int, float] = {}
    for items in board.items:
        own = items.before.values[board.name]
        scored = ~np.isnan(own)
        of_baseline |= dict(zip(items.before.places[scored].tolist(), own[scored].tolist(), strict=True))
    columns = [np.array([*of_baseline.values()]), *(items.after.values[board.name] for items in board.items)]
    return [column[~np.isnan(column)] for column in columns]


def _n_common(board: _Board) -> int:
    """Count the items that all systems have a value of."""
    scored = [
        items.before.places[~np.isnan(items.before.values[board.name] + items.after.values[board.name])]
        for items in board.items
    ]
    return len(reduce(np.intersect1d, scored))
