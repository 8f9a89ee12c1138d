"""Waiting for several coroutines: for all of them, whatever fails, since they may be paid, and the cache keeps that."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from modelgauge.engine.bookkeeping.failures import StageError
from modelgauge.errors import RunStoppedError

T = TypeVar("T")


async def all_done(work: Sequence[Coroutine[Any, Any, T]]) -> list[T | BaseException]:
    """Run coroutines at once; return what they returned or raised, in their order."""
    if len(work) == 1:  # nearly always: nothing to gather
        try:
            return [await work[0]]
        except StageError as failure:
            return [failure]
    return await asyncio.gather(*work, return_exceptions=True)


async def all_of(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines at once; return what they returned, in their order.

    Raises:
        RunStoppedError: one of them raised it, so that no call is sent any more.
        BaseException: else the first that was raised, once all have ended.
    """
    results = await all_done(work)
    failures = [one for one in results if isinstance(one, BaseException)]
    if failures:
        raise min(failures, key=lambda one: not isinstance(one, RunStoppedError))
    return [one for one in results if not isinstance(one, BaseException)]
