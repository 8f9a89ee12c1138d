"""`observe` and what belongs to it: how an app says which of its calls are spans, and what judges them.

Observed functions record only while somebody collects: `assert_test`, `evaluate`, or `collect_traces`. In
production they just run. The functions around them are in `observed.py`; how spans are kept is in `spans.py`.
"""

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypedDict, TypeVar, Unpack, overload

from modelgauge.data.responses import ToolCall
from modelgauge.data.shown import shown, shown_parts
from modelgauge.data.spans import Trace
from modelgauge.data.test_cases import LLMTestCase
from modelgauge.errors import DefinitionError, InvalidDataError, InvalidOptionError
from modelgauge.observe.observed import Observation, observed
from modelgauge.observe.spans import collecting, current_span
from modelgauge.wording.articles import a_thing
from modelgauge.wording.did_you_mean import closest, did_you_mean

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
        function: what is decorated, where `@observe` stands without parentheses.
        type: llm, retriever, tool, agent, or a word of your own.
        metrics: judge the span's own test case: objects, or uids.
        name: of the span; the function's by default.
        metadata: anything else worth keeping (model="…", embedder="…").

    Raises:
        DefinitionError: what is decorated is no function, metrics is no list, or type or name no text.
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
    for given in metadata:
        for meant in closest(given, ("type", "metrics", "name"), cutoff=0.8):
            # As metadata, metrics would judge nothing, and nobody would know.
            raise DefinitionError(
                f"@observe got '{given}'.",
                fix=f"Write '{meant}', or give what you want to keep another name.",
            )

    def decorated(target: Callable[..., Any]) -> Callable[..., Any]:
        return observed(target, Observation(target, type, tuple(metrics or ()), name, metadata))

    return decorated if function is None else decorated(function)


# --- what the app says of its spans ---------------------------------------------------------------------


class CaseFields(TypedDict, total=False):
    """What an app can say of the test case of a span, or of the whole: fields of `LLMTestCase`."""

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
    """Say more of the span that this code is in; does nothing where nothing is recorded.

    Args:
        test_case: what the span's metrics judge.
        input: instead of the arguments.
        output: instead of what is returned.
        name: of the span.
        metadata: added to what is there.
        tags: for grouping.
        metrics: beside those of `@observe`.
        of_case: fields of the span's own test case, see `CaseFields`.

    Raises:
        InvalidOptionError: there is no such argument.
        InvalidDataError: a value is of the wrong kind.
    """
    _check_names(of_case, update_current_span)
    span = current_span()
    if span is None:
        return
    _check_told(test_case=test_case, metadata=metadata, tags=tags, metrics=metrics, name=name)
    span.case_fields.update(_case_fields(of_case))
    span.trace.updated = True
    span.test_case = test_case or span.test_case
    if input is not None:
        span.input = shown(input)
    if output is not None:
        span.output, span.output_is_told = shown(output), True
    span.name = shown(name) or span.name
    span.metadata = {**span.metadata, **shown_parts(metadata or {})}
    span.tags = tuple(map(shown, tags)) if tags is not None else span.tags
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
    """Say more of the whole use of the app that this code is part of; does nothing where nothing is recorded.

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
    _check_names(of_case, update_current_trace)
    span = current_span()
    if span is None:
        return
    texts = {"name": name, "thread_id": thread_id, "user_id": user_id}
    _check_told(test_case=test_case, metadata=metadata, tags=tags, **texts)
    trace = span.trace
    trace.case_fields.update(_case_fields(of_case))
    trace.updated = True
    trace.test_case = test_case or trace.test_case
    told = {**texts, "input": input, "output": output}
    trace.fields.update({key: shown(value) for key, value in told.items() if value is not None})
    if metadata is not None:
        trace.fields["metadata"] = {**trace.fields.get("metadata", {}), **shown_parts(metadata)}
    if tags is not None:
        trace.fields["tags"] = tuple(map(shown, tags))


def _check_names(of_case: Mapping[str, Any], update: Callable[..., None]) -> None:
    of_cases = CaseFields.__annotations__
    for name in of_case:
        if name not in of_cases:
            known = [*(one for one in inspect.signature(update).parameters if one != "of_case"), *of_cases]
            raise InvalidOptionError(
                f"There is no argument {name!r}.",
                fix=f"{did_you_mean(name, known)}The arguments are: {', '.join(known)}.",
            )


def _check_told(
    *, test_case: Any, metadata: Any, tags: Any, metrics: Any = None, **texts: str | None
) -> None:
    """Refuse what a record could not hold where it is said, and not once the app has answered."""
    if not isinstance(test_case, LLMTestCase | None):
        raise InvalidDataError(f"test_case is {a_thing(test_case)}.", fix="Give an LLMTestCase.")
    if not isinstance(metadata, Mapping | None):
        raise InvalidDataError(f"metadata is {a_thing(metadata)}.", fix="Give a dict.")
    if tags is not None and not (_is_list(tags) and all(isinstance(tag, str) for tag in tags)):
        raise InvalidDataError(f"tags is {tags!r}.", fix='Give a list of texts: tags=["beta"].')
    if metrics is not None and not _is_list(metrics):
        raise InvalidDataError(f"metrics is {metrics!r}.", fix="Give a list: metrics=[ExactMatchMetric()].")
    for name, value in texts.items():
        if not isinstance(value, str | None):
            raise InvalidDataError(f"{name} is {value!r}.", fix=f"Give a text: {name}=str(…).")


def _is_list(value: Any) -> bool:
    return isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping)


def _case_fields(told: Mapping[str, Any]) -> dict[str, Any]:
    """Those that were said, checked at once, so that the error is raised where the mistake is."""
    given = {name: value for name, value in told.items() if value is not None}
    if not given:
        return {}
    case = LLMTestCase(input="", **{name: _listed(value) for name, value in given.items()})
    return {name: getattr(case, name) for name in given}


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


# --- traces for their own sake --------------------------------------------------------------------------


def collect_traces() -> AbstractContextManager[list[Trace]]:
    """Record what the observed functions inside do, for looking at it; the list is filled when it ends.

    with collect_traces() as traces:
        app("a question")
    print(traces[0].spans)
    """
    return _Collected()


class _Collected:
    def __init__(self) -> None:
        self._traces: list[Trace] = []
        self._collecting = collecting()

    def __enter__(self) -> list[Trace]:
        self._sink = self._collecting.__enter__()
        return self._traces

    def __exit__(self, *raised: object) -> None:
        self._collecting.__exit__(*raised)
        going_on = [one for one in self._sink.begun if one.seconds is None]
        self._traces.extend(one.frozen() for one in [*self._sink.traces, *going_on])
