"""One use of an app whose functions are observed: its trace is recorded while a SUT answers.

What the app reported goes into the completion, and is cached beside the native response, so that a cached answer brings
its spans back. Where an attempt fails, its trace stays with the error, and stands in the exception record of the item.
"""

from json import JSONDecoder
from typing import Any

from modelgauge.data.base import Frozen
from modelgauge.data.case_fields import RUNTIME_FIELDS
from modelgauge.data.responses import JsonObject, SUTResponse, ToolCall
from modelgauge.data.spans import TRACE, Trace
from modelgauge.data.test_cases import IN_METADATA
from modelgauge.observe.spans import OpenTrace, Use, as_text

_ON_ERRORS = "__modelgauge_trace__"
_BEGINS, _GOES_ON = '{"modelgauge_told":', ',"response":'
_decoder = JSONDecoder()


class AppReport(Frozen):
    """Trace and fields that an app reported while producing an answer.

    Args:
        trace: what it did.
        text: the answer, if the app reported it.
        tool_calls: its tool calls, where the app named them.
        metadata: further fields that the app reported, for the metadata of the completion.
    """

    trace: Trace
    text: str | None = None
    tool_calls: tuple[ToolCall, ...] | None = None
    metadata: JsonObject

    def added_to(self, response: SUTResponse) -> SUTResponse:
        """Return the response with the report added to its first completion."""
        first, *others = response.completions
        changed: dict[str, Any] = {"text": self.text, "tool_calls": self.tool_calls}
        metadata = {**first.metadata, **self.metadata, TRACE: self.trace.model_dump(mode="json")}
        given = {name: value for name, value in changed.items() if value is not None}
        return response.replaced(completions=(first.replaced(**given, metadata=metadata), *others))


def get_report(use: Use, response: Any) -> AppReport | None:
    """Return the report of the attempt that produced a native response; None if nothing was observed."""
    trace = _close_trace(use, response, None)
    if trace is None:
        return None
    case = trace.given_case()
    reported = (
        trace.all_case_fields() if case is None else {name: getattr(case, name) for name in RUNTIME_FIELDS}
    )
    output = trace.fields.get("output") if isinstance(response, str) else None  # else the SUT has more to say
    tools = reported.get("tools_called")
    return AppReport(
        trace=trace.frozen(),
        text=as_text(output) if case is None else case.actual_output,
        tool_calls=None if tools is None else tuple(tools),
        metadata={name: reported[name] for name in IN_METADATA if reported.get(name) is not None},
    )


def trace_until(use: Use, error: Exception) -> Trace | None:
    """Return the trace of an app up to a failed attempt, with spans still open; None if nothing was observed."""
    trace = _close_trace(use, None, error)
    return None if trace is None else trace.frozen()


def _close_trace(use: Use, response: Any, error: Exception | None) -> OpenTrace | None:
    trace = use.ended(response, error)
    is_empty = trace.root is use.root and len(trace.spans) == 1
    return None if is_empty and not (trace.is_updated or trace.root.is_updated) else trace


# --- traces of what failed ---------------------------------------------------------------------------------------


def attach_trace(error: BaseException, what: AppReport | Trace | None) -> None:
    """Keep the trace of an app with the error that it raised, in place of the trace of an earlier attempt.

    Some apps raise one object again and again.
    """
    # Not by setattr, which some classes of exceptions refuse.
    error.__dict__[_ON_ERRORS] = what.trace if isinstance(what, AppReport) else what


def get_traces(error: BaseException) -> tuple[Trace, ...]:
    """Return the trace of an app up to this exception, if the app was observed."""
    trace = error.__dict__.get(_ON_ERRORS)
    return (trace,) if isinstance(trace, Trace) else ()


# --- the form in the cache ---------------------------------------------------------------------------------------


def with_report(text: str, report: AppReport | None) -> str:
    """Return the text to store for a native response together with the app's report.

    Args:
        text: the response as JSON.
        report: None if it reported nothing; then the text alone is stored.
    """
    if report is None and not text.startswith(_BEGINS):
        return text
    report_text = "null" if report is None else report.model_dump_json()
    return f"{_BEGINS}{report_text}{_GOES_ON}{text}}}"


def without_report(text: str) -> tuple[str, AppReport | None]:
    """Split a text made by `with_report` into the original response text and the report."""
    if not text.startswith(_BEGINS):
        return text, None
    report, end = _decoder.raw_decode(text, len(_BEGINS))
    return text[end + len(_GOES_ON) : -1], None if report is None else AppReport.load(report)
