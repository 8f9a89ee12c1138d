"""Comparing two systems on the same items: their difference with its error bar, and tests of it.

Pairs take out what items have in common (some are harder for everyone), so that they tell far smaller
differences than two separate intervals do (Miller 2024, "Adding Error Bars to Evals",
https://arxiv.org/abs/2411.00640, on paired analysis). Differences are the first system's value less the
second's. Rendering a comparison is not done here.
"""

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from modelgauge.data.estimates import Estimate
from modelgauge.errors import InvalidDataError
from modelgauge.stats.distributions import binomial_sf, student_t_sf
from modelgauge.stats.intervals import (
    CONFIDENCE,
    Interval,
    cluster_sums,
    is_proportion,
    joined_clusters,
    mean_error,
    normal_quantile,
    t_interval,
)
from modelgauge.stats.keys import Key, key_function
from modelgauge.stats.measured import MeasuredItems

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_BLOCK = 1 << 20
"""Random numbers held at once by the sign-flip test: 8 MB."""


class Pairs(NamedTuple):
    """One measurement of two systems, joined by item id, in the first's order.

    Args:
        ids: (n,) the items that both systems were scored on.
        first: (n,) float64, the first system's values.
        second: (n,) float64, the second's.
        clusters: (n,) labels of what the items share (`MeasuredItems.shared`, and the cluster key where one was
            given); None where every item stands for itself.
        only_first: ids that only the first was scored on; they are not compared.
        only_second: likewise.
    """

    ids: tuple[str | None, ...]
    first: "NDArray[np.float64]"
    second: "NDArray[np.float64]"
    clusters: tuple[Hashable, ...] | None
    only_first: tuple[str | None, ...]
    only_second: tuple[str | None, ...]


class PairedDifference(NamedTuple):
    """How much the first system's mean exceeds the second's.

    Args:
        first: the first's mean, over the paired items.
        second: the second's.
        difference: first less second, with standard error and 95 % interval; see `paired_difference`.
        p_value: two-sided, of Student's paired t test; None for a single pair, and where all differences are equal
            and not 0 (the t test cannot judge that, the sign-flip test can).
    """

    first: float
    second: float
    difference: Estimate
    p_value: float | None


class Discordance(NamedTuple):
    """The items that two systems disagree on.

    Args:
        only_first: items that only the first got right.
        only_second: items that only the second got right.
        p_value: two-sided, of McNemar's exact test.
    """

    only_first: int
    only_second: int
    p_value: float


def pairs_of(first: MeasuredItems, second: MeasuredItems, name: str, *, cluster: Key | None = None) -> Pairs:
    """Join one measurement of two runs of the same test by item id.

    Items that one of them lacks (because they failed there, or have no such measurement) are named, not
    compared.

    Args:
        first: the first system's items.
        second: the second's.
        name: of the measurement.
        cluster: a key of the context or a function of the item, taken from the first's items.

    Raises:
        UnknownNameError: a run does not have the measurement.
        InvalidDataError: an item id occurs twice in a run.
    """
    mine, theirs = _by_id(first, name), _by_id(second, name)
    ids = tuple(item_id for item_id in mine if item_id in theirs)
    held = first.having(name)
    clusters: tuple[Hashable, ...] | None = None
    if cluster is not None:
        key = key_function(cluster)
        clusters = tuple([key(item) for item in held if item.test_item.id in theirs])
    if held.shared is not None:
        shared = [label for item, label in zip(held, held.shared, strict=True) if item.test_item.id in theirs]
        joined = joined_clusters(shared, clusters)
        clusters = None if joined is None else tuple(joined.tolist())
    return Pairs(
        ids,
        np.array([mine[item_id] for item_id in ids], dtype=np.float64),
        np.array([theirs[item_id] for item_id in ids], dtype=np.float64),
        clusters,
        tuple(item_id for item_id in mine if item_id not in theirs),
        tuple(item_id for item_id in theirs if item_id not in mine),
    )


