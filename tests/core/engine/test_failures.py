"""Failures are data: one record an item, whatever goes wrong, and what is paid is kept."""

# ruff: noqa: ASYNC110  what is waited for happens in a thread
import asyncio
import gc
import os
import signal
import sys
import threading

import children
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modelgauge import (
    FunctionSUT,
    PromptResponseSUT,
    PromptWithContext,
    SUTCompletion,
    SUTResponse,
    TestItem,
    TextPrompt,
    load_record,
)
from modelgauge.cache.responses import ResponseCache
from modelgauge.config.secrets import SecretStore
from modelgauge.engine.calls.services import Services
from modelgauge.engine.run_files.folder import RunFolder, refused
from modelgauge.engine.totals import read_totals
from modelgauge.errors import DefinitionError


class Strange(BaseException):
    """As pytest's own outcomes: no Exception."""


class SpeechlessError(Exception):
    """Cannot be told."""

    def __str__(self):
        raise RuntimeError("no words")


FAULTS = {
    "fine": None,
    "error": ValueError("broken"),
    "exit": SystemExit(3),
    "strange": Strange("odd"),
    "speechless": SpeechlessError(),
    "cancelled": asyncio.CancelledError(),
    "timeout": TimeoutError("mine"),
    "generator exit": GeneratorExit(),
}


def failing(fault):
    def work(*args):
        error = FAULTS[fault]
        if error is not None:
            raise error
        return "yes"

    return work


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    plan=st.lists(
        st.tuples(
            st.lists(st.sampled_from(sorted(FAULTS)), min_size=1, max_size=3),  # the SUT, a prompt each
            st.sampled_from(sorted(FAULTS)),  # the annotator
            st.sampled_from([*sorted(FAULTS), "not finite", "no mapping"]),  # measure_quality
        ),
        max_size=6,
    ),
    caching=st.booleans(),
)
def test_items_in_are_records_out(
    plan, caching, make_test, make_sut, make_annotator, run, accounted, tmp_path_factory
):
    items = [
        TestItem([f"{i} {j} {fault}" for j, fault in enumerate(prompts)], context=[annotator, measure])
        for i, (prompts, annotator, measure) in enumerate(plan)
    ]
    contexts = {f"{i} {j} {fault}": p[1] for i, p in enumerate(plan) for j, fault in enumerate(p[0])}

    def measure(item):
        how = item.test_item.context[1]
        if how in FAULTS:
            failing(how)()
        return {"not finite": {"x": float("nan")}, "no mapping": "x"}.get(how, {"x": 1})

    sut = make_sut(lambda text: failing(text.split()[-1])())
    annotator = make_annotator(lambda prompt, completion: failing(contexts[prompt])())
    test = make_test(items, measure=measure, annotators={"a": annotator})
    record = accounted(
        run(test, sut, caching=caching, max_retries=0, data_dir=tmp_path_factory.mktemp("run"))
    )

    def expected(prompts, annotator, measure):
        if any(prompt != "fine" for prompt in prompts):
            return "sut"
        return "annotator" if annotator != "fine" else "measure" if measure != "fine" else None

    stages = [expected(*one) for one in plan]
    counts = record.counts
    assert (counts.scored, counts.sut_errors, counts.annotator_errors, counts.unscored) == tuple(
        stages.count(stage) for stage in (None, "sut", "annotator", "measure")
    )
    assert (record.failure is None) == bool(plan)  # a test without items is an error
    assert [failure.stage for failure in record.test_item_exceptions] == [stage for stage in stages if stage]
    for failure in record.test_item_exceptions:  # siblings that were answered are kept
        answered = [prompt for prompt in failure.test_item.prompts if prompt.prompt.text.endswith("fine")]
        assert [interaction.prompt for interaction in failure.interactions] == answered
        assert failure.message
        assert failure.traceback


