"""Replacing unusable answers in the cache by new ones, for `resume --retry-failed`."""

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
    """Return whether the current call must bypass the cache."""
    return _asks_afresh.get()


def note_reused(key: str) -> None:
    """Record that a call took its answer from the cache."""
    if (reused := _reused.get()) is not None:
        reused.append(key)


async def replacing(
    ask: Callable[[], Awaitable[T]], options: RunOptions, is_unusable: Callable[[T], bool] | None = None
) -> T:
    """Ask, and ask once more without the cache if cached answers turn out to be unusable.

    Args:
        ask: called to make the calls and read their answers.
        options: the options of the run. Without `retry_failed`, nothing is asked twice.
        is_unusable: decides it for what `ask` returned. If `ask` raises, the answers are unusable.
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
    """Collect the calls of the block that took their answers from the cache, also for an enclosing block."""
    outer, reused = _reused.get(), list[str]()
    token = _reused.set(reused)
    try:
        yield reused
    finally:
        _reused.reset(token)
        if outer is not None:
            outer += reused
