"""The chat-completions protocol as types: the request that is sent, the response that is kept.

Source: OpenAI API reference, "Create chat completion"
(https://platform.openai.com/docs/api-reference/chat/create), with the fields that compatible servers add.
Turning prompts into requests is in `request.py`, responses into ours in `response.py`.
"""

from typing import Any, ClassVar, TypedDict

from pydantic import BaseModel, ConfigDict


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
    """Part of a response. What it does not know it keeps, so that the cache holds the response whole."""

    model_config = ConfigDict(extra="allow")


class TopLogprob(_Received):
    """A token that could have stood at a position. `logprob` is None where the server wrote an infinity."""

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

    name: str
    arguments: str | dict[str, Any] | None = None


class ToolCall(_Received):
    """A tool that the model wants called."""

    function: Function


class Answer(_Received):
    """The message of a choice.

    `content` is a list of parts at servers that mix texts with other things. `reasoning_content` (DeepSeek,
    vLLM, SGLang) and `reasoning` (OpenRouter, Ollama, vLLM) are what a model thought.
    """

    content: str | list[Any] | None = None
    refusal: str | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: list[ToolCall] | None = None


class Choice(_Received):
    """One completion."""

    message: Answer
    finish_reason: str | None = None
    logprobs: Logprobs | None = None


class OutputDetails(_Received):
    """What the output tokens were spent on."""

    reasoning_tokens: int | None = None


class TokenUsage(_Received):
    """The tokens of all completions together."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    completion_tokens_details: OutputDetails | None = None


class ChatResponse(_Received):
    """A response; without choices where the server reports an error with status 200.

    Made by `received`, it comes back from its JSON as it was, so that the engine need not try that out.
    """

    comes_back: ClassVar[bool] = True

    choices: list[Choice] = []
    usage: TokenUsage | None = None


def received(body: bytes) -> ChatResponse:
    """The response that a body holds; None stands for NaN and infinities, which some servers write and JSON lacks.

    Raises:
        ValidationError: the body is no JSON, or of another form.
    """
    response = ChatResponse.model_validate_json(body)
    if b"NaN" in body or b"Infinity" in body:
        response = ChatResponse.model_validate_json(response.model_dump_json())
    return response
