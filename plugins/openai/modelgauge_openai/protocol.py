"""The protocol as types: the request that is sent, the response that is kept.

Source: OpenAI API reference, "Create chat completion" (https://platform.openai.com/docs/api-reference/chat/create) and
"Create completion" (https://platform.openai.com/docs/api-reference/completions/create), with the fields that
compatible servers add.
Turning prompts into requests is in `request.py`, responses into ours in `response.py`.
"""

import json
import re
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any, ClassVar, TypedDict

from pydantic import (
    BaseModel,
    ConfigDict,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)


class Message(TypedDict):
    """One message that is sent."""

    role: str
    content: str


class Request(TypedDict, total=False):
    """The fields of both APIs; a request holds what was asked for and nothing else.

    Plain JSON, not a model: cache keys are made of it, and a model's key would change with each field that a
    later version of this plugin adds.
    """

    model: str
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


class ChatRequest(Request, total=False):
    """A request for the continuation of a chat."""

    messages: list[Message]
    logprobs: bool
    top_logprobs: int
    response_format: dict[str, Any]


class CompletionRequest(Request, total=False):
    """A request for the completion of a text, or for the log-likelihoods of continuations of a context.

    `scoring.py` makes of the latter what is sent, so that a server's form of it is no part of the cache's keys.
    """

    prompt: str
    logprobs: int
    context: str
    continuations: list[str]


class _Received(BaseModel):
    """Part of a response: all that the server sent, unknown fields included, and nothing that it did not send."""

    model_config = ConfigDict(extra="allow")

    @model_serializer(mode="wrap")
    def _as_sent(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = write(self)
        return {name: value for name, value in fields.items() if name in self.model_fields_set}


class Answer(_Received):
    """The message of a choice, with its fields unchanged: `response.py` reads each by itself.

    `content` is a list of parts at servers that mix texts with other things (Mistral's thoughts, say).
    `reasoning_content` (DeepSeek, vLLM, SGLang), `reasoning` (OpenRouter, Ollama, vLLM) and `reasoning_details`
    (OpenRouter) are what a model thought.
    """

    content: Any = None
    refusal: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None
    tool_calls: Any = None


class Choice(_Received):
    """One completion; without a message where a content filter withheld it, as at Azure and Google."""

    message: Answer | Any = None
    finish_reason: Any = None
    logprobs: Any = None


class ChatResponse(_Received):
    """A response; without choices where the server reports an error with status 200.

    Those of text completions are kept in the same form; see `chat_choice`.

    Made by `received`, it comes back from its JSON as it was, so that the engine need not try that out.

    Args:
        choices: the completions.
        usage: the tokens of all of them, and at OpenRouter and Perplexity their cost.
        timings: llama.cpp's; `predicted_n` is the tokens of one completion.
        response_headers: those that say what the answer cost; no other header is kept.
    """

    comes_back: ClassVar[bool] = True

    choices: list[Choice] | None = None
    usage: Any = None
    timings: Any = None
    response_headers: Any = None


def chat_choice(choice: Choice) -> Choice:
    """Return a choice of a text completion in the form of a chat's; another one unchanged."""
    text = (choice.model_extra or {}).get("text")
    if choice.message is not None or not isinstance(text, str):
        return choice
    fields = {**choice.model_dump(exclude={"text"}), "message": {"content": text}}
    return Choice.model_validate({**fields, "logprobs": chat_logprobs(choice.logprobs)})


def chat_logprobs(logprobs: Any) -> Any:
    """Return log-probabilities in the form of a chat's: a list of tokens in place of lists of their fields."""
    names = ("tokens", "token_logprobs", "top_logprobs")
    columns = [logprobs.get(name) or [] for name in names] if isinstance(logprobs, dict) else []
    if not any(columns) or not all(isinstance(column, list) for column in columns):
        return logprobs
    return {
        "content": [
            {
                "token": token,
                "logprob": logprob,
                "top_logprobs": [{"token": each, "logprob": its} for each, its in _object(top).items()],
            }
            for token, logprob, top in zip_longest(*columns)
        ]
    }


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def model_names(listed: Any) -> list[str]:
    """Return the names in a server's list of models, with or without an enclosing object; empty for anything else.

    Source: OpenAI API reference, "List models" (https://platform.openai.com/docs/api-reference/models/list).
    """
    models = listed.get("data") if isinstance(listed, dict) else listed
    models = models if isinstance(models, list) else []
    return [str(model["id"]) for model in models if isinstance(model, dict) and "id" in model]


_LARGE_EXPONENT = re.compile(r"[0-9][eE]\+?[0-9]{3}")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def received(text: str, headers: Mapping[str, str] | None = None) -> ChatResponse:
    """Read a response. NaN and infinities become None, half a surrogate pair U+FFFD: JSON has neither.

    Args:
        text: the body of the response.
        headers: those to keep with the response, by name.

    Raises:
        ValidationError: the text is not JSON, or of another form.
    """
    try:
        response = ChatResponse.model_validate_json(text)
    except ValidationError:
        response = ChatResponse.model_validate_json(_mended(text))
    if "NaN" in text or "Infinity" in text or _LARGE_EXPONENT.search(text):
        response = ChatResponse.model_validate_json(response.model_dump_json())
    if headers:
        response.response_headers = dict(headers)
    return response


def _mended(text: str) -> str:
    """Return JSON without lone surrogates and raw control characters; other texts unchanged."""
    try:
        return _LONE_SURROGATE.sub("\ufffd", json.dumps(json.loads(text, strict=False), ensure_ascii=False))
    except (ValueError, RecursionError):
        return text
