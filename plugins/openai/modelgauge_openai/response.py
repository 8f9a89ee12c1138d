"""Converting responses of the protocol to ours. The text decides; every other field is read by itself."""

import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic_core import from_json, to_json

from modelgauge import SUTCompletion, SUTResponse, TokenProbability, ToolCall, TopTokens, Usage
from modelgauge.errors import InvalidResponseError
from modelgauge_openai import protocol
from modelgauge_openai.blocking import Metadata, block_in, block_in_choice
from modelgauge_openai.reply import COST_HEADERS, Reply
from modelgauge_openai.streaming import read_stream

T = TypeVar("T")

_MOST_TOKENS = 2**53
_MOST_DOLLARS = 1e15
_NEVER = -9999.0  # the protocol's own figure for a token that has no chance
_LONGEST_QUOTE = 200
_MISFITS = (ValueError, TypeError, LookupError, AttributeError, OverflowError)
"""Exceptions from reading a value of another form."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of tokens, in US dollars per million."""

    input: float
    output: float

    def cost(self, read: int | None, written: int | None) -> float | None:
        """Return the cost of a response in US dollars; None if the server does not count tokens."""
        if read is None or written is None:
            return None
        return (read * self.input + written * self.output) / 1e6


class Reading:
    """Reads the fields of a response one by one.

    Attributes:
        left_out: the fields with a value that is not understood.
    """

    def __init__(self) -> None:
        self.left_out: list[str] = []

    def field(self, name: str, value: Any, read: Callable[[Any], T]) -> T | None:
        """Read one field; return None if it has no value, or one that is not understood."""
        if value is None:
            return None
        try:
            return read(value)
        except _MISFITS:
            self.left_out.append(name)
            return None


def sut_response(response: protocol.ChatResponse, prices: Prices | None, asked: int = 1) -> SUTResponse:
    """Return all completions of a response, and what they cost.

    Fields that are not understood are left out, and named in the completions; those of the usage in the first.

    Args:
        response: as the server sent it.
        prices: of tokens, where they are known.
        asked: the number of completions that were asked for, and that are blocked where a response has none.

    Raises:
        InvalidResponseError: a message has a content without a text that is understood.
    """
    of_all = Reading()
    usage = usage_of(response, prices, of_all)
    block = block_in(response)
    choices = response.choices or ([protocol.Choice()] * asked if block is not None else [])
    readings = [of_all, *(Reading() for _ in choices)]
    blocks = [block_in_choice(choice) if block is None else block for choice in choices]
    completions = [_completion(*each) for each in zip(choices, readings, blocks, strict=False)]
    return SUTResponse(completions=completions, usage=usage)


def costs_in(reply: Reply) -> protocol.ChatResponse:
    """Return the costs that a reply reports, as a response without choices."""
    usage: Any = None
    if reply.is_stream(asked=True):
        usage = read_stream(reply.text).response.get("usage")
    else:
        with suppress(ValueError, AttributeError):
            usage = from_json(reply.text).get("usage")
    return protocol.ChatResponse(usage=usage, response_headers=reply.costs)


def usage_of(
    response: protocol.ChatResponse, prices: Prices | None, reading: Reading | None = None
) -> Usage | None:
    """Return the usage of a response; None if it reports none."""
    reading = reading or Reading()
    usage = reading.field("usage", response.usage, _object)
    fields = usage or {}
    of_output = reading.field(
        "usage.completion_tokens_details", fields.get("completion_tokens_details"), _object
    )
    read, written = (
        reading.field(f"usage.{name}", fields.get(name), _count)
        for name in ("prompt_tokens", "completion_tokens")
    )
    reasoning = reading.field(
        "usage.completion_tokens_details.reasoning_tokens", (of_output or {}).get("reasoning_tokens"), _count
    )
    if _counts_one_of_many(response, fields):
        written = None
    cost = _reported_cost(response, fields, reading) if prices is None else prices.cost(read, written)
    if usage is None and cost is None:
        return None
    return Usage(input_tokens=read, output_tokens=written, reasoning_tokens=reasoning, cost_usd=cost)


