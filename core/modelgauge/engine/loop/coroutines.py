"""Coroutines that never wait: an `async def` without an await in it needs no task, no turn of a loop, no deadline."""

import dis
import inspect
from collections.abc import Coroutine
from functools import lru_cache
from types import CodeType
from typing import Any, TypeVar

T = TypeVar("T")


def never_waits(function: object) -> bool:
    """Whether something is an `async def` that comes to its end in one step, whatever it is given."""
    plain = getattr(function, "__func__", function)
    if not inspect.isfunction(plain) or not plain.__code__.co_flags & inspect.CO_COROUTINE:
        return False  # a function that is only marked as one (`markcoroutinefunction`) returns another's coroutine
    return _ends_in_one_step(plain.__code__)


@lru_cache(maxsize=1024)
def _ends_in_one_step(code: CodeType) -> bool:
    return not any(one.opname == "YIELD_VALUE" for one in dis.get_instructions(code))


def result_of(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine that never waits returns.

    Raises:
        BaseException: what it raises.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    coroutine.close()
    raise RuntimeError("A coroutine waited that never waits.")
