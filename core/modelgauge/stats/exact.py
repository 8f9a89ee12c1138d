"""Means and shares without the noise of floats, so that a score which equals its threshold passes it.

Floats are taken for the fractions that they stand for, these are calculated with, and the result is rounded once.
"""

from collections.abc import Iterable
from fractions import Fraction

_MOST = 1_000_000
"""The greatest denominator of what counts as a simple fraction: any two of these differ as floats."""


def fraction_of(number: float) -> Fraction:
    """The simple fraction that a number stands for, 1/3 for 0.333…; where there is none, just its value."""
    exact = Fraction(number)
    if exact.denominator <= _MOST:
        return exact
    simple = exact.limit_denominator(_MOST)
    return simple if float(simple) == number else exact


def exact_mean(numbers: Iterable[float]) -> float:
    """The mean of finite numbers, of which there is at least one."""
    fractions = [fraction_of(one) for one in numbers]
    return float(sum(fractions) / len(fractions))
