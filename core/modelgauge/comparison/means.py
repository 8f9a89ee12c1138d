"""Means over tests of the difference of a measurement that the tests have in common."""

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from modelgauge.comparison.contrasts import Contrast
from modelgauge.comparison.difference import Difference, Interval, MacroComparison
from modelgauge.comparison.families import Family, Question
from modelgauge.comparison.verdicts import verdict, verdict_text
from modelgauge.stats.comparisons.overall import (
    OverallMean,
    clusters_over_tests,
    overall_mean,
    parts_of_clusters,
    parts_of_values,
)
from modelgauge.stats.comparisons.paired import unseen_differences
from modelgauge.stats.intervals import CONFIDENCE, normal_quantile


class MeanContrast:
    """The mean over tests of a measurement: its p value, and with the family of that its row of the comparison.

    Args:
        contrasts: of one measurement and candidate, for two tests or more, in the same units and direction.

    Attributes:
        difference: its p value is not adjusted.
    """

    def __init__(self, contrasts: Sequence[Contrast]) -> None:
        self._contrasts = contrasts
        of_tests = [contrast.difference for contrast in contrasts]
        found, bounds = _overall(contrasts), _bounds(of_tests)
        self.difference = Difference(
            n_paired=sum(row.n_paired for row in of_tests),
            n_failed=sum(row.n_failed for row in of_tests),
            difference=found.value,
            stderr=found.stderr,
            interval=found.interval,
            p_value=found.p_value,
            bounds=bounds,
            p_if_worst=_p_if_worst(found.stderr, bounds, of_tests),
            direction=of_tests[0].direction,
            value_range=next(filter(None, (row.value_range for row in of_tests)), None),
        )

    @property
    def _question(self) -> Question:
        return ("mean", *(contrast.question for contrast in self._contrasts), self.difference.p_value)

    def p_values(self) -> dict[Question, float]:
        """Return its p value, if there is one, by the question that it answers."""
        p_value = self.difference.p_value
        return {} if p_value is None else {self._question: p_value}

    def row(self, family: Family) -> MacroComparison:
        """Return the row with its verdict."""
        difference = self.difference.replaced(p_adjusted=family.adjusted.get(self._question))
        tests = tuple(contrast.items.test for contrast in self._contrasts)
        candidate = self._contrasts[0].items.candidate
        return MacroComparison(
            **dict(difference),
            measurement=self._contrasts[0].name,
            candidate=candidate,
            tests=tests,
            verdict=verdict(difference, family),
            verdict_text=verdict_text(candidate, difference, family, n_tests=len(tests)),
        )


def means_over_tests(contrasts: Sequence[Contrast]) -> list[MeanContrast]:
    """Return the mean over tests of each measurement that two or more tests have, in the same units and direction."""
    found: dict[tuple[str, str], list[Contrast]] = {}
    for contrast in contrasts:
        of_tests = found.setdefault((contrast.name, contrast.items.candidate), [])
        of_tests += [contrast] if contrast.difference.n_paired else []
    return [MeanContrast(of_tests) for of_tests in found.values() if _can_be_averaged(of_tests)]


def _can_be_averaged(contrasts: Sequence[Contrast]) -> bool:
    rows = [contrast.difference for contrast in contrasts]
    ranges = {row.value_range for row in rows} - {None}  # None if all values are equal, say
    return len(rows) > 1 and len(ranges) < 2 and len({row.direction for row in rows}) == 1


def _bounds(rows: Sequence[Difference]) -> Interval | None:
    """Return the mean of the bounds that the failed items of each test allow."""
    known = [row.bounds for row in rows if row.bounds is not None]
    if len(known) < len(rows):
        return None
    low, high = (math.fsum(ends) / len(ends) for ends in zip(*known, strict=True))
    return low, high


def _p_if_worst(stderr: float | None, bounds: Interval | None, rows: Sequence[Difference]) -> float | None:
    """Return the p value of the mean with every failed item at the worst for the candidate; None if that is no loss."""
    direction, n_failed = rows[0].direction, sum(row.n_failed for row in rows)
    if bounds is None or direction is None or not (stderr and n_failed):
        return None
    loss = bounds[1] if direction == "lower" else -bounds[0]
    return 2 * NormalDist().cdf(-loss / stderr) if loss > 0 else None


def _overall(contrasts: Sequence[Contrast]) -> OverallMean:
    """Return the mean over tests. Graded scores of a known range get imaginary items, as in a single test."""
    ends = _ends(contrasts)
    scored = [contrast.places for contrast in contrasts]
    clusters = clusters_over_tests(
        [len(places) for places in scored],
        [_at(contrast.items.clusters, places) for contrast, places in zip(contrasts, scored, strict=True)],
        [
            [_at(labels, places) for labels in (contrast.items.questions, contrast.items.origins)]
            for contrast, places in zip(contrasts, scored, strict=True)
        ],
    )
    parts = []
    for contrast, own in zip(contrasts, clusters, strict=True):
        row, values = contrast.difference, contrast.values
        if row.stderr is not None or (ends is not None and len(own) > 1):
            parts.append(parts_of_values(values.after - values.before, own))
        else:
            stderr = _stderr_of_interval(row)
            parts.append(parts_of_clusters(row.difference or 0.0, stderr, own, exact=True))
    return overall_mean(parts, ends=ends)


def _ends(contrasts: Sequence[Contrast]) -> Interval | None:
    """Return the unseen loss and gain, averaged over tests; None unless all have graded scores of a known range."""
    ends = [
        unseen_differences(contrast.values.before, contrast.values.after, *contrast.difference.value_range)
        for contrast in contrasts
        if contrast.difference.interval_kind in ("bounded", "cr2-bounded") and contrast.difference.value_range
    ]
    if len(ends) < len(contrasts):
        return None
    low, high = (math.fsum(own) / len(ends) for own in zip(*ends, strict=True))
    return low, high


def _at(labels: NDArray[np.int64] | None, places: NDArray[np.int64]) -> NDArray[np.int64] | None:
    return None if labels is None else labels[places]


def _stderr_of_interval(row: Difference) -> float | None:
    """Return the standard error that corresponds to the interval of a difference without a spread."""
    if row.interval is None:
        return None
    return (row.interval[1] - row.interval[0]) / (2 * normal_quantile(CONFIDENCE))
