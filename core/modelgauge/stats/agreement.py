"""How far raters agree: a judge with people, people with each other, several judges.

Kappa, alpha and AC1 are 1 where raters always agree, and 0 where they agree as often as chance would have it; they
differ in what they take chance to be. Correcting a judge's score lives in `correction`.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from modelgauge.errors import InvalidDataError
from modelgauge.stats.comparisons.bootstrap import Bca
from modelgauge.stats.intervals import CONFIDENCE, Interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

Level: TypeAlias = Literal["nominal", "ordinal", "interval", "ratio"]
"""What a distance between labels means: nothing, an order, a difference, or a ratio."""


class Ratings(NamedTuple):
    """The labels that raters gave to items; `ratings_of` makes it.

    Args:
        codes: (n, r) int64, the place of each label among the categories; -1 where a rater gave none.
        categories: (q,) all labels that there can be, in order.
    """

    codes: "NDArray[np.int64]"
    categories: tuple[Any, ...]

    @property
    def counts(self) -> "NDArray[np.float64]":
        """How many raters gave each label to each item: (n, q) float64."""
        each = self.codes[:, :, None] == np.arange(len(self.categories))
        counts: NDArray[np.float64] = each.sum(axis=1, dtype=np.float64)
        return counts


def ratings_of(rows: Sequence[Sequence[Hashable]], categories: Sequence[Hashable] | None = None) -> Ratings:
    """Labels of items by raters, ready for the coefficients of agreement.

    Args:
        rows: (n, r) for each of n >= 1 items the labels of r >= 2 raters, in the same order; None where one gave none.
        categories: (q,) all labels, in order; by default those that occur, sorted.

    Raises:
        InvalidDataError: rows differ in length, there are fewer than two raters, a label is not among the
            categories, or labels cannot be sorted.
    """
    if len({len(row) for row in rows}) != 1 or len(rows[0]) < 2:
        raise InvalidDataError(
            "Ratings are rows of one label for each of two raters or more.",
            fix="Give None where a rater gave no label.",
        )
    occurring = {label for row in rows for label in row} - {None}
    try:
        labels = tuple(sorted(occurring) if categories is None else dict.fromkeys(categories))  # type: ignore[type-var]  # caught
    except TypeError:
        raise InvalidDataError(
            f"The labels {occurring} have no order.",
            fix="Give labels of one type, or the categories in order.",
        ) from None
    unknown = [label for label in occurring if label not in labels]
    if unknown or not labels:
        raise InvalidDataError(
            f"The labels {unknown} are not among the categories {[*labels]}.",
            fix="Give all categories, and some labels.",
        )
    places = {None: -1, **{label: place for place, label in enumerate(labels)}}
    return Ratings(np.array([[places[label] for label in row] for row in rows], dtype=np.int64), labels)


def raw_agreement(ratings: Ratings) -> float | None:
    """The share of pairs of raters that agree, averaged over items; None where no item has two labels.

    At extreme prevalence (95 % of the answers are right) it is high by chance alone.

    Args:
        ratings: of items, each with any number of labels; items with fewer than two are left out.
    """
    counts = ratings.counts
    raters = counts.sum(axis=1)
    several = raters >= 2
    if not several.any():
        return None
    pairs = (counts * (counts - 1)).sum(axis=1)[several]
    return float((pairs / (raters * (raters - 1))[several]).mean())


def cohen_kappa(ratings: Ratings, *, weights: Literal["linear", "quadratic"] | None = None) -> float | None:
    """Cohen's kappa of two raters; weighted, where labels are in order and a near miss is less than a miss.

    Cohen (1960), Educational and Psychological Measurement 20:37-46; weighted, Cohen (1968), Psychological Bulletin
    70:213-220. Chance is that each rater draws labels as often as that rater gives them. At extreme prevalence it is
    low even for raters that nearly always agree: see `gwet_ac1`.

    Args:
        ratings: of two raters; items that one of them did not label are left out.
        weights: None, each disagreement counts alike; "linear", by the steps between two labels in the order of the
            categories; "quadratic", by their square.

    Returns:
        At most 1; None where there are no items, or chance alone gives full agreement (one label only).

    Raises:
        InvalidDataError: there are not two raters.
    """
    table = confusion_matrix(ratings).astype(np.float64)
    steps = np.abs(np.subtract.outer(*2 * [np.arange(len(table), dtype=np.float64)]))
    cost = steps > 0 if weights is None else steps if weights == "linear" else steps * steps
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) * cost
    return _above_chance(float((table * cost).sum()) * float(table.sum()), float(expected.sum()))


def confusion_matrix(ratings: Ratings) -> "NDArray[np.int64]":
    """How often the first rater gave each label where the second gave each: (q, q) int64, rows are the first's labels.

    Args:
        ratings: of two raters; items that one of them did not label are left out.

    Raises:
        InvalidDataError: there are not two raters.
    """
    if ratings.codes.shape[1] != 2:
        raise InvalidDataError(
            f"{ratings.codes.shape[1]} raters cannot be compared as two.",
            fix="Give two raters, or use fleiss_kappa, krippendorff_alpha or gwet_ac1.",
        )
    q = len(ratings.categories)
    both = ratings.codes[(ratings.codes >= 0).all(axis=1)]
    return np.bincount(both[:, 0] * q + both[:, 1], minlength=q * q).reshape(q, q)


def fleiss_kappa(ratings: Ratings) -> float | None:
    """Fleiss' kappa of any number of raters, who need not be the same ones for each item.

    Fleiss (1971), Psychological Bulletin 76:378-382. Chance is that all draw labels as often as all give them. Where
    labels are missing, it is the form of Gwet (2014, "Handbook of Inter-Rater Reliability", section 2.5). At extreme
    prevalence it is as low as `cohen_kappa`.

    Args:
        ratings: of items, each with any number of labels.

    Returns:
        At most 1; None where no item has two labels, or only one label occurs.
    """
    return _beyond_chance(ratings, float((_label_shares(ratings) ** 2).sum()))


def gwet_ac1(ratings: Ratings) -> float | None:
    """Gwet's AC1 of any number of raters, which stays meaningful at extreme prevalence.

    Gwet (2008), British Journal of Mathematical and Statistical Psychology 61:29-48. Chance is agreement on items that
    are hard to label, of which there are few where nearly all get the same label.

    Args:
        ratings: of items, each with any number of labels. All categories that there can be count.

    Returns:
        At most 1; None where no item has two labels, or there is one category only.
    """
    shares = _label_shares(ratings)
    if len(shares) < 2:
        return None
    return _beyond_chance(ratings, float((shares * (1 - shares)).sum()) / (len(shares) - 1))


def krippendorff_alpha(ratings: Ratings, *, level: Level = "nominal") -> float | None:
    """Krippendorff's alpha of any number of raters, for labels of any level, with missing labels.

    Krippendorff (2019), "Content Analysis", chapter 12. Chance is that labels are drawn from all that were given,
    without replacement.

    Args:
        ratings: of items, each with any number of labels; items with fewer than two are left out.
        level: what a distance between labels means: "nominal", nothing; "ordinal", how many labels were given
            between them in the order of the categories; "interval", their difference; "ratio", their difference by
            their sum. The last two are for labels that are numbers, "ratio" for those from 0 on.

    Returns:
        At most 1; None where no item has two labels, or only one label occurs.

    Raises:
        InvalidDataError: labels are not numbers where they have to be.
    """
    counts = ratings.counts
    counts = counts[counts.sum(axis=1) >= 2]
    weighted = counts / (counts.sum(axis=1, keepdims=True) - 1)
    coincidences = counts.T @ weighted - np.diag(weighted.sum(axis=0))
    totals = counts.sum(axis=0)
    cost = _distances(ratings.categories, totals, level)
    expected = float((np.outer(totals, totals) * cost).sum())
    return _above_chance(float((coincidences * cost).sum()) * (float(totals.sum()) - 1), expected)


def agreement_interval(
    coefficient: Callable[[Ratings], float | None],
    ratings: Ratings,
    *,
    resamples: int = 1000,
    seed: int = 0,
    confidence: float = CONFIDENCE,
) -> Interval | None:
    """The bootstrap interval (BCa) of a coefficient of agreement, over items like these.

    Efron (1987), JASA 82:171-185. Items are drawn with replacement, so they are taken to be a random sample,
    independent of each other; the raters are taken as they are. It has no width where raters agree on all items. For
    example `agreement_interval(cohen_kappa, ratings)`.

    Args:
        coefficient: a function of this module, or any other of `Ratings`.
        ratings: of the items.
        resamples: 100 or more.
        seed: of the draws.
        confidence: the share of such intervals that hold the true coefficient, between 0 and 1.

    Returns:
        (low, high); None where the coefficient does not exist, in more than one of 20 resamples either: those in which
        it does not are left out.

    Raises:
        InvalidDataError: `resamples` or the confidence is outside its range.
    """
    if resamples < 100 or not 0 < confidence < 1:
        raise InvalidDataError(
            f"resamples={resamples} with confidence={confidence} give no interval.",
            fix="Give 100 or more, and a confidence of 0.95 for 95 %.",
        )
    estimate, codes, generator = coefficient(ratings), ratings.codes, np.random.default_rng(seed)
    drawn = (codes[generator.integers(len(codes), size=len(codes))] for _ in range(resamples))
    values = (coefficient(ratings._replace(codes=one)) for one in drawn)
    found = np.array([value for value in values if value is not None])
    if estimate is None or len(found) < 0.95 * resamples:
        return None
    # The jackknife: items with the same labels are left out with the same effect.
    _, first, same = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    without = [coefficient(ratings._replace(codes=np.delete(codes, place, axis=0))) for place in first]
    jackknife = np.array([estimate if value is None else value for value in without])[same.ravel()]
    return Bca(np.sort(found), estimate, jackknife).interval(confidence)


def _above_chance(observed: float, expected: float) -> float | None:
    """One less the disagreement seen by that of chance; None where chance has none."""
    return 1 - observed / expected if expected else None


def _beyond_chance(ratings: Ratings, chance: float) -> float | None:
    agreement = raw_agreement(ratings)
    return None if agreement is None else _above_chance(1 - agreement, 1 - chance)


def _label_shares(ratings: Ratings) -> "NDArray[np.float64]":
    """How often each label is given: (q,), each item that has a label counted once."""
    counts = ratings.counts
    counts = counts[counts.sum(axis=1) > 0]
    shares: NDArray[np.float64] = (counts / counts.sum(axis=1, keepdims=True)).sum(axis=0) / max(
        1, len(counts)
    )
    return shares


def _distances(
    categories: tuple[Any, ...], totals: "NDArray[np.float64]", level: Level
) -> "NDArray[np.float64]":
    """The squared distance of each label to each."""
    if level == "nominal":
        return 1 - np.eye(len(categories))
    if level == "ordinal":
        middles = np.cumsum(totals) - totals / 2
        return np.subtract.outer(middles, middles) ** 2
    try:
        numbers = np.array([float(label) for label in categories])
    except (TypeError, ValueError):
        raise InvalidDataError(
            f"The labels {[*categories]} are not numbers.", fix="Use level='nominal' or level='ordinal'."
        ) from None
    if not np.isfinite(numbers).all() or (level == "ratio" and (numbers < 0).any()):
        raise InvalidDataError(
            f"The labels {[*categories]} have no {level} scale.", fix="Use level='interval'."
        )
    differences = np.subtract.outer(numbers, numbers)
    if level == "ratio":
        differences = differences / np.maximum(np.add.outer(numbers, numbers), 1e-300)
    squares: NDArray[np.float64] = differences**2
    return squares
