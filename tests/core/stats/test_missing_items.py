import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize
from scipy import stats as scipy_stats

from modelgauge.errors import InvalidDataError
from modelgauge.stats import difference_bounds, imbens_manski_interval, mean_error

NAN = math.nan


def test_missing_values_are_worst_or_best_for_either_side():
    found = difference_bounds([1, 0, NAN, NAN, 0.5], [1, NAN, 0, NAN, 1], 0, 1)
    # lowest: 0, 0 - 0, 0 - 1, 0 - 1, 0.5; highest: 0, 1 - 0, 0 - 0, 1 - 0, 0.5
    assert found.bounds == pytest.approx((-0.3, 0.5))
    lowest, highest = mean_error([0, 0, -1, -1, 0.5]), mean_error([0, 1, 0, 1, 0.5])
    expected = imbens_manski_interval(found.bounds, (lowest.stderr, highest.stderr))
    assert found.interval == pytest.approx((max(-1, expected[0]), min(1, expected[1])))


def test_clusters_are_kept_together():
    baseline, candidate = [0, 1, NAN, 0, 1, 0], [1, 1, 1, 0, 0, 1]
    clustered = difference_bounds(baseline, candidate, 0, 1, clusters=[*"aabbcc"])
    lowest = mean_error([1, 0, 0, 0, -1, 1], [*"aabbcc"])
    highest = mean_error([1, 0, 1, 0, -1, 1], [*"aabbcc"])
    expected = imbens_manski_interval(clustered.bounds, (lowest.stderr, highest.stderr))
    assert clustered.interval == pytest.approx(expected)


def test_without_a_spread_there_are_bounds_only():
    assert difference_bounds([0, 0], [1, 1], 0, 1) == ((1, 1), None)
    assert difference_bounds([NAN], [NAN], 0, 1) == ((-1, 1), None)


@given(st.floats(0, 3), st.floats(0.01, 2), st.floats(0.01, 2), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_the_interval_solves_their_equation(width, first, second, confidence):
    low, high = imbens_manski_interval((0, width), (first, second), confidence=confidence)
    ratio = width / max(first, second)
    norm = scipy_stats.norm
    c = optimize.brentq(lambda c: norm.cdf(c + ratio) - norm.cdf(-c) - confidence, 0, 9, xtol=1e-14)
    assert (low, high) == pytest.approx((-c * first, width + c * second), abs=1e-10)


def test_the_interval_goes_from_two_sided_to_one_sided():
    assert imbens_manski_interval((0, 0), (1, 1)) == pytest.approx(
        (-1.959963984540054, 1.959963984540054), abs=1e-10
    )
    assert imbens_manski_interval((0, 1e6), (1, 1))[0] == pytest.approx(-1.6448536269514722, abs=1e-10)


def test_the_interval_holds_a_number_at_either_bound():
    generator = np.random.default_rng(2)
    estimates = generator.normal([0, 0.1], 0.1, (4000, 2)).T
    estimates[1] = np.maximum(*estimates)
    held = [
        low <= 0 <= high
        for low, high in (imbens_manski_interval(one, (0.1, 0.1)) for one in estimates.T.tolist())
    ]
    assert np.mean(held) >= 0.94


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        ([0, 2], (0, 1)),
        ([0, 1], (1, 0)),
        ([0, 1], (0, math.inf)),
        ([0, 1], (NAN, 1)),
        ([-0.1, 1], (0, 1)),
        ([0, 0], (0, 0)),
    ],
)
def test_what_has_no_bounds(values, ends):
    with pytest.raises(InvalidDataError, match="are not within"):
        difference_bounds([0, NAN], values, *ends)


@pytest.mark.parametrize(
    ("bounds", "stderrs", "confidence"),
    [
        ((1, 0), (1, 1), 0.95),
        ((0, 1), (0, 1), 0.95),
        ((0, NAN), (1, 1), 0.95),
        ((0, 1), (1, NAN), 0.95),
        ((0, 1), (1, 1), 1),
    ],
)
def test_what_has_no_interval(bounds, stderrs, confidence):
    with pytest.raises(InvalidDataError):
        imbens_manski_interval(bounds, stderrs, confidence=confidence)