def paired_difference(
    first: "ArrayLike", second: "ArrayLike", *, clusters: Sequence[Hashable] | None = None
) -> PairedDifference:
    """The difference of two means over the same items, with its standard error, interval and p value.

    The interval of right and wrong (only values of 0 and 1, and both of them) is `tango_interval`; with clusters,
    where all differences are equal, with each cluster counted once. Any other is Student's t, cluster-robust with
    clusters; where all differences are equal, there is none.

    Args:
        first: (n,) the first system's values, n >= 1.
        second: (n,) the second's, of the same items in the same order.
        clusters: (n,) labels of items that are not independent; see `intervals.mean_error`.

    Raises:
        InvalidDataError: the two differ in length, are empty or hold NaN or infinity.
    """
    mine, theirs = _aligned(first, second, clusters)
    codes = joined_clusters(clusters)
    error = mean_error(mine - theirs, codes)
    groups = None if codes is None else int(codes.max()) + 1
    interval: Interval | None
    binary = is_proportion(np.concatenate([mine, theirs]))
    if binary and (codes is None or not error.stderr):
        n = groups or len(mine)
        share = n / len(mine)  # 1, or what makes each cluster count once
        wins, losses = float((mine > theirs).sum()) * share, float((mine < theirs).sum()) * share
        kind, interval = "tango", tango_interval(wins, losses, n)
    else:
        kind, interval = "t" if codes is None else "cr2-t", t_interval(error)
    if binary and interval is not None:
        interval = max(-1.0, interval[0]), min(1.0, interval[1])
    estimate = Estimate(
        value=error.mean,
        n=len(mine),
        stderr=error.stderr or None,
        interval=interval,
        interval_kind=interval and kind,
        n_clusters=groups,
    )
    p_value = None
    if error.stderr:
        p_value = 2 * student_t_sf(abs(error.mean) / error.stderr, error.df)
    elif error.stderr is not None and error.mean == 0.0:
        p_value = 1.0
    return PairedDifference(mean_error(mine).mean, mean_error(theirs).mean, estimate, p_value)


def tango_interval(
    only_first: float, only_second: float, n: int, *, confidence: float = CONFIDENCE
) -> Interval:
    """The score interval for the difference of two proportions over the same items.

    Tango (1998), Statistics in Medicine 17:891-908: the differences D that the score test does not reject,

        |b - c - n D| <= z sqrt(n (2 q + D (1 - D)))

    with the b items that only the first got right, the c that only the second did, and q the most likely share
    of the latter if the difference is D. It has a width where the systems agree on every item.

    Args:
        only_first: items that only the first system got right.
        only_second: items that only the second got right; need not be whole, nor need the other.
        n: all items, 1 or more.
        confidence: the share of such intervals that hold the true difference, between 0 and 1.

    Returns:
        (low, high) of the first's proportion less the second's, within (-1, 1).

    Raises:
        InvalidDataError: the items are more than n or below 0, or the confidence is not between 0 and 1.
    """
    if min(only_first, only_second) < 0 or n < 1 or only_first + only_second > n:
        raise InvalidDataError(
            f"{only_first} and {only_second} of {n} items are no counts.",
            fix="Give the items that only one system got right, and the number of all items.",
        )
    z = normal_quantile(confidence)
    found = (only_first - only_second) / n

    def rejected(difference: float) -> bool:
        b = (2 * n - only_first + only_second) * difference - only_first - only_second
        c = -only_second * difference * (1 - difference)
        q = (math.sqrt(max(0.0, b * b - 8 * n * c)) - b) / (4 * n)
        variance = max(0.0, n * (2 * q + difference * (1 - difference)))
        return abs(n * (found - difference)) > z * math.sqrt(variance)

    def end(inside: float, outside: float) -> float:
        if not rejected(outside):
            return outside
        for _ in range(60):  # halving: each step is a bit of the result
            middle = (inside + outside) / 2
            inside, outside = (inside, middle) if rejected(middle) else (middle, outside)
        return inside

    return end(found, -1.0), end(found, 1.0)


