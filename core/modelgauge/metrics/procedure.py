"""The engine of judge metrics: extract → judge → reduce. A judge metric is a declaration of these three.

    class Politeness(JudgeMetric):
        required_params = ("actual_output",)
        procedure = Procedure(
            extract=Extract("List every sentence of the actual_output.", shows=("actual_output",)),
            judge=Judge("Say for each sentence whether it is polite: yes or no."),
        )

`extract` gives the items: the judge lists them, or a function takes them from the case. `judge` gives each
item a verdict. `reduce` makes a number of the verdicts' worths. How questions are worded is in
`questions.py`, how replies are read in `replies.py`.
"""

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias, TypeVar

from pydantic import BaseModel

from modelgauge.data.estimates import Score
from modelgauge.data.prompts import SUTOptions, TextPrompt
from modelgauge.data.responses import SUTCompletion
from modelgauge.errors import InvalidResponseError
from modelgauge.interfaces.capabilities import ProducesStructuredOutput
from modelgauge.metrics.base import JUDGE, Metric
from modelgauge.metrics.questions import Instructions, material_of, question, repair
from modelgauge.metrics.replies import (
    STATEMENTS,
    Shape,
    UnusableReplyError,
    Verdict,
    read_reply,
    verdicts_shape,
)

ReplyT = TypeVar("ReplyT", bound=BaseModel)

_MOST_ITEMS = 30  # in one question: judges lose count in longer lists
_NO_OPTIONS = SUTOptions()


@dataclass(frozen=True)
class Extract:
    """The judge lists the items.

    Args:
        instructions: what to list; a text, or a file with one.
        shows: the fields of the test case that it is to be found in.
    """

    instructions: Instructions
    shows: Sequence[str]


@dataclass(frozen=True)
class Judge:
    """The judge gives each item a verdict.

    Args:
        instructions: by what; a text, or a file with one. The items are its material, as `item[1]`, …
        shows: the fields of the test case that it needs beside the items.
        verdicts: what each verdict is worth. The words are in small letters.
        one_by_one: a question for each item, where the items need the judge's whole attention.
    """

    instructions: Instructions
    shows: Sequence[str] = ()
    verdicts: Mapping[str, float] = field(default_factory=lambda: {"yes": 1.0, "no": 0.0})
    one_by_one: bool = False


def mean(worths: Sequence[float]) -> float:
    """The mean worth: the share of good items, where a verdict is worth 1 or 0."""
    return math.fsum(worths) / len(worths)


Items: TypeAlias = Callable[[Any, Any], Sequence[str]]
"""Takes the items from a case: a function of the metric and the case."""


@dataclass(frozen=True)
class Procedure:
    """How a metric comes to its score.

    Args:
        extract: where the items come from.
        judge: how they are judged.
        reduce: makes the score of the verdicts' worths, in the order of the items; there is at least one.
        empty: the score where there are no items.
    """

    extract: Extract | Items
    judge: Judge
    reduce: Callable[[Sequence[float]], float] = mean
    empty: float = 1.0


def texts_of(name: str) -> Items:
    """The items are the texts of a field, a list, of the test case."""

    def items(metric: Any, case: Any) -> Sequence[str]:
        del metric
        return list(getattr(case, name))

    return items


