"""The axis of a chart on a page."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

MARGIN = 7
"""Pixels on both sides of an axis, so that marks at its ends are whole."""
_MOST_TICKS = 5


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear axis that several charts of a table share.

    Args:
        low: the value at its left end.
        high: the value at its right end, above `low`.
        width: pixels.
        step: the distance of its ticks; None for a round number.
    """

    low: float
    high: float
    width: int = 260
    step: float | None = None

    @classmethod
    def over(cls, values: Sequence[float], *, zero: bool = False) -> "Axis":
        """Return the axis that holds all values, with round ends.

        Args:
            values: finite numbers.
            zero: whether it holds 0 too.
        """
        ends = [*values, 0.0] if zero or not values else [*values]
        low, high = min(ends), max(ends)
        if low == high:
            low, high = low - 0.5, high + 0.5
        step = _step(high - low)
        return cls(math.floor(low / step) * step, math.ceil(high / step) * step, step=step)

    def sized(self, width: int) -> "Axis":
        """Return the axis with another width.

        Args:
            width: pixels.
        """
        return replace(self, width=width)

    def at(self, value: float) -> float:
        """Return the horizontal place of a value, in pixels."""
        return MARGIN + self.share(value) * (self.width - 2 * MARGIN)

    def share(self, value: float) -> float:
        """Return the place of a value as a share of the axis, from 0 to 1; values beyond its ends are at them."""
        return (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)

    @property
    def ticks(self) -> list[float]:
        """Round values along the axis, its ends among them."""
        step = self.step or _step(self.high - self.low)
        return [self.low + place * step for place in range(round((self.high - self.low) / step) + 1)]


def _step(span: float) -> float:
    """Return the round distance of ticks: 1, 2 or 5 times a power of ten."""
    raw = span / _MOST_TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    return power * next(factor for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999999)
