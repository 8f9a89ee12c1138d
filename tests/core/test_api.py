"""Running tests from Python: scripts, notebooks, one loop twice; names and options."""

import asyncio
import copy
import json
import re
import sys
import threading
import time
from contextvars import ContextVar
from pathlib import Path

import pytest

from modelgauge import (
    DownloadLimits,
    FunctionSUT,
    LocalData,
    PackageData,
    PromptResponseTest,
    Runner,
    TestItem,
    UnpackLimits,
    calibrate_judge,
    compare,
    hookimpl,
    list_items,
    load_record,
    load_records,
    plan_comparison,
    rescore,
    resume,
    run_test,
    sample_answers,
)
from modelgauge.config.settings import Settings
from modelgauge.engine.loop.blocking import blocking
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.errors import (
    InvalidDataError,
    InvalidOptionError,
    MissingResultError,
    RecordError,
    RunStoppedError,
    UnknownNameError,
    UsageError,
)
from modelgauge.plugins.discovery import Plugins
from modelgauge.rerun.again import plan_resume
from modelgauge.runs.recorded_run import RecordedRun

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


def test_a_sut_may_change_the_working_directory(options, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()

    def moving(text):
        monkeypatch.chdir(tmp_path / "elsewhere")
        return add(text)

    test, sut = Sums("sums"), FunctionSUT("adder", moving, version=1)
    stopped = run_test(test, sut, data_dir="data", max_calls=2, concurrency=1)
    assert stopped.failure.message.startswith("The cap of 2 calls")
    monkeypatch.chdir(tmp_path)
    (record,) = resume(stopped.run_id, "data", test=test, sut=sut, max_calls=9)
    assert (record.failure, len(record.test_item_records)) == (None, 5)
    assert list((tmp_path / "elsewhere").iterdir()) == []


class NoItems(Sums):
    def make_test_items(self, dependencies):
        yield from super().make_test_items(dependencies)
        raise KeyError("the source is gone")


class Empty(Sums):
    def make_test_items(self, dependencies):
        return []


class NoScores(Sums):
    def measure_quality(self, item):
        raise ValueError("no way to measure")


@pytest.mark.parametrize(
    ("test", "told"),
    [
        (NoItems("x"), rf"KeyError: 'the source is gone' \({re.escape(__file__)}, line \d+\)"),
        (NoScores("x"), "of 5 items none was scored, and test_item_exceptions says why"),
        (Empty("x"), r"DefinitionError: make_test_items of 'x' gave no items\."),
        (Sums("x"), "The run has no result 'rihgt'. Did you mean 'right'?"),
    ],
)
def test_a_result_that_is_missing_says_why(sut, options, test, told):
    record = run_test(test, sut, **options)
    for one in (record, load_record(record.run_id, options["data_dir"])):
        with pytest.raises(MissingResultError, match=told) as caught:
            one.result["rihgt"]
        assert isinstance(caught.value, KeyError)
        assert one.result.get("rihgt") is None
        assert one.result == dict(one.result) == copy.deepcopy(one.result)


def test_a_run_of_objects_that_stopped_goes_on_in_python(sut, options, capsys):
    record = run_test(Sums("sums"), sut, **options, max_calls=2)
    (run,) = [RecordedRun(record, RunFolder(options["data_dir"] / "runs" / record.run_id))]
    command = run.to_go_on()
    assert command == f"modelgauge.resume({str(run.folder.path)!r}, test=…, sut=…)"
    (again,) = resume(run.folder.path, options["data_dir"], test=Sums("sums"), sut=sut, max_calls=10)
    assert again.result["right"].value == 1


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
        return [*first, *second, *(record for records in both for record in records)]

    records = [*asyncio.run(cells()), *runner.run([Sums("c"), Sums("d")], [sut])]
    assert [record.counts.scored for record in records] == [5] * 6
    assert sum(record.counts.sut_calls.paid for record in records) == 5
    assert len({record.run_id for record in records}) == 6


def test_records_are_in_the_order_of_tests_and_suts_and_share_an_invocation(sut, options):
    other = FunctionSUT("wrong", lambda text: "?", version=1)
    records = Runner(**options).run([Sums("a"), Sums("b")], [sut, other])
    assert [(record.test_uid, record.sut_uid) for record in records] == [
        ("a", "adder"),
        ("a", "wrong"),
        ("b", "adder"),
        ("b", "wrong"),
    ]
    (invocation,) = {record.invocation_id for record in records}
    assert load_records(invocation, options["data_dir"]) == records
    with pytest.raises(RecordError, match="4 records"):
        load_record(invocation, options["data_dir"])


def test_a_record_knows_the_folder_of_its_run(options, tmp_path):
    record = run_test(Sums("sums"), FunctionSUT("fast", add), **options)
    folder = Path(options["data_dir"]) / "runs" / record.run_id
    assert record.folder == load_record(record.run_id, options["data_dir"]).folder == folder
    alone = tmp_path / "alone.json"
    alone.write_bytes((folder / "record.json").read_bytes())
    assert load_record(alone).folder is None


def test_an_observer_of_the_end_of_a_run_holds_up_no_other_run(options):
    is_told, goes_on = threading.Event(), threading.Event()
    waited = []

    class Sending:
        def run_started(self, run): ...
        def item_finished(self, run_id, record): ...

        def run_finished(self, record):
            if record.sut_uid == "fast":
                is_told.set()
                waited.append(goes_on.wait(10))

    async def slow(text):
        await asyncio.to_thread(is_told.wait)
        goes_on.set()
        return "?"

    Runner(observers=[Sending()], **options).run(
        Sums("sums"), [FunctionSUT("slow", slow), FunctionSUT("fast", add)]
    )
    assert waited == [True]


def test_a_slow_sut_does_not_hold_back_a_fast_one(options):
    fast_is_done = threading.Event()

    class Watching:
        def run_started(self, run): ...
        def item_finished(self, run_id, record): ...

        def run_finished(self, record):
            if record.sut_uid == "fast":
                fast_is_done.set()

    async def slow(text):
        await asyncio.to_thread(fast_is_done.wait)
        return "?"

    records = Runner(observers=[Watching()], **options).run(
        Sums("sums"), [FunctionSUT("slow", slow), FunctionSUT("fast", add)]
    )
    assert [record.counts.scored for record in records] == [5, 5]


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
        ({"max_test_items": 0}, "1 or more"),
        ({"max_retries": "2"}, "0 or more"),
        ({"attempt_timeout": 0}, "above 0"),
        ({"call_timeout": float("inf")}, "above 0"),
        ({"max_cost": float("nan")}, "0 or more"),
        ({"max_cost": float("inf")}, "0 or more"),
        ({"repeats": 2.5}, "whole number of 1 or more"),
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
    with pytest.raises(TypeError, match="is not a SUT"):
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
    assert "modelgauge-writer" not in [one.name for one in threading.enumerate()]
    assert not list(tmp_path.rglob("*.leases"))


LEAST = {
    "max_test_items": 1, "repeats": 1, "first_repeat": 0, "concurrency": 1, "max_retries": 0, "tokens_per_minute": 1,
    "max_calls": 0, "max_tokens_total": 0, "max_cost": 0, "grace": 0,
}  # fmt: skip
FRACTIONS = {"max_cost", "grace"}


@pytest.mark.parametrize("name", LEAST)
def test_numbers_begin_at_their_least_and_some_have_fractions(name, options):
    least = LEAST[name]
    assert getattr(Runner(**options, **{name: least}).options, name) == least
    wrong = [
        least - 1,
        True,
        str(least),
        float("nan"),
        float("inf"),
        *(() if name in FRACTIONS else (least + 0.5,)),
    ]
    for given in wrong:
        number = "number" if name in FRACTIONS else "whole number"
        with pytest.raises(InvalidOptionError, match=rf"{name} is .*Give a {number} of {least} or more"):
            Runner(**options, **{name: given})
    if name in FRACTIONS:
        assert getattr(Runner(**options, **{name: 0.5}).options, name) == 0.5


@pytest.mark.parametrize("name", ["attempt_timeout", "call_timeout", "requests_per_minute"])
def test_times_and_rates_are_above_0_and_finite(name, options):
    for good in (1, 0.5):
        assert getattr(Runner(**options, **{name: good}).options, name) == good
    for given in (0, -1, True, "1", float("nan"), float("inf")):
        with pytest.raises(InvalidOptionError, match=f"{name} is .*above 0"):
            Runner(**options, **{name: given})


def test_only_some_options_may_be_none(options):
    none = {
        "cluster": None, "identifier": None, "runs_dir": None, "requests_per_minute": None, "tokens_per_minute": None,
        "max_test_items": None, "max_calls": None, "max_tokens_total": None, "max_cost": None,
    }  # fmt: skip
    made = Runner(**options, **none).options
    assert all(getattr(made, name) is None for name in none)
    for name in (
        "seed",
        "caching",
        "finite",
        "progress",
        "reduce",
        "hyperparameters",
        "sut_options",
        "attempt_timeout",
    ):
        with pytest.raises(InvalidOptionError, match=f"{name} is None"):
            Runner(**options, **{name: None})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"seed": True}, "Give a whole number"),
        ({"finite": 1}, "Give True or False"),
        ({"progress": "yes"}, "Give True or False"),
        ({"cluster": 1}, "the name of a field"),
        ({"reduce": 3}, "Give a text"),
        ({"data_dir": 5}, "data_dir is 5. Give the path of a folder"),
    ],
)
def test_an_option_of_another_type_says_what_it_is(wrong, said, options):
    with pytest.raises(InvalidOptionError, match=said):
        Runner(**{**options, **wrong})


