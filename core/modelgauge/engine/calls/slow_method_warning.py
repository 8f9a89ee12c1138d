"""How long an author's code keeps the event loop: what is slow there holds up every call."""

import inspect
import logging
import statistics
from collections.abc import Callable, Coroutine
from time import perf_counter
from typing import Any, ParamSpec, TypeVar

from modelgauge.engine.bookkeeping.failures import of_author
from modelgauge.engine.calls.callee import Owner
from modelgauge.interfaces.sut import PromptResponseSUT

log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

_SLOW = 0.02
_SAMPLE = 20
_FEW = 5  # calls: each of them may hold up the run for a second
_BLOCKS = "all other calls wait meanwhile. Write it as plain `def`, which runs in a thread, or await what it waits for"


class Pace:
    """Times the first calls of a method, and says once where it is slow.

    Args:
        method: whose it is, for the author, and what it does for some milliseconds.
        advice: what to do about it.
        each: how often it does.
        sample: how many calls are timed.
    """

    def __init__(self, method: str, advice: str, each: str = "an item", sample: int = _SAMPLE) -> None:
        self._method, self._advice, self._each, self._sample = method, advice, each, sample
        self._seconds: list[float] | None = []

    def of(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the method."""
        if self._seconds is None:
            return of_author(function, *args, **kwargs)
        begun = perf_counter()
        try:
            return of_author(function, *args, **kwargs)
        finally:
            self._took(perf_counter() - begun)

    def of_steps(self, awaitable: Any) -> Any:
        """The awaitable; a coroutine is timed from each wait to the next, and counts by the longest of these steps."""
        if self._seconds is None or not inspect.iscoroutine(awaitable):
            return awaitable
        return _Timed(awaitable, self._took)

    def _took(self, seconds: float) -> None:
        if self._seconds is None:  # another call was the last one
            return
        self._seconds.append(seconds)
        if len(self._seconds) < self._sample:
            return
        usual, self._seconds = statistics.median(self._seconds), None
        if usual > _SLOW:
            log.warning("%s %.0f ms %s; %s.", self._method, 1000 * usual, self._each, self._advice)


class _Timed(Coroutine[Any, Any, Any]):
    """A coroutine that tells at its end how long it kept the loop at most, from one wait to the next.

    Args:
        coroutine: does the work.
        took: is told, in seconds.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, Any], took: Callable[[float], None]) -> None:
        self._coroutine, self._took, self._longest = coroutine, took, 0.0

    def send(self, value: Any) -> Any:
        return self._step(self._coroutine.send, value)

    def throw(self, *error: Any) -> Any:
        return self._step(self._coroutine.throw, *error)

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def _step(self, step: Callable[..., Any], *given: Any) -> Any:
        begun, waits = perf_counter(), False
        try:
            waits_for = step(*given)
            waits = True
            return waits_for
        finally:
            self._longest = max(self._longest, perf_counter() - begun)
            if not waits:
                self._took(self._longest)


class Paces:
    """How long a SUT or an annotator keeps the loop: as it makes its request, sends it, and reads its response.

    Args:
        owner: the object.
    """

    def __init__(self, owner: Owner) -> None:
        is_sut = isinstance(owner, PromptResponseSUT)
        method = "evaluate" if is_sut else "annotate"
        advice = f"it holds up every call: do in {method} what takes long"
        asks = "the translation of a prompt" if is_sut else "translate_request"
        self.request = Pace(f"{asks} of '{owner.uid}' takes", advice)
        self.response = Pace(f"translate_response of '{owner.uid}' takes", advice)
        self.call = Pace(
            f"async def {method} of '{owner.uid}' blocks the event loop for", _BLOCKS, "a call", _FEW
        )