def added(first: Usage | None, second: object) -> Usage | None:
    """Return the usage of two calls together; of the first, if the second reports none."""
    if first is None or not isinstance(second, Usage):
        return first
    pairs = {name: (getattr(first, name), getattr(second, name)) for name in Usage.model_fields}
    return Usage(**{name: sum(pair) for name, pair in pairs.items() if None not in pair})


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(value)
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _number(value: Any, most: float) -> float:
    if isinstance(value, bool) or not 0 <= float(value) <= most:
        raise ValueError(value)
    return float(value)


def _count(tokens: Any) -> int:
    return math.ceil(_number(tokens, _MOST_TOKENS))


def _dollars(cost: Any) -> float:
    """Read a cost: a number, or an object with the total, as from Perplexity."""
    return _number(cost["total_cost"] if isinstance(cost, dict) else cost, _MOST_DOLLARS)


def _counts_one_of_many(response: protocol.ChatResponse, usage: Mapping[str, Any]) -> bool:
    """Return whether the tokens are those of one completion only, as llama.cpp counts them where it gives several.

    Source: https://github.com/ggml-org/llama.cpp/pull/27318
    """
    tokens, timings = usage.get("completion_tokens"), response.timings
    is_counted = tokens is not None and isinstance(timings, dict) and timings.get("predicted_n") == tokens
    return is_counted and len(response.choices or ()) > 1


def _reported_cost(
    response: protocol.ChatResponse, usage: Mapping[str, Any], reading: Reading
) -> float | None:
    """Return the cost of the answer that the server reports, in US dollars."""
    cost = reading.field("usage.cost", usage.get("cost"), _dollars)
    headers = response.response_headers if isinstance(response.response_headers, dict) else {}
    in_headers = (Reading().field(name, headers.get(name), _dollars) for name in COST_HEADERS)
    return next((dollars for dollars in (cost, *in_headers) if dollars is not None), None)


def _completion(choice: protocol.Choice, reading: Reading, block: Metadata | None) -> SUTCompletion:
    message = choice.message if isinstance(choice.message, protocol.Answer) else None
    message = message or protocol.Answer(content=choice.message)
    refusal = reading.field("refusal", message.refusal, _text)
    calls = reading.field("tool_calls", message.tool_calls, _list) or ()
    tool_calls = tuple(filter(None, (reading.field("tool_calls", call, _tool_call) for call in calls)))
    content, unknown = text_of(_content(message))
    if unknown and not (content or refusal or tool_calls or block is not None):
        raise _without_text(unknown[0])
    if unknown:
        reading.left_out.append("content")
    reasoning = _reasoning(message)
    finish_reason = reading.field("finish_reason", choice.finish_reason, _text)
    fields: dict[str, Any] = {
        "finish_reason": finish_reason,
        "top_logprobs": reading.field("logprobs", choice.logprobs, _top_logprobs),
        "metadata": ({"refusal": refusal} if refusal else {}) | (block or {}),
        "blocked": block is not None,
    }
    if reasoning is not None:
        fields["reasoning"] = reasoning
        fields["truncated_reasoning"] = not content and finish_reason == "length"
    if tool_calls:
        fields["tool_calls"] = tool_calls
    if reading.left_out:
        fields["left_out"] = sorted(set(reading.left_out))
    # What a model says instead of an answer is its answer.
    return SUTCompletion(content or refusal or "", **fields)


def _content(message: protocol.Answer) -> Any:
    """Return the content of a message, for which some servers use another name."""
    others = message.model_extra or {}
    return next(
        (others[name] for name in _NAMES if message.content is None and others.get(name)), message.content
    )


def _without_text(content: Any) -> InvalidResponseError:
    start = to_json(content).decode()[:_LONGEST_QUOTE]
    return InvalidResponseError(
        f"The content of the answer has no text that is understood: {start}",
        fix="Ask the server for an answer in text.",
    )


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(value)
    return value


