"""Ready-made aggregations of measured items: what most tests return from `aggregate_measurements`.

Each takes `MeasuredItems` and the name of a measurement and returns an `Estimate` (`count`: a whole number). The
formulas live in `intervals`. `bounds` say what the value would be if every missing item (it failed, or a stopped run
did not reach it) had the worst, or the best, value of the measurement's range; they are None if the range or the
number of missing items is unknown. `bounds_interval` joins the intervals that the mean would have with these values.

Over no items, a sum and a count are 0; every other aggregation is an error.
"""

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from modelgauge.data.estimates import Estimate
from modelgauge.errors import InvalidDataError
from modelgauge.stats import intervals
from modelgauge.stats.keys import Key, key_function
from modelgauge.stats.measured import MeasuredItems, Missing, Range
from modelgauge.wording.phrases import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

Value = TypeVar("Value")


def mean(items: MeasuredItems, name: str, *, cluster: Key | None = None, missing: Missing = None) -> Estimate:
    """Return the mean of a measurement with its standard error and 95 % interval.

    The kind of the interval depends on what is known of the measurement:

    | measurement | interval | `interval_kind` |
    | --- | --- | --- |
    | 0/1 | `wilson_interval` | wilson |
    | 0/1, clustered, all equal | `wilson_interval` of the clusters, each counted once | wilson-clusters |
    | known range | `bounded_interval` | bounded, or cr2-bounded for clusters |
    | no range | `t_interval`, within the end that is known; None if all values are equal | t, or cr2-t |
    | all items of the population are measured | None: the value is exact | exact |

    A measurement is 0/1 if it has only these two values, and its range is (0, 1), or it has no declared range and both
    values occur. Items are clustered where `cluster` or `items.shared` joins some; then standard error and degrees of
    freedom are cluster-robust, see `mean_error`. Where `items.population` is known, standard error and interval shrink
    by the finite population correction, sqrt(1 - n / population) (Cochran 1977, "Sampling Techniques", section 2.6).
    There is no standard error where all values are equal.

    If items are missing, `interval` is about those that were scored, as if the others were like them. `bounds_interval`
    assumes nothing about why they are missing: it reaches from the low end of the interval with every missing item at
    the low end of the range to the high end of that with every missing item at the high end. For large samples it
    contains the interval of Imbens and Manski (2004), see `imbens_manski_interval`, which is too narrow for small ones.

    Args:
        items: at least one.
        name: of the measurement.
        cluster: for items that are not independent (questions on one text, say): a key of the context or a
            function of the item; items with equal keys form a cluster.
        missing: a number that replaces a missing measurement, or "skip"; see `MeasuredItems.column`.

    Raises:
        UnknownNameError: no item has the measurement.
        InvalidDataError: there are no values, some are missing, or one is outside the measurement's range.
    """
    items, values = _values(items, name, missing, "mean")
    keys = None if cluster is None else [*map(key_function(cluster), items)]
    clusters = intervals.joined_clusters(items.shared, keys)
    error = intervals.mean_error(values, clusters)
    bar = _error_bar(values, error, clusters, items, name)
    return Estimate(
        value=error.mean,
        n=len(values),
        stderr=bar.stderr,
        interval=bar.interval,
        interval_kind=bar.kind,
        bounds=_bounds(items, name, error.mean, values, lambda scores: intervals.mean_error(scores).mean),
        n_clusters=None if clusters is None else int(clusters.max()) + 1,
        bounds_interval=_bounds_interval(items, name, values, clusters),
    )


def mean_of_each(items: MeasuredItems) -> dict[str, Estimate]:
    """Return the mean of every measurement with its error bar, over the items that have it; `n` is their number.

    It is what `aggregate_measurements` does unless a test overrides it.
    """
    views = ((name, items.having(name)) for name in items.names)
    return {name: mean(view, name) for name, view in views if len(view)}


