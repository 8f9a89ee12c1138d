import asyncio
import dataclasses
import functools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from modelgauge import ToolCall
from modelgauge.errors import DefinitionError, InvalidDataError, InvalidOptionError
from modelgauge.evals import (
    LLMTestCase,
    collect_traces,
    in_this_trace,
    observe,
    update_current_span,
    update_current_trace,
)
from modelgauge.observe.spans import _warn_of_thread, get_observation


def tree(trace):
    """Names of spans with those of their parents."""
    names = {span.id: span.name for span in trace.spans}
    return [(span.name, names.get(span.parent)) for span in trace.spans]


@observe(type="tool")
def leaf(number):
    return number * 2


@observe(type="retriever", embedder="small")
async def search(text, limit=1):
    await asyncio.sleep(0)
    return [text] * limit


def test_a_span_knows_inputs_outputs_type_metadata_and_time():
    with collect_traces() as traces:
        asyncio.run(search("cats", limit=2))
    (span,) = traces[0].spans
    assert (span.name, span.type, span.parent) == ("search", "retriever", None)
    assert span.input == {"text": "cats", "limit": 2}
    assert span.output == ["cats", "cats"]
    assert span.metadata == {"embedder": "small"}
    assert 0 <= span.start <= span.start + span.seconds <= traces[0].seconds


def test_calls_nest_over_coroutines_tasks_and_threads():
    @observe
    async def app():
        await asyncio.gather(search("a"), search("b"))
        await asyncio.to_thread(leaf, 1)
        with ThreadPoolExecutor(2) as pool:
            pool.submit(in_this_trace(leaf), 2).result()
            assert list(pool.map(in_this_trace(leaf), [3, 3])) == [6, 6]
        thread = threading.Thread(target=in_this_trace(leaf), args=(4,))
        thread.start()
        thread.join()

    with collect_traces() as traces:
        asyncio.run(app())
    assert tree(traces[0]) == [
        ("app", None),
        ("search", "app"),
        ("search", "app"),
        *[("leaf", "app")] * 5,
    ]
    assert [span.output for span in traces[0].spans[3:]] == [2, 4, 6, 6, 8]


def test_what_a_thread_does_after_a_trace_has_ended_is_no_part_of_it_or_of_the_next():
    pool = ThreadPoolExecutor(1)
    kept = []

    @observe
    def app():
        kept.append(in_this_trace(leaf))
        return pool.submit(kept[0], 1).result()

    with collect_traces() as first:
        app()
    assert pool.submit(kept[0], 2).result() == 4
    with collect_traces() as second:
        assert pool.submit(kept[0], 3).result() == 6
        pool.submit(in_this_trace(leaf), 4).result()
    pool.shutdown()
    assert [tree(trace) for trace in first] == [[("app", None), ("leaf", "app")]]
    assert [tree(trace) for trace in second] == [[("leaf", None)]]


def test_threads_run_in_a_span_at_the_same_time():
    both = threading.Barrier(2)

    @observe
    def part(number):
        both.wait(30)
        return leaf(number)

    @observe
    def app():
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(in_this_trace(part), [1, 2]))

    with collect_traces() as traces:
        assert app() == [2, 4]
    assert sorted(tree(traces[0])[1:]) == [*[("leaf", "part")] * 2, *[("part", "app")] * 2]


@pytest.fixture
def new_process():
    """A process that has not warned yet, and does not remember what a test lets it warn of."""
    _warn_of_thread.cache_clear()
    yield
    _warn_of_thread.cache_clear()


def test_an_observed_function_in_a_thread_that_knows_no_trace_warns_once(new_process):
    def in_threads():
        for _ in range(2):
            thread = threading.Thread(target=leaf, args=(1,))
            thread.start()
            thread.join()

    in_threads()  # nobody records
    with collect_traces() as traces:
        leaf(2)
        with pytest.warns(UserWarning, match="in_this_trace") as warned:
            in_threads()
    assert (len(warned), warned[0].filename) == (1, threading.__file__)
    assert [tree(trace) for trace in traces] == [[("leaf", None)]]


def test_traces_of_concurrent_tasks_are_kept_apart():
    @observe
    async def app(name):
        await asyncio.sleep(0)
        await search(name)

    async def both():
        await asyncio.gather(app("a"), app("b"))

    with collect_traces() as traces:
        asyncio.run(both())
    assert [tree(trace) for trace in traces] == [[("app", None), ("search", "app")]] * 2
    assert [trace.spans[0].input["name"] for trace in traces] == [
        trace.spans[1].input["text"] for trace in traces
    ]


def test_a_generator_is_a_span_only_while_its_body_runs():
    @observe
    def tokens():
        for number in range(2):
            leaf(number)
            yield str(number)

    @observe
    def app():
        produced = []
        for token in tokens():
            leaf(7)  # the consumer's, not the generator's
            produced.append(token)
        return produced

    with collect_traces() as traces:
        assert app() == ["0", "1"]
    spans = traces[0].spans
    assert tree(traces[0]) == [
        ("app", None),
        ("tokens", "app"),
        ("leaf", "tokens"),
        ("leaf", "app"),
        ("leaf", "tokens"),
        ("leaf", "app"),
    ]
    assert spans[1].output == "01"


