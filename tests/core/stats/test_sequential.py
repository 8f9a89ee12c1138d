"""Confidence sequences are valid at all times at once, and decide early."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.errors import InvalidDataError, InvalidOptionError
from modelgauge.stats import ConfidenceSequence

GSM8K = Path(__file__).resolve().parents[4] / "shared" / "data" / "gsm8k"


def wealth_against(mean: float, values: list[float], low: float, high: float) -> float:
    """The wealth of the strategy that the docstring describes, bet by bet."""
    shares = [-1 + 2 * (bet + 1) / 41 for bet in range(40)]
    weights = [1 - share**2 for share in shares]
    wealth = 0.0
    for share, weight in zip(shares, weights, strict=True):
        bet = share / (mean - low) if share > 0 else share / (high - mean)
        wealth += weight / sum(weights) * math.prod(1 + bet * (value - mean) for value in values)
    return wealth


@pytest.mark.parametrize("chances", [(0.2, 0.5, 0.3), (0.9, 0.05, 0.05), (0.01, 0.0, 0.99)])
def test_wealth_against_true_mean_is_expected_to_stay_1(chances):
    values = (-1.0, 0.0, 1.0)
    mean = sum(chance * value for chance, value in zip(chances, values, strict=True))
    expected = sum(
        math.prod(chances[place] for place in drawn)
        * wealth_against(mean, [values[place] for place in drawn], -1, 1)
        for drawn in itertools.product(range(3), repeat=5)
    )
    assert expected == pytest.approx(1, abs=1e-12)


@given(st.lists(st.floats(0, 1), max_size=30), st.floats(0.05, 0.95))
def test_mean_is_excluded_once_wealth_reaches_level(values, point):
    sequence = ConfidenceSequence(0, 1, points=[point])
    highest = 0.0
    for place, value in enumerate(values, start=1):
        sequence.add(value)
        highest = max(highest, wealth_against(point, values[:place], 0, 1))
    if abs(highest - 20) > 1e-6 and sequence.interval[0] < sequence.interval[1]:
        assert sequence.excludes(point) >= (highest > 20)
    assert sequence.count == len(values)


def test_equal_systems_are_rarely_told_apart_however_often_one_looks():
    """Vectorized: 2,000 comparisons of equal systems, a look after each of 500 items."""
    rng = np.random.default_rng(0)
    shares = np.linspace(-1, 1, 42)[1:-1]
    weights = (1 - shares**2) / (1 - shares**2).sum()
    differs = rng.random((2000, 500)) < 0.3
    wins = np.cumsum(differs & (rng.random((2000, 500)) < 0.5), axis=1)
    losses = np.cumsum(differs, axis=1) - wins
    wealth = sum(
        weight * np.exp(wins * np.log1p(share) + losses * np.log1p(-share))
        for share, weight in zip(shares, weights, strict=True)
    )
    assert (wealth.max(axis=1) >= 20).mean() <= 0.05


def test_intervals_only_shrink_and_contain_the_mean_of_many_values():
    rng = np.random.default_rng(1)
    sequence = ConfidenceSequence(0, 1)
    before = sequence.interval
    assert before == (0, 1)
    for value in rng.beta(2, 3, 400):
        sequence.add(value)
        low, high = sequence.interval
        assert before[0] <= low < high <= before[1]
        before = low, high
    assert before[0] < 0.4 < before[1]
    assert before[1] - before[0] < 0.12


def test_values_at_an_end_of_the_range_never_exclude_that_end():
    sequence = ConfidenceSequence(0, 1)
    for _ in range(1000):
        sequence.add(1)
    assert sequence.interval[1] == 1
    assert not sequence.excludes(1)
    assert sequence.excludes(0)
    assert sequence.interval[0] > 0.98


@pytest.mark.skipif(not GSM8K.is_dir(), reason="The recorded answers of GSM8K are not beside the checkout.")
def test_gsm8k_pair_is_decided_within_100_items_in_any_order():
    files = [GSM8K / f"solutions-{model}.jsonl" for model in ("6b_finetuning", "175b_verification")]
    right = [
        np.array(
            [json.loads(line)["is_correct"] for line in file.read_text("utf-8").splitlines()], dtype=float
        )
        for file in files
    ]
    needed = []
    for seed in range(20):
        sequence = ConfidenceSequence(-1, 1, points=[0])
        for value in np.random.default_rng(seed).permutation(right[1] - right[0]):
            sequence.add(value)
            if sequence.excludes(0):
                break
        assert sequence.interval[0] >= 0
        needed.append(sequence.count)
    assert max(needed) <= 100
    assert np.median(needed) <= 30


@pytest.mark.parametrize(("low", "high"), [(0, 0), (1, 0), (0, math.inf), (math.nan, 1)])
def test_range_without_values_is_refused(low, high):
    with pytest.raises(InvalidOptionError, match="is empty"):
        ConfidenceSequence(low, high)


def test_value_outside_range_is_refused_and_not_counted():
    sequence = ConfidenceSequence(0, 1)
    for value in (-0.1, 1.1, math.nan):
        with pytest.raises(InvalidDataError, match="outside the range 0 to 1"):
            sequence.add(value)
    assert sequence.count == 0
    with pytest.raises(InvalidOptionError, match="confidence"):
        ConfidenceSequence(0, 1, confidence=1)
