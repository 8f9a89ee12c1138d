"""Intervals that stay valid however often anybody looks, for runs that stop once their question is answered."""

import math
from typing import TYPE_CHECKING

import numpy as np

from modelgauge.errors import InvalidDataError, InvalidOptionError
from modelgauge.stats.intervals import CONFIDENCE, Interval

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

_MEANS = 400
_BETS = 40
_REMEMBERED = 16
"""Values whose payoffs are kept: right and wrong answers have three differences."""


class ConfidenceSequence:
    """An interval for the mean of bounded values, updated value by value, that is valid at all times at once.

    With probability `confidence`, the mean is in every interval that was ever shown, so that looking after each
    item, and stopping when an interval excludes a value, is not an error. The price is a wider interval than one
    for a sample whose size was fixed in advance.

    For each possible mean m, a gambler bets on the values: a bet of λ turns a wealth of 1 into 1 + λ(x - m). If m
    is the mean, no strategy is expected to win, and a wealth of 1 / (1 - confidence) is ever reached with a
    probability of at most 1 - confidence (Ville's inequality). The interval has the means against which the wealth
    stays lower. The strategy divides the wealth among fixed bets between the largest that cannot ruin it, with less
    on the extreme ones (a weight of 1 - λ²). For differences of right and wrong answers and m = 0, that is the
    mixture of binomials over the discordant pairs with a Beta(2, 2) prior.

    Sources: Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting", JRSS B 86(1),
    https://arxiv.org/abs/2010.09686; Robbins 1970, "Statistical methods related to the law of the iterated logarithm".

    Args:
        low: the lowest possible value.
        high: the highest possible value.
        confidence: the probability that all intervals contain the mean.
        points: means that are tested exactly, such as 0 or a margin; others are tested on a grid of 401 points, and the
            interval ends at the nearest points of it that are excluded.

    Raises:
        InvalidOptionError: the range is empty or not finite, or the confidence is not between 0 and 1.
    """

    def __init__(
        self, low: float, high: float, *, confidence: float = CONFIDENCE, points: "Iterable[float]" = ()
    ) -> None:
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise InvalidOptionError(
                f"The range from {low:g} to {high:g} is empty.",
                fix="Give a finite low below a finite high.",
            )
        if not 0 < confidence < 1:
            raise InvalidOptionError(
                f"confidence is {confidence:g}.", fix="Give a number between 0 and 1, such as 0.95."
            )
        self.low, self.high = float(low), float(high)
        self.count = 0
        inner = np.linspace(self.low, self.high, _MEANS + 1)[1:-1]
        exact = np.array([point for point in points if self.low < point < self.high], dtype=float)
        self._means = np.unique(np.concatenate([inner, exact]))
        shares = np.linspace(-1.0, 1.0, _BETS + 2)[1:-1]  # of the largest bets on higher and on lower values
        largest = np.where(
            shares > 0, 1 / (self._means[:, None] - self.low), 1 / (self.high - self._means[:, None])
        )
        self._bets: NDArray[np.float64] = shares * largest
        weights = 1 - shares**2
        self._log_wealth: NDArray[np.float64] = np.log(weights / weights.sum()) + np.zeros_like(self._bets)
        self._threshold = -math.log1p(-confidence)
        self._is_excluded = np.zeros(len(self._means), dtype=bool)
        self._log_payoffs: dict[float, NDArray[np.float64]] = {}

    def add(self, value: float) -> None:
        """Add the next value.

        Raises:
            InvalidDataError: it is outside the range.
        """
        if not self.low <= value <= self.high:
            raise InvalidDataError(
                f"The value {value:g} is outside the range {self.low:g} to {self.high:g}.",
                fix="Declare the range of the measurement: measurement_ranges of the test, score_range of the metric.",
            )
        self.count += 1
        self._log_wealth += self._payoff(value)
        most = self._log_wealth.max(axis=1)
        wealth = most + np.log(np.exp(self._log_wealth - most[:, None]).sum(axis=1))
        excluded = self._is_excluded | (wealth >= self._threshold)
        if excluded.all():  # the values contradict their own past: the last interval is the best there is
            return
        self._is_excluded = excluded

    def _payoff(self, value: float) -> "NDArray[np.float64]":
        known = self._log_payoffs.get(value)
        if known is None:
            known = np.log1p(self._bets * (value - self._means)[:, None])
            if len(self._log_payoffs) < _REMEMBERED:
                self._log_payoffs[value] = known
        return known

    @property
    def interval(self) -> Interval:
        """The interval now, which is within all before it."""
        left = np.flatnonzero(~self._is_excluded)
        bounds = [self.low, *self._means.tolist(), self.high]
        return bounds[left[0]], bounds[left[-1] + 2]

    def excludes(self, mean: float) -> bool:
        """Return whether a mean is outside the interval; exact for `points`."""
        low, high = self.interval
        return (mean <= low and low > self.low) or (mean >= high and high < self.high)
