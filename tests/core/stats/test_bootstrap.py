import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from modelgauge.errors import InvalidDataError
from modelgauge.stats import bootstrap_difference, paired_difference

SKEWED = np.random.default_rng(11).exponential(1.0, 40) - 0.7
ZEROS = np.zeros(40)


@pytest.mark.parametrize("values", [SKEWED, np.round(SKEWED * 4) / 4], ids=["all differ", "ties"])
@pytest.mark.parametrize("confidence", [0.95, 0.8])
def test_the_interval_is_scipys_bca(values, confidence):
    expected = scipy_stats.bootstrap(
        (np.sort(values),),  # the order in which ours are drawn, whatever the order of the items
        np.mean,
        confidence_level=confidence,
        n_resamples=2000,
        method="BCa",
        rng=np.random.default_rng(3),
    ).confidence_interval
    found = bootstrap_difference(ZEROS, values, resamples=2000, seed=3, confidence=confidence)
    assert found.interval == pytest.approx((expected.low, expected.high), abs=1e-10)


def test_the_interval_ends_at_zero_where_its_confidence_is_one_less_the_p_value():
    p_value = bootstrap_difference(ZEROS, SKEWED).p_value
    low, high = bootstrap_difference(ZEROS, SKEWED, confidence=1 - p_value).interval
    assert min(abs(low), abs(high)) < 0.002
    many = np.random.default_rng(12).normal(0.1, 1, 300)
    expected = paired_difference(np.zeros(300), many).p_value
    assert bootstrap_difference(np.zeros(300), many).p_value == pytest.approx(expected, abs=0.01)


def test_clusters_are_drawn_whole():
    labels = np.repeat(np.arange(40), 3)
    found = bootstrap_difference(np.zeros(120), np.repeat(SKEWED, 3), clusters=labels.tolist(), seed=4)
    alone = bootstrap_difference(ZEROS, SKEWED, seed=4)
    assert found.interval == pytest.approx(alone.interval, abs=0.02)
    separate = bootstrap_difference(np.zeros(120), np.repeat(SKEWED, 3), seed=4)
    assert np.ptp(found.interval) > 1.5 * np.ptp(separate.interval)


def test_turned_systems_turn_the_interval():
    low, high = bootstrap_difference(ZEROS, SKEWED).interval
    turned = bootstrap_difference(SKEWED, ZEROS)
    assert turned.interval == pytest.approx((-high, -low), rel=1e-12)
    assert turned.p_value == bootstrap_difference(ZEROS, SKEWED).p_value


def test_the_order_of_the_items_changes_nothing():
    order = np.random.default_rng(5).permutation(120)
    values, labels = np.repeat(SKEWED, 3), np.repeat(np.arange(40) // 2, 3)
    assert bootstrap_difference(np.zeros(120), values[order]) == bootstrap_difference(np.zeros(120), values)
    clustered = bootstrap_difference(np.zeros(120), values, clusters=labels.tolist())
    assert bootstrap_difference(np.zeros(120), values[order], clusters=labels[order].tolist()) == clustered


def test_the_smallest_p_value_is_not_zero():
    found = bootstrap_difference(np.zeros(50), np.linspace(5, 6, 50), resamples=500)
    assert 0 < found.p_value < 0.01
    assert 5 < found.interval[0] < found.interval[1] < 6


def test_what_has_no_spread_has_no_interval():
    for baseline, candidate, clusters in (
        ([1], [2], None),
        ([0, 0], [3, 3], None),
        ([0] * 4, [0, 2, 1, 1], [*"aabb"]),
    ):
        assert bootstrap_difference(baseline, candidate, clusters=clusters) == (None, None)


def test_huge_differences():
    found = bootstrap_difference(np.zeros(40), SKEWED * 1e300)
    small = bootstrap_difference(np.zeros(40), SKEWED)
    assert [end / 1e300 for end in found.interval] == pytest.approx(small.interval)


@pytest.mark.parametrize(
    "options", [{"resamples": 99}, {"confidence": 1}, {"confidence": 0}, {"confidence": math.nan}]
)
def test_what_is_no_bootstrap(options):
    with pytest.raises(InvalidDataError, match="Cannot compute an interval"):
        bootstrap_difference([0, 0], [0, 1], **options)
