import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import special as scipy_special
from scipy import stats as scipy_stats

from modelgauge.errors import InvalidDataError
from modelgauge.stats import (
    bootstrap_difference,
    correlation,
    difference_bounds,
    equivalence_test,
    mcnemar_test,
    mean_error,
    paired_difference,
    sign_flip_test,
    tango_interval,
    wilcoxon_test,
)

BASELINE = [0.9, 0.4, 0.7, 0.8, 0.6, 0.9]
CANDIDATE = [0.7, 0.5, 0.3, 0.6, 0.6, 0.2]


def test_difference_is_scipys_paired_t_test():
    found = paired_difference(BASELINE, CANDIDATE)
    expected = scipy_stats.ttest_rel(CANDIDATE, BASELINE)
    assert found.baseline == pytest.approx(np.mean(BASELINE))
    assert found.candidate == pytest.approx(np.mean(CANDIDATE))
    assert found.difference.value == pytest.approx(found.candidate - found.baseline)
    assert found.difference.stderr == pytest.approx(
        (np.mean(CANDIDATE) - np.mean(BASELINE)) / expected.statistic
    )
    interval = expected.confidence_interval()
    assert found.difference.interval == pytest.approx((interval.low, interval.high))
    assert (found.p_value, found.p_kind) == (pytest.approx(expected.pvalue, rel=1e-10), "t")


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=20))
def test_swapping_the_systems_turns_the_sign_only(pairs):
    baseline, candidate = zip(*pairs, strict=True)
    there, back = paired_difference(baseline, candidate), paired_difference(candidate, baseline)
    assert there.difference.value == -back.difference.value
    assert there.difference.stderr == back.difference.stderr
    assert there.p_value == back.p_value


def test_clusters_of_one_change_nothing_and_larger_ones_do():
    assert paired_difference(BASELINE, CANDIDATE, clusters=range(6)) == paired_difference(BASELINE, CANDIDATE)
    # Sums of residuals by cluster: with differences 1, 1, 3, 3 and mean 2, -2 and 2; SE² = 8 / (1/2) / 16.
    found = paired_difference([0, 0, 0, 0], [1, 1, 3, 3], clusters=[*"aabb"])
    assert found.difference.stderr == pytest.approx(1.0)
    assert found.p_value == pytest.approx(2 * scipy_stats.t.sf(2, 1))


def test_equal_systems_and_constant_differences_have_no_error_that_is_known():
    same = paired_difference(BASELINE, BASELINE)
    assert (same.difference.value, same.difference.interval, same.p_value) == (0, None, 1.0)
    shifted = paired_difference([1, 2, 3], [2, 3, 4])
    assert (shifted.difference.value, shifted.difference.stderr, shifted.p_value) == (1, None, None)
    single = paired_difference([0.5], [1])
    assert (single.difference.value, single.difference.stderr, single.p_value) == (0.5, None, None)
    assert (single.difference.interval_kind, single.p_kind) == (None, None)
    assert (single.stderr_unpaired, single.correlation, single.mde) == (None, None, None)
    assert (shifted.mde, shifted.correlation) == (None, pytest.approx(1.0))


def test_differences_that_only_rounding_tells_apart_are_equal():
    baseline, candidate = [0.1, 0.2, 0.7], [0.2, 0.3, 0.8]
    assert len({after - before for before, after in zip(baseline, candidate, strict=True)}) == 3
    found = paired_difference(baseline, candidate)
    assert (found.difference.stderr, found.difference.interval, found.p_value) == (None, None, None)
    assert equivalence_test(baseline, candidate, 0.2).p_equivalent is None


def test_right_and_wrong_have_tangos_interval_and_mcnemars_test():
    baseline, candidate = [0] * 5 + [1, 0, 1, 1, 1], [1] * 6 + [0, 0, 1, 1]
    found = paired_difference(baseline, candidate)
    assert (found.difference.interval, found.difference.interval_kind) == (tango_interval(1, 5, 10), "tango")
    assert (found.p_value, found.p_kind) == (mcnemar_test(baseline, candidate).p_value, "mcnemar_exact")
    assert found.p_mid == mcnemar_test(baseline, candidate).p_mid
    agreeing = paired_difference(baseline, baseline)
    low, high = agreeing.difference.interval
    assert (low, high) == tango_interval(0, 0, 10)
    assert low < 0 < high
    assert (agreeing.difference.stderr, agreeing.mde, agreeing.p_value) == (None, None, 1.0)


