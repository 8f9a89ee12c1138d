"""The chat-completions protocol as types: the request that is sent, the response that is kept.

Source: OpenAI API reference, "Create chat completion"
(https://platform.openai.com/docs/api-reference/chat/create), with the fields that compatible servers add.
Turning prompts into requests is in `request.py`, responses into ours in `response.py`.
"""

import re
from collections.abc import Mapping
from typing import Any, ClassVar, TypedDict

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer


class Message(TypedDict):
    """One message that is sent."""

    role: str
    content: str


class ChatRequest(TypedDict, total=False):
    """A request; it holds what was asked for and nothing else.

    Plain JSON, not a model: cache keys are made of it, and a model's key would change with each field that a
    later version of this plugin adds.
    """

    model: str
    messages: list[Message]
    n: int
    max_tokens: int
    max_completion_tokens: int
    temperature: float
    top_p: float
    top_k: int
    stop: list[str]
    presence_penalty: float
    frequency_penalty: float
    seed: int
    logprobs: bool
    top_logprobs: int
    response_format: dict[str, Any]


class _Received(BaseModel):
    """Part of a response: all that the server sent, unknown fields included, and nothing that it did not send."""

    model_config = ConfigDict(extra="allow")

    @model_serializer(mode="wrap")
    def _as_sent(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = write(self)
        return {name: value for name, value in fields.items() if name in self.model_fields_set}


class TopLogprob(_Received):
    """A token that could have stood at a position. `logprob` is None if the server wrote an infinity."""

    token: str
    logprob: float | None = None


class TokenLogprob(TopLogprob):
    """The token that stands at a position, and the most likely ones."""

    top_logprobs: list[TopLogprob] | None = None


class Logprobs(_Received):
    """The tokens of a completion."""

    content: list[TokenLogprob] | None = None


class Function(_Received):
    """A function that the model wants called; `arguments` is JSON in a text, at some servers an object."""

    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class CustomTool(_Received):
    """A tool of the user's own that the model wants called with a free text."""

    name: str | None = None
    input: str | None = None


class ToolCall(_Received):
    """A tool that the model wants called: a function, or a custom tool."""

    function: Function | None = None
    custom: CustomTool | None = None


class Answer(_Received):
    """The message of a choice.

    `content` is a list of parts at servers that mix texts with other things (Mistral's thoughts, say).
    `reasoning_content` (DeepSeek, vLLM, SGLang), `reasoning` (OpenRouter, Ollama, vLLM) and `reasoning_details`
    (OpenRouter) are what a model thought.
    """

    content: str | list[Any] | None = None
    refusal: str | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None
    tool_calls: list[ToolCall] | None = None


class Choice(_Received):
    """One completion; without a message where a content filter withheld it, as at Azure and Google."""

    message: Answer | None = None
    finish_reason: str | None = None
    logprobs: Logprobs | None = None


class OutputDetails(_Received):
    """What the output tokens were spent on."""

    reasoning_tokens: float | None = None


class TokenUsage(_Received):
    """The tokens of all completions together; some servers write them as fractions. `cost` is OpenRouter's, in US
    dollars."""

    prompt_tokens: float | None = None
    completion_tokens: float | None = None
    completion_tokens_details: OutputDetails | None = None
    cost: float | None = None


class ChatResponse(_Received):
    """A response; without choices where the server reports an error with status 200.

    Made by `received`, it comes back from its JSON as it was, so that the engine need not try that out.

    Args:
        choices: the completions.
        usage: the tokens of all of them.
        timings: llama.cpp's; `predicted_n` is the tokens of one completion.
        response_headers: those that say what the answer cost; no other header is kept.
    """

    comes_back: ClassVar[bool] = True

    choices: list[Choice] | None = None
    usage: TokenUsage | None = None
    timings: Any = None
    response_headers: dict[str, str] | None = None


def model_names(listed: Any) -> list[str]:
    """The names in a server's list of models, which some servers wrap in no object; none in anything else.

    Source: OpenAI API reference, "List models" (https://platform.openai.com/docs/api-reference/models/list).
    """
    models = listed.get("data") if isinstance(listed, dict) else listed
    models = models if isinstance(models, list) else []
    return [str(model["id"]) for model in models if isinstance(model, dict) and "id" in model]


_LARGE_EXPONENT = re.compile(rb"[eE]\+?\d{3}")


def received(body: bytes, headers: Mapping[str, str] | None = None) -> ChatResponse:
    """The response that a body holds; None stands for NaN and infinities, which some servers write and JSON lacks.

    Args:
        body: as it came.
        headers: those to keep with the response, by name.

    Raises:
        ValidationError: the body is no JSON, or of another form.
    """
    response = ChatResponse.model_validate_json(body)
    if b"NaN" in body or b"Infinity" in body or _LARGE_EXPONENT.search(body):
        response = ChatResponse.model_validate_json(response.model_dump_json())
    if headers:
        response.response_headers = dict(headers)
    return response
