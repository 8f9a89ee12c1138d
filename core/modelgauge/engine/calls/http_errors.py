"""HTTP errors of common clients: their status, the wait that the server asks for, and the beginning of their body."""

import math
import re
import time
from collections.abc import Callable
from contextlib import suppress
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Any, TypeVar

from modelgauge.engine.bookkeeping.failures import add_note, describe_error

T = TypeVar("T")

_HTTP_ERRORS = frozenset({"HTTPError", "HTTPStatusError", "ClientResponseError", "APIStatusError"})
"""Names of the exceptions that clients (urllib, requests; httpx; aiohttp; openai, anthropic) raise for HTTP errors."""

_LONGEST = 400
_UNFINISHED = re.compile(r"[^\s\"]*$")  # a secret that was cut in two could not be taken out


def http_status(error: BaseException) -> int | None:
    """Return the status of an HTTP error of a common client; None for any other error."""
    if not _is_http_error(error):
        return None
    places = ((error, "status_code"), (error, "status"), (getattr(error, "response", None), "status_code"))
    found = (getattr(owner, name, None) for owner, name in places)
    return next((status for status in found if isinstance(status, int)), None)


def retry_after(error: BaseException) -> float | None:
    """Return the seconds of an HTTP error's `Retry-After`, a number or a date (RFC 9110, section 10.2.3)."""
    holders = (error, getattr(error, "response", None))
    headers = next((held for each in holders if (held := getattr(each, "headers", None)) is not None), None)
    asked = None if headers is None else headers.get("Retry-After")
    if asked is None:
        return None
    with suppress(ValueError):
        seconds = float(asked)
        return max(0.0, seconds) if math.isfinite(seconds) else None
    with suppress(ValueError, OverflowError):
        return max(0.0, parsedate_to_datetime(asked).timestamp() - time.time())
    return None


def _is_http_error(error: BaseException) -> bool:
    classes = {base.__name__ for base in type(error).__mro__}
    return not _HTTP_ERRORS.isdisjoint(classes)


def note_body(error: BaseException, *, may_wait: bool = False) -> None:
    """Say with an HTTP error how its body begins, unless its message says it already. The body stays to be read.

    Args:
        error: of an author's call; others stay as they are.
        may_wait: whether the body may come from the socket, as it does in urllib: not in the event loop.
    """
    if not isinstance(error, Exception) or not _is_http_error(error):
        return
    # Where requests and httpx keep it.
    body: object = getattr(getattr(error, "response", None), "_content", None)
    if body is None and may_wait and not _is_packed(error):
        with suppress(OSError, ValueError, HTTPException):
            body = _beginning(getattr(error, "fp", None))
    if not isinstance(body, bytes):
        return
    text = " ".join(body[: 4 * _LONGEST].decode("utf-8", "replace").split())
    if len(text) > _LONGEST or len(body) > 4 * _LONGEST:
        text = f"{_UNFINISHED.sub('', text[:_LONGEST])}…"
    if text and text not in describe_error(error):
        add_note(error, f"The server says: {text}")


def noting_bodies(method: Callable[[Any], T]) -> Callable[[Any], T]:
    """Return a method for threads, whose HTTP errors say how their bodies begin."""

    def call(request: Any) -> T:
        try:
            return method(request)
        except Exception as error:
            note_body(error, may_wait=True)
            raise

    return call


def _is_packed(error: Exception) -> bool:
    headers = getattr(error, "headers", None)
    return headers is not None and headers.get("Content-Encoding") is not None


def _beginning(response: Any) -> object:
    """Return what has come of a body, without taking it from whoever reads it later."""
    peek = getattr(response, "peek", None)
    return None if peek is None else peek(4 * _LONGEST)
