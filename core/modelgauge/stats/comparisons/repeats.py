"""How much several answers to an item vary, compared with how much the items vary."""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from modelgauge.errors import InvalidDataError
from modelgauge.wording.phrases import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike


class RepeatVariance(NamedTuple):
    """The variance between items, and that of repeated answers within an item.

    Args:
        between: ω², the variance of the items' true values; 0 where the estimate is below 0.
        within: σ², the mean variance of single answers around the true value of their item.
    """

    between: float
    within: float

    @property
    def correlation(self) -> float | None:
        """The correlation of two answers to one item (intraclass): ω² / (ω² + σ²); None if nothing varies."""
        return self.between / (self.between + self.within) if self.between + self.within else None


def repeat_variance(repeats: "Sequence[ArrayLike]") -> RepeatVariance:
    """Split the variance of measurements into its parts between items and within items.

    With the R_i answers to item i: σ² is their pooled variance, and ω² the variance of the items' means less
    σ² · mean(1 / R_i), what the answers' noise adds to it (Miller 2024, "Adding Error Bars to Evals",
    https://arxiv.org/abs/2411.00640, section 3; for equal R_i this is the analysis of variance). With R repeats the
    mean over n items has the variance (ω² + σ² / R) / n. It is about questions like these; both estimates are unbiased
    where items are a random sample, and answers to an item are independent.

    Args:
        repeats: (n, R_i) for each of n >= 2 items its R_i >= 1 values, of which one item at least has two.

    Raises:
        InvalidDataError: there are too few items or repeats, or a value is not finite.
    """
    means, within, noise = _parts(repeats)
    return RepeatVariance(max(0.0, float(np.var(means, ddof=1)) - noise), within)


def paired_repeat_variance(
    baseline: "Sequence[ArrayLike]", candidate: "Sequence[ArrayLike]"
) -> RepeatVariance:
    """Split the variance of paired differences into its parts between items and within items.

    As `repeat_variance`, of differences of an answer of the candidate less one of the baseline: σ² is the sum of both
    systems' variances, and ω² the variance of the items' mean differences less what the noise of both adds to it.

    Args:
        baseline: (n, R_i) for each of n >= 2 items the baseline's values.
        candidate: (n, R_i) the candidate's values of the same items; it may have other numbers of repeats.

    Raises:
        InvalidDataError: the numbers of items differ; else see `repeat_variance`.
    """
    if len(baseline) != len(candidate):
        raise InvalidDataError(
            f"{len(baseline):,} and {counted(len(candidate), 'item')} are not pairs.",
            fix="Give the repeats of both systems for the same items, in the same order.",
        )
    before, after = _parts(baseline), _parts(candidate)
    spread = float(np.var(after[0] - before[0], ddof=1))
    return RepeatVariance(max(0.0, spread - before[2] - after[2]), before[1] + after[1])


def _parts(repeats: "Sequence[ArrayLike]") -> "tuple[np.ndarray, float, float]":
    """The items' means, the variance within items, and what this adds to the variance of the means."""
    arrays = [np.asarray(repeat, dtype=np.float64) for repeat in repeats]
    if len(arrays) < 2 or not all(
        array.ndim == 1 and len(array) and np.isfinite(array).all() for array in arrays
    ):
        raise InvalidDataError(
            "Repeats are rows of finite numbers, of two items or more.",
            fix="Leave out items without a value.",
        )
    means = np.array([math.fsum(array) / len(array) for array in arrays])
    counts = np.array([len(array) for array in arrays])
    if counts.max() < 2:
        raise InvalidDataError(
            "No item has two answers, so that their variance is not known.",
            fix="Run it with --repeats 2 or more.",
        )
    squares = math.fsum(float(((array - mean) ** 2).sum()) for array, mean in zip(arrays, means, strict=True))
    within = squares / float((counts - 1).sum())
    return means, within, within * float((1 / counts).mean())