def mcnemar_test(first: "ArrayLike", second: "ArrayLike") -> Discordance:
    """McNemar's exact test that two systems get equally many items right.

    Under that hypothesis an item on which they disagree is as likely to be the one's as the other's: binomial
    with p = 1/2 (McNemar 1947; recommended for comparing classifiers by Dietterich 1998, Neural Computation
    10:1895-1923, there with the chi-square approximation).

    Args:
        first: (n,) 0 or 1 for each item, n >= 1.
        second: (n,) likewise.

    Raises:
        InvalidDataError: a value is neither 0 nor 1, or as for `paired_difference`.
    """
    mine, theirs = _aligned(first, second)
    if not np.isin((mine, theirs), (0.0, 1.0)).all():
        raise InvalidDataError(
            "McNemar's test compares right with wrong, but there are values that are neither 0 nor 1.",
            fix="Use sign_flip_test or paired_difference for other measurements.",
        )
    wins, losses = int((mine > theirs).sum()), int((mine < theirs).sum())
    p_value = min(1.0, 2 * binomial_sf(max(wins, losses), wins + losses, 0.5))
    return Discordance(wins, losses, p_value)


def sign_flip_test(
    first: "ArrayLike",
    second: "ArrayLike",
    *,
    clusters: Sequence[Hashable] | None = None,
    permutations: int = 10_000,
    seed: int = 0,
) -> float:
    """The two-sided p value of the paired permutation test that two systems do not differ.

    If they do not, each difference could as well have the other sign (Fisher 1935, "The Design of
    Experiments", section 21). The p value is (1 + number of random sign patterns with a mean difference at
    least as large) / (1 + patterns), which is valid for any number of patterns (Phipson and Smyth 2010).
    Differences of equal size are flipped together, by one binomial draw, so that 0/1 measurements cost the
    same for any number of items.

    Args:
        first: (n,) the first system's values, n >= 1.
        second: (n,) the second's, of the same items in the same order.
        clusters: (n,) labels; the signs of a cluster are flipped together.
        permutations: random sign patterns; memory does not grow with them.
        seed: of the patterns; the same seed and data give the same p value.

    Raises:
        InvalidDataError: `permutations` is below 1, or as for `paired_difference`.
    """
    if permutations < 1:
        raise InvalidDataError(f"permutations={permutations} tests nothing.", fix="Give a number above 0.")
    mine, theirs = _aligned(first, second, clusters)
    differences = mine - theirs
    if clusters is not None:
        differences = cluster_sums(differences, clusters)
    sizes, counts = np.unique(np.abs(differences[differences != 0.0]), return_counts=True)
    # Patterns that tie with the observed one must count in spite of rounding.
    least = abs(math.fsum(differences)) - 1e-12 * math.fsum(sizes * counts)
    generator = np.random.default_rng(seed)
    block = max(1, _BLOCK // max(1, len(sizes)))
    extreme = 0
    for done in range(0, permutations, block):
        rows = min(block, permutations - done)
        positive = generator.binomial(counts, 0.5, size=(rows, len(sizes)))
        extreme += int((np.abs((2 * positive - counts) @ sizes) >= least).sum())
    return (1 + extreme) / (1 + permutations)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """P values of several comparisons, adjusted so that the chance of any false finding stays in hand.

    Holm (1979), Scandinavian Journal of Statistics 6:65-70: the k-th smallest of m is multiplied by
    (m - k + 1), and none falls below the one before it.

    Args:
        p_values: (m,) from 0 to 1.

    Returns:
        (m,) adjusted p values, in the order given.

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


def _aligned(
    first: "ArrayLike", second: "ArrayLike", clusters: Sequence[Hashable] | None = None
) -> "tuple[NDArray[np.float64], NDArray[np.float64]]":
    mine, theirs = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    lengths = {mine.shape, theirs.shape, mine.shape if clusters is None else (len(clusters),)}
    if len(lengths) != 1 or mine.ndim != 1 or not len(mine):
        raise InvalidDataError(
            f"Values of shapes {mine.shape} and {theirs.shape} are not pairs"
            + ("." if clusters is None else f" with {len(clusters)} cluster labels."),
            fix="Give one value of each system for each item, in the same order; `pairs_of` joins two runs.",
        )
    if not (np.isfinite(mine).all() and np.isfinite(theirs).all()):
        raise InvalidDataError(
            "There are values that are not finite.", fix="Leave out items without a value."
        )
    return mine, theirs


def _by_id(items: MeasuredItems, name: str) -> dict[str | None, float]:
    having = items.having(name)
    values = dict(zip((item.test_item.id for item in having), having.column(name).tolist(), strict=True))
    if len(values) < len(having):
        raise InvalidDataError(
            f"{len(having) - len(values)} items share their id with another, so that they cannot be paired.",
            fix="Give the items of a test ids that differ.",
        )
    return values