# --- texts ------------------------------------------------------------------------------------------------------------

_NAMES = ("text", "content", "value", "output_text", "parts")
"""Keys for the text of a part, besides the name of its type."""

_THOUGHT = re.compile("think|thought|reason")
_NO_TEXT = re.compile("image|audio|video|file|document|tool|function|citation|reference|source")


def text_of(content: Any) -> tuple[str, list[Any]]:
    """Return the text of a message's content or of a part, and the parts that have none."""
    unknown: list[Any] = []
    return _text_in(content, unknown), unknown


def _text_in(content: Any, unknown: list[Any]) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        return "".join([_text_in(part, unknown) for part in content])
    return "" if _is_thought(content) else _text_of_part(content, unknown)


def _text_of_part(part: Any, unknown: list[Any]) -> str:
    kind = str(part.get("type")) if isinstance(part, dict) else ""
    if isinstance(part, dict) and not _NO_TEXT.search(kind):
        for name in (*_NAMES, kind):
            if name in part:
                return _text_in(part[name], unknown)
    unknown.append(part)
    return ""


def _is_thought(part: Any) -> bool:
    return isinstance(part, dict) and (
        part.get("thought") is True or _THOUGHT.search(str(part.get("type"))) is not None
    )


def _reasoning(message: protocol.Answer) -> str | None:
    """Return the model's reasoning; None if the message does not separate it."""
    thoughts = [message.reasoning_content, message.reasoning]
    if message.reasoning_details:
        thoughts.append("\n\n".join(_reasoning_details(message.reasoning_details)))
    if isinstance(message.content, list | dict):
        parts = message.content if isinstance(message.content, list) else [message.content]
        thoughts.append("\n\n".join([_text_of_part(part, []) for part in parts if _is_thought(part)]))
    return next((thought for thought in thoughts if isinstance(thought, str) and thought), None)


def _reasoning_details(details: Any) -> list[str]:
    """Return the readable parts of OpenRouter's `reasoning_details`: texts, or else summaries."""
    return _values(details, "reasoning.text", "text") or _values(details, "reasoning.summary", "summary")


def _values(parts: Any, kind: str, name: str) -> list[str]:
    """Return the texts in parts of one type."""
    parts = parts if isinstance(parts, list) else []
    return [
        text_of(part.get(name))[0] for part in parts if isinstance(part, dict) and part.get("type") == kind
    ]


# --- tool calls and log-probabilities ---------------------------------------------------------------------------------


def _tool_call(call: dict[str, Any]) -> ToolCall:
    custom = call.get("custom")
    if custom is not None:
        return ToolCall(name=custom.get("name") or "", input_parameters={"input": custom.get("input") or ""})
    function = call.get("function") or {}
    name, arguments = function.get("name") or "", function.get("arguments")
    if isinstance(arguments, str) and arguments.strip():
        with suppress(ValueError):  # models write this text, and get it wrong: then it is kept as it is
            arguments = from_json(arguments, allow_inf_nan=False)
    if arguments is None or isinstance(arguments, dict):
        return ToolCall(name=name, input_parameters=arguments)
    return ToolCall(name=name, input_parameters={"arguments": arguments} if arguments else {})


def _top_logprobs(logprobs: Any) -> tuple[TopTokens, ...] | None:
    tokens = logprobs.get("content")
    return None if tokens is None else tuple([_top_tokens(token) for token in _list(tokens)])


def _top_tokens(token: dict[str, Any]) -> TopTokens:
    top = [
        TokenProbability(token=alternative["token"], logprob=_logprob(alternative.get("logprob")))
        for alternative in _list(token.get("top_logprobs") or [])
    ]
    return TopTokens(top_tokens=tuple(sorted(top, key=lambda alternative: -alternative.logprob)))


def _logprob(logprob: Any) -> float:
    return _NEVER if logprob is None else float(logprob)
