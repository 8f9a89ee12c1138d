"""The mean of a result over the tests of a group, as runs recorded them."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from modelgauge.data.base import Count, Frozen, Text
from modelgauge.data.estimates import Estimate
from modelgauge.data.records import TestRecord
from modelgauge.engine.items.item_frame import ItemFrame, read_lines
from modelgauge.stats.comparisons.overall import clusters_over_tests, overall_mean, parts_of_clusters
from modelgauge.stats.intervals import CONFIDENCE, normal_quantile


class GroupMean(Frozen):
    """The mean of a result over the tests of a group that have it, on one SUT; all tests count alike.

    Args:
        group: its name.
        members: how many tests the group has.
        sut: what tables call the SUT.
        result: the name of the result.
        tests: those that the mean is over.
        mean: with the items of all tests as `n`. Its standard error is the root of the sum of the squared standard
            errors of the tests, divided by their number, since tests were chosen, not drawn. The errors of tests that
            share prompts, or items of their data, are assumed to be correlated as much as these allow.
        failed: how many items of these tests failed.
    """

    group: Text
    members: Count
    sut: Text
    result: Text
    tests: tuple[Text, ...]
    mean: Estimate
    failed: Count

    @property
    def label(self) -> str:
        """The group, with the number of its tests that the mean is over."""
        number, known = len(self.tests), f" of {self.members}"
        return f"{self.group}, mean of {number}{known if number < self.members else ''}"


def group_means(records: Sequence[TestRecord]) -> Iterator[GroupMean]:
    """Compute the mean of each result that two or more tests of a group have on a SUT.

    Args:
        records: of one command.
    """
    of_groups: dict[tuple[str, int, str], list[TestRecord]] = {}
    for record in records:
        for group, members in record.groups.items():
            of_groups.setdefault((group, members, record.sut_name), []).append(record)
    for (group, members, sut), own in of_groups.items():
        estimated = [
            record for record in own if any(isinstance(value, Estimate) for value in record.result.values())
        ]
        clusters = (
            dict(zip(map(id, estimated), _clusters(estimated), strict=True)) if len(estimated) > 1 else {}
        )
        for name in dict.fromkeys(name for record in own for name in record.result):
            having = [record for record in own if isinstance(record.result.get(name), Estimate)]
            if len(having) > 1:
                yield GroupMean(
                    group=group,
                    members=members,
                    sut=sut,
                    result=name,
                    tests=tuple(record.test_uid for record in having),
                    mean=_mean(
                        [record.result[name] for record in having],
                        [clusters[id(record)] for record in having],
                        _range(having, name),
                    ),
                    failed=sum(record.counts.failed for record in having),
                )


def _range(records: Sequence[TestRecord], name: str) -> tuple[float, float]:
    """Return the lowest and the highest possible value of a result over all tests, as far as known."""
    ranges = [(record.ranges or {}).get(record.measurement_of(name), (None, None)) for record in records]
    low, high = zip(*ranges, strict=True)
    return (-math.inf if None in low else min(low), math.inf if None in high else max(high))


def _mean(
    estimates: Sequence[Estimate], clusters: Sequence[NDArray[np.int64]], possible: tuple[float, float]
) -> Estimate:
    bounded = all(estimate.interval_kind in ("bounded", "cr2-bounded") for estimate in estimates)
    parts = [
        parts_of_clusters(
            estimate.value,
            estimate.stderr or 0.0 if bounded else _stderr(estimate),
            labels,
            exact=not estimate.stderr,
        )
        for estimate, labels in zip(estimates, clusters, strict=True)
    ]
    found = overall_mean(parts, ends=possible if bounded and all(map(math.isfinite, possible)) else None)
    interval = found.interval
    bounds = [estimate.bounds for estimate in estimates if estimate.bounds is not None]
    if interval is not None:
        interval = (max(interval[0], possible[0]), min(interval[1], possible[1]))
    return Estimate(
        value=found.value,
        n=sum(estimate.n for estimate in estimates),
        stderr=found.stderr,
        interval=interval,
        interval_kind=None if interval is None else "t",
        bounds=_mean_bounds(bounds) if len(bounds) == len(estimates) else None,
    )


def _mean_bounds(bounds: Sequence[tuple[float, float]]) -> tuple[float, float]:
    worst, best = zip(*bounds, strict=True)
    return (math.fsum(worst) / len(bounds), math.fsum(best) / len(bounds))


def _stderr(estimate: Estimate) -> float | None:
    """Return the standard error of a result; if there is none, the one implied by the longer arm of its interval."""
    if estimate.stderr or estimate.interval is None:
        return 0.0 if estimate.interval_kind == "exact" else estimate.stderr
    return max(
        estimate.value - estimate.interval[0], estimate.interval[1] - estimate.value
    ) / normal_quantile(CONFIDENCE)


# --- items that tests share -------------------------------------------------------------------------


def _clusters(records: Sequence[TestRecord]) -> list[NDArray[np.int64]]:
    """Return labels of each record's items. Items with equal labels, in any records, are not independent."""
    labelings = [_labels(record) for record in records]
    return clusters_over_tests(
        [len(questions) for questions, _ in labelings], [None] * len(records), labelings
    )


def _labels(record: TestRecord) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return hashes of the items' prompts, and of their data and ids; of the run alone if these are unknown."""
    # Damage is reported when the items themselves are read.
    items = ItemFrame(read_lines(record), record, skip_damaged=True)
    questions, origins = items.questions, items.origins
    # If it has no items, they are in other runs.
    number = len(items) or max([value.n for value in record.result.values() if isinstance(value, Estimate)])
    run = (record.run_id, record.test_uid)
    alone = np.array([hash((run, place)) for place in range(number)], dtype=np.int64)
    return alone if questions is None else questions, alone if origins is None else origins
