"""From responses of the protocol to ours."""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from modelgauge import SUTCompletion, SUTResponse, TokenProbability, ToolCall, TopTokens, Usage
from modelgauge_openai import protocol

_MOST_TOKENS = 2**53
_MOST_DOLLARS = 1e15
_NEVER = -9999.0  # the protocol's own figure for a token that has no chance


@dataclass(frozen=True, slots=True)
class Prices:
    """What tokens cost, in US dollars a million."""

    input: float
    output: float

    def cost(self, read: int | None, written: int | None) -> float | None:
        """The cost of a response, in US dollars; None if the server does not count tokens."""
        if read is None or written is None:
            return None
        return (read * self.input + written * self.output) / 1e6


COST_HEADERS = ("x-litellm-response-cost",)
"""Response headers that say what an answer cost, in US dollars.

Source: LiteLLM, "Response Headers" (https://docs.litellm.ai/docs/proxy/response_headers).
"""


def sut_response(response: protocol.ChatResponse, prices: Prices | None) -> SUTResponse:
    """All completions of a response, and what they cost."""
    return SUTResponse(
        completions=tuple(_completion(choice) for choice in response.choices or ()),
        usage=usage_of(response, prices),
    )


def costs_in(body: bytes, headers: Mapping[str, str]) -> protocol.ChatResponse | None:
    """What a body says of its costs, as a response without choices; None if it is not a JSON object."""
    with suppress(ValueError, AttributeError):
        usage = from_json(body).get("usage")
        return protocol.ChatResponse(usage=usage, response_headers=dict(headers))
    return None


def usage_of(response: protocol.ChatResponse, prices: Prices | None) -> Usage | None:
    """What a response took; None if it does not say."""
    usage = response.usage or protocol.TokenUsage()
    details = usage.completion_tokens_details
    read = _count(usage.prompt_tokens)
    written = None if _counts_one_of_many(response) else _count(usage.completion_tokens)
    cost = _reported_cost(response) if prices is None else prices.cost(read, written)
    if response.usage is None and cost is None:
        return None
    return Usage(
        input_tokens=read,
        output_tokens=written,
        reasoning_tokens=None if details is None else _count(details.reasoning_tokens),
        cost_usd=cost,
    )


def _count(tokens: float | None) -> int | None:
    """A number of tokens; None if the server gives one that there cannot be: the answer is good all the same."""
    return math.ceil(tokens) if tokens is not None and 0 <= tokens <= _MOST_TOKENS else None


def _counts_one_of_many(response: protocol.ChatResponse) -> bool:
    """Whether the tokens are those of one completion only, as llama.cpp counts them where it gives several.

    Source: https://github.com/ggml-org/llama.cpp/pull/27318
    """
    timings, usage = response.timings, response.usage
    return (
        len(response.choices or ()) > 1
        and usage is not None
        and isinstance(timings, dict)
        and timings.get("predicted_n") == usage.completion_tokens
    )


def _reported_cost(response: protocol.ChatResponse) -> float | None:
    """What the server says that the answer cost, in US dollars."""
    headers = response.response_headers or {}
    reported = [None if response.usage is None else response.usage.cost, *map(headers.get, COST_HEADERS)]
    for cost in reported:
        with suppress(ValueError):
            if cost is not None and 0 <= float(cost) <= _MOST_DOLLARS:
                return float(cost)
    return None


def _completion(choice: protocol.Choice) -> SUTCompletion:
    message = choice.message or protocol.Answer()
    content = text_of(message)
    reasoning = _reasoning(message)
    fields: dict[str, Any] = {"finish_reason": choice.finish_reason}
    if reasoning is not None:
        fields["reasoning"] = reasoning
        fields["truncated_reasoning"] = not content and choice.finish_reason == "length"
    if message.refusal:
        fields["metadata"] = {"refusal": message.refusal}
    if message.tool_calls:
        fields["tool_calls"] = tuple(_tool_call(call) for call in message.tool_calls)
    if choice.logprobs is not None and choice.logprobs.content is not None:
        fields["top_logprobs"] = tuple(_top_tokens(token) for token in choice.logprobs.content)
    # What a model says instead of an answer is its answer.
    return SUTCompletion(content or message.refusal or "", **fields)


def text_of(message: protocol.Answer) -> str:
    """What a message says; of parts, the texts."""
    return _texts(message.content)


def _texts(content: Any) -> str:
    """A text, or the texts among parts."""
    return content if isinstance(content, str) else "".join(_values(content, "text"))


def _values(parts: Any, kind: str, key: str = "") -> list[str]:
    """The texts in parts of one type, which stand under the type's own name or another key."""
    if not isinstance(parts, list):
        return []
    return [
        _texts(part.get(key or kind)) for part in parts if isinstance(part, dict) and part.get("type") == kind
    ]


def _reasoning(message: protocol.Answer) -> str | None:
    """What a model thought; None if the server keeps it in the text, if anywhere."""
    thoughts = (
        message.reasoning_content,
        message.reasoning,
        "\n\n".join(_reasoning_details(message.reasoning_details)),
        "\n\n".join(_values(message.content, "thinking")),
    )
    return next((thought for thought in thoughts if isinstance(thought, str) and thought), None)


def _reasoning_details(details: Any) -> list[str]:
    """The readable parts of OpenRouter's `reasoning_details`: texts, or summaries where there are no texts."""
    return _values(details, "reasoning.text", "text") or _values(details, "reasoning.summary", "summary")


def _tool_call(call: protocol.ToolCall) -> ToolCall:
    if call.custom is not None:
        return ToolCall(name=call.custom.name or "", input_parameters={"input": call.custom.input or ""})
    function = call.function or protocol.Function()
    name, arguments = function.name or "", function.arguments
    if isinstance(arguments, str) and arguments.strip():
        with suppress(ValueError):  # models write this text, and get it wrong: then it is kept as it is
            arguments = from_json(arguments, allow_inf_nan=False)
    if arguments is None or isinstance(arguments, dict):
        return ToolCall(name=name, input_parameters=arguments)
    return ToolCall(name=name, input_parameters={"arguments": arguments} if arguments else {})


def _top_tokens(token: protocol.TokenLogprob) -> TopTokens:
    top = [
        TokenProbability(token=alternative.token, logprob=_logprob(alternative))
        for alternative in token.top_logprobs or ()
    ]
    return TopTokens(top_tokens=tuple(sorted(top, key=lambda alternative: -alternative.logprob)))


def _logprob(token: protocol.TopLogprob) -> float:
    return _NEVER if token.logprob is None else token.logprob
