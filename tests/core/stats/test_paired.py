import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from scipy.optimize import minimize_scalar

from modelgauge.data.annotations import MeasuredTestItem
from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.errors import InvalidDataError, UnknownNameError
from modelgauge.stats.measured import MeasuredItems
from modelgauge.stats.paired import (
    Discordance,
    holm,
    mcnemar_test,
    paired_difference,
    pairs_of,
    sign_flip_test,
    tango_interval,
)

FIRST = [0.9, 0.4, 0.7, 0.8, 0.6, 0.9]
SECOND = [0.7, 0.5, 0.3, 0.6, 0.6, 0.2]


def _run(values, failed=()):
    """Items by id, each with measurement x and its id's first letter as context."""
    items = [
        MeasuredTestItem(
            test_item=TestItem([PromptWithContext("q")], id=name, context=name[0]),
            measurements={"y": 0} if value is None else {"x": value},
        )
        for name, value in values.items()
    ]
    return MeasuredItems.of(items, failed=[TestItem(["q"], id=name) for name in failed])


# --- joining ----------------------------------------------------------------------------------------------


def test_runs_are_joined_by_item_id():
    first = _run({"a1": 1, "b1": 2, "a2": 3, "c1": None}, failed=["d1"])
    second = _run({"a2": 30, "d1": 40, "a1": 10, "c1": 5}, failed=["b1"])
    pairs = pairs_of(first, second, "x", cluster=lambda item: item.context)
    assert pairs.ids == ("a1", "a2")
    assert pairs.first.tolist() == [1, 3]
    assert pairs.second.tolist() == [10, 30]
    assert pairs.clusters == ("a", "a")
    assert pairs.only_first == ("b1",)
    assert pairs.only_second == ("d1", "c1")
    assert pairs_of(first, second, "x").clusters is None


def test_pairs_that_share_answers_are_clustered():
    run = _run({"a1": 1, "b1": 2, "a2": 3, "c1": 4, "d1": 5})
    shared = MeasuredItems.of(run, shared=["p", "p", "q", "r", "s"])
    assert pairs_of(shared, run, "x").clusters == (0, 0, 1, 2, 3)
    assert pairs_of(shared, run, "x", cluster=lambda item: item.context).clusters == (0, 0, 0, 1, 2)
    assert pairs_of(shared[2:], run, "x").clusters is None
    assert pairs_of(shared, _run({"z": 1}), "x").clusters is None


def test_what_cannot_be_joined():
    with pytest.raises(UnknownNameError):
        pairs_of(_run({"a": 1}), _run({"a": 1}), "z")
    twice = MeasuredItems.of([*_run({"a": 1}), *_run({"a": 2})])
    with pytest.raises(InvalidDataError, match="1 items share their id"):
        pairs_of(twice, _run({"a": 1}), "x")


# --- difference -------------------------------------------------------------------------------------------


def test_difference_is_scipys_paired_t_test():
    found = paired_difference(FIRST, SECOND)
    expected = scipy_stats.ttest_rel(FIRST, SECOND)
    assert found.first == pytest.approx(np.mean(FIRST))
    assert found.second == pytest.approx(np.mean(SECOND))
    assert found.difference.value == pytest.approx(found.first - found.second)
    assert found.difference.stderr == pytest.approx((np.mean(FIRST) - np.mean(SECOND)) / expected.statistic)
    interval = expected.confidence_interval()
    assert found.difference.interval == pytest.approx((interval.low, interval.high))
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-10)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=20))
def test_swapping_the_systems_turns_the_sign_only(pairs):
    first, second = zip(*pairs, strict=True)
    there, back = paired_difference(first, second), paired_difference(second, first)
    assert there.difference.value == -back.difference.value
    assert there.difference.stderr == back.difference.stderr
    assert there.p_value == back.p_value


def test_clusters_of_one_change_nothing_and_larger_ones_do():
    assert paired_difference(FIRST, SECOND, clusters=range(6)) == paired_difference(FIRST, SECOND)
    # Sums of residuals by cluster: with differences 1, 1, 3, 3 and mean 2, -2 and 2; SE² = 8 / (1/2) / 16.
    found = paired_difference([1, 1, 3, 3], [0, 0, 0, 0], clusters=[*"aabb"])
    assert found.difference.stderr == pytest.approx(1.0)
    assert found.p_value == pytest.approx(2 * scipy_stats.t.sf(2, 1))


