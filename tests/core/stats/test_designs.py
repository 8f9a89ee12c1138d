import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.errors import InvalidDataError
from modelgauge.stats import (
    RepeatVariance,
    design_effect,
    difference_stddev,
    discordant_shares,
    items_with_failures,
    mean_error,
    repeat_plans,
)


@given(st.floats(0.05, 0.95), st.floats(0.05, 0.95), st.floats(-0.05, 0.2))
def test_discordant_shares_have_the_rates_and_the_correlation(baseline, candidate, correlation):
    least, most = max(0.0, baseline + candidate - 1), min(baseline, candidate)
    spread = math.sqrt(baseline * (1 - baseline) * candidate * (1 - candidate))
    both = baseline * candidate + correlation * spread
    if not least <= both <= most:
        with pytest.raises(InvalidDataError, match="cannot have a correlation"):
            discordant_shares(baseline, candidate, correlation + 1e-9 * (1 if both > most else -1))
        return
    only_baseline, only_candidate = discordant_shares(baseline, candidate, correlation)
    assert only_candidate - only_baseline == pytest.approx(candidate - baseline, abs=1e-12)
    assert baseline - only_baseline == pytest.approx(both, abs=1e-12)


def test_the_correlation_has_limits_that_are_said():
    with pytest.raises(InvalidDataError, match=r"Give one from -1\.000 to 0\.333\."):
        discordant_shares(0.25, 0.75, 0.9)
    assert discordant_shares(1, 0.5, 0.0) == (0.5, 0.0)


def test_the_spread_of_a_difference():
    values = np.random.default_rng(1).normal(size=(2, 50))
    expected = np.std(values[1] - values[0])
    found = difference_stddev(np.std(values[0]), np.std(values[1]), np.corrcoef(values)[0, 1])
    assert found == pytest.approx(expected, rel=1e-10)
    assert difference_stddev(0.3, 0.3, 1) == 0


def test_the_design_effect_is_the_variance_of_a_clustered_mean():
    sizes = np.array([1, 4, 2, 8, 8])
    labels = np.repeat(np.arange(5), sizes)
    covariance = np.where(labels[:, None] == labels, 0.3, 0.0) + 0.7 * np.eye(23)
    assert design_effect(sizes, 0.3) == pytest.approx(covariance.sum() / 23, rel=1e-12)
    assert design_effect([1, 1, 1], 0.9) == 1.0


def test_more_items_beat_more_repeats_at_the_same_cost():
    plans = repeat_plans(RepeatVariance(0.04, 0.09), 600, (1, 2, 3, 1000))
    assert [(plan.items, plan.repeats) for plan in plans] == [(600, 1), (300, 2), (200, 3)]
    assert plans[2].stderr == pytest.approx(math.sqrt((0.04 + 0.03) / 200), rel=1e-12)
    assert [plan.stderr for plan in plans] == sorted(plan.stderr for plan in plans)


def test_the_planned_error_is_the_one_that_comes():
    generator = np.random.default_rng(3)
    found = [
        mean_error((generator.normal(0, 2, (100, 1)) + generator.normal(0, 3, (100, 4))).mean(axis=1)).stderr
        for _ in range(300)
    ]
    assert np.mean(found) == pytest.approx(repeat_plans(RepeatVariance(4, 9), 400, [4])[0].stderr, rel=0.02)


def test_failures_are_made_up_for():
    assert items_with_failures(100) == 100
    assert items_with_failures(90, 0.1) == 100
    assert items_with_failures(100, 0.1, 0.05) == math.ceil(100 / 0.9 / 0.95)
    assert items_with_failures(0, 0.5) == 0


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        *((items_with_failures, one) for one in ((-1,), (5, 1), (5, -0.1), (5, math.nan))),
        *((discordant_shares, one) for one in ((1.1, 0.5, 0), (0.5, math.nan, 0), (0.5, 0.5, math.nan), (1, 1, 2))),
        *((difference_stddev, one) for one in ((-1, 1, 0), (1, math.inf, 0), (1, 1, 1.1), (1, 1, math.nan))),
        *((design_effect, one) for one in (([], 0.5), ([0, 1], 0.5), ([3, 3], -0.9), ([2], math.nan), ([math.nan], 0))),
        *((repeat_plans, (RepeatVariance(1, 1), *one)) for one in ((0,), (5, [0]))),
    ],
)  # fmt: skip
def test_what_cannot_be_planned_is_refused(function, arguments):
    with pytest.raises(InvalidDataError):
        function(*arguments)
