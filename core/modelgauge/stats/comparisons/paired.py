"""The difference of two systems on the same items, with its error bar and p value.

Pairs take out what items have in common (some are harder for everyone), so that they tell far smaller
differences than two separate intervals do (Miller 2024, "Adding Error Bars to Evals",
https://arxiv.org/abs/2411.00640, on paired analysis). Differences are the candidate's value less the baseline's,
everywhere. Rendering a comparison is not done here.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from modelgauge.data.estimates import Estimate
from modelgauge.stats.comparisons.designs import design_effect
from modelgauge.stats.comparisons.discordance import Discordance, compute_discordance, tango_interval
from modelgauge.stats.comparisons.pairs import aligned
from modelgauge.stats.comparisons.power import detectable_difference, detectable_effect, mcnemar_power
from modelgauge.stats.distributions import student_t_sf
from modelgauge.stats.intervals import (
    CONFIDENCE,
    Interval,
    MeanError,
    bounded_error,
    is_proportion,
    joined_clusters,
    mean_error,
    t_interval,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from modelgauge.stats.intervals import Labels

_NOISE = 1e-14
"""Differences whose spread is this share of the values are equal: 0.3 - 0.2 and 0.2 - 0.1 differ by rounding."""

_FEW = 9  # deciding items

_POWER = 0.8


class PairedDifferences(NamedTuple):
    """Paired differences, made ready for intervals and tests.

    Args:
        values: (n,) the differences.
        error: their mean and its error.
        codes: (n,) cluster codes; None if every item is its own cluster.
        counts: (items that only the baseline got right, those that only the candidate did, all items) of right and
            wrong answers, for Tango's formulas. Clusters of equal mean difference count once each, others by their
            effective numbers of items, see `_effect_of_clusters`. None for other values.
        unseen: the loss and the gain of items that the sample may lack, see `unseen_differences`; None if the range is
            unknown, or for right and wrong answers.
        widest: how far two values can be apart; infinite where that is not known.
    """

    values: "NDArray[np.float64]"
    error: MeanError
    codes: "NDArray[np.int64] | None"
    counts: tuple[float, float, float] | None
    unseen: Interval | None
    widest: float

    @property
    def n_clusters(self) -> int | None:
        return None if self.codes is None else int(self.codes.max()) + 1

    @property
    def kinds(self) -> tuple[str, str]:
        """The names of the interval's method and of the test."""
        if self.counts is not None:
            alike = self.codes is None or not self.error.stderr
            return ("tango", "mcnemar_exact") if alike else ("tango-clusters", "mcnemar_clusters")
        if self.unseen is not None:
            return ("bounded", "bounded_t") if self.codes is None else ("cr2-bounded", "cr2_bounded_t")
        return ("t", "t") if self.codes is None else ("cr2-t", "cr2_t")

    @property
    def discordance(self) -> Discordance | None:
        """McNemar's tests; None if there are no counts. One system wins all clusters that are alike."""
        if self.counts is None:
            return None
        losses, wins, n = self.counts
        if self.codes is not None and not self.error.stderr:
            losses, wins = n * (losses > wins), n * (wins > losses)
        return compute_discordance(losses, wins)

    @property
    def tested(self) -> MeanError:
        """The mean and error for Student's t, with imaginary items if the range is known."""
        return self.error if self.unseen is None else self.with_unseen(*self.unseen)

    @property
    def mde(self) -> float | None:
        """The smallest true difference that is found 4 times in 5; None if none is, or without a spread.

        Few disagreements make the standard error of right and wrong answers small, but McNemar's test finds nothing
        below six. So it is at least what that test finds where one system wins all disagreements.
        """
        if not self.error.stderr:
            return None
        mde = detectable_difference(self.tested.stderr or self.error.stderr)
        if self.counts is None:
            return mde
        n = max(1, int(self.counts[2]))
        if mcnemar_power(0.0, min(1.0, mde), n) >= _POWER:
            return mde
        return detectable_effect(lambda effect: mcnemar_power(0.0, effect, n), 1.0, power=_POWER)

    def with_unseen(self, *ends: float) -> MeanError:
        """Return the mean and its error with imaginary items of these differences."""
        return bounded_error(self.values, ends, self.codes)

    def interval(self, confidence: float = CONFIDENCE) -> Interval | None:
        """Return the interval of the mean difference, cut to the possible differences."""
        if self.counts is not None:
            return self.within_range(tango_interval(*self.counts, confidence=confidence))
        found = t_interval(self.tested, confidence=confidence)
        return found and self.within_range(found)

    def estimate(self, confidence: float = CONFIDENCE) -> Estimate:
        """Return the mean difference with its standard error and interval."""
        interval = self.interval(confidence)
        return Estimate(
            value=self.error.mean,
            n=len(self.values),
            stderr=self.error.stderr or None,
            interval=interval,
            interval_kind=interval and self.kinds[0],
            n_clusters=self.n_clusters,
        )

    def within_range(self, interval: Interval) -> Interval:
        """Return the interval without impossible differences."""
        return max(-self.widest, interval[0]), min(self.widest, interval[1])


