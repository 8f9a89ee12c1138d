"""Spans while they are open: who is inside whom, what they collect, and the frozen trace that is left.

What users call is in `observe/tracing.py`; it is here, below the engine, so that a SUT can record what it calls.

What an author's exceptions pass through is a class, not a generator with `@contextmanager`: that one assigns to the
exception, and some refuse it (frozen dataclasses), so that another error would be seen wherever something is observed.
"""

import functools
import inspect
import itertools
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, TypeVar

from modelgauge.data.shown import said_by, shown, shown_parts
from modelgauge.data.spans import Span, Trace
from modelgauge.data.test_cases import LLMTestCase
from modelgauge.observe.thread_context import Inheritance

_MARK = "__modelgauge_observed__"
_METRICS = "__modelgauge_metrics__"
_observed = threading.Event()  # set once anything is

F = TypeVar("F")


def marked(function: F, observation: object, metrics: Sequence[Any] = ()) -> F:
    """Mark a function whose calls make spans, or an object that calls such a one.

    Args:
        function: the function or object.
        observation: stands in the spans too: a wrapper has the mark of what it wraps, and may call it often or never.
        metrics: judge the spans.
    """
    setattr(function, _MARK, observation)
    setattr(function, _METRICS, tuple(metrics))
    _observed.set()
    return function


def is_observed(function: Any) -> bool:
    """Whether calls of this make spans: a function, a method, a partial, or an object that is called."""
    return observation_of(function) is not None


def observation_of(function: Any) -> object | None:
    """What the spans of an observed function say that they are of; None where it is not observed."""
    return next((getattr(one, _MARK) for one in _called(function) if hasattr(one, _MARK)), None)


def metrics_of_observed(function: Any) -> tuple[Any, ...]:
    """The metrics that an observed function was declared with: objects, or uids."""
    return next((getattr(one, _METRICS) for one in _called(function) if hasattr(one, _METRICS)), ())


def _called(function: Any) -> tuple[Any, Any]:
    """A function, method or object without what a partial lays around it, and what is called where it is an object."""
    while isinstance(function, functools.partial):
        function = function.func
    return function, type(function).__call__


def is_anything_observed() -> bool:
    """Whether there can be any spans in this process."""
    return _observed.is_set()


# --- what is open ---------------------------------------------------------------------------------------


@dataclass(eq=False)
class OpenTrace:
    """A trace that is being recorded.

    Args:
        sink: where it goes when it ends.
        fields: what `update_current_trace` said: fields of `Trace`.
        case_fields: likewise, fields of the test case that the whole is judged by.
        test_case: likewise, the test case itself.
        updated: whether the app said anything of it or of its spans.
        spans: in the order in which they began, the outermost first.
        started: the time of day.
        begun: the same moment by the clock that durations are measured with.
        seconds: what it took; None while it goes on.
        ids: the numbers of its spans to come.
    """

    sink: "Sink"
    fields: dict[str, Any] = field(default_factory=dict)
    case_fields: dict[str, Any] = field(default_factory=dict)
    test_case: LLMTestCase | None = None
    updated: bool = False
    spans: list["OpenSpan"] = field(default_factory=list)
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    begun: float = field(default_factory=perf_counter)
    seconds: float | None = None
    ids: Iterator[int] = field(default_factory=itertools.count)

    @property
    def root(self) -> "OpenSpan":
        """The outermost span."""
        return self.spans[0]

    def said(self) -> dict[str, Any]:
        """What the app said of the test case of the whole: fields of it."""
        return {**self.root.case_fields, **self.case_fields}

    def given_case(self) -> LLMTestCase | None:
        """The test case of the whole, where the app gave it."""
        return self.test_case or self.root.test_case

    def frozen(self) -> Trace:
        """What is left of it."""
        told = {"name": self.root.name, **self.fields}
        return Trace(
            **told,
            started=self.started.isoformat(timespec="microseconds"),
            seconds=self.seconds if self.seconds is not None else perf_counter() - self.begun,
            spans=tuple(span.frozen() for span in sorted(self.spans, key=lambda one: one.id)),
        )


