"""Measured items stay in the journal; what authors see of them is what they put in."""

import threading
from itertools import count

import pytest
from pydantic import BaseModel

from modelgauge import MeasuredItems, TestItem
from modelgauge.data.results import Threshold
from modelgauge.engine.loop import stalls as pace
from modelgauge.errors import InvalidDataError, UnknownNameError
from modelgauge.runs.passing import why_not_passed


class Fact(BaseModel):
    group: str
    weight: int


def items():
    for n in range(12):
        context = Fact(group="ab"[n % 2], weight=n) if n % 3 else {"group": "ab"[n % 2], "weight": n}
        yield TestItem([f"question {n}"], context=context)


def weight_of(context):
    return context.weight if isinstance(context, Fact) else context["weight"]


def measure(item):
    if weight_of(item.context) == 7:
        raise ValueError("no")
    values = {"weight": weight_of(item.context)}
    return values | ({"even": True} if values["weight"] % 2 == 0 else {})


@pytest.fixture
def seen(make_test, make_sut, run):
    """What `aggregate_measurements` sees of a run, by a function of it."""

    def look(function, **attributes):
        found = []

        def aggregate(measured):
            found.append(function(measured))
            return {}

        record = run(
            make_test(items, measure=measure, aggregate_measurements=aggregate, **attributes), make_sut()
        )
        assert record.failure is None, record.failure
        return found[0]

    return look


def test_items_come_back_in_order_as_the_objects_they_were(seen):
    contexts = seen(lambda measured: [one.context for one in measured])
    expected = [item.context for n, item in enumerate(items()) if n != 7]
    assert contexts == expected
    assert [type(context) for context in contexts] == [type(one) for one in expected]
    assert seen(lambda measured: (measured[0].context, measured[-1].context, len(measured[2:5]))) == (
        expected[0],
        expected[-1],
        3,
    )


def test_items_have_their_responses(seen):
    answers = seen(lambda m: [one.interactions[0].response.completions[0].completion.text for one in m])
    prompts = seen(lambda m: [one.interactions[0].prompt for one in m])
    assert prompts == [item.prompts[0] for n, item in enumerate(items()) if n != 7]
    assert len(answers) == len(prompts)


def test_columns_are_in_order_and_say_what_is_missing(seen):
    assert seen(lambda m: m.column("weight").tolist()) == [float(n) for n in range(12) if n != 7]
    assert seen(lambda m: m.column("even", missing=0).sum()) == 6
    assert seen(lambda m: m.names)[0] == "weight"

    def incomplete(measured):
        with pytest.raises(InvalidDataError, match="5 items of 11 have"):
            measured.column("even")
        with pytest.raises(UnknownNameError, match="weight"):
            measured.column("wieght")

    seen(incomplete)


def test_failed_items_are_live_too(seen):
    failed = seen(lambda measured: list(measured.failed))
    assert [(type(one.context), one.context.weight) for one in failed] == [(Fact, 7)]


def test_groups_have_their_items_and_their_failures(seen):
    def grouped(measured):
        groups = measured.group_by(
            lambda one: one.context.group if isinstance(one.context, Fact) else one.context["group"]
        )
        return {
            name: (len(group), len(group.failed), isinstance(group, MeasuredItems))
            for name, group in groups.items()
        }

    assert seen(grouped) == {"a": (6, 0, True), "b": (5, 1, True)}


def test_ranges_are_declared_or_implied_by_bools(seen):
    assert seen(lambda m: dict(m.ranges), measurement_ranges={"weight": (0, 20)}) == {
        "weight": (0, 20),
        "even": (0, 1),
    }


def test_a_measurement_outside_its_range_leaves_the_item_unscored(make_test, make_sut, run):
    test = make_test(2, measure=lambda item: {"x": 2}, measurement_ranges={"x": (0, 1)})
    record = run(test, make_sut())
    assert record.counts.unscored == 2
    assert "outside its range (0, 1)" in record.test_item_exceptions[0].message


@pytest.mark.parametrize(
    ("measured", "passed"),
    [
        ({"acc": 1.0, "loss": 0.2}, {"acc.passed": 1, "loss.passed": 1, "passed": 1}),
        ({"acc": 0.0, "loss": 0.2}, {"acc.passed": 0, "loss.passed": 1, "passed": 0}),
        ({"acc": 1.0, "loss": 0.4}, {"acc.passed": 1, "loss.passed": 0, "passed": 0}),
        ({"acc": 1.0}, {"acc.passed": 1, "passed": 0}),  # what is not measured is not reached
        ({"acc": 0.0, "acc.passed": True, "loss": 0.2}, {"acc.passed": 1, "loss.passed": 1, "passed": 1}),
        ({"acc": 0.0, "loss": 0.2, "passed": True}, {"acc.passed": 0, "loss.passed": 1, "passed": 1}),
    ],
)
def test_whether_items_pass_follows_from_thresholds_where_the_author_does_not_say(
    measured, passed, make_test, make_sut, run
):
    thresholds = {"acc": Threshold(value=1.0), "loss": Threshold(value=0.3, higher_is_better=False)}
    test = make_test(2, measure=lambda item: measured, thresholds=thresholds)
    record = run(test, make_sut())
    assert record.test_item_records[0].measurements == {**measured, **passed}
    assert record.result["passed"].value == passed["passed"]
    assert record.result["passed"].bounds is not None  # given or worked out, it is 0 or 1
    assert (why_not_passed(record) is None) == (passed["passed"] == 1)


def test_an_aggregation_that_leaves_the_passes_out_hides_no_failure(make_test, make_sut, run):
    class Bare(type(make_test())):
        def aggregate_measurements(self, items):
            return {"n": len(items)}

    thresholds = {"right": Threshold(value=1.0)}
    record = run(make_test(4, cls=Bare, thresholds=thresholds), make_sut("no"))
    assert record.result == {"n": 4}
    assert why_not_passed(record) == "0 of 4 items passed all thresholds"
    assert why_not_passed(run(make_test(4, cls=Bare, thresholds=thresholds), make_sut(uid="good"))) is None


def test_slow_measuring_is_said_once(make_test, make_sut, run, caplog, monkeypatch):
    ticks = count(step=0.03)
    monkeypatch.setattr(pace, "perf_counter", lambda: next(ticks))
    run(make_test(60), make_sut())
    (said,) = [record.getMessage() for record in caplog.records if "measure_in_thread" in record.getMessage()]
    assert "'test' takes 30 ms" in said
    run(make_test(60, measure_in_thread=True), make_sut())
    assert caplog.text.count("measure_in_thread") == 1


def test_measuring_in_threads_is_off_the_loop_and_in_as_many_as_there_are_processors(
    make_test, make_sut, run, monkeypatch
):
    monkeypatch.setattr("modelgauge.engine.items.measurer._PROCESSORS", 3)
    threads, at_once, met = [], [], threading.Barrier(3)

    def measure_here(item):
        threads.append(threading.current_thread())
        at_once.append(1)
        met.wait(60)
        most = len(at_once)
        met.wait(60)
        at_once.pop()
        return {"most": most}

    record = run(make_test(60, measure=measure_here, measure_in_thread=True), make_sut())
    assert record.counts.scored == 60
    assert record.result["most"].value == 3
    assert threading.main_thread() not in threads
