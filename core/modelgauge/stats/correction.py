"""Scores corrected for the errors of the judge that gave them, by items that people labelled too.

How far judge and people agree is measured in `agreement`.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from modelgauge.errors import InvalidDataError
from modelgauge.stats.intervals import (
    CONFIDENCE,
    Interval,
    MeanError,
    bounded_error,
    cluster_codes,
    is_proportion,
    mean_error,
    normal_quantile,
    t_interval,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from modelgauge.stats.intervals import Labels


class CorrectedMean(NamedTuple):
    """A mean of people's labels, estimated with the help of a judge.

    Args:
        value: the estimate.
        stderr: its standard error.
        interval: its interval; None if nothing varies and no range is declared.
        weight: how far the judge is relied on (λ), from 0 (the mean of the labels alone) to 1 (fully).
    """

    value: float
    stderr: float
    interval: Interval | None
    weight: float


class CorrectedShare(NamedTuple):
    """A share of positive items, corrected for the judge's sensitivity and specificity.

    Args:
        value: the estimate, from 0 to 1.
        interval: its interval, within [0, 1].
        sensitivity: the share of the positive items that the judge finds.
        specificity: the share of the negative items that the judge finds.
    """

    value: float
    interval: Interval
    sensitivity: float
    specificity: float


def prediction_powered_mean(
    labels: "ArrayLike",
    judged: "ArrayLike",
    unlabelled: "ArrayLike",
    *,
    declared: Interval | None = None,
    clusters: "Labels | None" = None,
    unlabelled_clusters: "Labels | None" = None,
    confidence: float = CONFIDENCE,
) -> CorrectedMean:
    """Estimate the mean that people would give all items, from a labelled sample and a judge's scores (PPI++).

    Angelopoulos, Duchi and Zrnic (2023), https://arxiv.org/abs/2311.01453, example 6.1: the judge's mean over the
    unlabelled items, plus its mean error over the labelled ones, with the judge weighted by

        λ = cov(labels, judged) / ((1 + n / N) var(judged and unlabelled)), cut to [0, 1]

    so that a useless judge does no harm. Variances have the divisor n - 1.

    The interval is not theirs, which uses the normal distribution. A small labelled sample contains few of a good
    judge's errors, or none, so it underestimates their spread. So the errors (labels less λ times the scores) count
    together with imaginary observations at both ends of the range that they can have, as in `bounded_interval`, and so
    do the judge's scores of the unlabelled items. The interval is Student's t of that. It is about questions like
    these, and is right whatever the judge's errors are, if the labelled items are a random sample of all. The answers
    of a panel of judges to one item are one score (their mean, say), not several items.

    Args:
        labels: (n,) people's labels, n >= 2.
        judged: (n,) the judge's scores of the same items.
        unlabelled: (N,) the judge's scores of the unlabelled items, N >= 2.
        declared: the lowest and the highest possible label and score; estimate and interval stay within. By default
            the lowest and the highest that occur, within which they need not stay unless all are 0 or 1.
        clusters: (n,) labels of items that are not independent.
        unlabelled_clusters: (N,) the same of the unlabelled items; equal labels, one cluster, in both.
        confidence: the share of such intervals that hold the true mean, between 0 and 1.

    Raises:
        InvalidDataError: shapes differ, values are too few or not finite, or the confidence is not between 0 and 1.
    """
    people, scores, others = _samples(labels, judged, unlabelled)
    every, weight = np.concatenate([people, scores, others]), _weight(people, scores, others)
    errors = people - weight * scores
    if declared is None and is_proportion(every):
        declared = 0.0, 1.0
    low, high = declared or (float(every.min()), float(every.max()))
    covariance = weight * _covariance(others, errors, unlabelled_clusters, clusters)
    plain = _sum_of_means(
        mean_error(others, unlabelled_clusters), mean_error(errors, clusters), weight, covariance
    )
    careful = _sum_of_means(
        bounded_error(others, (low, high), unlabelled_clusters),
        bounded_error(errors, (low - weight * high, high - weight * low), clusters),
        weight,
        covariance,
    )
    value, interval = plain.mean, t_interval(careful, confidence=confidence)
    if declared is not None:
        value = min(max(value, low), high)
        interval = interval and (max(interval[0], low), min(interval[1], high))
    return CorrectedMean(value, plain.stderr or 0.0, _around(value, interval), weight)


def _around(value: float, interval: Interval | None) -> Interval | None:
    """Widen an interval, if need be, so that it contains a value."""
    return None if interval is None else (min(interval[0], value), max(interval[1], value))


def _samples(
    labels: "ArrayLike", judged: "ArrayLike", unlabelled: "ArrayLike"
) -> "tuple[NDArray[np.float64], ...]":
    people, scores, others = (np.asarray(values, dtype=np.float64) for values in (labels, judged, unlabelled))
    fits = people.shape == scores.shape and people.ndim == others.ndim == 1
    if not fits or min(len(people), len(others)) < 2:
        raise InvalidDataError(
            f"Labels of shape {people.shape} do not fit scores of {scores.shape} and {others.shape}.",
            fix="Give a label and a score for each of two or more items, and the scores of two or more others.",
        )
    if not all(np.isfinite(values).all() for values in (people, scores, others)):
        raise InvalidDataError(
            "There are values that are not finite.", fix="Leave out items without a value."
        )
    return people, scores, others


def _weight(
    people: "NDArray[np.float64]", scores: "NDArray[np.float64]", others: "NDArray[np.float64]"
) -> float:
    """Return the weight λ of the judge."""
    together = float(np.var(np.concatenate([scores, others]), ddof=1))
    shared = float(((people - people.mean()) * (scores - scores.mean())).mean())
    return min(1.0, max(0.0, shared / ((1 + len(people) / len(others)) * together))) if together else 0.0


def _sum_of_means(judged: MeanError, errors: MeanError, weight: float, covariance: float) -> MeanError:
    """Return the weighted mean of a judge's scores plus their mean error."""
    variance = (weight * (judged.stderr or 0.0)) ** 2 + (errors.stderr or 0.0) ** 2 + 2 * covariance
    return MeanError(weight * judged.mean + errors.mean, math.sqrt(variance), errors.df)


