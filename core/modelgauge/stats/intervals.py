"""Standard errors and confidence intervals of numbers: means (clustered or not), proportions, quantiles.

What takes measured items and returns an `Estimate` lives in `aggregations`. Sums are exactly rounded
(`math.fsum`), so no result depends on the order of the values. Where a quantity does not exist (the standard
error of one value) it is None, never NaN.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Hashable, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from modelgauge.errors import InvalidDataError
from modelgauge.stats.distributions import binomial_sf, student_t_quantile
from modelgauge.wording.phrases import counted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Labels: TypeAlias = Sequence[Hashable] | NDArray[np.int64]
    Ordered: TypeAlias = Sequence[float] | NDArray[np.float64]

Interval: TypeAlias = tuple[float, float]

CONFIDENCE = 0.95
"""The confidence level of every interval that an `Estimate` carries."""


_ADDED = 1.5
"""The number of imaginary observations that `bounded_error` adds at each end."""


class MeanError(NamedTuple):
    """A mean and its error.

    Args:
        mean: of the values.
        stderr: its standard error; None if there are fewer than two independent observations.
        df: degrees of freedom for Student's t: values less one, or those of Bell and McCaffrey for clusters.
    """

    mean: float
    stderr: float | None
    df: float


def mean_error(values: "ArrayLike", clusters: "Labels | None" = None) -> MeanError:
    """Return a mean and its standard error, clustered if values come in groups that are not independent.

    Without clusters: s / sqrt(n), with the sample variance s² (divisor n - 1), for 0/1 values too.

    With clusters: the cluster-robust standard error (Liang and Zeger 1986; Miller 2024, "Adding Error Bars to
    Evals", https://arxiv.org/abs/2411.00640, recommends it for evals) with the bias reduction CR2 and the
    degrees of freedom of Bell and McCaffrey (2002, Survey Methodology 28:169-181; see Pustejovsky and Tipton
    2018, https://doi.org/10.1080/07350015.2016.1247004). For a mean both have a closed form. With w_g the share
    of the values that is in cluster g, and u_g = w_g² / (1 - w_g):

        SE² = Σ_g (Σ_(i in g) (x_i - mean))² / (1 - w_g) / n²
        df  = 1 / (Σ_g w_g² + (Σ_g u_g)² - Σ_g u_g²)

    If every value is its own cluster, it is the formula without clusters.

    Args:
        values: (n,) finite numbers, n >= 1.
        clusters: (n,) labels; equal labels, one cluster.

    Raises:
        InvalidDataError: there are no values, or not as many labels as values.
    """
    return bounded_error(values, (), clusters)


def bounded_error(values: "ArrayLike", ends: Sequence[float], clusters: "Labels | None" = None) -> MeanError:
    """Return a mean and its error with one and a half imaginary observations at each of these ends.

    See `bounded_interval`. Without ends it is `mean_error`.

    Args:
        values: (n,) finite numbers, n >= 1.
        ends: values that a small sample may not have shown yet, such as the ends of the range.
        clusters: (n,) labels; equal labels, one cluster.

    Raises:
        InvalidDataError: see `mean_error`.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array):
        raise InvalidDataError(
            f"Cannot compute the mean of values of shape {array.shape}.",
            fix="Give one row of at least one number.",
        )
    if clusters is not None and len(clusters) != len(array):
        raise InvalidDataError(
            f"There are {counted(len(array), 'value')}, but {counted(len(clusters), 'cluster label')}.",
            fix="Give one for each.",
        )
    codes = joined_clusters(clusters)
    sizes = None if codes is None else np.bincount(codes)
    groups = len(array) if sizes is None else len(sizes)
    # Scaled by a power of two, which is exact, so that no square and no sum overflows or vanishes.
    scale = power_of_two(max(float(np.abs(array).max()), *map(abs, ends), 0.0))
    scaled = array / scale
    imaginary = [end / scale for end in ends]
    added = _ADDED * len(imaginary)
    each = len(array) / groups  # the size of an imaginary cluster
    n = len(array) + added * each
    # Clamped, because a rounded sum divided by n can leave the range of the values by one bit.
    low, high = (
        min(float(scaled.min()), *imaginary, math.inf),
        max(float(scaled.max()), *imaginary, -math.inf),
    )
    mean = min(max((math.fsum(scaled) + _ADDED * each * math.fsum(imaginary)) / n, low), high)
    if groups + added < 2:
        return MeanError(mean * scale, None, 0)
    residuals = np.subtract(scaled, mean, out=scaled)  # in place: of a million values each array is 8 MB
    if codes is not None:
        residuals = cluster_sums(residuals, codes)
    squares = np.multiply(residuals, residuals, out=residuals)
    squares /= 1 - (1 if sizes is None else sizes) / n
    of_added = _ADDED * each * each * math.fsum([(end - mean) ** 2 for end in imaginary]) / (1 - each / n)
    stderr = math.sqrt((math.fsum(squares) + of_added) / n / n) * scale
    return MeanError(mean * scale, stderr, n - 1 if sizes is None else _bell_mccaffrey(sizes, each, added, n))


def with_imaginary(error: MeanError, ends: Sequence[float], n: float) -> MeanError:
    """Return the error of a mean over n clusters of about the same weight, with imaginary ones as in `bounded_error`.

    Args:
        error: of the mean; its standard error is known.
        ends: the values of the imaginary clusters.
        n: clusters, 1 or more.
    """
    all_n = n + _ADDED * len(ends)
    mean = (n * error.mean + _ADDED * math.fsum(ends)) / all_n
    spread = n * (error.mean - mean) ** 2 + _ADDED * math.fsum([(end - mean) ** 2 for end in ends])
    stderr = math.hypot(n * (error.stderr or 0.0), math.sqrt(spread)) / all_n
    return MeanError(mean, stderr, error.df + _ADDED * len(ends))


def _bell_mccaffrey(sizes: "NDArray[np.int64]", each: float, added: float, n: float) -> float:
    """Return the degrees of freedom of CR2 for a mean over clusters of these sizes and `added` imaginary ones."""
    kinds, counts = np.unique(sizes, return_counts=True)
    shares, copies = np.append(kinds, each) / n, np.append(counts, added)
    spread = shares * shares / (1 - shares)
    pairs = math.fsum(copies * spread) ** 2 - math.fsum(copies * spread * spread)
    return 1 / (math.fsum(copies * shares * shares) + pairs)


def t_interval(error: MeanError, *, confidence: float = CONFIDENCE) -> Interval | None:
    """Return Student's t interval for a mean: mean ± t · stderr. None if there is no standard error.

    It is None too if all values are equal, since such a sample says nothing about the variance. `wilson_interval` and
    `bounded_interval` know the range, so they have an interval then.

    Args:
        error: of the mean, see `mean_error`.
        confidence: the share of such intervals that hold the true mean, between 0 and 1.

    Raises:
        InvalidDataError: the confidence is not between 0 and 1.
    """
    if not error.stderr:
        return None
    half = student_t_quantile(1 - _tail(confidence), error.df) * error.stderr
    low, high = error.mean - half, error.mean + half
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None


def bounded_interval(
    values: "ArrayLike",
    low: float,
    high: float,
    *,
    clusters: "Labels | None" = None,
    confidence: float = CONFIDENCE,
) -> Interval | None:
    """Return an interval for the mean of values whose lowest and highest possible value is known.

    It is Student's t interval for the values together with one and a half imaginary observations at each end of the
    range, cut off at these ends. Imaginary observations are the idea of Agresti and Coull (1998, The American
    Statistician 52:119-126) for proportions: they represent what a small sample has not shown yet, so that the
    interval has a width where all values are equal. One and a half were chosen by simulation; coverage and width
    beside other intervals are in docs/reference/statistics.md. With clusters, standard error and degrees of freedom
    are those of `mean_error`, and the imaginary observations are clusters of the mean size.

    Args:
        values: (n,) numbers from `low` to `high`, n >= 1.
        low: the lowest possible value.
        high: the highest possible value; both are finite. None if they are equal.
        clusters: (n,) labels of values that are not independent.
        confidence: the share of such intervals that hold the true mean, between 0 and 1.

    Raises:
        InvalidDataError: a value is not from `low` to `high`; else see `mean_error` and `t_interval`.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.size and (array.min() < low or array.max() > high):
        raise InvalidDataError(
            f"Values from {array.min():g} to {array.max():g} are not within {low:g} to {high:g}.",
            fix="Give the lowest and the highest possible value.",
        )
    interval = t_interval(bounded_error(values, (low, high), clusters), confidence=confidence)
    return None if interval is None else (max(low, interval[0]), min(high, interval[1]))


def wilson_interval(successes: float, n: int, *, confidence: float = CONFIDENCE) -> Interval | None:
    """Return Wilson's score interval for a proportion (1927, JASA 22:209-212). None if n is 0.

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
            f"{successes} of {n} is not a proportion.",
            fix="Give between 0 successes and the number of trials.",
        )
    if n == 0:
        return None
    z = normal_quantile(confidence)
    share = successes / n
    center = successes + z * z / 2
    half = z * math.sqrt(successes * (1 - share) + z * z / 4)
    low, high = (center - half) / (n + z * z), (center + half) / (n + z * z)
    return max(0.0, min(low, share)), min(1.0, max(high, share))