def test_an_error_that_quotes_a_whole_page_is_recorded_by_its_ends(make_test, make_sut, run, run_folder):
    def answer(text):
        raise ValueError(f"The server said: {'x' * 1_000_000} (request 17)")

    record = run(make_test(3), make_sut(answer), max_retries=0)
    for failed in record.test_item_exceptions:
        assert failed.message.startswith("The server said: xxx")
        assert failed.message.endswith("xxx (request 17)")
        assert "characters" in failed.message
        assert "ValueError" in failed.traceback
    assert sum(file.stat().st_size for file in run_folder.glob("runs/*/items.jsonl")) < 300_000


def test_a_failed_prompt_cancels_no_sibling_and_their_answers_are_cached(make_test, make_sut, run):
    released = asyncio.Event()

    async def answer(text):
        if text == "bad":
            released.set()
            raise ValueError("no")
        await released.wait()  # ends after its sibling has failed
        return "yes"

    item = TestItem(["good 1", "bad", "good 2"])
    sut = make_sut(answer)
    record = run(make_test([item]), sut)
    (failed,) = record.test_item_exceptions
    assert [interaction.prompt.prompt.text for interaction in failed.interactions] == ["good 1", "good 2"]
    assert (failed.stage, failed.source_uid, failed.error_type, failed.message) == (
        "sut",
        "sut",
        "ValueError",
        "no",
    )
    again = run(make_test([item]), sut)
    assert again.counts.sut_calls.cached == 2
    assert sut.asked.count("bad") == 2  # a failure is never cached
    assert len(sut.asked) == 4


def test_an_annotator_that_fails_leaves_the_others_annotations(make_test, make_sut, make_annotator, run):
    good = make_annotator(lambda prompt, completion: {"n": 1}, "good")
    bad = make_annotator(lambda prompt, completion: 1 / 0, "bad")
    record = run(make_test(1, annotators={"good": good, "bad": bad}), make_sut())
    (failed,) = record.test_item_exceptions
    assert failed.interactions[0].response.completions[0].annotations == {"good": {"n": 1}}
    assert (failed.stage, failed.source_uid, failed.error_type) == ("annotator", "bad", "ZeroDivisionError")


class ManyCompletions(PromptResponseSUT):
    def translate_text_prompt(self, prompt):
        return prompt.text

    async def evaluate(self, request):
        return [f"{request} {n}" for n in range(3)]

    def translate_response(self, request, response):
        return SUTResponse([SUTCompletion(one) for one in response])


def test_each_completion_of_each_prompt_is_annotated_by_each_annotator(make_test, make_annotator, run):
    upper = make_annotator(lambda prompt, completion: completion.upper(), "upper")
    length = make_annotator(lambda prompt, completion: len(prompt), "length")

    def measure(item):
        found = [
            (
                completion.completion.text,
                completion.get_annotation("upper"),
                completion.get_annotation("length"),
            )
            for interaction in item.interactions
            for completion in interaction.response.completions
        ]
        assert found == [(f"{p} {n}", f"{p} {n}".upper(), len(p)) for p in ("a", "bb") for n in range(3)]
        return {"ok": True}

    test = make_test([TestItem(["a", "bb"])], measure=measure, annotators={"upper": upper, "length": length})
    record = run(test, ManyCompletions("many"))
    assert record.counts.scored == 1, [failure.message for failure in record.test_item_exceptions]
    assert record.counts.annotator_calls.paid == 12


def test_counts_and_bounds_show_what_could_not_be_scored(make_test, make_sut, make_annotator, run):
    def answer(text):
        if text == "sut":
            raise ValueError
        return "yes" if text == "right" else "no"

    annotator = make_annotator(lambda prompt, completion: 1 / (prompt != "annotator"))

    def measure(item):
        if item.test_item.prompts[0].prompt.text == "measure":
            raise KeyError("x")
        return {"right": item.text == "yes"}

    test = make_test(
        ["right", "wrong", "sut", "annotator", "measure"], measure=measure, annotators={"a": annotator}
    )
    record = run(test, make_sut(answer))
    counts = record.counts
    assert (counts.items, counts.scored, counts.sut_errors, counts.annotator_errors, counts.unscored) == (
        5,
        2,
        1,
        1,
        1,
    )
    right = record.result["right"]
    assert (right.value, right.n, right.bounds) == (0.5, 2, (0.2, 0.8))