@dataclass(eq=False)
class OpenSpan:
    """A span that is being recorded; `metrics` are objects or uids, and `of` is whose call it is (see `marked`)."""

    trace: OpenTrace
    parent: "OpenSpan | None"
    name: str
    type: str | None
    input: Any
    metrics: Sequence[Any] = ()
    of: object = None
    metadata: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    output: Any = None
    output_is_told: bool = False
    error: str | None = None
    case_fields: dict[str, Any] = field(default_factory=dict)
    test_case: LLMTestCase | None = None
    seconds: float | None = None
    begun: float = field(default_factory=perf_counter)
    id: int = field(init=False)

    def __post_init__(self) -> None:
        self.id = next(self.trace.ids)
        self.trace.spans.append(self)

    def returned(self, value: Any) -> None:
        """Note what the function returned, unless the author has said what the output is."""
        if not self.output_is_told:
            self.output = shown(value)

    def end(self, error: BaseException | None) -> None:
        """Stop the clock; a trace ends with its outermost span."""
        if error is not None:
            self.error = said_by(error)
        self.seconds = perf_counter() - self.begun
        if self.parent is None:
            self.trace.seconds = perf_counter() - self.trace.begun
            self.trace.sink.traces.append(self.trace)

    def adopt(self, traces: Sequence[OpenTrace]) -> None:
        """Take in the spans of other traces, as calls that were made in this one."""
        for span in [span for trace in traces for span in trace.spans]:
            span.parent = self if span.parent is None else span.parent
            span.trace, span.id = self.trace, next(self.trace.ids)
            self.trace.spans.append(span)

    def case(self) -> LLMTestCase:
        """The span's own test case: what the author gave, else its input and output as texts."""
        if self.test_case is not None:
            return self.test_case
        told = {"input": as_text(only_value(self.input)) or "", "actual_output": as_text(self.output)}
        return LLMTestCase(**{**told, **self.case_fields})

    def frozen(self) -> Span:
        return Span(
            id=self.id,
            parent=None if self.parent is None else self.parent.id,
            name=self.name,
            type=self.type,
            start=self.begun - self.trace.begun,
            seconds=self.seconds,
            input=self.input,
            output=self.output,
            error=self.error,
            metadata=self.metadata,
            tags=self.tags,
            test_case=self.case() if self.metrics or self.test_case is not None else None,
            metrics=tuple(name_of(metric) for metric in self.metrics),
        )


@dataclass(eq=False)
class Sink:
    """Takes the traces of the code that runs while it is open.

    Args:
        traces: those that have ended.
        begun: all, in the order in which they began.
        closed: whether no more begin.
    """

    traces: list[OpenTrace] = field(default_factory=list)
    begun: list[OpenTrace] = field(default_factory=list)
    closed: bool = False


_sink: ContextVar[Sink | None] = ContextVar("modelgauge_traces", default=None)
_current: ContextVar[OpenSpan | None] = ContextVar("modelgauge_span", default=None)


def current_span() -> OpenSpan | None:
    """The span that this code is in. One whose trace has ended is none: a pool's thread may outlive it."""
    span = _current.get()
    return None if span is None or span.trace.seconds is not None else span


def _is_collected() -> bool:
    """Whether a call of an observed function here would be a span."""
    sink = _sink.get()
    return (sink is not None and not sink.closed) or current_span() is not None


_inheritance = Inheritance(_is_collected)


class collecting:  # noqa: N801  stands where contextlib's own stand, after `with`
    """Record the traces of the code inside; elsewhere observed functions record nothing.

    Args:
        sink: where they go; one that was used before goes on.
    """

    def __init__(self, sink: Sink | None = None) -> None:
        self._into = sink if sink is not None else Sink()

    def __enter__(self) -> Sink:
        self._into.closed = False
        self._sink: Token[Sink | None] = _sink.set(self._into)
        self._outside: Token[OpenSpan | None] = _current.set(None)
        _inheritance.enter()
        return self._into

    def __exit__(self, *_: object) -> None:
        _inheritance.leave()
        self._into.closed = True
        _current.reset(self._outside)
        _sink.reset(self._sink)


