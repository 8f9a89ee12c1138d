"""The numbers of comparisons, beside scipy and statsmodels, and for inputs that have hardly any."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import proportions_ztest
from statsmodels.stats.weightstats import ttost_paired
from tests.core.comparison.pairs import GSM8K, LARGE, SMALL, compared, gsm8k_of

from modelgauge.comparison.options import CompareOptions
from modelgauge.errors import InvalidDataError, InvalidOptionError
from modelgauge.stats import repeat_variance, sign_flip_test, tango_statistic, wilcoxon_test

needs_gsm8k = pytest.mark.skipif(
    not GSM8K.is_dir(), reason="GSM8K's published outputs are not on this machine"
)
near = {"rel": 1e-10, "abs": 1e-13}


def right_and_wrong(both, losses, wins, neither):
    """The values of two systems on items of which so many are right for both, one, the other, neither."""
    baseline = np.repeat([1.0, 1.0, 0.0, 0.0], [both, losses, wins, neither])
    return baseline, np.repeat([1.0, 0.0, 1.0, 0.0], [both, losses, wins, neither])


# --- real outputs -------------------------------------------------------------------------------------------


@needs_gsm8k
def test_gsm8k_is_what_scipy_and_statsmodels_say():
    baseline, candidate = gsm8k_of(SMALL), gsm8k_of(LARGE)
    row = compared(baseline, candidate)
    differences = candidate - baseline
    wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
    table = [[int(((baseline == a) & (candidate == b)).sum()) for b in (1, 0)] for a in (1, 0)]
    assert (row.n_paired, row.n_failed, row.wins, row.losses) == (1319, 0, wins, losses)
    assert row.ties == 1319 - wins - losses
    assert row.baseline_value == pytest.approx(286 / 1319, **near)
    assert row.candidate_value == pytest.approx(742 / 1319, **near)
    assert row.difference == pytest.approx(456 / 1319, **near)
    assert row.stderr == pytest.approx(scipy_stats.sem(differences), **near)
    unpaired = math.hypot(scipy_stats.sem(baseline), scipy_stats.sem(candidate))
    assert row.stderr_unpaired == pytest.approx(unpaired, **near)
    assert row.correlation == pytest.approx(scipy_stats.pearsonr(baseline, candidate).statistic, **near)
    assert row.p_value == pytest.approx(mcnemar(table, exact=True).pvalue, **near)
    assert row.p_adjusted == row.p_value
    z = scipy_stats.norm.ppf([0.975, 0.8]).sum()
    assert row.mde == pytest.approx(z * scipy_stats.sem(differences), **near)
    assert (row.interval_kind, row.p_kind) == ("tango", "mcnemar_exact")
    for end in row.interval:
        z_at_end = tango_statistic(losses, wins, 1319, end)
        assert abs(z_at_end) == pytest.approx(scipy_stats.norm.ppf(0.975), rel=1e-9)
    assert row.bounds == (row.difference, row.difference)
    assert row.bounds_interval is None
    assert row.verdict_text == "B is better than A by 34.6 points (31.7 to 37.5)."


@needs_gsm8k
def test_gsm8k_by_the_tests_on_request():
    baseline, candidate = gsm8k_of(SMALL)[:200], gsm8k_of(LARGE)[:200]
    candidate[candidate > baseline] = np.where(np.arange((candidate > baseline).sum()) % 3, 0, 1)
    plain = compared(baseline, candidate)
    ranks = compared(baseline, candidate, options={"test": "wilcoxon"})
    expected = scipy_stats.wilcoxon(candidate, baseline, method="asymptotic", correction=False)
    assert (ranks.p_kind, ranks.p_mid, ranks.interval) == ("wilcoxon", None, plain.interval)
    if (candidate != baseline).sum() > 50:
        assert ranks.p_value == pytest.approx(expected.pvalue, **near)
    signs = compared(baseline, candidate, options={"test": "permutation", "seed": 4})
    assert signs.p_kind == "permutation"
    assert signs.p_value == sign_flip_test(baseline, candidate, seed=4)
    assert signs.p_value == pytest.approx(plain.p_value, abs=0.02)
    drawn = compared(baseline, candidate, options={"test": "bootstrap"})
    assert (drawn.p_kind, drawn.interval_kind) == ("bootstrap", "bca")
    assert drawn.interval == pytest.approx(plain.interval, abs=0.02)


def test_pairs_tell_what_separate_samples_do_not():
    baseline, candidate = right_and_wrong(260, 21, 43, 76)
    row = compared(baseline, candidate)
    unpaired = proportions_ztest([baseline.sum(), candidate.sum()], [400, 400])[1]
    assert row.p_value == pytest.approx(mcnemar([[260, 21], [43, 76]], exact=True).pvalue, **near)
    assert (row.verdict, round(unpaired, 2), round(row.p_value, 3)) == ("better", 0.08, 0.008)
    assert row.stderr < row.stderr_unpaired


# --- numbers, clusters, repeats, groups ---------------------------------------------------------------------


def test_numbers_have_students_t():
    generator = np.random.default_rng(1)
    baseline, candidate = generator.normal(100, 20, 60), generator.normal(110, 30, 60)
    row = compared(baseline, candidate, name="latency", directions={"latency": "lower"})
    expected = scipy_stats.ttest_rel(candidate, baseline)
    assert (row.p_kind, row.interval_kind, row.p_mid) == ("t", "t", None)
    assert row.p_value == pytest.approx(expected.pvalue, **near)
    assert row.interval == pytest.approx(tuple(expected.confidence_interval()), **near)
    assert (row.wins, row.losses) == ((candidate < baseline).sum(), (candidate > baseline).sum())
    assert (row.value_range, row.bounds) == (None, None)


def test_items_of_a_cluster_count_once():
    baseline, candidate = right_and_wrong(60, 4, 16, 20)
    alone = compared(baseline, candidate)
    four = np.arange(400) // 4
    row = compared(np.repeat(baseline, 4), np.repeat(candidate, 4), clusters=four)
    assert (row.p_kind, row.n_clusters, alone.n_clusters) == ("mcnemar_clusters", 100, None)
    differences = candidate - baseline
    assert row.stderr == pytest.approx(scipy_stats.sem(differences), **near)
    # Nearly the same: the variance of 400 independent items has the divisor 399, not 99.
    assert row.interval == pytest.approx(alone.interval, abs=1e-3)
    assert row.p_value == pytest.approx(alone.p_value, rel=0.05)
    assert compared(baseline, candidate, clusters=np.arange(100)) == alone


def test_clusters_without_a_spread_are_right_or_wrong_as_a_whole():
    row = compared([0] * 12, [1] * 12, ranges={"accuracy": (0, 1)}, clusters=np.repeat(range(6), 2))
    assert (row.interval_kind, row.p_kind, row.stderr) == ("tango", "mcnemar_exact", None)
    assert row.p_value == pytest.approx(2 * 0.5**6)
    single = compared([0, 1, 0], [1, 1, 0], clusters=np.zeros(3, int))
    assert (single.n_clusters, single.verdict) == (1, "cannot_tell")


def test_repeats_are_means_whose_noise_is_told_apart():
    generator = np.random.default_rng(2)
    sides = [(generator.random((40, 5)) < generator.random((40, 1))).astype(float).tolist() for _ in range(2)]
    means = [[float(np.mean(one)) for one in side] for side in sides]
    repeats = {
        "before": {"repeats": {"accuracy": sides[0].__getitem__}},
        "after": {"repeats": {"accuracy": sides[1].__getitem__}},
    }
    row = compared(*means, **repeats)
    assert (row.p_kind, row.repeats.within) == (
        "t",
        pytest.approx(sum(repeat_variance(side).within for side in sides)),
    )
    spread = np.var(np.subtract(means[1], means[0]), ddof=1)
    assert row.repeats.between + row.repeats.within / 5 == pytest.approx(spread)
    means[0][3], sides[0][3] = math.nan, []
    assert compared(*means, **repeats).repeats.within != row.repeats.within
    once = {**repeats, "after": {"repeats": {"accuracy": [[mean] for mean in means[1]].__getitem__}}}
    assert compared(*means, **once).repeats is None


def test_groups_are_compared_and_their_interaction_is_tested():
    generator = np.random.default_rng(3)
    groups = np.repeat(["sums", "fractions"], [80, 60])
    baseline = generator.normal(0, 1, 140)
    candidate = baseline + generator.normal(np.where(groups == "sums", 1, 0), 1)
    order = generator.permutation(140)
    row = compared(baseline[order], candidate[order], groups=groups[order].tolist())
    differences = candidate - baseline
    parts = {name: differences[groups == name] for name in ("fractions", "sums")}
    assert [group.group for group in row.groups] == ["fractions", "sums"]
    for group in row.groups:
        assert group.difference == pytest.approx(parts[group.group].mean(), **near)
        expected = scipy_stats.ttest_1samp(parts[group.group], 0).confidence_interval()
        assert group.interval == pytest.approx(tuple(expected), **near)
    welch = scipy_stats.ttest_ind(*parts.values(), equal_var=False)
    assert row.p_interaction == pytest.approx(welch.pvalue, **near)
    assert row.p_interaction_adjusted >= row.p_interaction
    assert row.groups_text == "The difference is not the same in all groups (p is below 0.001, adjusted)."


def test_groups_that_cannot_be_tested_are_shown_all_the_same():
    row = compared([0, 1, 0, 1, 0], [1, 1, 0, 1, 1], groups=[*"aabbc"])
    assert [group.n_paired for group in row.groups] == [2, 2, 1]
    assert (row.p_interaction, row.p_interaction_adjusted) == (None, None)
    assert row.groups_text.startswith("It is not tested whether the difference is the same in all groups: ")
    before, after = np.random.default_rng(4).random((2, 36))
    known = {"groups": [*"aabb"] * 9}
    assert compared(before, after, **known, clusters=np.arange(36) // 2).p_interaction is not None
    assert compared(before, after, **known, clusters=np.arange(36) // 4).p_interaction is None


# --- missing items ------------------------------------------------------------------------------------------


def test_missing_items_are_bounded_where_the_range_is_known():
    nan = math.nan
    row = compared([1, 0, nan, 1, nan, 0], [1, nan, 0, 0, nan, 1], ranges={"accuracy": (0, 1)})
    assert (row.n_paired, row.n_failed, row.ties + row.wins + row.losses) == (3, 3, 3)
    worst = np.array([0, 0, -1, -1, -1, 1])
    best = np.array([0, 1, 0, -1, 1, 1])
    assert row.bounds == pytest.approx((worst.mean(), best.mean()))
    assert row.bounds_interval[0] < row.bounds[0] < row.bounds[1] < row.bounds_interval[1]
    assert row.verdict_text.endswith(
        "3 of 6 items failed and are left out; with them the difference is at least -33, at most 33 points."
    )
    pairs = {"ranges": {"accuracy": (0, 1)}, "clusters": np.array([0, 0, 1, 1, 2, 2])}
    clustered = compared([1, 0, nan, 1, nan, 0], [1, nan, 0, 0, nan, 1], **pairs)
    assert (clustered.bounds, clustered.bounds_interval) != (row.bounds, row.bounds_interval)
    numbers = compared([1.5, 2, nan], [2.5, 1, 2], name="length")
    assert (numbers.bounds, numbers.n_failed) == (None, 1)
    assert numbers.verdict_text.endswith("1 of 3 items failed and is left out.")


def test_items_that_both_runs_scored_without_the_measurement_have_not_failed():
    nan = math.nan
    failed = {"failed": np.array([False, False, False, True])}
    about = {
        "ranges": {"accuracy": (0, 1)},
        "clusters": np.array([0, 1, 2, 2]),
        "before": failed,
        "after": failed,
    }
    row = compared([1, 0, nan, nan], [1, 1, nan, nan], **about)
    assert (row.n_paired, row.n_failed, row.n_failed_baseline, row.n_failed_candidate) == (2, 1, 1, 1)
    assert row.bounds == pytest.approx((0, 2 / 3))


@pytest.mark.parametrize(
    ("before", "after", "failed_before", "failed_after", "counts"),
    [
        (0.0, None, False, False, (0, 1)),  # the candidate's case has no such metric
        (None, 1.0, False, False, (0, 1)),
        (
            None,
            None,
            False,
            True,
            (0, 0),
        ),  # the baseline's case has none, so the candidate's failure is no loss
        (None, None, True, False, (0, 0)),
        (0.0, None, False, True, (1, 0)),
        (None, 1.0, True, False, (1, 0)),
        (None, None, True, True, (1, 0)),
    ],
)
def test_item_without_the_measurement_is_told_from_a_failed_one(
    before, after, failed_before, failed_after, counts
):
    values = [[1, 0, math.nan if last is None else last] for last in (before, after)]
    sides = {
        name: {"failed": np.array([False, False, failed])}
        for name, failed in (("before", failed_before), ("after", failed_after))
    }
    row = compared(*values, ranges={"accuracy": (0, 1)}, **sides)
    assert (row.n_paired, (row.n_failed, row.n_unmeasured)) == (2, counts)
    assert row.bounds == ((0, 0) if not row.n_failed else pytest.approx(row.bounds))
    assert ("failed" in row.verdict_text) == bool(row.n_failed)


def test_a_side_without_a_value_has_no_difference():
    for values in ([math.nan] * 4, []):
        row = compared(values, [0.5] * len(values), ranges={"accuracy": (0, 1)})
        assert (row.difference, row.p_value, row.verdict, row.n_paired) == (None, None, "cannot_tell", 0)
        assert row.verdict_text.startswith("Cannot tell whether B is better or worse than A: no item has")


def test_values_outside_their_range_are_refused():
    with pytest.raises(InvalidDataError, match="are not within 0 to 1"):
        compared([0, 2], [1, 0], ranges={"accuracy": (0, 1)})


# --- hardly any information ---------------------------------------------------------------------------------


def test_one_item_tells_nothing():
    row = compared([0], [1], ranges={"accuracy": (0, 1)})
    assert (row.verdict, row.stderr, row.p_value) == ("cannot_tell", None, 1.0)
    unknown = compared([3], [5])
    assert (unknown.verdict, unknown.p_value, unknown.interval) == ("cannot_tell", None, None)


def test_systems_that_agree_on_all_are_not_called_equal():
    row = compared([0, 1] * 50, [0, 1] * 50)
    assert (row.difference, row.p_value, row.stderr, row.mde) == (0, 1, None, None)
    assert row.verdict_text == (
        "Cannot tell whether B is better or worse than A: they have equal values on 100 items; "
        "the difference could be anything from -3.7 to 3.7 points."
    )
    numbers = compared([0.3] * 20, [0.3] * 20)
    assert "equal values on 20 items, which does not say" in numbers.verdict_text


def test_equal_differences_without_a_range_give_no_verdict():
    before = np.array([0.1, 0.2, 0.7, 0.4, 0.5, 0.6])
    for test in (None, "permutation", "wilcoxon", "bootstrap"):
        row = compared(before, before + 0.001, options={"test": test})
        assert (row.p_value, row.interval, row.verdict) == (None, None, "cannot_tell")
    assert row.verdict_text == (
        "Cannot tell whether B is better or worse than A: they differ alike on 6 items, which does not say how much "
        "others vary."
    )
    for difference in (0, 0.001, -0.1):
        row = compared(before, before + difference, options={"margin": 1e-6})
        margin = row.equivalence
        assert (margin.p_equivalent, margin.p_not_worse, margin.interval) == (None, None, None)
        assert (margin.equivalent, margin.not_worse, row.verdict) == (False, False, "cannot_tell")


def test_equal_differences_of_a_declared_range_have_an_interval():
    before = np.array([0.1, 0.2, 0.7, 0.4, 0.5, 0.6])
    known = {"ranges": {"accuracy": (0, 1)}, "options": {"margin": 1e-6}}
    row = compared(before, before + 0.001, **known)
    assert (row.interval_kind, row.p_kind, row.verdict) == ("bounded", "bounded_t", "cannot_tell")
    assert row.interval[0] < -0.2 < 0.2 < row.interval[1]
    assert row.equivalence.p_equivalent > 0.4
    margin = compared(
        np.tile(before, 50), np.tile(before, 50), ranges={"accuracy": (0, 1)}, options={"margin": 0.02}
    )
    assert margin.verdict == "equivalent"


def test_few_deciding_items_are_named():
    before = np.linspace(0.4, 0.9, 50)
    after = before + np.where(np.arange(50) % 2, 0.02, -0.01)
    after[[3, 20, 41]] = 0.0
    row = compared(before, after, ranges={"accuracy": (0, 1)})
    assert (row.n_deciding, row.verdict) == (3, "cannot_tell")
    assert row.verdict_text.endswith(" 3 of 50 items decide this.")
    assert compared(before, np.append(before[:-1], 0.1)).verdict_text.endswith(" 1 of 50 items decides this.")
    spread = before + np.random.default_rng(3).normal(0.05, 0.1, 50)
    assert compared(before, spread).n_deciding is None
    assert compared(before, before).n_deciding is None
    baseline, candidate = right_and_wrong(47, 3, 0, 0)
    assert compared(baseline, candidate).n_deciding is None


def test_wilcoxon_is_not_used_where_it_would_not_speak_of_means():
    outlier = compared([0.0] * 8, [-1.0] * 7 + [100.0], options={"test": "wilcoxon"})
    assert outlier.p_kind == "t"
    clustered = compared(
        [0, 1, 2, 0], [1, 3, 2, 5], options={"test": "wilcoxon"}, clusters=np.array([0, 0, 1, 2])
    )
    assert clustered.p_kind == "cr2_t"
    plain = compared([0, 1, 2, 0], [1, 3, 2, 5], options={"test": "wilcoxon"})
    assert plain.p_value == wilcoxon_test([0, 1, 2, 0], [1, 3, 2, 5])


def test_margins_are_tested_as_statsmodels_does():
    generator = np.random.default_rng(6)
    baseline = generator.normal(0, 1, 80)
    candidate = baseline + generator.normal(0.1, 1, 80)
    p_both, (_, p_above, _), (_, p_below, _) = ttost_paired(candidate, baseline, -0.3, 0.3)
    for direction, p_not_worse in (("higher", p_above), ("lower", p_below), (None, None)):
        directions = {"accuracy": direction} if direction else {}
        found = compared(baseline, candidate, directions=directions, options={"margin": 0.3}).equivalence
        assert found.p_equivalent == pytest.approx(p_both, **near)
        assert found.p_not_worse == (p_not_worse and pytest.approx(p_not_worse, **near))
        assert found.not_worse == (p_not_worse and p_not_worse < 0.05)
        assert found.equivalent == (p_both < 0.05)
    interval = scipy_stats.ttest_rel(candidate, baseline).confidence_interval(0.9)
    assert found.interval == pytest.approx(tuple(interval), **near)


def test_zeros_and_ones_of_an_open_range_are_amounts():
    row = compared([0, 1, 0, 0], [1, 1, 0, 1], name="calls", ranges={"calls": (0, math.inf)})
    assert (row.p_kind, row.value_range, row.bounds) == ("t", None, None)


def test_a_margin_is_in_units_of_the_measurement():
    with pytest.raises(InvalidOptionError, match="goes from 0 to 1 only"):
        compared([0, 1], [1, 0], options={"margin": 1})
    with pytest.raises(InvalidOptionError, match="'score' goes from 1 to 5 only"):
        compared([1, 5, 3], [2, 4, 4], name="score", ranges={"score": (1, 5)}, options={"margin": 4})


# --- laws ---------------------------------------------------------------------------------------------------

METHODS = [None, "permutation", "wilcoxon", "bootstrap"]
MIRRORED = {
    "better": "worse", "worse": "better", "higher": "lower", "lower": "higher",
    "equivalent": "equivalent", "cannot_tell": "cannot_tell",
}  # fmt: skip
value = st.sampled_from([0.0, 0.0, 0.25, 0.5, 1.0, 1.0, math.nan]) | st.floats(0, 1)
pairs = st.lists(st.tuples(value, value, st.integers(0, 4)), min_size=1, max_size=25)


def about(rows, method, direction, clustered):
    clusters = np.array([code for _, _, code in rows]) if clustered else None
    groups = ["even" if code % 2 == 0 else "odd" for _, _, code in rows]
    return {
        "options": {"test": method, "margin": 0.2},
        "ranges": {"accuracy": (0, 1)},
        "directions": {"accuracy": direction} if direction else {},
        "clusters": clusters,
        "groups": groups,
    }


def numbers_of(row):
    """All numbers of a row, by their path."""

    def parts(value, path):
        if isinstance(value, dict | list | tuple):
            named = value.items() if isinstance(value, dict) else enumerate(value)
            return {place: one for name, part in named for place, one in parts(part, (*path, name)).items()}
        return {path: value} if isinstance(value, float) else {(*path, value): 0.0}

    return parts(row.model_dump(exclude={"verdict_text"}), ())


@given(pairs, st.sampled_from(METHODS), st.sampled_from(["higher", "lower", None]), st.booleans())
def test_swapping_the_systems_mirrors_everything(rows, method, direction, clustered):
    before, after = [one for one, _, _ in rows], [one for _, one, _ in rows]
    known = about(rows, method, direction, clustered)
    there, back = compared(before, after, **known), compared(after, before, **known)
    same = {"rel": 1e-9, "abs": 1e-9}

    def turned(interval):
        return interval and pytest.approx((-interval[1], -interval[0]), **same)

    assert (there.wins, there.losses, there.ties) == (back.losses, back.wins, back.ties)
    assert (there.baseline_value, there.candidate_value) == (back.candidate_value, back.baseline_value)
    assert there.interval == turned(back.interval)
    assert there.bounds == turned(back.bounds)
    assert there.bounds_interval == turned(back.bounds_interval)
    for name in ("stderr", "stderr_unpaired", "correlation", "mde", "p_value", "p_mid", "p_interaction"):
        mine, theirs = getattr(there, name), getattr(back, name)
        assert mine == (theirs if theirs is None else pytest.approx(theirs, **same)), name
    assert (there.p_kind, there.interval_kind) == (back.p_kind, back.interval_kind)
    if there.difference is not None:
        assert there.difference == pytest.approx(-back.difference, **same)
        assert there.equivalence.equivalent == back.equivalence.equivalent
    for one, other in zip(there.groups, back.groups, strict=True):
        assert (one.group, one.interval) == (other.group, turned(other.interval))
    if "not_worse" not in (there.verdict, back.verdict):
        assert there.verdict == MIRRORED[back.verdict]


@given(pairs, st.sampled_from(METHODS), st.booleans(), st.randoms(use_true_random=False))
def test_the_order_of_items_changes_nothing(rows, method, clustered, random):
    shuffled = random.sample(rows, len(rows))
    found = [
        compared([a for a, _, _ in some], [b for _, b, _ in some], **about(some, method, "higher", clustered))
        for some in (rows, shuffled)
    ]
    assert numbers_of(found[0]) == pytest.approx(numbers_of(found[1]), rel=1e-12, abs=1e-12)


@given(pairs)
def test_better_is_said_only_of_findings(rows):
    before, after = [one for one, _, _ in rows], [one for _, one, _ in rows]
    row = compared(before, after, ranges={"accuracy": (0, 1)})
    assume(row.p_adjusted is not None)
    assert (row.verdict in ("better", "worse")) == (row.p_adjusted < CompareOptions().alpha)
    assert "equal" not in row.verdict_text or row.verdict_text.startswith("Cannot tell")
