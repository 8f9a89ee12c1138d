"""Errors of calls, and whether to retry them. Nothing here does HTTP.

Errors for answers of status 200 live in `answers.py`.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import get_close_matches
from http import HTTPStatus
from typing import Any

from modelgauge import Fatal, Retry
from modelgauge.errors import CallError, MissingLogProbabilitiesError
from modelgauge_openai.address import PATH
from modelgauge_openai.waiting import is_for_a_day, wait_of

Verdict = Retry | Fatal | None

_LONGEST_QUOTE = 500
_TRANSIENT = frozenset({408, 409, 424, 425})  # 424: generation failed, at TGI and Bedrock
_NEVER_BETTER = frozenset({501, 505})  # a 5xx that no waiting changes
_SPEAKING = frozenset({400, 401, 403, 404, 422, 500})  # with these, servers say in words what they refuse
_MOST_WRAPPINGS = 4
_MOST_NAMED = 3
_HOPELESS = frozenset({401, 402, 403, 404, 405})

LATER = "Run the same command again later, or allow more retries."
_CHECK_KEY = (
    "Check the key: OPENAI_API_KEY in the environment, or api_key under [openai] in secrets.toml; the key of another "
    "service is named by ?key_env=VARIABLE"
)
_CHECK_MODEL = f"Check the name of the model, and that base_url ends where {PATH} begins."
OTHER_PROTOCOL = "Check that base_url names a server of the chat-completions protocol."
_CHECK_BILLING = "Check the plan and the billing of the account."
_FIX_BY_CODE = {  # codes of errors that no further call changes, whatever their status
    "account_deactivated": _CHECK_BILLING,
    "billing_hard_limit_reached": _CHECK_BILLING,
    "billing_not_active": _CHECK_BILLING,
    "insufficient_quota": _CHECK_BILLING,
    "invalid_api_key": _CHECK_KEY,
    "model_not_found": _CHECK_MODEL,
    "model_not_available": _CHECK_MODEL,
    "invalid_model": _CHECK_MODEL,
    "DeploymentNotFound": _CHECK_MODEL,
}
_FIX_BY_FINAL_WORDS = (  # of errors that no further call changes, with any status; the servers stand in the tests
    (
        re.compile(
            r"(incorrect|invalid|missing|expired|no) (api[ _-]?key|x-api-key|proxy server token)"
            r"|api[ _-]?key (is |was )?(not (valid|found|provided)|invalid|expired|missing)",
            re.IGNORECASE,
        ),
        _CHECK_KEY,
    ),
    (
        re.compile(
            r"\b(invalid|unknown|no such) model\b|not a valid model|unable to access model|model not exist"
            r"|no models? loaded|server is pinned to"
            r"|\b(model|deployment)s?\b.{0,200}?\b(does not exist|(is )?not found|could not be found)",
            re.IGNORECASE,
        ),
        _CHECK_MODEL,
    ),
)
_NO_LOGPROBS = "If the model has no log-probabilities, say so in its name: ?logprobs=false"
_NO_SCHEMA = (
    "If the model has no structured output, say so in its name: ?structured_output=false. If it only "
    "refuses the response_schema, change that."
)
_OTHER_LIMIT = (
    "Name the field that limits tokens there: ?max_tokens_field=max_completion_tokens (or =max_tokens)."
)
_REFUSED_FIELDS = (  # what not every server takes: its words, what to do, and with which statuses the words count
    ("logprobs", re.compile(r"log_?prob", re.IGNORECASE), _NO_LOGPROBS, _SPEAKING - {500}),
    (
        "response_format",
        re.compile(r"response[_ ]format|json[_ ]schema|structured[_ ]output", re.IGNORECASE),
        _NO_SCHEMA,
        _SPEAKING,
    ),
    (
        "max_tokens",
        re.compile(
            r"(max_(completion_)?tokens).{0,80}(not support|unsupported|not permitted|unknown)"
            r"|(unsupported|unknown|unrecognized).{0,80}max_(completion_)?tokens",
            re.IGNORECASE,
        ),
        _OTHER_LIMIT,
        _SPEAKING,
    ),
    (
        "prompt",
        re.compile(r"\bprompt\b.{0,40}\b(must|should|has to) be (a |of type )?str(ing)?\b", re.IGNORECASE),
        "Score continuations one by one: ?completions=many_calls",
        _SPEAKING,
    ),
)
_REFUSES_N = re.compile(  # a quoted or lone n; `sending.py` knows whether one was sent
    r"""['"`]n['"`]|\bn must be|passed: n\b|completion choice|(one|multiple) candidate|candidate_?count""",
    re.IGNORECASE,
)
_FIX_BY_STATUS = {
    401: _CHECK_KEY,
    402: _CHECK_BILLING,
    403: "Check what the account of the key may use.",
    404: _CHECK_MODEL,
    405: _CHECK_MODEL,
    429: "Lower the concurrency or the rate of requests.",
}
_STATUS_BY_CODE = {  # of errors that come with status 200
    "rate_limit_exceeded": 429,
    "RESOURCE_EXHAUSTED": 429,
    "invalid_request_error": 400,
    "BadRequestError": 400,
    "NotFoundError": 404,
    "authentication_error": 401,
    "validation": 422,  # TGI's
    "overloaded": 429,
}


