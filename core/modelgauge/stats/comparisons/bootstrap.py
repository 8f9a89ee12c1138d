"""The bootstrap: BCa intervals of any estimate, and of a paired difference with the p value that belongs to it."""

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from modelgauge.errors import InvalidDataError
from modelgauge.stats.comparisons.pairs import aligned
from modelgauge.stats.intervals import CONFIDENCE, Interval, cluster_codes, cluster_sums, quantile

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from modelgauge.stats.intervals import Labels

_BLOCK = 1 << 20
"""Items drawn at once: 8 MB for each of several arrays."""


class BootstrapDifference(NamedTuple):
    """The bootstrap's interval and p value of a difference; both are None if it is the same on all items.

    Args:
        interval: the BCa interval of candidate minus baseline.
        p_value: two-sided: 1 less the confidence at which the BCa interval ends at 0.
    """

    interval: Interval | None
    p_value: float | None


class Bca:
    """The bias-corrected and accelerated bootstrap of any estimate.

    Efron (1987), JASA 82:171-185; Efron and Tibshirani (1993), "An Introduction to the Bootstrap", sections 14.3 and
    15.4, with the acceleration of the jackknife.

    Args:
        resampled: (b,) the estimates from resamples, in rising order.
        estimate: the estimate itself.
        jackknife: (n,) the estimates without each of the items.
    """

    def __init__(
        self, resampled: "NDArray[np.float64]", estimate: float, jackknife: "NDArray[np.float64]"
    ) -> None:
        self._resampled = resampled
        self._bias = self._find_quantile(estimate)
        pulls = jackknife.mean() - jackknife
        spread = float((pulls**2).sum()) ** 1.5
        self._acceleration = float((pulls**3).sum()) / (6 * spread) if spread else 0.0

    def interval(self, confidence: float) -> Interval:
        """Return the interval at this level of confidence, between 0 and 1."""
        return self._end((1 - confidence) / 2), self._end((1 + confidence) / 2)

    def p_value(self, value: float) -> float:
        """1 less the confidence at which the interval ends at this value."""
        from_bias = self._find_quantile(value) - self._bias
        below = NormalDist().cdf(from_bias / (1 + self._acceleration * from_bias) - self._bias)
        return min(1.0, 2 * min(below, 1 - below))

    def _end(self, probability: float) -> float:
        z = self._bias + NormalDist().inv_cdf(probability)
        return quantile(self._resampled, NormalDist().cdf(self._bias + z / (1 - self._acceleration * z)))

    def _find_quantile(self, value: float) -> float:
        """Return the normal quantile of the share of resamples below a value. Ties, even by rounding, count half."""
        below, upto = np.searchsorted(self._resampled, (value - 1e-12, value + 1e-12))
        least = 1 / (len(self._resampled) + 1)
        share = float(below + upto) / (2 * len(self._resampled))
        return NormalDist().inv_cdf(min(max(share, least), 1 - least))


def bootstrap_difference(
    baseline: "ArrayLike",
    candidate: "ArrayLike",
    *,
    clusters: "Labels | None" = None,
    resamples: int = 10_000,
    seed: int = 0,
    confidence: float = CONFIDENCE,
) -> BootstrapDifference:
    """Compute the bias-corrected and accelerated (BCa) bootstrap of the difference of two means over the same items.

    Efron (1987), JASA 82:171-185. Items (or whole clusters) are drawn with replacement. It is about questions like
    these, and assumes that the items (or clusters) are a random sample of them. Where fewer than 20 differ it is too
    narrow. Its cost grows with items times resamples.

    Args:
        baseline: (n,) the baseline's values, n >= 1.
        candidate: (n,) the candidate's values, of the same items in the same order.
        clusters: (n,) labels of items that are drawn together.
        resamples: 100 or more.
        seed: of the draws; the same seed and data, in any order, give the same interval, and its mirror image where
            the systems change places.
        confidence: the share of such intervals that hold the true difference, between 0 and 1.

    Raises:
        InvalidDataError: `resamples` or the confidence is outside its range; else see `paired_difference`.
    """
    check_resampling(resamples, confidence)
    before, after = aligned(baseline, candidate, clusters)
    sums, sizes = after - before, np.ones(len(before))
    if clusters is not None:
        sums, sizes = cluster_sums(sums, clusters), np.bincount(cluster_codes(clusters)).astype(float)
    scale = float(np.abs(sums).max()) or 1.0
    sums = sums / scale
    mean = math.fsum(sums) / math.fsum(sizes)
    if np.ptp(sums - mean * sizes) <= 1e-12:
        return BootstrapDifference(None, None)
    scale, sums, mean = (scale, sums, mean) if _leads(sums) else (-scale, -sums, -mean)
    order = np.lexsort((sizes, sums))
    sums, sizes = sums[order], sizes[order]
    generator = np.random.default_rng(seed)
    jackknife = (math.fsum(sums) - sums) / (math.fsum(sizes) - sizes)
    found = Bca(np.sort(_resampled_means(sums, sizes, resamples, generator)), mean, jackknife)
    low, high = sorted(scale * end for end in found.interval(confidence))
    return BootstrapDifference((low, high), found.p_value(0.0))


def check_resampling(resamples: int, confidence: float) -> None:
    """Check the number of resamples and the confidence.

    Raises:
        InvalidDataError: there are fewer than 100 resamples, or the confidence is not between 0 and 1.
    """
    if resamples < 100 or not 0 < confidence < 1:
        raise InvalidDataError(
            f"Cannot compute an interval with resamples={resamples} and confidence={confidence}.",
            fix="Give 100 resamples or more, and a confidence between 0 and 1, such as 0.95.",
        )


def units_drawn(
    place: "NDArray[np.int64]", kinds: int, clusters: "Labels | None"
) -> "tuple[Callable[[NDArray[Any]], NDArray[Any]], NDArray[np.int64]]":
    """Return the units to draw: the counts of item kinds for each kind of unit, and the kind of each unit."""
    if clusters is None:
        return lambda counts: counts, place
    own = cluster_codes(clusters)
    held = np.zeros((int(own.max()) + 1, kinds), dtype=np.int64)
    np.add.at(held, (own, place), 1)
    units, of_cluster = np.unique(held, axis=0, return_inverse=True)
    return lambda counts: counts @ units, of_cluster.ravel()


def _leads(sums: "NDArray[np.float64]") -> bool:
    """Return whether to resample these differences, and not those of the systems in the other order."""
    ordered = np.sort(sums)
    beside_mirror_image = ordered + ordered[::-1]
    apart = beside_mirror_image[beside_mirror_image != 0]
    return not len(apart) or bool(apart[-1] > 0)


def _resampled_means(
    sums: "NDArray[np.float64]", sizes: "NDArray[np.float64]", resamples: int, generator: np.random.Generator
) -> "NDArray[np.float64]":
    means, block = np.empty(resamples), max(1, _BLOCK // len(sums))
    for start in range(0, resamples, block):
        rows = means[start : start + block]
        drawn = generator.integers(len(sums), size=(len(rows), len(sums)))
        rows[:] = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    return means
