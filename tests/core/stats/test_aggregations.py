import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.data.measured import MeasuredTestItem
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
from modelgauge.stats.measured import MeasuredItems


def _items(values, contexts=None, *, failed=(), unfinished=0, ranges=None):
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
    return MeasuredItems.of(items, failed=lost, unfinished=unfinished, ranges=ranges)


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


def test_zeros_and_ones_on_a_wider_scale_are_no_proportion():
    estimate = mean(_items([0, 1, 1], ranges={"x": (0, 5)}), "x")
    error = scipy_stats.sem([0, 1, 1])
    low, high = scipy_stats.t.interval(0.95, 2, 2 / 3, error)
    assert low < 0  # so that the interval ends where the scale does
    assert estimate.interval == pytest.approx((0, high))


def test_amounts_have_no_interval_below_zero_and_are_no_proportion_where_all_are_zero():
    costs = {"x": (0, math.inf)}
    low, high = mean(_items([0, 0, 0.3], ranges=costs), "x").interval
    assert low == 0
    assert high == pytest.approx(scipy_stats.t.interval(0.95, 2, 0.1, 0.1)[1])
    assert mean(_items([0, 0, 0], ranges=costs), "x").interval == (0, 0)


def test_one_item():
    assert mean(_items([0.3]), "x").interval is None
    assert mean(_items([0.3]), "x").stderr is None
    certain = mean(_items([1]), "x")
    assert certain.stderr is None
    assert certain.interval[0] == pytest.approx(0.2065, abs=1e-4)


def test_equal_values():
    assert mean(_items([0.3] * 3), "x").interval == (0.3, 0.3)
    low, high = mean(_items([1] * 20), "x").interval
    assert (low, high) == (pytest.approx(0.8389, abs=1e-4), 1.0)


def test_clusters_by_key_and_by_function():
    contexts = [{"text": text} for text in "aabbc"]
    items = _items([0, 1, 3, 2, 4], contexts)
    estimate = mean(items, "x", cluster="text")
    assert (estimate.value, estimate.n) == (2.0, 5)
    assert estimate.stderr == pytest.approx(math.sqrt(1.5 * 14 / 25))
    assert estimate.interval == pytest.approx(scipy_stats.t.interval(0.95, 2, 2, estimate.stderr))
    assert mean(items, "x", cluster=lambda item: item.context["text"]) == estimate


def test_clustered_zeros_and_ones():
    estimate = mean(_items([1, 1, 0, 1, 1, 0], [*"aabbcc"]), "x", cluster=lambda item: item.context)
    assert estimate.interval[1] == 1.0  # Student's, cut at the end of the scale
    assert mean(_items([1, 1, 1, 1], [*"aabb"]), "x", cluster=lambda item: item.context).stderr == 0.0


def test_clustered_ones_alone_are_as_good_as_one_for_each_cluster():
    clustered = mean(_items([1] * 40, ["a", "b", "c", "d"] * 10), "x", cluster=lambda item: item.context)
    assert clustered.interval == mean(_items([1] * 4), "x").interval


def test_one_cluster_has_no_error_bar():
    estimate = mean(_items([0, 1, 1], ["a"] * 3), "x", cluster=lambda item: item.context)
    assert (estimate.stderr, estimate.interval) == (None, None)


def test_a_cluster_label_must_be_hashable():
    with pytest.raises(InvalidDataError, match="key of item 'i0' is a list"):
        mean(_items([0, 1], [["a"], ["b"]]), "x", cluster=lambda item: item.context)


def test_missing_measurements():
    items = _items([1, None, 0.5], [*"aab"])
    with pytest.raises(InvalidDataError, match="1 of 3 items have no measurement 'x': 'i1'"):
        mean(items, "x")
    assert (mean(items, "x", missing="skip").value, mean(items, "x", missing="skip").n) == (0.75, 2)
    assert (mean(items, "x", missing=0).value, mean(items, "x", missing=0).n) == (0.5, 3)
    assert mean(items, "x", missing="skip", cluster=lambda item: item.context).n == 2
    with pytest.raises(InvalidDataError, match="missing=NaN"):
        mean(items, "x", missing=math.nan)


def test_mistyped_names():
    with pytest.raises(UnknownNameError, match="The measurements are: 'x'"):
        mean(_items([1]), "accuracy")


# --- bounds -----------------------------------------------------------------------------------------------


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
    whole = sum(one.value * one.n for one in means.values()) / sum(one.n for one in means.values())
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
    with pytest.raises(InvalidDataError, match="over 0 items does not exist; it takes at least 1"):
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
    with pytest.raises(InvalidDataError, match=r"no 95\.0-quantile\. Give quantiles from 0 to 1"):
        quantiles(_items([1, 2]), "x", [95])


def test_stddev():
    estimate = stddev(_items([1, 2, 4]), "x")
    assert estimate.value == pytest.approx(np.std([1, 2, 4], ddof=1))
    assert (estimate.stderr, estimate.interval) == (None, None)
    with pytest.raises(InvalidDataError, match="over 1 items does not exist; it takes at least 2"):
        stddev(_items([1]), "x")


def test_mean_of_each_takes_each_over_the_items_that_have_it():
    items = [
        MeasuredTestItem(test_item=TestItem(["q"], id=str(place)), measurements=measurements)
        for place, measurements in enumerate([{"a": 1}, {"b": 0.5, "a": 0}, {"b": 1.5}])
    ]
    means = mean_of_each(MeasuredItems.of(items))
    assert {name: (one.value, one.n) for name, one in means.items()} == {"a": (0.5, 2), "b": (1.0, 2)}


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