def begin(
    name: str, kind: str | None, inputs: Callable[[], Mapping[str, Any]], **told: Any
) -> OpenSpan | None:
    """Open a span inside the current one, or a trace; None where nobody collects.

    Args:
        name: of the span.
        kind: its type.
        inputs: gives the input; not called where nobody collects.
        told: metrics, metadata, whose call it is.
    """
    parent, sink = current_span(), _sink.get()
    if parent is not None:
        trace = parent.trace
    elif sink is not None and not sink.closed:
        trace = OpenTrace(sink)
        sink.begun.append(trace)
    else:
        return None
    return OpenSpan(trace, parent, name, kind, shown_parts(inputs()), **told)


def begin_use(name: str, inputs: Any, observation: object, metrics: Sequence[Any] = ()) -> OpenSpan:
    """Open a span for the use of an observed function, in case that nothing else stands for it; see `trace_of_use`."""
    return OpenSpan(OpenTrace(Sink()), None, name, None, shown(inputs), metrics=metrics, of=observation)


def trace_of_use(sink: Sink, use: OpenSpan, value: Any, error: BaseException | None) -> OpenTrace:
    """What an observed function did in one use, where a wrapper around it may call it again, or not at all.

    It is the trace of its last call that raised nothing; where the use failed, of its last call. Where the wrapper
    answered by itself, it is that of the use, with all that was observed meanwhile.

    Args:
        sink: was open meanwhile.
        use: begun before.
        value: what came back.
        error: what was raised instead.
    """
    calls = [one for one in sink.begun if one.root.of is use.of]
    if error is not None and calls:
        return calls[-1]
    answers = [one for one in calls if one.root.error is None]
    if answers:  # what still goes on has not answered, unless nothing else has
        return max(reversed(answers), key=lambda one: one.seconds is not None)
    use.adopt(sink.begun)
    use.returned(value)
    use.end(error)
    return use.trace


class inside:  # noqa: N801  likewise
    """Make a span the current one."""

    def __init__(self, span: OpenSpan) -> None:
        self._span = span

    def __enter__(self) -> None:
        self._outside: Token[OpenSpan | None] = _current.set(self._span)

    def __exit__(self, *_: object) -> None:
        _current.reset(self._outside)


class ending:  # noqa: N801  likewise
    """End a span however its code ends; a generator's output is what it produced, texts joined to one.

    Attributes:
        left_by: what a consumer who has enough left the code by, beside GeneratorExit: no error of the span's.
    """

    def __init__(self, span: OpenSpan, produced: list[Any] | None = None) -> None:
        self._span, self._produced = span, produced
        self.left_by: BaseException | None = None

    def __enter__(self) -> None:
        """Nothing changes until the end."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        produced = self._produced
        if produced is not None:
            texts = all(isinstance(one, str) for one in produced)
            self._span.returned("".join(produced) if texts and produced else produced)
        has_enough = isinstance(error, GeneratorExit) or error is self.left_by
        self._span.end(None if has_enough else error)


def arguments(
    signature: inspect.Signature | None, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of a call by name, without the object of a method; in order where they do not fit."""
    if signature is not None:
        try:
            named = dict(signature.bind(*args, **kwargs).arguments)
        except TypeError:  # the call itself is about to raise it
            return {"args": list(args), **kwargs}
        first = next(iter(signature.parameters), None)
        return {name: value for name, value in named.items() if name != first or name not in ("self", "cls")}
    return {"args": list(args), **kwargs}


def only_value(inputs: Any) -> Any:
    """The one argument of a call, where there is only one."""
    return next(iter(inputs.values())) if isinstance(inputs, dict) and len(inputs) == 1 else inputs


def as_text(value: Any) -> str | None:
    """A JSON value as a test case holds it: text as it is, None as None, anything else as JSON."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def name_of(metric: Any) -> str:
    """What reports call a metric: its name, or the uid that stands for it."""
    return metric if isinstance(metric, str) else str(getattr(metric, "name", type(metric).__name__))
