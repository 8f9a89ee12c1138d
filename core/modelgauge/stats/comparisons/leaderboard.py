"""Several systems on the same items: which differ, which ranks each may have, which are indistinguishable."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from modelgauge.errors import InvalidDataError
from modelgauge.stats.intervals import CONFIDENCE, cluster_codes, mean_error, power_of_two
from modelgauge.wording.phrases import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from modelgauge.stats.intervals import Labels

_BLOCK = 1 << 20
"""Numbers held at once for the draws: 8 MB."""


class Leaderboard(NamedTuple):
    """Several systems, compared in pairs; they are in the order of the columns of the values.

    Args:
        means: (m,) the systems' means.
        low: (m, m) the lower ends of the simultaneous intervals of mean[column] - mean[row]; NaN where the two
            differ by the same on all items, and on the diagonal.
        high: (m, m) the upper ends.
        p_values: (m, m) two-sided, adjusted for all pairs; NaN as for `low`.
        ranks: (m, 2) the best and the worst rank that each system may have, 1 for the best; all hold together with
            the confidence.
        groups: the largest groups of indistinguishable systems, best first; a system may be in several.
    """

    means: "NDArray[np.float64]"
    low: "NDArray[np.float64]"
    high: "NDArray[np.float64]"
    p_values: "NDArray[np.float64]"
    ranks: "NDArray[np.int64]"
    groups: tuple[tuple[int, ...], ...]


def compare_systems(
    values: "ArrayLike",
    *,
    clusters: "Labels | None" = None,
    lower_is_better: bool = False,
    confidence: float = CONFIDENCE,
    draws: int = 20_000,
    seed: int = 0,
) -> Leaderboard:
    """Compare several systems on the same items, all pairs at once.

    Simultaneous intervals: difference ± c · stderr, with the c that the largest `|t|` of all pairs stays below with the
    confidence, by draws of samples of normal values with the covariance that was found (as Hothorn, Bretz and Westfall
    2008, Biometrical Journal 50:346-363, with a standard error of its own for each pair). Ranks: from the pairs of
    which one is significantly better, found step by step with c for those that are left (Mogstad, Romano, Shaikh and
    Wilhelm 2024, Review of Economic Studies 91:476-518, with the steps of Romano and Wolf). Groups: Piepho (2004),
    Journal of Computational and Graphical Statistics 13:456-466. Standard errors are those of `paired_difference`. It
    is about questions like these, and assumes that items (or clusters) are a random sample, and values about normal.

    Args:
        values: (n, m) of n >= 2 items for each of m >= 2 systems.
        clusters: (n,) labels of items that are not independent.
        lower_is_better: whether rank 1 has the lowest mean.
        confidence: of all intervals together, and of all ranks together, between 0 and 1.
        draws: 1,000 or more.
        seed: of the draws.

    Raises:
        InvalidDataError: the shape does not fit, a value is not finite, there is one cluster only, or `draws` or the
            confidence is outside its range.
    """
    array = _checked_values(values, clusters, confidence, draws)
    scale = power_of_two(float(np.abs(array).max()))  # so that no square overflows or vanishes
    means, parts, df = _parts(array / scale, clusters)
    stderrs = np.sqrt([((parts - parts[:, [column]]) ** 2).sum(axis=0) for column in range(len(means))])
    tellable = stderrs > 1e-12 * np.abs(parts).max(initial=0.0)
    t = np.divide(means - means[:, None], stderrs, where=tellable, out=np.zeros_like(stderrs))
    drawn = _drawn_t(parts, df, np.argwhere(np.triu(tellable)).tolist(), draws, seed)
    of_all = _largest_t(drawn, tellable, draws)
    c = _quantile(of_all, confidence)
    better = _step_down(t, tellable, c, lambda left: _quantile(_largest_t(drawn, left, draws), confidence))
    p_values = 1 - np.searchsorted(of_all, np.abs(t) - 1e-12) / (draws + 1)
    half = np.where(tellable, c * stderrs, np.nan) * scale
    differences = (means - means[:, None]) * scale
    above = better.T if lower_is_better else better  # [row, column]: the column is better than the row
    ranks = np.stack([1 + above.sum(axis=1), len(means) - above.sum(axis=0)], axis=1)
    order = np.argsort(means if lower_is_better else -means, kind="stable")
    return Leaderboard(
        means * scale,
        differences - half,
        differences + half,
        np.where(tellable, p_values, np.nan),
        ranks,
        find_groups(better | better.T, order.tolist()),
    )


def _checked_values(
    values: "ArrayLike", clusters: "Labels | None", confidence: float, draws: int
) -> "NDArray[np.float64]":
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or min(array.shape) < 2 or (clusters is not None and len(clusters) != len(array)):
        raise InvalidDataError(
            f"Values of shape {array.shape} are not items of several systems"
            + ("." if clusters is None else f" with {counted(len(clusters), 'cluster label')}."),
            fix="Give a row for each of two items or more, with a value of each of two systems or more.",
        )
    if not np.isfinite(array).all():
        raise InvalidDataError(
            "There are values that are not finite.", fix="Leave out items without a value."
        )
    if draws < 1000 or not 0 < confidence < 1:
        raise InvalidDataError(
            f"Cannot compare systems with draws={draws} and confidence={confidence}.",
            fix="Give 1,000 or more, and a confidence of 0.95 for 95 %.",
        )
    return array


def _parts(
    array: "NDArray[np.float64]", clusters: "Labels | None"
) -> "tuple[NDArray[np.float64], NDArray[np.float64], float]":
    """Return the means, each cluster's part of their errors (parts.T @ parts is the covariance), and the df."""
    codes = np.arange(len(array)) if clusters is None else cluster_codes(clusters)
    sizes = np.bincount(codes)
    if len(sizes) < 2:
        raise InvalidDataError(
            "Cannot compute a standard error from a single cluster.",
            fix="Give items of two or more clusters.",
        )
    means = array.mean(axis=0)
    sums = np.zeros((len(sizes), array.shape[1]))
    np.add.at(sums, codes, array - means)
    parts = sums / (len(array) * np.sqrt(1 - sizes / len(array)))[:, None]
    return means, parts, mean_error(array[:, 0], codes).df


