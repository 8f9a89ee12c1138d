import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize
from scipy import stats as scipy_stats

from modelgauge.errors import InvalidDataError
from modelgauge.stats import difference_bounds, imbens_manski_interval, mean_error, paired_difference

NAN = math.nan


def test_missing_values_are_worst_or_best_for_either_side():
    found = difference_bounds([1, 0, NAN, NAN, 0.5], [1, NAN, 0, NAN, 1], 0, 1)
    # lowest: 0, 0 - 0, 0 - 1, 0 - 1, 0.5; highest: 0, 1 - 0, 0 - 0, 1 - 0, 0.5
    assert found.bounds == pytest.approx((-0.3, 0.5))
    low, high = found.interval
    assert -1 <= low < -0.3 < 0.5 < high <= 1


def test_interval_has_confidence_of_imbens_and_manski_with_interval_of_completions():
    baseline, candidate = [1] * 30 + [0] * 10, [1] * 20 + [0] * 8 + [NAN] * 6 + [1] * 6
    found = difference_bounds(baseline, candidate, 0, 1)
    errors = (
        mean_error([0] * 20 + [-1] * 10 + [0] * 4 + [1] * 6),
        mean_error([0] * 20 + [-1] * 8 + [0] * 2 + [1] * 10),
    )
    stderr, gap = max(one.stderr for one in errors), 6 / 40
    norm = scipy_stats.norm
    c = optimize.brentq(lambda c: norm.cdf(c + gap / stderr) - norm.cdf(-c) - 0.95, 0, 9, xtol=1e-14)
    ends = [
        paired_difference(
            baseline,
            [filling if math.isnan(one) else one for one in candidate],
            confidence=2 * norm.cdf(c) - 1,
        ).difference.interval
        for filling in (0, 1)
    ]
    assert found.interval == pytest.approx((ends[0][0], ends[1][1]))


def test_interval_without_missing_items_is_that_of_the_difference():
    baseline, candidate = [1, 0, 1, 1, 0, 1, 0, 0], [1, 1, 1, 0, 0, 1, 1, 1]
    expected = paired_difference(baseline, candidate, declared=(0, 1)).difference.interval
    assert difference_bounds(baseline, candidate, 0, 1).interval == pytest.approx(expected)


def test_clusters_are_kept_together():
    baseline, candidate = [0, 1, NAN, 0, 1, 0], [1, 1, 1, 0, 0, 1]
    clustered = difference_bounds(baseline, candidate, 0, 1, clusters=[*"aabbcc"])
    plain = difference_bounds(baseline, candidate, 0, 1)
    assert clustered.bounds == plain.bounds
    assert clustered.interval != plain.interval


def test_items_without_a_spread_have_an_interval_wider_than_the_bounds():
    same = paired_difference([0, 0], [1, 1], declared=(0, 1)).difference.interval
    assert difference_bounds([0, 0], [1, 1], 0, 1) == ((1, 1), pytest.approx(same))
    lost = difference_bounds([1] * 6, [0] * 5 + [NAN], 0, 1)
    assert lost.bounds == pytest.approx((-1, -5 / 6))
    assert lost.interval[1] > -0.5  # five losses of six items may be chance


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
