"""How long an author's pure methods take: they run on the event loop, so a slow one holds up every call."""

import logging
import statistics
from collections.abc import Callable
from time import perf_counter
from typing import ParamSpec, TypeVar

from modelgauge.engine.owners import Owner
from modelgauge.interfaces.sut import PromptResponseSUT

log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

_SLOW = 0.02
_SAMPLE = 20


class Pace:
    """Times the first calls of a method, and says once where it is slow.

    Args:
        method: whose it is, for the author.
        advice: what to do about it.
    """

    def __init__(self, method: str, advice: str) -> None:
        self._method, self._advice = method, advice
        self._seconds: list[float] | None = []

    def of(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the method."""
        if self._seconds is None:
            return function(*args, **kwargs)
        begun = perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            self._took(perf_counter() - begun)

    def _took(self, seconds: float) -> None:
        if self._seconds is None:  # another call was the last one
            return
        self._seconds.append(seconds)
        if len(self._seconds) < _SAMPLE:
            return
        usual, self._seconds = statistics.median(self._seconds), None
        if usual > _SLOW:
            log.warning("%s takes %.0f ms an item; %s.", self._method, 1000 * usual, self._advice)


class TranslationPaces:
    """How long a SUT or an annotator takes to make its request, and to read its response.

    Args:
        owner: the object.
    """

    def __init__(self, owner: Owner) -> None:
        is_sut = isinstance(owner, PromptResponseSUT)
        advice = f"it holds up every call: do in {'evaluate' if is_sut else 'annotate'} what takes long"
        asks = "the translation of a prompt" if is_sut else "translate_request"
        self.request = Pace(f"{asks} of '{owner.uid}'", advice)
        self.response = Pace(f"translate_response of '{owner.uid}'", advice)
