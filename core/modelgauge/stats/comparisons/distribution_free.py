"""Paired tests that assume no distribution of the differences: random signs, ranks."""

import math
from typing import TYPE_CHECKING

import numpy as np

from modelgauge.errors import InvalidDataError
from modelgauge.stats.comparisons.pairs import aligned
from modelgauge.stats.intervals import cluster_sums, power_of_two

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from modelgauge.stats.intervals import Labels

EXACT_UP_TO = 20
"""So many differences that are not 0 have all their sign patterns counted, a million; more have a sample of them."""

_OFTEN = 200
"""So many differences of one size are flipped by one binomial draw."""

_LARGE = 2.0**900
"""Sums of smaller numbers do not overflow."""

_SIGNS = 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).T - 1
"""(8, 256): the signs that a random byte gives to eight differences."""


def sign_flip_test(
    baseline: "ArrayLike",
    candidate: "ArrayLike",
    *,
    clusters: "Labels | None" = None,
    permutations: int = 10_000,
    seed: int = 0,
) -> float:
    """Return the two-sided p value of the paired permutation test that two systems do not differ.

    If they do not, each difference could as well have the other sign (Fisher 1935, "The Design of
    Experiments", section 21). Where up to 20 differences (or sums of clusters) are not 0, the p value is the share
    of all sign patterns that have a mean difference at least as large. Where there are more, it is
    (1 + number of random patterns as large) / (1 + patterns), which is valid for any number of patterns (Phipson and
    Smyth 2010, https://doi.org/10.2202/1544-6115.1585). It is about these items, and assumes that they (or the
    clusters) are independent.

    Args:
        baseline: (n,) the baseline's values, n >= 1.
        candidate: (n,) the candidate's values, of the same items in the same order.
        clusters: (n,) labels; the signs of a cluster are flipped together.
        permutations: random sign patterns; 8 bytes of memory for each.
        seed: of the patterns; the same seed and data give the same p value.

    Raises:
        InvalidDataError: `permutations` is below 1; else see `paired_difference`.
    """
    if permutations < 1:
        raise InvalidDataError(f"permutations is {permutations}.", fix="Give a number above 0.")
    differences = _units(baseline, candidate, clusters)
    sizes, counts = np.unique(np.abs(differences), return_counts=True)
    # Patterns that tie with the observed one must count in spite of rounding.
    least = abs(math.fsum(differences)) - 1e-12 * math.fsum(sizes * counts)
    if len(differences) <= EXACT_UP_TO:
        sums = np.zeros(1)
        for size in np.repeat(sizes, counts):
            sums = np.concatenate([sums + size, sums - size])
        return float((np.abs(sums) >= least).mean())
    sums = _random_sums(sizes, counts, permutations, seed)
    return (1 + int((np.abs(sums) >= least).sum())) / (1 + permutations)


def _units(baseline: "ArrayLike", candidate: "ArrayLike", clusters: "Labels | None") -> "NDArray[np.float64]":
    """Return the nonzero differences (or their sums by cluster), scaled so that no sum overflows."""
    before, after = aligned(baseline, candidate, clusters)
    differences = after - before
    if (largest := float(np.abs(differences).max())) > _LARGE:  # else the smallest would become 0
        differences /= power_of_two(largest)
    if clusters is not None:
        differences = cluster_sums(differences, clusters)
    units: NDArray[np.float64] = differences[differences != 0.0]
    return units


def _random_sums(
    sizes: "NDArray[np.float64]", counts: "NDArray[np.int64]", patterns: int, seed: int
) -> "NDArray[np.float64]":
    """Return sums of the differences with random signs: (patterns,).

    A size that occurs often gets all its signs by one binomial draw. The others are taken by eights: a random byte
    chooses one of the 256 sums that eight differences can have.
    """
    generator = np.random.default_rng(seed)
    sums = np.zeros(patterns)
    often = counts >= _OFTEN
    for size, count in zip(sizes[often], counts[often], strict=True):
        sums += (2 * generator.binomial(count, 0.5, size=patterns) - count) * size
    rare = np.repeat(sizes[~often], counts[~often])
    for octet in np.pad(rare, (0, -len(rare) % 8)).reshape(-1, 8):
        sums += (octet @ _SIGNS)[np.frombuffer(generator.bytes(patterns), np.uint8)]
    return sums


def wilcoxon_test(baseline: "ArrayLike", candidate: "ArrayLike") -> float:
    """Return the two-sided p value of Wilcoxon's signed-rank test that the differences are symmetric around 0.

    Wilcoxon (1945), Biometrics Bulletin 1:80-83. Differences of 0 are left out, equal sizes share their mean rank.
    Up to 50 differences the p value is exact, with equal sizes too; beyond it is the normal approximation, without
    correction for continuity. It looks at ranks, so that it can find a difference where the means are equal, and the
    reverse. It is about questions like these, and assumes that the items are independent.

    Args:
        baseline: (n,) the baseline's values, n >= 1.
        candidate: (n,) the candidate's values, of the same items in the same order.

    Raises:
        InvalidDataError: see `paired_difference`.
    """
    ranks, seen = _signed_ranks(baseline, candidate)
    total = int(ranks.sum())
    if len(ranks) > 50:
        z = (seen - total / 2) / (math.sqrt(float((ranks.astype(np.float64) ** 2).sum())) / 2)
        return math.erfc(abs(z) / math.sqrt(2))
    chances = np.ones(1)  # of each sum of the positive ranks
    for rank in ranks:
        chances = np.pad(chances, (0, rank)) / 2 + np.pad(chances, (rank, 0)) / 2
    return min(1.0, 2 * min(float(chances[: seen + 1].sum()), float(chances[seen:].sum())))


def rank_direction(baseline: "ArrayLike", candidate: "ArrayLike") -> int:
    """Return where the ranks of Wilcoxon's test put the candidate: 1 above the baseline, -1 below it, 0 equal to it.

    The difference of the means may have the other sign. Arguments and errors are those of `wilcoxon_test`.
    """
    ranks, above = _signed_ranks(baseline, candidate)
    return int(np.sign(2 * above - int(ranks.sum())))


def _signed_ranks(baseline: "ArrayLike", candidate: "ArrayLike") -> "tuple[NDArray[np.int64], int]":
    """Twice the mean ranks of the differences that are not 0, which are whole, and the sum of those above 0."""
    differences = _units(baseline, candidate, None)
    _, places, counts = np.unique(np.abs(differences), return_inverse=True, return_counts=True)
    ranks: NDArray[np.int64] = (2 * np.cumsum(counts) - counts + 1)[places]
    return ranks, int(ranks[differences > 0].sum())
