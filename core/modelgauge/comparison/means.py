"""The means over tests of the differences of a measurement that they have in common."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from modelgauge.comparison.pairing.paired_items import PairedItems
from modelgauge.comparison.result import MacroComparison, MeasurementComparison
from modelgauge.stats.comparisons.overall import (
    MeanParts,
    clusters_over_tests,
    overall_mean,
    parts_of_clusters,
    parts_of_values,
)
from modelgauge.stats.intervals import CONFIDENCE, normal_quantile


def means_over_tests(
    rows: Sequence[MeasurementComparison], pairs: Sequence[tuple[PairedItems, str]]
) -> Iterator[tuple[MacroComparison, tuple[int, ...]]]:
    """Yield the mean over tests of each measurement that two or more have in the same units and direction.

    With each come the places of its rows. P values are not adjusted yet, and verdicts wait for that.

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
        ranges = {row.value_range for row in of_tests} - {None}  # unknown where all values are equal, say
        if len(of_tests) < 2 or len(ranges) > 1 or len({row.direction for row in of_tests}) > 1:
            continue
        found = overall_mean(_parts(of_tests, [pairs[place] for place in places]))
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
            verdict="cannot_tell",
            verdict_text="",
        )
        yield mean, places


def _parts(
    rows: Sequence[MeasurementComparison], pairs: Sequence[tuple[PairedItems, str]]
) -> list[MeanParts]:
    """Split the error of each test's difference into what each cluster of its items contributes."""
    differences = [items.after.values[name] - items.before.values[name] for items, name in pairs]
    scored = [np.flatnonzero(~np.isnan(values)) for values in differences]
    clusters = clusters_over_tests(
        [len(places) for places in scored],
        [_at(items.clusters, places) for (items, _), places in zip(pairs, scored, strict=True)],
        [
            [_at(labels, places) for labels in (items.questions, items.origins)]
            for (items, _), places in zip(pairs, scored, strict=True)
        ],
    )
    return [
        parts_of_values(values[places], own)
        if row.stderr is not None
        else parts_of_clusters(row.difference or 0.0, _stderr_of_interval(row), own, exact=True)
        for row, values, places, own in zip(rows, differences, scored, clusters, strict=True)
    ]


def _at(labels: NDArray[np.int64] | None, places: NDArray[np.int64]) -> NDArray[np.int64] | None:
    return None if labels is None else labels[places]


def _stderr_of_interval(row: MeasurementComparison) -> float | None:
    """The standard error that fits the interval of a difference without a spread."""
    if row.interval is None:
        return None
    return (row.interval[1] - row.interval[0]) / (2 * normal_quantile(CONFIDENCE))
