"""What a planned comparison is like: how systems agree, clusters, repeats, failures.

What such a comparison can find is computed in `power`.
"""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from modelgauge.errors import InvalidDataError
from modelgauge.wording.phrases import counted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from modelgauge.stats.comparisons.repeats import RepeatVariance


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
    """The shares of items that only the baseline, and that only the candidate gets right.

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
            f"There are no rates {baseline} and {candidate} with a correlation of {correlation}.",
            fix="Give rates from 0 to 1.",
        )
    spread = math.sqrt(baseline * (1 - baseline) * candidate * (1 - candidate))
    least, most = max(0.0, baseline + candidate - 1), min(baseline, candidate)
    both = baseline * candidate + correlation * spread
    if not least - 1e-12 <= both <= most + 1e-12:
        ends = [(end - baseline * candidate) / spread for end in (least, most)] if spread else [0.0, 0.0]
        raise InvalidDataError(
            f"Rates of {baseline:g} and {candidate:g} cannot have a correlation of {correlation:g}.",
            fix=f"Give one from {ends[0]:.3f} to {ends[1]:.3f}.",
        )
    both = min(max(both, least), most)
    return baseline - both, candidate - both


def difference_stddev(baseline: float, candidate: float, correlation: float) -> float:
    """The standard deviation of paired differences, from those of both systems and their correlation.

    Args:
        baseline: the standard deviation of the baseline's values, 0 or more.
        candidate: the standard deviation of the candidate's values, 0 or more.
        correlation: of the two over the items, from -1 to 1; 0 for separate samples.

    Raises:
        InvalidDataError: an argument is outside its range.
    """
    if not (0 <= baseline < math.inf and 0 <= candidate < math.inf and -1 <= correlation <= 1):
        raise InvalidDataError(
            f"Standard deviations {baseline} and {candidate} do not go with a correlation of {correlation}.",
            fix="Give two finite numbers from 0 on, and a correlation from -1 to 1.",
        )
    # By squares that cannot fall below 0: (a - b)² + 2 a b (1 - r).
    return math.sqrt((baseline - candidate) ** 2 + 2 * baseline * candidate * (1 - correlation))


def design_effect(sizes: "ArrayLike", correlation: float) -> float:
    """By how much clusters multiply the variance of a mean: 1 + r (Σ m² / Σ m - 1).

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
            f"Clusters of sizes {array.tolist()} have no design effect with a correlation of {correlation}.",
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
        variance: between items and within them, of values or of paired differences; see `repeats`.
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
    """How many items to ask so that about n are scored on every system: n / ∏(1 - rate), rounded up.

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
