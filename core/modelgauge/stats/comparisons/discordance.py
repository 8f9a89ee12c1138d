"""Two systems that are right or wrong on the same items: McNemar's tests and Tango's interval.

Both look only at the items on which exactly one of the systems is right.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from modelgauge.errors import InvalidDataError
from modelgauge.stats.comparisons.pairs import aligned
from modelgauge.stats.distributions import binomial_sf
from modelgauge.stats.intervals import CONFIDENCE, Interval, halved, normal_quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class Discordance(NamedTuple):
    """The items that two systems disagree on.

    Args:
        only_baseline: items that only the baseline got right; not whole if they are effective numbers of clusters.
        only_candidate: items that only the candidate got right; see `only_baseline`.
        p_value: two-sided, of McNemar's exact test.
        p_mid: two-sided, of McNemar's mid-p test: less cautious, and its error rate may exceed its level a little.
    """

    only_baseline: float
    only_candidate: float
    p_value: float
    p_mid: float


def mcnemar_test(baseline: "ArrayLike", candidate: "ArrayLike") -> Discordance:
    """Return the p value of McNemar's exact test that two systems get equally many items right.

    If they do, an item on which they disagree is as likely to be right for the one as for the other: binomial with
    p = 1/2 (McNemar 1947, Psychometrika 12:153-157). The mid-p value counts the outcome that was seen half (Fagerland,
    Lydersen and Laake 2013, BMC Medical Research Methodology 13:91). Both are about questions like these, and assume
    that the items are independent.

    Args:
        baseline: (n,) 0 or 1 for each item, n >= 1.
        candidate: (n,) 0 or 1 for each item, in the same order.

    Raises:
        InvalidDataError: a value is neither 0 nor 1; else see `paired_difference`.
    """
    before, after = aligned(baseline, candidate)
    if not np.isin((before, after), (0.0, 1.0)).all():
        raise InvalidDataError(
            "McNemar's test compares right with wrong, but there are values that are neither 0 nor 1.",
            fix="Use sign_flip_test or paired_difference for other measurements.",
        )
    losses, wins = int((before > after).sum()), int((before < after).sum())
    return compute_discordance(losses, wins)


def compute_discordance(only_baseline: float, only_candidate: float) -> Discordance:
    """Return McNemar's tests from the counts of items that only one system got right."""
    most, n = max(only_baseline, only_candidate), only_baseline + only_candidate
    tail, beyond = binomial_sf(most, n, 0.5), binomial_sf(most + 1, n, 0.5)
    even = only_baseline == only_candidate
    # Half of the outcome seen: of both sides, which are one where the systems are even.
    p_mid = 1 - (tail - beyond) / 2 if even else tail + beyond
    p_value = 1.0 if even else min(1.0, 2 * tail)
    return Discordance(only_baseline, only_candidate, p_value, p_mid if n else 1.0)


def tango_interval(
    only_baseline: float, only_candidate: float, n: float, *, confidence: float = CONFIDENCE
) -> Interval:
    """Return the score interval for the difference of two proportions over the same items.

    Tango (1998), Statistics in Medicine 17:891-908: the differences that the score test does not reject, see
    `tango_statistic`. It has a width where the systems agree on every item. It is about questions like these, and
    assumes that the items are independent.

    Args:
        only_baseline: items that only the baseline got right.
        only_candidate: items that only the candidate got right.
        n: all items, 1 or more; no number needs to be whole.
        confidence: the share of such intervals that hold the true difference, between 0 and 1.

    Returns:
        (low, high) of the candidate's proportion less the baseline's, within [-1, 1].

    Raises:
        InvalidDataError: the items are more than n or below 0, or the confidence is not between 0 and 1.
    """
    found = (only_candidate - only_baseline) / n if n else 0.0
    z = normal_quantile(confidence)

    def holds(difference: float) -> bool:
        return abs(tango_statistic(only_baseline, only_candidate, n, difference)) <= z

    low, high = (end if holds(end) else halved(found, end, holds, 60)[0] for end in (-1.0, 1.0))
    return low, high


def tango_statistic(only_baseline: float, only_candidate: float, n: float, difference: float) -> float:
    """Return Tango's score statistic for the hypothesis that two proportions over the same items differ by a given
    amount.

    Tango (1998), Statistics in Medicine 17:891-908: with b items that only the candidate got right, c that only the
    baseline did, the difference D, and q the most likely share of the latter if the difference is D,

        z = (b - c - n D) / sqrt(n (2 q + D (1 - D)))

    It is standard normal in large samples of independent items.

    Args:
        only_baseline: items that only the baseline got right.
        only_candidate: items that only the candidate got right.
        n: all items, 1 or more.
        difference: of the candidate's proportion less the baseline's, from -1 to 1.

    Raises:
        InvalidDataError: the items are more than n or below 0.
    """
    rounded = 1 + 1e-12  # of effective numbers
    if not (
        min(only_baseline, only_candidate) >= 0 and n * rounded >= max(1, only_baseline + only_candidate)
    ):
        raise InvalidDataError(
            f"`only_baseline` and `only_candidate` cannot be {only_baseline} and {only_candidate} of {n:g} items.",
            fix="Give the items that only one system got right, and the number of all items.",
        )
    if difference < 0:  # the mirror image: its root is that of a sum, and exact
        return -tango_statistic(only_candidate, only_baseline, n, -difference)
    b = (2 * n - only_candidate + only_baseline) * difference - only_candidate - only_baseline
    c = -only_baseline * difference * (1 - difference)
    q = (math.sqrt(b * b - 8 * n * c) - b) / (4 * n)
    variance = max(0.0, n * (2 * q + difference * (1 - difference)))
    excess = only_candidate - only_baseline - n * difference
    return excess / math.sqrt(variance) if variance else math.copysign(math.inf, excess) if excess else 0.0