def test_where_nothing_is_scored_the_result_is_empty_and_nothing_is_aggregated(make_test, make_sut, run):
    def aggregate(items):
        raise AssertionError("called")

    record = run(make_test(2, aggregate_measurements=aggregate), make_sut(failing("error")))
    assert (record.result, record.failure, record.cancelled) == ({}, None, False)
    record = run(make_test(0, aggregate_measurements=aggregate), make_sut())
    assert (record.result, record.failure.stage, record.cancelled) == ({}, "items", False)


def test_two_measurements_that_have_one_name_are_an_error(make_test, make_sut, run):
    record = run(make_test(1, measure=lambda item: {1: 0.0, "1": 1.0}), make_sut())
    (failed,) = record.test_item_exceptions
    assert "returned '1' twice" in failed.message


def test_an_aggregation_that_fails_ends_its_pair_only(make_test, make_sut, runner):
    broken = make_test(2, "broken", aggregate_measurements=lambda items: sys.exit("no"))
    odd = make_test(2, "odd", aggregate_measurements=lambda items: {"x": object()})
    fine = make_test(2, "fine")
    records = runner().run([broken, odd, fine], [make_sut()])
    assert [record.failure and record.failure.stage for record in records] == ["aggregate", "aggregate", None]
    assert "SystemExit: no" in records[0].failure.message
    assert records[1].failure.error_type == "InvalidDataError"
    assert all(record.counts.scored == 2 for record in records)


def test_items_before_an_error_of_make_test_items_are_kept(make_test, make_sut, runner, accounted):
    def items():
        yield TestItem(["one"])
        yield TestItem(["two"])
        raise OSError("file ends here")

    def nothing():
        raise OSError("no file")

    torn, missing = make_test(items, "torn"), make_test(nothing, "missing")
    stray = make_test(lambda: iter([TestItem(["one"]), "two"]), "stray")
    forgotten = make_test(lambda: None, "forgotten")
    indexed = make_test(
        type("Rows", (), {"__getitem__": lambda self, place: [TestItem(["one"])][place]}), "indexed"
    )
    empty, fine = make_test(lambda: iter(()), "empty"), make_test(3, "fine")
    records = runner().run([torn, missing, stray, forgotten, indexed, empty, fine], [make_sut()])
    assert [accounted(record).counts.scored for record in records] == [2, 0, 1, 0, 1, 0, 3]
    assert [record.failure and (record.failure.stage, record.failure.error_type) for record in records] == [
        ("items", "OSError"),
        ("items", "OSError"),
        ("items", "DefinitionError"),
        ("items", "DefinitionError"),
        None,
        ("items", "DefinitionError"),
        None,
    ]
    assert records[0].result["right"].n == 2
    assert "make_test_items of 'forgotten' returned None." in records[3].failure.message
    assert "make_test_items of 'empty' gave no items." in records[5].failure.message


def test_two_items_with_one_given_id_are_an_error_that_names_it(make_test, make_sut, run):
    test = make_test([TestItem(["a"], id="x"), TestItem(["b"], id="y"), TestItem(["c"], id="x")])
    record = run(test, make_sut())
    assert "two items with the id 'x'" in record.failure.message


