"""One use of an app whose functions are observed: its trace is recorded while a SUT answers.

What the app told goes into the completion, and is cached beside the native response, so that a cached answer brings
its spans back. Where an attempt fails, its trace stays with the error, and stands in the exception record of the item.
"""

from contextlib import ExitStack
from json import JSONDecoder
from typing import Any

from modelgauge.data.base import Frozen
from modelgauge.data.responses import JsonObject, SUTResponse, ToolCall
from modelgauge.data.spans import TRACE, Trace
from modelgauge.data.test_cases import IN_METADATA, RUNTIME_FIELDS
from modelgauge.observe.spans import (
    OpenSpan,
    OpenTrace,
    Sink,
    as_text,
    begin_use,
    collecting,
    inside,
    trace_of_use,
)

_ON_ERRORS = "__modelgauge_trace__"
_BEGINS, _GOES_ON = '{"modelgauge_told":', ',"response":'
_decoder = JSONDecoder()


class Told(Frozen):
    """What an app told of an answer while it gave it.

    Args:
        trace: what it did.
        text: the answer, where the app said what it is.
        tool_calls: likewise.
        metadata: likewise, what else a completion holds.
    """

    trace: Trace
    text: str | None = None
    tool_calls: tuple[ToolCall, ...] | None = None
    metadata: JsonObject

    def added_to(self, response: SUTResponse) -> SUTResponse:
        """A response whose first completion holds it."""
        first, *others = response.completions
        changed: dict[str, Any] = {"text": self.text, "tool_calls": self.tool_calls}
        metadata = {**first.metadata, **self.metadata, TRACE: self.trace.model_dump(mode="json")}
        given = {name: value for name, value in changed.items() if value is not None}
        return response.replaced(completions=(first.replaced(**given, metadata=metadata), *others))


class Use:
    """One attempt to get an answer of a SUT.

    Args:
        uid: what the outermost span is called.
        request: the native request, which is its input.
        observation: of the app's own function, whose call is the outermost span; None where it is not observed.
    """

    def __init__(self, uid: str, request: Any, observation: object | None) -> None:
        self._sink = Sink()
        self._uid, self._request = uid, request
        self._observation = observation
        self._use: OpenSpan | None = None

    def going_on(self) -> ExitStack:
        """Record what the code inside calls: `with use.going_on():`."""
        self._use = begin_use(self._uid, {"request": self._request}, self._observation)
        with ExitStack() as stack:
            stack.enter_context(collecting(self._sink))
            if self._observation is None:
                stack.enter_context(inside(self._use))
            return stack.pop_all()

    def answered(self, response: Any) -> Told | None:
        """What the app told; None where nothing was observed.

        Args:
            response: the native one.
        """
        trace = self._ended(response, None)
        return None if trace is None else _told(trace, is_text=isinstance(response, str))

    def failed(self, error: Exception) -> Trace | None:
        """What the app did until it failed, also where it still does it; None where nothing was observed."""
        trace = self._ended(None, error)
        return None if trace is None else trace.frozen()

    def _ended(self, response: Any, error: Exception | None) -> OpenTrace | None:
        if self._use is None:
            return None
        trace = trace_of_use(self._sink, self._use, response, error)
        is_empty = trace is self._use.trace and len(trace.spans) == 1 and not trace.updated
        return None if is_empty else trace


def _told(trace: OpenTrace, *, is_text: bool) -> Told:
    case = trace.given_case()
    said = trace.said() if case is None else {name: getattr(case, name) for name in RUNTIME_FIELDS}
    output = trace.fields.get("output") if is_text else None  # else the SUT has more to say than a text
    tools = said.get("tools_called")
    return Told(
        trace=trace.frozen(),
        text=as_text(output) if case is None else case.actual_output,
        tool_calls=None if tools is None else tuple(tools),
        metadata={name: said[name] for name in IN_METADATA if said.get(name) is not None},
    )


# --- traces of what failed ---------------------------------------------------------------------------------------


def unblamed(error: Exception) -> None:
    """Take off an error what the app did when it was raised before: some apps raise one object again and again."""
    error.__dict__.pop(_ON_ERRORS, None)


def blamed(error: BaseException, what: Told | Trace | None) -> None:
    """Keep with an error what the app did until it was raised."""
    if what is not None:  # not by setattr, which some classes of exceptions refuse
        error.__dict__[_ON_ERRORS] = what.trace if isinstance(what, Told) else what


def traces_of(error: BaseException) -> tuple[Trace, ...]:
    """What the app did until it raised this, if it was observed."""
    trace = error.__dict__.get(_ON_ERRORS)
    return (trace,) if isinstance(trace, Trace) else ()


# --- the form in the cache ---------------------------------------------------------------------------------------


def sealed(text: str, told: Told | None) -> str:
    """What is stored of a native response and of what the app told meanwhile.

    Args:
        text: the response as JSON.
        told: None where it told nothing; then the text alone is stored.
    """
    if told is None and not text.startswith(_BEGINS):
        return text
    told_text = "null" if told is None else told.model_dump_json()
    return f"{_BEGINS}{told_text}{_GOES_ON}{text}}}"


def opened(text: str) -> tuple[str, Told | None]:
    """The response's text, exactly as it was, and what was told, of what `sealed` gave."""
    if not text.startswith(_BEGINS):
        return text, None
    told, end = _decoder.raw_decode(text, len(_BEGINS))
    return text[end + len(_GOES_ON) : -1], None if told is None else Told.load(told)
