"""What goes wrong in a call, in words, and whether another attempt is worth it. Nothing here does HTTP."""

import json
import math
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

from pydantic import ValidationError

from modelgauge import Fatal, Retry
from modelgauge.errors import CallError, MissingLogProbabilitiesError
from modelgauge_openai.address import PATH
from modelgauge_openai.protocol import ChatRequest, ChatResponse
from modelgauge_openai.response import text_of

Verdict = Retry | Fatal | None

_LONGEST_QUOTE = 500
_TRANSIENT = frozenset({408, 409, 425})
_NEVER_BETTER = frozenset({501, 505})  # a 5xx that no waiting mends
_REFUSED = frozenset({400, 403, 404, 422})  # of the request, or of the model
_HOPELESS = frozenset({401, 402, 403, 404, 405})

LATER = "Run the same command again later, or allow more retries."
_CHECK_KEY = "Check the key: OPENAI_API_KEY in the environment, or api_key under [openai] in secrets.toml."
_CHECK_NAMES = f"Check the name of the model, and that base_url ends where {PATH} begins."
_CHECK_BILLING = "Check the plan and the billing of the account."
_FIX_BY_CODE = {  # codes of errors that no further call mends, whatever their status
    "account_deactivated": _CHECK_BILLING,
    "billing_hard_limit_reached": _CHECK_BILLING,
    "billing_not_active": _CHECK_BILLING,
    "insufficient_quota": _CHECK_BILLING,
    "invalid_api_key": _CHECK_KEY,
    "model_not_found": _CHECK_NAMES,
}
_NO_LOGPROBS = "Where the model has no log-probabilities, say so in its name: ?logprobs=false"
_NO_SCHEMA = (
    "Where the model has no structured output, say so in its name: ?structured_output=false. Where it only "
    "refuses the response_schema, mend that."
)
_FIX_BY_WORDS = (  # of the server, where it refuses what not every model has
    (re.compile(r"log_?prob", re.IGNORECASE), _NO_LOGPROBS),
    (re.compile(r"response[_ ]format|json[_ ]schema|structured[_ ]output", re.IGNORECASE), _NO_SCHEMA),
)
_FIX_BY_STATUS = {
    401: _CHECK_KEY,
    402: _CHECK_BILLING,
    403: "Check what the account of the key may use.",
    404: _CHECK_NAMES,
    405: _CHECK_NAMES,
    429: "Lower the concurrency or the rate of requests.",
}


class ChatError(CallError):
    """A call that was not answered as the protocol says.

    Args:
        problem: as in every error.
        fix: likewise.
        verdict: what the engine is told by `classify_error`.
    """

    verdict: Verdict = None

    def __init__(self, problem: str, *, fix: str, verdict: Verdict = None) -> None:
        super().__init__(problem, fix=fix)
        self.verdict = verdict


class MissingLogProbabilitiesChatError(ChatError, MissingLogProbabilitiesError):
    """An answer without the log-probabilities that were asked for."""


# --- answers with another status than 200 -------------------------------------------------------------------


def refused(url: str, status: int, headers: Mapping[str, str], body: bytes) -> ChatError:
    """The error of an answer that is no completion.

    Args:
        url: where it came from.
        status: its HTTP status, or that which its body names.
        headers: looked up without regard to case.
        body: as it came, without the key.
    """
    message, code = _server_words(body)
    details = ", ".join(part for part in (code, _request_name(headers)) if part)
    verdict = _verdict(status, code, headers)
    return ChatError(
        f"{url} answered {status}{_phrase(status)}: {message}{f' ({details})' if details else ''}.",
        fix=_fix(status, code, headers, message),
        verdict=verdict,
    )


def _verdict(status: int, code: str | None, headers: Mapping[str, str]) -> Verdict:
    if code in _FIX_BY_CODE or status in _HOPELESS or 300 <= status < 400:
        return Fatal()
    if status == 429:
        return Retry(after=retry_after(headers), rate_limited=True)
    if status in _TRANSIENT or (status >= 500 and status not in _NEVER_BETTER):
        return Retry(after=retry_after(headers))
    return None


def _fix(status: int, code: str | None, headers: Mapping[str, str], message: str) -> str:
    if 300 <= status < 400:
        target = shortened(headers.get("Location", "it names none"))
        return f"Give the address that it points to as base_url: {target}"
    if code in _FIX_BY_CODE:
        return _FIX_BY_CODE[code]
    if status in _REFUSED:
        for words, fix in _FIX_BY_WORDS:
            if words.search(message):
                return fix
    if status in _FIX_BY_STATUS:
        return _FIX_BY_STATUS[status]
    return LATER if status in _TRANSIENT or status >= 500 else "Change the prompt or its options accordingly."


