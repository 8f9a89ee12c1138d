import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from modelgauge.data.annotations import MeasuredTestItem
from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.errors import InvalidDataError, UnknownNameError
from modelgauge.stats.aggregations import (
    count,
    grouped,
    maximum,
    mean,
    mean_of_each,
    median,
    minimum,
    quantiles,
    stddev,
    total,
)
from modelgauge.stats.intervals import bounded_interval, wilson_interval
from modelgauge.stats.measured import MeasuredItems


def _items(values, contexts=None, *, failed=(), **known):
    """An item with measurement x for each value (None: without it); contexts default to None."""
    contexts = contexts or [None] * len(values)
    items = [
        MeasuredTestItem(
            test_item=TestItem([PromptWithContext("q")], context=context, id=f"i{place}"),
            measurements={} if value is None else {"x": value},
        )
        for place, (value, context) in enumerate(zip(values, contexts, strict=True))
    ]
    lost = [
        TestItem([PromptWithContext("q")], context=context, id=f"f{i}") for i, context in enumerate(failed)
    ]
    return MeasuredItems.of(items, failed=lost, **known)


unit = st.floats(0, 1)
units = st.lists(unit, min_size=1, max_size=30)


# --- mean -------------------------------------------------------------------------------------------------


def test_mean_of_zeros_and_ones_has_wilsons_interval():
    estimate = mean(_items([True, False, True, True]), "x")
    expected = scipy_stats.binomtest(3, 4).proportion_ci(method="wilson")
    assert (estimate.value, estimate.n) == (0.75, 4)
    assert estimate.interval == pytest.approx((expected.low, expected.high))
    assert estimate.stderr == pytest.approx(math.sqrt(0.75 * 0.25 / 3))
    assert estimate.bounds == (0.75, 0.75)


def test_mean_of_other_numbers_has_students_interval():
    values = [0.0, 1.0, 2.5, 4.0]
    estimate = mean(_items(values), "x")
    expected = scipy_stats.t.interval(0.95, 3, np.mean(values), scipy_stats.sem(values))
    assert estimate.interval == pytest.approx(expected)
    assert estimate.stderr == pytest.approx(scipy_stats.sem(values))


UNIT, WIDE, AMOUNTS = {"x": (0, 1)}, {"x": (0, 5)}, {"x": (0, math.inf)}


@pytest.mark.parametrize(
    ("values", "ranges", "kind"),
    [
        ([0, 1, 1], None, "wilson"),
        ([1, 1, 1], UNIT, "wilson"),
        ([0], UNIT, "wilson"),
        ([0, 0, 0], None, None),  # amounts, perhaps
        ([1, 1, 1], None, None),
        ([0, 0, 0], AMOUNTS, None),
        ([0, 0, 0.3], AMOUNTS, "t"),
        ([0.7] * 20, None, None),
        ([0.7] * 20, UNIT, "bounded"),
        ([0.7], UNIT, "bounded"),
        ([0, 1, 1], WIDE, "bounded"),
        ([0, 0, 0], WIDE, "bounded"),
        ([0.3], None, None),
        ([0.2, 0.3], None, "t"),
    ],
)
def test_what_is_known_of_a_measurement_decides_its_interval(values, ranges, kind):
    estimate = mean(_items(values, ranges=ranges), "x")
    assert estimate.interval_kind == kind
    assert (estimate.interval is None) == (kind is None)
    if kind is not None:
        assert estimate.interval[0] < estimate.interval[1]
    assert estimate.stderr != 0.0  # equal values say nothing of it


@pytest.mark.parametrize(
    ("values", "ranges", "kind"),
    [
        ([1, 1, 1, 1, 1, 1], UNIT, "wilson-clusters"),
        ([1, 0, 1, 1, 0, 0], None, "cr2-bounded"),
        ([0.7] * 6, UNIT, "cr2-bounded"),
        ([0.7, 0.7, 0.8, 0.7, 0.1, 0.2], None, "cr2-t"),
        ([0.7] * 6, None, None),
    ],
)
def test_what_is_known_of_a_clustered_measurement_decides_its_interval(values, ranges, kind):
    estimate = mean(_items(values, shared=[*"aabbcd"], ranges=ranges), "x")
    assert (estimate.interval_kind, estimate.n_clusters) == (kind, 4)
    assert (estimate.interval is None) == (kind is None)
    if kind is not None:
        assert estimate.interval[0] < estimate.interval[1]
    assert estimate.stderr != 0.0


