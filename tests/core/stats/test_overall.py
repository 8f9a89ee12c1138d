"""The mean over tests that may share items, checked against scipy and simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from modelgauge.errors import InvalidDataError
from modelgauge.stats.comparisons.overall import (
    clusters_over_tests,
    overall_mean,
    parts_of_clusters,
    parts_of_values,
)
from modelgauge.stats.intervals import mean_error

NUMBERS = st.lists(st.integers(-9, 9), min_size=2, max_size=12)


def test_two_tests_without_shared_items_have_welchs_error():
    first, second = [0.3, 0.1, 0.5, 0.2, 0.9], [0.4, -0.2, 0.6, 0.1]
    found = overall_mean([parts_of_values(first, np.arange(5)), parts_of_values(second, np.arange(5, 9))])
    expected = scipy_stats.ttest_ind(first, np.negative(second), equal_var=False)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-9)
    interval = expected.confidence_interval()
    assert found.interval == pytest.approx((interval.low / 2, interval.high / 2), rel=1e-9)


@given(NUMBERS, st.integers(1, 5))
def test_the_same_test_again_changes_nothing(values, times):
    found = overall_mean([parts_of_values(values, np.arange(len(values)))] * times)
    error = mean_error(values)
    assert (found.value, found.stderr) == pytest.approx((error.mean, error.stderr), abs=1e-12)
    assert not found.stderr or found.df == pytest.approx(error.df)


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=2, max_size=12))
def test_two_measurements_of_the_same_items_have_the_error_of_their_mean(rows):
    first, second = zip(*rows, strict=True)
    places = np.arange(len(rows))
    found = overall_mean([parts_of_values(first, places), parts_of_values(second, places)])
    error = mean_error(np.add(first, second) / 2)
    assert (found.value, found.stderr) == pytest.approx((error.mean, error.stderr), abs=1e-9)


def test_an_error_of_unknown_parts_is_shared_as_far_as_items_are():
    half = [parts_of_clusters(0.5, 0.1, np.arange(20)), parts_of_clusters(0.5, 0.1, np.arange(10, 30))]
    assert overall_mean(half).stderr == pytest.approx(0.1 * np.sqrt((1 + 0.5) / 2))
    assert overall_mean([half[0], half[0]]).stderr == pytest.approx(0.1)
    assert overall_mean([parts_of_clusters(0.5, None, np.arange(3)), half[0]])[:2] == (0.5, None)


def test_clusters_are_joined_within_tests_and_across_them():
    first, second = clusters_over_tests(
        [3, 4],
        [np.array([0, 0, 1]), None],
        [(np.array([7, 8, 9]), None), (np.array([9, 5, 6, 4]), np.array([1, 1, 2, 3]))],
    )
    assert first[0] == first[1] != first[2] == second[0]
    assert second[0] == second[1]
    assert len({*first.tolist(), *second.tolist()}) == 4
    (alone,) = clusters_over_tests([2], [None], [(None, np.array([3, 4]))])
    assert len({*alone.tolist()}) == 2


def test_few_items_that_all_tests_share_have_few_degrees_of_freedom():
    generator = np.random.default_rng(1)
    few = generator.normal(0, 1, 5)
    many = parts_of_values(generator.normal(0, 0.01, 1000), np.arange(4, 1004))
    assert overall_mean([parts_of_values(few, np.arange(5))] * 8 + [many]).df < 5


def test_mean_of_no_tests_is_an_error():
    with pytest.raises(InvalidDataError):
        overall_mean([])