@pytest.mark.parametrize("event", ["run_started", "item_finished", "run_finished"])
@pytest.mark.parametrize(
    "error", [ValueError("no"), SystemExit(1), asyncio.CancelledError(), GeneratorExit()]
)
def test_an_observer_that_raises_breaks_nothing_and_is_logged_once(
    event, error, make_test, make_sut, run, caplog
):
    class Observer:
        told = 0

        def run_started(self, run):
            self.tell("run_started")

        def item_finished(self, run_id, record):
            self.tell("item_finished")

        def run_finished(self, record):
            self.tell("run_finished")

        def tell(self, now):
            if now == event:
                self.told += 1
                raise error

    broken, other = Observer(), Observer()
    record = run(make_test(3), make_sut(), observers=[broken, other])
    assert record.counts.scored == 3
    assert broken.told == other.told == (3 if event == "item_finished" else 1)
    assert len([record for record in caplog.records if "observer" in record.message]) == 2


@pytest.mark.parametrize("event", ["run_started", "item_finished", "run_finished"])
def test_ctrl_c_in_an_observer_ends_the_run(event, make_test, make_sut, run, run_folder):
    class Observer:
        def __init__(self, error=None):
            self.error, self.told = error, []

        def __getattr__(self, name):
            return lambda *_: self.hear(name)

        def hear(self, name):
            self.told.append(name)
            if name == event and self.error is not None:
                raise self.error

    interrupted, other = Observer(KeyboardInterrupt()), Observer()
    if event == "run_finished":  # which runs in a thread, where no signal comes
        assert run(make_test(3), make_sut(), observers=[interrupted, other]).counts.scored == 3
        return
    with pytest.raises(KeyboardInterrupt):
        run(make_test(3), make_sut(), observers=[interrupted, other])
    assert interrupted.told == other.told
    assert event in other.told
    (folder,) = (run_folder / "runs").iterdir()
    assert load_record(folder).cancelled


class Opening(ManyCompletions):
    """Counts what is called; fails where it is told to."""

    def __init__(self, uid, fails=None):
        super().__init__(uid)
        self.fails = fails
        self.events = []

    async def open(self):
        await self.event("open")

    async def close(self):
        await self.event("close")

    async def event(self, name):
        self.events.append((name, asyncio.get_running_loop()))
        if self.fails and self.fails[0] == name:
            if self.fails[1] is None:
                await asyncio.Event().wait()
            raise self.fails[1]


def test_a_sut_is_opened_and_closed_once_a_run_in_its_loop(make_test, runner):
    sut = Opening("sut")
    tests = [make_test(2, "a", measure=lambda item: {"x": 1}), make_test(2, "b", measure=lambda item: 1 / 0)]
    runner().run(tests, [sut])
    assert [name for name, _ in sut.events] == ["open", "close"]
    assert len({loop for _, loop in sut.events}) == 1
    runner().run(tests, [sut])
    assert [name for name, _ in sut.events] == ["open", "close"] * 2


@pytest.mark.parametrize("error", [OSError("no route"), SystemExit("bye")])
def test_a_sut_that_cannot_be_opened_ends_its_pairs_only(error, make_test, make_sut, runner):
    test = make_test(2, measure=lambda item: {"x": 1})
    broken, fine = Opening("broken", ("open", error)), make_sut(uid="fine")
    bad, good = runner().run([test], [broken, fine])
    assert bad.failure.stage == "run"
    assert "'broken' could not be opened" in bad.failure.message
    assert str(error) in bad.failure.message
    assert bad.counts.items == 0
    assert good.failure is None
    assert good.counts.scored == 2
    assert [name for name, _ in broken.events] == ["open"]


def test_a_sut_whose_open_never_returns_is_named_and_the_others_go_on(make_test, make_sut, runner):
    test = make_test(2, measure=lambda item: {"x": 1})
    hangs, fine = Opening("hangs", ("open", None)), make_sut(uid="fine")
    bad, good = runner(call_timeout=1).run([test], [hangs, fine])
    assert "'hangs' could not be opened: it took more than 1 s" in bad.failure.message
    assert "--call-timeout" in bad.failure.message
    assert (bad.counts.items, good.counts.scored) == (0, 2)