class PairedDifference(NamedTuple):
    """Difference of the candidate's mean from the baseline's.

    Args:
        baseline: the baseline's mean, over the paired items.
        candidate: the candidate's mean, over the same items.
        difference: candidate minus baseline, with standard error and 95 % interval; see `paired_difference`.
        stderr_unpaired: the standard error that the difference would have on two separate samples of items; None
            where it cannot be known.
        correlation: of the two systems' values over the items (Pearson's); None if one system's are all equal.
        mde: the smallest true difference that such a comparison finds 4 times in 5, at the 5 % level; None where
            the standard error is not known, or no difference is found as often.
        p_value: two-sided, that the true difference is 0; None where the range is not known, for a single pair, and
            where all differences are equal and not 0.
        p_kind: the test, see `paired_difference`; None if there is no p value.
        p_mid: McNemar's mid-p value; None for other tests.
    """

    baseline: float
    candidate: float
    difference: Estimate
    stderr_unpaired: float | None
    correlation: float | None
    mde: float | None
    p_value: float | None
    p_kind: str | None
    p_mid: float | None


def paired_difference(
    baseline: "ArrayLike",
    candidate: "ArrayLike",
    *,
    clusters: "Labels | None" = None,
    declared: Interval | None = None,
    confidence: float = CONFIDENCE,
) -> PairedDifference:
    """Return the difference of two means over the same items, with its standard error, interval and p value.

    | values | interval | test (`p_kind`) |
    | --- | --- | --- |
    | right and wrong: only 0 and 1, and both of them, or (0, 1) is declared | `tango_interval` | mcnemar_exact |
    | right and wrong, clustered | `tango_interval` of the effective number of items | mcnemar_clusters |
    | right and wrong, the same mean difference in all clusters | `tango_interval` of the clusters | mcnemar_exact |
    | numbers of a declared range | Student's t with imaginary items | bounded_t |
    | the same, clustered | the same, with CR2 over the clusters | cr2_bounded_t |
    | other numbers | Student's t; none where all differences are equal | t |
    | other numbers, clustered | Student's t with CR2 (`mean_error`); none if all have the same mean | cr2_t |

    The effective number of items is that of all items divided by the design effect of the clusters. Imaginary items
    represent losses and gains that a small sample may not have shown yet: docs/reference/comparisons.md. The standard
    error is that of the items alone, with the divisor n - 1. All this is about questions like these: it assumes that
    the items (or the clusters) are a random sample of them, and Student's t that the mean difference is about normal.

    Args:
        baseline: (n,) the baseline's values, n >= 1.
        candidate: (n,) the candidate's values, of the same items in the same order.
        clusters: (n,) labels of items that are not independent; see `intervals.mean_error`.
        declared: the lowest and the highest possible value, where they are known.
        confidence: the share of such intervals that hold the true difference, between 0 and 1.

    Raises:
        InvalidDataError: the shapes differ, there are no values, some value or difference is not finite, or the
            confidence is outside its range.
    """
    before, after = aligned(baseline, candidate, clusters)
    differences = compute_differences(before, after, clusters, declared)
    discordance = differences.discordance
    p_value = _t_test(differences.tested) if discordance is None else discordance.p_value
    first, second = mean_error(before, differences.codes), mean_error(after, differences.codes)
    return PairedDifference(
        first.mean,
        second.mean,
        differences.estimate(confidence),
        math.hypot(first.stderr or 0.0, second.stderr or 0.0) or None,
        correlation(before, after),
        differences.mde,
        p_value,
        None if p_value is None else differences.kinds[1],
        discordance and discordance.p_mid,
    )


