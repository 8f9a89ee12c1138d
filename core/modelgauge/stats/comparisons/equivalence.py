"""Equivalence and non-inferiority: tests that can show that a difference is smaller than a margin.

A difference that is not significant need not be small.
"""

from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

from modelgauge.errors import InvalidDataError
from modelgauge.stats.comparisons.discordance import tango_statistic
from modelgauge.stats.comparisons.paired import compute_differences
from modelgauge.stats.comparisons.pairs import aligned
from modelgauge.stats.distributions import student_t_sf
from modelgauge.stats.intervals import Interval, t_interval

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from modelgauge.stats.intervals import Labels


class Equivalence(NamedTuple):
    """Result of testing whether a difference is smaller than a margin.

    All but the margin is None if there is neither a standard error nor a known range.

    Args:
        margin: the difference that would matter, in units of the measurement.
        interval: of candidate minus baseline, with confidence 1 - 2 alpha; two systems are equivalent if it is within
            (-margin, margin).
        p_not_lower: one-sided, that the candidate is lower by the margin or more. Where it is small, the candidate
            is not inferior, if higher is better.
        p_not_higher: one-sided, that the candidate is higher by the margin or more.
        p_equivalent: that the difference is the margin or more in either direction: the larger of the two.
    """

    margin: float
    interval: Interval | None
    p_not_lower: float | None
    p_not_higher: float | None
    p_equivalent: float | None


def equivalence_test(
    baseline: "ArrayLike",
    candidate: "ArrayLike",
    margin: float,
    *,
    clusters: "Labels | None" = None,
    declared: Interval | None = None,
    alpha: float = 0.05,
) -> Equivalence:
    """Run two one-sided tests (TOST) that two systems differ by less than a margin on questions like these.

    Schuirmann (1987), Journal of Pharmacokinetics and Biopharmaceutics 15:657-680. Right and wrong answers are judged
    by Tango's score test (Tango 1998, who made it for this purpose), others by Student's t, clustered ones by CR2, as
    in `paired_difference`, with the same assumptions. Where the range of other values is known, each one-sided test
    has one and a half imaginary items that speak against what it is to show.

    Args:
        baseline: (n,) the baseline's values, n >= 1.
        candidate: (n,) the candidate's values, of the same items in the same order.
        margin: above 0 and finite; below 1 for right and wrong answers.
        clusters: (n,) labels of items that are not independent.
        declared: the lowest and the highest possible value, where they are known.
        alpha: the level of each one-sided test, above 0 and below 1/2.

    Raises:
        InvalidDataError: the margin or alpha is outside its range; else see `paired_difference`.
    """
    before, after = aligned(baseline, candidate, clusters)
    differences = compute_differences(before, after, clusters, declared)
    if not 0 < margin < (float("inf") if differences.counts is None else 1):
        raise InvalidDataError(
            f"A margin of {margin} cannot be tested.",
            fix="Give the smallest difference that would matter, above 0: 0.01 for one point of a share.",
        )
    if not 0 < alpha < 0.5:
        raise InvalidDataError(
            f"alpha={alpha} is not a level.", fix="Give a number above 0 and below 0.5: 0.05."
        )
    confidence = 1 - 2 * alpha
    if differences.counts is not None:
        interval = differences.interval(confidence)
        lower, higher = (
            NormalDist().cdf(-sign * tango_statistic(*differences.counts, -sign * margin)) for sign in (1, -1)
        )
        return Equivalence(margin, interval, lower, higher, max(lower, higher))
    # If the range is known, imaginary items weigh against what each test is to show.
    loss, gain = ([end] for end in differences.unseen) if differences.unseen is not None else ([], [])
    errors = differences.with_unseen(*loss), differences.with_unseen(*gain)
    ends = [t_interval(error, confidence=confidence) for error in errors]
    if (not differences.error.stderr and differences.unseen is None) or ends[0] is None or ends[1] is None:
        return Equivalence(margin, None, None, None, None)
    lower, higher = (
        student_t_sf((margin + sign * error.mean) / (error.stderr or 0.0), error.df)
        for sign, error in zip((1, -1), errors, strict=True)
    )
    within = differences.within_range((ends[0][0], ends[1][1]))
    return Equivalence(margin, within, lower, higher, max(lower, higher))
