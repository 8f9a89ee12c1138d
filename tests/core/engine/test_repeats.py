"""Repeated prompts and what is made of their measurements."""

import re
from itertools import combinations, count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge import rescore
from modelgauge.engine.items.measurer import majority, pass_at, reduced, reducer
from modelgauge.errors import InvalidDataError, InvalidOptionError, NewRunNeededError
from modelgauge.plugins.discovery import Plugins


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


@pytest.mark.parametrize(
    ("how", "expected"), [("all", 0.0), ("pass^1", 2 / 3), ("pass^2", 1 / 3), ("2of3", 1.0), ("3of3", 0.0)]
)
def test_reducers_of_right_answers_count_them(how, expected):
    assert reducer(how, 3).function([1.0, 0.0, 1.0]) == pytest.approx(expected)


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
    with pytest.raises(InvalidOptionError, match="--reduce 3of3"):
        reducer("8of10", 3)
    with pytest.raises(InvalidOptionError, match="--reduce 3of3"):
        reducer("4of3", 3)
    with pytest.raises(NewRunNeededError, match=r"0\.5"):
        pass_at(1, [0.5, 1.0])
    for how in ("all", "pass^1", "1of2"):
        with pytest.raises(NewRunNeededError, match=rf"^{re.escape(how)} is .* 0\.5"):
            reducer(how, 2).function([0.5, 1.0])
    with pytest.raises(InvalidDataError, match="'b'"):
        reduced([{"a": 1.0, "b": 1.0}, {"a": 1.0}], reducer("max", 2))


@pytest.mark.parametrize(
    ("how", "expected"),
    [("mean", 2 / 3), ("majority", 1.0), ("max", 1.0), ("min", 0.0), ("pass@2", 1.0), ("pass@1", 2 / 3)],
)
def test_each_repeat_is_a_call_of_its_own_and_is_cached_as_such(
    how, expected, make_test, make_sut, run, accounted
):
    number = count()
    sut = make_sut(lambda text: "yes" if next(number) % 3 else "no")
    record = accounted(run(make_test(1), sut, repeats=3, reduce=how))
    (item,) = record.test_item_records
    assert item.measurements["right"] == pytest.approx(expected)
    assert sorted(repeat["right"] for repeat in item.repeat_measurements) == [0, 1, 1]
    assert [interaction.repeat for interaction in item.interactions] == [0, 1, 2]
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
    assert record.failure.error_type == NewRunNeededError.__name__
    assert "pass@2 is for measurements that are 0 or 1, and the test gives 0.5" in record.failure.message
    assert record.counts.failed == 0
    assert len(sut.asked) < 20


def failing(*repeats):
    """Answers of one item after another: the given repeats, from 0, fail; the others are right."""
    number = count()

    def answer(text):
        if next(number) in repeats:
            raise ValueError("the line is dead")
        return "yes"

    return answer


def test_an_item_is_scored_by_the_repeats_that_did_not_fail(make_test, make_sut, run, accounted):
    record = accounted(run(make_test(1), make_sut(failing(1)), repeats=4, max_retries=0, concurrency=1))
    counts = record.counts
    assert (counts.items, counts.scored, counts.failed, counts.partial, counts.failed_repeats) == (
        1,
        1,
        0,
        1,
        1,
    )
    (item,) = record.test_item_records
    assert item.measurements == {"right": 1.0}
    assert item.repeat_measurements == ({"right": 1.0},) * 3
    assert [interaction.repeat for interaction in item.interactions] == [0, 2, 3]
    (failure,) = item.failed_repeats
    assert (failure.repeat, failure.stage, failure.source_uid) == (1, "sut", "sut")
    assert (failure.error_type, failure.message) == ("ValueError", "the line is dead")
    assert "Traceback" in failure.traceback


def test_a_failed_repeat_widens_the_bounds_by_its_share_of_the_item(make_test, make_sut, run):
    result = run(make_test(2), make_sut(failing(1)), repeats=4, max_retries=0, concurrency=1).result
    assert (result["right"].value, result["right"].n) == (1.0, 2)
    assert result["right"].bounds == (7 / 8, 1.0)


@pytest.mark.parametrize(
    ("how", "failed", "scored"),
    [
        ("max", (0,), 0),
        ("pass@2", (0,), 1),
        ("pass@2", (0, 1), 0),
        ("majority", (0, 1), 1),
        ("mean", (0, 1, 2), 0),
    ],
)
def test_a_reduction_that_takes_more_repeats_than_are_left_fails_its_item(
    how, failed, scored, make_test, make_sut, run
):
    sut = make_sut(failing(*failed))
    record = run(make_test(1), sut, repeats=3, reduce=how, max_retries=0, concurrency=1)
    assert (record.counts.scored, record.counts.sut_errors) == (scored, 1 - scored)
    if not scored and len(failed) < 3:
        (item,) = record.test_item_exceptions
        assert item.message.startswith("the line is dead.")
        assert f"for {how}; {3 - len(failed)} did not fail" in item.message


def test_repeats_fail_at_any_stage_by_themselves(make_test, make_sut, make_annotator, run):
    number = count()
    sut = make_sut(lambda text: ("yes", "unsaid", "odd", "yes")[next(number)])

    def judge(prompt, completion):
        if completion == "unsaid":
            raise ValueError("no verdict")
        return completion

    def measure(item):
        if item.text == "odd":
            raise ZeroDivisionError("odd")
        return {"right": item.annotation("judge") == "yes"}

    test = make_test(1, annotators={"judge": make_annotator(judge)}, measure=measure)
    record = run(test, sut, repeats=4, max_retries=0, concurrency=1)
    (item,) = record.test_item_records
    assert [(failure.repeat, failure.stage) for failure in item.failed_repeats] == [
        (1, "annotator"),
        (2, "measure"),
    ]
    assert item.measurements == {"right": 1.0}
    assert len(item.interactions) == 4  # what is paid is kept


def test_a_partial_item_is_resumed_and_rescored_as_it_is(make_test, make_sut, run, resumed, run_folder):
    sut = make_sut(failing(1))
    record = run(make_test(3), sut, repeats=2, max_retries=0, concurrency=1)
    folder = run_folder / "runs" / record.run_id
    lines = (folder / "items.jsonl").read_bytes().splitlines(keepends=True)
    [partial] = [line for line in lines if b"failed_repeats" in line]
    (folder / "items.jsonl").write_bytes(partial)
    (folder / "record.json").unlink()
    again = resumed(record, make_test(3), make_sut("yes"))
    assert (again.result, again.counts.partial) == (record.result, 1)
    rescored = rescore(record.run_id, run_folder, test=make_test(3), plugins=Plugins())[0]
    assert (rescored.result, rescored.counts.partial) == (record.result, 1)
    assert rescored.test_item_records[0].failed_repeats == record.test_item_records[0].failed_repeats