def compute_differences(
    before: "NDArray[np.float64]",
    after: "NDArray[np.float64]",
    clusters: "Labels | None",
    declared: Interval | None,
) -> PairedDifferences:
    """Return the paired differences of aligned values; for the arguments see `paired_difference`."""
    codes, values = joined_clusters(clusters), after - before
    error = mean_error(values, codes)
    largest = max(float(np.abs(before).max()), float(np.abs(after).max()))
    if error.stderr and error.stderr * math.sqrt(len(before)) < _NOISE * largest:
        error = error._replace(stderr=0.0)
    if is_proportion(np.concatenate([before, after]), declared):
        return PairedDifferences(values, error, codes, _counts(values, codes, error), None, 1.0)
    low, high = declared or (-math.inf, math.inf)
    unseen = unseen_differences(before, after, low, high) if 0 < high - low < math.inf else None
    return PairedDifferences(values, error, codes, None, unseen, high - low)


def _counts(
    values: "NDArray[np.float64]", codes: "NDArray[np.int64] | None", error: MeanError
) -> tuple[float, float, float]:
    """Count what Tango's formulas need, for `PairedDifferences.counts`."""
    if codes is None:
        share = 1.0
    elif error.stderr:
        share = 1 / _effect_of_clusters(values, codes, error.stderr)
    else:  # each cluster counts once
        share = (int(codes.max()) + 1) / len(values)
    return float((values < 0).sum()) * share, float((values > 0).sum()) * share, len(values) * share


def _effect_of_clusters(values: "NDArray[np.float64]", codes: "NDArray[np.int64]", stderr: float) -> float:
    """Return the design effect: the factor by which clusters multiply the variance of the mean.

    It is estimated as CR2's variance divided by that of independent items. Few clusters with a difference estimate it
    badly, so it is averaged with the design effect of clusters whose items are all alike, which weighs as much as one
    such cluster. It is at least 1. Chosen by simulation: docs/reference/comparisons.md.
    """
    most = design_effect(np.bincount(codes), 1.0)
    differing, alone = len(np.unique(codes[values != 0.0])), mean_error(values).stderr
    found = (stderr / alone) ** 2 if alone else most
    return max(1.0, (differing * found + most) / (differing + 1))


def unseen_differences(
    before: "NDArray[np.float64]", after: "NDArray[np.float64]", low: float, high: float
) -> Interval:
    """Return the loss and the gain, as root mean squares, of items on which one system has the worst or best value.

    A loss is that of a candidate at `low` where the baseline is as seen, or of a baseline at `high` where the
    candidate is as seen, whichever is larger; a gain is the reverse.

    Args:
        before: (n,) the baseline's values.
        after: (n,) the candidate's values.
        low: the lowest possible value.
        high: the highest possible value.
    """

    def size(distances: "NDArray[np.float64]") -> float:
        return (high - low) * math.sqrt(float(np.mean((distances / (high - low)) ** 2)))

    return -max(size(before - low), size(high - after)), max(size(after - low), size(high - before))


def deciding_items(baseline: "ArrayLike", candidate: "ArrayLike") -> int | None:
    """Return the number of items that decide a difference; None if there are many.

    It is the smallest number of items without which the difference would vanish or change its sign. These are few if
    there are fewer than 10, at most a tenth of all items, and they make up half of all differences of their sign. A
    sample of other items could then easily show another difference.

    Args:
        baseline: (n,) the baseline's values, n >= 1.
        candidate: (n,) the candidate's values, of the same items in the same order.

    Raises:
        InvalidDataError: see `paired_difference`.
    """
    before, after = aligned(baseline, candidate)
    differences = after - before
    total = math.fsum(differences)
    largest_first = np.sort(math.copysign(1.0, total) * differences)[::-1]
    sums = np.cumsum(largest_first)
    number = 1 + int(np.argmax(sums >= abs(total) * (1 - 1e-9)))
    few = number <= min(_FEW, len(differences) / 10)
    return number if total and few and 2 * sums[number - 1] >= sums.max() else None


def correlation(first: "ArrayLike", second: "ArrayLike") -> float | None:
    """Return Pearson's correlation of two systems' values over the same items; None if one system's are all equal.

    Args:
        first: (n,) a system's values, n >= 1.
        second: (n,) another's, of the same items in the same order.

    Raises:
        InvalidDataError: see `paired_difference`.
    """
    standard = []
    for values in aligned(first, second):
        if values.min() == values.max():
            return None
        scaled = values / np.abs(values).max()
        scaled -= math.fsum(scaled) / len(scaled)
        standard.append(scaled / math.sqrt(math.fsum(scaled * scaled)))
    return min(1.0, max(-1.0, math.fsum(standard[0] * standard[1])))


def _t_test(error: MeanError) -> float | None:
    if error.stderr:
        return 2 * student_t_sf(abs(error.mean) / error.stderr, error.df)
    return 1.0 if error.stderr is not None and error.mean == 0.0 else None