def test_runs_are_kept_where_the_caller_says_also_as_a_text(sut, options, tmp_path):
    record = run_test(Sums("sums"), sut, runs_dir=str(tmp_path / "elsewhere"), **options)
    assert (tmp_path / "elsewhere" / record.run_id / "record.json").is_file()
    assert not (options["data_dir"] / "runs").exists()


def test_a_record_alone_in_a_folder_is_read(sut, options, tmp_path):
    record = run_test(Sums("sums"), sut, **options)
    (tmp_path / "mailed").mkdir()
    written = options["data_dir"] / "runs" / record.run_id / "record.json"
    (tmp_path / "mailed" / "record.json").write_bytes(written.read_bytes())
    assert load_record(tmp_path / "mailed" / "record.json").run_id == record.run_id


def test_a_plan_without_a_cache_counts_every_call(sut, options):
    run_test(Sums("sums"), sut, **options)
    (plan,) = Runner(**options, caching=False).plan(Sums("sums"), sut)
    assert (plan.sut_calls.paid, plan.sut_calls.cached) == (5, 0)


def test_a_test_that_makes_no_items_is_told_wherever_items_are_wanted(sut, options):
    told = rf"Test 'x' makes no items: KeyError: 'the source is gone' \({re.escape(__file__)}, line \d+\)\."
    with pytest.raises(RunStoppedError, match=told):
        Runner(**options).plan(NoItems("x"), sut)
    with pytest.raises(RunStoppedError, match=told):
        list(list_items(NoItems("x"), **options))

    class Leaves(NoItems):
        def make_test_items(self, dependencies):
            sys.exit("no key")

    with pytest.raises(RunStoppedError, match="Test 'x' makes no items: SystemExit: no key"):
        list(list_items(Leaves("x"), **options))


