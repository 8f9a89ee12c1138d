"""Running tests from Python: scripts, notebooks, one loop twice; names and options."""

import asyncio
import threading
import time
from contextvars import ContextVar

import pytest

from modelgauge import (
    FunctionSUT,
    PromptResponseTest,
    Runner,
    TestItem,
    list_items,
    load_record,
    load_records,
    run_test,
)
from modelgauge.blocking import blocking
from modelgauge.errors import InvalidDataError, InvalidOptionError, RecordError, UnknownNameError, UsageError

REQUEST = ContextVar("request", default="none")


class Sums(PromptResponseTest):
    def make_test_items(self, dependencies):
        for n in range(5):
            yield TestItem([f"{n} + {n} = ?"], context=str(2 * n))

    def measure_quality(self, item):
        return {"right": item.text == item.context}


def add(text):
    left, _, right, *_ = text.split()
    return str(int(left) + int(right))


@pytest.fixture
def sut():
    return FunctionSUT("adder", add, version=1)


@pytest.fixture
def options(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return {"data_dir": tmp_path / "data"}


def test_a_script_runs_a_test_in_a_line(sut, options):
    record = run_test(Sums("sums"), sut, **options)
    assert record.result["right"].value == 1
    assert run_test(Sums("sums"), sut, 2, **options).counts.items == 2


def test_a_notebook_whose_loop_runs_does_the_same(sut, options):
    async def cell():
        return run_test(Sums("sums"), sut, **options)

    assert asyncio.run(cell()).result["right"].value == 1


def test_a_runner_is_used_again_also_twice_in_one_loop(sut, options):
    runner = Runner(**options)

    async def cells():
        first = await runner.run_async(Sums("sums"), sut)
        second = await runner.run_async([Sums("sums")], [sut])
        both = await asyncio.gather(*(runner.run_async(Sums(uid), sut) for uid in ("a", "b")))
        return [*first, *second, *(one for records in both for one in records)]

    records = [*asyncio.run(cells()), *runner.run([Sums("c"), Sums("d")], [sut])]
    assert [one.counts.scored for one in records] == [5] * 6
    assert sum(one.counts.sut_calls.paid for one in records) == 5
    assert len({one.run_id for one in records}) == 6


def test_records_are_in_the_order_of_tests_and_suts_and_share_an_invocation(sut, options):
    other = FunctionSUT("wrong", lambda text: "?", version=1)
    records = Runner(**options).run([Sums("a"), Sums("b")], [sut, other])
    assert [(one.test_uid, one.sut_uid) for one in records] == [
        ("a", "adder"),
        ("a", "wrong"),
        ("b", "adder"),
        ("b", "wrong"),
    ]
    (invocation,) = {one.invocation_id for one in records}
    assert load_records(invocation, options["data_dir"]) == records
    with pytest.raises(RecordError, match="4 records"):
        load_record(invocation, options["data_dir"])


def test_a_slow_sut_does_not_hold_back_a_fast_one(options):
    fast_is_done = asyncio.Event()

    class Watching:
        def run_started(self, run): ...
        def item_finished(self, run_id, record): ...

        def run_finished(self, record):
            if record.sut_uid == "fast":
                fast_is_done.set()

    async def slow(text):
        await fast_is_done.wait()
        return "?"

    records = Runner(observers=[Watching()], **options).run(
        Sums("sums"), [FunctionSUT("slow", slow), FunctionSUT("fast", add)]
    )
    assert [one.counts.scored for one in records] == [5, 5]


@pytest.mark.parametrize("running", [True, False])
def test_context_variables_reach_authors_code(running, options):
    seen = []

    def answer(text):
        seen.append(REQUEST.get())
        return "?"

    REQUEST.set("mine")
    try:
        if running:

            async def cell():
                run_test(Sums("sums"), FunctionSUT("s", answer), **options)

            asyncio.run(cell())
        else:
            run_test(Sums("sums"), FunctionSUT("s", answer), **options)
    finally:
        REQUEST.set("none")
    assert set(seen) == {"mine"}


def test_an_error_crosses_the_thread_of_a_notebook():
    async def fail():
        raise ValueError("x")

    async def cell():
        blocking(fail)

    with pytest.raises(ValueError, match="x"):
        asyncio.run(cell())


def test_an_error_says_nothing_of_the_loop_it_was_raised_in():
    async def fail():
        raise ValueError("x")

    with pytest.raises(ValueError, match="x") as raised:
        blocking(fail)
    assert raised.value.__context__ is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"concurency": 3}, "concurrency"),
        ({"concurrency": 0}, "1 or more"),
        ({"repeats": 0}, "1 or more"),
        ({"first_repeat": -1}, "0 or more"),
        ({"max_test_items": -1}, "0 or more"),
        ({"max_retries": "2"}, "0 or more"),
        ({"attempt_timeout": 0}, "above 0"),
        ({"call_timeout": float("inf")}, "above 0"),
        ({"max_cost": float("nan")}, "0 or more"),
        ({"max_cost": float("inf")}, "0 or more"),
        ({"repeats": 2.5}, "whole number, 1 or more"),
        ({"max_test_items": 2.5}, "whole number"),
        ({"concurrency": True}, "whole number"),
        ({"seed": "a"}, "Give a whole number"),
        ({"caching": "no"}, "Give True or False"),
        ({"sut_options": {"temperature": 1}}, "Give SUTOptions"),
        ({"identifier": 5}, "Give a text"),
        ({"runs_dir": 5}, "the path of a folder"),
        ({"hyperparameters": [1]}, "Give a dict"),
        ({"observers": 5}, "observers is 5. Give a list of observers"),
        ({"plugins": ["mine.py"]}, "discover"),
        ({"secrets": {}}, "Give a SecretStore"),
        ({"settings": {}}, "load_settings"),
        ({"dependencies": ["data.csv"]}, "Give a dict of keys and files"),
        ({"dependency_versions": "v1"}, "Give a dict of keys and versions"),
        ({"reduce": "median"}, "mean, majority"),
        ({"reduce": "pass@3", "repeats": 2}, "--repeats 3"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(wrong, said, options):
    with pytest.raises(InvalidOptionError, match=said):
        Runner(**options, **wrong)


@pytest.mark.parametrize("given", [{1: 2}, {"a": float("nan")}, {"a": object()}])
def test_hyperparameters_that_no_record_holds_are_refused_before_any_call(given, options):
    with pytest.raises(InvalidDataError, match="hyperparameters"):
        Runner(**options, hyperparameters=given)


def test_wrong_names_are_told_before_any_call(sut, options):
    with pytest.raises(UnknownNameError, match="no_such_test"):
        run_test("no_such_test", sut, **options)
    with pytest.raises(UnknownNameError, match="no_such_sut"):
        run_test(Sums("sums"), "no_such_sut", **options)
    with pytest.raises(UsageError, match="nothing to run"):
        Runner(**options).run([], [sut])
    with pytest.raises(TypeError, match="is no SUT"):
        run_test(Sums("sums"), Sums("sums"), **options)
    assert not (options["data_dir"] / "runs").exists()


def test_a_plan_counts_what_a_run_then_pays(sut, options):
    runner = Runner(**options)
    (before,) = runner.plan(Sums("sums"), sut)
    assert (before.items, before.sut_calls.paid, before.sut_calls.cached) == (5, 5, 0)
    assert not options["data_dir"].exists()
    (record,) = Runner(**options, max_test_items=2).run(Sums("sums"), sut)
    assert record.counts.sut_calls.paid == 2
    (after,) = runner.plan(Sums("sums"), sut)
    assert (after.sut_calls.paid, after.sut_calls.cached) == (3, 2)


def test_items_are_listed_as_a_run_measures_them(sut, options):
    listed = list(list_items(Sums("sums"), 3, seed=4, **options))
    record = run_test(Sums("sums"), sut, 3, seed=4, **options)
    assert listed == [one.test_item for one in record.test_item_records]


def test_a_record_is_loaded_as_it_was_returned(sut, options):
    record = run_test(Sums("sums"), sut, **options)
    folder = options["data_dir"] / "runs" / record.run_id
    for name in (folder, folder / "record.json"):
        loaded = load_record(name)
        assert loaded == record
        assert loaded.test_item_records == record.test_item_records
    assert load_record(record.run_id, options["data_dir"]) == record
    with pytest.raises(RecordError, match=record.run_id):
        load_record("nothing", options["data_dir"])


def test_a_run_that_cannot_tell_of_its_process_leaves_nothing_open(tmp_path, monkeypatch):
    def broken(*_):
        raise MemoryError("no process more")

    monkeypatch.setattr("modelgauge.api.surroundings", broken)
    with pytest.raises(MemoryError):
        run_test(Sums("sums"), FunctionSUT("adder", add), data_dir=tmp_path)
    time.sleep(0.2)  # in which what was forgotten would open
    left = [
        one.name for one in threading.enumerate() if one.name in ("modelgauge-leases", "modelgauge-writer")
    ]
    assert not left
