import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from modelgauge.errors import InvalidDataError
from modelgauge.stats import RepeatVariance, paired_repeat_variance, pass_at_k, pass_hat_k, repeat_variance


def test_equal_repeats_have_the_analysis_of_variance():
    values = np.random.default_rng(1).normal(0, 1, (12, 4)) + np.arange(12)[:, None]
    found = repeat_variance(values)
    within = values.var(axis=1, ddof=1).mean()
    between = (4 * values.mean(axis=1).var(ddof=1) - within) / 4
    assert found == pytest.approx((between, within), rel=1e-10)
    f = scipy_stats.f_oneway(*values).statistic
    assert (found.within + 4 * found.between) / found.within == pytest.approx(f, rel=1e-10)
    assert found.correlation == pytest.approx(between / (between + within))


def test_unequal_repeats_are_unbiased():
    generator = np.random.default_rng(2)
    found = []
    for _ in range(2000):
        counts = generator.integers(1, 5, 30)
        found.append(
            repeat_variance(
                [
                    one + generator.normal(0, 2, n)
                    for n, one in zip(counts, generator.normal(0, 3, 30), strict=True)
                ]
            )
        )
    assert np.mean([one.within for one in found]) == pytest.approx(4, rel=0.02)
    assert np.mean([one.between for one in found]) == pytest.approx(9, rel=0.03)


def test_a_difference_has_the_noise_of_both():
    generator = np.random.default_rng(3)
    before, after = (
        generator.normal(0, 1, (20, 3)),
        generator.normal(0, 2, (20, 5)) + generator.normal(0, 3, (20, 1)),
    )
    found = paired_repeat_variance(before, after)
    one, other = before.var(axis=1, ddof=1).mean(), after.var(axis=1, ddof=1).mean()
    assert found.within == pytest.approx(one + other, rel=1e-10)
    spread = (after.mean(axis=1) - before.mean(axis=1)).var(ddof=1)
    assert found.between == pytest.approx(spread - one / 3 - other / 5, rel=1e-10)


def test_noise_alone_leaves_no_variance_between():
    assert repeat_variance([[0, 1], [1, 0], [0, 1]]) == RepeatVariance(0.0, 0.5)
    assert repeat_variance([[1, 1], [1, 1]]) == RepeatVariance(0.0, 0.0)
    assert repeat_variance([[1, 1], [1, 1]]).correlation is None
    assert repeat_variance([[0, 0], [1]]) == RepeatVariance(0.5, 0.0)


@pytest.mark.parametrize(
    "repeats", [[], [[1, 2]], [[1], [2]], [[1, 2], []], [[1, math.nan], [1, 2]], [[[1]], [[2]]]]
)
def test_what_are_no_repeats(repeats):
    with pytest.raises(InvalidDataError):
        repeat_variance(repeats)


def test_the_same_items_have_repeats():
    with pytest.raises(InvalidDataError, match="2 and 3 items"):
        paired_repeat_variance([[1, 2]] * 2, [[1, 2]] * 3)


@given(st.integers(1, 8), st.data())
def test_pass_at_k_is_the_share_of_draws_with_a_right_answer(n, data):
    right, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    draws = [*itertools.combinations([1] * right + [0] * (n - right), k)]
    assert pass_at_k(n, right, k) == pytest.approx(sum(map(any, draws)) / len(draws), rel=1e-12)


@given(st.integers(1, 8), st.data())
def test_pass_hat_k_is_share_of_draws_with_right_answers_only(n, data):
    right, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    draws = [*itertools.combinations([1] * right + [0] * (n - right), k)]
    assert pass_hat_k(n, right, k) == pytest.approx(sum(map(all, draws)) / len(draws), rel=1e-12)


@pytest.mark.parametrize("counts", [(3, 4, 1), (3, -1, 1), (3, 1, 0), (3, 1, 4)])
@pytest.mark.parametrize("estimate", [pass_at_k, pass_hat_k])
def test_estimates_of_impossible_draws_are_refused(estimate, counts):
    with pytest.raises(InvalidDataError, match="Cannot compute"):
        estimate(*counts)
