"""Several comparisons at once: p values adjusted together, means over tests, leaderboards of three systems or more."""

import math
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from modelgauge.comparison.options import CompareOptions
from modelgauge.comparison.pairing.paired_items import PairedItems
from modelgauge.comparison.result import (
    LeaderboardTable,
    MacroComparison,
    MeasurementComparison,
    RankedSystem,
)
from modelgauge.stats.comparisons.families import holm, macro_mean
from modelgauge.stats.comparisons.leaderboard import compare_systems
from modelgauge.stats.intervals import CONFIDENCE, joined_clusters, normal_quantile


def adjusted(
    rows: Sequence[MeasurementComparison], questions: Sequence[int]
) -> tuple[list[MeasurementComparison], list[MacroComparison], int]:
    """The comparisons and their means over tests, with p values adjusted for all of them; and how many these are.

    Args:
        rows: the comparisons.
        questions: for each its question, see `questions_of`; equal answers to a question count as a single p value.
    """
    means = _macro_means(rows, questions)
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


def questions_of(pairs: Sequence[tuple[PairedItems, str]]) -> list[int]:
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


def _macro_means(
    rows: Sequence[MeasurementComparison], questions: Sequence[int]
) -> list[tuple[MacroComparison, tuple[int, ...]]]:
    """The mean over tests of each measurement that two or more have in the same units and with the same direction.

    With each come the questions of its tests. P values are not adjusted yet, and verdicts wait for that.
    """
    means = []
    for name, candidate in dict.fromkeys((row.measurement, row.candidate) for row in rows):
        asked = [
            (row, question)
            for row, question in zip(rows, questions, strict=True)
            if (row.measurement, row.candidate) == (name, candidate) and row.difference is not None
        ]
        of_tests = [row for row, _ in asked]
        ranges = {row.value_range for row in of_tests} - {None}  # unknown where all values are equal, say
        if len(of_tests) < 2 or len(ranges) > 1 or len({row.direction for row in of_tests}) > 1:
            continue
        found = macro_mean([row.difference or 0.0 for row in of_tests], [*map(_stderr, of_tests)])
        mean = MacroComparison(
            measurement=name,
            candidate=candidate,
            tests=tuple(row.test for row in of_tests),
            difference=found.value,
            stderr=found.stderr,
            interval=found.interval,
            p_value=math.erfc(abs(found.value) / found.stderr / math.sqrt(2)) if found.stderr else None,
            direction=of_tests[0].direction,
            value_range=next(iter(ranges), None),
            verdict="cannot_tell",
            verdict_text="",
        )
        means.append((mean, tuple(question for _, question in asked)))
    return means


def _stderr(row: MeasurementComparison) -> float | None:
    """The standard error of a difference; where it has no spread, the error that fits its interval."""
    if row.stderr is not None or row.interval is None:
        return row.stderr
    return (row.interval[1] - row.interval[0]) / (2 * normal_quantile(CONFIDENCE))


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