def _covariance(
    first: "NDArray[np.float64]",
    second: "NDArray[np.float64]",
    of_first: "Labels | None",
    of_second: "Labels | None",
) -> float:
    """Return the covariance of two means over the same clusters, at least 0."""
    if of_first is None or of_second is None:
        return 0.0
    codes = cluster_codes([*of_first, *of_second])
    parts = [
        np.bincount(own, (values - values.mean()) / len(values), minlength=int(codes.max()) + 1)
        for values, own in ((first, codes[: len(first)]), (second, codes[len(first) :]))
    ]
    return max(0.0, float(parts[0] @ parts[1]))


def rogan_gladen(
    positive: tuple[int, int],
    found_positive: tuple[int, int],
    found_negative: tuple[int, int],
    *,
    confidence: float = CONFIDENCE,
) -> CorrectedShare:
    """Estimate the true share of positive items from a judge whose sensitivity and specificity were measured on
    others.

    Rogan and Gladen (1978), American Journal of Epidemiology 107:71-76: (share + specificity - 1) / (sensitivity +
    specificity - 1), cut to [0, 1]. The interval is that of Lang and Reiczigel (2014), Preventive Veterinary Medicine
    113:13-22, which allows for the errors of all three shares. It assumes three independent samples, and that the judge
    errs on the judged items as often as on the labelled ones: about one SUT, with labels of that SUT's answers.

    Args:
        positive: (judged items that the judge calls positive, all judged items).
        found_positive: (items that people and the judge call positive, all that people call positive).
        found_negative: (items that people and the judge call negative, all that people call negative).
        confidence: the share of such intervals that hold the true share, between 0 and 1.

    Raises:
        InvalidDataError: a count is above its total, a total is 0, the confidence is not between 0 and 1, or
            sensitivity and specificity together are 1 or less: such a judge is of no use.
    """
    counts = (positive, found_positive, found_negative)
    if not all(0 <= count <= total and total >= 1 for count, total in counts):
        raise InvalidDataError(
            "Each count must be between 0 and its total: "
            + ", ".join(f"{count} of {total}" for count, total in counts)
            + ".",
            fix="Label at least one positive and one negative item.",
        )
    share, sensitivity, specificity = (count / total for count, total in counts)
    (_, _), (found, positives), (refused, negatives) = counts
    if found * negatives + refused * positives <= positives * negatives:  # exactly
        raise InvalidDataError(
            f"A judge with sensitivity {sensitivity:.2f} and specificity {specificity:.2f} is no better than chance.",
            fix="Use a judge whose sensitivity and specificity add up to more than 1.",
        )
    z = normal_quantile(confidence)
    # Imaginary observations, half of them positive: z² judged items, 2 labelled ones of each kind.
    added = [
        ((count + more / 2) / (total + more), total + more)
        for (count, total), more in zip(counts, (z * z, 2, 2), strict=True)
    ]
    judged, right, wrong = (part * (1 - part) / total for part, total in added)
    youden = added[1][0] + added[2][0] - 1
    interval = 0.0, 1.0  # of a judge of whom too little is known
    if youden > 0:
        middle = (added[0][0] + added[2][0] - 1) / youden
        shift = 2 * z * z * (middle * right - (1 - middle) * wrong)
        half = z * math.sqrt(judged + middle**2 * right + (1 - middle) ** 2 * wrong) / youden
        interval = _within_0_and_1(middle + shift - half), _within_0_and_1(middle + shift + half)
    estimate = _within_0_and_1((share + specificity - 1) / (sensitivity + specificity - 1))
    return CorrectedShare(estimate, interval, sensitivity, specificity)


def _within_0_and_1(value: float) -> float:
    return min(1.0, max(0.0, value))
