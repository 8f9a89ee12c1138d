"""Properties of compared systems: agreement, clusters, failures, and the variation of answers to one item.

`power` computes what such a comparison can detect.
"""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from modelgauge.errors import InvalidDataError
from modelgauge.wording.phrases import counted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class RepeatPlan(NamedTuple):
    """One way to spend a number of calls.

    Args:
        items: how many items are asked.
        repeats: how often each is asked.
        stderr: the standard error of the mean that this gives.
    """

    items: int
    repeats: int
    stderr: float


def discordant_shares(baseline: float, candidate: float, correlation: float) -> tuple[float, float]:
    """Return the shares of items that only the baseline, and only the candidate, gets right.

    Args:
        baseline: the share that the baseline gets right, from 0 to 1.
        candidate: the share that the candidate gets right, from 0 to 1.
        correlation: of the two over the items, Pearson's (phi); 0 where they are independent.

    Returns:
        (only the baseline, only the candidate).

    Raises:
        InvalidDataError: a share is not from 0 to 1, or no such systems have this correlation.
    """
    if not (all(0 <= rate <= 1 for rate in (baseline, candidate)) and -1 <= correlation <= 1):
        raise InvalidDataError(
            f"Rates must be between 0 and 1, and a correlation between -1 and 1, not {baseline:g}, {candidate:g} and "
            f"{correlation:g}.",
            fix="Give another rate or a smaller effect.",
        )
    spread = math.sqrt(baseline * (1 - baseline) * candidate * (1 - candidate))
    least, most = _shares_of_both(baseline, candidate)
    both = baseline * candidate + correlation * spread
    if not least - 1e-12 <= both <= most + 1e-12:
        lowest, highest = correlation_range(baseline, candidate)
        raise InvalidDataError(
            f"Rates of {baseline:g} and {candidate:g} cannot have a correlation of {correlation:g}.",
            fix=f"Give one from {lowest:.3f} to {highest:.3f}.",
        )
    both = min(max(both, least), most)
    return baseline - both, candidate - both


def correlation_range(baseline: float, candidate: float) -> tuple[float, float]:
    """Return the lowest and the highest correlation (phi) that two systems can have over the items.

    Args:
        baseline: the share that the baseline gets right, from 0 to 1.
        candidate: the share that the candidate gets right, from 0 to 1.
    """
    spread = math.sqrt(baseline * (1 - baseline) * candidate * (1 - candidate))
    if not spread:
        return 0.0, 0.0
    least, most = _shares_of_both(baseline, candidate)
    return (least - baseline * candidate) / spread, (most - baseline * candidate) / spread


def _shares_of_both(baseline: float, candidate: float) -> tuple[float, float]:
    """Return the smallest and the largest share of items that both can get right."""
    return max(0.0, baseline + candidate - 1), min(baseline, candidate)


def difference_stddev(baseline: float, candidate: float, correlation: float) -> float:
    """Return the standard deviation of paired differences, from those of both systems and their correlation.

    Args:
        baseline: the standard deviation of the baseline's values, 0 or more.
        candidate: the standard deviation of the candidate's values, 0 or more.
        correlation: of the two over the items, from -1 to 1; 0 for separate samples.

    Raises:
        InvalidDataError: an argument is outside its range.
    """
    if not (0 <= baseline < math.inf and 0 <= candidate < math.inf and -1 <= correlation <= 1):
        raise InvalidDataError(
            f"Standard deviations {baseline} and {candidate} cannot be combined with a correlation of {correlation}.",
            fix="Give two finite numbers from 0 on, and a correlation from -1 to 1.",
        )
    # By squares that cannot fall below 0: (a - b)² + 2 a b (1 - r).
    return math.sqrt((baseline - candidate) ** 2 + 2 * baseline * candidate * (1 - correlation))


def design_effect(sizes: "ArrayLike", correlation: float) -> float:
    """Return the factor by which clusters multiply the variance of a mean: 1 + r (Σ m² / Σ m - 1).

    Kish (1965), "Survey Sampling", section 5.4, for clusters of unequal sizes m. The number of items divided by it is
    the number of independent items with the same precision. It assumes that items of one cluster are equally
    correlated, and items of two clusters not at all.

    Args:
        sizes: (g,) the items in each cluster, 1 or more.
        correlation: of two items of one cluster (`RepeatVariance.correlation`), from -1 to 1.

    Raises:
        InvalidDataError: an argument is outside its range, or the correlation is too low for such clusters.
    """
    array = np.asarray(sizes, dtype=np.float64)
    valid = array.ndim == 1 and len(array) and np.isfinite(array).all() and array.min() >= 1
    effect = 1 + correlation * (float((array**2).sum() / array.sum()) - 1) if valid else math.nan
    if not (-1 <= correlation <= 1 and effect > 0):
        raise InvalidDataError(
            f"Clusters of sizes {array.tolist()} and a correlation of {correlation} do not determine a design effect.",
            fix="Give sizes of 1 or more, and a correlation from 0 to 1.",
        )
    return effect