def test_generators_still_take_values_and_exceptions_and_return():
    @observe
    def counter():
        heard = []
        while len(heard) < 2:
            try:
                heard.append((yield len(heard)))
            except KeyError:
                heard.append("key error")
        return heard

    with collect_traces() as traces:
        generator = counter()
        assert next(generator) == 0
        assert generator.send("hello") == 1
        with pytest.raises(StopIteration) as end:
            generator.throw(KeyError())
    assert end.value.value == ["hello", "key error"]
    assert traces[0].spans[0].output == [0, 1]
    assert traces[0].spans[0].error is None


def test_an_async_generator_that_is_left_early_ends_its_span():
    cleaned = []

    @observe
    async def stream():
        try:
            for number in range(9):
                await search(str(number))
                yield number
        finally:
            cleaned.append(True)

    async def consume():
        generator = stream()
        assert [await anext(generator), await anext(generator)] == [0, 1]
        await generator.aclose()

    with collect_traces() as traces:
        asyncio.run(consume())
    assert cleaned == [True]
    assert traces[0].spans[0].output == [0, 1]
    assert tree(traces[0])[1:] == [("search", "stream")] * 2


def test_an_exception_passes_through_and_stands_in_the_span():
    @observe
    def broken():
        raise KeyError("gone")

    with collect_traces() as traces, pytest.raises(KeyError):
        broken()
    assert traces[0].spans[0].error == "KeyError: 'gone'"


@dataclasses.dataclass(frozen=True)
class FrozenError(Exception):
    """Refuses attributes, also those that every exception has."""

    code: int


@observe
def denied():
    raise FrozenError(3)


@observe
async def denied_later():
    await asyncio.sleep(0)
    raise FrozenError(3)


@observe
def denied_between():
    yield 1
    raise FrozenError(3)


@observe
async def denied_between_later():
    yield 1
    raise FrozenError(3)


async def consumed(generator):
    return [one async for one in generator]


@pytest.mark.parametrize(
    "use",
    [
        denied,
        lambda: asyncio.run(denied_later()),
        lambda: list(denied_between()),
        lambda: asyncio.run(consumed(denied_between_later())),
    ],
)
def test_an_exception_that_refuses_attributes_passes_through_as_it_is(use):
    with pytest.raises(FrozenError) as seen:  # noqa: SIM117  the second is left by what is raised
        with collect_traces() as traces:
            use()
    assert seen.value == FrozenError(3)
    assert [span.error for span in traces[0].spans] == ["FrozenError: 3"]


def test_an_object_whose_parent_class_observes_its_calls_is_observed():
    class Bot:
        @observe(metrics=["m"])
        def __call__(self, question):
            return question

    class Polite(Bot):
        pass

    assert get_observation(Polite()) is not None
    assert get_observation(functools.partial(Polite(), "x")) is not None
    assert get_observation(Polite()).metrics == ("m",)
    assert get_observation(Polite) is None


def test_a_method_shows_its_arguments_without_self():
    class Bot:
        @observe(name="bot")
        def answer(self, question):
            return question

    with collect_traces() as traces:
        Bot().answer("why?")
    assert traces[0].spans[0].input == {"question": "why?"}
    assert traces[0].spans[0].name == "bot"
    assert get_observation(Bot().answer) is not None
    assert get_observation(functools.partial(Bot().answer, "x")) is not None
    assert get_observation(print) is None


def test_what_has_no_json_is_shown_by_its_repr_as_it_was():
    class Thing:
        def __repr__(self):
            return "<thing>"

    given = {"thing": Thing(), "list": [1]}

    @observe
    def app(value):
        value["list"].append(2)
        return float("nan")

    with collect_traces() as traces:
        app(given)
    assert traces[0].spans[0].input == {"value": {"thing": "<thing>", "list": [1]}}
    assert traces[0].spans[0].output == "nan"


def test_nothing_is_recorded_where_nobody_collects():
    seen = []

    @observe(metrics=["x"])
    def app(value):
        update_current_span(metadata={"a": 1})
        update_current_trace(tags=["b"])
        seen.append(value)
        return value

    assert app(object) is object
    assert seen == [object]


def test_updates_reach_the_innermost_span_and_the_whole_trace():
    @observe
    def inner():
        update_current_span(name="renamed", output="told", metadata={"k": 1}, retrieval_context=["doc"])
        update_current_trace(name="whole", tags=["t"], user_id="u", thread_id="th", metadata={"m": 2})
        return "returned"

    @observe(metrics=["m"])
    def app(question):
        inner()
        update_current_span(test_case=LLMTestCase("in", "out"))

    with collect_traces() as traces:
        app("q")
    trace = traces[0]
    assert (trace.name, trace.tags, trace.user_id, trace.thread_id) == ("whole", ("t",), "u", "th")
    assert trace.metadata == {"m": 2}
    outer, renamed = trace.spans
    assert (renamed.name, renamed.output, renamed.metadata) == ("renamed", "told", {"k": 1})
    assert outer.test_case == LLMTestCase("in", "out")
    assert outer.metrics == ("m",)


