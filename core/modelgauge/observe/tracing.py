"""`observe` and its companions: an app marks which of its calls are spans, and names the metrics that judge them.

Observed functions record only within `assert_test`, `evaluate` or `collect_traces`. In production they just run. How
spans are kept is in `spans.py`.
"""

import asyncio
import functools
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import copy_context
from typing import Any, TypedDict, TypeVar, Unpack, cast, overload

from modelgauge.data.responses import ToolCall
from modelgauge.data.spans import Trace
from modelgauge.data.test_cases import LLMTestCase
from modelgauge.errors import DefinitionError, InvalidDataError, InvalidOptionError
from modelgauge.observe.readable import shown, shown_parts
from modelgauge.observe.spans import Observation, OpenSpan, Recording, Updatable, current_span, inside, mark
from modelgauge.wording.did_you_mean import closest, known_names
from modelgauge.wording.phrases import a_thing

F = TypeVar("F", bound=Callable[..., Any])


@overload
def observe(function: F) -> F: ...
@overload
def observe(
    *, type: str | None = None, metrics: Sequence[Any] = (), name: str | None = None, **metadata: Any
) -> Callable[[F], F]: ...
def observe(
    function: Callable[..., Any] | None = None,
    *,
    type: str | None = None,  # noqa: A002  the name that users know
    metrics: Sequence[Any] | None = None,
    name: str | None = None,
    **metadata: Any,
) -> Any:
    """Make each call of a function a span: a plain or async function, or a generator of either kind.

    Args:
        function: the decorated function, if `@observe` has no parentheses.
        type: llm, retriever, tool, agent, or a word of your own.
        metrics: judge the span's own test case: objects, or uids.
        name: of the span; the function's by default.
        metadata: anything else worth keeping (model="…", embedder="…").

    Raises:
        DefinitionError: what is decorated is not a function, metrics is not a list, or type or name no text.
    """
    if metrics is not None and not _is_list(metrics):
        raise DefinitionError(
            f"@observe got metrics={metrics!r}.",
            fix="Give a list: @observe(metrics=[AnswerRelevancyMetric()]).",
        )
    if isinstance(function, str):
        raise DefinitionError(
            f"@observe got {function!r} instead of a function.",
            fix=f"Name the argument: @observe(type={function!r}).",
        )
    for argument, value in (("type", type), ("name", name)):
        if not isinstance(value, str | None):
            raise DefinitionError(f"@observe got {argument}={value!r}.", fix='Give a text: type="llm", say.')
    for key in metadata:
        for meant in closest(key, ("type", "metrics", "name"), cutoff=0.8):
            # As metadata, misspelt metrics would silently judge nothing.
            raise DefinitionError(
                f"@observe got '{key}'.",
                fix=f"Write '{meant}'. If it is meant as metadata, choose a different name.",
            )

    def decorated(target: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(target, staticmethod | classmethod) or not callable(target) or inspect.isclass(target):
            raise DefinitionError(
                f"@observe got {a_thing(target)}, not a function.",
                fix="Write @observe directly above def, below @staticmethod, @classmethod and @property.",
            )
        called = shown(name) or str(getattr(target, "__name__", target.__class__.__name__))
        kind, kept = shown(type), shown_parts(metadata)
        return _observed(Observation(target, called, kind, tuple(metrics or ()), kept))

    return decorated if function is None else decorated(function)


def in_this_trace(function: F) -> F:
    """Wrap a function so that its calls in another thread belong to the current span.

    Tasks of asyncio and `asyncio.to_thread` know their span by themselves. Threads that an app starts do not, and
    what is observed in them is lost: `threading.Thread(target=in_this_trace(work))`,
    `executor.submit(in_this_trace(work), question)`, `executor.map(in_this_trace(work), questions)`.

    Args:
        function: what the thread calls; it sees all context variables as they are now.
    """
    context = copy_context()

    @functools.wraps(function)
    def carried(*args: Any, **kwargs: Any) -> Any:
        return context.copy().run(function, *args, **kwargs)  # a copy: several threads may be inside at once

    return cast("F", carried)


# --- the functions around observed ones -----------------------------------------------------------------


def _observed(observation: Observation) -> Callable[..., Any]:
    """Wrap a function so that its calls are spans.

    Args:
        observation: of the function; a plain or async one, or a generator of either kind.
    """
    target, begin = observation.function, observation.begin

    def plain(*args: Any, **kwargs: Any) -> Any:
        span = begin(args, kwargs)
        with inside(span):
            value = target(*args, **kwargs)
        return _answer(span, value)

    async def coroutine(*args: Any, **kwargs: Any) -> Any:
        return await _await_in_span(begin(args, kwargs), target(*args, **kwargs))

    def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        return (yield from _steps(begin(args, kwargs), target(*args, **kwargs)))

    wrapper: Callable[..., Any] = plain
    if inspect.isasyncgenfunction(target):
        wrapper = _async_generator(target, begin)
    elif inspect.isgeneratorfunction(target):
        wrapper = generator
    elif inspect.iscoroutinefunction(target):
        wrapper = coroutine
    return mark(functools.wraps(target)(wrapper), observation)


async def _await_in_span(span: OpenSpan | None, work: Awaitable[Any]) -> Any:
    with inside(span):
        value = await work
    return _answer(span, value)


def _answer(span: OpenSpan | None, value: Any) -> Any:
    """Return the value of a call; if it still runs (a coroutine of an inner function, say), the span ends with it."""
    if span is None:
        return value
    if inspect.iscoroutine(value):
        return _await_in_span(span, value)
    if inspect.isgenerator(value):
        return _steps(span, value)
    if inspect.isasyncgen(value):
        return _async_generator(lambda: value, lambda *_: span)()
    span.set_output(value)
    span.end()
    return value


def _steps(span: OpenSpan | None, inner: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Run a generator inside its span, and its consumer outside."""
    if span is None:
        return (yield from inner)
    parts = span.parts = []
    step: Callable[[], Any] = functools.partial(next, inner)
    try:
        while True:
            try:
                with inside(span, StopIteration):
                    value = step()
            except StopIteration as end:
                return end.value
            parts.append(shown(value))
            try:
                sent = yield value
            except GeneratorExit:
                with inside(span):
                    inner.close()
                raise
            except BaseException as error:  # noqa: BLE001  thrown in by the consumer, for the body to handle
                step = functools.partial(inner.throw, error)
            else:
                step = functools.partial(inner.send, sent)
    finally:
        span.end()


def _async_generator(
    target: Callable[..., AsyncGenerator[Any, Any]], begin: Callable[..., OpenSpan | None]
) -> Callable[..., AsyncGenerator[Any, Any]]:
    """Run an async generator inside its span; also without a span, since async code has no `yield from`."""

    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        span, inner = begin(args, kwargs), target(*args, **kwargs)
        parts: list[Any] = []
        step: Callable[[], Awaitable[Any]] = functools.partial(anext, inner)
        if span is not None:
            span.parts = parts
        try:
            while True:
                try:
                    with inside(span, StopAsyncIteration):
                        value = await step()
                except StopAsyncIteration:
                    return
                if span is not None:
                    parts.append(shown(value))
                try:
                    sent = yield value
                except GeneratorExit:
                    with inside(span):
                        await inner.aclose()
                    raise
                except BaseException as error:  # noqa: BLE001  thrown in by the consumer, for the body to handle
                    if isinstance(error, asyncio.CancelledError) and span is not None:
                        span.end()  # its consumer is gone, and the loop ends
                    step = functools.partial(inner.athrow, error)
                else:
                    step = functools.partial(inner.asend, sent)
        finally:
            if span is not None:
                span.end()

    return wrapper


# --- what the app says of its spans ---------------------------------------------------------------------


class CaseFields(TypedDict, total=False):
    """The fields of `LLMTestCase` that an app can set for a span, or for the whole."""

    expected_output: str | None
    context: Sequence[str] | None
    retrieval_context: Sequence[str] | None
    tools_called: Sequence[ToolCall] | None
    expected_tools: Sequence[ToolCall] | None
    token_cost: float | None
    completion_time: float | None


def update_current_span(
    *,
    test_case: LLMTestCase | None = None,
    input: Any = None,  # noqa: A002  the name that users know
    output: Any = None,
    name: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    tags: Sequence[str] | None = None,
    metrics: Sequence[Any] | None = None,
    **of_case: Unpack[CaseFields],
) -> None:
    """Add to the current span; does nothing outside of a recording.

    Args:
        test_case: what the span's metrics judge; it is the span's input and output too.
        input: instead of the arguments.
        output: instead of what is returned.
        name: of the span.
        metadata: added to what is there.
        tags: for grouping.
        metrics: in addition to those of `@observe`.
        of_case: fields of the span's own test case, see `CaseFields`.

    Raises:
        InvalidOptionError: there is no such argument.
        InvalidDataError: a value is of the wrong kind.
    """
    span = _current(of_case, update_current_span)
    if span is None:
        return
    if metrics is not None and not _is_list(metrics):
        raise InvalidDataError(f"metrics is {metrics!r}.", fix="Give a list: metrics=[ExactMatchMetric()].")
    ends = {"input": input, "output": output}
    _add(span, of_case, ends, test_case=test_case, metadata=metadata, tags=tags, texts={"name": name})
    if test_case is not None:
        of_test_case = {"input": test_case.input, "output": test_case.actual_output}
        span.fields |= {
            key: value for key, value in of_test_case.items() if value is not None and ends[key] is None
        }
    span.metrics = (*span.metrics, *(metrics or ()))


def update_current_trace(
    *,
    test_case: LLMTestCase | None = None,
    input: Any = None,  # noqa: A002  the name that users know
    output: Any = None,
    name: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    tags: Sequence[str] | None = None,
    thread_id: str | None = None,
    user_id: str | None = None,
    **of_case: Unpack[CaseFields],
) -> None:
    """Add to the trace of the current use of the app; does nothing outside of a recording.

    Args:
        test_case: what the app as a whole is judged by.
        input: what was asked.
        output: what the whole answered.
        name: of the trace.
        metadata: added to what is there.
        tags: for grouping.
        thread_id: the conversation that it belongs to.
        user_id: who asked.
        of_case: fields of the test case of the whole, see `CaseFields`.

    Raises:
        InvalidOptionError: there is no such argument.
        InvalidDataError: a value is of the wrong kind.
    """
    span = _current(of_case, update_current_trace)
    if span is not None:
        ends = {"input": input, "output": output}
        texts = {"name": name, "thread_id": thread_id, "user_id": user_id}
        _add(span.trace, of_case, ends, test_case=test_case, metadata=metadata, tags=tags, texts=texts)


def _current(of_case: Mapping[str, Any], update: Callable[..., None]) -> OpenSpan | None:
    """Return the current span. Names are checked outside a recording too."""
    of_cases = CaseFields.__annotations__
    for name in of_case:
        if name not in of_cases:
            *own, _ = inspect.signature(update).parameters  # without `**of_case`
            fix = known_names(name, [*own, *of_cases], "The arguments are")
            raise InvalidOptionError(f"There is no argument {name!r}.", fix=fix)
    return current_span()


def _add(
    about: Updatable,
    of_case: Mapping[str, Any],
    ends: Mapping[str, Any],
    *,
    test_case: Any,
    metadata: Any,
    tags: Any,
    texts: Mapping[str, Any],
) -> None:
    """Add an update of the app; refuse at once a value that a record could not hold."""
    if not isinstance(test_case, LLMTestCase | None):
        raise InvalidDataError(f"test_case is {a_thing(test_case)}.", fix="Give an LLMTestCase.")
    if not isinstance(metadata, Mapping | None):
        raise InvalidDataError(f"metadata is {a_thing(metadata)}.", fix="Give a dict.")
    if tags is not None and not (_is_list(tags) and all(isinstance(tag, str) for tag in tags)):
        raise InvalidDataError(f"tags is {tags!r}.", fix='Give a list of texts: tags=["beta"].')
    for name, value in texts.items():
        if not isinstance(value, str | None):
            raise InvalidDataError(f"{name} is {value!r}.", fix=f"Give a text: {name}=str(…).")
    case_fields: dict[str, Any] = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in of_case.items()
        if value is not None
    }
    case = LLMTestCase(input="", **case_fields)
    about.case_fields |= {name: getattr(case, name) for name in case_fields}
    about.test_case = test_case or about.test_case
    about.fields |= {key: shown(value) for key, value in {**texts, **ends}.items() if value is not None}
    if metadata is not None:
        about.fields["metadata"] = {**about.fields.get("metadata", {}), **shown_parts(metadata)}
    if tags is not None:
        about.fields["tags"] = tuple(map(shown, tags))
    about.is_updated = True


def _is_list(value: Any) -> bool:
    return isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping)


# --- traces for their own sake --------------------------------------------------------------------------


def collect_traces() -> AbstractContextManager[list[Trace]]:
    """Record the traces of observed functions in a block; the list is filled when the block ends.

    Example:
        with collect_traces() as traces:
            app("a question")
        print(traces[0].spans)
    """
    return Recording()
