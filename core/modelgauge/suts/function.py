"""SUTs of plain Python functions that write or score texts: the shortest way from an app to a test."""

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from types import FunctionType, MethodType
from typing import Any, ClassVar, cast

from modelgauge.data.prompts import ContinuationPrompt, TextPrompt
from modelgauge.data.responses import SUTCompletion, SUTResponse
from modelgauge.interfaces.changes import Changes
from modelgauge.interfaces.held_values import held_by, value_of
from modelgauge.interfaces.identity import Identified, identified_json
from modelgauge.interfaces.sut import PromptResponseSUT, Request, Response
from modelgauge.observe.spans import get_observation, mark

Answer = str | SUTCompletion

_OF_OWNER = "function."
"""Stands before the names of attributes of the object whose method is called."""

_BOUND = "function_arguments"
"""The name of the setting for the arguments of a partial, by position and by name."""


class _OfFunction(PromptResponseSUT[Request, Response]):
    """A SUT whose `evaluate` calls a function. If the function is observed, its spans are in the item's record.

    The arguments of a `functools.partial` are part of the identity, as those of a constructor are. So are settings that
    change after the SUT was made, in these arguments or in the object whose method is called.
    """

    identity_excludes: ClassVar[frozenset[str]] = frozenset({"function", "max_concurrency"})

    def __init__(
        self,
        uid: str,
        function: Callable[[Request], Response | Awaitable[Response]],
        version: str | int | None = None,
        max_concurrency: int | None = None,
    ) -> None:
        super().__init__(uid)
        self.function = function
        self.cacheable = version is not None
        self.cache_version = version if version is not None else 0
        self.max_concurrency = max_concurrency
        observation = get_observation(function)
        if observation is not None:
            mark(self, observation)  # its spans need no other around them
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
            self.evaluate = self._evaluate_async  # type: ignore[method-assign]  # so it needs no thread

    def why_uncacheable(self, asked: Mapping[str, Identified] | None = None) -> str | None:
        """Say why its calls are not cached, and how they can be."""
        if not self.cacheable:
            return f"'{self.uid}' is a function without a version: give {type(self).__name__}(…, version=1)"
        if opaque := _opaque_arguments(self.function):
            return f"'{self.uid}' is a partial with arguments that have no exact JSON: {', '.join(opaque)}"
        return super().why_uncacheable(asked)

    def further_settings(self, changes: Changes) -> Mapping[str, str]:
        """Return the changed settings, and the arguments of a partial, changed or not."""
        counted = self.settings_counted() if isinstance(self.function, functools.partial) else {}
        bound = {_BOUND: counted[_BOUND].text} if _BOUND in counted else {}
        return {**super().further_settings(changes), **bound}

    def settings_attributes(self) -> dict[str, Any]:
        found, function = super().settings_attributes(), self.function
        if isinstance(function, functools.partial):
            found[_BOUND] = [list(function.args), function.keywords]
        called = _called_by(function)
        if isinstance(called, MethodType):
            found |= {f"{_OF_OWNER}{name}": value for name, value in held_by(called.__self__).items()}
            called = called.__func__
        return {**found, "function": called}

    def settings_place(self, name: str, value: Any) -> tuple[Any, str]:
        called = _called_by(self.function)
        if name.startswith(_OF_OWNER) and isinstance(called, MethodType):
            return called.__self__, name
        return super().settings_place(name, value)

    def evaluate(self, request: Request) -> Response | Awaitable[Response]:
        """Call the function."""
        return self.function(request)

    async def _evaluate_async(self, request: Request) -> Response:
        answer: Any = self.function(request)
        return cast("Response", await answer)


class FunctionSUT(_OfFunction[str, Answer]):
    """Answers text prompts by calling a function. If the function is observed, its spans are in the item's record.

    The arguments of a `functools.partial` are part of the identity, as those of a constructor are. So are settings that
    change after the `FunctionSUT` was made, in these arguments or in the object whose method is called.

    Args:
        uid: the name in records.
        function: takes the prompt's text, returns a str or a `SUTCompletion`; plain or async.
        version: raise it when the function changes. Answers are cached only with a version, since only the author knows
            whether the function has changed.
        max_concurrency: most calls at once; None leaves it to the engine.
    """

    def translate_text_prompt(self, prompt: TextPrompt) -> str:
        """Take the text of a prompt as the request."""
        return prompt.text

    def translate_response(self, request: str, response: Answer) -> SUTResponse:
        """Return the function's answer as the only completion."""
        del request
        completion = SUTCompletion(response) if isinstance(response, str) else response
        return SUTResponse((completion,))


class ScoringFunctionSUT(_OfFunction[ContinuationPrompt, list[SUTCompletion]]):
    """Scores given continuations by calling a function: the counterpart of `FunctionSUT` for a `ContinuationPrompt`.

    Args:
        uid: the name in records.
        function: takes the prompt, without its options, and returns a `SUTCompletion` for each continuation, in order,
            with its text, `logprob`, `is_greedy` and `num_tokens`; plain or async.
        version: raise it when the function changes. Scores are cached only with a version.
        max_concurrency: most calls at once; None leaves it to the engine.
    """

    def translate_continuation_prompt(self, prompt: ContinuationPrompt) -> ContinuationPrompt:
        """Return the prompt without its options, since nothing is sampled."""
        return ContinuationPrompt(prompt.context, prompt.continuations)

    def translate_response(self, request: ContinuationPrompt, response: list[SUTCompletion]) -> SUTResponse:
        """Return the function's completions."""
        del request
        return SUTResponse(response)


def _called_by(function: object) -> object:
    """Return the function or method that a partial or an object with `__call__` calls in the end."""
    if isinstance(function, functools.partial):
        function = function.func
    call: Any = type(function).__call__
    return call.__get__(function) if isinstance(call, FunctionType) else function


def _opaque_arguments(function: object) -> list[str]:
    """Return the names or positions of a partial's arguments without JSON. Functions and classes are code."""
    if not isinstance(function, functools.partial):
        return []
    bound = {**{str(place): value for place, value in enumerate(function.args, start=1)}, **function.keywords}
    return [
        name
        for name, value in bound.items()
        if (isinstance(value, MethodType) or not hasattr(value, "__qualname__"))
        and value_of(value, identified_json).objects
    ]