def is_proportion(values: "NDArray[np.float64]", declared: Interval | None = None) -> bool:
    """Return whether values are right and wrong: only 0 and 1, and both unless (0, 1) is their declared range.

    Zeros alone might be amounts that nobody declared a range for.
    """
    if declared not in (None, (0, 1)) or not ((values == 0.0) | (values == 1.0)).all():
        return False
    return declared is not None or bool(values.min() < values.max())


def quantile(ordered: "Ordered", q: float) -> float:
    """Return the q-quantile of values in ascending order, linear between neighbours.

    Definition 7 of Hyndman and Fan (1996): numpy's default, written so that values of any size neither
    overflow nor leave their range.

    Raises:
        InvalidDataError: there are no values, or q is not from 0 to 1.
    """
    _check_quantile(q)
    if not len(ordered):
        raise InvalidDataError("Cannot compute a quantile of an empty list.", fix="Give at least one value.")
    place = (len(ordered) - 1) * q
    below = math.floor(place)
    low, high = float(ordered[below]), float(ordered[min(below + 1, len(ordered) - 1)])
    share = place - below
    return min(max(low * (1 - share) + high * share, low), high)


def quantile_interval(ordered: "Ordered", q: float, *, confidence: float = CONFIDENCE) -> Interval | None:
    """Return a distribution-free interval for a quantile, from the l-th to the u-th value in ascending order.

    The number of values up to the true quantile is binomial (n, q); l and u cut at most (1 - confidence) / 2
    off each side (Conover 1999, "Practical Nonparametric Statistics", section 3.2). Its coverage is at least
    `confidence`, whatever the distribution. None if there are too few values for that: for the median,
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


def cluster_codes(clusters: "Labels") -> "NDArray[np.int64]":
    """Return a number for each label, from 0 and without gaps: (n,) int64. Equal labels have equal numbers."""
    if isinstance(clusters, np.ndarray):
        inverse: NDArray[np.int64] = np.unique(clusters, return_inverse=True)[1]
        return inverse
    codes: dict[Hashable, int] = {}
    numbers = (codes.setdefault(label, len(codes)) for label in clusters)
    return np.fromiter(numbers, np.int64, count=len(clusters))


def joined_clusters(*labelings: "Labels | None") -> "NDArray[np.int64] | None":
    """Return the clusters of items that several labelings join: codes like `cluster_codes`; None if all are alone.

    Items belong together where they have an equal label in any labeling, directly or over other items: the
    connected components.

    Args:
        labelings: each with one label for each item; None joins nothing.
    """
    joined: NDArray[np.int64] | None = None
    for labels in labelings:
        codes = None if labels is None else cluster_codes(labels)
        if codes is None or codes.max(initial=-1) + 1 == len(codes):
            continue
        joined = codes if joined is None else _components(joined, codes)
    return joined


def _components(first: "NDArray[np.int64]", second: "NDArray[np.int64]") -> "NDArray[np.int64]":
    """Return the connected components of two labelings, by union-find over the first's clusters."""
    parents = list(range(int(first.max()) + 1))

    def root(cluster: int) -> int:
        while parents[cluster] != cluster:
            parents[cluster] = cluster = parents[parents[cluster]]
        return cluster

    earliest: dict[int, int] = {}  # for each label of the second, the first's cluster in which it came first
    for mine, theirs in zip(first.tolist(), second.tolist(), strict=True):
        parents[root(mine)] = root(earliest.setdefault(theirs, mine))
    roots = np.fromiter(map(root, range(len(parents))), np.int64, count=len(parents))
    return cluster_codes(roots[first])