def test_a_sut_whose_close_never_returns_does_not_keep_the_run(make_test, run, caplog):
    sut = Opening("hangs", ("close", None))
    record = run(make_test(2, measure=lambda item: {"x": 1}), sut, attempt_timeout=1)
    assert record.counts.scored == 2
    assert "'hangs' could not be closed" in caplog.text


def test_a_sut_that_cannot_be_closed_is_logged_and_loses_nothing(make_test, run, caplog):
    record = run(make_test(2, measure=lambda item: {"x": 1}), Opening("sut", ("close", OSError("no"))))
    assert record.counts.scored == 2
    assert "'sut' could not be closed" in caplog.text


def test_a_cancelled_run_closes_its_suts_writes_its_record_and_can_be_resumed(
    make_test, runner, run_folder, resumed
):
    waiting, asked = asyncio.Event(), []

    class Slow(Opening):
        async def evaluate(self, request):
            asked.append(request)
            if len(asked) > 3:
                waiting.set()
                await asyncio.Event().wait()
            return [request]

    test, sut = make_test(8, measure=lambda item: {"x": 1}), Slow("sut")
    interrupted = runner(grace=1, concurrency=2)  # in which the answered items end

    async def main():
        task = asyncio.create_task(interrupted.run_async([test], [sut]))
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert [name for name, _ in sut.events] == ["open", "close"]
    (folder,) = (run_folder / "runs").iterdir()
    record = load_record(folder)
    assert record.cancelled
    assert record.counts.scored == len(list(record.iter_items())) == 3
    asked[:] = []
    Slow.evaluate = ManyCompletions.evaluate
    whole = resumed(record, test, sut)
    assert not whole.cancelled
    assert whole.counts.scored == whole.counts.items == 8


@pytest.mark.parametrize("where", ["items", "aggregate"])
def test_an_interruption_does_not_wait_for_an_author_who_hangs(
    where, make_test, make_sut, runner, run_folder
):
    begun, end = threading.Event(), threading.Event()

    def hang(*args):
        begun.set()
        end.wait()
        return []

    test = make_test(2) if where == "aggregate" else make_test(hang)
    if where == "aggregate":
        test.aggregate_measurements = hang
    interrupted, sut = runner(grace=0.01), make_sut()

    async def main():
        task = asyncio.create_task(interrupted.run_async([test], [sut]))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    try:
        asyncio.run(main())
    finally:
        end.set()
    (folder,) = (run_folder / "runs").iterdir()
    assert load_record(folder).cancelled


def test_keyboard_interrupt_without_ctrl_c_fails_its_item_and_with_it_ends_the_run(
    make_test, run, run_folder, resumed, caplog
):
    def interrupt(text):
        raise KeyboardInterrupt

    async def interrupt_awaited(text):
        raise KeyboardInterrupt

    async def interrupt_once(text):
        if not interrupted:
            interrupted.append(text)
            signal.raise_signal(signal.SIGINT)
            raise KeyboardInterrupt  # as Ctrl-C does where code holds up the loop
        return "yes"

    interrupted = []
    for function in (interrupt, interrupt_awaited):
        record = run(make_test(2), FunctionSUT("plain", function))
        assert record.counts.sut_errors == 2
        assert "KeyboardInterrupt" in record.test_item_exceptions[0].message
    sut = FunctionSUT("async", interrupt_once)
    with pytest.raises(KeyboardInterrupt):
        run(make_test(2), sut, grace=0.01)
    gc.collect()
    assert "never retrieved" not in caplog.text
    stopped = max((run_folder / "runs").iterdir())
    assert resumed(RunFolder(stopped), make_test(2), sut).counts.scored == 2