def test_equal_systems_and_constant_differences_have_no_error_that_is_known():
    same = paired_difference(FIRST, FIRST)
    assert (same.difference.value, same.difference.interval, same.p_value) == (0, None, 1.0)
    shifted = paired_difference([2, 3, 4], [1, 2, 3])
    assert (shifted.difference.value, shifted.difference.stderr, shifted.p_value) == (1, None, None)
    single = paired_difference([1], [0.5])
    assert (single.difference.value, single.difference.stderr, single.p_value) == (0.5, None, None)
    assert single.difference.interval_kind is None


def test_right_and_wrong_have_tangos_interval():
    first, second = [1] * 6 + [0, 0, 1, 1], [0] * 5 + [1, 0, 1, 1, 1]
    found = paired_difference(first, second).difference
    assert (found.interval, found.interval_kind) == (tango_interval(5, 1, 10), "tango")
    agreeing = paired_difference(first, first).difference
    assert agreeing.interval == tango_interval(0, 0, 10)
    assert agreeing.interval[0] < 0 < agreeing.interval[1]
    assert agreeing.stderr is None
    assert paired_difference([0, 0, 0], [0, 0, 0]).difference.interval is None  # amounts, perhaps


def test_clustered_right_and_wrong_have_a_robust_interval():
    first, second = [1, 1, 1, 1, 0, 1], [0, 0, 1, 0, 1, 1]
    found = paired_difference(first, second, clusters=[*"aabbcd"]).difference
    assert (found.interval_kind, found.n_clusters) == ("cr2-t", 4)
    assert found.interval[0] >= -1
    every = paired_difference([1] * 6, [0] * 6, clusters=[*"aabbcd"]).difference
    assert every.interval == tango_interval(4, 0, 4)


# --- Tango ------------------------------------------------------------------------------------------------


def _score(difference, b, c, n):
    """Tango's statistic, by a search for the likeliest table instead of the closed form."""

    def minus_log_likelihood(q):  # q: only the second is right
        parts = [(b, q + difference), (c, q), (n - b - c, 1 - 2 * q - difference)]
        return -sum(count * math.log(max(share, 1e-300)) for count, share in parts if count)

    ends = (max(0.0, -difference), (1 - difference) / 2)
    q = minimize_scalar(minus_log_likelihood, bounds=ends, method="bounded", options={"xatol": 1e-13}).x
    return (b - c - n * difference) / math.sqrt(n * (2 * q + difference * (1 - difference)))


@pytest.mark.parametrize(("b", "c", "n"), [(40, 20, 160), (7, 1, 21), (1, 7, 21), (25, 28, 618), (3, 1, 9)])
def test_tango_ends_where_the_score_test_rejects(b, c, n):
    low, high = tango_interval(b, c, n)
    assert _score(low, b, c, n) == pytest.approx(1.959964, abs=1e-4)
    assert _score(high, b, c, n) == pytest.approx(-1.959964, abs=1e-4)


def test_tango_is_that_of_published_tables():
    # Fagerland, Lydersen and Laake (2014), Statistics in Medicine 33:2850-2875, their first example.
    assert tango_interval(1, 7, 21) == pytest.approx((-0.517, -0.026), abs=5e-4)
    # R: PropCIs::scoreci.mp(25, 28, 618, 0.90), which takes the second's count first.
    assert tango_interval(28, 25, 618, confidence=0.9) == pytest.approx((-0.0148, 0.0247), abs=5e-5)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 200))
def test_tango_contains_the_difference_stays_within_and_turns_with_the_systems(b, c, agreeing):
    n = max(1, b + c + agreeing)
    low, high = tango_interval(b, c, n)
    assert -1 <= low <= (b - c) / n <= high <= 1
    assert low < high
    assert tango_interval(c, b, n) == pytest.approx((-high, -low), abs=1e-9)


@pytest.mark.parametrize("counts", [(-1, 0, 5), (3, 3, 5), (0, 0, 0)])
def test_impossible_pairs_are_refused(counts):
    with pytest.raises(InvalidDataError, match="no counts"):
        tango_interval(*counts)


@pytest.mark.parametrize("test", [paired_difference, mcnemar_test, sign_flip_test])
@pytest.mark.parametrize(("first", "second"), [([], []), ([1], [1, 0]), ([[1]], [[0]]), ([1], [math.nan])])
def test_what_are_no_pairs(test, first, second):
    with pytest.raises(InvalidDataError, match=r"not pairs|not finite"):
        test(first, second)


