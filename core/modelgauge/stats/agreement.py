"""Agreement of raters: a judge with people, people with each other, several judges.

Kappa, alpha and AC1 are 1 where raters always agree, and 0 where they agree as often as chance would have it; they
differ in what they take chance to be. Correcting a judge's score lives in `correction`.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from modelgauge.errors import InvalidDataError
from modelgauge.stats.comparisons.bootstrap import Bca, check_resampling, units_drawn
from modelgauge.stats.intervals import CONFIDENCE, Interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from modelgauge.stats.intervals import Labels

_NOISE = 1e-12
_BLOCK = 1 << 20
"""Numbers that say how often items are in samples, at once: 8 MB for each of several arrays."""

Level: TypeAlias = Literal["nominal", "ordinal", "interval", "ratio"]
"""Scale of labels, which determines distances: nominal, ordinal, interval or ratio."""


class Ratings(NamedTuple):
    """The labels that raters gave to items, made by `ratings_of`.

    Args:
        codes: (n, r) int64, the place of each label among the categories; -1 where a rater gave none.
        categories: (q,) all labels that there can be, in order.
    """

    codes: "NDArray[np.int64]"
    categories: tuple[Any, ...]

    @property
    def counts(self) -> "NDArray[np.float64]":
        """The number of raters who gave each label to each item: (n, q) float64."""
        each = self.codes[:, :, None] == np.arange(len(self.categories))
        counts: NDArray[np.float64] = each.sum(axis=1, dtype=np.float64)
        return counts


def ratings_of(rows: Sequence[Sequence[Hashable]], categories: Sequence[Hashable] | None = None) -> Ratings:
    """Prepare labels of items by raters for the coefficients of agreement.

    Args:
        rows: (n, r) for each of n >= 1 items the labels of r >= 2 raters, in the same order; None if one gave none.
        categories: (q,) all labels, in order; by default those that occur, sorted.

    Raises:
        InvalidDataError: rows differ in length, there are fewer than two raters, a label is not among the
            categories, or labels cannot be sorted.
    """
    if len({len(row) for row in rows}) != 1 or len(rows[0]) < 2:
        raise InvalidDataError(
            "Each row of ratings must have one label for each of two or more raters.",
            fix="Give None if a rater gave no label.",
        )
    occurring = {label for row in rows for label in row} - {None}
    try:
        labels = tuple(sorted(occurring) if categories is None else dict.fromkeys(categories))  # type: ignore[type-var]  # caught
    except TypeError:
        raise InvalidDataError(
            f"The labels {occurring} cannot be sorted.",
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
    """Return the share of pairs of raters that agree, averaged over items; None if no item has two labels.

    At extreme prevalence (95 % of the answers are right) it is high by chance alone.

    Args:
        ratings: of items, each with any number of labels; items with fewer than two are left out.
    """
    return _of_all(_raw_agreement, ratings)


def cohen_kappa(ratings: Ratings, *, weights: Literal["linear", "quadratic"] | None = None) -> float | None:
    """Return Cohen's kappa of two raters. With weights, close labels on a scale disagree less than distant ones.

    Cohen (1960), Educational and Psychological Measurement 20:37-46; weighted, Cohen (1968), Psychological Bulletin
    70:213-220. Agreement by chance is that of two raters who draw labels at random, each with the rater's own
    frequencies. At extreme prevalence kappa is low even for raters that nearly always agree: see `gwet_ac1`.

    Args:
        ratings: of two raters; items that one of them did not label are left out.
        weights: None if all disagreements count the same; "linear" for the number of steps between two labels in the
            order of the categories; "quadratic" for its square.

    Returns:
        At most 1; None if there are no items, or chance alone gives full agreement (one label only).

    Raises:
        InvalidDataError: there are not two raters.
    """
    return _of_all(_cohen_kappa, ratings, weights=weights)


def confusion_matrix(ratings: Ratings) -> "NDArray[np.int64]":
    """Count each pair of labels: (q, q) int64, rows are the first rater's labels, columns the second's.

    Args:
        ratings: of two raters; items that one of them did not label are left out.

    Raises:
        InvalidDataError: there are not two raters.
    """
    both = _pairs(ratings)
    both, q = both[(both >= 0).all(axis=1)], len(ratings.categories)
    return np.bincount(both[:, 0] * q + both[:, 1], minlength=q * q).reshape(q, q)


def fleiss_kappa(ratings: Ratings) -> float | None:
    """Fleiss' kappa of any number of raters, who may differ from item to item.

    Fleiss (1971), Psychological Bulletin 76:378-382. Agreement by chance is that of raters who draw labels at random,
    with the frequencies of all labels. Where labels are missing, it is the form of Gwet (2014, "Handbook of Inter-Rater
    Reliability", section 2.5). At extreme prevalence it is as low as `cohen_kappa`.

    Args:
        ratings: of items, each with any number of labels.

    Returns:
        At most 1; None if no item has two labels, or only one label occurs.
    """
    return _of_all(_fleiss_kappa, ratings)


def gwet_ac1(ratings: Ratings) -> float | None:
    """Return Gwet's AC1 for any number of raters, which stays meaningful at extreme prevalence.

    Gwet (2008), British Journal of Mathematical and Statistical Psychology 61:29-48. Agreement by chance happens on
    items that are hard to label; if nearly all items get the same label, there are few.

    Args:
        ratings: of items, each with any number of labels. All categories that there can be count.

    Returns:
        At most 1; None if no item has two labels, or there is one category only.
    """
    return _of_all(_gwet_ac1, ratings)


def krippendorff_alpha(ratings: Ratings, *, level: Level = "nominal") -> float | None:
    """Return Krippendorff's alpha for any number of raters, any level of labels, and missing labels.

    Krippendorff (2019), "Content Analysis", chapter 12. Agreement by chance is that of labels drawn from all labels of
    the sample, without replacement.

    Args:
        ratings: of items, each with any number of labels; items with fewer than two are left out.
        level: the distance between labels: "nominal" for names without order; "ordinal" for the number of labels
            between them in the order of the categories; "interval" for their difference; "ratio" for their difference
            divided by their sum. The last two are for labels that are numbers, "ratio" for those from 0 on.

    Returns:
        At most 1; None if no item has two labels, or only one label occurs.

    Raises:
        InvalidDataError: labels are not numbers where they have to be.
    """
    return _of_all(_krippendorff_alpha, ratings, level=level)


def agreement_interval(
    coefficient: Callable[[Ratings], float | None],
    ratings: Ratings,
    *,
    clusters: "Labels | None" = None,
    resamples: int = 1000,
    seed: int = 0,
    confidence: float = CONFIDENCE,
) -> Interval | None:
    """Return the bootstrap interval (BCa) of a coefficient of agreement, over items like these.

    Efron (1987), JASA 82:171-185. Items are drawn with replacement, so they are taken to be a random sample,
    independent of each other; the raters are taken as they are. Where they agree on all items, nothing varies, and the
    bootstrap has no interval. For example `agreement_interval(cohen_kappa, ratings)`.

    Args:
        coefficient: a function of this module, or any other of `Ratings`.
        ratings: of the items.
        clusters: a label for each item. Items with equal labels are not independent, and are drawn together.
        resamples: 100 or more.
        seed: of the draws.
        confidence: the share of such intervals that hold the true coefficient, between 0 and 1.

    Returns:
        (low, high); None if the coefficient does not exist, or in more than one of 20 resamples does not (they are left
        out), or is the same in all.

    Raises:
        InvalidDataError: `resamples` or the confidence is outside its range.
    """
    found = bootstrapped(
        [make_statistic(coefficient)],
        ratings,
        clusters=clusters,
        resamples=resamples,
        seed=seed,
        confidence=confidence,
    )
    return found[0][1]


Statistic: TypeAlias = "Callable[[Ratings, NDArray[np.float64]], NDArray[np.float64]]"
"""A coefficient of agreement of many samples of the same items.

Its second argument is (b, n) float64, how often each item is in each sample. It returns (b,) float64, NaN where the
coefficient does not exist.
"""


def bootstrapped(
    statistics: Sequence[Statistic],
    ratings: Ratings,
    *,
    clusters: "Labels | None" = None,
    resamples: int = 1000,
    seed: int = 0,
    confidence: float = CONFIDENCE,
) -> list[tuple[float | None, Interval | None]]:
    """Compute several coefficients of the same ratings, each with its interval; see `agreement_interval`."""
    check_resampling(resamples, confidence)
    # Items with the same labels are one item that is there several times.
    codes, place, times = np.unique(ratings.codes, axis=0, return_inverse=True, return_counts=True)
    items_of, place = units_drawn(place.ravel(), len(codes), clusters)
    n, kinds, generator = len(place), int(place.max()) + 1, np.random.default_rng(seed)
    drawn = (
        items_of(np.bincount(place[generator.integers(n, size=n)], minlength=kinds)) for _ in range(resamples)
    )
    without_one = (times - items_of(np.arange(kinds) == left_out) for left_out in range(kinds))
    samples = chain([times], drawn, without_one)
    distinct, values = ratings._replace(codes=codes), []
    while block := [*islice(samples, max(1, _BLOCK // len(codes)))]:
        values.append([statistic(distinct, np.array(block, dtype=np.float64)) for statistic in statistics])
    return [_with_interval(row, resamples, place, confidence) for row in np.concatenate(values, axis=1)]


def _with_interval(
    values: "NDArray[np.float64]", resamples: int, place: "NDArray[np.int64]", confidence: float
) -> tuple[float | None, Interval | None]:
    estimate, found, jackknife = float(values[0]), values[1 : resamples + 1], values[resamples + 1 :]
    found = found[~np.isnan(found)]
    if math.isnan(estimate):
        return None, None
    if len(found) < 0.95 * resamples or np.ptp(found) < _NOISE:
        return estimate, None
    jackknife = np.where(np.isnan(jackknife), estimate, jackknife)[place]
    return estimate, Bca(np.sort(found), estimate, jackknife).interval(confidence)


def make_statistic(coefficient: Callable[[Ratings], float | None]) -> Statistic:
    """Return the statistic of a coefficient. Fast for those of this module, even with options set by `partial`."""
    function: Any = coefficient.func if isinstance(coefficient, partial) else coefficient
    if function in _STATISTICS:
        return partial(_STATISTICS[function], **getattr(coefficient, "keywords", {}))

    def one_by_one(ratings: Ratings, times: "NDArray[np.float64]") -> "NDArray[np.float64]":
        samples = (np.repeat(ratings.codes, row.astype(np.int64), axis=0) for row in times)
        values = [coefficient(ratings._replace(codes=codes)) for codes in samples]
        return np.array([math.nan if value is None else value for value in values])

    return one_by_one


def ratio(part: "NDArray[np.float64]", whole: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Divide one array by another; NaN where the divisor is 0."""
    result: NDArray[np.float64] = np.divide(
        part, whole, out=np.full(np.broadcast_shapes(part.shape, whole.shape), math.nan), where=whole != 0
    )
    return result


def _of_all(
    statistic: Callable[..., "NDArray[np.float64]"], ratings: Ratings, **options: Any
) -> float | None:
    value = float(statistic(ratings, np.ones((1, len(ratings.codes))), **options)[0])
    return None if math.isnan(value) else value


def _raw_agreement(ratings: Ratings, times: "NDArray[np.float64]") -> "NDArray[np.float64]":
    counts, raters = ratings.counts, ratings.counts.sum(axis=1)
    several = raters >= 2
    pairs = (counts * (counts - 1)).sum(axis=1) / np.maximum(raters * (raters - 1), 1)
    return ratio(times @ pairs, times @ several)


def _cohen_kappa(
    ratings: Ratings, times: "NDArray[np.float64]", weights: Literal["linear", "quadratic"] | None = None
) -> "NDArray[np.float64]":
    codes, places = _pairs(ratings), np.arange(len(ratings.categories))
    both = (codes >= 0).all(axis=1)
    codes, times = codes[both], times[:, both]
    steps = np.abs(np.subtract.outer(places, places)).astype(np.float64)
    cost = steps > 0 if weights is None else steps if weights == "linear" else steps * steps
    first, second = (times @ (codes[:, [rater]] == places) for rater in (0, 1))
    expected = ((first @ cost) * second).sum(axis=1)
    return 1 - ratio((times @ cost[codes[:, 0], codes[:, 1]]) * times.sum(axis=1), expected)


def _pairs(ratings: Ratings) -> "NDArray[np.int64]":
    if ratings.codes.shape[1] != 2:
        raise InvalidDataError(
            f"There must be two raters, not {ratings.codes.shape[1]}.",
            fix="Give two raters, or use fleiss_kappa, krippendorff_alpha or gwet_ac1.",
        )
    return ratings.codes


def _fleiss_kappa(ratings: Ratings, times: "NDArray[np.float64]") -> "NDArray[np.float64]":
    return _beyond_chance(ratings, times, (_label_shares(ratings, times) ** 2).sum(axis=1))


def _gwet_ac1(ratings: Ratings, times: "NDArray[np.float64]") -> "NDArray[np.float64]":
    shares = _label_shares(ratings, times)
    chance = (shares * (1 - shares)).sum(axis=1)
    return _beyond_chance(ratings, times, ratio(chance, np.array(len(ratings.categories) - 1.0)))


def _krippendorff_alpha(
    ratings: Ratings, times: "NDArray[np.float64]", level: Level = "nominal"
) -> "NDArray[np.float64]":
    if level == "ordinal" and len(times) > 1:  # its distances are those of a sample
        return np.concatenate([_krippendorff_alpha(ratings, row[np.newaxis], level) for row in times])
    several = ratings.counts.sum(axis=1) >= 2
    counts, times = ratings.counts[several], times[:, several]
    totals = times @ counts
    cost = _distances(ratings.categories, totals[0], level)
    disagreement = ((counts @ cost) * counts).sum(axis=1) / (counts.sum(axis=1) - 1)
    expected = ((totals @ cost) * totals).sum(axis=1)
    return 1 - ratio((times @ disagreement) * (totals.sum(axis=1) - 1), expected)


_STATISTICS: dict[Any, Callable[..., "NDArray[np.float64]"]] = {
    raw_agreement: _raw_agreement,
    cohen_kappa: _cohen_kappa,
    fleiss_kappa: _fleiss_kappa,
    gwet_ac1: _gwet_ac1,
    krippendorff_alpha: _krippendorff_alpha,
}


def _beyond_chance(
    ratings: Ratings, times: "NDArray[np.float64]", chance: "NDArray[np.float64]"
) -> "NDArray[np.float64]":
    return 1 - ratio(1 - _raw_agreement(ratings, times), 1 - chance)


def _label_shares(ratings: Ratings, times: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Return how often each label is given: (b, q), counting each labelled item once."""
    raters = ratings.counts.sum(axis=1)
    shares = ratings.counts / np.maximum(raters, 1)[:, np.newaxis]
    return ratio(times @ shares, (times @ (raters > 0))[:, np.newaxis])


def _distances(
    categories: tuple[Any, ...], totals: "NDArray[np.float64]", level: Level
) -> "NDArray[np.float64]":
    """Return the squared distance between all pairs of labels."""
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
            f"The labels {[*categories]} have no place on the scale of level='{level}'.",
            fix="Use level='interval'.",
        )
    differences = np.subtract.outer(numbers, numbers)
    if level == "ratio":
        differences = differences / np.maximum(np.add.outer(numbers, numbers), 1e-300)
    squares: NDArray[np.float64] = differences**2
    return squares
