"""The functions around observed ones: what they do is as before, and a span tells of it while somebody collects.

`observe`, which makes them, is in `tracing.py`; how spans are kept is in `modelgauge/observe/spans.py`.
"""

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import nullcontext
from typing import Any

from modelgauge.data.shown import shown, shown_parts
from modelgauge.errors import DefinitionError
from modelgauge.observe.spans import OpenSpan, arguments, begin, ending, inside, marked
from modelgauge.wording.articles import a_thing


class Observation:
    """How the calls of one function become spans.

    Args:
        target: the function.
        kind: the type of the spans.
        metrics: judge them.
        name: of the spans; the function's where there is none.
        metadata: of the spans.

    Raises:
        DefinitionError: the target is no function.
    """

    def __init__(
        self,
        target: Callable[..., Any],
        kind: str | None,
        metrics: tuple[Any, ...],
        name: str | None,
        metadata: dict[str, Any],
    ) -> None:
        if isinstance(target, staticmethod | classmethod) or not callable(target) or inspect.isclass(target):
            raise DefinitionError(
                f"@observe got {a_thing(target)}, not a function.",
                fix="Write @observe directly above def, below @staticmethod, @classmethod and @property.",
            )
        self._name = shown(name) or str(getattr(target, "__name__", type(target).__name__))
        self._kind, self.metrics, self._metadata = shown(kind), metrics, shown_parts(metadata)
        try:
            self._signature: inspect.Signature | None = inspect.signature(target)
        except (TypeError, ValueError):  # a built-in without one
            self._signature = None

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> OpenSpan | None:
        """Open the span of a call; None where nobody collects."""
        return begin(
            self._name,
            self._kind,
            lambda: arguments(self._signature, args, kwargs),
            metrics=self.metrics,
            of=self,
            metadata=dict(self._metadata),
        )


class _Begun:
    """A call whose span is open already."""

    def __init__(self, span: OpenSpan) -> None:
        self._span = span

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> OpenSpan:
        """Its span."""
        del args, kwargs
        return self._span


def observed(target: Callable[..., Any], observation: Observation) -> Callable[..., Any]:
    """A function that does what another does, and whose calls are spans.

    Args:
        target: the function; a plain or async one, or a generator of either kind.
        observation: of its calls.
    """
    if inspect.isasyncgenfunction(target):
        wrapper: Callable[..., Any] = _async_generator(target, observation)
    elif inspect.isgeneratorfunction(target):
        wrapper = _generator(target, observation)
    elif inspect.iscoroutinefunction(target):
        wrapper = _coroutine(target, observation)
    else:
        wrapper = _function(target, observation)
    return marked(wrapper, observation, observation.metrics)


def _function(target: Callable[..., Any], observation: Observation) -> Callable[..., Any]:
    @functools.wraps(target)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        span = observation.begin(args, kwargs)
        if span is None:
            return target(*args, **kwargs)
        try:
            with inside(span):
                value = target(*args, **kwargs)
        except BaseException as error:
            span.end(error)
            raise
        return _answer(span, value)

    return wrapper


def _coroutine(target: Callable[..., Any], observation: Observation) -> Callable[..., Any]:
    @functools.wraps(target)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        span = observation.begin(args, kwargs)
        work = target(*args, **kwargs)
        return await (work if span is None else _awaited(span, work))

    return wrapper


async def _awaited(span: OpenSpan, work: Coroutine[Any, Any, Any]) -> Any:
    try:
        with inside(span):
            value = await work
    except BaseException as error:
        span.end(error)
        raise
    return _answer(span, value)


def _answer(span: OpenSpan, value: Any) -> Any:
    """What a call gave: where that goes on (a plain function around an async one, say), its span ends with it."""
    if inspect.iscoroutine(value):
        return _awaited(span, value)
    if inspect.isgenerator(value):
        return _generator(lambda: value, _Begun(span))()
    if inspect.isasyncgen(value):
        return _async_generator(lambda: value, _Begun(span))()
    span.returned(value)
    span.end(None)
    return value


def _generator(target: Callable[..., Any], observation: Observation | _Begun) -> Callable[..., Any]:
    @functools.wraps(target)
    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        span = observation.begin(args, kwargs)
        inner = target(*args, **kwargs)
        if span is None:
            return (yield from inner)
        produced: list[Any] = []
        resume: Callable[[], Any] = functools.partial(next, inner)
        with ending(span, produced):
            while True:
                try:
                    with inside(span):  # only while the body runs: the consumer is not inside
                        value = resume()
                except StopIteration as end:
                    return end.value
                produced.append(shown(value))
                try:
                    sent = yield value
                except GeneratorExit:
                    with inside(span):
                        inner.close()
                    raise
                except BaseException as error:  # noqa: BLE001  thrown in by the consumer, for the body to handle
                    resume = functools.partial(inner.throw, error)
                else:
                    resume = functools.partial(inner.send, sent)

    return wrapper


def _async_generator(target: Callable[..., Any], observation: Observation | _Begun) -> Callable[..., Any]:
    @functools.wraps(target)
    async def wrapper(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        span = observation.begin(args, kwargs)
        inner = target(*args, **kwargs)
        produced: list[Any] = []
        resume: Callable[[], Any] = functools.partial(anext, inner)
        end = None if span is None else ending(span, produced)
        # Without a span too: there is no `yield from` that would hand on what the consumer sends and throws in.
        with nullcontext() if end is None else end:
            while True:
                try:
                    with nullcontext() if span is None else inside(span):
                        value = await resume()
                except StopAsyncIteration:
                    return
                if span is not None:
                    produced.append(shown(value))
                try:
                    sent = yield value
                except GeneratorExit:
                    with nullcontext() if span is None else inside(span):
                        await inner.aclose()
                    raise
                except BaseException as error:  # noqa: BLE001  thrown in by the consumer, for the body to handle
                    if end is not None and isinstance(error, asyncio.CancelledError):
                        end.left_by = error  # its loop ends, in which its consumer has left it
                    resume = functools.partial(inner.athrow, error)
                else:
                    resume = functools.partial(inner.asend, sent)

    return wrapper
