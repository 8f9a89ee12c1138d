"""Spans while they are recorded: the current span, what the app adds to each, and the frozen trace at the end.

Users call `observe/tracing.py`; this module is below the engine, so that a SUT can record its own calls.

Context managers around authors' code are classes: `@contextmanager` assigns to a passing exception, and exceptions
that refuse this (frozen dataclasses) would be replaced by another error.
"""

import functools
import inspect
import json
import warnings
from collections.abc import Callable, Mapping
from contextvars import ContextVar, Token, copy_context
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, ClassVar, TypeVar

from modelgauge.data.spans import Span, Trace
from modelgauge.data.test_cases import LLMTestCase
from modelgauge.observe.readable import error_text, shown, shown_parts

_MARK = "__modelgauge_observation__"

F = TypeVar("F")


@dataclass(frozen=True, eq=False)
class Observation:
    """Settings by which the calls of one function become spans.

    Args:
        function: the function.
        name: of the spans.
        type: of the spans.
        metrics: judge the spans: objects, or uids.
        metadata: of the spans.
    """

    exists: ClassVar[bool] = False
    """True if anything is observed in this process."""

    function: Callable[..., Any]
    name: str
    type: str | None
    metrics: tuple[Any, ...]
    metadata: dict[str, Any]

    def begin(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> "OpenSpan | None":
        """Open the span of a call; None outside of a recording."""
        recording, parent = _place.get()
        if not recording.is_open:
            if Recording.under_way and not copy_context():  # only a new thread has none of its own
                _warn_of_thread()
            return None
        if parent is None:
            trace = OpenTrace(recording)
            recording.begun.append(trace)
        else:
            trace = parent.trace
        fields = {"name": self.name, "type": self.type, "metadata": self.metadata}
        fields["input"] = shown_parts(self._arguments(args, kwargs))
        return OpenSpan(trace, parent, self, self.metrics, fields=fields)

    @functools.cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(self.function)

    def _arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by name, without a method's object; by position if they do not fit."""
        try:
            named = self._signature.bind(*args, **kwargs).arguments
        except (TypeError, ValueError):  # wrong arguments, which the call itself refuses; or no signature
            return {"args": list(args), **kwargs}
        first = next(iter(self._signature.parameters), None)
        return {name: value for name, value in named.items() if name != first or name not in ("self", "cls")}


def mark(function: F, observation: Observation) -> F:
    """Mark a function whose calls make spans, or an object that calls such a function."""
    setattr(function, _MARK, observation)
    Observation.exists = True
    return function


def get_observation(function: Any) -> Observation | None:
    """Return the observation of a function; None if its calls create no spans.

    Args:
        function: a function, a method, a partial, an object that is called, or a wrapper around one of these.
    """
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, _MARK, None) or getattr(type(function).__call__, _MARK, None)


# --- what is recorded -----------------------------------------------------------------------------------


@dataclass(eq=False)
class Updatable:
    """Values that an app adds to a span or a trace.

    Args:
        fields: of `Span` or `Trace`.
        case_fields: of the test case.
        test_case: the test case itself.
        is_updated: whether the app added anything.
    """

    fields: dict[str, Any] = field(default_factory=dict, kw_only=True)
    case_fields: dict[str, Any] = field(default_factory=dict, kw_only=True)
    test_case: LLMTestCase | None = field(default=None, kw_only=True)
    is_updated: bool = field(default=False, kw_only=True)


@dataclass(eq=False)
class OpenTrace(Updatable):
    """A trace that is being recorded; its spans are in the order in which they began, the outermost first."""

    recording: "Recording"
    spans: list["OpenSpan"] = field(default_factory=list)
    started: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def root(self) -> "OpenSpan":
        """The outermost span."""
        return self.spans[0]

    def all_case_fields(self) -> dict[str, Any]:
        """Return the fields that the app set for the test case of the whole."""
        return {**self.root.case_fields, **self.case_fields}

    def given_case(self) -> LLMTestCase | None:
        """Return the test case of the whole, if the app provided one."""
        return self.test_case or self.root.test_case

    def frozen(self) -> Trace:
        """Return the finished trace, frozen."""
        spans, root = list(self.spans), self.root
        ids = {span: place for place, span in enumerate(spans)}
        return Trace(
            **{"name": root.fields["name"], **self.fields},
            started=self.started.isoformat(timespec="microseconds"),
            seconds=root.seconds if root.seconds is not None else perf_counter() - root.begun,
            spans=tuple([span.frozen(ids, root.begun) for span in spans]),
        )


@dataclass(eq=False)
class OpenSpan(Updatable):
    """A span that is being recorded.

    Args:
        trace: that it is part of.
        parent: the span that it was called in.
        of: the function whose call it is; None for the use of an app.
        metrics: judge it.
        parts: what a generator has produced so far.
        error: what ended it.
        seconds: what it took; None while it goes on.
        begun: when, by the clock that durations are measured with.
    """

    trace: OpenTrace
    parent: "OpenSpan | None"
    of: Observation | None
    metrics: tuple[Any, ...] = ()
    parts: list[Any] | None = None
    error: str | None = None
    seconds: float | None = None
    begun: float = field(default_factory=perf_counter)

    def __post_init__(self) -> None:
        self.trace.spans.append(self)

    def set_output(self, value: Any) -> None:
        """Keep what the function returned, unless the app has set the output."""
        self.fields.setdefault("output", shown(value))

    def end(self, error: BaseException | None = None) -> None:
        """Stop the clock, once; the output of a generator is all that it produced, with texts joined."""
        if self.seconds is not None:
            return
        if self.parts is not None:
            texts = bool(self.parts) and all(isinstance(part, str) for part in self.parts)
            self.set_output("".join(self.parts) if texts else self.parts)
        if error is not None:
            self.error = error_text(error)
        self.seconds = perf_counter() - self.begun

    def case(self) -> LLMTestCase:
        """Return the span's own test case: the one provided by the app, or its input and output as texts."""
        if self.test_case is not None:
            return self.test_case
        question = self.fields["input"]
        if isinstance(question, dict) and len(question) == 1:
            (question,) = question.values()
        values = {"input": as_text(question) or "", "actual_output": as_text(self.fields.get("output"))}
        return LLMTestCase(**{**values, **self.case_fields})

    def frozen(self, ids: Mapping["OpenSpan", int], start: float) -> Span:
        has_case = self.metrics or self.case_fields or self.test_case is not None
        return Span(
            **self.fields,
            id=ids[self],
            parent=None if self.parent is None else ids[self.parent],
            start=self.begun - start,
            seconds=self.seconds,
            error=self.error,
            test_case=self.case() if has_case else None,
            metrics=tuple([get_name(metric) for metric in self.metrics]),
        )


