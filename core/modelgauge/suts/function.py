"""A SUT of a plain Python function: the shortest way from an app to a test."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, cast

from modelgauge.data.prompts import TextPrompt
from modelgauge.data.responses import SUTCompletion, SUTResponse
from modelgauge.interfaces.identity import Identified
from modelgauge.interfaces.sut import PromptResponseSUT
from modelgauge.observe.spans import mark, observation_of

Answer = str | SUTCompletion


class FunctionSUT(PromptResponseSUT[str, Answer]):
    """Answers text prompts by calling a function. If the function is observed, its spans are in the item's record.

    Args:
        uid: the name in records.
        function: takes the prompt's text, returns a str or a `SUTCompletion`; plain or async.
        version: raise it when the function changes. Answers are cached only with a version, since only the author knows
            whether the function has changed.
        max_concurrency: most calls at once; None leaves it to the engine.
    """

    identity_excludes: ClassVar[frozenset[str]] = frozenset({"function", "max_concurrency"})

    def __init__(
        self,
        uid: str,
        function: Callable[[str], Answer | Awaitable[Answer]],
        version: str | int | None = None,
        max_concurrency: int | None = None,
    ) -> None:
        super().__init__(uid)
        self.function = function
        self.cacheable = version is not None
        self.cache_version = version if version is not None else 0
        self.max_concurrency = max_concurrency
        observation = observation_of(function)
        if observation is not None:
            mark(self, observation)  # its spans need no other around them
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
            self.evaluate = self._evaluate_async  # type: ignore[method-assign]  # so it needs no thread

    def why_uncacheable(self, asked: Mapping[str, Identified] | None = None) -> str | None:
        """Say why its calls are not cached, and how they can be."""
        if self.cacheable:
            return super().why_uncacheable(asked)
        return f"'{self.uid}' is a function without a version: give FunctionSUT(…, version=1)"

    def translate_text_prompt(self, prompt: TextPrompt) -> str:
        """Take the text of a prompt as the request."""
        return prompt.text

    def evaluate(self, request: str) -> Answer | Awaitable[Answer]:
        """Call the function."""
        return self.function(request)

    async def _evaluate_async(self, request: str) -> Answer:
        answer: Any = self.function(request)
        return cast("Answer", await answer)

    def translate_response(self, request: str, response: Answer) -> SUTResponse:
        """The function's answer as the only completion."""
        del request
        completion = SUTCompletion(response) if isinstance(response, str) else response
        return SUTResponse((completion,))
