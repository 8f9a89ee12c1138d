"""What an `async def` that never waits is, and what it returns."""

import asyncio
import inspect
from functools import partial

import pytest

from modelgauge.engine.loop.deadlines import never_waits, run_without_waiting


async def quick(x=1):
    return x


async def awaits(x):
    return await x


async def iterates(x):
    async for _ in x:
        pass


async def enters(x):
    async with x:
        pass


async def comprehends(x):
    return [one async for one in x]


async def makes_a_coroutine():
    return quick()


async def holds_another_that_waits():
    async def inner():
        await asyncio.sleep(0)

    return inner


class Asked:
    async def quick(self):
        return self

    async def awaits(self):
        await asyncio.sleep(0)


def plain():
    return 1


async def generates():
    yield 1


@pytest.mark.parametrize(
    "function", [quick, makes_a_coroutine, holds_another_that_waits, Asked.quick, Asked().quick]
)
def test_what_holds_no_await_never_waits(function):
    assert never_waits(function)


@pytest.mark.parametrize(
    "function",
    [
        *(awaits, iterates, enters, comprehends, Asked().awaits, plain, generates, partial(quick), len, None),
        *(Asked(), Asked),
    ],
)
def test_all_else_may_wait(function):
    assert not never_waits(function)


def test_a_plain_function_that_is_marked_as_a_coroutine_function_may_wait(monkeypatch):
    def marked(x):
        return awaits(x)

    if hasattr(inspect, "markcoroutinefunction"):
        inspect.markcoroutinefunction(marked)
    else:  # before Python 3.12
        monkeypatch.setattr(inspect, "iscoroutinefunction", lambda function: True)
    assert inspect.iscoroutinefunction(marked)
    assert not never_waits(marked)


def test_the_result_comes_without_a_loop():
    assert run_without_waiting(quick(5)) == 5

    async def fails():
        raise KeyError("x")

    with pytest.raises(KeyError):
        run_without_waiting(fails())


def test_one_that_waits_all_the_same_is_refused():
    with pytest.raises(RuntimeError, match="waited"):
        run_without_waiting(asyncio.sleep(0))