def test_scores_of_a_known_range_have_the_bounded_interval():
    estimate = mean(_items([2, 4, 5, 5], ranges={"x": (1, 5)}), "x")
    assert estimate.interval == bounded_interval([2, 4, 5, 5], 1, 5)
    assert estimate.stderr == pytest.approx(scipy_stats.sem([2, 4, 5, 5]))


def test_amounts_have_no_interval_below_zero():
    low, high = mean(_items([0, 0, 0.3], ranges=AMOUNTS), "x").interval
    assert low == 0
    assert high == pytest.approx(scipy_stats.t.interval(0.95, 2, 0.1, 0.1)[1])


def test_one_right_item_of_one():
    certain = mean(_items([1], ranges=UNIT), "x")
    assert certain.stderr is None
    assert certain.interval[0] == pytest.approx(0.2065, abs=1e-4)


def test_only_right_items():
    low, high = mean(_items([1] * 20, ranges=UNIT), "x").interval
    assert (low, high) == (pytest.approx(0.8389, abs=1e-4), 1.0)


# --- of a finite set of items -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "ranges"), [([1, 0, 1, 1], None), ([1, 2, 4, 4], WIDE), ([1, 7, 3, 9], None)]
)
def test_of_a_finite_set_a_sample_says_more(values, ranges):
    endless = mean(_items(values, ranges=ranges), "x")
    finite = mean(_items(values, ranges=ranges, population=5), "x")
    factor = math.sqrt(1 - 4 / 5)
    assert finite.stderr == pytest.approx(endless.stderr * factor)
    assert [end - finite.value for end in finite.interval] == pytest.approx(
        [(end - endless.value) * factor for end in endless.interval]
    )
    assert finite.interval_kind == endless.interval_kind


@pytest.mark.parametrize("values", [[1, 0, 1, 1], [0.7] * 4, [3]])
def test_a_finite_set_that_is_measured_in_full_has_an_exact_mean(values):
    estimate = mean(_items(values, population=len(values)), "x")
    assert (estimate.stderr, estimate.interval, estimate.interval_kind) == (0.0, None, "exact")
    middle = median(_items(values, population=len(values)), "x")
    assert (middle.interval, middle.interval_kind) == (None, "exact")


def test_a_failed_item_is_not_measured():
    estimate = mean(_items([1, 0, 1], failed=[None], population=4), "x")
    assert estimate.interval_kind == "wilson"
    assert estimate.stderr == pytest.approx(scipy_stats.sem([1, 0, 1]) / 2)


# --- clusters ---------------------------------------------------------------------------------------------


def test_clusters_by_key_and_by_function():
    contexts = [{"text": text} for text in "aabbc"]
    items = _items([0, 1, 3, 2, 4], contexts)
    estimate = mean(items, "x", cluster="text")
    assert (estimate.value, estimate.n) == (2.0, 5)
    assert estimate.stderr == pytest.approx(0.9309493362512623)  # clubSandwich's, as in test_intervals
    assert estimate.interval == pytest.approx((-2.4637916243055926, 6.4637916243055926))
    assert mean(items, "x", cluster=lambda item: item.context["text"]) == estimate


def test_clustered_ones_alone_are_as_good_as_one_for_each_cluster():
    context = {"cluster": lambda item: item.context}
    clustered = mean(_items([1] * 40, ["a", "b", "c", "d"] * 10, ranges=UNIT), "x", **context)
    assert clustered.interval == mean(_items([1] * 4, ranges=UNIT), "x").interval
    mixed = mean(_items([1, 0, 0, 1] * 10, ["a", "b", "c", "d"] * 10), "x", **context)
    assert mixed.interval == pytest.approx(bounded_interval([1, 0, 0, 1], 0, 1))


def test_one_cluster_of_an_unknown_range_has_no_error_bar():
    estimate = mean(_items([0, 2, 1], ["a"] * 3), "x", cluster=lambda item: item.context)
    assert (estimate.stderr, estimate.interval) == (None, None)
    right = mean(_items([0, 1, 1], ["a"] * 3), "x", cluster=lambda item: item.context)
    assert (right.stderr, right.interval) == (None, (0, 1))