class JudgeMetric(Metric):
    """A judge metric; see this module.

    Class attributes:
        procedure: how it comes to its score.
    """

    needs_judge = True
    procedure: ClassVar[Procedure]

    async def score(self, test_case: Any) -> Score:
        """Extract, judge, reduce.

        Raises:
            CallError: the judge failed, or its replies cannot be used: the case has no score then.
        """
        items = await self._items(test_case)
        if not items:
            return Score(self.procedure.empty, "There is nothing to judge.", {"items": []})
        verdicts = await self._verdicts(test_case, items)
        worths = [self.procedure.judge.verdicts[one.verdict] for one in verdicts]
        told = [
            {"item": item, "verdict": one.verdict, **({"reason": one.reason} if one.reason else {})}
            for item, one in zip(items, verdicts, strict=True)
        ]
        return Score(self.procedure.reduce(worths), self._reason(verdicts), {"items": told})

    async def asked(
        self,
        instructions: Instructions,
        material: Mapping[str, str],
        shape: Shape[ReplyT],
        values: Mapping[str, str] | None = None,
    ) -> ReplyT:
        """Ask the judge, and read its reply; ask once more where it cannot be used.

        Args:
            instructions: what to do; see `Instructions`.
            material: the texts to judge, by the names that the instructions call them.
            shape: what the reply must be.
            values: see `questions.question`.

        Raises:
            CallError: the judge failed.
            InvalidResponseError: neither reply can be used.
        """
        reply, _ = await self.asked_with_completion(instructions, material, shape, values)
        return reply

    async def asked_with_completion(
        self,
        instructions: Instructions,
        material: Mapping[str, str],
        shape: Shape[ReplyT],
        values: Mapping[str, str] | None = None,
        options: SUTOptions = _NO_OPTIONS,
    ) -> tuple[ReplyT, SUTCompletion]:
        """Like `asked`; gives the completion too, which may have log-probabilities.

        A judge that produces structured output gets the shape as a schema too. Its reply is read like any
        other's: a server that ignores the schema, and a reply that breaks off, are no special cases.
        """
        if ProducesStructuredOutput in self.sut_capabilities(JUDGE):
            options = options.replaced(response_schema=shape.schema)
        asked = question(instructions, material, shape.shown, values)
        completion = (await self.ask(JUDGE, TextPrompt(asked, options))).completions[0]
        try:
            return read_reply(completion.text, shape), completion
        except UnusableReplyError as problem:
            again = repair(asked, completion.text, str(problem), shape.shown)
        completion = (await self.ask(JUDGE, TextPrompt(again, options))).completions[0]
        try:
            return read_reply(completion.text, shape), completion
        except UnusableReplyError as problem:
            raise InvalidResponseError(
                f"The judge of {self.name} replied twice in a way that cannot be used: {problem}: "
                f"{_short(completion.text)}.",
                fix="Choose a judge that follows the format; the case has no score.",
            ) from None

    # --- the three steps ------------------------------------------------------------------------------------

    async def _items(self, case: Any) -> Sequence[str]:
        extract = self.procedure.extract
        if not isinstance(extract, Extract):
            return extract(self, case)
        material = material_of(case, extract.shows)
        return (await self.asked(extract.instructions, material, STATEMENTS)).statements

    async def _verdicts(self, case: Any, items: Sequence[str]) -> list[Verdict]:
        size = 1 if self.procedure.judge.one_by_one else _MOST_ITEMS
        chunks = [items[start : start + size] for start in range(0, len(items), size)]
        # All are waited for, whatever fails beside them: what is paid is kept by the cache.
        judged = await asyncio.gather(*(self._judged(case, one) for one in chunks), return_exceptions=True)
        verdicts: list[Verdict] = []
        for one in judged:
            if isinstance(one, BaseException):
                raise one
            verdicts.extend(one)
        return verdicts

    async def _judged(self, case: Any, items: Sequence[str]) -> Sequence[Verdict]:
        judge = self.procedure.judge
        material = material_of(case, judge.shows)
        material |= {f"item[{place}]": item for place, item in enumerate(items, start=1)}
        shape = verdicts_shape(tuple(judge.verdicts), len(items), reasons=self.include_reason)
        return (await self.asked(judge.instructions, material, shape)).verdicts

    def _reason(self, verdicts: Sequence[Verdict]) -> str:
        """How many verdicts of each kind, and why those that are not worth the best."""
        worths = self.procedure.judge.verdicts
        best = max(worths.values()) if self.higher_is_better else min(worths.values())
        counts = [(word, sum(one.verdict == word for one in verdicts)) for word in worths]
        lines = [f"Of {len(verdicts)}: {', '.join(f'{count} {word}' for word, count in counts if count)}."]
        for place, one in enumerate(verdicts, start=1):
            if worths[one.verdict] != best and one.reason:
                lines.append(f"{place}: {one.reason}")
        return "\n".join(lines)


def _short(text: str) -> str:
    return repr(text) if len(text) <= 200 else f"{text[:200]!r}…"