def grouped(items: MeasuredItems, key: Key, aggregate: Callable[[MeasuredItems], Value]) -> dict[str, Value]:
    """Aggregate each group of items, by name, in order of the groups' first appearance.

    For example `grouped(items, "profession", lambda group: mean(group, "stereotype"))`.

    Args:
        items: the whole.
        key: a key of the context or a function of the item; see `MeasuredItems.group_by`.
        aggregate: from the items of a group to its value.

    Raises:
        InvalidDataError: an item has no such key, or two groups would have the same name (1 and "1").
    """
    values: dict[str, Value] = {}
    for group, members in items.group_by(key).items():
        if str(group) in values:
            raise InvalidDataError(
                f"Two groups have the same name '{group}', though their keys differ.",
                fix="Give a key function that returns the same type for all items.",
            )
        values[str(group)] = aggregate(members)
    return values


def count(items: MeasuredItems, name: str | None = None) -> int:
    """Count the scored items; with a name, the items that have this measurement.

    Raises:
        UnknownNameError: no item has the measurement.
    """
    return len(items) if name is None else len(items.column(name, missing="skip"))


def total(items: MeasuredItems, name: str, *, missing: Missing = None) -> Estimate:
    """Return the sum of a measurement; 0 over no items.

    Its bounds let every missing item add the least or the most that it could, or nothing.

    Raises:
        UnknownNameError: no item has the measurement.
        InvalidDataError: some are missing, one is outside its range, or the sum exceeds the largest float.
    """
    items, values = _values(items, name, missing, "total", at_least=0)
    try:
        value = math.fsum(values)
    except OverflowError:
        raise InvalidDataError(
            f"The sum of measurement '{name}' exceeds the largest float.", fix="Measure in a larger unit."
        ) from None
    return Estimate(value=value, n=len(values), bounds=_bounds(items, name, value, values, math.fsum))


def minimum(items: MeasuredItems, name: str, *, missing: Missing = None) -> Estimate:
    """Return the smallest value of a measurement. Raises as `mean`."""
    items, values = _values(items, name, missing, "minimum")
    value = float(values.min())
    return Estimate(value=value, n=len(values), bounds=_bounds(items, name, value, values, np.min))


def maximum(items: MeasuredItems, name: str, *, missing: Missing = None) -> Estimate:
    """Return the largest value of a measurement. Raises like `mean`."""
    items, values = _values(items, name, missing, "maximum")
    value = float(values.max())
    return Estimate(value=value, n=len(values), bounds=_bounds(items, name, value, values, np.max))


def median(items: MeasuredItems, name: str, *, missing: Missing = None) -> Estimate:
    """Return the median of a measurement with its order-statistic interval (see `quantiles`). Raises like `mean`."""
    return quantiles(items, name, (0.5,), missing=missing)["0.5"]


def quantiles(
    items: MeasuredItems, name: str, qs: Iterable[float] = (0.25, 0.5, 0.75), *, missing: Missing = None
) -> dict[str, Estimate]:
    """Return quantiles of a measurement, each under its own name: {"0.25": …, "0.5": …, "0.75": …}.

    Linear between neighbouring values (definition 7 of Hyndman and Fan 1996). The interval is distribution-free,
    between two of the values (`intervals.quantile_interval`); None if there are too few of them, if items share answers
    (`items.shared`), since it would be too narrow, and if all items of the population are measured. There is no
    standard error: it would need the density at the quantile.

    Args:
        items: at least one.
        name: of the measurement.
        qs: from 0 to 1.
        missing: see `mean`.

    Raises:
        UnknownNameError: no item has the measurement.
        InvalidDataError: see `mean`; or one of `qs` is not from 0 to 1.
    """
    items, values = _values(items, name, missing, "quantile")
    clusters = intervals.joined_clusters(items.shared)
    return {str(float(q)): _quantile(items, name, values, float(q), clusters) for q in qs}


