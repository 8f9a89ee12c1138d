"""Observed functions that take or give what can be read only once: it is the app's to read."""

import asyncio
import csv
import inspect
import io
import itertools
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, computed_field

from modelgauge import load_record
from modelgauge.evals import Golden, assert_test, collect_traces, evaluate, observe
from modelgauge.metrics import Metric


@dataclass
class Response:
    chunks: Iterator[str]
    model: str = "m"


class Reply(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    chunks: Any
    model: str = "m"


class Stream:
    """The chunks of an answer, as clients give them."""

    def __init__(self) -> None:
        self._left = ["to", "be"]

    def __iter__(self):
        return self

    def __next__(self):
        if not self._left:
            raise StopIteration
        return self._left.pop(0)


@observe
def same(value):
    return value


@observe
def read(stream):
    return list(stream)


@pytest.mark.parametrize(
    ("stream", "held"),
    [
        (iter([1, 2]), [1, 2]),
        (map(str, [1, 2]), ["1", "2"]),
        (zip("ab", "cd", strict=True), [("a", "c"), ("b", "d")]),
        (io.StringIO("a\nb\n"), ["a\n", "b\n"]),
        (csv.reader(["a,b"]), [["a", "b"]]),
        (Stream(), ["to", "be"]),
        ((one for one in "ab"), ["a", "b"]),
    ],
)
def test_a_stream_reaches_whoever_reads_it_unread(stream, held):
    with collect_traces() as traces:
        given = same(stream)
        assert read(given) == held
    assert type(stream).__name__ in traces[-1].spans[0].input["stream"]


@pytest.mark.parametrize(
    ("holder", "of"),
    [
        (lambda stream: {"chunks": stream, "model": "m"}, lambda made: made["chunks"]),
        (Response, lambda made: made.chunks),
        (lambda stream: Reply(chunks=stream), lambda made: made.chunks),
        (lambda stream: ([{"deep": stream}],), lambda made: made[0][0]["deep"]),
    ],
)
def test_nor_is_one_read_that_stands_in_something_else(holder, of):
    with collect_traces() as traces:
        assert list(of(same(holder(Stream())))) == ["to", "be"]
    output = traces[0].spans[0].output
    assert "Stream object" in str(output)
    if isinstance(output, dict):
        assert output["model"] == "m"


def test_a_stream_without_an_end_is_not_waited_for():
    @observe
    def first(numbers):
        return next(numbers)

    with collect_traces() as traces:
        assert first(itertools.count(7)) == 7
    assert traces[0].spans[0].output == 7


def test_what_holds_itself_is_no_obstacle():
    ring: list[Any] = [1]
    ring.append(ring)
    with collect_traces() as traces:
        assert same(ring) is ring
    assert traces[0].spans[0].output == "[1, [...]]"


def test_a_model_that_cannot_be_shown_does_not_break_the_app():
    class Odd(BaseModel):
        @computed_field
        @property
        def size(self) -> int:
            raise LookupError("not yet")

        def __repr__(self) -> str:
            return "Odd()"

    with collect_traces() as traces:
        assert isinstance(same(Odd()), Odd)
    assert traces[0].spans[0].output == "Odd()"


# --- a function that returns a generator, instead of being one ------------------------------------------------


@observe
def chunk(text):
    return text


def chunks(question):
    yield chunk(question)
    yield chunk("!")


async def async_chunks(question):
    for part in chunks(question):
        yield part


@observe
def plain(question):
    return chunks(question)


@observe
def around_async(question):
    return async_chunks(question)


@observe
async def returning(question):
    return chunks(question)


@observe
async def returning_async(question):
    return async_chunks(question)


@observe
def around_coroutine(question):
    return returning.__wrapped__(question)


async def everything(stream):
    if inspect.iscoroutine(stream):
        stream = await stream
    return [part async for part in stream] if hasattr(stream, "__anext__") else list(stream)


STREAMING = [plain, around_async, returning, returning_async, around_coroutine]


@pytest.mark.parametrize("app", STREAMING, ids=lambda app: app.__name__)
def test_its_span_ends_with_what_it_produced_and_holds_what_it_called(app):
    with collect_traces() as traces:
        assert asyncio.run(everything(app("to be"))) == ["to be", "!"]
    (trace,) = traces
    assert [(span.name, span.parent, span.output) for span in trace.spans] == [
        (app.__name__, None, "to be!"),
        ("chunk", 0, "to be"),
        ("chunk", 0, "!"),
    ]
    assert trace.spans[0].seconds is not None


class Echoes(Metric):
    required_params = ("actual_output",)

    def score(self, test_case):
        return 1.0 if test_case.actual_output == f"{test_case.input}!" else 0.0


def client_stream(question):
    stream = Stream()
    stream._left = [question, "!"]
    return stream


@pytest.mark.parametrize("app", [*STREAMING, observe(client_stream)], ids=lambda app: app.__name__)
def test_the_app_is_judged_by_all_that_it_streamed(app, here):
    assert_test(golden=Golden("to be"), observed_callback=observe(metrics=[Echoes()])(app))
    result = evaluate(goldens=[Golden("to be"), Golden("or not")], observed_callback=app, metrics=[Echoes()])
    assert [one.test_case.actual_output for one in result] == ["to be!", "or not!"]
    record = load_record(here / "run_data" / "runs" / result.run_id)
    assert {item.spans[0].name for item in record.test_item_records} == {app.__name__}


def test_a_trace_that_still_goes_on_is_told_too():
    with collect_traces() as traces:
        stream = plain("to be")
        assert next(stream) == "to be"
    (trace,) = traces
    assert [span.name for span in trace.spans] == ["plain", "chunk"]
    assert list(stream) == ["!"]


@pytest.mark.parametrize("collecting", [collect_traces, nullcontext])
def test_an_observed_async_generator_is_sent_to_and_thrown_into_as_before(collecting):
    seen = []

    @observe
    async def chat():
        try:
            seen.append((yield "Who are you?"))
            try:
                yield "Where do you live?"
            except ValueError as error:
                seen.append(str(error))
                yield "Never mind."
        finally:
            seen.append("closed")

    async def talk():
        answers = chat()
        said = [await answers.asend(None), await answers.asend("Ann")]
        said.append(await answers.athrow(ValueError("too private")))
        await answers.aclose()
        return said

    with collecting():
        assert asyncio.run(talk()) == ["Who are you?", "Where do you live?", "Never mind."]
    assert seen == ["Ann", "too private", "closed"]


def test_a_consumer_that_has_enough_is_no_error_of_a_stream():
    @observe
    async def several():
        yield 1
        yield 2

    @observe
    async def app():
        async for one in several():
            return one
        return None

    with collect_traces() as traces:
        assert asyncio.run(app()) == 1
    assert [(span.name, span.error) for span in traces[0].spans] == [("app", None), ("several", None)]
