"""From responses of the protocol to ours."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from modelgauge import SUTCompletion, SUTResponse, TokenProbability, ToolCall, TopTokens, Usage
from modelgauge_openai import protocol

_MOST_TOKENS = 2**53
_NEVER = -9999.0  # the protocol's own figure for a token that has no chance


@dataclass(frozen=True, slots=True)
class Prices:
    """What tokens cost, in US dollars a million."""

    input: float
    output: float

    def cost(self, read: int | None, written: int | None) -> float | None:
        """The cost of a response, in US dollars; None where the server does not count tokens."""
        if read is None or written is None:
            return None
        return (read * self.input + written * self.output) / 1e6


def sut_response(response: protocol.ChatResponse, prices: Prices | None) -> SUTResponse:
    """All completions of a response, and what they cost."""
    return SUTResponse(
        completions=tuple(_completion(choice) for choice in response.choices),
        usage=None if response.usage is None else _usage(response.usage, prices),
    )


def _usage(usage: protocol.TokenUsage, prices: Prices | None) -> Usage:
    details = usage.completion_tokens_details
    read, written = _count(usage.prompt_tokens), _count(usage.completion_tokens)
    return Usage(
        input_tokens=read,
        output_tokens=written,
        reasoning_tokens=None if details is None else _count(details.reasoning_tokens),
        cost_usd=None if prices is None else prices.cost(read, written),
    )


def _count(tokens: int | None) -> int | None:
    """A number of tokens; None where the server tells one that there cannot be: the answer is good all the same."""
    return tokens if tokens is not None and 0 <= tokens <= _MOST_TOKENS else None


def _completion(choice: protocol.Choice) -> SUTCompletion:
    message = choice.message
    content = text_of(message)
    reasoning = _reasoning(message)
    fields: dict[str, Any] = {"finish_reason": choice.finish_reason}
    if reasoning is not None:
        fields["reasoning"] = reasoning
        fields["truncated_reasoning"] = not content and choice.finish_reason == "length"
    if message.refusal:
        fields["metadata"] = {"refusal": message.refusal}
    if message.tool_calls:
        fields["tool_calls"] = tuple(_tool_call(call.function) for call in message.tool_calls)
    if choice.logprobs is not None and choice.logprobs.content is not None:
        fields["top_logprobs"] = tuple(_top_tokens(token) for token in choice.logprobs.content)
    # What a model says instead of an answer is its answer.
    return SUTCompletion(content or message.refusal or "", **fields)


def text_of(message: protocol.Answer) -> str:
    """What a message says; of parts, the texts."""
    content = message.content
    if isinstance(content, list):
        texts = [
            part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"
        ]
        return "".join(text for text in texts if isinstance(text, str))
    return content or ""


def _reasoning(message: protocol.Answer) -> str | None:
    """What a model thought; None where the server keeps it in the text, if anywhere."""
    for thought in (message.reasoning_content, message.reasoning):
        if isinstance(thought, str) and thought:
            return thought
    return None


def _tool_call(function: protocol.Function) -> ToolCall:
    arguments: Any = function.arguments
    if isinstance(arguments, str) and arguments.strip():
        with suppress(ValueError):  # models write this text, and get it wrong: then it is kept as it is
            arguments = from_json(arguments, allow_inf_nan=False)
    if arguments is None or isinstance(arguments, dict):
        return ToolCall(name=function.name, input_parameters=arguments)
    return ToolCall(name=function.name, input_parameters={"arguments": arguments} if arguments else {})


def _top_tokens(token: protocol.TokenLogprob) -> TopTokens:
    top = [TokenProbability(token=one.token, logprob=_logprob(one)) for one in token.top_logprobs or ()]
    return TopTokens(top_tokens=tuple(sorted(top, key=lambda one: -one.logprob)))


def _logprob(token: protocol.TopLogprob) -> float:
    return _NEVER if token.logprob is None else token.logprob
