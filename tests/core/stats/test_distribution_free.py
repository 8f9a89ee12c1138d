import itertools
import time

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from modelgauge.errors import InvalidDataError
from modelgauge.stats import mcnemar_test, sign_flip_test, wilcoxon_test
from modelgauge.stats.comparisons.distribution_free import rank_direction

BASELINE = [0.9, 0.4, 0.7, 0.8, 0.6, 0.9]
CANDIDATE = [0.7, 0.5, 0.3, 0.6, 0.6, 0.2]


def _exact(differences):
    """The share of all sign patterns whose sum is at least as large as the one seen."""
    seen = abs(sum(differences)) - 1e-9
    patterns = [*itertools.product([-1, 1], repeat=len(differences))]
    return sum(abs(np.dot(pattern, differences)) >= seen for pattern in patterns) / len(patterns)


def test_p_value_of_few_differences_counts_all_sign_patterns():
    differences = [a - b for a, b in zip(BASELINE, CANDIDATE, strict=True)]
    assert sign_flip_test(BASELINE, CANDIDATE) == _exact(differences)


def test_sign_flips_of_zeros_and_ones_agree_with_mcnemar():
    baseline = [1] * 30 + [0] * 14 + [1] * 50
    candidate = [0] * 30 + [1] * 14 + [1] * 50
    flips = sign_flip_test(baseline, candidate, permutations=100_000)
    assert flips == pytest.approx(mcnemar_test(baseline, candidate).p_value, abs=0.003)


def test_clusters_flip_together():
    baseline, candidate = [1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0]
    clustered = sign_flip_test(baseline, candidate, clusters=[*"aabbcc"])
    assert clustered == _exact([2, 2, 2])
    assert sign_flip_test(baseline, candidate) == _exact([1] * 6)


@pytest.mark.parametrize("n", [20, 21])
def test_many_differences_have_a_sample_of_their_patterns(n):
    generator = np.random.default_rng(3)
    differences = generator.normal(0.3, 1, n)
    exact = sign_flip_test([0] * n, differences) if n == 20 else _exact_by_halves(differences)
    assert exact == pytest.approx(_exact_by_halves(differences), abs=1e-12)
    found = sign_flip_test([0] * n, differences, permutations=200_000)
    assert found == pytest.approx(exact, abs=0.004 if n > 20 else 1e-12)


def _exact_by_halves(differences):
    """The exact p value from the sums of two halves, each pattern of the one with each of the other."""
    half = len(differences) // 2
    one, other = (
        np.array([*itertools.product([-1, 1], repeat=len(part))]) @ part
        for part in (differences[:half], differences[half:])
    )
    return (np.abs(one[:, None] + other) >= abs(differences.sum()) - 1e-9).mean()


@given(st.randoms(use_true_random=False))
def test_the_seed_decides_and_the_order_does_not(shuffler):
    generator = np.random.default_rng(7)
    pairs = [*map(tuple, generator.random((30, 2)).tolist())]
    ordered = [*zip(*pairs, strict=True)]
    shuffler.shuffle(pairs)
    assert sign_flip_test(*zip(*pairs, strict=True), permutations=200) == sign_flip_test(
        *ordered, permutations=200
    )
    assert sign_flip_test(*ordered, permutations=999, seed=1) != sign_flip_test(*ordered, permutations=999)


def test_no_difference_and_no_permutation():
    assert sign_flip_test(BASELINE, BASELINE) == 1.0
    with pytest.raises(InvalidDataError, match="permutations is 0"):
        sign_flip_test(BASELINE, CANDIDATE, permutations=0)


def test_the_smallest_p_value_is_not_zero():
    assert sign_flip_test([1] * 200, [0] * 200, permutations=999) == 1 / 1000


def test_ten_thousand_items_take_less_than_half_a_second():
    generator = np.random.default_rng(5)
    baseline, candidate = generator.random((2, 10_000))
    started = time.process_time()
    found = sign_flip_test(baseline, candidate)
    assert time.process_time() - started < 0.5
    assert found == pytest.approx(scipy_stats.ttest_rel(baseline, candidate).pvalue, abs=0.02)


def test_half_of_the_values_are_zeros_and_a_value_that_occurs_often_flips_like_others():
    generator = np.random.default_rng(6)
    differences = np.concatenate(
        [np.zeros(500), generator.choice([-1.0, 1.0], 500), generator.normal(0, 1, 100)]
    )
    found = sign_flip_test(np.zeros(1100), differences, permutations=50_000)
    assert found == pytest.approx(scipy_stats.ttest_1samp(differences, 0).pvalue, abs=0.01)


# --- Wilcoxon ---------------------------------------------------------------------------------------------


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=50, unique_by=abs))
@example([-2.0, -5e-324])
def test_wilcoxon_is_scipys_exact_test(differences):
    differences = [difference for difference in differences if difference]
    assume(differences)
    expected = scipy_stats.wilcoxon(differences, method="exact").pvalue
    assert wilcoxon_test([0] * len(differences), differences) == pytest.approx(expected, rel=1e-10)


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=12))
def test_wilcoxon_with_equal_sizes_counts_all_sign_patterns(differences):
    held = np.array([difference for difference in differences if difference])
    assume(len(held))
    ranks = scipy_stats.rankdata(np.abs(held))
    sums = np.array([*itertools.product([0, 1], repeat=len(held))]) @ ranks
    seen = ranks[held > 0].sum()
    expected = min(1.0, 2 * min((sums <= seen).mean(), (sums >= seen).mean()))
    assert wilcoxon_test([0] * len(differences), differences) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("digits", [0, 1, 8])
def test_wilcoxon_of_many_is_scipys_normal_approximation(digits):
    differences = np.round(np.random.default_rng(8).normal(0.2, 2, 300), digits)
    expected = scipy_stats.wilcoxon(differences, method="asymptotic").pvalue
    assert wilcoxon_test(np.zeros(300), differences) == pytest.approx(expected, rel=1e-10)


def test_wilcoxon_without_a_difference():
    assert wilcoxon_test([1, 2], [1, 2]) == 1.0


def test_ranks_may_point_the_other_way_than_means():
    baseline, candidate = [0.0] * 8, [-1.0] * 7 + [100.0]
    assert (rank_direction(baseline, candidate), np.mean(candidate) > 0) == (-1, True)
    assert rank_direction(candidate, baseline) == 1
    assert rank_direction([0, 0, 0], [1, -1, 0]) == 0
