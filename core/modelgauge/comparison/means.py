"""Means over tests of the difference of a measurement that the tests have in common."""

import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from modelgauge.comparison.pairing.paired_items import PairedItems
from modelgauge.comparison.result import MacroComparison, MeasurementComparison
from modelgauge.stats.comparisons.overall import (
    OverallMean,
    clusters_over_tests,
    overall_mean,
    parts_of_clusters,
    parts_of_values,
)
from modelgauge.stats.comparisons.paired import unseen_differences
from modelgauge.stats.intervals import CONFIDENCE, Interval, normal_quantile


def means_over_tests(
    rows: Sequence[MeasurementComparison], pairs: Sequence[tuple[PairedItems, str]]
) -> Iterator[tuple[MacroComparison, tuple[int, ...]]]:
    """Yield the mean over tests of each measurement that two or more tests have, in the same units and direction.

    Each mean comes with the indexes of its rows. P values are not adjusted yet, so there are no verdicts either.

    Args:
        rows: the comparisons.
        pairs: for each the paired items and the name of the measurement.
    """
    for name, candidate in dict.fromkeys((row.measurement, row.candidate) for row in rows):
        places = tuple(
            place
            for place, row in enumerate(rows)
            if (row.measurement, row.candidate) == (name, candidate) and row.difference is not None
        )
        of_tests = [rows[place] for place in places]
        ranges = {row.value_range for row in of_tests} - {None}  # None if all values are equal, say
        if len(of_tests) < 2 or len(ranges) > 1 or len({row.direction for row in of_tests}) > 1:
            continue
        found, bounds = _overall(of_tests, [pairs[place] for place in places]), _bounds(of_tests)
        mean = MacroComparison(
            measurement=name,
            candidate=candidate,
            tests=tuple(row.test for row in of_tests),
            difference=found.value,
            stderr=found.stderr,
            interval=found.interval,
            p_value=found.p_value,
            direction=of_tests[0].direction,
            value_range=next(iter(ranges), None),
            n_paired=sum(row.n_paired for row in of_tests),
            n_failed=sum(row.n_failed for row in of_tests),
            bounds=bounds,
            p_if_worst=_p_if_worst(found.stderr, bounds, of_tests),
            verdict="cannot_tell",
            verdict_text="",
        )
        yield mean, places


def _bounds(rows: Sequence[MeasurementComparison]) -> Interval | None:
    """Return the mean of the bounds that the failed items of each test allow."""
    known = [row.bounds for row in rows if row.bounds is not None]
    if len(known) < len(rows):
        return None
    low, high = (math.fsum(ends) / len(ends) for ends in zip(*known, strict=True))
    return low, high


def _p_if_worst(
    stderr: float | None, bounds: Interval | None, rows: Sequence[MeasurementComparison]
) -> float | None:
    """Return the p value of the mean with every failed item at the worst for the candidate; None if that is no loss."""
    direction, n_failed = rows[0].direction, sum(row.n_failed for row in rows)
    if bounds is None or direction is None or not (stderr and n_failed):
        return None
    loss = bounds[1] if direction == "lower" else -bounds[0]
    return 2 * NormalDist().cdf(-loss / stderr) if loss > 0 else None


def _overall(rows: Sequence[MeasurementComparison], pairs: Sequence[tuple[PairedItems, str]]) -> OverallMean:
    """Return the mean over tests. Graded scores of a known range get imaginary items, as in a single test."""
    sides = [(items.before.values[name], items.after.values[name]) for items, name in pairs]
    scored = [np.flatnonzero(~np.isnan(after - before)) for before, after in sides]
    values = [(before[places], after[places]) for (before, after), places in zip(sides, scored, strict=True)]
    ends = _ends(rows, values)
    differences = [after - before for before, after in values]
    clusters = clusters_over_tests(
        [len(places) for places in scored],
        [_at(items.clusters, places) for (items, _), places in zip(pairs, scored, strict=True)],
        [
            [_at(labels, places) for labels in (items.questions, items.origins)]
            for (items, _), places in zip(pairs, scored, strict=True)
        ],
    )
    parts = [
        parts_of_values(difference, own)
        if row.stderr is not None or (ends is not None and len(own) > 1)
        else parts_of_clusters(row.difference or 0.0, _stderr_of_interval(row), own, exact=True)
        for row, difference, own in zip(rows, differences, clusters, strict=True)
    ]
    return overall_mean(parts, ends=ends)


def _ends(
    rows: Sequence[MeasurementComparison],
    values: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]],
) -> Interval | None:
    """Return the unseen loss and gain, averaged over tests; None unless all have graded scores of a known range."""
    if not all(row.interval_kind in ("bounded", "cr2-bounded") and row.value_range for row in rows):
        return None
    ends = [
        unseen_differences(before, after, *row.value_range)
        for row, (before, after) in zip(rows, values, strict=True)
        if row.value_range
    ]
    low, high = (math.fsum(own) / len(ends) for own in zip(*ends, strict=True))
    return low, high


def _at(labels: NDArray[np.int64] | None, places: NDArray[np.int64]) -> NDArray[np.int64] | None:
    return None if labels is None else labels[places]


def _stderr_of_interval(row: MeasurementComparison) -> float | None:
    """Return the standard error that corresponds to the interval of a difference without a spread."""
    if row.interval is None:
        return None
    return (row.interval[1] - row.interval[0]) / (2 * normal_quantile(CONFIDENCE))
