"""The bootstrap of a statistic of the whole, such as BLEU over a corpus."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from modelgauge.data.estimates import Estimate
from modelgauge.errors import InvalidDataError
from modelgauge.stats.intervals import cluster_codes, quantile

if TYPE_CHECKING:
    from modelgauge.stats.intervals import Labels

T = TypeVar("T")

_TAIL = 0.025


def bootstrap_estimate(
    values: Sequence[T],
    statistic: Callable[[Sequence[T]], float],
    *,
    clusters: "Labels | None" = None,
    resamples: int = 1_000,
    seed: int = 0,
) -> Estimate:
    """Return a statistic of all values together, with its bootstrap error bar.

    It is for what no mean gives: the BLEU or the F1 of a corpus. Values, or whole clusters, are drawn with replacement.
    The interval holds the middle 95 % of the statistics of the resamples (the percentile method: Efron and Tibshirani
    1993, "An Introduction to the Bootstrap", chapter 13), the standard error is their standard deviation. There is
    none if all statistics are equal, or if more than 5 % are not finite; fewer are left out.

    Args:
        values: (n,) of any kind, n >= 1, one for each item.
        statistic: from such values to a number.
        clusters: (n,) labels of values that are drawn together.
        resamples: 100 or more. The cost is that of so many statistics.
        seed: of the draws.

    Raises:
        InvalidDataError: there are no values, there are fewer than 100 resamples, or the statistic is not finite.
    """
    if not len(values) or resamples < 100:
        raise InvalidDataError(
            f"Cannot bootstrap {len(values)} values with {resamples} resamples.",
            fix="Give one value or more, and 100 resamples or more.",
        )
    value = float(statistic(values))
    if not math.isfinite(value):
        raise InvalidDataError(f"The statistic is {value}.", fix="Leave out values without a number.")
    codes = np.arange(len(values)) if clusters is None else cluster_codes(clusters)
    members = [np.flatnonzero(codes == code) for code in range(int(codes.max()) + 1)]
    n_clusters = len(members) if len(members) < len(values) else None
    draws = np.random.default_rng(seed).integers(len(members), size=(resamples, len(members)))
    drawn = ([values[at] for unit in units for at in members[unit]] for units in draws)
    found = np.array([float(statistic(sample)) for sample in drawn])
    found = np.sort(found[np.isfinite(found)])
    if len(found) < 0.95 * resamples or found[0] == found[-1]:
        return Estimate(value, len(values), n_clusters=n_clusters)
    return Estimate(
        value=value,
        n=len(values),
        stderr=float(found.std(ddof=1)),
        interval=(quantile(found, _TAIL), quantile(found, 1 - _TAIL)),
        interval_kind="bootstrap",
        n_clusters=n_clusters,
    )
