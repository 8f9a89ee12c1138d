"""Leaderboards of three systems or more, decided pair by pair with the tests of the verdicts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelgauge.comparison.contrasts import Contrast
from modelgauge.comparison.difference import Difference
from modelgauge.comparison.families import Family, Question
from modelgauge.comparison.item_pairs import ItemPairs
from modelgauge.comparison.options import CompareOptions
from modelgauge.comparison.paired_values import PairedValues
from modelgauge.comparison.result import LeaderboardTable, RankedSystem
from modelgauge.stats.comparisons.leaderboard import find_groups
from modelgauge.stats.intervals import CONFIDENCE, joined_clusters

Pair = tuple[int, int]
"""Two systems of a leaderboard by their indexes; the baseline is 0."""


class Board(NamedTuple):
    """The systems of a leaderboard, by the candidates that are compared with the baseline.

    Two systems are compared on the items that both have. A candidate and the baseline are told apart where the verdict
    does so, two candidates by the same test.

    Args:
        contrasts: the measurement of one test, for each candidate.
        options: of the comparison.
    """

    contrasts: list[Contrast]
    options: CompareOptions

    @property
    def name(self) -> str:
        """The name of the measurement."""
        return self.contrasts[0].name

    @property
    def items(self) -> list[ItemPairs]:
        """The items of each candidate, paired with the baseline's."""
        return [contrast.items for contrast in self.contrasts]

    @property
    def pairs(self) -> list[Pair]:
        """All pairs of two systems, the one with the lower index first."""
        return [*combinations(range(len(self.contrasts) + 1), 2)]

    def difference(self, pair: Pair, confidence: float = CONFIDENCE) -> Difference | None:
        """Return the difference of two systems over the items of both, the later one's less the earlier one's."""
        first, second = pair
        items = self.items[second - 1]
        if first > 0:
            items = _paired_candidates(self.items[first - 1], items)
        values = PairedValues.of(items, self.name)
        return values.at(values.scored).difference(self.options, confidence) if values.scored.any() else None

    def p_values(self) -> dict[Question, float]:
        """Return the p value of each pair of candidates, by the question that it answers."""
        found = {pair: self.difference(pair) for pair in self.pairs if pair[0] > 0}
        return {
            self._question(pair, each.p_value): each.p_value
            for pair, each in found.items()
            if each is not None and each.p_value is not None
        }

    def _question(self, pair: Pair, p_value: float) -> Question:
        return ("pair", *(self.contrasts[place - 1].question for place in pair), p_value)

    def table(self, family: Family) -> LeaderboardTable:
        """Rank the systems by the pairs that are told apart."""
        found = {pair: self.difference(pair, 1 - family.level_of_each) for pair in self.pairs}
        apart = set()
        for pair, each in found.items():
            if each is not None and each.p_value is not None and each.difference:
                p_adjusted = (
                    family.adjusted.get(self._question(pair, each.p_value))
                    if pair[0]
                    else self.contrasts[pair[1] - 1].p_adjusted(family)
                )
                if family.is_finding(p_adjusted):
                    apart.add(pair)
        return _table(self, family.baseline, found, apart)


def build_boards(contrasts: Sequence[Contrast], options: CompareOptions) -> list[Board]:
    """Return the leaderboard of each measurement of each test that three systems or more have values of."""
    found: dict[tuple[str, str], list[Contrast]] = {}
    for contrast in contrasts:
        if not np.isnan(contrast.items.after.values[contrast.name]).all():
            found.setdefault((contrast.items.test, contrast.name), []).append(contrast)
    return [
        Board(of_test, options)
        for of_test in found.values()
        if len(of_test) > 1 and max(contrast.difference.n_units for contrast in of_test) > 1
    ]


def _table(
    board: Board,
    baseline: str,
    found: Mapping[Pair, Difference | None],
    apart: set[Pair],
) -> LeaderboardTable:
    labels = [baseline, *(items.candidate for items in board.items)]
    values = _values(board)
    direction = board.contrasts[0].difference.direction
    sign = -1 if direction == "lower" else 1
    means = [float(np.mean(own)) for own in values]
    order = sorted(range(len(labels)), key=lambda place: -sign * means[place])
    # better[row, column]: the column's system is better than the row's
    better = np.zeros((len(labels), len(labels)), dtype=bool)
    for (first, second), each in found.items():
        if each is not None and (first, second) in apart:
            worst, best = (first, second) if sign * (each.difference or 0.0) > 0 else (second, first)
            better[worst, best] = True
    ranks = [
        (1 + int(better[place].sum()), len(labels) - int(better[:, place].sum()))
        for place in range(len(labels))
    ]
    return LeaderboardTable(
        test=board.items[0].test,
        measurement=board.name,
        n=_n_common(board),
        direction=direction,
        systems=tuple(
            RankedSystem(system=labels[place], value=means[place], n=len(values[place]), ranks=ranks[place])
            for place in order
        ),
        groups=tuple(
            tuple(labels[place] for place in group) for group in find_groups(better | better.T, order)
        ),
        intervals=tuple(_intervals(labels, order, found)),
    )


def _intervals(
    labels: Sequence[str], order: Sequence[int], found: Mapping[Pair, Difference | None]
) -> Iterator[tuple[str, str, float, float]]:
    for first, second in combinations(order, 2):
        turned = first < second  # differences are those of the later less the earlier
        each = found[(first, second) if turned else (second, first)]
        if each is not None and each.interval is not None:
            low, high = each.interval
            yield (labels[first], labels[second], *((-high, -low) if turned else (low, high)))


# --- the items of two systems -----------------------------------------------------------------------


def _paired_candidates(first: ItemPairs, second: ItemPairs) -> ItemPairs:
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