def stddev(items: MeasuredItems, name: str, *, missing: Missing = None) -> Estimate:
    """Return the sample standard deviation (divisor n - 1) of a measurement.

    It has no error bar, since the simple formulas hold for normal values only, and bounds only where no item
    is missing: a deviation may grow or shrink by a further value.

    Raises:
        UnknownNameError: no item has the measurement.
        InvalidDataError: see `mean`; or there are fewer than two values.
    """
    items, values = _values(items, name, missing, "standard deviation", at_least=2)
    error = intervals.mean_error(values)
    value = (error.stderr or 0.0) * math.sqrt(len(values))
    bounds = (value, value) if items.missing == 0 else None
    return Estimate(value=value, n=len(values), bounds=bounds)


def _values(
    items: MeasuredItems, name: str, missing: Missing, what: str, *, at_least: int = 1
) -> "tuple[MeasuredItems, NDArray[np.float64]]":
    """Return the values to aggregate, and the items that they belong to."""
    values = items.column(name, missing=missing)
    if missing is None or missing == "skip":
        those = items.having(name)  # and what was measured of failed items
        if those is not items:
            items, values = those, those.column(name)
    if len(values) < at_least:
        raise InvalidDataError(
            f"Cannot compute the {what} of '{name}' over {counted(len(values), 'item')}; it needs at least {at_least}.",
            fix="Leave it out of the result if len(items) is too small.",
        )
    if np.isnan(values).any():
        raise InvalidDataError(
            f"missing=NaN would make the {what} of '{name}' NaN.",
            fix='Use missing="skip" or missing=<a number>.',
        )
    _check_range(items, name, values)
    return items, values


def _check_range(items: MeasuredItems, name: str, values: "NDArray[np.float64]") -> None:
    low, high = items.ranges.get(name, (-math.inf, math.inf))
    outside = np.flatnonzero((values < low) | (values > high))
    if len(outside):
        place = int(outside[0])
        raise InvalidDataError(
            f"Measurement '{name}' of item '{items[place].test_item.id}' is {values[place]}, outside"
            f" its range ({low}, {high}).",
            fix="Widen the range in measurement_ranges, or correct measure_quality.",
        )


class _ErrorBar(NamedTuple):
    stderr: float | None
    interval: intervals.Interval | None
    kind: str | None


def _error_bar(
    values: "NDArray[np.float64]",
    error: intervals.MeanError,
    clusters: "NDArray[np.int64] | None",
    items: MeasuredItems,
    name: str,
) -> _ErrorBar:
    """Return the error bar of a mean, by the table in the docstring of `mean`."""
    bar = error_bar(values, error, clusters, items.ranges.get(name))
    return (
        bar if items.population is None else _of_population(bar, error.mean, len(values) / items.population)
    )


def error_bar(
    values: "NDArray[np.float64]",
    error: intervals.MeanError,
    clusters: "NDArray[np.int64] | None",
    declared: Range | None,
) -> _ErrorBar:
    """Return the error bar of a mean over questions like these; see `mean`."""
    binary = intervals.is_proportion(values, declared)
    low, high = declared or ((0.0, 1.0) if binary else (-math.inf, math.inf))
    if binary and clusters is None:
        kind, interval = "wilson", intervals.wilson_interval(float(values.sum()), len(values))
    elif binary and clusters is not None and error.mean in (0.0, 1.0):
        groups = int(clusters.max()) + 1
        kind, interval = "wilson-clusters", intervals.wilson_interval(error.mean * groups, groups)
    elif math.isfinite(low) and math.isfinite(high):
        kind = "bounded" if clusters is None else "cr2-bounded"
        interval = intervals.bounded_interval(values, low, high, clusters=clusters)
    else:
        kind = "t" if clusters is None else "cr2-t"
        interval = intervals.t_interval(error)
    if interval is None:
        return _ErrorBar(error.stderr or None, None, None)
    # Values that are all equal say nothing of the error, so it is not 0.
    return _ErrorBar(error.stderr or None, (max(interval[0], low), min(interval[1], high)), kind)