def test_the_declared_range_tells_what_zeros_are():
    assert paired_difference([0, 0, 0], [0, 0, 0]).difference.interval is None  # amounts, perhaps
    assert paired_difference([0] * 3, [0] * 3, declared=(0, 1)).difference.interval == tango_interval(0, 0, 3)
    wide = paired_difference([0, 4], [4, 1]).difference
    known = paired_difference([0, 4], [4, 1], declared=(0, 5)).difference
    assert (known.interval, known.interval_kind) == ((pytest.approx(-4.2563, abs=1e-4), 5), "bounded")
    assert wide.interval[0] < -5


def test_clustered_right_and_wrong_have_a_robust_interval():
    baseline, candidate = [0, 0, 1, 0, 1, 1], [1, 1, 1, 1, 0, 1]
    found = paired_difference(baseline, candidate, clusters=[*"aabbcd"])
    assert (found.difference.interval_kind, found.difference.n_clusters, found.p_kind) == (
        "tango-clusters",
        4,
        "mcnemar_clusters",
    )
    # Three clusters differ: the effect is between the estimated 1.15 and 10 / 6, that of clusters that are alike.
    effect = (
        3 * (found.difference.stderr / mean_error(np.subtract(candidate, baseline)).stderr) ** 2 + 10 / 6
    ) / 4
    assert 1 < effect < 10 / 6
    assert found.difference.interval == pytest.approx(
        tango_interval(1 / effect, 3 / effect, 6 / effect), rel=1e-9
    )
    one_sided = scipy_special.betainc(3 / effect, 1 / effect + 1, 0.5)
    assert found.p_value == pytest.approx(min(1, 2 * one_sided), rel=1e-9)
    every = paired_difference([0] * 6, [1] * 6, clusters=[*"aabbcd"])
    assert every.difference.interval == tango_interval(0, 4, 4)
    assert (every.p_value, every.p_kind) == (pytest.approx(2 * 0.5**4), "mcnemar_exact")
    even = paired_difference([0, 1, 0, 1], [1, 0, 1, 0], clusters=[*"aabb"])
    assert (even.difference.interval, even.p_value) == (tango_interval(1, 1, 2), 1.0)


# By R 4.2.2 with clubSandwich 0.5.8: lm(d ~ 1), vcovCR type "CR2", coef_test and conf_int with "Satterthwaite".
CLUB_SANDWICH = [
    (
        [1, 0, -1, 1, 1, 0, 1, 0, 0, 1],
        [1, 1, 2, 2, 2, 3, 3, 4, 5, 5],
        (0.4, 0.06204197247997803, 0.0043482318748387077, 0.21934706381683908, 0.58065293618316105),
    ),
    (
        [0.2, -0.1, 0.35, 0.05, 0.4, -0.25, 0.15, 0.3, 0.1, 0.6, -0.05, 0.45],
        [1, 1, 1, 1, 1, 2, 2, 3, 3, 3, 4, 4],
        (
            0.18333333333333338,
            0.060847193463470055,
            0.070638638440688947,
            -0.031967292491252852,
            0.3986339591579196,
        ),
    ),
]


@pytest.mark.parametrize(("differences", "clusters", "expected"), CLUB_SANDWICH)
def test_clustered_differences_are_those_of_club_sandwich(differences, clusters, expected):
    found = paired_difference([0.0] * len(differences), differences, clusters=clusters)
    estimate = found.difference
    assert (estimate.value, estimate.stderr, found.p_value, *estimate.interval) == pytest.approx(
        expected, rel=1e-10
    )


def _cr2(differences, clusters):
    """Standard error and degrees of freedom by the matrices of Pustejovsky and Tipton (2018) for y = 1 b + e."""
    y, labels = np.asarray(differences, dtype=float), np.asarray(clusters)
    n, x = len(y), np.ones((len(y), 1))
    hat = x @ x.T / n
    residuals = (np.eye(n) - hat) @ y
    rows, total = [], 0.0
    for label in np.unique(labels):
        own = labels == label
        values, vectors = np.linalg.eigh((np.eye(n) - hat)[np.ix_(own, own)])
        adjust = vectors @ np.diag(1 / np.sqrt(values)) @ vectors.T
        total += (x[own].T @ adjust @ residuals[own]).item() ** 2
        rows.append((x[own].T @ adjust @ (np.eye(n) - hat)[own]).ravel() / n)
    products = np.array(rows) @ np.array(rows).T
    return math.sqrt(total) / n, np.trace(products) ** 2 / (products**2).sum()


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 4)), min_size=8, max_size=25))
def test_clustered_differences_are_those_of_the_matrices(rows):
    differences, clusters = zip(*rows, strict=True)
    assume(len({*clusters}) > 1 and len({*clusters}) < len(clusters))
    found = paired_difference([0] * len(rows), differences, clusters=clusters)
    stderr, df = _cr2(differences, clusters)
    assert found.difference.stderr or pytest.approx(stderr, rel=1e-9, abs=1e-9) == 0.0
    if found.difference.stderr and found.p_kind == "cr2_t":
        expected = 2 * scipy_stats.t.sf(abs(found.difference.value) / stderr, df)
        assert found.p_value == pytest.approx(expected, rel=1e-9)


