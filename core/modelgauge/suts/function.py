"""A SUT of a plain Python function: the shortest way from an app to a test."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, cast

from modelgauge.data.prompts import TextPrompt
from modelgauge.data.responses import SUTCompletion, SUTResponse
from modelgauge.interfaces.identity import Identified
from modelgauge.interfaces.sut import PromptResponseSUT
from modelgauge.spans import is_anything_observed
from modelgauge.suts.observed import Use

Answer = str | SUTCompletion


class FunctionSUT(PromptResponseSUT[str, Answer]):
    """Answers text prompts by calling a function.

    What observed functions (`modelgauge.evals.observe`) do meanwhile stands in the item's record as spans,
    and comes back from the cache with the answer. What the app says by `update_current_trace` of the texts
    that it found, its tools, cost and time reaches the metrics. Metrics of spans are for `assert_test` and
    `evaluate`: a SUT does not know who judges it.

    Args:
        uid: the name in records.
        function: takes the prompt's text, returns a str or a `SUTCompletion`; plain or async.
        version: raise it when the function changes. Answers are cached only when it is given, because nobody
            else can tell whether the function is still the same.
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
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
            self.evaluate = self._evaluate_async  # type: ignore[method-assign]  # so it needs no thread

    def why_uncacheable(self, asked: Mapping[str, Identified] | None = None) -> str | None:
        """Say what to do about it."""
        if self.cacheable:
            return super().why_uncacheable(asked)
        return f"'{self.uid}' is a function without a version: give FunctionSUT(…, version=1)"

    def translate_text_prompt(self, prompt: TextPrompt) -> str:
        """The text."""
        return prompt.text

    def evaluate(self, request: str) -> Answer | Awaitable[Answer]:
        """Call the function."""
        return self._answer(request)

    async def _evaluate_async(self, request: str) -> Answer:
        answer: Any = self._answer(request)
        return cast("Answer", await answer)

    def _answer(self, request: str) -> Answer | Awaitable[Answer]:
        if not is_anything_observed():
            return self.function(request)
        use = Use(self.uid, self.function, request)
        with use.going_on():
            answer = self.function(request)
        return (
            self._awaited(use, answer) if inspect.isawaitable(answer) else cast("Answer", use.ended(answer))
        )

    async def _awaited(self, use: Use, answer: Awaitable[Answer]) -> Answer:
        with use.going_on():
            answered = await answer
        return cast("Answer", use.ended(answered))

    def translate_response(self, request: str, response: Answer) -> SUTResponse:
        """The function's answer as the only completion."""
        del request
        completion = SUTCompletion(response) if isinstance(response, str) else response
        return SUTResponse((completion,))
