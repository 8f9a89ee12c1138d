"""Possible effect of missing items on a difference: its bounds, and an interval around these."""

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from modelgauge.data.estimates import Estimate
from modelgauge.errors import InvalidDataError
from modelgauge.stats.comparisons.paired import paired_difference
from modelgauge.stats.comparisons.pairs import aligned
from modelgauge.stats.intervals import CONFIDENCE, Interval, halved, normal_quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from modelgauge.stats.intervals import Labels


class DifferenceBounds(NamedTuple):
    """A difference with all missing items at the worst, and at the best, for the candidate.

    Args:
        bounds: (lowest, highest) difference of candidate minus baseline that the missing items allow.
        interval: the interval around the bounds; None if a difference at one of them has no interval.
    """

    bounds: Interval
    interval: Interval | None


def difference_bounds(
    baseline: "ArrayLike",
    candidate: "ArrayLike",
    low: float,
    high: float,
    *,
    clusters: "Labels | None" = None,
    confidence: float = CONFIDENCE,
) -> DifferenceBounds:
    """Return the bounds of a difference in which items of either system are missing, and an interval around them.

    For the lowest difference a missing value of the candidate is `low`, one of the baseline `high`; for the highest
    the reverse. Nothing is assumed about why items are missing; the interval is about questions like these, of which
    the items (or clusters) are a random sample. It reaches from the low end of `paired_difference`'s interval for the
    lowest difference to the high end of that for the highest, both with the confidence of Imbens and Manski (see
    `imbens_manski_interval`), which is smaller than that of one interval if the bounds are far apart.

    Args:
        baseline: (n,) the baseline's values, NaN where one is missing, n >= 1.
        candidate: (n,) the candidate's values of the same items, NaN where one is missing.
        low: the lowest possible value.
        high: the highest possible value.
        clusters: (n,) labels of items that are not independent.
        confidence: the share of such intervals that hold the true difference, between 0 and 1.

    Raises:
        InvalidDataError: a value is not from `low` to `high`, these are not finite or not in rising order, or the
            shapes differ.
    """
    before, after = aligned(baseline, candidate, clusters, gaps=True)
    both = np.concatenate([before, after])
    if not (math.isfinite(high - low) and low < high) or (both < low).any() or (both > high).any():
        raise InvalidDataError(
            f"Values from {np.nanmin(both, initial=high):g} to {np.nanmax(both, initial=low):g} are not within"
            f" {low:g} to {high:g}.",
            fix="Give the lowest and the highest possible value; without them a difference has no bounds.",
        )
    filled = [
        (np.nan_to_num(before, nan=other), np.nan_to_num(after, nan=one))
        for one, other in ((low, high), (high, low))
    ]

    def found(at: float) -> list[Estimate]:
        return [
            paired_difference(*pair, clusters=clusters, declared=(low, high), confidence=at).difference
            for pair in filled
        ]

    lowest, highest = found(confidence)
    bounds = lowest.value, highest.value
    c = _reach(bounds, max(lowest.stderr or 0.0, highest.stderr or 0.0), confidence)
    lowest, highest = found(NormalDist().cdf(c) - NormalDist().cdf(-c))
    if lowest.interval is None or highest.interval is None:
        return DifferenceBounds(bounds, None)
    return DifferenceBounds(bounds, (lowest.interval[0], highest.interval[1]))


def imbens_manski_interval(
    bounds: Interval, stderrs: tuple[float, float], *, confidence: float = CONFIDENCE
) -> Interval:
    """Return an interval for a number of which only bounds can be estimated.

    Imbens and Manski (2004), Econometrica 72:1845-1857, equations 6 and 7: (low - c s₁, high + c s₂) with the c that
    solves Φ(c + (high - low) / max(s₁, s₂)) - Φ(-c) = confidence. It holds the number, not both bounds, with this
    confidence: c goes from the two-sided normal quantile, where the bounds meet, to the one-sided one. It assumes that
    both bounds are estimated with about normal errors, and that they cannot cross.

    Args:
        bounds: the estimates of the lower and of the upper bound, in rising order.
        stderrs: their standard errors, above 0.
        confidence: the share of such intervals that hold the number, between 0 and 1.

    Raises:
        InvalidDataError: the bounds fall, or a standard error or the confidence is outside its range.
    """
    (low, high), largest = bounds, max(stderrs)
    if not (low <= high and math.isfinite(high - low) and all(0 < stderr < math.inf for stderr in stderrs)):
        raise InvalidDataError(
            f"Cannot compute an interval from bounds {bounds} and standard errors {stderrs}.",
            fix="Give finite bounds in ascending order, and standard errors above 0.",
        )
    c = _reach(bounds, largest, confidence)
    return low - c * stderrs[0], high + c * stderrs[1]


def _reach(bounds: Interval, stderr: float, confidence: float) -> float:
    """Return the c of Imbens and Manski: how many standard errors an interval extends beyond each bound.

    Args:
        bounds: in rising order.
        stderr: the larger standard error of the bounds.
        confidence: the share of such intervals that hold the number.
    """
    normal, gap = NormalDist(), bounds[1] - bounds[0]
    apart = gap / stderr if stderr else math.copysign(math.inf, gap) if gap else 0.0

    def holds_less(c: float) -> bool:
        return normal.cdf(c + apart) - normal.cdf(-c) < confidence

    return halved(0.0, normal_quantile(confidence), holds_less, 80)[1]
