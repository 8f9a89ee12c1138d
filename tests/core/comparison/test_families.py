"""Several comparisons at once: adjusted p values, means over tests, leaderboards."""

import itertools
import math
import time
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats as scipy_stats
from statsmodels.stats.multitest import multipletests
from tests.core.comparison.pairs import GSM8K, LARGE, SMALL, gsm8k_of, items_of, runs_of

from modelgauge.comparison.compare import compare_pairs
from modelgauge.comparison.gates import Gates
from modelgauge.comparison.options import CompareOptions
from modelgauge.errors import RecordError, UnknownNameError
from modelgauge.stats import mcnemar_test

generator = np.random.default_rng(7)


def right(n, rate):
    return (generator.random(n) < rate).astype(float)


def gaining(label, gains, n=200):
    """Items of several tests, on each of which the candidate gains so much."""
    return [
        items_of(right(n, 0.5), right(n, 0.5 + gain), label=label, test=f"test_{place}")
        for place, gain in enumerate(gains)
    ]


# --- the family ---------------------------------------------------------------------------------------------


def test_all_that_is_shown_is_adjusted_together():
    items = [*gaining("B", [0, 0.1, 0.2]), *gaining("C", [0.05, 0.15])]
    found = compare_pairs(runs_of(*items), CompareOptions())
    rows = [*found.comparisons, *found.macro]
    # Five tests and two means, and B beside C on the leaderboards of two tests.
    assert (len(found.macro), found.family, found.alpha) == (2, 9, 0.05)
    of_candidates = [
        mcnemar_test(one.after.values["accuracy"], other.after.values["accuracy"]).p_value
        for one, other in zip(items[:2], items[3:], strict=True)
    ]
    expected = multipletests([*(row.p_value for row in rows), *of_candidates], method="holm")[1]
    assert [row.p_adjusted for row in rows] == pytest.approx(expected[:-2])
    for row in rows:
        assert (row.verdict in ("better", "worse")) == (row.p_adjusted < 0.05)


def test_measurements_with_equal_values_count_once():
    before, after, other = right(200, 0.5), right(200, 0.6), right(200, 0.7)
    both = [{"x": one, "x.passed": [*one], "y": two} for one, two in ((before, before), (after, other))]
    both = [{name: np.array(values, dtype=float) for name, values in each.items()} for each in both]
    items = items_of(before, after, before={"values": both[0]}, after={"values": both[1]})
    x, passed, y = compare_pairs(runs_of(items), CompareOptions()).comparisons
    assert [x.p_adjusted, y.p_adjusted] == pytest.approx(
        multipletests([x.p_value, y.p_value], method="holm")[1]
    )
    assert (passed.p_value, passed.p_adjusted) == (x.p_value, x.p_adjusted)
    assert compare_pairs(runs_of(items), CompareOptions()).family == 2
    found = compare_pairs(runs_of(items, replace(items, test="other")), CompareOptions())
    x, passed, y = found.macro
    assert (found.family, passed.p_adjusted) == (6, x.p_adjusted)


def test_groups_are_of_the_family_and_what_has_no_p_value_is_not():
    groups = ["x", "y"] * 100
    items = [
        items_of(right(200, 0.5), right(200, 0.6), test="a", groups=groups),
        items_of([1], [2], test="b"),
    ]
    found = compare_pairs(runs_of(*items), CompareOptions())
    first, second = found.comparisons
    assert (found.family, second.p_value, second.p_adjusted) == (2, None, None)
    expected = multipletests([first.p_value, first.p_interaction], method="holm")[1]
    assert [first.p_adjusted, first.p_interaction_adjusted] == pytest.approx(expected)


