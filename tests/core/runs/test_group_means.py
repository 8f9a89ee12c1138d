"""The mean over the tests of a group: its value, its error, and what it is over."""

import math

import pytest
from scipy import stats as scipy_stats

from modelgauge import MeasuredTestItem, TestItem
from modelgauge.data.estimates import Estimate
from modelgauge.data.results import Counts
from modelgauge.runs.group_means import group_means
from modelgauge.stats import MeasuredItems, mean

A = Estimate(0.5, 10, 0.04, (0.42, 0.58), (0.4, 0.6))
B = Estimate(0.9, 30, 0.03, (0.84, 0.96), (0.8, 1.0))


def measured(scores):
    return [
        MeasuredTestItem(TestItem([f"prompt {place}"]), {"score": score})
        for place, score in enumerate(scores)
    ]


def of_group(record, **changes):
    return record(**{"groups": {"g": 3}, "result": {"accuracy": A}, **changes})


def test_the_mean_is_over_tests_all_alike_and_its_error_is_made_of_theirs(record):
    first = of_group(record, test_uid="a", counts=Counts(items=12, scored=10, sut_errors=2))
    (found,) = group_means([first, of_group(record, test_uid="b", result={"accuracy": B})])
    assert (found.group, found.members, found.sut, found.result) == ("g", 3, "a_sut", "accuracy")
    assert (found.tests, found.failed, found.mean.n) == (("a", "b"), 2, 40)
    assert found.mean.value == pytest.approx(0.7)
    assert found.mean.stderr == pytest.approx(math.hypot(0.04, 0.03) / 2)
    df = (0.04**2 + 0.03**2) ** 2 / (0.04**4 / 9 + 0.03**4 / 29)
    half = scipy_stats.t.ppf(0.975, df) * 0.025
    assert found.mean.interval == pytest.approx((0.7 - half, 0.7 + half), rel=1e-9)
    assert found.mean.interval_kind == "t"
    assert found.mean.bounds == pytest.approx((0.6, 0.8))


def test_each_sut_has_its_own_and_a_test_alone_or_without_a_group_has_none(record):
    records = [of_group(record, test_uid=test, sut_uid=sut) for test in "ab" for sut in "xy"]
    assert [mean.sut for mean in group_means(records)] == ["x", "y"]
    assert not [*group_means(records[:2])]
    assert not [*group_means([record(), record()])]


def test_only_results_with_an_error_bar_have_a_mean_over_the_tests_that_have_them(record):
    one = of_group(record, test_uid="a", result={"items": 3, "g": {"x": A}, "accuracy": A})
    records = [one, of_group(record, test_uid="b"), of_group(record, test_uid="c", result={"other": A})]
    assert [(mean.result, mean.tests) for mean in group_means(records)] == [("accuracy", ("a", "b"))]


@pytest.mark.parametrize(
    ("second", "stderr"),
    [
        (Estimate(1.0, 10, 0.0, (0.72, 1.0)), math.hypot(0.04, 0.28 / 1.959964) / 2),
        (Estimate(1.0, 10, 0.0, None, None, interval_kind="exact"), 0.02),
        (Estimate(1.0, 1), None),
    ],
)
def test_a_test_without_a_spread_counts_by_its_interval(record, second, stderr):
    ranges = {"accuracy": (0, 1)}
    records = [of_group(record, test_uid="a"), of_group(record, test_uid="b", result={"accuracy": second})]
    (found,) = group_means([record.replaced(ranges=ranges) for record in records])
    assert found.mean.stderr == (None if stderr is None else pytest.approx(stderr))
    assert (found.mean.interval is None) == (stderr is None)


def test_graded_tests_allow_for_values_that_they_have_not_shown(record, scored):
    scores = [0.9] * 19 + [0.8]
    estimate = mean(MeasuredItems.of(measured(scores), ranges={"score": (0, 1)}), "score")
    records = [
        of_group(
            record, test_uid=test, result={"accuracy": estimate}, ranges={"accuracy": (0, 1)}, prompts=20
        )
        for test in "ab"
    ]
    items = [scored(index) for index in range(20)]
    (shared,) = group_means([record.with_items(lambda: items) for record in records])
    assert shared.mean.interval == pytest.approx(estimate.interval, rel=0.02)
    (apart,) = group_means(records)
    assert shared.mean.interval[0] < apart.mean.interval[0] < 0.85


def test_an_interval_ends_where_the_values_do(record):
    most = Estimate(1.0, 2, 0.0, (0.3, 1.0))
    records = [
        of_group(record, test_uid=test, result={"accuracy": most}, ranges={"accuracy": (0, 1)})
        for test in "ab"
    ]
    (found,) = group_means(records)
    assert found.mean.interval[1] == 1.0
    (found,) = group_means([record.replaced(ranges={"accuracy": (0, None)}) for record in records])
    assert found.mean.interval[1] > 1.0


@pytest.mark.parametrize(
    ("known", "share"),
    [
        ({"prompts": 10}, 1),
        ({"dependency_versions": {"questions": "d1"}}, 1),
        ({}, 0),
        ({"prompts": 10}, 0.5),
    ],
)
def test_tests_that_share_items_have_errors_in_common(record, scored, known, share):
    first = [scored(index) for index in range(10)]
    others = [scored(index + 10 * (index >= 10 * share)) for index in range(10)]
    records = [
        of_group(record, test_uid=test, **known).with_items(lambda items=items: items)
        for test, items in (("a", first), ("b", others))
    ]
    (found,) = group_means(records)
    assert found.mean.stderr == pytest.approx(0.04 * math.sqrt((1 + share) / 2))


def test_the_journal_of_a_run_says_what_its_tests_share(record, scored, folder):
    run = folder(*[scored(index) for index in range(10)])
    records = [of_group(record, test_uid=test, prompts=10).with_items(run.items, run.path) for test in "ab"]
    assert next(group_means(records)).mean.stderr == pytest.approx(0.04)
    with run.journal.open("a", encoding="utf-8") as journal:
        journal.write("a line that is no item\n")
    assert next(group_means(records)).mean.stderr == pytest.approx(0.04)