def _drawn_t(
    parts: "NDArray[np.float64]", df: float, pairs: list[list[int]], draws: int, seed: int
) -> "dict[tuple[int, int], NDArray[np.float32]]":
    """Draw the t of each pair of systems (row, column) in samples of equal systems: (draws,).

    Means are drawn with the errors that parts say, and the covariance that each sample would show from the Wishart
    distribution (Bartlett 1933), so that each pair has a standard error of its own, as in the data.
    """
    values, vectors = np.linalg.eigh(parts.T @ parts)
    kept = values > 1e-13 * values.max()
    roots = vectors[:, kept] * np.sqrt(values[kept])
    m, p = roots.shape
    generator, block = np.random.default_rng(seed), max(1, _BLOCK // (m * m))
    found = {(row, column): np.empty(draws, dtype=np.float32) for row, column in pairs}
    for start in range(0, draws, block):
        n = min(block, draws - start)
        means = generator.standard_normal((n, p)) @ roots.T
        factors = np.tril(generator.standard_normal((n, p, p)), -1)
        # Clusters of unequal sizes can have fewer degrees of freedom than there are systems.
        squares = generator.chisquare(np.maximum(df - np.arange(p), 1.0), size=(n, p))
        factors[:, np.arange(p), np.arange(p)] = np.sqrt(squares)
        errors = roots @ factors / math.sqrt(df)
        covariances = errors @ errors.swapaxes(1, 2)
        for (row, column), t in found.items():
            variance = (
                covariances[:, row, row] + covariances[:, column, column] - 2 * covariances[:, row, column]
            )
            t[start : start + n] = (means[:, column] - means[:, row]) / np.sqrt(variance)
    return found


def _largest_t(
    drawn: "dict[tuple[int, int], NDArray[np.float32]]", pairs: "NDArray[np.bool_]", draws: int
) -> "NDArray[np.float64]":
    """Return the largest t of these pairs (row, column) in each draw, in ascending order: (draws,); 0 if all are
    below.
    """
    found = np.zeros(draws)
    for row, column in np.argwhere(pairs).tolist():
        np.maximum(found, drawn[row, column] if row < column else -drawn[column, row], out=found)
    return np.sort(found)


def _quantile(ordered: "NDArray[np.float64]", confidence: float) -> float:
    """Return the smallest drawn value that at least this share of the draws does not exceed."""
    return float(ordered[min(len(ordered) - 1, math.ceil(confidence * len(ordered)) - 1)])


def _step_down(
    t: "NDArray[np.float64]", pairs: "NDArray[np.bool_]", c: float, critical: "Callable[..., float]"
) -> "NDArray[np.bool_]":
    """Find the pairs that differ: those with t above c, then those above the lower c of the remaining pairs, …"""
    better, left = np.zeros_like(pairs), pairs
    while (new := left & (t > c)).any():
        better, left = better | new, left & ~new
        c = critical(left)
    return better


def find_groups(separate: "NDArray[np.bool_]", order: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return the largest groups without a separate pair (Piepho 2004).

    Each group is split by each separate pair. Groups within others are dropped.

    Args:
        separate: (m, m) which systems are told apart; symmetric.
        order: the systems, best first.
    """
    groups = [frozenset(order)]
    for one, other in np.argwhere(np.triu(separate)).tolist():
        together = {group for group in groups if {one, other} <= group}
        split = {*groups} - together | {group - {out} for group in together for out in (one, other)}
        groups = [part for part in split if not any(part < another for another in split)]
    placed = sorted(sorted(map(order.index, group)) for group in groups)
    return tuple(tuple(order[rank] for rank in group) for group in placed)
