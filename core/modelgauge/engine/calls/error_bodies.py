"""Bodies of HTTP errors: the beginning of the server's response, for the message of the error."""

import re
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException
from typing import Any, TypeVar

from modelgauge.engine.bookkeeping.failures import add_note, describe_error

T = TypeVar("T")

_HTTP_ERRORS = frozenset({"HTTPError", "HTTPStatusError"})
"""Names of the exceptions that clients (urllib, requests, httpx) raise for HTTP errors."""

_LONGEST = 400
_UNFINISHED = re.compile(r"[^\s\"]*$")  # a secret that was cut in two could not be taken out


def note_body(error: BaseException, *, may_wait: bool = False) -> None:
    """Say with an HTTP error how its body begins, unless its message says it already. The body stays to be read.

    Args:
        error: of an author's call; others stay as they are.
        may_wait: whether the body may come from the socket, as it does in urllib: not in the event loop.
    """
    classes = {base.__name__ for base in type(error).__mro__}
    if not isinstance(error, Exception) or _HTTP_ERRORS.isdisjoint(classes):
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
