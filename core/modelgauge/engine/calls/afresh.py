"""Asking anew where an answer of the cache cannot be used, for `resume --retry-failed`: the new answer replaces it."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from modelgauge.config.run_options import RunOptions
from modelgauge.errors import NotCachedError, RunStoppedError, SingleCompletionError

T = TypeVar("T")

_NOT_OF_THE_ANSWER = (NotCachedError, RunStoppedError, SingleCompletionError)

_asks_afresh: ContextVar[bool] = ContextVar("modelgauge_asks_afresh", default=False)
_reused: ContextVar[list[str] | None] = ContextVar("modelgauge_reused", default=None)


def asks_afresh() -> bool:
    """Whether the call that is made now takes no answer of the cache."""
    return _asks_afresh.get()


def note_reused(key: str) -> None:
    """Note that a call took its answer from the cache."""
    if (reused := _reused.get()) is not None:
        reused.append(key)


async def replacing(
    ask: Callable[[], Awaitable[T]], options: RunOptions, is_unusable: Callable[[T], bool] | None = None
) -> T:
    """Ask, and ask once more without the cache if answers of the cache were taken and cannot be used.

    Args:
        ask: makes the calls, and reads their answers.
        options: of the run; without `retry_failed` nothing is asked twice.
        is_unusable: says it of what `ask` returned; what it raised is a reason in any case.
    """
    if not options.retry_failed or asks_afresh():
        return await ask()
    with _noting_reused() as reused:
        try:
            made = await ask()
        except _NOT_OF_THE_ANSWER:
            raise
        except Exception:
            if not reused:
                raise
        else:
            if not (reused and is_unusable is not None and is_unusable(made)):
                return made
    token = _asks_afresh.set(True)
    try:
        return await ask()
    finally:
        _asks_afresh.reset(token)


@contextmanager
def _noting_reused() -> Iterator[list[str]]:
    """Note the calls of the block that took their answers from the cache, for the block around it too."""
    outer, reused = _reused.get(), list[str]()
    token = _reused.set(reused)
    try:
        yield reused
    finally:
        _reused.reset(token)
        if outer is not None:
            outer += reused
