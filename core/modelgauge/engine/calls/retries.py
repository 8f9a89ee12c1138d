"""When a failed attempt is worth another: the author's word, else what the error is; and how long to wait before it."""

import errno
import random
import ssl
from dataclasses import dataclass, field
from typing import Any

from modelgauge.engine.calls.limits import Outcome
from modelgauge.errors import (
    CallTimeoutError,
    DefinitionError,
    InvalidResponseError,
    RunStoppedError,
    SingleCompletionError,
)
from modelgauge.interfaces.sut import ErrorClass, Fatal, Retry

_LASTING = (  # the same file, and the same certificate, will be there the next time
    FileExistsError,
    FileNotFoundError,
    IsADirectoryError,
    NotADirectoryError,
    PermissionError,
    ssl.SSLCertVerificationError,
)
_PASSING = frozenset(
    getattr(errno, name)
    for name in (
        *("EAGAIN", "EBUSY", "EINTR", "EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EADDRINUSE", "EADDRNOTAVAIL"),
        *(
            "EHOSTDOWN",
            "EHOSTUNREACH",
            "ENETDOWN",
            "ENETRESET",
            "ENETUNREACH",
            "ENOTCONN",
            "EPROTO",
            "ESTALE",
        ),
    )
    if hasattr(errno, name)
)
_NOT_CONNECTED = frozenset({"ConnectTimeout", "ConnectTimeoutError", "ConnectionTimeoutError"})
"""What clients (requests, httpx, urllib3, aiohttp) raise where connecting takes too long."""

_OURS = (
    DefinitionError,
    InvalidResponseError,
    RunStoppedError,
    SingleCompletionError,
)  # another call meets them again


def classify(owner: Any, error: Exception) -> ErrorClass:
    """What to do about an error of an attempt.

    Args:
        owner: the SUT or annotator; its `classify_error` is asked first.
        error: what the attempt raised.

    Raises:
        DefinitionError: `classify_error` returned something else.
        Exception: what it raised.
    """
    if isinstance(error, _OURS):
        return None
    verdict: ErrorClass = owner.classify_error(error)
    if verdict is not None:
        _check(owner, verdict)
        return verdict
    if any(one.__name__ in _NOT_CONNECTED for one in type(error).__mro__):
        return Retry(rate_limited=True)  # a server whose queue of connections is full says nothing at all
    return Retry() if _may_pass(error) else None


def _may_pass(error: Exception) -> bool:
    """Whether an error of the system is one that another attempt may not meet.

    Clients' own classes of `OSError` (of aiohttp, requests, urllib, ssl, socket) are about the network, and so is,
    for all that is known, one without a number.
    """
    if isinstance(error, (TimeoutError, CallTimeoutError, ConnectionError)):
        return True
    if not isinstance(error, OSError) or isinstance(error, _LASTING):
        return False
    is_plain = type(error).__module__ == "builtins"
    return not is_plain or error.errno is None or error.errno in _PASSING


def _check(owner: Any, verdict: object) -> None:
    """Refuse a verdict of another class, and waits that never end."""
    if isinstance(verdict, Fatal):
        return
    if isinstance(verdict, Retry):
        after: object = verdict.after
        if after is None or (isinstance(after, int | float) and after >= 0):
            return
    raise DefinitionError(
        f"classify_error of '{owner.uid}' returned {verdict!r}.",
        fix="Return Retry(), Retry(after=seconds), Fatal() or None.",
    )


def outcome_of(verdict: ErrorClass, error: Exception) -> Outcome:
    """The outcome of a failed attempt, for a limiter."""
    if isinstance(verdict, Retry):
        if isinstance(error, (TimeoutError, CallTimeoutError)) and not verdict.rate_limited:
            return Outcome.timed_out
        return Outcome.rate_limited if verdict.rate_limited else Outcome.server_error
    return Outcome.other


@dataclass(slots=True)
class Backoff:
    """Exponential waits with full jitter (Brooker, "Exponential Backoff And Jitter", AWS 2015).

    Args:
        first: the longest first wait, in seconds; it doubles with each attempt.
        most: the longest wait of all.
        source: of randomness.
    """

    first: float = 0.5
    most: float = 30.0
    source: random.Random = field(default_factory=random.Random)

    def wait(self, attempt: int, verdict: ErrorClass) -> float:
        """Seconds before the attempt after `attempt` (from 0); what a server asks for is a lower bound."""
        jittered = self.source.uniform(0, min(self.most, self.first * 2**attempt))
        if isinstance(verdict, Retry) and verdict.after is not None:
            return verdict.after + jittered  # not all at once: the server says the same to everybody
        return jittered
