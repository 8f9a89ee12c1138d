"""The mean of a result over the tests of a group, as runs recorded them."""

import math
from collections.abc import Iterator, Sequence

from modelgauge.data.base import Count, Frozen, Text
from modelgauge.data.estimates import Estimate
from modelgauge.data.records import TestRecord
from modelgauge.stats.comparisons.families import macro_mean
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
            errors of the tests, divided by their number, since tests are independent and were chosen, not drawn.
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
    """The mean of each result that two tests of a group or more have on a SUT.

    Args:
        records: of one command.
    """
    of_groups: dict[tuple[str, int, str], list[TestRecord]] = {}
    for record in records:
        for group, members in record.groups.items():
            of_groups.setdefault((group, members, record.sut_name), []).append(record)
    for (group, members, sut), own in of_groups.items():
        for name in dict.fromkeys(name for record in own for name in record.result):
            having = [record for record in own if isinstance(record.result.get(name), Estimate)]
            if len(having) > 1:
                yield GroupMean(
                    group=group,
                    members=members,
                    sut=sut,
                    result=name,
                    tests=tuple(record.test_uid for record in having),
                    mean=_mean([record.result[name] for record in having], _range(having, name)),
                    failed=sum(record.counts.failed for record in having),
                )


def _range(records: Sequence[TestRecord], name: str) -> tuple[float, float]:
    """The lowest and the highest value that a result can have in all tests, as far as they are known."""
    ranges = [(record.ranges or {}).get(record.measurement_of(name), (None, None)) for record in records]
    low, high = zip(*ranges, strict=True)
    return (-math.inf if None in low else min(low), math.inf if None in high else max(high))


def _mean(estimates: Sequence[Estimate], possible: tuple[float, float]) -> Estimate:
    found = macro_mean([estimate.value for estimate in estimates], [*map(_stderr, estimates)])
    interval = found.interval
    bounds = [estimate.bounds for estimate in estimates if estimate.bounds is not None]
    if interval is not None:
        interval = (max(interval[0], possible[0]), min(interval[1], possible[1]))
    return Estimate(
        value=found.value,
        n=sum(estimate.n for estimate in estimates),
        stderr=found.stderr,
        interval=interval,
        interval_kind=None if interval is None else "normal",
        bounds=_mean_bounds(bounds) if len(bounds) == len(estimates) else None,
    )


def _mean_bounds(bounds: Sequence[tuple[float, float]]) -> tuple[float, float]:
    worst, best = zip(*bounds, strict=True)
    return (math.fsum(worst) / len(bounds), math.fsum(best) / len(bounds))


def _stderr(estimate: Estimate) -> float | None:
    """The standard error of a result; without a spread, that which belongs to the longer arm of its interval."""
    if estimate.stderr or estimate.interval is None:
        return 0.0 if estimate.interval_kind == "exact" else estimate.stderr
    return max(
        estimate.value - estimate.interval[0], estimate.interval[1] - estimate.value
    ) / normal_quantile(CONFIDENCE)
