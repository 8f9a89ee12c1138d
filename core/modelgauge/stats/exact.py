"""Means and shares without the noise of floats, so that a score which equals its threshold passes it.

Floats are taken for the fractions that they stand for, these are calculated with, and the result is rounded once.
"""

import math
from collections.abc import Iterable
from fractions import Fraction

from modelgauge.errors import InvalidDataError

_MOST = 1_000_000
"""The greatest denominator of what counts as a simple fraction: any two of these differ as floats."""


def find_fraction(number: float) -> Fraction:
    """Return the simple fraction that a number stands for, 1/3 for 0.333…; if there is none, its exact value."""
    exact = Fraction(number)
    if exact.denominator <= _MOST:
        return exact
    simple = exact.limit_denominator(_MOST)
    return simple if float(simple) == number else exact


def exact_mean(numbers: Iterable[float]) -> float:
    """Return the mean of one or more finite numbers."""
    numbers = list(numbers)
    if len(numbers) == 1:  # nearly always
        return 0.0 + numbers[0]  # which is never -0.0
    fractions = [find_fraction(number) for number in numbers]
    return float(sum(fractions) / len(fractions))


def pass_at_k(n: int, right: int, k: int) -> float:
    """Return the probability that at least one of k answers, drawn from n answers, is right.

    The unbiased estimator of Chen et al. 2021, "Evaluating Large Language Models Trained on Code",
    https://arxiv.org/abs/2107.03374, equation 1: 1 - C(n - right, k) / C(n, k). It assumes that the answers are
    independent.

    Args:
        n: the number of answers.
        right: how many of them are right, from 0 to n.
        k: answers drawn, from 1 to n.

    Raises:
        InvalidDataError: a number is outside its range.
    """
    _check_draw(f"pass@{k}", n, right, k)
    return 1.0 - math.comb(n - right, k) / math.comb(n, k)


def pass_hat_k(n: int, right: int, k: int) -> float:
    """Return the probability that all of k answers, drawn from n answers, are right: pass^k, read "pass hat k".

    The unbiased estimator of Yao et al. 2024, "τ-bench: A Benchmark for Tool-Agent-User Interaction in Real-World
    Domains", https://arxiv.org/abs/2406.12045: C(right, k) / C(n, k). It assumes that the answers are independent.

    Args:
        n: the number of answers.
        right: how many of them are right, from 0 to n.
        k: answers drawn, from 1 to n.

    Raises:
        InvalidDataError: a number is outside its range.
    """
    _check_draw(f"pass^{k}", n, right, k)
    return math.comb(right, k) / math.comb(n, k)


def _check_draw(name: str, n: int, right: int, k: int) -> None:
    if not (0 <= right <= n and 1 <= k <= n):
        raise InvalidDataError(
            f"Cannot compute {name} from {right} right answers of {n}.",
            fix="Draw at least 1 answer, and at most all of them.",
        )