def test_a_cache_that_cannot_be_closed_does_not_keep_the_run(make_test, make_sut, run, monkeypatch, caplog):
    close = ResponseCache.close

    def failing(cache):
        close(cache)
        if threading.current_thread().name in ("modelgauge-writer", "modelgauge-reader"):
            raise RuntimeError("cannot be closed")

    monkeypatch.setattr(ResponseCache, "close", failing)
    record = run(make_test(3, measure=lambda item: {"x": 1}), make_sut())
    assert (record.counts.scored, record.failure) == (3, None)
    assert "could not close what it used" in caplog.text


def test_those_who_watch_a_run_are_told_no_secret(make_test, run):
    class Watching:
        def __init__(self):
            self.records = []

        def run_started(self, run): ...
        def run_finished(self, record): ...

        def item_finished(self, run_id, record):
            self.records.append(record)

    def answer(text):
        if text == "question 1":
            raise ValueError("no access with s3cret-value-1234")
        return "s3cret-value-1234"

    secrets, watching = SecretStore({}), Watching()
    secrets.redactor.add("scope.key", "s3cret-value-1234")
    run(make_test(3), FunctionSUT("sut", answer), secrets=secrets, observers=[watching])
    assert len(watching.records) == 3
    told = "".join(record.model_dump_json() for record in watching.records)
    assert told.count("[secret scope.key]") >= 3
    assert "s3cret" not in told


def test_a_sut_that_raises_what_closes_generators_fails_its_item_at_once(make_test, run):
    async def ask(text):
        if text == "question 1":
            raise GeneratorExit
        return "yes"

    record = run(make_test(3), FunctionSUT("sut", ask), attempt_timeout=60)
    assert (record.counts.scored, record.counts.sut_errors) == (2, 1)
    assert record.test_item_exceptions[0].message == "GeneratorExit: "


class Lost(FunctionSUT):
    """Its client cancels a call when the connection is lost."""

    def translate_response(self, request, response):
        if request == "question 1":
            raise asyncio.CancelledError
        return super().translate_response(request, response)


class Built(FunctionSUT):
    """Builds a response past pydantic's checks."""

    def translate_response(self, request, response):
        if request != "question 1":
            return super().translate_response(request, response)
        return SUTResponse.model_construct(**self.parts)


@pytest.mark.parametrize(
    ("cls", "parts"),
    [
        (Lost, None),
        (Built, {"completions": ("text",)}),
        (Built, {"completions": (SUTCompletion.model_construct(text=None),)}),
        (Built, {"completions": (SUTCompletion("x"),), "usage": {"input_tokens": 3}}),
    ],
)
def test_a_bad_response_fails_its_item_and_not_the_run(cls, parts, make_test, run, accounted):
    sut = cls("sut", lambda text: "yes", version=1)
    sut.parts = {"usage": None, **(parts or {})}
    record = accounted(run(make_test(5), sut))
    assert (record.counts.scored, record.counts.sut_errors, record.failure) == (4, 1, None)


class Parsed:
    """No JSON."""


def put(where):
    def measure(item):
        if item.text == "mutate":
            if where == "annotation":
                item.interactions[0].response.completions[0].annotations["j"]["parsed"] = Parsed()
            else:
                context = item.context if where == "item" else item.interactions[0].prompt.context
                context["parsed"] = Parsed()
        return {"x": 1}

    return measure


@pytest.mark.parametrize("where", ["item", "prompt", "annotation"])
def test_what_cannot_be_written_fails_its_item_and_the_run_can_be_resumed(
    where, make_test, make_annotator, run, resumed, accounted
):
    def items():
        given = [("yes", "a"), ("mutate", "b"), ("yes", "c"), ("yes", "d")]
        return [
            TestItem([PromptWithContext(TextPrompt(text), context={"kept": 1})], id=name, context={"kept": 2})
            for text, name in given
        ]

    test = make_test(items, measure=put(where), annotators={"j": make_annotator(lambda *_: {"good": True})})
    sut = FunctionSUT("sut", lambda text: text)
    stopped = run(test, sut, max_calls=5, concurrency=1, caching=False)
    (failed,) = stopped.test_item_exceptions
    assert (failed.test_item.id, failed.stage, failed.source_uid) == ("b", "measure", "test")
    assert "cannot be written" in failed.message
    assert "measure_quality" in failed.message
    if where != "annotation":
        assert (
            failed.interactions[0].response.completions[0].completion.text == "mutate"
        )  # what is paid is kept
    whole = accounted(resumed(stopped, test, sut, max_calls=20))
    assert (whole.counts.scored, whole.counts.unscored, whole.failure) == (3, 1, None)


