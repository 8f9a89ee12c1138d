"""Traces of an app: a span for each observed call.

`modelgauge.evals` creates them.
"""

from pydantic import Field, FiniteFloat

from modelgauge.data.base import Count, Frozen, Text
from modelgauge.data.responses import JsonObject, JsonValue
from modelgauge.data.test_cases import LLMTestCase

TRACE = "trace"
"""The name under which a completion's metadata holds the trace of the app that gave it."""

SPAN = "span"
"""The name under which the metadata of a completion that stands for a part of an app holds the name of its span."""


class Span(Frozen):
    """One call of an observed function.

    Args:
        id: its place in the order in which the spans of the trace began, from 0.
        parent: the id of the span that it was called in; None for the outermost.
        name: the function, or the name that `observe` gave it.
        type: llm, retriever, tool, agent, or a word of the author's own.
        start: seconds since the trace began.
        seconds: how long it took; None if it had not ended when the trace did.
        input: the arguments by name, or what `update_current_span` set.
        output: what was returned or yielded, or what `update_current_span` set.
        error: the class and message of the exception that ended it.
        metadata: any JSON object.
        tags: for grouping.
        test_case: what the metrics of this span judge; where there are none, what the app reported of it.
        metrics: their names.
    """

    id: Count
    parent: Count | None = None
    name: Text
    type: Text | None = None
    start: FiniteFloat
    seconds: FiniteFloat | None = None
    input: JsonValue = None
    output: JsonValue = None
    error: Text | None = None
    metadata: JsonObject = Field(default_factory=dict)
    tags: tuple[Text, ...] = ()
    test_case: LLMTestCase | None = None
    metrics: tuple[Text, ...] = ()


class Trace(Frozen):
    """Trace of one use of an app, with all spans observed while it ran.

    Its outermost span is the call of the app if the use was a single call; else a span for the use, around all others:
    where a wrapper called the app twice, say, or answered by itself.

    Args:
        name: of the outermost span, or what `update_current_trace` set.
        started: when, in ISO 8601, UTC.
        seconds: how long it took.
        input: what `update_current_trace` set.
        output: what `update_current_trace` set.
        thread_id: the conversation that it belongs to.
        user_id: who asked.
        metadata: any JSON object.
        tags: for grouping.
        spans: in the order in which they began.
    """

    name: Text
    started: str
    seconds: FiniteFloat
    input: JsonValue = None
    output: JsonValue = None
    thread_id: Text | None = None
    user_id: Text | None = None
    metadata: JsonObject = Field(default_factory=dict)
    tags: tuple[Text, ...] = ()
    spans: tuple[Span, ...] = ()
