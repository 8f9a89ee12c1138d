"""Thresholds of results: what they are of, which way they look, and what reaches them."""

import pytest

from modelgauge.data.estimates import Estimate
from modelgauge.data.results import Counts
from modelgauge.errors import InvalidOptionError, UnknownNameError
from modelgauge.runs.result_thresholds import ResultThreshold, outcomes

ONE_FAILED = Counts(items=10, scored=9, sut_errors=1)


def of(record, test="a", value=0.8, **changes):
    return record(test_uid=test, result={"accuracy": Estimate(value, 10, 0.1), "items": 10}, **changes)


def checked(records, *texts):
    found = outcomes(records, [ResultThreshold.parse(text) for text in texts])
    return [(one.test, one.result, one.passed) for one in found]


def test_a_threshold_has_a_result_a_number_and_perhaps_a_test():
    assert ResultThreshold.parse("accuracy=0.8") == ResultThreshold(None, "accuracy", 0.8)
    assert ResultThreshold.parse("a?x=1:b c=.5") == ResultThreshold("a?x=1", "b c", 0.5)
    for text in (
        "accuracy", "accuracy=", "=1", "accuracy=high", "accuracy=nan", "accuracy=inf", "a:=1",
        "accuracy>=0.9", "accuracy<=0.9", "accuracy==0.9", "accuracy!=0.9", "accuracy>0.9",
    ):  # fmt: skip
        with pytest.raises(InvalidOptionError, match="is not a threshold"):
            ResultThreshold.parse(text)


def test_a_result_reaches_a_threshold_from_that_number_on(record):
    runs = [of(record, "a", 0.8), of(record, "b", 0.79)]
    assert checked(runs, "accuracy=0.8") == [("a", "accuracy", True), ("b", "accuracy", False)]
    assert checked(runs, "b:accuracy=0.7", "a*:items=11") == [("b", "accuracy", True), ("a", "items", False)]


def test_a_threshold_for_all_tests_is_not_for_those_with_one_of_their_own(record):
    runs = [of(record, "a", 0.8), of(record, "b", 0.6), of(record, "c", 0.4)]
    assert checked(runs, "accuracy=0.7", "b*:accuracy=0.5", "c:items=10") == [
        ("a", "accuracy", True),
        ("c", "accuracy", False),
        ("b", "accuracy", True),
        ("c", "items", True),
    ]


def test_where_lower_is_better_the_threshold_is_the_most(record):
    low = of(record, value=0.1, directions={"accuracy": "lower"})
    assert checked([low], "accuracy=0.1") == [("a", "accuracy", True)]
    (failed,) = outcomes([low], [ResultThreshold.parse("accuracy=0.05")])
    assert (failed.passed, failed.why) == (False, "accuracy is 0.1, above 0.05")


@pytest.mark.parametrize(
    ("value", "bounds", "directions", "passed", "why"),
    [
        (0.9, (0.81, 0.91), {}, True, None),
        (0.9, (0.72, 0.92), {}, False, "over the scored items; with the others it may be 0.72, below 0.8"),
        (0.7, (0.63, 0.73), {}, False, "accuracy is 0.7, below 0.8"),
        (0.9, None, {}, False, "may be any value, since its range or their number is unknown"),
        (0.75, (0.79, 0.7), {"accuracy": "lower"}, True, None),
        (0.75, (0.85, 0.7), {"accuracy": "lower"}, False, "with the others it may be 0.85, above 0.8"),
    ],
)
def test_threshold_holds_only_if_failed_items_cannot_change_it(
    record, value, bounds, directions, passed, why
):
    result = {"accuracy": Estimate(value, 9, 0.1, bounds=bounds), "items": 9}
    run = record(test_uid="a", result=result, directions=directions, counts=ONE_FAILED)
    (found,) = outcomes([run], [ResultThreshold.parse("accuracy=0.8")])
    assert found.passed == passed
    assert why is None or why in found.why
    assert ("worst" in found.model_dump(mode="json")) == (bounds is not None)
    assert checked([run], "items=9") == [("a", "items", True)]  # a plain number has no bounds


def test_estimate_of_all_items_is_not_changed_by_items_that_failed_elsewhere(record):
    result = {"words": Estimate(12, 10), "accuracy": Estimate(0.9, 9)}
    run = record(test_uid="a", result=result, counts=ONE_FAILED)
    assert checked([run], "words=12", "accuracy=0.8") == [("a", "words", True), ("a", "accuracy", False)]


def test_failed_repeat_counts_as_worst(record):
    run = of(record, value=0.9, counts=Counts(items=10, scored=10, partial=1, failed_repeats=1))
    assert checked([run], "accuracy=0.8") == [("a", "accuracy", False)]


def test_mean_over_group_holds_only_if_failed_items_cannot_change_it(record):
    def run(test, worst):
        result = {"accuracy": Estimate(0.9, 9, 0.1, bounds=(worst, 0.91))}
        return record(test_uid=test, result=result, groups={"g": 2}, counts=ONE_FAILED)

    assert checked([run("a", 0.81), run("b", 0.81)], "g:accuracy=0.8") == [("g", "accuracy", True)]
    (found,) = outcomes([run("a", 0.81), run("b", 0.6)], [ResultThreshold.parse("g:accuracy=0.8")])
    assert (found.passed, found.worst) == (False, pytest.approx(0.705))


def test_a_run_without_results_reaches_nothing_and_one_with_others_is_not_asked(record):
    empty, other = record(test_uid="b", result={}), record(test_uid="c", result={"score": 1})
    assert checked([of(record), empty, other], "accuracy=0.5") == [
        ("a", "accuracy", True),
        ("b", "accuracy", False),
    ]
    (failed,) = outcomes([empty], [ResultThreshold.parse("accuracy=0.5")])
    assert failed.why == "there is no accuracy, which must reach 0.5"


def test_the_name_of_a_group_stands_for_the_mean_over_its_tests(record):
    runs = [of(record, test, value, groups={"g": 2}) for test, value in (("a", 0.9), ("b", 0.5))]
    assert checked(runs, "g:accuracy=0.7") == [("g", "accuracy", True)]
    assert checked(runs, "g:accuracy=0.71") == [("g", "accuracy", False)]


def test_a_group_without_a_mean_reaches_nothing(record):
    runs = [record(test_uid="a", result={}, groups={"g": 2}), of(record, "b", groups={"g": 2})]
    (failed,) = outcomes(runs, [ResultThreshold.parse("g:accuracy=0.5")])
    assert (failed.test, failed.passed, failed.value) == ("g", False, None)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("g:acuracy=1", "no result 'acuracy' .* Did you mean 'accuracy'"),
        ("h:accuracy=1", "no test 'h' .* The tests are: a, g"),
        ("acuracy=1", "no result 'acuracy' .* Did you mean 'accuracy'"),
        ("b:accuracy=1", "no test 'b' .* The tests are: a, g"),
        ("a:acuracy=1", "no result 'acuracy'"),
    ],
)
def test_a_name_that_nothing_has_is_an_error(record, text, says):
    with pytest.raises(UnknownNameError, match=says):
        checked([of(record, groups={"g": 1})], text)