@pytest.mark.parametrize("name", ["", 1, None, "\ud800"])
def test_an_annotator_needs_a_name_that_can_be_recorded(name, make_test, make_sut, make_annotator, run):
    sut = make_sut()
    with pytest.raises(DefinitionError, match="get_annotators of "):
        run(make_test(2, annotators={name: make_annotator(lambda *_: 1)}), sut)
    assert sut.asked == []


def test_annotators_may_be_chosen_by_a_generator(make_test, make_sut, make_annotator, run):
    class Choosing(type(make_test())):
        def choose_annotators(self, prompt):
            return (name for name in ("b", "b", "a"))

    judged = []
    annotators = {name: make_annotator(lambda *_: judged.append(1) or 1, name) for name in "abc"}
    test = make_test(1, cls=Choosing, annotators=annotators)
    (item,) = run(test, make_sut(), caching=False).test_item_records
    assert set(item.interactions[0].response.completions[0].annotations) == {"a", "b"}
    assert len(judged) == 2


@pytest.mark.parametrize("chosen", ["a", None])
def test_what_is_no_choice_of_annotators_is_told(chosen, make_test, make_sut, make_annotator, run):
    class Choosing(type(make_test())):
        def choose_annotators(self, prompt):
            return chosen

    test = make_test(1, cls=Choosing, annotators={"a": make_annotator(lambda *_: 1)})
    (failed,) = run(test, make_sut()).test_item_exceptions
    assert failed.message.startswith(f"choose_annotators returned {chosen!r}. Return a list of names")


def test_a_run_that_is_cancelled_twice_leaves_nothing_behind(make_test, runner, run_folder):
    waiting, cancelled = asyncio.Event(), runner(grace=60)

    async def ask(text):
        waiting.set()
        await asyncio.Event().wait()

    async def main():
        task = asyncio.create_task(cancelled.run_async([make_test(8)], [FunctionSUT("sut", ask)]))
        await waiting.wait()
        task.cancel()
        await asyncio.sleep(0.05)  # within the grace
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    (folder,) = (run_folder / "runs").iterdir()
    assert load_record(folder).cancelled


def test_a_second_ctrl_c_before_anything_is_stopped_is_recorded(make_test, run, run_folder, monkeypatch):
    async def ask(text):
        signal.raise_signal(signal.SIGINT)
        await asyncio.Event().wait()

    monkeypatch.setattr(Services, "stop", lambda *_: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        run(make_test(2), FunctionSUT("sut", ask))
    (folder,) = (run_folder / "runs").iterdir()
    assert load_record(folder).cancelled


def test_a_disk_that_refuses_the_record_leaves_the_totals(
    make_test, make_sut, run, run_folder, resumed, monkeypatch
):
    def refuse(folder, record, redact):
        raise refused(folder.path / "record.json", OSError("No space left on device"))

    test, sut = make_test(3), make_sut()
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "write_record", refuse)
        record = run(test, sut, caching=False)
    assert record.failure is not None
    (folder,) = (run_folder / "runs").iterdir()
    assert read_totals(RunFolder(folder)).used.attempts == record.spent.attempts == 3
    assert resumed(RunFolder(folder), test, sut).spent.attempts == 3