def test_a_finding_alone_may_be_none_among_others():
    baseline, candidate = (
        np.repeat([1.0, 0, 1, 0], [40, 12, 3, 45]),
        np.repeat([1.0, 1, 0, 0], [40, 12, 3, 45]),
    )
    alone = compare_pairs(runs_of(items_of(baseline, candidate)), CompareOptions())
    others = [items_of(baseline, baseline, test=f"other_{number}") for number in range(3)]
    among = compare_pairs(runs_of(items_of(baseline, candidate), *others), CompareOptions())
    assert (alone.comparisons[0].verdict, among.comparisons[0].verdict) == ("better", "cannot_tell")
    assert among.comparisons[0].p_value == alone.comparisons[0].p_value
    assert among.comparisons[0].verdict_text == (
        "Cannot tell whether B is better or worse than A (difference 9.0 points, 1.6 to 17.4): a difference of 12.9 "
        "points would have been found 4 times in 5. By itself p is 0.035, but 0.18 for 5 comparisons."
    )


# --- means over tests ---------------------------------------------------------------------------------------


def test_means_over_tests_weigh_all_tests_alike():
    rows = compare_pairs(runs_of(*gaining("B", [0.1, 0.2]), *gaining("C", [0.0, 0.0])), CompareOptions())
    assert [(one.candidate, one.tests) for one in rows.macro] == [
        ("B", ("test_0", "test_1")),
        ("C", ("test_0", "test_1")),
    ]
    first, second = rows.comparisons[:2]
    mean = rows.macro[0]
    assert mean.difference == pytest.approx((first.difference + second.difference) / 2)
    assert mean.stderr == pytest.approx(math.hypot(first.stderr, second.stderr) / 2)
    dfs = [
        (one.stderr**2 + two.stderr**2) ** 2 / ((one.stderr**4 + two.stderr**4) / 199)
        for one, two in (rows.comparisons[:2], rows.comparisons[2:])
    ]
    half = scipy_stats.t.ppf(0.975, dfs[0]) * mean.stderr
    assert mean.interval == pytest.approx((mean.difference - half, mean.difference + half))
    assert (mean.direction, mean.value_range) == ("higher", (0, 1))
    p_values = [
        2 * scipy_stats.t.sf(abs(one.difference) / one.stderr, df)
        for one, df in zip(rows.macro, dfs, strict=True)
    ]
    assert [one.p_value for one in rows.macro] == pytest.approx(p_values, rel=1e-10)
    assert [one.verdict for one in rows.macro] == ["better", "cannot_tell"]
    assert str(rows).splitlines()[-2:] == [f"accuracy: {one.verdict_text}" for one in rows.macro]


def test_a_mean_over_tests_may_tell_what_no_test_does():
    before = [np.repeat([1.0, 0, 1, 0], [40, 12, 4, 44]) for _ in range(6)]
    after = np.repeat([1.0, 1, 0, 0], [40, 12, 4, 44])
    items = [items_of(one, after, test=f"t{number}") for number, one in enumerate(before)]
    found = compare_pairs(runs_of(*items), CompareOptions())
    assert {row.verdict for row in found.comparisons} == {"cannot_tell"}
    (mean,) = found.macro
    assert mean.verdict_text == (
        "B is better than A by 8.0 points (4.8 to 11.2), on average over 6 tests. The interval is not "
        "adjusted for the 7 comparisons."
    )
    less = compare_pairs(runs_of(*items[:2], items_of(after, before[0], test="u")), CompareOptions())
    assert less.macro[0].verdict_text == (
        "Cannot tell whether B is better or worse than A, on average over 3 tests (difference 2.7 points, -1.8 to "
        "7.1): a difference of 7.6 points would have been found 4 times in 5."
    )


def test_a_mean_over_tests_says_what_failed_items_could_change():
    before, after = [1.0] * 20 + [0.0] * 60, [1.0] * 20 + [0.0] * 40 + [1.0] * 20
    whole = items_of(before, after, test="whole")
    failing = items_of(before, [*after[:40], *[math.nan] * 20, *after[60:]], test="failing")
    (mean,) = compare_pairs(runs_of(whole, failing), CompareOptions()).macro
    assert (mean.n_paired, mean.n_failed, mean.bounds) == (140, 20, pytest.approx((0.25, 0.375)))
    assert mean.verdict_text.endswith(
        "20 of 160 items failed and are left out; with them the difference is at least 25.0, at most 37.5 points."
    )
    lost = items_of(before, [math.nan] * 40 + after[40:], test="lost")
    (mean,) = compare_pairs(runs_of(lost, failing), CompareOptions()).macro
    assert (mean.verdict, mean.bounds) == ("better", pytest.approx((0.125, 0.5)))
    unknown = items_of([1, 2, 3, 4], [2, 4, 3, math.nan], test="unknown")
    (mean,) = compare_pairs(runs_of(unknown, replace(unknown, test="other")), CompareOptions()).macro
    assert (mean.n_failed, mean.bounds) == (2, None)
    assert mean.verdict_text.endswith("2 of 8 items failed and are left out.")