def cluster_sums(values: "NDArray[np.float64]", clusters: "Labels") -> "NDArray[np.float64]":
    """Return the sum of each cluster's values, added in ascending order so that the items' order has no effect."""
    codes = cluster_codes(clusters)
    order = np.lexsort((values, codes))
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    return np.add.reduceat(values[order], starts)


def normal_quantile(confidence: float) -> float:
    """Return the number of standard deviations that contain this share of a normal distribution: 1.96 for 0.95."""
    return NormalDist().inv_cdf(1 - _tail(confidence))


def _check_quantile(q: float) -> None:
    if not 0.0 <= q <= 1.0:
        raise InvalidDataError(f"`q` must be between 0 and 1, not {q}.", fix="Give 0.95, not 95.")


def _tail(confidence: float) -> float:
    """Return the probability beyond either end of a two-sided interval."""
    if not 0.0 < confidence < 1.0:
        raise InvalidDataError(
            f"`confidence` must be between 0 and 1, not {confidence}.", fix="Give 0.95 for 95 %."
        )
    return (1 - confidence) / 2


def halved(
    inside: float, outside: float, is_inside: Callable[[float], bool], steps: int
) -> tuple[float, float]:
    """Bring two numbers together, around the place up to which a condition holds; each step is a bit of it."""
    for _ in range(steps):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if is_inside(middle) else (inside, middle)
    return inside, outside


def power_of_two(largest: float) -> float:
    """Return the largest power of two that does not exceed a number; 1 for 0."""
    return math.ldexp(1.0, math.frexp(largest)[1] - 1) if largest else 1.0