def test_a_median_of_shared_answers_has_no_interval():
    values = [float(value) for value in range(10)]
    alone = median(_items(values), "x")
    assert (alone.interval, alone.interval_kind, alone.n_clusters) == ((1, 8), "order-statistics", None)
    shared = median(_items(values, shared=[*"aabbccddee"]), "x")
    assert (shared.interval, shared.interval_kind, shared.n_clusters) == (None, None, 5)


def test_forty_items_of_ten_prompts_are_ten():
    """Counted as 40, their interval would hold the truth in fewer than 70 % of all runs."""
    generator, held, naive = np.random.default_rng(7), 0, 0
    for right in generator.random((400, 10)) < 0.7:
        shared = mean(_items(np.repeat(right, 4).tolist(), shared=[place // 4 for place in range(40)]), "x")
        low, high = shared.interval or (0, 0)  # ten times 0, or ten times 1: of a range that nobody knows
        held += low <= 0.7 <= high
        low, high = wilson_interval(4 * right.sum(), 40)
        naive += low <= 0.7 <= high
    assert held / 400 > 0.93
    assert naive / 400 < 0.72


def test_a_cluster_label_must_be_hashable():
    with pytest.raises(InvalidDataError, match="key of item 'i0' is a list"):
        mean(_items([0, 1], [["a"], ["b"]]), "x", cluster=lambda item: item.context)


def test_missing_measurements():
    items = _items([1, None, 0.5], [*"aab"])
    with pytest.raises(InvalidDataError, match="1 item of 3 has no measurement 'x': 'i1'"):
        mean(items, "x")
    assert (mean(items, "x", missing="skip").value, mean(items, "x", missing="skip").n) == (0.75, 2)
    assert (mean(items, "x", missing=0).value, mean(items, "x", missing=0).n) == (0.5, 3)
    assert mean(items, "x", missing="skip", cluster=lambda item: item.context).n == 2
    with pytest.raises(InvalidDataError, match="missing=NaN"):
        mean(items, "x", missing=math.nan)


def test_mistyped_names():
    with pytest.raises(UnknownNameError, match="The measurements are: 'x'"):
        mean(_items([1]), "accuracy")


def test_items_that_share_an_answer_are_one_cluster_with_those_of_their_text():
    shared, texts = [*"ppqqrst"], [*"abbcdee"]
    items = _items([0, 1, 3, 2, 4, 5, 2], texts, shared=shared)
    assert mean(items, "x").n_clusters == 5
    both = mean(items, "x", cluster=lambda item: item.context)
    assert both.n_clusters == 3  # a-b-c by p and b and q; d; e
    assert both == mean(_items([0, 1, 3, 2, 4, 5, 2], [*"xxxxyzz"]), "x", cluster=lambda i: i.context)


def test_what_failed_of_an_item_may_be_worst_or_best():
    items = _items([0.5, 1.0], ranges={"x": (0, 1)})
    items.failed_shares = np.array([0.2, 0.0])
    assert mean(items, "x").bounds == pytest.approx(((0.4 + 1) / 2, (0.6 + 1) / 2))
    assert minimum(items, "x").bounds == pytest.approx((0.4, 0.6))
    assert total(items, "x").bounds == pytest.approx((1.4, 1.6))
    assert mean(items[1:], "x").bounds == (1.0, 1.0)


def test_labels_that_all_differ_make_no_clusters():
    alone = mean(_items([0, 1, 1, 1]), "x")
    assert mean(_items([0, 1, 1, 1], shared=[*"abcd"]), "x") == alone
    assert mean(_items([0, 1, 1, 1], [*"abcd"]), "x", cluster=lambda item: item.context) == alone
    assert alone.n_clusters is None


# --- bounds -----------------------------------------------------------------------------------------------


def test_worst_is_the_higher_bound_where_lower_is_better():
    known = {"failed": [None], "ranges": {"x": (0, 1)}}
    lower = _items([0.2, 0.4], directions={"x": "lower"}, **known)
    assert mean(lower, "x").bounds == pytest.approx((1.6 / 3, 0.6 / 3))
    assert median(lower, "x").bounds == (0.4, 0.2)
    assert mean(lower.having("x"), "x").bounds == mean(lower, "x").bounds
    higher = _items([0.2, 0.4], directions={"x": "higher"}, **known)
    assert mean(higher, "x").bounds == pytest.approx((0.6 / 3, 1.6 / 3))


def test_interval_whatever_the_missing_items_would_have_scored():
    found = mean(_items([1, 1, 0, 1] * 5, failed=[None] * 4, ranges={"x": (0, 1)}), "x")
    assert found.bounds_interval == (wilson_interval(15, 24)[0], wilson_interval(19, 24)[1])
    assert found.interval == wilson_interval(15, 20)
    whole = mean(_items([1, 1, 0, 1] * 5, ranges={"x": (0, 1)}), "x")
    assert (whole.bounds_interval, whole.interval) == (None, found.interval)
    assert mean(_items([0.2, 0.4], failed=[None]), "x").bounds_interval is None  # no range
    graded = mean(_items([0.2, 0.4], unfinished=1, ranges={"x": (0, 1)}), "x").bounds_interval
    ends = [bounded_interval([0.2, 0.4, end], 0, 1) for end in (0, 1)]
    assert graded == (ends[0][0], ends[1][1])


def test_interval_with_missing_items_of_a_finite_set_is_exact_where_all_were_asked():
    known = {"failed": [None] * 2, "ranges": {"x": (0, 1)}}
    every = mean(_items([1, 0, 1], population=5, **known), "x")
    assert every.bounds_interval == every.bounds == pytest.approx((2 / 5, 4 / 5))
    low, high = mean(_items([1, 0, 1], population=10, **known), "x").bounds_interval
    assert low < 2 / 5
    assert high > 4 / 5


def test_missing_items_belong_to_clusters_of_the_mean_size():
    values, known = [1, 1, 0, 0, 1, 1], {"ranges": {"x": (0, 1)}}
    found = mean(_items(values, failed=[None] * 2, shared=[0, 0, 1, 1, 2, 2], **known), "x")
    labels = [0, 0, 1, 1, 2, 2, 3, 3]
    ends = [bounded_interval([*values, end, end], 0, 1, clusters=labels) for end in (0, 1)]
    assert found.bounds_interval == (ends[0][0], ends[1][1])


@pytest.mark.parametrize("n", [20, 100])
@pytest.mark.parametrize("fails_if", [0.0, 1.0])
def test_interval_with_missing_items_covers_truth_whichever_fail(n, fails_if):
    generator, held = np.random.default_rng(0), 0
    for _ in range(400):
        values = (generator.random(n) < 0.8).astype(float)
        failed = (values == fails_if) & (generator.random(n) < 0.3)
        kept = values[~failed].tolist()
        found = mean(_items(kept, failed=[None] * int(failed.sum()), ranges={"x": (0, 1)}), "x")
        low, high = found.bounds_interval or found.interval
        held += low <= 0.8 <= high
    assert held / 400 >= 0.935


def test_bounds_by_hand():
    items = _items([1, 1, 0, 1], failed=[None], ranges={"x": (0, 1)})
    assert mean(items, "x").value == 0.75
    assert mean(items, "x").bounds == pytest.approx((3 / 5, 4 / 5))
    assert total(items, "x").bounds == (3, 4)
    assert minimum(items, "x").bounds == (0, 0)
    assert maximum(_items([0.2, 0.4], failed=[None], ranges={"x": (0, 1)}), "x").bounds == (0.4, 1.0)
    assert minimum(_items([0.2, 0.4], failed=[None], ranges={"x": (0, 1)}), "x").bounds == (0.0, 0.2)
    assert median(_items([0.2, 0.4], failed=[None], ranges={"x": (0, 1)}), "x").bounds == (0.2, 0.4)
    assert stddev(items, "x").bounds is None


def test_items_that_a_run_did_not_get_to_are_missing_like_failed_ones():
    stopped = _items([1, 1, 0, 1], failed=[None], unfinished=5, ranges={"x": (0, 1)})
    assert mean(stopped, "x").bounds == pytest.approx((3 / 10, 9 / 10))
    assert mean(stopped.having("x"), "x").bounds == pytest.approx((3 / 10, 9 / 10))
    assert total(stopped, "x").bounds == (3, 9)
    assert (minimum(stopped, "x").bounds, maximum(stopped, "x").bounds) == ((0, 0), (1, 1))
    assert median(stopped, "x").bounds == (0, 1)
    assert stddev(_items([1, 0], unfinished=1), "x").bounds is None


@pytest.mark.parametrize("unfinished", [1, None])
def test_no_bounds_are_known_where_nobody_knows_how_many_items_are_missing(unfinished):
    items = _items(
        [1, 1, 0], [{"k": "a"}, {"k": "a"}, {"k": "b"}], unfinished=unfinished, ranges={"x": (0, 1)}
    )
    parts = [
        *items.group_by("k").values(),
        items[:2],
    ]  # which part an unfinished item belongs to is not known
    whole = [items, items.having("x")] if unfinished is None else []
    assert [mean(part, "x").bounds for part in (*parts, *whole)] == [None] * (3 + len(whole))
    finished = _items([1, 1, 0], [{"k": "a"}, {"k": "a"}, {"k": "b"}])
    assert [mean(group, "x").bounds for group in finished.group_by("k").values()] == [(1, 1), (0, 0)]


def test_bounds_where_no_range_is_known():
    assert mean(_items([1, 0], failed=[None]), "x").bounds is None
    assert mean(_items([1, 0], failed=[None], ranges={"x": (0, math.inf)}), "x").bounds is None
    assert mean(_items([1, 0], ranges={"x": (0, math.inf)}), "x").bounds == (0.5, 0.5)
    assert mean(_items([1, 0]), "x").bounds == (0.5, 0.5)
    assert stddev(_items([1, 0]), "x").bounds == pytest.approx((math.sqrt(0.5),) * 2)


def test_bounds_where_a_failed_item_may_be_of_any_group():
    items = _items([1, 0], [*"ab"], failed=["a"], ranges={"x": (0, 1)})
    by_value = items.group_by(lambda item: item.measurements["x"])
    assert mean(by_value[1.0], "x").bounds is None
    assert (
        stddev(
            _items([1, 0, 1], [*"aba"], failed=["a"]).group_by(lambda i: i.measurements["x"])[1], "x"
        ).bounds
        is None
    )
    by_context = items.group_by(lambda item: item.context)
    assert mean(by_context["a"], "x").bounds == (0.5, 1.0)
    assert mean(by_context["b"], "x").bounds == (0.0, 0.0)


@given(units, st.integers(0, 5), st.floats(-2, 0), st.floats(1, 3))
def test_bounds_contain_the_value_and_what_a_full_run_could_give(values, lost, low, high):
    items = _items(values, failed=[None] * lost, ranges={"x": (low, high)})
    for aggregate in (mean, total, minimum, maximum, median):
        estimate = aggregate(items, "x")
        worst, best = estimate.bounds
        assert worst <= estimate.value <= best
        for extreme in (low, (low + high) / 2, high):
            full = aggregate(_items(values + [extreme] * lost, ranges={"x": (low, high)}), "x").value
            assert worst - 1e-9 <= full <= best + 1e-9
        assert lost or worst == best


def test_a_value_outside_its_declared_range_is_an_error():
    with pytest.raises(InvalidDataError) as caught:
        mean(_items([0.5, 1.5], ranges={"x": (0, 1)}), "x")
    assert "'x' of item 'i1' is 1.5, outside its range (0, 1). Widen the range" in str(caught.value)


# --- the laws of all --------------------------------------------------------------------------------------


@given(units, st.randoms(use_true_random=False))
def test_order_has_no_effect_at_all(values, shuffler):
    shuffled = list(values)
    shuffler.shuffle(shuffled)
    for aggregate in (mean, total, minimum, maximum, median, *([stddev] if len(values) > 1 else [])):
        assert aggregate(_items(shuffled), "x") == aggregate(_items(values), "x")


@given(st.lists(st.tuples(st.sampled_from("abc"), unit), min_size=1, max_size=30))
def test_groups_recombine_to_the_whole(pairs):
    items = _items([value for _, value in pairs], [{"group": group} for group, _ in pairs])
    means = grouped(items, "group", lambda group: mean(group, "x"))
    whole = sum(mean.value * mean.n for mean in means.values()) / sum(mean.n for mean in means.values())
    assert whole == pytest.approx(mean(items, "x").value, abs=1e-12)
    totals = grouped(items, "group", lambda group: total(group, "x").value)
    assert sum(totals.values()) == pytest.approx(total(items, "x").value, abs=1e-12)
    assert sum(grouped(items, "group", count).values()) == len(pairs)


@given(units)
def test_the_mean_lies_in_its_interval(values):
    estimate = mean(_items(values, ranges={"x": (0, 1)}), "x")
    if estimate.interval is not None:
        assert 0 <= estimate.interval[0] <= estimate.value <= estimate.interval[1] <= 1


@pytest.mark.parametrize("aggregate", [mean, minimum, maximum, median, quantiles])
def test_nothing_has_no_value(aggregate):
    with pytest.raises(InvalidDataError, match="over 0 items; it needs at least 1"):
        aggregate(_items([]), "x")


def test_nothing_has_a_sum_and_a_count():
    assert total(_items([]), "x").value == 0
    assert count(_items([])) == 0
    assert count(_items([]), "x") == 0
    assert mean_of_each(_items([])) == {}


# --- the others -------------------------------------------------------------------------------------------


def test_count():
    items = _items([1, None, 3], failed=[None])
    assert count(items) == 3
    assert count(items, "x") == 2


def test_total_is_exactly_rounded():
    assert total(_items([0.1] * 10), "x").value == 1.0
    with pytest.raises(InvalidDataError, match="exceeds the largest float"):
        total(_items([1.7e308, 1.7e308]), "x")


def test_a_total_on_a_scale_without_zero():
    assert total(_items([2, 5], failed=[None], ranges={"x": (1, 5)}), "x").bounds == (7, 12)


def test_minimum_and_maximum():
    items = _items([3, -1, 2])
    assert (minimum(items, "x").value, maximum(items, "x").value) == (-1, 3)


def test_median_with_its_interval():
    estimate = median(_items([float(value) for value in range(1, 11)]), "x")
    assert (estimate.value, estimate.interval, estimate.stderr) == (5.5, (2, 9), None)
    assert median(_items([1.0, 2.0]), "x").interval is None


@given(units)
def test_quantiles_are_numpys(values):
    found = quantiles(_items(values), "x", (0, 0.1, 0.25, 0.9))
    assert list(found) == ["0.0", "0.1", "0.25", "0.9"]
    expected = np.quantile(values, [0, 0.1, 0.25, 0.9])
    assert [one.value for one in found.values()] == pytest.approx(expected.tolist(), abs=1e-12)


def test_percentages_are_no_quantiles():
    with pytest.raises(InvalidDataError, match=r"`q` must be between 0 and 1, not 95\.0\. Give 0\.95"):
        quantiles(_items([1, 2]), "x", [95])


def test_stddev():
    estimate = stddev(_items([1, 2, 4]), "x")
    assert estimate.value == pytest.approx(np.std([1, 2, 4], ddof=1))
    assert (estimate.stderr, estimate.interval) == (None, None)
    with pytest.raises(InvalidDataError, match="over 1 item; it needs at least 2"):
        stddev(_items([1]), "x")


def test_mean_of_each_takes_each_over_the_items_that_have_it():
    items = [
        MeasuredTestItem(test_item=TestItem(["q"], id=str(place)), measurements=measurements)
        for place, measurements in enumerate([{"a": 1}, {"b": 0.5, "a": 0}, {"b": 1.5}])
    ]
    means = mean_of_each(MeasuredItems.of(items))
    assert {name: (mean.value, mean.n) for name, mean in means.items()} == {"a": (0.5, 2), "b": (1.0, 2)}


def test_mean_of_each_of_a_group_leaves_out_what_the_group_lacks():
    items = _items([1, None], [*"ab"])
    assert mean_of_each(items.group_by(lambda item: item.context)["b"]) == {}


def test_grouped_by_a_key_of_the_context():
    items = _items(
        [1, 0, 1], [{"job": "nurse"}, {"job": "pilot"}, {"job": "nurse"}], failed=[{"job": "smith"}]
    )
    found = grouped(items, "job", lambda group: mean(group, "x"))
    assert {name: (one.value, one.n) for name, one in found.items()} == {"nurse": (1.0, 2), "pilot": (0.0, 1)}


def test_groups_are_named_by_strings():
    assert grouped(_items([1, 0, 1], [3, None, (3)]), lambda item: item.context, count) == {"3": 2, "None": 1}


def test_two_groups_of_one_name():
    with pytest.raises(InvalidDataError, match="Two groups have the same name '1'"):
        grouped(_items([1, 0], [1, "1"]), lambda item: item.context, count)