class ChatError(CallError):
    """A call that was not answered as the protocol says.

    Args:
        problem: what went wrong.
        fix: what to do about it.
        verdict: what `classify_error` returns.
        refused_field: the field of the request that the server refuses, where its answer says so.
        status: of the answer, if it is the error.
    """

    verdict: Verdict = None
    refused_field: str | None = None
    status: int | None = None

    def __init__(
        self,
        problem: str,
        *,
        fix: str,
        verdict: Verdict = None,
        refused_field: str | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(problem, fix=fix)
        self.verdict = verdict
        self.refused_field = refused_field
        self.status = status


class MissingLogProbabilitiesChatError(ChatError, MissingLogProbabilitiesError):
    """An answer without the log-probabilities that were asked for."""


@dataclass(frozen=True, slots=True)
class _Said:
    """Contents of an error's body, in whatever form the server writes it."""

    message: str
    code: str | None = None
    details: Any = None


def refused(
    url: str, status: int, headers: Mapping[str, str], text: str, *, withheld: str | None = None
) -> ChatError:
    """Return the error for an answer that is not a completion.

    Args:
        url: where it came from.
        status: its HTTP status, or that which its body names.
        headers: looked up without regard to case.
        text: of the body, without the key.
        withheld: the name of a key that was found and not sent.
    """
    said = _said(text)
    details = ", ".join(part for part in (said.code, _request_name(headers)) if part)
    seconds = (
        wait_of(headers, said.details) if status == 429 or status >= 500 or status in _TRANSIENT else None
    )
    for_a_day = status == 429 and is_for_a_day((said.message, said.details))
    fix = _fix(status, said, headers)
    if for_a_day:
        fix = f"This limit is for a day{_until(seconds)}: run the same command again then; it asks only what failed."
    elif withheld and status in (401, 403):
        fix = (
            f"The key {withheld} was not sent there, for it may be another service's: add ?send_key=true, or name "
            "the service's own key by ?key_env=VARIABLE"
        )
    return ChatError(
        f"{url} answered {status}{_phrase(status)}: {said.message}{f' ({details})' if details else ''}.",
        fix=fix,
        verdict=Retry(after=math.inf, rate_limited=True) if for_a_day else _verdict(status, said, seconds),
        refused_field="model" if fix is _CHECK_MODEL else _refused_field(status, said)[0],
        status=status,
    )


def name_models(error: ChatError, model: str, known: Sequence[str]) -> None:
    """Name the nearest models in the error of one that the server does not have.

    Args:
        error: gets another fix.
        model: that was asked for.
        known: those that the server has; none where it does not say.
    """
    nearest = get_close_matches(model, known, n=_MOST_NAMED, cutoff=0.0)
    if nearest and model not in known:
        others = len(known) - len(nearest)
        more = f", and {others} more" if others else ""
        error.fix = f"Correct the name of the model. The server has: {', '.join(nearest)}{more}."


def _until(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f", and over at {datetime.now().astimezone() + timedelta(seconds=seconds):%Y-%m-%d %H:%M %Z}"


def _verdict(status: int, said: _Said, seconds: float | None) -> Verdict:
    if said.code in _FIX_BY_CODE or _final_fix(status, said) or status in _HOPELESS or 300 <= status < 400:
        return Fatal()
    if status == 429:
        return Retry(after=seconds, rate_limited=True)
    if status in _TRANSIENT or (status >= 500 and status not in _NEVER_BETTER):
        return Retry(after=seconds)
    return None


def _final_fix(status: int, said: _Said) -> str | None:
    """Return advice if the server's message implies that no call can succeed."""
    if status not in _SPEAKING:
        return None
    fixes = [fix for words, fix in _FIX_BY_FINAL_WORDS if words.search(said.message)]
    return next(iter(fixes), _refused_field(status, said)[1])


def _refused_field(status: int, said: _Said) -> tuple[str | None, str | None]:
    """Return the field that the server's message rejects, and advice."""
    for field, words, fix, statuses in _REFUSED_FIELDS:
        if status in statuses and words.search(said.message):
            return field, fix
    return "n" if status in _SPEAKING and _REFUSES_N.search(said.message) else None, None


def _fix(status: int, said: _Said, headers: Mapping[str, str]) -> str:
    if 300 <= status < 400:
        target = shortened(headers.get("Location", "it names none"))
        return f"Give the address that it points to as base_url: {target}"
    fix = _FIX_BY_CODE.get(said.code or "") or _final_fix(status, said) or _FIX_BY_STATUS.get(status)
    if fix is not None:
        return fix
    return LATER if status in _TRANSIENT or status >= 500 else "Change the prompt or its options accordingly."


def _said(text: str) -> _Said:
    try:
        error = json.loads(text)
    except (ValueError, RecursionError):
        return _Said(shortened(text) or "nothing more")
    for _ in range(_MOST_WRAPPINGS):  # {"error": …}, [{"error": …}], {"error": [{"message": …}]}
        if isinstance(error, list) and error and isinstance(error[0], dict):
            error = error[0]
        elif isinstance(error, dict) and error.get("error"):
            error = error["error"]
    if not isinstance(error, dict):
        return _Said(shortened(_as_text(error)))
    message = error.get("message", error.get("detail", error))
    if isinstance(message, dict) and message.get("error"):  # LiteLLM's
        message = message["error"]
    # Some servers write the status as the code.
    names = (error.get("code"), error.get("type"), error.get("status"))
    code = next(
        (shortened(name, 80) for name in names if isinstance(name, str) and not _is_status(name)), None
    )
    return _Said(shortened(_as_text(message)), code, error.get("details"))


def _is_status(code: Any) -> bool:
    """Return whether a code equals the status, or is missing, as LiteLLM writes it."""
    return str(code) in ("", "None") or str(code).isdecimal()


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def shortened(text: str, most: int = _LONGEST_QUOTE) -> str:
    """Shorten a text to one line without a closing full stop."""
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


def reported(url: str, body: Mapping[str, Any]) -> ChatError:
    """Return the error that a body with status 200 reports. Its status is the one of its code, else 502."""
    error = body.get("error") or body
    first = error[0] if isinstance(error, list) and error else error
    said = first if isinstance(first, dict) else body
    codes = [str(said.get(name)) for name in ("code", "status", "type", "error_type")]
    statuses = (_STATUS_BY_CODE.get(code, int(code) if code.isdecimal() else 0) for code in codes)
    status = next((status for status in statuses if 300 <= status < 600), 502)
    return refused(url, status, {}, json.dumps(body))
