"""Graded scores of two systems, from 0 to 1, to simulate paired intervals; without other modules of the project."""

from collections.abc import Callable

import numpy as np

Pair = tuple[np.ndarray, np.ndarray]
SEED = 20

generator = np.random.default_rng(SEED)


def independent(n: int) -> Pair:
    return generator.random(n), generator.random(n)


def stars(n: int) -> Pair:
    """One to five stars for answers of equal quality."""
    quality = generator.standard_normal(n)
    before, after = (np.clip(np.round(2.5 + quality + generator.normal(0, 0.5, n)), 0, 4) / 4 for _ in "12")
    return before, after


def small_changes(n: int) -> Pair:
    before = generator.beta(5, 5, n)
    return before, np.clip(before + generator.normal(0, 0.1, n), 0, 1)


def losing(share: float, before: np.ndarray, change: float = 0.0) -> Pair:
    """A candidate that gets 0 on a share of the items, and changes the others by up to so much."""
    others = np.clip(before - change * generator.random(len(before)), 0, 1)
    return before, np.where(generator.random(len(before)) < share, 0.0, others)


def made_up_for(n: int) -> Pair:
    """A candidate that gains 0.03 on 97 % of the items, and loses 0.97 on the others: the mean difference is 0."""
    return np.full(n, 0.97), np.where(generator.random(n) < 0.03, 0.0, 1.0)


def gaining(n: int) -> Pair:
    before = generator.beta(1, 20, n)
    return before, np.where(generator.random(n) < 0.03, 1.0, before)


CASES: dict[str, tuple[Callable[[int], Pair], float | None]] = {
    "independent, uniform": (independent, 0.0),
    "1 to 5 stars": (stars, 0.0),
    "beta(5, 5), changes of 0.1": (small_changes, None),
    "97 % gain 0.03, 3 % lose 0.97": (made_up_for, 0.0),
    "3 % lose 1, others equal": (lambda n: losing(0.03, np.ones(n)), -0.03),
    "3 % lose all, others up to 0.1": (lambda n: losing(0.03, generator.beta(18, 2, n), 0.1), None),
    "3 % of uniform scores lose all": (lambda n: losing(0.03, generator.random(n)), -0.015),
    "10 % of uniform scores lose all": (lambda n: losing(0.1, generator.random(n)), -0.05),
    "3 % of low scores gain all": (gaining, None),
}
"""For each kind of scores: what draws them, and the true difference; None if it is estimated from a million."""

SIZES = (10, 20, 50, 200)


def drawn(name: str, n: int, samples: int) -> tuple[list[Pair], float]:
    """Draw the same samples in each program, and say what the true difference is."""
    draw, truth = CASES[name]
    generator.bit_generator.state = np.random.default_rng(SEED).bit_generator.state
    if truth is None:
        before, after = draw(1_000_000)
        truth = float((after - before).mean())
    return [draw(n) for _ in range(samples)], truth
