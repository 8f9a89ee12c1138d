import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.oneway import anova_oneway

from modelgauge.errors import InvalidDataError
from modelgauge.stats import holm, interaction_test, macro_mean


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([]) == ()
    assert holm([0.7, 0.9]) == (1.0, 1.0)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_lies_between_no_correction_and_bonferroni(p_values):
    adjusted = holm(p_values)
    for raw, corrected in zip(p_values, adjusted, strict=True):
        assert raw <= corrected <= min(1.0, raw * len(p_values))
    with mock.patch("gc.collect"):  # which statsmodels calls each time
        expected = multipletests(p_values, method="holm")[1]
    assert adjusted == pytest.approx(expected, rel=1e-10)
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    assert [adjusted[place] for place in order] == sorted(adjusted)


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan])
def test_holm_takes_p_values_only(bad):
    with pytest.raises(InvalidDataError, match="not p values"):
        holm([0.5, bad])


# --- macro means ------------------------------------------------------------------------------------------


def test_a_macro_mean_adds_the_squared_errors():
    found = macro_mean([0.5, 0.9, 0.1], [0.1, 0.2, 0.05])
    stderr = math.sqrt(0.1**2 + 0.2**2 + 0.05**2) / 3
    assert (found.value, found.stderr) == pytest.approx((0.5, stderr), rel=1e-12)
    z = scipy_stats.norm.ppf(0.975)
    assert found.interval == pytest.approx((0.5 - z * stderr, 0.5 + z * stderr), rel=1e-12)
    weighted = macro_mean([0.5, 0.9], [0.1, 0.2], weights=[3, 1])
    assert (weighted.value, weighted.stderr) == pytest.approx((0.6, math.hypot(0.075, 0.05)), rel=1e-12)


def test_an_unknown_error_leaves_the_macro_mean_without_one():
    assert macro_mean([0.5, 1.0], [0.1, None]) == (0.75, None, None)
    assert macro_mean([0.5], [0.0]) == (0.5, 0.0, (0.5, 0.5))


@pytest.mark.parametrize(
    ("values", "stderrs", "weights"),
    [
        ([], [], None), ([1], [], None), ([1], [1], [1, 1]), ([math.nan], [1], None), ([1], [math.inf], None),
        ([1], [-1], None), ([1], [1], [0]), ([1, 1], [1, 1], [2, -1]), ([1], [1], [math.nan]),
    ],
)  # fmt: skip
def test_what_has_no_macro_mean(values, stderrs, weights):
    with pytest.raises(InvalidDataError):
        macro_mean(values, stderrs, weights=weights)


# --- interaction ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(8, 20), (5, 9, 30), (10, 10, 10, 40)])
def test_the_interaction_is_welchs_analysis_of_variance(sizes):
    generator = np.random.default_rng(3)
    groups = [generator.normal(0.3 * place, 1 + place, size) for place, size in enumerate(sizes)]
    found = interaction_test(
        [group.mean() for group in groups],
        [scipy_stats.sem(group) for group in groups],
        [len(group) - 1 for group in groups],
    )
    assert found == pytest.approx(anova_oneway(groups, use_var="unequal").pvalue, rel=1e-10)
    if len(sizes) == 2:
        assert found == pytest.approx(scipy_stats.ttest_ind(*groups, equal_var=False).pvalue, rel=1e-10)


def test_equal_differences_show_no_interaction():
    assert interaction_test([0.1, 0.1], [0.1, 0.2], [9, 9]) == 1.0


@pytest.mark.parametrize(
    "given",
    [
        ([], [], []),
        ([1], [1], [1]),
        ([1, 2], [1], [1, 1]),
        ([1, 2], [1, 0], [1, 1]),
        ([1, 2], [1, 1], [0, 1]),
        ([1, math.nan], [1, 1], [1, 1]),
    ],
)
def test_what_has_no_interaction(given):
    with pytest.raises(InvalidDataError):
        interaction_test(*given)
