"""Intervals drawn in characters, on an axis."""

import math
from collections.abc import Iterable

_STEPS = (1, 2, 2.5, 5, 10)
_MOST_STEPS = 4  # between the ends of an axis
_UNICODE, _ASCII = tuple("│┼─├┤"), tuple(":+-[]")


class TextAxis:
    """An axis from the lowest to the highest value, both rounded outwards; 0 is on it.

    Args:
        values: that must have room on it; those that are not finite are left out.
        width: how many characters it has, 3 or more.
        symbols: whether the terminal has more than ASCII.
    """

    def __init__(self, values: Iterable[float], width: int, *, symbols: bool) -> None:
        finite = [0.0, *(value for value in values if math.isfinite(value))]
        step = _step(max(finite) - min(finite))
        self._low, self._high = math.floor(min(finite) / step) * step, math.ceil(max(finite) / step) * step
        if self._low == self._high:
            self._low, self._high = -step, step
        self._width = width
        self._lines = _UNICODE if symbols else _ASCII

    def head(self) -> str:
        """Return the ends of the axis and its 0, as the head of a column of drawings."""
        low, high = (f"{end:+.6g}" if end else "0" for end in (self._low, self._high))
        line = f"{low}{high:>{max(1 + len(high), self._width - len(low))}}"
        zero = self._at(0)
        free = len(low) < zero < self._width - len(high) - 1
        return f"{line[:zero]}0{line[zero + 1 :]}" if free else line

    def drawn(self, value: float | None, interval: tuple[float, float] | None, mark: str) -> str:
        """Draw a value with its interval, and a mark at 0.

        Args:
            value: None for no value.
            interval: its ends, on the axis like the value.
            mark: the character that stands for the value.
        """
        zero, crossing, inside, low_end, high_end = self._lines
        line = [" "] * self._width
        line[self._at(0)] = zero
        if interval is not None:
            low, high = map(self._at, interval)
            line[low : high + 1] = inside * (high + 1 - low)
            if low <= self._at(0) <= high:
                line[self._at(0)] = crossing
            line[low], line[high] = low_end, high_end
        if value is not None:
            line[self._at(value)] = mark
        return "".join(line)

    def _at(self, value: float) -> int:
        place = (value - self._low) / (self._high - self._low) * (self._width - 1)
        return min(max(round(place), 0), self._width - 1)


def _step(span: float) -> float:
    """Return the smallest step of 1, 2, 2.5 or 5 times a power of ten that divides a span into a few parts."""
    if span <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(span / _MOST_STEPS))
    return next(step * power for step in _STEPS if step * power * _MOST_STEPS >= span * (1 - 1e-9))
