"""Several comparisons at once: p values adjusted together, and leaderboards of three systems or more."""

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from modelgauge.comparison.means import means_over_tests
from modelgauge.comparison.options import CompareOptions
from modelgauge.comparison.pairing.paired_items import PairedItems
from modelgauge.comparison.result import (
    LeaderboardTable,
    MacroComparison,
    MeasurementComparison,
    RankedSystem,
)
from modelgauge.stats.comparisons.families import holm
from modelgauge.stats.comparisons.leaderboard import compare_systems
from modelgauge.stats.intervals import joined_clusters


def adjusted(
    rows: Sequence[MeasurementComparison], pairs: Sequence[tuple[PairedItems, str]]
) -> tuple[list[MeasurementComparison], list[MacroComparison], int]:
    """The comparisons and their means over tests, with p values adjusted for all of them; and how many these are.

    Measurements with equal values on all items of both sides count as a single p value.

    Args:
        rows: the comparisons.
        pairs: for each the paired items and the name of the measurement.
    """
    questions = _questions_of(pairs)
    means = [
        (mean, tuple(questions[place] for place in places)) for mean, places in means_over_tests(rows, pairs)
    ]
    asked: list[tuple[MeasurementComparison | MacroComparison, object]] = [
        *zip(rows, questions, strict=True),
        *means,
    ]
    p_values = {
        (name, question, p): p
        for row, question in asked
        for name in ("p_value", "p_interaction")
        if (p := getattr(row, name, None)) is not None
    }
    found = dict(zip(p_values, holm([*p_values.values()]), strict=True))
    return (
        [
            row.replaced(
                p_adjusted=found.get(("p_value", question, row.p_value)),
                p_interaction_adjusted=found.get(("p_interaction", question, row.p_interaction)),
            )
            for row, question in zip(rows, questions, strict=True)
        ],
        [
            mean.replaced(p_adjusted=found.get(("p_value", question, mean.p_value)))
            for mean, question in means
        ],
        len(found),
    )


def _questions_of(pairs: Sequence[tuple[PairedItems, str]]) -> list[int]:
    """For each measurement of paired items the place of the first that has the same values, on all items of both sides.

    A score of 0 or 1 and whether it passed, say: they ask one question, and must not cost each other's p values.
    """

    def are_equal(one: tuple[PairedItems, str], other: tuple[PairedItems, str]) -> bool:
        (items, name), (its_items, its_name) = one, other
        return items is its_items and all(
            np.array_equal(values[name], values[its_name], equal_nan=True)
            for values in (items.before.values, items.after.values)
        )

    return [
        next(place for place, earlier in enumerate(pairs) if earlier is pair or are_equal(earlier, pair))
        for pair in pairs
    ]


def leaderboards(
    items: Sequence[PairedItems], baseline: str, names: Sequence[str], options: CompareOptions
) -> Iterator[LeaderboardTable]:
    """Each measurement of each test on which three systems or more have values of the same items."""
    for test in dict.fromkeys(paired.test for paired in items):
        for name in names:
            having = [
                paired
                for paired in items
                if paired.test == test and name in paired.before.values and _is_measured(paired, name)
            ]
            found = _leaderboard(having, baseline, name, options) if len(having) > 1 else None
            if found is not None:
                yield found


def _is_measured(items: PairedItems, name: str) -> bool:
    """Whether the candidate has a value of any item; else no item would be left for a leaderboard."""
    return name in items.after.values and not np.isnan(items.after.values[name]).all()


def _leaderboard(
    items: Sequence[PairedItems], baseline: str, name: str, options: CompareOptions
) -> LeaderboardTable | None:
    values, clusters = _common(items, name)
    n_units = len(values) if clusters is None else int(clusters.max(initial=-1)) + 1
    if n_units < 2:
        return None
    direction = items[0].directions.get(name)
    found = compare_systems(
        values,
        clusters=clusters,
        lower_is_better=direction == "lower",
        confidence=1 - options.alpha,
        seed=options.seed,
    )
    labels = [baseline, *(paired.candidate for paired in items)]
    order = np.argsort(found.means if direction == "lower" else -found.means, kind="stable").tolist()
    return LeaderboardTable(
        test=items[0].test,
        measurement=name,
        n=len(values),
        direction=direction,
        systems=tuple(
            RankedSystem(
                system=labels[place],
                value=float(found.means[place]),
                ranks=tuple(found.ranks[place].tolist()),
            )
            for place in order
        ),
        groups=tuple(tuple(labels[place] for place in group) for group in found.groups),
        intervals=tuple(
            (labels[first], labels[second], float(found.low[second, first]), float(found.high[second, first]))
            for first, second in combinations(order, 2)
            if np.isfinite(found.low[second, first])
        ),
    )


def _common(items: Sequence[PairedItems], name: str) -> tuple[NDArray[np.float64], NDArray[np.int64] | None]:
    """The values of the items that all systems have one of, (n, systems) with the baseline first, and clusters."""
    places = reduce(np.intersect1d, (paired.before.places for paired in items))
    rows = [_rows_of(places, paired.before.places) for paired in items]
    columns = [items[0].before.values[name][rows[0]]]
    columns += [paired.after.values[name][at] for paired, at in zip(items, rows, strict=True)]
    values = np.stack(columns, axis=1)
    whole = ~np.isnan(values).any(axis=1)
    labels = [
        None if paired.clusters is None else paired.clusters[at][whole]
        for paired, at in zip(items, rows, strict=True)
    ]
    return values[whole], joined_clusters(*labels)


def _rows_of(places: NDArray[np.int64], having: NDArray[np.int64]) -> NDArray[np.int64]:
    order = np.argsort(having)
    return order[np.searchsorted(having, places, sorter=order)]
