"""Errors for answers of status 200 that cannot be used, and whether to retry them."""

import json
from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from modelgauge import Retry, SUTCompletion
from modelgauge.errors import EmptyAnswerError
from modelgauge_openai.address import PATH
from modelgauge_openai.blocking import block_in, block_in_choice
from modelgauge_openai.errors import (
    LATER,
    OTHER_PROTOCOL,
    ChatError,
    MissingLogProbabilitiesChatError,
    reported,
    shortened,
)
from modelgauge_openai.protocol import Answer, ChatResponse, Choice, Request
from modelgauge_openai.response import sut_response

_CHECK_PATH = f"If it happens again and again, check base_url: it ends where {PATH} begins."


def unreadable(url: str, error: ValidationError, text: str) -> ChatError:
    """Return the error for a body that is not a response. It is retryable if the body was cut off, or is not JSON."""
    with suppress(ValueError, RecursionError):
        said = json.loads(text)
        said = said[0] if isinstance(said, list) and said else said
        if isinstance(said, dict) and said.get("error"):
            return reported(url, said)
    first = error.errors(include_url=False)[0]
    start = shortened(text[:200], 100)
    if first["type"] == "json_invalid":
        is_whole = text.lstrip().startswith(("{", "[")) and "EOF" not in first["msg"]
        return ChatError(
            f"{url} answered with {len(text):,} characters that are not {'' if is_whole else 'whole '}JSON "
            f"({first['msg']}): {start}.",
            fix=OTHER_PROTOCOL if is_whole else _CHECK_PATH,
            verdict=None if is_whole else Retry(),
        )
    where = ".".join(str(part) for part in first["loc"])
    return ChatError(
        f"{url} answered with JSON that is not a chat completion: {where + ': ' if where else ''}{first['msg']}: "
        f"{start}.",
        fix=OTHER_PROTOCOL,
    )


def check_answer(url: str, request: Request, response: ChatResponse, *, may_be_single: bool = False) -> None:
    """Refuse a response that lacks what was asked for, so that it is neither scored nor stored.

    Args:
        url: where it came from.
        request: the request, as in the cache.
        response: its response.
        may_be_single: whether one completion is enough, since the others are then asked for one by one.

    Raises:
        ChatError: no choices, fewer than asked for, one that broke off, or no log-probabilities.
        EmptyAnswerError: no text and no token of output, although the answer ended.
        InvalidResponseError: content without a text that is understood.
    """
    if block_in(response) is not None:
        return
    choices = response.choices
    if not choices:
        raise _without_choices(url, response)
    for choice in choices:
        _check_choice(url, choice)
    asked = request.get("n", 1)
    if len(choices) < asked and not (may_be_single and len(choices) == 1):
        raise ChatError(
            f"{url} answered with {len(choices)} of {asked} completions.",
            fix="The server returns no more per call; ?completions=many_calls asks for them one by one.",
        )
    if not request.get("logprobs") and all(map(_has_plain_text, choices)):
        return  # nearly always
    ours = sut_response(response, None)
    if request.get("logprobs") and any(map(_lacks_logprobs, ours.completions)):
        raise MissingLogProbabilitiesChatError(
            f"{url} answered without the log-probabilities that were asked for.",
            fix="Leave top_logprobs out; for a judge, say in the name of the model that it has none: ?logprobs=false",
        )
    if ours.usage is not None and ours.usage.output_tokens == 0 and all(map(_is_empty, ours.completions)):
        raise EmptyAnswerError(f"{url} answered without any text, and counted no token of output.", fix=LATER)


def _has_plain_text(choice: Choice) -> bool:
    content = choice.message.content if isinstance(choice.message, Answer) else choice.message
    return isinstance(content, str) and bool(content)


def _lacks_logprobs(completion: SUTCompletion) -> bool:
    has_own_text = bool(completion.text) and "refusal" not in completion.metadata and not completion.blocked
    return has_own_text and completion.top_logprobs is None


def _is_empty(completion: SUTCompletion) -> bool:
    """Return whether a completion ended by itself and is empty."""
    return completion.is_empty and not completion.reasoning and completion.finish_reason in (None, "", "stop")


def _check_choice(url: str, choice: Choice) -> None:
    """Refuse a completion that broke off, or that has no message though no content filter withheld it."""
    if block_in_choice(choice) is not None:
        return
    error = (choice.model_extra or {}).get("error")  # OpenRouter's
    if error:
        raise reported(url, {"error": error})
    if choice.finish_reason == "error":
        raise ChatError(
            f"{url} broke off: the reason why a completion ended is 'error'.", fix=LATER, verdict=Retry()
        )
    if choice.message is None:
        is_null = "message" in choice.model_fields_set
        raise ChatError(
            f"{url} answered with a choice without a message: {shortened(choice.model_dump_json(), 100)}.",
            fix=LATER if is_null else OTHER_PROTOCOL,
            verdict=Retry() if is_null else None,
        )


def _without_choices(url: str, response: ChatResponse) -> ChatError:
    held: dict[str, Any] = response.model_extra or {}
    is_error = any(isinstance(held.get(name), str | list) for name in ("message", "detail"))
    if held.get("error") or is_error:
        return reported(url, held)
    if "choices" in response.model_fields_set or not held or held.get("object") == "chat.completion":
        return ChatError(f"{url} answered without any choices.", fix=LATER, verdict=Retry())
    return ChatError(
        f"{url} answered with JSON that is not a chat completion: {shortened(response.model_dump_json(), 100)}.",
        fix=OTHER_PROTOCOL,
    )