@pytest.mark.parametrize("test", [paired_difference, sign_flip_test])
def test_a_label_for_each_pair(test):
    with pytest.raises(InvalidDataError, match="with 1 cluster labels"):
        test([1, 0], [0, 1], clusters=["a"])


# --- McNemar ----------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_mcnemar_is_the_binomial_test_of_the_discordant(pairs):
    first, second = zip(*pairs, strict=True)
    found = mcnemar_test(first, second)
    wins = sum(a and not b for a, b in pairs)
    losses = sum(b and not a for a, b in pairs)
    assert (found.only_first, found.only_second) == (wins, losses)
    expected = scipy_stats.binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
    assert found.p_value == pytest.approx(expected, rel=1e-10)


def test_mcnemar_by_hand():
    assert mcnemar_test([1] * 6 + [0], [0] * 6 + [0]) == Discordance(6, 0, pytest.approx(2 / 64))


def test_mcnemar_is_for_right_and_wrong():
    with pytest.raises(InvalidDataError, match="neither 0 nor 1"):
        mcnemar_test([1, 0.5], [0, 1])


# --- sign flips -------------------------------------------------------------------------------------------


def _exact(differences):
    """The share of all sign patterns whose sum is at least as large as the one seen."""
    seen = abs(sum(differences)) - 1e-9
    patterns = [*itertools.product([-1, 1], repeat=len(differences))]
    return sum(abs(np.dot(pattern, differences)) >= seen for pattern in patterns) / len(patterns)


def test_sign_flips_come_near_the_exact_p_value():
    differences = [a - b for a, b in zip(FIRST, SECOND, strict=True)]
    assert sign_flip_test(FIRST, SECOND, permutations=40_000) == pytest.approx(_exact(differences), abs=0.01)


def test_sign_flips_of_zeros_and_ones_agree_with_mcnemar():
    first = [1] * 30 + [0] * 14 + [1] * 50
    second = [0] * 30 + [1] * 14 + [1] * 50
    flips = sign_flip_test(first, second, permutations=100_000)
    assert flips == pytest.approx(mcnemar_test(first, second).p_value, abs=0.003)


def test_clusters_flip_together():
    first, second = [1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0]
    clustered = sign_flip_test(first, second, clusters=[*"aabbcc"], permutations=40_000)
    assert clustered == pytest.approx(_exact([2, 2, 2]), abs=0.01)
    assert sign_flip_test(first, second, permutations=40_000) == pytest.approx(_exact([1] * 6), abs=0.01)


@given(st.randoms(use_true_random=False))
def test_the_seed_decides_and_the_order_does_not(shuffler):
    pairs = [*zip(FIRST, SECOND, strict=True)]
    shuffler.shuffle(pairs)
    first, second = zip(*pairs, strict=True)
    assert sign_flip_test(first, second, permutations=200) == sign_flip_test(FIRST, SECOND, permutations=200)
    assert sign_flip_test(FIRST, SECOND, permutations=999, seed=1) != sign_flip_test(
        FIRST, SECOND, permutations=999
    )


def test_no_difference_and_no_permutation():
    assert sign_flip_test(FIRST, FIRST) == 1.0
    with pytest.raises(InvalidDataError, match="permutations=0"):
        sign_flip_test(FIRST, SECOND, permutations=0)


def test_the_smallest_p_value_is_not_zero():
    assert sign_flip_test([1] * 200, [0] * 200, permutations=999) == 1 / 1000


def test_memory_does_not_grow_with_permutations():
    generator = np.random.default_rng(5)
    first, second = generator.random((2, 2_000))
    tracemalloc.start()
    try:
        sign_flip_test(first, second, permutations=1_500)  # all at once: 24 MB for each of several arrays
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 45e6


# --- Holm -------------------------------------------------------------------------------------------------


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([]) == ()
    assert holm([0.7, 0.9]) == (1.0, 1.0)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_lies_between_no_correction_and_bonferroni(p_values):
    adjusted = holm(p_values)
    for raw, corrected in zip(p_values, adjusted, strict=True):
        assert raw <= corrected <= min(1.0, raw * len(p_values))
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    assert [adjusted[place] for place in order] == sorted(adjusted)


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan])
def test_holm_takes_p_values_only(bad):
    with pytest.raises(InvalidDataError, match="not p values"):
        holm([0.5, bad])