class Recording:
    """Record what is observed by the code inside: `with Recording() as traces:`.

    Attributes:
        begun: a trace for each outermost call; their list, frozen, is filled when the code has ended.
        root: the span that all calls are part of; None if each outermost call begins a trace.
        is_open: whether the code inside still runs; what it has left running in other threads records no more.
    """

    under_way: ClassVar[set["Recording"]] = set()

    def __init__(self) -> None:
        self.begun: list[OpenTrace] = []
        self.root: OpenSpan | None = None
        self.is_open = False
        self._traces: list[Trace] = []

    def __enter__(self) -> list[Trace]:
        self.is_open = True
        Recording.under_way.add(self)
        self._outside = _place.set((self, self.root))
        return self._traces

    def __exit__(self, *_: object) -> None:
        _place.reset(self._outside)
        Recording.under_way.discard(self)
        self.is_open = False
        self._traces.extend([trace.frozen() for trace in self.begun])


class Use(Recording):
    """Record one use of an app: one trace, with all that is observed meanwhile.

    Args:
        name: of the span for the use itself.
        inputs: of this span.
        app: how the app's own calls become spans; None if it is not observed.
    """

    def __init__(self, name: str, inputs: dict[str, Any], app: Observation | None) -> None:
        super().__init__()
        fields = {"name": name, "input": shown(inputs)}
        metrics = () if app is None else app.metrics
        self._app = app
        self._use = self.root = OpenSpan(OpenTrace(self), None, None, metrics, fields=fields)

    def ended(self, value: Any, error: BaseException | None = None) -> OpenTrace:
        """Return the trace, with a span for the use itself at the top, unless the use was a single call of the app.

        Args:
            value: what came back.
            error: what was raised instead.
        """
        use = self._use
        calls = [span for span in use.trace.spans if span.parent is use]
        of_app = [call for call in calls if call.of is self._app]
        was_caught = error is None and any(call.error is not None for call in of_app)
        if len(calls) == len(of_app) == 1 and not (was_caught or use.is_updated):
            self._replace_by(calls[0])
        else:
            self._judge_instead(of_app)
            use.set_output(value)
            use.end(error)
        return use.trace

    def _replace_by(self, call: OpenSpan) -> None:
        """Let the app's only call be the outermost span."""
        # use              my_app
        # └ my_app    ─▶   └ search
        #   └ search
        self._use.trace.spans.remove(self._use)
        call.parent = None

    def _judge_instead(self, calls: list[OpenSpan]) -> None:
        """Let the metrics of the app's calls judge the use, once, by what the calls that did not fail set."""
        # The use was `with_retry(question)`; the first call failed, the second set retrieval_context:
        #
        # use                                            use, relevancy, retrieval_context
        # ├ my_app, relevancy                       ─▶   ├ my_app
        # └ my_app, relevancy, retrieval_context         └ my_app, retrieval_context
        use = self._use
        for call in calls:
            use.metrics, call.metrics = call.metrics, ()
            if call.error is None:
                use.case_fields |= call.case_fields
                use.test_case = call.test_case or use.test_case


_place: ContextVar[tuple[Recording, OpenSpan | None]] = ContextVar(
    "modelgauge_span", default=(Recording(), None)
)


def current_span() -> OpenSpan | None:
    """Return the current span; None outside a recording."""
    recording, span = _place.get()
    return span if recording.is_open else None


class inside:  # noqa: N801  stands where contextlib's own stand, after `with`
    """Make a span the current span; what is raised inside ends it.

    Args:
        span: None outside of a recording.
        unless: exceptions that are no errors of the span.
    """

    def __init__(self, span: OpenSpan | None, *unless: type[BaseException]) -> None:
        self._span, self._unless = span, unless

    def __enter__(self) -> None:
        if self._span is not None:
            place = (self._span.trace.recording, self._span)
            self._outside: Token[tuple[Recording, OpenSpan | None]] = _place.set(place)

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if self._span is not None:
            _place.reset(self._outside)
            if error is not None and not isinstance(error, self._unless):
                self._span.end(error)


@functools.cache  # once a process
def _warn_of_thread() -> None:
    warnings.warn(
        "An observed function was called in a thread that does not know which trace it belongs to, so there is no span "
        "of it. Start the thread with modelgauge.evals.in_this_trace: Thread(target=in_this_trace(function)), or "
        "executor.submit(in_this_trace(function), …).",
        stacklevel=4,
    )


def as_text(value: Any) -> str | None:
    """Convert a JSON value for a field of a test case: text and None as they are, anything else as JSON text."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def get_name(metric: Any) -> str:
    """Return the name of a metric in reports: its own, or its uid."""
    return metric if isinstance(metric, str) else str(getattr(metric, "name", type(metric).__name__))
