"""Leaderboards of three systems or more, decided pair by pair with the tests of the verdicts."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelgauge.comparison.contrasts import pair_difference
from modelgauge.comparison.families import Family, questions_of
from modelgauge.comparison.options import CompareOptions
from modelgauge.comparison.pairing.paired_items import PairedItems
from modelgauge.comparison.result import LeaderboardTable, MeasurementComparison, RankedSystem
from modelgauge.stats.comparisons.leaderboard import groups_of
from modelgauge.stats.comparisons.paired import PairedDifference
from modelgauge.stats.intervals import CONFIDENCE, joined_clusters

Pair = tuple[int, int]
"""Two systems of a leaderboard by their indexes; the baseline is 0."""


class Board(NamedTuple):
    """The systems of a leaderboard.

    Args:
        name: of the measurement.
        items: the items of each candidate, paired with the baseline's.
        places: for each candidate the place of its row among all comparisons with the baseline.
        questions: for each candidate the place of the first row with the same values.
        options: of the comparison.
    """

    name: str
    items: list[PairedItems]
    places: list[int]
    questions: list[int]
    options: CompareOptions

    @property
    def pairs(self) -> list[Pair]:
        """Return all pairs of two systems, the one with the lower index first."""
        return [*combinations(range(len(self.items) + 1), 2)]

    def difference(self, pair: Pair, confidence: float = CONFIDENCE) -> PairedDifference | None:
        """Return the difference of two systems over the items of both, the later one's less the earlier one's."""
        first, second = pair
        items = self.items[second - 1]
        if first > 0:
            items = _paired_candidates(self.items[first - 1], items)
        return pair_difference(items, self.name, self.options, confidence)

    def p_values_of_candidates(self) -> dict[Hashable, float]:
        """Return the p value of each pair of candidates, by what it answers."""
        found = {pair: self.difference(pair) for pair in self.pairs if pair[0] > 0}
        return {
            self.question(pair, each.p_value): each.p_value
            for pair, each in found.items()
            if each is not None and each.p_value is not None
        }

    def question(self, pair: Pair, p_value: float) -> Hashable:
        """Return the question that a p value of two candidates answers, the same for measurements of equal values."""
        return ("pair", *(self.questions[place - 1] for place in pair), p_value)


def boards_of(
    pairs: Sequence[tuple[PairedItems, str]], rows: Sequence[MeasurementComparison], options: CompareOptions
) -> list[Board]:
    """Return the leaderboard of each measurement of each test that three systems or more have values of.

    Args:
        pairs: for each row the paired items and the name of the measurement.
        rows: the comparisons with the baseline.
        options: of the comparison.
    """
    questions, places = questions_of(pairs), dict[tuple[str, str], list[int]]()
    for place, ((items, name), row) in enumerate(zip(pairs, rows, strict=True)):
        if not np.isnan(items.after.values[name]).all():
            places.setdefault((row.test, name), []).append(place)
    return [
        Board(
            name,
            [pairs[place][0] for place in own],
            own,
            [questions[place] for place in own],
            options,
        )
        for (_, name), own in places.items()
        if len(own) > 1 and max(_n_units(rows[place]) for place in own) > 1
    ]


def _n_units(row: MeasurementComparison) -> int:
    return row.n_paired if row.n_clusters is None else row.n_clusters


def leaderboard(board: Board, family: Family, baseline: str) -> LeaderboardTable:
    """Rank the systems of a leaderboard by the pairs that are told apart.

    A candidate and the baseline are told apart where the verdict does so, two candidates by the same test, with p
    values adjusted together.

    Args:
        board: the systems.
        family: all comparisons that are shown together.
        baseline: the label of the baseline.
    """
    alpha = board.options.alpha
    confidence = 1 - alpha / max(1, len(family.adjusted))
    found = {pair: board.difference(pair, confidence) for pair in board.pairs}
    rows = [family.rows[place] for place in board.places]
    apart = set()
    for pair, each in found.items():
        if each is not None and each.p_value is not None and each.difference.value:
            of_baseline = rows[pair[1] - 1].p_adjusted
            adjusted = family.adjusted[board.question(pair, each.p_value)] if pair[0] else of_baseline
            if adjusted is not None and adjusted < alpha:
                apart.add(pair)
    return _table(board, rows, baseline, found, apart)


def _table(
    board: Board,
    rows: Sequence[MeasurementComparison],
    baseline: str,
    found: Mapping[Pair, PairedDifference | None],
    apart: set[Pair],
) -> LeaderboardTable:
    labels = [baseline, *(items.candidate for items in board.items)]
    values = _values(board)
    direction = rows[0].direction
    sign = -1 if direction == "lower" else 1
    means = [float(np.mean(own)) for own in values]
    order = sorted(range(len(labels)), key=lambda place: -sign * means[place])
    # better[row, column]: the column's system is better than the row's
    better = np.zeros((len(labels), len(labels)), dtype=bool)
    for (first, second), each in found.items():
        if each is not None and (first, second) in apart:
            worst, best = (first, second) if sign * each.difference.value > 0 else (second, first)
            better[worst, best] = True
    ranks = [
        (1 + int(better[place].sum()), len(labels) - int(better[:, place].sum()))
        for place in range(len(labels))
    ]
    return LeaderboardTable(
        test=rows[0].test,
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


def _values(board: Board) -> list[NDArray[np.float64]]:
    """Return the values of each system on its items that the baseline's run has too."""
    of_baseline: dict[int, float] = {}
    for items in board.items:
        own = items.before.values[board.name]
        scored = ~np.isnan(own)
        of_baseline |= dict(zip(items.before.places[scored].tolist(), own[scored].tolist(), strict=True))
    columns = [np.array([*of_baseline.values()]), *(items.after.values[board.name] for items in board.items)]
    return [column[~np.isnan(column)] for column in columns]


def _n_common(board: Board) -> int:
    """Count the items that all systems have a value of."""
    scored = [
        items.before.places[~np.isnan(items.before.values[board.name] + items.after.values[board.name])]
        for items in board.items
    ]
    return len(reduce(np.intersect1d, scored))