def test_gate_on_a_mean_over_tests_fails_if_failed_items_could_make_it_worse():
    before, after = [1.0, 0.0] * 15, [0.0, 1.0] * 5 + [1.0, 0.0] * 10
    failing = [*after[:20], *[math.nan] * 10]
    tests = [items_of(before, failing, test=f"test {number}") for number in range(12)]
    found = compare_pairs(runs_of(*tests), CompareOptions())
    (mean,) = found.macro
    assert (mean.verdict, mean.difference) == ("cannot_tell", 0)
    assert mean.bounds == pytest.approx((-5 / 30, 5 / 30))
    assert mean.p_if_worst < 0.05 / found.family
    assert mean.verdict_text.endswith("At worst, B is significantly worse.")
    outcome = Gates(fail_if_worse=True).outcomes(found)[-1]
    assert (outcome.gate, outcome.passed) == ("--fail-if-worse", False)
    whole = compare_pairs(
        runs_of(*(items_of(before, after, test=one.test) for one in tests)), CompareOptions()
    )
    assert whole.macro[0].p_if_worst is None


def test_a_test_without_a_spread_has_the_error_of_its_interval():
    same = items_of([0, 1] * 50, [0, 1] * 50, test="a")
    other = items_of(*np.random.default_rng(1).integers(0, 2, (2, 100)), test="b")
    found = compare_pairs(runs_of(same, other), CompareOptions())
    (low, high), second = found.comparisons[0].interval, found.comparisons[1]
    error = (high - low) / 2 / scipy_stats.norm.ppf(0.975)
    assert found.macro[0].stderr == pytest.approx(math.hypot(error, second.stderr) / 2, rel=1e-10)
    unknown = [items_of([5, 5], [5, 5], test="a"), items_of([5, 6, 7], [6, 5, 5], test="b")]
    (mean,) = compare_pairs(runs_of(*unknown), CompareOptions()).macro
    assert (mean.stderr, mean.p_value, mean.verdict) == (None, None, "cannot_tell")
    assert mean.verdict_text.endswith(
        "on average over 2 tests: the standard error of one of them is not known."
    )


def test_no_mean_is_taken_of_other_units_or_directions():
    share = items_of([0, 1, 0], [1, 1, 0], test="a")
    stars = items_of([1, 5, 2], [4, 4, 3], test="b", ranges={"accuracy": (1, 5)})
    assert compare_pairs(runs_of(share, stars), CompareOptions()).macro == ()
    lower = items_of([0, 1, 0], [1, 1, 0], test="b", directions={"accuracy": "lower"})
    assert compare_pairs(runs_of(share, lower), CompareOptions()).macro == ()
    assert compare_pairs(runs_of(share, lower), CompareOptions(lower_is_better=("accuracy",))).macro != ()
    assert compare_pairs(runs_of(share), CompareOptions()).macro == ()
    all_right = items_of([1, 1, 1], [1, 1, 1], test="b")
    (mean,) = compare_pairs(runs_of(all_right, share), CompareOptions()).macro
    assert mean.value_range == (0, 1)