FORKS = """
import asyncio, os, sys, warnings
from modelgauge import FunctionSUT, PromptResponseTest, Runner, TestItem
from modelgauge.plugins.discovery import Plugins
from modelgauge.config.settings import Settings

data_dir, where, ending = sys.argv[1:]
warnings.filterwarnings("ignore", "This process .* is multi-threaded")  # from Python 3.12

def forks():
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if ending == "returns":
        return 77
    if ending == "raises":
        raise ValueError("of the child")
    sys.exit(int(ending) if ending.isdigit() else ending)

class Forks(PromptResponseTest):
    def make_test_items(self, dependencies):
        return [TestItem([str(forks() if where == "items" else None)])]

    def measure_quality(self, item):
        return {"code": forks() if where == "measures" else float(item.text)}

async def waits(text):
    code = forks()
    await asyncio.sleep(0.01)
    return str(code)

async def at_once(text):
    return str(forks())

answer = {"waits": waits, "at_once": at_once, "plain": lambda _: str(forks())}.get(where, lambda text: text)
runner = Runner(data_dir, plugins=Plugins(), settings=Settings(), caching=False)
[record] = runner.run([Forks("forks")], [FunctionSUT("sut", answer)])
print(record.result["code"].value, record.counts.scored)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.parametrize(
    ("where", "ending", "code", "told"),
    [
        ("plain", "3", 3, ""),
        ("plain", "0", 0, ""),
        ("plain", "a message", 1, "a message\n"),
        ("plain", "returns", 0, ""),
        ("plain", "raises", 1, "ValueError: of the child\n"),
        ("waits", "3", 3, ""),
        ("waits", "returns", 1, "RuntimeError: no running event loop\n"),
        ("at_once", "3", 3, ""),
        ("items", "3", 3, ""),
        ("measures", "3", 3, ""),
    ],
)
def test_a_child_that_an_author_forks_ends_where_it_leaves_the_author_s_code(
    tmp_path, where, ending, code, told
):
    done = children.run("-c", FORKS, tmp_path, where, ending)
    assert done.stdout == f"{float(code)} 1\n", done.stderr
    assert done.stderr.endswith(told)
    assert bool(done.stderr) == bool(told)


@pytest.mark.parametrize("how", ["done", "hangs", "waits", "thread", "minute", "no cache"])
def test_nothing_of_a_run_is_left_in_a_callers_loop(
    how, make_test, make_sut, runner, run_folder, monkeypatch
):
    """However it ends: at its end, by a cap while the items hang, cancelled while calls wait, or before it begins."""
    release, asked = threading.Event(), []

    def items():
        yield from (TestItem([f"question {n}"]) for n in range(40))
        if how == "hangs":
            release.wait()

    async def wait(text):
        asked.append(text)
        await asyncio.sleep(3600 if how == "waits" else 0)
        return "yes"

    def wait_in_thread(text):
        asked.append(text)
        release.wait()
        return "yes"

    sut = FunctionSUT("sut", wait_in_thread, version=1) if how == "thread" else make_sut(wait)
    caps = {"hangs": {"max_calls": 20}, "minute": {"requests_per_minute": 5}}.get(how, {})
    if how == "no cache":
        run_folder.mkdir()
        (run_folder / "cache").touch()
        monkeypatch.setattr("modelgauge.api.surroundings", lambda *_: release.wait())

    ready = runner(grace=0.01, **caps)

    async def main():
        task = asyncio.create_task(ready.run_async([make_test(items)], [sut]))
        while how in ("waits", "thread", "minute") and not asked:
            await asyncio.sleep(0.001)
        if how in ("waits", "thread", "minute"):
            task.cancel()
        await asyncio.wait([task])
        return asyncio.all_tasks() - {asyncio.current_task()}, task

    try:
        left, task = asyncio.run(main())
    finally:
        release.set()
    assert left == set()
    assert task.cancelled() is (how in ("waits", "thread", "minute"))
    assert task.cancelled() or (task.exception() is None) is (how != "no cache")
