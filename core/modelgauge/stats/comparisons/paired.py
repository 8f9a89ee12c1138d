"""The difference of two systems on the same items, with its error bar and p value.

Pairs take out what items have in common (some are harder for everyone), so that they tell far smaller
differences than two separate intervals do (Miller 2024, "Adding Error Bars to Evals",
https://arxiv.org/abs/2411.00640, on paired analysis). PairedDifferences are the candidate's value less the baseline's,
everywhere. Rendering a comparison is not done here.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from modelgauge.data.estimates import Estimate
from modelgauge.stats.comparisons.discordance import Discordance, discordance_of, tango_interval
from modelgauge.stats.comparisons.pairs import aligned
from modelgauge.stats.comparisons.power import detectable_difference
from modelgauge.stats.distributions import student_t_sf
from modelgauge.stats.intervals import (
    Interval,
    MeanError,
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


class PairedDifferences(NamedTuple):
    """Paired differences, made ready for intervals and tests.

    Args:
        error: their mean and its error.
        codes: (n,) cluster codes; None if every item is its own cluster.
        counts: (items that only the baseline got right, those that only the candidate did, all items) where Tango's
            formulas fit: of right and wrong answers. Of clusters that are all alike, each counts once. Else None.
        widest: how far two values can be apart; infinite where that is not known.
    """

    error: MeanError
    codes: "NDArray[np.int64] | None"
    counts: tuple[float, float, int] | None
    widest: float

    @property
    def n_clusters(self) -> int | None:
        return None if self.codes is None else int(self.codes.max()) + 1

    @property
    def discordance(self) -> Discordance | None:
        """McNemar's tests; None if there are no counts. One system wins all clusters that are alike."""
        if self.counts is None:
            return None
        losses, wins, n = self.counts
        if self.codes is not None:
            losses, wins = n * (losses > wins), n * (wins > losses)
        return discordance_of(int(losses), int(wins))

    def within_range(self, interval: Interval) -> Interval:
        """An interval without the differences that cannot be."""
        return max(-self.widest, interval[0]), min(self.widest, interval[1])


class PairedDifference(NamedTuple):
    """How much the candidate's mean exceeds the baseline's.

    Args:
        baseline: the baseline's mean, over the paired items.
        candidate: the candidate's mean, over the same items.
        difference: candidate minus baseline, with standard error and 95 % interval; see `paired_difference`.
        stderr_unpaired: the standard error that the difference would have on two separate samples of items; None
            where it cannot be known.
        correlation: of the two systems' values over the items (Pearson's); None if one system's are all equal.
        mde: the smallest true difference that such a comparison finds 4 times in 5, at the 5 % level; None where
            the standard error is not known.
        p_value: two-sided, that the true difference is 0; None for a single pair, and where all differences are
            equal and not 0 (the t test cannot judge that, the sign-flip test can).
        p_kind: the test: "mcnemar_exact", "t" or "cr2_t"; None if there is no p value.
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
) -> PairedDifference:
    """The difference of two means over the same items, with its standard error, interval and p value.

    | values | interval | test (`p_kind`) |
    | --- | --- | --- |
    | right and wrong: only 0 and 1, and both of them, or (0, 1) is declared | `tango_interval` | mcnemar_exact |
    | right and wrong, the same mean difference in all clusters | `tango_interval` of the clusters | mcnemar_exact |
    | others | Student's t; none where all differences are equal | t |
    | others, clustered | Student's t with CR2 (`mean_error`); none if all have the same mean | cr2_t |

    The standard error has the divisor n - 1. All this is about questions like these: it assumes that the items (or
    the clusters) are a random sample of them, and Student's t that the mean difference is about normal.

    Args:
        baseline: (n,) the baseline's values, n >= 1.
        candidate: (n,) the candidate's values, of the same items in the same order.
        clusters: (n,) labels of items that are not independent; see `intervals.mean_error`.
        declared: the lowest and the highest possible value, where they are known.

    Raises:
        InvalidDataError: the shapes differ, there are no values, or some value or difference is not finite.
    """
    before, after = aligned(baseline, candidate, clusters)
    differences = differences_of(before, after, clusters, declared)
    discordance = differences.discordance
    if differences.counts is not None and discordance is not None:
        kind, p_kind = "tango", "mcnemar_exact"
        interval: Interval | None = tango_interval(*differences.counts)
        p_value: float | None = discordance.p_value
    else:
        kind, p_kind = ("t", "t") if differences.codes is None else ("cr2-t", "cr2_t")
        interval, p_value = t_interval(differences.error), _t_test(differences.error)
    first, second = mean_error(before, differences.codes), mean_error(after, differences.codes)
    stderr = differences.error.stderr or None
    estimate = Estimate(
        value=differences.error.mean,
        n=len(before),
        stderr=stderr,
        interval=interval and differences.within_range(interval),
        interval_kind=interval and kind,
        n_clusters=differences.n_clusters,
    )
    return PairedDifference(
        first.mean,
        second.mean,
        estimate,
        math.hypot(first.stderr or 0.0, second.stderr or 0.0) or None,
        correlation(before, after),
        stderr and detectable_difference(stderr),
        p_value,
        None if p_value is None else p_kind,
        discordance and discordance.p_mid,
    )


def differences_of(
    before: "NDArray[np.float64]",
    after: "NDArray[np.float64]",
    clusters: "Labels | None",
    declared: Interval | None,
) -> PairedDifferences:
    """The paired differences of aligned values; for the arguments see `paired_difference`."""
    codes = joined_clusters(clusters)
    error = mean_error(after - before, codes)
    largest = max(float(np.abs(before).max()), float(np.abs(after).max()))
    if error.stderr and error.stderr * math.sqrt(len(before)) < _NOISE * largest:
        error = error._replace(stderr=0.0)
    counts = None
    binary = is_proportion(np.concatenate([before, after]), declared)
    if binary and (codes is None or not error.stderr):
        n = len(before) if codes is None else int(codes.max()) + 1
        share = n / len(before)  # 1, or what makes each cluster count once
        counts = float((before > after).sum()) * share, float((before < after).sum()) * share, n
    low, high = (0.0, 1.0) if binary else declared or (-math.inf, math.inf)
    return PairedDifferences(error, codes, counts, high - low)


def correlation(first: "ArrayLike", second: "ArrayLike") -> float | None:
    """Pearson's correlation of two systems' values over the same items; None if one system's are all equal.

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
