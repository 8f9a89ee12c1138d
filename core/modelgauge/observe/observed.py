"""The functions around observed ones: what they do is as before, and a span tells of it while somebody records.

`observe`, which makes them, is in `tracing.py`; how spans are kept is in `spans.py`.
"""

import asyncio
import functools
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import Any

from modelgauge.data.shown import shown
from modelgauge.observe.spans import Observation, OpenSpan, inside, marked


def observed(observation: Observation) -> Callable[..., Any]:
    """A function that does what another does, and whose calls are spans.

    Args:
        observation: of the function; a plain or async one, or a generator of either kind.
    """
    target, begin = observation.function, observation.begin

    def plain(*args: Any, **kwargs: Any) -> Any:
        span = begin(args, kwargs)
        with inside(span):
            value = target(*args, **kwargs)
        return _answer(span, value)

    async def coroutine(*args: Any, **kwargs: Any) -> Any:
        return await _awaited(begin(args, kwargs), target(*args, **kwargs))

    def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        return (yield from _steps(begin(args, kwargs), target(*args, **kwargs)))

    wrapper: Callable[..., Any] = plain
    if inspect.isasyncgenfunction(target):
        wrapper = _async_generator(target, begin)
    elif inspect.isgeneratorfunction(target):
        wrapper = generator
    elif inspect.iscoroutinefunction(target):
        wrapper = coroutine
    return marked(functools.wraps(target)(wrapper), observation)


async def _awaited(span: OpenSpan | None, work: Awaitable[Any]) -> Any:
    with inside(span):
        value = await work
    return _answer(span, value)


def _answer(span: OpenSpan | None, value: Any) -> Any:
    """What a call gave: where that goes on (a plain function around an async one, say), its span ends with it."""
    if span is None:
        return value
    if inspect.iscoroutine(value):
        return _awaited(span, value)
    if inspect.isgenerator(value):
        return _steps(span, value)
    if inspect.isasyncgen(value):
        return _async_generator(lambda: value, lambda *_: span)()
    span.returned(value)
    span.end()
    return value


def _steps(span: OpenSpan | None, inner: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """What a generator does; its consumer is not inside of its span."""
    if span is None:
        return (yield from inner)
    parts = span.parts = []
    step: Callable[[], Any] = functools.partial(next, inner)
    try:
        while True:
            try:
                with inside(span, StopIteration):
                    value = step()
            except StopIteration as end:
                return end.value
            parts.append(shown(value))
            try:
                sent = yield value
            except GeneratorExit:
                with inside(span):
                    inner.close()
                raise
            except BaseException as error:  # noqa: BLE001  thrown in by the consumer, for the body to handle
                step = functools.partial(inner.throw, error)
            else:
                step = functools.partial(inner.send, sent)
    finally:
        span.end()


def _async_generator(
    target: Callable[..., AsyncGenerator[Any, Any]], begin: Callable[..., OpenSpan | None]
) -> Callable[..., AsyncGenerator[Any, Any]]:
    """As `_steps`; without a span too, since there is no `yield from` that would hand on what a consumer sends."""

    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        span, inner = begin(args, kwargs), target(*args, **kwargs)
        parts: list[Any] = []
        step: Callable[[], Awaitable[Any]] = functools.partial(anext, inner)
        if span is not None:
            span.parts = parts
        try:
            while True:
                try:
                    with inside(span, StopAsyncIteration):
                        value = await step()
                except StopAsyncIteration:
                    return
                if span is not None:
                    parts.append(shown(value))
                try:
                    sent = yield value
                except GeneratorExit:
                    with inside(span):
                        await inner.aclose()
                    raise
                except BaseException as error:  # noqa: BLE001  thrown in by the consumer, for the body to handle
                    if isinstance(error, asyncio.CancelledError) and span is not None:
                        span.end()  # its consumer has left it, and the loop ends
                    step = functools.partial(inner.athrow, error)
                else:
                    step = functools.partial(inner.asend, sent)
        finally:
            if span is not None:
                span.end()

    return wrapper