def test_a_span_with_metrics_and_no_test_case_is_judged_by_what_went_in_and_out():
    @observe(metrics=["m"])
    def app(question):
        update_current_span(retrieval_context=["doc"], expected_output="yes")
        return {"answer": 1}

    with collect_traces() as traces:
        app("q?")
    assert traces[0].spans[0].test_case == LLMTestCase(
        "q?", '{"answer": 1}', "yes", retrieval_context=["doc"]
    )


def test_a_span_keeps_what_was_said_of_its_case_though_nothing_judges_it():
    @observe
    def retrieve(question):
        update_current_span(retrieval_context=["doc"])
        return ["doc"]

    with collect_traces() as traces:
        retrieve("q?")
    (span,) = traces[0].spans
    assert (span.metrics, span.test_case) == ((), LLMTestCase("q?", '["doc"]', retrieval_context=["doc"]))


def test_a_test_case_is_the_spans_input_and_output_too():
    @observe
    def app(question):
        update_current_span(test_case=LLMTestCase("in", "out"))
        return leaf(1)

    @observe
    def told(question):
        update_current_span(test_case=LLMTestCase("in"), input={"asked": question})
        return "returned"

    with collect_traces() as traces:
        app("q")
        told("q")
    assert [(trace.spans[0].input, trace.spans[0].output) for trace in traces] == [
        ("in", "out"),
        ({"asked": "q"}, "returned"),
    ]


@pytest.mark.parametrize("given", [{"retrieval_context": "no list"}, {"test_case": {"input": "x"}}])
def test_wrong_updates_are_refused_where_they_are_made(given):
    @observe
    def app():
        update_current_span(**given)

    with collect_traces(), pytest.raises(InvalidDataError):
        app()


@pytest.mark.parametrize("update", [update_current_span, update_current_trace])
def test_a_misspelt_argument_is_refused_with_the_right_one_also_where_nobody_collects(update):
    with pytest.raises(InvalidOptionError, match="retrieval_context"):
        update(retrieval_contxt=["doc"])


def test_all_fields_of_a_case_that_an_app_can_know_reach_it():
    said = {
        "expected_output": "yes",
        "context": ["fact"],
        "retrieval_context": ["doc"],
        "tools_called": [ToolCall(name="a")],
        "expected_tools": [ToolCall(name="b")],
        "token_cost": 0.5,
        "completion_time": 2.0,
    }

    @observe(metrics=["m"])
    def app(question):
        update_current_span(**said)
        return "no"

    with collect_traces() as traces:
        app("q")
    assert traces[0].spans[0].test_case == LLMTestCase("q", "no", **said)


@pytest.mark.parametrize("target", [staticmethod(leaf), classmethod(leaf), 3, int])
def test_only_functions_can_be_observed(target):
    with pytest.raises(DefinitionError):
        observe(target)


def test_metrics_must_be_a_list():
    with pytest.raises(DefinitionError, match=r"Give a list"):
        observe(metrics="answer_relevancy")


@pytest.mark.parametrize("wrong", [{"type": 5}, {"name": ["a"]}])
def test_a_type_or_name_that_is_no_text_is_refused_at_once(wrong):
    with pytest.raises(DefinitionError, match="Give a text"):
        observe(**wrong)


def test_an_app_may_say_what_went_into_a_span():
    @observe
    def app(question):
        update_current_span(input={"asked": question}, tags=["beta"])
        update_current_trace(input="the whole", output="all")

    with collect_traces() as traces:
        app("q")
    assert traces[0].spans[0].input == {"asked": "q"}
    assert (traces[0].input, traces[0].output) == ("the whole", "all")


def test_a_generator_that_is_left_early_ends_its_span():
    cleaned = []

    @observe
    def stream():
        try:
            yield from range(9)
        finally:
            leaf(3)
            cleaned.append(True)

    with collect_traces() as traces:
        generator = stream()
        assert [next(generator), next(generator)] == [0, 1]
        generator.close()
    assert cleaned == [True]
    assert traces[0].spans[0].output == [0, 1]
    assert tree(traces[0]) == [("stream", None), ("leaf", "stream")]


def test_a_generator_is_as_it_was_where_nobody_collects():
    @observe
    def echo():
        heard = yield "first"
        return heard

    generator = echo()
    assert next(generator) == "first"
    with pytest.raises(StopIteration) as end:
        generator.send("heard")
    assert end.value.value == "heard"


def test_what_has_no_signature_shows_its_arguments_in_order():
    greatest = observe(max)
    with collect_traces() as traces:
        assert greatest(1, 2) == 2
    assert traces[0].spans[0].input == {"args": [1, 2]}
    assert traces[0].name == "max"