def _of_population(bar: _ErrorBar, mean: float, share: float) -> _ErrorBar:
    """Return an error bar for the mean of a finite set of items, of which a share is measured."""
    if share >= 1:
        return _ErrorBar(0.0, None, "exact")
    factor = math.sqrt(1 - share)
    stderr = None if bar.stderr is None else bar.stderr * factor
    if bar.interval is None:
        return _ErrorBar(stderr, None, None)
    low, high = bar.interval
    return _ErrorBar(stderr, (mean - (mean - low) * factor, mean + (high - mean) * factor), bar.kind)


def _quantile(
    items: MeasuredItems,
    name: str,
    values: "NDArray[np.float64]",
    q: float,
    clusters: "NDArray[np.int64] | None",
) -> Estimate:
    ordered = np.sort(values)
    value = intervals.quantile(ordered, q)
    exact = items.population is not None and len(ordered) >= items.population
    interval = None if exact or clusters is not None else intervals.quantile_interval(ordered, q)
    return Estimate(
        value=value,
        n=len(ordered),
        interval=interval,
        interval_kind="exact" if exact else interval and "order-statistics",
        bounds=_bounds(items, name, value, values, lambda scores: intervals.quantile(np.sort(scores), q)),
        n_clusters=None if clusters is None else int(clusters.max()) + 1,
    )


def _bounds(
    items: MeasuredItems,
    name: str,
    value: float,
    values: "NDArray[np.float64]",
    aggregate: "Callable[[NDArray[np.float64]], float]",
) -> intervals.Interval | None:
    """(worst, best): the value with all that is missing at the low, and at the high end of the range; None if unknown.

    Where lower is better, the worst is at the high end.
    """
    if not items.missing and items.missing is not None and items.failed_shares is None:
        return value, value
    completed = _completed(items, name, values)
    if completed is None:
        return None
    low, high = map(aggregate, completed)
    # Include the value, which a rounded sum (or, for a total, a range on one side of 0) can miss.
    lowest, highest = min(low, value), max(high, value)
    return (highest, lowest) if items.directions.get(name) == "lower" else (lowest, highest)


def _completed(
    items: MeasuredItems, name: str, values: "NDArray[np.float64]"
) -> "tuple[NDArray[np.float64], NDArray[np.float64]] | None":
    """Return the values with everything missing at the low end, and at the high end of the range; None if unknown.

    Missing are whole items, and of the others the shares that failed.
    """
    missing, shares = items.missing, items.failed_shares
    low, high = items.ranges.get(name, (-math.inf, math.inf))
    if missing is None or math.isinf(low) or math.isinf(high):
        return None

    def at(end: float) -> "NDArray[np.float64]":
        held = values if shares is None else values + shares * (end - values)
        return np.append(held, np.full(missing, end))

    return at(low), at(high)


def _bounds_interval(
    items: MeasuredItems,
    name: str,
    values: "NDArray[np.float64]",
    clusters: "NDArray[np.int64] | None",
) -> intervals.Interval | None:
    """Return the interval of a mean whatever the missing items would have scored; None if none is missing.

    The clusters of missing items are unknown, so they are assumed to have the mean size.
    """
    completed = _completed(items, name, values) if items.missing or items.failed_shares is not None else None
    if completed is None:
        return None
    if clusters is not None:
        groups = int(clusters.max()) + 1
        size = math.ceil(len(values) / groups)
        clusters = np.append(clusters, groups + np.arange(items.missing or 0) // size)
    errors = [intervals.mean_error(each, clusters) for each in completed]
    bars = [
        _error_bar(each, error, clusters, items, name) for each, error in zip(completed, errors, strict=True)
    ]
    # All items of a finite set have no interval: their bounds are exact.
    ends = [bar.interval or (error.mean, error.mean) for bar, error in zip(bars, errors, strict=True)]
    return ends[0][0], ends[1][1]