def repeat_plans(
    variance: "RepeatVariance", calls: int, repeats: Iterable[int] = (1, 2, 3, 5, 10)
) -> tuple[RepeatPlan, ...]:
    """Standard errors that a number of calls gives, by items and repeats: stderr² = (ω² + σ² / R) / items.

    Miller (2024), "Adding Error Bars to Evals", section 3. While there are more items to ask, repeats never win: the
    more items, the smaller the standard error. Repeats help if there are no more items.

    Args:
        variance: between items and within them, of values or of paired differences; see `repeat_variance`.
        calls: to spend on each system, 1 or more.
        repeats: the numbers of repeats R to show; those above `calls` are left out.

    Raises:
        InvalidDataError: a number is below 1.
    """
    counts = [*repeats]
    if not all(count >= 1 for count in (calls, *counts)):
        raise InvalidDataError(
            f"{counted(calls, 'call')} with repeats={counts} cannot be planned.", fix="Give 1 or more."
        )
    return tuple(
        RepeatPlan(
            calls // each, each, math.sqrt((variance.between + variance.within / each) / (calls // each))
        )
        for each in counts
        if each <= calls
    )


def items_with_failures(n: int, *failure_rates: float) -> int:
    """Return how many items to ask so that about n are scored on every system: n / ∏(1 - rate), rounded up.

    Args:
        n: the items that shall be scored, 0 or more.
        failure_rates: the share of items that fails, for each system; failures are taken to be independent.

    Raises:
        InvalidDataError: n is below 0, or a rate is not from 0 to below 1.
    """
    if n < 0 or not all(0 <= rate < 1 for rate in failure_rates):
        raise InvalidDataError(
            f"{counted(n, 'item')} with failure rates {failure_rates} cannot be planned.",
            fix="Give rates below 1.",
        )
    return math.ceil(n / math.prod(1 - rate for rate in failure_rates) * (1 - 1e-12))


# --- repeats ------------------------------------------------------------------------------------------------------


class RepeatVariance(NamedTuple):
    """The variance between items, and that of repeated answers within an item.

    Args:
        between: ω², the variance of the items' true values; 0 where the estimate is below 0.
        within: σ², the mean variance of single answers around the true value of their item.
    """

    between: float
    within: float

    @property
    def correlation(self) -> float | None:
        """The correlation of two answers to one item (intraclass): ω² / (ω² + σ²); None if nothing varies."""
        return self.between / (self.between + self.within) if self.between + self.within else None


def repeat_variance(repeats: "Sequence[ArrayLike]") -> RepeatVariance:
    """Split the variance of measurements into its parts between items and within items.

    With the R_i answers to item i: σ² is their pooled variance, and ω² the variance of the items' means less
    σ² · mean(1 / R_i), what the answers' noise adds to it (Miller 2024, "Adding Error Bars to Evals",
    https://arxiv.org/abs/2411.00640, section 3; for equal R_i this is the analysis of variance). With R repeats the
    mean over n items has the variance (ω² + σ² / R) / n. It is about questions like these; both estimates are unbiased
    where items are a random sample, and answers to an item are independent.

    Args:
        repeats: (n, R_i) for each of n >= 2 items its R_i >= 1 values, of which one item at least has two.

    Raises:
        InvalidDataError: there are too few items or repeats, or a value is not finite.
    """
    means, within, noise = _parts(repeats)
    return RepeatVariance(max(0.0, float(np.var(means, ddof=1)) - noise), within)


def paired_repeat_variance(
    baseline: "Sequence[ArrayLike]", candidate: "Sequence[ArrayLike]"
) -> RepeatVariance:
    """Split the variance of paired differences into its parts between items and within items.

    As `repeat_variance`, of differences of an answer of the candidate less one of the baseline: σ² is the sum of both
    systems' variances, and ω² the variance of the items' mean differences less what the noise of both adds to it.

    Args:
        baseline: (n, R_i) for each of n >= 2 items the baseline's values.
        candidate: (n, R_i) the candidate's values of the same items; it may have other numbers of repeats.

    Raises:
        InvalidDataError: the numbers of items differ; else see `repeat_variance`.
    """
    if len(baseline) != len(candidate):
        raise InvalidDataError(
            f"{len(baseline):,} and {counted(len(candidate), 'item')} are not pairs.",
            fix="Give the repeats of both systems for the same items, in the same order.",
        )
    before, after = _parts(baseline), _parts(candidate)
    spread = float(np.var(after[0] - before[0], ddof=1))
    return RepeatVariance(max(0.0, spread - before[2] - after[2]), before[1] + after[1])


def _parts(repeats: "Sequence[ArrayLike]") -> "tuple[np.ndarray, float, float]":
    """Return the items' means, the variance within items, and its contribution to the variance of the means."""
    arrays = [np.asarray(repeat, dtype=np.float64) for repeat in repeats]
    if len(arrays) < 2 or not all(
        array.ndim == 1 and len(array) and np.isfinite(array).all() for array in arrays
    ):
        raise InvalidDataError(
            "Repeats must be rows of finite numbers, for two or more items.",
            fix="Leave out items without a value.",
        )
    means = np.array([math.fsum(array) / len(array) for array in arrays])
    counts = np.array([len(array) for array in arrays])
    if counts.max() < 2:
        raise InvalidDataError(
            "No item has two answers, so the variance of answers is unknown.",
            fix="Run it with --repeats 2 or more.",
        )
    squares = math.fsum(float(((array - mean) ** 2).sum()) for array, mean in zip(arrays, means, strict=True))
    within = squares / float((counts - 1).sum())
    return means, within, within * float((1 / counts).mean())
