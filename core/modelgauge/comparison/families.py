"""Several comparisons at once, with p values adjusted together. Leaderboards live in `leaderboards`."""

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from modelgauge.comparison.means import means_over_tests
from modelgauge.comparison.pairing.paired_items import PairedItems
from modelgauge.comparison.result import MacroComparison, MeasurementComparison
from modelgauge.stats.comparisons.families import holm


class Family(NamedTuple):
    """Comparisons whose p values are adjusted together.

    Args:
        rows: the comparisons.
        means: their means over tests.
        adjusted: all p values that were adjusted together, by what they answer.
    """

    rows: list[MeasurementComparison]
    means: list[MacroComparison]
    adjusted: dict[Hashable, float]


def adjusted(
    rows: Sequence[MeasurementComparison],
    pairs: Sequence[tuple[PairedItems, str]],
    of_candidates: Mapping[Hashable, float],
) -> Family:
    """Return the comparisons and their means over tests, with p values adjusted together with those of leaderboards.

    Measurements with equal values on all items of both sides count as a single p value.

    Args:
        rows: the comparisons.
        pairs: for each the paired items and the name of the measurement.
        of_candidates: the p values of pairs of candidates on leaderboards, by what they answer.
    """
    questions = questions_of(pairs)
    means = [
        (mean, tuple(questions[place] for place in places)) for mean, places in means_over_tests(rows, pairs)
    ]
    asked: list[tuple[MeasurementComparison | MacroComparison, object]] = [
        *zip(rows, questions, strict=True),
        *means,
    ]
    p_values: dict[Hashable, float] = {
        (name, question, p): p
        for row, question in asked
        for name in ("p_value", "p_interaction")
        if (p := getattr(row, name, None)) is not None
    }
    p_values |= of_candidates
    found = dict(zip(p_values, holm([*p_values.values()]), strict=True))
    return Family(
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
        found,
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