def test_what_pairing_bought():
    found = paired_difference(BASELINE, CANDIDATE)
    assert found.stderr_unpaired == pytest.approx(
        math.sqrt(np.var(BASELINE, ddof=1) / 6 + np.var(CANDIDATE, ddof=1) / 6), rel=1e-12
    )
    assert found.correlation == pytest.approx(scipy_stats.pearsonr(BASELINE, CANDIDATE).statistic, rel=1e-10)
    z = scipy_stats.norm.ppf(0.975) + scipy_stats.norm.ppf(0.8)
    assert found.mde == pytest.approx(z * found.difference.stderr, rel=1e-12)
    clustered = paired_difference(BASELINE, CANDIDATE, clusters=[*"aabbcc"])
    assert clustered.stderr_unpaired == pytest.approx(
        math.hypot(_cr2(BASELINE, [*"aabbcc"])[0], _cr2(CANDIDATE, [*"aabbcc"])[0])
    )


@pytest.mark.parametrize("n", [8, 100, 1000])
def test_one_disagreement_does_not_promise_that_small_differences_are_found(n):
    found = paired_difference([1] + [0] * (n - 1), [0] * n)
    least = scipy_stats.binom.sf(5, n, found.mde)  # McNemar's exact test needs six on one side
    assert least == pytest.approx(0.8, abs=1e-3)


def test_many_disagreements_find_what_the_standard_error_says():
    found = paired_difference([1, 0, 1, 0, 0] * 200, [1, 1, 0, 0, 0] * 200)
    z = scipy_stats.norm.ppf(0.975) + scipy_stats.norm.ppf(0.8)
    assert found.mde == pytest.approx(z * found.difference.stderr, rel=1e-12)


def test_five_right_or_wrong_answers_find_no_difference():
    assert paired_difference([1, 0, 0, 0, 0], [0] * 5).mde is None


def test_a_constant_system_has_no_correlation():
    assert correlation([1, 1, 1], [1, 2, 3]) is None
    assert correlation([1e300, -1e300, 0], [1e-300, -1e-300, 0]) == pytest.approx(1.0)
    assert paired_difference([0.1] * 3, [0.2, 0.3, 0.4]).correlation is None


def test_huge_and_tiny_values_neither_overflow_nor_vanish():
    huge = paired_difference([0, 1e307, 0], [1e307, 0, 3e307])
    tiny = paired_difference([0, 1e-307, 0], [1e-307, 0, 3e-307])
    assert huge.p_value == pytest.approx(tiny.p_value)
    assert sign_flip_test([0, 1e307, 0], [1e307, 0, 3e307]) == sign_flip_test([0, 1, 0], [1, 0, 3])
    with pytest.raises(
        InvalidDataError, match=r"differences of values, that are not finite.*in a larger unit"
    ):
        paired_difference([1.7e308, 0], [-1.7e308, 0])


def _equivalence(*given, **options):
    return equivalence_test(*given, 0.1, **options)


def _bounds(*given, **options):
    return difference_bounds(*given, 0, 1, **options)


CLUSTERED = [paired_difference, sign_flip_test, bootstrap_difference, _equivalence, _bounds]


@pytest.mark.parametrize("test", [*CLUSTERED, correlation, mcnemar_test, wilcoxon_test])
@pytest.mark.parametrize(
    ("baseline", "candidate"),
    [([], []), ([1], [1, 0]), ([[1]], [[0]]), ([1], [math.inf]), ([-math.inf], [1]), (1, 1)],
)
def test_what_are_no_pairs(test, baseline, candidate):
    with pytest.raises(InvalidDataError, match=r"not pairs|not finite"):
        test(baseline, candidate)


@pytest.mark.parametrize("test", [*CLUSTERED[:4], correlation, mcnemar_test, wilcoxon_test])
def test_a_missing_value_is_no_value(test):
    with pytest.raises(InvalidDataError, match="not finite"):
        test([1, 0, 1], [1, math.nan, 0])


@pytest.mark.parametrize("test", CLUSTERED)
def test_a_label_for_each_pair(test):
    with pytest.raises(InvalidDataError, match=r"with 1 cluster label\."):
        test([1, 0], [0, 1], clusters=["a"])