def test_tests_that_share_prompts_tell_no_more_than_one_of_them():
    before, after = np.repeat([0.0, 1, 1, 0], [5, 1, 20, 4]), np.repeat([1.0, 0, 1, 0], [5, 1, 20, 4])
    prompts, others = np.arange(30), np.arange(100, 130)

    def mean(*labels, tests=8):
        items = [
            items_of(before, after, test=f"same_{number}", ranges={"accuracy": (0, 1)}, **about)
            for number, about in enumerate(labels * (tests // len(labels)))
        ]
        return compare_pairs(runs_of(*items), CompareOptions()).macro[0]

    one = compare_pairs(runs_of(items_of(before, after)), CompareOptions()).comparisons[0]
    for same in ({"questions": prompts}, {"origins": prompts}, {"questions": others, "origins": prompts}):
        shared = mean(same)
        assert (shared.difference, shared.stderr) == pytest.approx((one.difference, one.stderr))
        assert shared.p_value == pytest.approx(2 * scipy_stats.t.sf(one.difference / one.stderr, 29))
        assert shared.verdict == "cannot_tell"
    for apart in ({}, {"questions": None}):
        assert mean(apart).stderr == pytest.approx(one.stderr / math.sqrt(8))
        assert mean(apart).verdict == "better"
    pairs = mean({"questions": prompts}, {"questions": others})
    assert pairs.stderr == pytest.approx(one.stderr / math.sqrt(2))
    assert pairs.p_value == pytest.approx(2 * scipy_stats.t.sf(one.difference / pairs.stderr, 58))


def test_a_mean_over_graded_tests_allows_for_losses_that_they_have_not_shown():
    before = np.linspace(0.6, 0.99, 40)
    known = {"ranges": {"accuracy": (0, 1)}, "questions": np.arange(40)}
    one = items_of(before, before + 0.001 * np.cos(np.arange(40)), test="one", **known)
    found = compare_pairs(runs_of(one, replace(one, test="again")), CompareOptions())
    (mean,), (row, _) = found.macro, found.comparisons
    assert mean.interval == pytest.approx(row.interval, rel=0.03)
    apart = compare_pairs(runs_of(one, replace(one, test="other", questions=None)), CompareOptions()).macro[0]
    assert mean.interval[0] < apart.interval[0] < -0.02
    assert 0.02 < apart.interval[1] < mean.interval[1]
    equal = replace(one, after=one.before)
    (mean,) = compare_pairs(runs_of(equal, replace(equal, test="again")), CompareOptions()).macro
    assert (mean.difference, mean.verdict) == (0, "cannot_tell")
    assert mean.interval == pytest.approx(row.interval, rel=0.03)


def test_tests_without_a_spread_that_share_prompts_have_one_error():
    same = [
        items_of([0, 1] * 20, [0, 1] * 20, test=test, questions=np.arange(40) + 40 * apart)
        for apart, test in enumerate("ab")
    ]
    shared = [replace(items, questions=np.arange(40)) for items in same]
    apart, together = (compare_pairs(runs_of(*items), CompareOptions()).macro[0] for items in (same, shared))
    assert together.stderr == pytest.approx(apart.stderr * math.sqrt(2))


# --- leaderboards -------------------------------------------------------------------------------------------


def test_three_systems_are_ranked_pair_by_pair():
    baseline, second, third = (generator.normal(shift, 1, 60) for shift in (0, 0.1, 2))
    second[4] = math.nan
    shuffled = generator.permutation(60)[:50]
    items = [
        items_of(baseline, second, label="B"),
        items_of(baseline[shuffled], third[shuffled], label="C", before={"places": shuffled}),
    ]
    found = compare_pairs(runs_of(*items), CompareOptions(seed=3))
    (table,) = found.leaderboard
    assert (table.n, table.direction) == (len(np.setdiff1d(shuffled, [4])), "higher")
    values = dict(zip("ABC", (baseline, np.delete(second, 4), third[shuffled]), strict=True))
    assert [system.system for system in table.systems] == sorted(values, key=lambda one: -values[one].mean())
    for system in table.systems:
        own = values[system.system]
        assert (system.value, system.n) == (pytest.approx(own.mean()), len(own))
        assert system.ranks == ((1, 1) if system.system == "C" else (2, 3))
    assert {frozenset(group) for group in table.groups} == {frozenset("C"), frozenset("AB")}
    apart = dict(zip("ABC", (baseline, second, np.full(60, math.nan)), strict=True))
    apart["C"][shuffled] = third[shuffled]
    for first, other, low, high in table.intervals:
        differences = apart[first] - apart[other]
        expected = scipy_stats.ttest_1samp(differences[~np.isnan(differences)], 0)
        # Of two comparisons with the baseline and one pair of candidates.
        assert (low, high) == pytest.approx(tuple(expected.confidence_interval(1 - 0.05 / 3)))
    assert len(table.intervals) == 3


def test_the_leaderboard_tells_apart_what_the_verdicts_tell_apart():
    differing = {"verdicts": 0, "candidates": 0}
    for seed in range(40):
        draw = np.random.default_rng(seed)
        ease = draw.normal(0, 1, (60, 1))
        right_or_wrong = (ease + draw.normal(0, 1, (60, 4)) + [0, 0.3, 0.6, 0.7] > 0) * 1.0
        items = [
            items_of(right_or_wrong[:, 0], right_or_wrong[:, place], label=label)
            for place, label in enumerate("BCD", start=1)
        ]
        found = compare_pairs(runs_of(*items), CompareOptions())
        (table,) = found.leaderboard
        together = {frozenset(pair) for group in table.groups for pair in itertools.combinations(group, 2)}
        for row in found.comparisons:
            is_finding = row.verdict in ("better", "worse")
            differing["verdicts"] += is_finding
            assert is_finding == (frozenset(("A", row.candidate)) not in together)
        differing["candidates"] += sum(frozenset(pair) not in together for pair in ("BC", "BD", "CD"))
    assert differing["verdicts"] > 5
    assert differing["candidates"] > 0


def test_a_system_that_failed_takes_no_items_from_the_ranks_of_others():
    draw = np.random.default_rng(1)
    scores = draw.normal(0, 1, (80, 1)) + draw.normal(0, 0.5, (80, 3)) + [0, 1, 2]
    scores = np.column_stack([scores, np.where(np.arange(80) < 3, 0.0, math.nan)])

    def board(*labels):
        columns = dict(zip("ABCD", scores.T, strict=True))
        items = [items_of(columns["A"], columns[label], label=label) for label in labels]
        return compare_pairs(runs_of(*items), CompareOptions()).leaderboard[0]

    alone, beside = board(*"BC"), board(*"BCD")
    assert [(system.system, system.ranks) for system in alone.systems] == [
        ("C", (1, 1)),
        ("B", (2, 2)),
        ("A", (3, 3)),
    ]
    ranks = {system.system: system.ranks for system in beside.systems}
    assert ranks == {"C": (1, 2), "B": (2, 3), "A": (3, 4), "D": (1, 4)}
    assert (beside.n, {system.system: system.n for system in beside.systems}) == (
        3, {"A": 80, "B": 80, "C": 80, "D": 3},
    )  # fmt: skip


def test_lower_is_better_ranks_the_other_way():
    values = [generator.normal(shift, 0.1, 40) for shift in (1, 2, 3)]
    items = [items_of(values[0], one, label=label) for label, one in zip("BC", values[1:], strict=True)]
    (table,) = compare_pairs(runs_of(*items), CompareOptions(lower_is_better=("accuracy",))).leaderboard
    assert [(system.system, system.ranks) for system in table.systems] == [
        ("A", (1, 1)),
        ("B", (2, 2)),
        ("C", (3, 3)),
    ]
    assert table.direction == "lower"


def test_what_cannot_be_ranked_has_no_leaderboard():
    pair = [items_of([0, 1, 1], [1, 1, 0], label=label) for label in "BC"]
    assert compare_pairs(runs_of(pair[0]), CompareOptions()).leaderboard == ()
    single = [items_of([1], [0], label=label) for label in "BC"]
    assert compare_pairs(runs_of(*single), CompareOptions()).leaderboard == ()
    cluster = [items_of([0, 1], [1, 1], label=label, clusters=np.zeros(2, int)) for label in "BC"]
    assert compare_pairs(runs_of(*cluster), CompareOptions()).leaderboard == ()
    nothing = [items_of([0, 1], [math.nan, math.nan], label=label) for label in "BC"]
    assert compare_pairs(runs_of(*nothing), CompareOptions()).leaderboard == ()
    failed = items_of([0, 1, 1], [math.nan] * 3, label="D")
    (table,) = compare_pairs(runs_of(*pair, failed), CompareOptions()).leaderboard
    assert {system.system for system in table.systems} == {"A", "B", "C"}
    assert len(table.intervals) == 3


# --- names, notes, time -------------------------------------------------------------------------------------


def test_some_measurements_alone():
    items = items_of(
        [0, 1], [1, 1],
        before={"values": {"accuracy": np.array([0.0, 1.0]), "seconds": np.array([3.0, 1.0]), "own": np.ones(2)}},
        after={"values": {"accuracy": np.array([1.0, 1.0]), "seconds": np.array([2.0, 1.0])}},
    )  # fmt: skip
    found = compare_pairs(runs_of(items), CompareOptions())
    assert [row.measurement for row in found.comparisons] == ["accuracy", "seconds"]
    assert str(found).splitlines() == [
        f"t, {row.measurement}: {row.verdict_text}" for row in found.comparisons
    ]
    assert found.notes == ("Only A has the measurement 'own' of t.",)
    one = compare_pairs(runs_of(items), CompareOptions(measurements=("seconds",)))
    assert ([row.measurement for row in one.comparisons], one.family, one.notes) == (["seconds"], 1, ())
    for option in ("measurements", "lower_is_better", "higher_is_better"):
        with pytest.raises(
            UnknownNameError, match=r"no measurement 'acuracy' to compare. Did you mean 'accuracy'\?"
        ):
            compare_pairs(runs_of(items), CompareOptions(**{option: ("acuracy",)}))


def test_a_system_of_which_nothing_was_measured_is_compared_all_the_same():
    failed = items_of([0, 1, 1, 1], [], after={"values": {}}, ranges={"accuracy": (0, 1)})
    (row,) = compare_pairs(runs_of(failed), CompareOptions()).comparisons
    assert (row.n_failed, row.verdict, row.bounds) == (4, "cannot_tell", (-0.75, 0.25))
    assert row.verdict_text == (
        "Cannot tell whether B is better or worse than A: no item has a value of both. 4 of 4 items failed and are "
        "left out; with them the difference is at least -75, at most 25 points."
    )


def test_nothing_in_common_is_refused():
    nothing = items_of([], [], before={"values": {}}, after={"values": {}})
    with pytest.raises(RecordError, match=r"No measurement is there on both sides: A: none; B: none."):
        compare_pairs(runs_of(nothing), CompareOptions())
    other = items_of([1], [], after={"values": {"f1": np.ones(1)}})
    with pytest.raises(RecordError, match=r"both sides: A: 'accuracy'; B: 'f1'."):
        compare_pairs(runs_of(other), CompareOptions())


def test_a_test_that_does_not_fit_is_named():
    items = items_of([0, 1, 2, 0], [1, 3, 2, 5], clusters=np.array([0, 0, 1, 2]))
    found = compare_pairs(runs_of(items), CompareOptions(test="wilcoxon"))
    assert found.notes == ("The wilcoxon test does not fit accuracy of t, B: its p value is by cr2_t.",)
    assert compare_pairs(runs_of(items), CompareOptions(test="permutation")).notes == ()


@pytest.mark.skipif(not GSM8K.is_dir(), reason="GSM8K's published outputs are not on this machine")
def test_three_systems_on_gsm8k():
    small, large = gsm8k_of(SMALL), gsm8k_of(LARGE)
    both = np.maximum(small, large)
    items = [items_of(small, large, label="large"), items_of(small, both, label="both")]
    found = compare_pairs(runs_of(*items, baseline="small"), CompareOptions())
    assert [row.verdict for row in found.comparisons] == ["better", "better"]
    (table,) = found.leaderboard
    assert [(system.system, system.ranks) for system in table.systems] == [
        ("both", (1, 1)),
        ("large", (2, 2)),
        ("small", (3, 3)),
    ]
    assert table.groups == (("both",), ("large",), ("small",))


def test_many_tests_of_many_systems_take_seconds():
    items = [one for label in "BCDE" for one in gaining(label, [0.02] * 27, n=1000)]
    began = time.process_time()
    found = compare_pairs(runs_of(*items), CompareOptions())
    assert time.process_time() - began < 8
    assert (len(found.comparisons), found.family, len(found.leaderboard)) == (108, 274, 27)
