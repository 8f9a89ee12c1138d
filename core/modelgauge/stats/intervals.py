"""Standard errors and confidence intervals of numbers: means (clustered or not), proportions, quantiles.

What takes measured items and returns an `Estimate` lives in `aggregations`. Sums are exactly rounded
(`math.fsum`), so no result depends on the order of the values. Where a quantity does not exist (the standard
error of one value) it is None, never NaN.
"""

import math
from bisect import bisect_left
from collections.abc import Hashable, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from modelgauge.errors import InvalidDataError
from modelgauge.stats.distributions import binomial_sf, student_t_quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Ordered: TypeAlias = Sequence[float] | NDArray[np.float64]

Interval: TypeAlias = tuple[float, float]

CONFIDENCE = 0.95
"""The confidence level of every interval that an `Estimate` carries."""


class MeanError(NamedTuple):
    """A mean and its error.

    Args:
        mean: of the values.
        stderr: its standard error; None where there are fewer than two independent observations.
        df: degrees of freedom for Student's t: independent observations (values, or clusters) less one.
    """

    mean: float
    stderr: float | None
    df: int


def mean_error(values: "ArrayLike", clusters: Sequence[Hashable] | None = None) -> MeanError:
    """A mean and its standard error, clustered where values come in groups that are not independent.

    Without clusters: s / sqrt(n), with the sample variance s² (divisor n - 1), for 0/1 values too.

    With clusters: the cluster-robust standard error of Liang and Zeger (1986), which Miller (2024), "Adding
    Error Bars to Evals", https://arxiv.org/abs/2411.00640, recommends for evals, with the small-sample
    correction CR1 (Cameron and Miller 2015, "A Practitioner's Guide to Cluster-Robust Inference"):

        SE² = G / (G - 1) · Σ_g (Σ_(i in g) (x_i - mean))² / n²

    for G clusters. (The correction's other factor, (n - 1) / (n - k), is 1 for the one parameter here.) With
    every value a cluster of its own it is the formula without clusters, exactly.

    Args:
        values: (n,) finite numbers, n >= 1.
        clusters: (n,) labels; equal labels, one cluster.

    Raises:
        InvalidDataError: there are no values, or not as many labels as values.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array):
        raise InvalidDataError(
            f"Values of shape {array.shape} have no mean.", fix="Give a row of at least one number."
        )
    if clusters is not None and len(clusters) != len(array):
        raise InvalidDataError(
            f"There are {len(array)} values and {len(clusters)} cluster labels.", fix="Give one for each."
        )
    # Scaled by a power of two, which is exact, so that no square and no sum overflows or vanishes.
    scale = _power_of_two(float(np.abs(array).max()))
    scaled = array / scale
    n = len(scaled)
    # Clamped, because a rounded sum divided by n can leave the range of the values by one bit.
    mean = min(max(math.fsum(scaled) / n, float(scaled.min())), float(scaled.max()))
    residuals = np.subtract(scaled, mean, out=scaled)  # in place: of a million values each array is 8 MB
    if clusters is not None:
        residuals = cluster_sums(residuals, clusters)
    groups = len(residuals)
    if groups < 2:
        return MeanError(mean * scale, None, 0)
    squares = np.multiply(residuals, residuals, out=residuals)
    variance = groups / (groups - 1) * math.fsum(squares) / n / n
    return MeanError(mean * scale, math.sqrt(variance) * scale, groups - 1)


def t_interval(error: MeanError, *, confidence: float = CONFIDENCE) -> Interval | None:
    """Student's t interval for a mean: mean ± t · stderr. None where there is no standard error.

    Where all values are equal it has no width: such a sample says nothing of the spread (for 0/1 values use
    `wilson_interval`, which does not have this weakness).

    Args:
        error: of the mean, see `mean_error`.
        confidence: the share of such intervals that hold the true mean, between 0 and 1.

    Raises:
        InvalidDataError: the confidence is not between 0 and 1.
    """
    if error.stderr is None:
        return None
    half = student_t_quantile(1 - _tail(confidence), error.df) * error.stderr
    low, high = error.mean - half, error.mean + half
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None


def wilson_interval(successes: float, n: int, *, confidence: float = CONFIDENCE) -> Interval | None:
    """The score interval for a proportion of Wilson (1927), JASA 22:209-212. None where n is 0.

    It stays within [0, 1], contains successes / n, and keeps its coverage for small n and for 0 or n
    successes, where ± 1.96 standard errors fails (Brown, Cai and DasGupta 2001).

    Args:
        successes: from 0 to n; need not be whole.
        n: trials.
        confidence: the share of such intervals that hold the true proportion, between 0 and 1.

    Raises:
        InvalidDataError: the successes are not from 0 to n, or the confidence is not between 0 and 1.
    """
    if not 0 <= successes <= n:
        raise InvalidDataError(
            f"{successes} of {n} is no proportion.", fix="Give successes from 0 to the number of trials."
        )
    if n == 0:
        return None
    z = NormalDist().inv_cdf(1 - _tail(confidence))
    share = successes / n
    center = successes + z * z / 2
    half = z * math.sqrt(successes * (1 - share) + z * z / 4)
    return max(0.0, min((center - half) / (n + z * z), share)), min(
        1.0, max((center + half) / (n + z * z), share)
    )


def quantile(ordered: "Ordered", q: float) -> float:
    """The q-quantile of values in rising order, linear between neighbours.

    Definition 7 of Hyndman and Fan (1996): numpy's default, written so that values of any size neither
    overflow nor leave their range.

    Raises:
        InvalidDataError: there are no values, or q is not from 0 to 1.
    """
    _check_quantile(q)
    if not len(ordered):
        raise InvalidDataError("No values have no quantile.", fix="Give at least one value.")
    place = (len(ordered) - 1) * q
    below = math.floor(place)
    low, high = float(ordered[below]), float(ordered[min(below + 1, len(ordered) - 1)])
    share = place - below
    return min(max(low * (1 - share) + high * share, low), high)


def quantile_interval(ordered: "Ordered", q: float, *, confidence: float = CONFIDENCE) -> Interval | None:
    """A distribution-free interval for a quantile, from the l-th to the u-th value in rising order.

    The number of values up to the true quantile is binomial (n, q); l and u cut at most (1 - confidence) / 2
    off each side (Conover 1999, "Practical Nonparametric Statistics", section 3.2). Its coverage is at least
    `confidence`, whatever the distribution. None where there are too few values for that: for the median,
    fewer than 6 at 95 %.

    Args:
        ordered: (n,) values in rising order.
        q: from 0 to 1.
        confidence: the least share of such intervals that hold the true quantile, between 0 and 1.

    Raises:
        InvalidDataError: q is not from 0 to 1, or the confidence is not between 0 and 1.
    """
    _check_quantile(q)
    n = len(ordered)
    alpha = _tail(confidence)
    # l is the largest with P(X <= l - 1) <= alpha; u the smallest with P(X >= u) <= alpha.
    counts = range(n + 2)
    lower = bisect_left(counts, True, key=lambda k: 1 - binomial_sf(k, n, q) > alpha) - 1
    upper = bisect_left(counts, True, key=lambda k: binomial_sf(k, n, q) <= alpha)
    if lower < 1 or upper > n:
        return None
    return float(ordered[lower - 1]), float(ordered[upper - 1])


def cluster_codes(clusters: Sequence[Hashable]) -> "NDArray[np.int64]":
    """A number for each label, 0, 1, 2… in order of the labels' first appearance: (n,) int64."""
    codes: dict[Hashable, int] = {}
    return np.fromiter(
        (codes.setdefault(label, len(codes)) for label in clusters), np.int64, count=len(clusters)
    )


def cluster_sums(values: "NDArray[np.float64]", clusters: Sequence[Hashable]) -> "NDArray[np.float64]":
    """The sum of each cluster's values, added in rising order, so that the items' order has no effect."""
    codes = cluster_codes(clusters)
    order = np.lexsort((values, codes))
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    return np.add.reduceat(values[order], starts)


def _check_quantile(q: float) -> None:
    if not 0.0 <= q <= 1.0:
        raise InvalidDataError(f"There is no {q}-quantile.", fix="Give quantiles from 0 to 1: 0.95, not 95.")


def _tail(confidence: float) -> float:
    """The probability beyond either end of a two-sided interval."""
    if not 0.0 < confidence < 1.0:
        raise InvalidDataError(f"There is no confidence of {confidence}.", fix="Give 0.95 for 95 %.")
    return (1 - confidence) / 2


def _power_of_two(largest: float) -> float:
    """The largest power of two that is not above a number; 1 for 0."""
    return math.ldexp(1.0, math.frexp(largest)[1] - 1) if largest else 1.0
