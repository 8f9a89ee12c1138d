"""Scores corrected for the errors of the judge that gave them, by items that people labelled too.

How far judge and people agree is measured in `agreement`.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from modelgauge.errors import InvalidDataError
from modelgauge.stats.intervals import CONFIDENCE, Interval, MeanError, normal_quantile, t_interval

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


class CorrectedMean(NamedTuple):
    """A mean of people's labels, estimated with the help of a judge.

    Args:
        value: the estimate.
        stderr: its standard error.
        interval: its interval; None if nothing varies.
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
    labels: "ArrayLike", judged: "ArrayLike", unlabelled: "ArrayLike", *, confidence: float = CONFIDENCE
) -> CorrectedMean:
    """The mean that people would give all items, from a labelled sample and a judge's scores of all (PPI++).

    Angelopoulos, Duchi and Zrnic (2023), https://arxiv.org/abs/2311.01453, example 6.1: the judge's mean over the
    unlabelled items, plus its mean error over the labelled ones, with the judge weighted by

        λ = cov(labels, judged) / ((1 + n / N) var(judged and unlabelled)), cut to [0, 1]

    so that a useless judge does no harm. Variances have the divisor n - 1, and the interval Student's t with n - 1
    degrees of freedom, which is a little wider than theirs where few items are labelled. It is about questions like
    these, and holds whatever the judge's errors are, if the labelled items are a random sample of all, and items are
    independent. The answers of a panel of judges to one item are one score (their mean, say), not several items.

    Args:
        labels: (n,) people's labels, n >= 2.
        judged: (n,) the judge's scores of the same items.
        unlabelled: (N,) the judge's scores of the unlabelled items, N >= 2.
        confidence: the share of such intervals that hold the true mean, between 0 and 1.

    Raises:
        InvalidDataError: shapes differ, there are too few values, some are not finite, or the confidence is not
            between 0 and 1.
    """
    people, scores, unlabelled_scores = (
        np.asarray(values, dtype=np.float64) for values in (labels, judged, unlabelled)
    )
    if (
        people.shape != scores.shape
        or people.ndim != 1
        or unlabelled_scores.ndim != 1
        or min(len(people), len(unlabelled_scores)) < 2
    ):
        raise InvalidDataError(
            f"Labels of shape {people.shape} do not fit scores of {scores.shape} and {unlabelled_scores.shape}.",
            fix="Give a label and a score for each of two items or more, and the scores of two others or more.",
        )
    if not all(np.isfinite(values).all() for values in (people, scores, unlabelled_scores)):
        raise InvalidDataError(
            "There are values that are not finite.", fix="Leave out items without a value."
        )
    n, m = len(people), len(unlabelled_scores)
    together = float(np.var(np.concatenate([scores, unlabelled_scores]), ddof=1))
    shared = float(((people - people.mean()) * (scores - scores.mean())).mean())
    weight = min(1.0, max(0.0, shared / ((1 + n / m) * together))) if together else 0.0
    errors = people - weight * scores
    value = weight * float(unlabelled_scores.mean()) + float(errors.mean())
    stderr = math.sqrt(weight**2 * _variance_of_mean(unlabelled_scores) + _variance_of_mean(errors))
    interval = t_interval(MeanError(value, stderr, n - 1), confidence=confidence)
    return CorrectedMean(value, stderr, interval, weight)


def rogan_gladen(
    positive: tuple[int, int],
    found_positive: tuple[int, int],
    found_negative: tuple[int, int],
    *,
    confidence: float = CONFIDENCE,
) -> CorrectedShare:
    """The true share of positive items, from a judge whose sensitivity and specificity were measured on others.

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
            "Each count is from 0 to its total: "
            + ", ".join(f"{count} of {total}" for count, total in counts)
            + ".",
            fix="Label positive and negative items, one of each at least.",
        )
    share, sensitivity, specificity = (count / total for count, total in counts)
    (_, _), (found, positives), (refused, negatives) = counts
    if found * negatives + refused * positives <= positives * negatives:  # exactly
        raise InvalidDataError(
            f"A judge with sensitivity {sensitivity:.2f} and specificity {specificity:.2f} tells nothing.",
            fix="Use a judge of which both together are above 1.",
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


def _variance_of_mean(values: "NDArray[np.float64]") -> float:
    return float(values.var(ddof=1)) / len(values)


def _within_0_and_1(value: float) -> float:
    return min(1.0, max(0.0, value))
