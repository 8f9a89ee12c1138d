"""Repeated prompts and what is made of their measurements."""

from itertools import combinations, count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.engine.repeats import majority, pass_at, reduced, reducer
from modelgauge.errors import InvalidDataError, InvalidOptionError, RunStoppedError


@given(
    st.lists(st.booleans(), min_size=1, max_size=8).flatmap(
        lambda v: st.tuples(st.just(v), st.integers(1, len(v)))
    )
)
def test_pass_at_k_is_the_share_of_draws_with_a_right_answer(drawn):
    values, k = drawn
    draws = list(combinations(values, k))
    assert pass_at(k, [float(v) for v in values]) == pytest.approx(
        sum(any(one) for one in draws) / len(draws)
    )


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=9))
def test_majority_is_the_most_frequent_value(values):
    best = max(values.count(v) for v in values)
    tied = {v for v in values if values.count(v) == best}
    assert majority(values) == pytest.approx(sum(tied) / len(tied))


def test_wrong_reducers_are_refused():
    with pytest.raises(InvalidOptionError, match="median"):
        reducer("median", 3)
    with pytest.raises(InvalidOptionError, match="at least 4"):
        reducer("pass@4", 3)
    with pytest.raises(RunStoppedError, match=r"0\.5"):
        pass_at(1, [0.5, 1.0])
    with pytest.raises(InvalidDataError, match="'b'"):
        reduced([{"a": 1.0, "b": 1.0}, {"a": 1.0}], max)


@pytest.mark.parametrize(
    ("how", "expected"),
    [("mean", 2 / 3), ("majority", 1.0), ("max", 1.0), ("pass@2", 1.0), ("pass@1", 2 / 3)],
)
def test_each_repeat_is_a_call_of_its_own_and_is_cached_as_such(
    how, expected, make_test, make_sut, run, accounted
):
    number = count()
    sut = make_sut(lambda text: "yes" if next(number) % 3 else "no")
    record = accounted(run(make_test(1), sut, repeats=3, reduce=how))
    (item,) = record.test_item_records
    assert item.measurements["right"] == pytest.approx(expected)
    assert sorted(one["right"] for one in item.repeat_measurements) == [0, 1, 1]
    assert [one.repeat for one in item.interactions] == [0, 1, 2]
    assert record.counts.sut_calls.paid == 3
    again = run(make_test(1), sut, repeats=3, reduce=how)
    assert again.result == record.result
    assert again.counts.sut_calls.cached == 3
    more = run(make_test(1), sut, repeats=4, reduce=how)
    assert (more.counts.sut_calls.cached, more.counts.sut_calls.paid) == (3, 1)


def test_an_unknown_way_to_reduce_is_told_before_any_call(make_test, make_sut, run, run_folder):
    sut = make_sut()
    with pytest.raises(InvalidOptionError, match="median"):
        run(make_test(1), sut, repeats=2, reduce="median")
    assert not sut.asked
    assert not (run_folder / "runs").exists()


def test_pass_at_k_of_what_is_no_yes_or_no_ends_the_run_before_everything_is_paid(make_test, make_sut, run):
    sut = make_sut("yes")
    test = make_test(200, measure=lambda item: {"length": 0.5})
    record = run(test, sut, repeats=2, reduce="pass@2", concurrency=2)
    assert record.failure is not None
    assert "pass@2 is for measurements that are 0 or 1, and the test gives 0.5" in record.failure.message
    assert record.counts.failed == 0
    assert len(sut.asked) < 20
