"""The difference of two systems on the same items, with its error bar and p value.

Pairs take out what items have in common (some are harder for everyone), so that they tell far smaller
differences than two separate intervals do (Miller 2024, "Adding Error Bars to Evals",
https://arxiv.org/abs/2411.00640, on paired analysis). Differences are the candidate's value less the baseline's,
everywhere. Rendering a comparison is not done here.
"""

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from modelgauge.data.estimates import Estimate
from modelgauge.stats.discordance import discordance_of, tango_interval
from modelgauge.stats.distributions import student_t_sf
from modelgauge.stats.intervals import (
    Interval,
    MeanError,
    is_proportion,
    joined_clusters,
    mean_error,
    t_interval,
)
from modelgauge.stats.pairs import aligned
from modelgauge.stats.power import detectable_difference

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


class PairedDifference(NamedTuple):
    """How much the candidate's mean exceeds the baseline's.

    Args:
        baseline: the baseline's mean, over the paired items.
        candidate: the candidate's mean, over the same items.
        difference: candidate less baseline, with standard error and 95 % interval; see `paired_difference`.
        stderr_unpaired: the standard error that the difference would have on two separate samples of items; None
            where it cannot be known.
        correlation: of the two systems' values over the items (Pearson's); None where one system's are all equal.
        mde: the smallest true difference that such a comparison finds 4 times in 5, at the 5 % level; None where
            the standard error is not known.
        p_value: two-sided, that the true difference is 0; None for a single pair, and where all differences are
            equal and not 0 (the t test cannot judge that, the sign-flip test can).
        p_kind: the test: "mcnemar_exact", "t" or "cr2_t"; None where there is no p value.
    """

    baseline: float
    candidate: float
    difference: Estimate
    stderr_unpaired: float | None
    correlation: float | None
    mde: float | None
    p_value: float | None
    p_kind: str | None


def paired_difference(
    baseline: "ArrayLike",
    candidate: "ArrayLike",
    *,
    clusters: Sequence[Hashable] | None = None,
    declared: Interval | None = None,
) -> PairedDifference:
    """The difference of two means over the same items, with its standard error, interval and p value.

    | values | interval | test (`p_kind`) |
    | --- | --- | --- |
    | right and wrong: only 0 and 1, and both of them, or (0, 1) is declared | `tango_interval` | mcnemar_exact |
    | right and wrong, clustered, all clusters alike | `tango_interval`, each cluster counted once | mcnemar_exact |
    | others | Student's t; none where all differences are equal | t |
    | others, clustered | Student's t with CR2 (`mean_error`); none where all clusters are alike | cr2_t |

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
    codes = joined_clusters(clusters)
    error = mean_error(after - before, codes)
    first, second = mean_error(before, codes), mean_error(after, codes)
    groups = None if codes is None else int(codes.max()) + 1
    binary = is_proportion(np.concatenate([before, after]), declared)
    interval: Interval | None
    if binary and (groups is None or not error.stderr):
        interval, p_value = _of_right_and_wrong(before, after, groups)
        kind, p_kind = "tango", "mcnemar_exact"
    else:
        kind, p_kind = ("t", "t") if groups is None else ("cr2-t", "cr2_t")
        interval, p_value = t_interval(error), _t_test(error)
    low, high = (0.0, 1.0) if binary else declared or (-math.inf, math.inf)
    return PairedDifference(
        first.mean,
        second.mean,
        Estimate(
            value=error.mean,
            n=len(before),
            stderr=error.stderr or None,
            interval=interval and (max(low - high, interval[0]), min(high - low, interval[1])),
            interval_kind=interval and kind,
            n_clusters=groups,
        ),
        math.hypot(first.stderr or 0.0, second.stderr or 0.0) or None,
        correlation(before, after),
        detectable_difference(error.stderr) if error.stderr else None,
        p_value,
        None if p_value is None else p_kind,
    )


def correlation(first: "ArrayLike", second: "ArrayLike") -> float | None:
    """Pearson's correlation of two systems' values over the same items; None where one system's are all equal.

    Args:
        first: (n,) a system's values, n >= 1.
        second: (n,) another's, of the same items in the same order.

    Raises:
        InvalidDataError: as for `paired_difference`.
    """
    standard = []
    for values in aligned(first, second):
        if values.min() == values.max():
            return None
        scaled = values / np.abs(values).max()
        scaled -= math.fsum(scaled) / len(scaled)
        standard.append(scaled / math.sqrt(math.fsum(scaled * scaled)))
    return min(1.0, max(-1.0, math.fsum(standard[0] * standard[1])))


def _of_right_and_wrong(
    before: "NDArray[np.float64]", after: "NDArray[np.float64]", groups: int | None
) -> tuple[Interval, float | None]:
    """Tango's interval and McNemar's p value; over the groups, which then all differ alike."""
    losses, wins, n = int((before > after).sum()), int((before < after).sum()), len(before)
    if groups is None:
        return tango_interval(losses, wins, n), discordance_of(losses, wins).p_value
    share = groups / n  # makes each group count once
    certain = (groups * (losses > wins), groups * (wins > losses))
    return tango_interval(losses * share, wins * share, groups), discordance_of(*certain).p_value


def _t_test(error: MeanError) -> float | None:
    if error.stderr:
        return 2 * student_t_sf(abs(error.mean) / error.stderr, error.df)
    return 1.0 if error.stderr is not None and error.mean == 0.0 else None