def retry_after(headers: Mapping[str, str]) -> float | None:
    """How long the server asks to wait, in seconds; None where it does not say.

    `retry-after-ms` is OpenAI's; `Retry-After` is a number of seconds or a date (RFC 9110, section 10.2.3),
    which is compared with the server's own clock where it sends that.
    """
    text = headers.get("retry-after-ms")
    if text is not None and (milliseconds := _number(text)) is not None:
        return milliseconds / 1000
    text = headers.get("Retry-After")
    if text is None:
        return None
    seconds = _number(text)
    if seconds is not None:
        return seconds
    until = _timestamp(text)
    if until is None:
        return None
    now = _timestamp(headers.get("Date", ""))
    return max(0.0, until - (time.time() if now is None else now))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _timestamp(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None


def _server_words(body: bytes) -> tuple[str, str | None]:
    """The message and the code in the body of an error, in any of the forms that servers use."""
    text = body.decode("utf-8", "replace")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return shortened(text) or "nothing more", None
    error = data.get("error", data) if isinstance(data, dict) else data
    if not isinstance(error, dict):
        return shortened(_as_text(error)), None
    message = error.get("message", error.get("detail", error))
    names = (error.get("code"), error.get("type"))  # some servers write the status as the code
    code = next((shortened(name, 80) for name in names if isinstance(name, str) and name), None)
    return shortened(_as_text(message)), code


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def shortened(text: str, most: int = _LONGEST_QUOTE) -> str:
    """On one line, not too long, without a closing full stop."""
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= most else f"{line[:most]}…"


def _request_name(headers: Mapping[str, str]) -> str | None:
    name = headers.get("x-request-id")
    return f"request {shortened(name, 80)}" if name else None


def _phrase(status: int) -> str:
    try:
        return f" {HTTPStatus(status).phrase}"
    except ValueError:
        return ""


# --- answers with status 200 that are none ------------------------------------------------------------------


def unreadable(url: str, error: ValidationError, body: bytes) -> ChatError:
    """The error of a body that was cut off, which may not happen again, or that has another form."""
    first = error.errors(include_url=False)[0]
    start = shortened(body[:200].decode("utf-8", "replace"), 100)
    if first["type"] == "json_invalid":
        return ChatError(
            f"{url} answered with {len(body):,} bytes that are no whole JSON ({first['msg']}): {start}.",
            fix=f"Where it happens again and again, check base_url: it ends where {PATH} begins.",
            verdict=Retry(),
        )
    where = ".".join(str(part) for part in first["loc"])
    return ChatError(
        f"{url} answered with JSON that is no chat completion: {where + ': ' if where else ''}{first['msg']}: {start}.",
        fix="Check that base_url names a server of the chat-completions protocol.",
    )


def check_answer(url: str, request: ChatRequest, response: ChatResponse) -> None:
    """Refuse a response that does not hold what was asked for: it must not be scored, nor kept.

    Raises:
        ChatError: no choices, fewer than asked for, one that broke off, or no log-probabilities.
    """
    choices = response.choices
    if not choices:
        raise _without_choices(url, response)
    if any(choice.finish_reason == "error" for choice in choices):
        raise ChatError(
            f"{url} broke off: the reason why a completion ended is 'error'.",
            fix=LATER,
            verdict=Retry(),
        )
    asked = request.get("n", 1)
    if len(choices) < asked:
        raise ChatError(
            f"{url} answered with {len(choices)} of {asked} completions.",
            fix="The server gives no more at once: leave num_completions out, and repeat each prompt.",
        )
    if request.get("logprobs") and any(each.logprobs is None and text_of(each.message) for each in choices):
        raise MissingLogProbabilitiesChatError(
            f"{url} answered without the log-probabilities that were asked for.",
            fix="Leave top_logprobs out; where judges are asked, say in the name of the model that it gives none: "
            "?logprobs=false",
        )


def _without_choices(url: str, response: ChatResponse) -> ChatError:
    error = (response.model_extra or {}).get("error")
    if error:
        code = error.get("code") if isinstance(error, dict) else None
        status = code if isinstance(code, int) and 300 <= code < 600 else 502
        return refused(url, status, {}, json.dumps({"error": error}).encode())
    return ChatError(f"{url} answered without any choices.", fix=LATER, verdict=Retry())