def test_an_error_of_make_test_items_names_its_line_also_in_a_sample(sut, options):
    record = run_test(NoItems("x"), sut, max_test_items=2, **options)
    assert re.search(rf"gone' \({re.escape(__file__)}, line \d+\)$", record.failure.message)
    assert record.failure.stage == "items"
    record = run_test(Empty("x"), sut, max_test_items=2, **options)
    assert record.failure.message.endswith("let it give at least one TestItem")  # and no line of ours


@pytest.mark.parametrize("wrong", [None, 5, b"run", ["run"], object()])
@pytest.mark.parametrize(
    "call",
    [
        load_record, load_records, resume, rescore, plan_resume,
        lambda wrong: compare(wrong, "latest"), lambda wrong: plan_comparison(wrong or 5, "latest"),
        lambda wrong: calibrate_judge(wrong, "labels.csv"), lambda wrong: sample_answers(wrong, 5),
        lambda wrong: rescore("latest", dataset=wrong or 5),
        lambda wrong: load_record("latest", wrong or 5), lambda wrong: resume("latest", wrong or 5), LocalData,
        lambda wrong: PackageData("package", wrong), DownloadLimits, UnpackLimits,
    ],
)  # fmt: skip
def test_what_no_argument_can_be_is_refused_in_our_words(call, wrong, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if call in (DownloadLimits, UnpackLimits) and wrong == 5:
        return
    with pytest.raises(UsageError) as caught:
        call(wrong)
    assert "Give" in caught.value.fix


def test_what_a_run_was_made_of_stands_in_its_manifest(sut, options, tmp_path):
    (tmp_path / "facts.csv").write_text("x", encoding="utf-8")
    runner = Runner(
        **options, dependencies={"facts": tmp_path / "facts.csv"}, command=["modelgauge", "x"], inputs={"more": 1},
        settings=Settings(plugins=("some.module",)), plugins=Plugins(),
    )  # fmt: skip

    class WithFacts(Sums):
        def get_dependencies(self):
            return {"facts": LocalData("absent")}

    (record,) = runner.run(WithFacts("sums"), sut)
    manifest = json.loads(
        (options["data_dir"] / "runs" / record.run_id / "run.json").read_text(encoding="utf-8")
    )
    assert manifest["inputs"] == {
        "plugins": ["some.module"], "dependencies": {"facts": str((tmp_path / "facts.csv").resolve())}, "more": 1,
        "judge": None, "objects": ["adder", "sums"],
    }  # fmt: skip
    assert manifest["command"] == ["modelgauge", "x"]


class Pair:
    @hookimpl
    def modelgauge_register_tests(self, register):
        register("one", Sums)
        register("two", Sums)
        register.group("both", ["one", "two"])


def test_run_test_is_for_one_pair_and_a_runner_for_what_a_group_or_a_pattern_names(sut, options):
    plugins = Plugins()
    plugins.add(Pair(), "pair", "mine", started=0.0)
    for name in ("both", "*"):
        with pytest.raises(UsageError, match=r"stands for 2 pairs\. Run them by Runner"):
            run_test(name, sut, plugins=plugins, **options)
    assert not (options["data_dir"] / "runs").exists()
    records = Runner(plugins=plugins, **options).run("both", sut)
    assert [(record.test_uid, record.groups) for record in records] == [
        ("one", {"both": 2}),
        ("two", {"both": 2}),
    ]
    assert run_test("o*", sut, plugins=plugins, **options).test_uid == "one"
