"""Several comparisons at once: adjusted p values, the mean over tests, whether groups differ in their differences."""

import math
from collections.abc import Sequence
from operator import mul
from typing import NamedTuple

from modelgauge.errors import InvalidDataError
from modelgauge.stats.distributions import f_sf
from modelgauge.stats.intervals import CONFIDENCE, Interval, normal_quantile


class MacroMean(NamedTuple):
    """The mean of several tests' means.

    Args:
        value: the mean.
        stderr: its standard error; None if that of a test is not known.
        interval: by the normal distribution; None if there is no standard error.
    """

    value: float
    stderr: float | None
    interval: Interval | None


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """P values of several comparisons, adjusted so that the chance of any false finding is at most the level.

    Holm (1979), Scandinavian Journal of Statistics 6:65-70: the k-th smallest of m is multiplied by
    (m - k + 1), and none falls below the one before it. It assumes nothing about how the comparisons depend on
    each other.

    Args:
        p_values: (m,) from 0 to 1.

    Returns:
        (m,) adjusted p values, in the same order.

    Raises:
        InvalidDataError: a value is not from 0 to 1.
    """
    if not all(0.0 <= p <= 1.0 for p in p_values):
        raise InvalidDataError(f"These are not p values: {list(p_values)}.", fix="Give numbers from 0 to 1.")
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = highest
    return tuple(adjusted)


def macro_mean(
    values: Sequence[float],
    stderrs: Sequence[float | None],
    *,
    weights: Sequence[float] | None = None,
    confidence: float = CONFIDENCE,
) -> MacroMean:
    """Return the weighted mean of several tests' means (or differences), with the standard error √Σ w² SE².

    It is about questions like those of these tests, and no other tests. It assumes that the tests have no items in
    common.

    Args:
        values: (k,) finite numbers, k >= 1.
        stderrs: (k,) their standard errors, 0 or more; None if one is not known.
        weights: (k,) 0 or more and not all 0, used as shares of their sum; by default all alike.
        confidence: the share of such intervals that hold the true mean, between 0 and 1.

    Raises:
        InvalidDataError: the lengths differ, or a number is outside its range.
    """
    shares = [1.0] * len(values) if weights is None else [*weights]
    errors = [error for error in stderrs if error is not None]
    if not (
        len(values) == len(stderrs) == len(shares) and all(map(math.isfinite, [*values, *errors, *shares]))
    ):
        raise InvalidDataError(
            f"`values`, `stderrs` and `shares` must have the same length and finite numbers, not {len(values)}, "
            f"{len(stderrs)} and {len(shares)} of them.",
            fix="Give one of each for every test.",
        )
    if min([0.0, *errors, *shares]) < 0 or not sum(shares) > 0:
        raise InvalidDataError(
            "A standard error or a weight is negative, or no weight is positive.",
            fix="Give numbers of 0 or more.",
        )
    z, total = normal_quantile(confidence), math.fsum(shares)
    value = _dot(shares, values) / total
    if len(errors) < len(stderrs):
        return MacroMean(value, None, None)
    stderr = math.hypot(*(share * error for share, error in zip(shares, errors, strict=True))) / total
    return MacroMean(value, stderr, (value - z * stderr, value + z * stderr))


def interaction_test(differences: Sequence[float], stderrs: Sequence[float], dfs: Sequence[float]) -> float:
    """Return the p value of the hypothesis that a difference is the same in all groups of items.

    That a difference is significant in one group and not in another does not show that the groups differ; this test
    can. Welch (1951), Biometrika 38:330-336, for means of unequal precision. It assumes that the groups are
    independent, and each mean difference about normal.

    Args:
        differences: (k,) the difference in each of k >= 2 groups.
        stderrs: (k,) their standard errors, above 0.
        dfs: (k,) their degrees of freedom, above 0: items less one, or those of `mean_error`.

    Raises:
        InvalidDataError: the lengths differ, there are fewer than two groups, or a number is outside its range.
    """
    k = len(differences)
    finite = all(map(math.isfinite, [*differences, *stderrs, *dfs]))
    if not (k == len(stderrs) == len(dfs) and k >= 2 and finite and min(*stderrs, *dfs) > 0):
        raise InvalidDataError(
            f"{k} differences with standard errors {[*stderrs]} and degrees of freedom {[*dfs]} cannot be compared.",
            fix="Leave out groups without a standard error, and give two groups or more.",
        )
    least = min(stderrs)
    weights = [(least / error) ** 2 for error in stderrs]
    total = math.fsum(weights)
    middle = _dot(weights, differences) / total
    spread = math.fsum(
        ((difference - middle) / error) ** 2 for difference, error in zip(differences, stderrs, strict=True)
    )
    loss = math.fsum((1 - weight / total) ** 2 / df for weight, df in zip(weights, dfs, strict=True))
    f = spread / (k - 1) / (1 + 2 * (k - 2) / (k * k - 1) * loss)
    return f_sf(f, k - 1, (k * k - 1) / (3 * loss))


def _dot(weights: Sequence[float], values: Sequence[float]) -> float:
    return math.fsum(map(mul, weights, values))
