"""The bootstrap of a paired difference: its BCa interval and the p value that belongs to it."""

import math
from collections.abc import Hashable, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from modelgauge.errors import InvalidDataError
from modelgauge.stats.intervals import CONFIDENCE, Interval, cluster_codes, cluster_sums, quantile
from modelgauge.stats.pairs import aligned

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_BLOCK = 1 << 20
"""Items drawn at once: 8 MB for each of several arrays."""


class BootstrapDifference(NamedTuple):
    """The bootstrap's judgement of a difference; None for both where no item differs from the others.

    Args:
        interval: the BCa interval of candidate less baseline.
        p_value: two-sided: 1 less the confidence at which the BCa interval ends at 0.
    """

    interval: Interval | None
    p_value: float | None


def bootstrap_difference(
    baseline: "ArrayLike",
    candidate: "ArrayLike",
    *,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    confidence: float = CONFIDENCE,
) -> BootstrapDifference:
    """The bias-corrected and accelerated (BCa) bootstrap of the difference of two means over the same items.

    Efron (1987), JASA 82:171-185; Efron and Tibshirani (1993), "An Introduction to the Bootstrap", sections 14.3 and
    15.4, with the acceleration of the jackknife. Items (or whole clusters) are drawn with replacement. It is about
    questions like these, and assumes that the items (or clusters) are a random sample of them; below some 20 of these
    it is too narrow. Its cost grows with items times resamples.

    Args:
        baseline: (n,) the baseline's values, n >= 1.
        candidate: (n,) the candidate's values, of the same items in the same order.
        clusters: (n,) labels of items that are drawn together.
        resamples: 100 or more.
        seed: of the draws; the same seed and data, in the same order, give the same interval.
        confidence: the share of such intervals that hold the true difference, between 0 and 1.

    Raises:
        InvalidDataError: `resamples` or the confidence is outside its range; else as for `paired_difference`.
    """
    if resamples < 100 or not 0 < confidence < 1:
        raise InvalidDataError(
            f"resamples={resamples} with confidence={confidence} give no interval.",
            fix="Give 100 or more, and a confidence of 0.95 for 95 %.",
        )
    before, after = aligned(baseline, candidate, clusters)
    sums, sizes = after - before, np.ones(len(before))
    if clusters is not None:
        sums, sizes = cluster_sums(sums, clusters), np.bincount(cluster_codes(clusters)).astype(float)
    scale = float(np.abs(sums).max()) or 1.0
    sums = sums / scale
    mean = math.fsum(sums) / math.fsum(sizes)
    if np.ptp(sums - mean * sizes) <= 1e-12:
        return BootstrapDifference(None, None)
    means = np.sort(_resampled_means(sums, sizes, resamples, np.random.default_rng(seed)))
    # How far the middle of the resampled means is from the mean, and how its error changes with it.
    bias = _normal_quantile_of(means, mean)
    jackknife = (math.fsum(sums) - sums) / (math.fsum(sizes) - sizes)
    pulls = jackknife.mean() - jackknife
    acceleration = float((pulls**3).sum() / (6 * (pulls**2).sum() ** 1.5))

    def end(probability: float) -> float:
        z = bias + NormalDist().inv_cdf(probability)
        return scale * quantile(means, NormalDist().cdf(bias + z / (1 - acceleration * z)))

    from_bias = _normal_quantile_of(means, 0.0) - bias
    at_zero = NormalDist().cdf(from_bias / (1 + acceleration * from_bias) - bias)
    return BootstrapDifference(
        (end((1 - confidence) / 2), end((1 + confidence) / 2)), min(1.0, 2 * min(at_zero, 1 - at_zero))
    )


def _resampled_means(
    sums: "NDArray[np.float64]", sizes: "NDArray[np.float64]", resamples: int, generator: np.random.Generator
) -> "NDArray[np.float64]":
    means, block = np.empty(resamples), max(1, _BLOCK // len(sums))
    for start in range(0, resamples, block):
        rows = means[start : start + block]
        drawn = generator.integers(len(sums), size=(len(rows), len(sums)))
        rows[:] = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    return means


def _normal_quantile_of(means: "NDArray[np.float64]", value: float) -> float:
    """The normal quantile of the share of resampled means below a value; ties, by rounding too, count half."""
    below, upto = np.searchsorted(means, (value - 1e-12, value + 1e-12))
    share = float(below + upto) / (2 * len(means))
    least = 1 / (len(means) + 1)
    return NormalDist().inv_cdf(min(max(share, least), 1 - least))
