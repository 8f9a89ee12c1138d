"""Waits that servers ask for, in all their forms."""

import math
import re
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

_RESET = re.compile(r"(x|anthropic)-ratelimit-(?:reset-?)?(.*?)(?:-reset)?", re.IGNORECASE)
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
_UNITS = (3600.0, 60.0, 1.0, 0.001)
_PER_DAY = re.compile(r"per[ _-]?day|\b[RT]PD\b|\bdaily\b", re.IGNORECASE)
_EPOCH = 1e9  # larger numbers are points in time, in seconds; a thousand times larger ones, in milliseconds


def is_for_a_day(error: Any) -> bool:
    """Return whether an error's body mentions a daily limit, which no run waits for."""
    return _PER_DAY.search(str(error)) is not None


def wait_of(headers: Mapping[str, str], details: Any = None) -> float | None:
    """Return how many seconds the server asks to wait; None if it does not say.

    In this order: `retry-after-ms`, OpenAI's; `Retry-After`, a number of seconds or a date (RFC 9110, section
    10.2.3), which is compared with the server's own clock where it sends that; `RetryInfo`, Google's; and
    when the limits are reset (`x-ratelimit-reset-requests` and its like).

    Args:
        headers: of the answer, looked up without regard to case.
        details: `error.details` of the body.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    asked = headers.get("Retry-After", "")
    for seconds in (_number(asked), _until(asked, headers), _retry_info(details)):
        if seconds is not None:
            return seconds
    return _reset(headers)


def _until(date: str, headers: Mapping[str, str]) -> float | None:
    until, now = _timestamp(date), _timestamp(headers.get("Date", ""))
    return None if until is None else max(0.0, until - (time.time() if now is None else now))


def _retry_info(details: Any) -> float | None:
    """Return the delay in Google's details. Source: google/rpc/error_details.proto, `RetryInfo`."""
    for detail in details if isinstance(details, list) else []:
        if isinstance(detail, dict) and str(detail.get("@type")).endswith("google.rpc.RetryInfo"):
            return _duration(str(detail.get("retryDelay", "")))
    return None


def _reset(headers: Mapping[str, str]) -> float | None:
    """Return when the exhausted limits are reset; the soonest of all if the headers do not show which are exhausted."""
    resets = dict(_resets(headers))
    used_up = [seconds for remaining, seconds in resets.items() if headers.get(remaining) == "0"]
    return max(used_up) if used_up else min(resets.values(), default=None)


def _resets(headers: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    """Yield the header with the remainder of each limit, and the seconds until it is reset."""
    for name, text in headers.items():
        found = _RESET.fullmatch(name) if "reset" in name.lower() else None
        if found is None:
            continue
        seconds = _duration(text)
        if seconds is not None:
            limit = f"-{found[2]}" if found[2] else ""
            remaining = "-remaining" if found[1].lower() == "x" else ""
            ending = "" if remaining else "-remaining"
            yield f"{found[1]}-ratelimit{remaining}{limit}{ending}", seconds


def _duration(text: str) -> float | None:
    """Parse seconds from `6m0s`, `120ms` or `34`, or until a point in time, given as a number or a date."""
    number = _number(text)
    if number is not None:
        point = number / 1000 if number > 1000 * _EPOCH else number
        return max(0.0, point - time.time()) if point > _EPOCH else number
    found = _DURATION.fullmatch(text.strip())
    if found is not None and any(found.groups()):
        return sum(unit * float(part or 0) for part, unit in zip(found.groups(), _UNITS, strict=True))
    try:
        return max(0.0, datetime.fromisoformat(text.strip()).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


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
