"""Retries: classification of errors and backoff. The author's `classify_error` decides first."""

import errno
import random
import re
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from modelgauge.config.run_options import RunOptions
from modelgauge.data.responses import Usage
from modelgauge.engine.bookkeeping.failures import add_note
from modelgauge.engine.calls.http_errors import http_status, retry_after
from modelgauge.engine.calls.limits import Outcome
from modelgauge.engine.calls.waiting import Server
from modelgauge.errors import (
    BlockedError,
    CallTimeoutError,
    DefinitionError,
    EmptyAnswerError,
    InvalidResponseError,
    ModelGaugeError,
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


def _numbers(*names: str) -> frozenset[int]:
    return frozenset(getattr(errno, name) for name in names if hasattr(errno, name))


_PASSING = _numbers(
    *("EAGAIN", "EBUSY", "EINTR", "EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EADDRINUSE", "EADDRNOTAVAIL"),
    *("ENETRESET", "ENOTCONN", "EPROTO", "ESTALE"),
)
_NO_WAY = _numbers("ECONNREFUSED", "EHOSTDOWN", "EHOSTUNREACH", "ENETDOWN", "ENETUNREACH")
_NOBODY_THERE = frozenset({"ClientConnectorError", "ConnectError", "NewConnectionError"})
"""Names of the exceptions that clients (aiohttp, httpx, urllib3) raise if they find no server."""

_NOT_IN_TIME = frozenset({"ConnectTimeout", "ConnectTimeoutError", "ConnectionTimeoutError"})
"""Names of the exceptions that clients (requests, httpx, urllib3, aiohttp) raise if connecting takes too long."""

_SEVERAL = "Multiple exceptions: "
"""The prefix of asyncio's combined error for all addresses of a host, such as both of localhost."""

_TRANSIENT_STATUSES = frozenset({408, 409, 425})
_LASTING_STATUSES = frozenset({501, 505})
_FATAL_STATUSES = frozenset({401, 402})
"""A wrong key, an unpaid account. 403 and 404 may be about one request only."""

_LONG = 10.0  # seconds
# A retry would raise them again.
_OURS = (BlockedError, DefinitionError, InvalidResponseError, RunStoppedError, SingleCompletionError)


def classify(owner: Any, error: Exception) -> ErrorClass:
    """Classify the error of an attempt.

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
    status = http_status(error)
    if status is not None:
        return _verdict_on_status(status, error)
    return _without_connection(error) or (Retry() if _may_pass(error) else None)


def _verdict_on_status(status: int, error: Exception) -> ErrorClass:
    """Return what to do about an answer that is an HTTP error."""
    if status == 429:
        return Retry(after=retry_after(error), rate_limited=True)
    if status in _TRANSIENT_STATUSES or (status >= 500 and status not in _LASTING_STATUSES):
        return Retry(after=retry_after(error))
    return Fatal() if status in _FATAL_STATUSES else None


def _without_connection(error: Exception) -> Retry | None:
    """Classify an attempt that found no server; return None if it may have found one."""
    wrapped = [] if isinstance(error, ModelGaugeError) else list(_wrapped(error))
    if any(isinstance(cause, ssl.SSLError) for cause in wrapped):
        return None
    if any(_found_nobody(cause) for cause in wrapped):
        return Retry(unreachable=True)
    # Or a server whose queue of connections is full: it says nothing at all.
    is_late = any(_is_named(cause, _NOT_IN_TIME) for cause in wrapped)
    return Retry(rate_limited=True, unreachable=True) if is_late else None


def _wrapped(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and the errors that it wraps: its cause, reason and arguments."""
    found = [error]
    for cause in found:
        yield cause
        several = cause.exceptions if isinstance(cause, BaseExceptionGroup) else cause.args
        inner = [
            each
            for each in (cause.__cause__, getattr(cause, "reason", None), *several)
            if isinstance(each, BaseException)
        ]
        found += [each for each in inner if not any(each is known for known in found)]


def _found_nobody(error: BaseException) -> bool:
    if isinstance(error, socket.gaierror) or _is_named(error, _NOBODY_THERE):
        return True
    if not isinstance(error, OSError):
        return False
    numbers = {error.errno}
    if error.errno is None and str(error).startswith(_SEVERAL):
        numbers = {int(number) for number in re.findall(r"\[Errno (\d+)\]", str(error))}
    return bool(numbers) and numbers <= _NO_WAY


def _is_named(error: BaseException, names: frozenset[str]) -> bool:
    return any(cls.__name__ in names for cls in type(error).__mro__)


def _may_pass(error: Exception) -> bool:
    """Return whether retrying after this `OSError` may help.

    Clients' subclasses of `OSError` (aiohttp, requests, urllib, ssl, socket) concern the network. An `OSError`
    without `errno` is assumed to be a network error.
    """
    if isinstance(error, (TimeoutError, CallTimeoutError, ConnectionError, EmptyAnswerError)):
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


def get_outcome(verdict: ErrorClass, error: Exception) -> Outcome:
    """Return the outcome of a failed attempt, for a limiter."""
    if not isinstance(verdict, Retry):
        return Outcome.other
    if verdict.rate_limited:
        return Outcome.rate_limited
    if verdict.unreachable:
        return Outcome.unreachable
    is_late = isinstance(error, (TimeoutError, CallTimeoutError))
    return Outcome.timed_out if is_late else Outcome.server_error


@dataclass(slots=True)
class Backoff:
    """Exponential waits with full jitter (Brooker, "Exponential Backoff And Jitter", AWS 2015).

    Where a rate limit does not say how long it lasts, it may be a minute's, and the server may count what it refuses:
    then waits grow longer, and none is shorter than half of its bound.

    Args:
        first: the longest first wait, in seconds; it doubles with each attempt.
        most: the longest wait of all.
        most_limited: the longest wait for a rate limit.
        source: of randomness.
    """

    first: float = 0.5
    most: float = 30.0
    most_limited: float = 60.0
    source: random.Random = field(default_factory=random.Random)

    def wait(self, attempt: int, verdict: ErrorClass) -> float:
        """Return the seconds to wait before retrying after `attempt` (from 0), at least as long as the server asks."""
        asked = verdict.after if isinstance(verdict, Retry) else None
        is_limited = isinstance(verdict, Retry) and verdict.rate_limited and asked is None
        bound = min(self.most_limited if is_limited else self.most, self.first * 2.0**attempt)
        jittered = self.source.uniform(bound / 2 if is_limited else 0, bound)
        return jittered + (asked or 0.0)  # not all at once: the server says the same to everybody


class Attempts:
    """The attempts of one call: how many failed, and whether and when another follows.

    Args:
        options: of the run.
        backoff: the pauses.
        server: what all calls know of who answers.
        queued: when the call began to wait for a place, in seconds.
        failed: how many attempts have failed already.

    Attributes:
        is_shut_out: whether the server limits the rate of all calls for longer than one may take.
    """

    def __init__(
        self, options: RunOptions, backoff: Backoff, server: Server, queued: float, failed: int
    ) -> None:
        self._options, self._backoff, self._server = options, backoff, server
        self._failed = failed
        self._limited = 0  # by a rate limit, of any call, when the last attempt was sent
        self._answers: int | None = None  # to all calls, when this one was first sent
        self._answers_then: int | None = None  # and when it first found no server
        self.is_shut_out = False
        self._begun, self._deadline = queued, queued + options.call_timeout

    def begin(self, queued: float, now: float) -> float:
        """Begin an attempt; return the seconds that are left.

        Args:
            queued: when it began to wait for a place, in seconds.
            now: when it has one.
        """
        self._deadline += now - queued  # a call that fails because others are before it is lost for nothing
        self._begun, self._limited = now, self._server.limited
        if self._answers is None:
            self._answers = self._server.answers
        return self._deadline - now

    def pause_after(self, verdict: ErrorClass, error: Exception, now: float) -> float | None:
        """Return the seconds before the next attempt; None to give up.

        Args:
            verdict: the class of the error.
            error: of the last attempt.
            now: when that ended, in seconds.
        """
        if not isinstance(verdict, Retry) or not self._options.max_retries:
            return None
        if verdict.unreachable and not self._was_passed():
            return 0.0  # all calls wait for the server together
        is_limited = verdict.rate_limited and not verdict.unreachable
        if is_limited:
            vain = self._server.limits(self._limited, now)
        else:
            vain = self._failed = self._failed + 1
        if self._failed > self._options.max_retries:
            return None
        wait = self._backoff.wait(vain - 1, verdict)
        if is_limited:
            others = now + wait - self._server.limited_since if self._answers == self._server.answers else 0.0
            self.is_shut_out = max(others, verdict.after or 0.0) > self._options.call_timeout
            if wait > _LONG and not self.is_shut_out:
                self._server.tell_limited()
        return wait if self._is_time_left(verdict, error, wait, now) else None

    def _was_passed(self) -> bool:
        """Return whether other calls were answered since this one first found no server."""
        if self._answers_then is None:
            self._answers_then = self._server.answers
        return self._server.answers > self._answers_then

    def _is_time_left(self, verdict: Retry, error: Exception, wait: float, now: float) -> bool:
        if verdict.after is not None and now + verdict.after >= self._deadline:
            seconds = self._options.call_timeout
            add_note(
                error,
                f"It asks to wait {verdict.after:g} s, and a call may take {seconds:g} s in all: raise --call-timeout.",
            )
        # One that takes as long as the last, where that ended by its time-out only, could not end either.
        needed = now - self._begun if isinstance(error, CallTimeoutError) else 0.0
        return now + wait + needed < self._deadline


def usage_in(error: Exception) -> Usage | None:
    """Return the usage of an answer that raised an error; None if the error does not report it."""
    usage = getattr(error, "usage", None)
    return usage if isinstance(usage, Usage) else None
