"""The engine of judge metrics: extract → judge → reduce. A judge metric is a declaration of these three.

    class Politeness(JudgeMetric):
        required_params = ("actual_output",)
        procedure = Procedure(
            extract=Extract("List every sentence of the actual_output.", shows=("actual_output",)),
            judge=Judge("Say for each sentence whether it is polite: yes or no."),
        )

`extract` gives the items: the judge lists them, or a function takes them from the case. `judge` gives each
item a verdict. `reduce` makes a number of the verdicts' worths. A `Combination` has several such procedures, for
metrics that are the least or the mean of others. How questions are worded is in
`questions.py`, how replies are read in `replies.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from string import Template
from typing import Any, ClassVar, TypeAlias, TypeVar

from pydantic import BaseModel

from modelgauge.data.estimates import Score
from modelgauge.data.prompts import SUTOptions, TextPrompt
from modelgauge.data.responses import SUTCompletion
from modelgauge.engine.loop.together import wait_for_all
from modelgauge.errors import DefinitionError, InvalidResponseError
from modelgauge.interfaces.sut import ProducesStructuredOutput
from modelgauge.metrics.base import Metric
from modelgauge.metrics.definition import check_names
from modelgauge.metrics.judges import JUDGE
from modelgauge.metrics.questions import Instructions, as_text, format_material, question, repair, wording
from modelgauge.metrics.replies import (
    STATEMENTS,
    Shape,
    Verdict,
    is_cut_off,
    read_completion,
    verdicts_shape,
)
from modelgauge.metrics.reply_json import UnusableReplyError
from modelgauge.stats.exact import exact_mean
from modelgauge.wording.phrases import quoted

ReplyT = TypeVar("ReplyT", bound=BaseModel)

_MOST_ITEMS = 30  # in one question: judges lose count in longer lists
_NO_OPTIONS = SUTOptions()


@dataclass(frozen=True)
class Extract:
    """The judge lists the items.

    Args:
        instructions: what to list; a text, or a file with a text.
        shows: the fields of the test case that contain the items.
        settings: the metric's own attributes that the instructions name: `domain` replaces `$domain`.
    """

    instructions: Instructions
    shows: Sequence[str]
    settings: Sequence[str] = ()


@dataclass(frozen=True)
class Judge:
    """The judge gives each item a verdict.

    Args:
        instructions: how to judge; a text, or a file with a text. The items are its material, as `item[1]`, …
        shows: further fields of the test case that the judge needs.
        verdicts: the value of each verdict, by its word in small letters.
        one_by_one: whether each item gets a question of its own, if the items need the judge's whole attention.
        settings: see `Extract`.

    Raises:
        DefinitionError: there are no verdicts, or their words are not in lower case.
    """

    instructions: Instructions
    shows: Sequence[str] = ()
    verdicts: Mapping[str, float] = field(default_factory=lambda: {"yes": 1.0, "no": 0.0})
    one_by_one: bool = False
    settings: Sequence[str] = ()

    def __post_init__(self) -> None:
        wrong = [word for word in self.verdicts if word != word.strip().lower() or not word]
        if wrong or not self.verdicts:
            raise DefinitionError(
                f"A Judge got the verdicts {list(self.verdicts)}.",
                fix='Give words in small letters, and what each is worth: verdicts={"yes": 1, "no": 0}.',
            )


Items: TypeAlias = Callable[[Any, Any], Sequence[str]]
"""Takes the items from a case: a function of the metric and the case."""


@dataclass(frozen=True)
class Procedure:
    """The steps in which a judge metric computes its score.

    Args:
        extract: where the items come from.
        judge: how they are judged.
        reduce: computes the score from the worths of the verdicts, at least one, in the order of the items. By default
            it is their mean: the share of good items, where a verdict is worth 1 or 0.
        empty: the score if there are no items.
        needs: names of lists of the test case; if one of them is empty, the score is `empty`, and the judge is not
            asked.
    """

    extract: Extract | Items
    judge: Judge
    reduce: Callable[[Sequence[float]], float] = exact_mean
    empty: float = 1.0
    needs: Sequence[str] = ()


@dataclass(frozen=True)
class Combination:
    """Several procedures whose scores are combined.

    Args:
        parts: the procedures, by the names that the breakdown calls them.
        reduce: computes the score from the scores of the parts, in their order.
    """

    parts: Mapping[str, Procedure]
    reduce: Callable[[Sequence[float]], float] = min


def take_texts(name: str) -> Items:
    """Take the elements of a list of the test case as the items."""
    return lambda _metric, case: [as_text(part) for part in getattr(case, name)]


class JudgeMetric(Metric):
    """A metric whose judge finds the score step by step; a subclass only declares the `procedure`.

    Class attributes:
        procedure: a `Procedure`, or a `Combination` of several.

    Raises:
        DefinitionError: there is no procedure, or the procedure works for no case.
    """

    needs_judge = True
    procedure: ClassVar[Procedure | Combination]

    def _seal(self) -> None:
        cls = type(self)
        if cls.score is JudgeMetric.score and not hasattr(cls, "procedure"):
            raise DefinitionError(
                f"{cls.__qualname__} has no procedure.",
                fix="Write procedure = Procedure(extract=…, judge=…), or define async def score.",
            )
        if cls.score is JudgeMetric.score:
            self._check_procedure()
        super()._seal()

    def _check_procedure(self) -> None:
        """Refuse a declaration that would fail for every case, after paid calls."""
        declared: Any = self.procedure
        parts = list(declared.parts.values()) if isinstance(declared, Combination) else [declared]
        if not parts or not all(isinstance(piece, Procedure) for piece in parts):
            raise DefinitionError(
                f"The procedure of {type(self).__qualname__} is {declared!r}.",
                fix="Write procedure = Procedure(…), or Combination({NAME: Procedure(…), …}) with one or more.",
            )
        owner, fields = type(self).__qualname__, self.test_case_type.model_fields
        for part in parts:
            check_names(f"the procedure of {owner}", "needs", part.needs, fields)
            for step in (part.extract, part.judge):
                if isinstance(step, Extract | Judge):
                    self._check_step(step, f"{type(step).__name__} of {owner}")

    def _check_step(self, step: Extract | Judge, where: str) -> None:
        fix = "Set self.{name} in its __init__, or leave the setting out."
        check_names(where, "shows", step.shows, self.test_case_type.model_fields)
        check_names(where, "settings", step.settings, dir(self), fix)
        instructions = wording(step.instructions)
        if step.settings:
            _check_settings(instructions, step.settings, where)

    async def score(self, test_case: Any) -> Score:
        """Have the judge list the items and give each a verdict, and return what `reduce` makes of these.

        Raises:
            CallError: the judge failed, or its replies cannot be used: the case has no score then.
        """
        if isinstance(self.procedure, Procedure):
            return await self._scored(self.procedure, test_case)
        scored = await wait_for_all([self._scored(part, test_case) for part in self.procedure.parts.values()])
        parts = dict(zip(self.procedure.parts, scored, strict=True))
        return Score(
            self.procedure.reduce([score.value for score in scored]),
            "\n".join(f"{name} ({score.value:g}): {score.reason}" for name, score in parts.items()),
            {name: {"score": score.value, **(score.breakdown or {})} for name, score in parts.items()},
        )

    async def _scored(self, procedure: Procedure, case: Any) -> Score:
        lacking = [name for name in procedure.needs if not getattr(case, name)]
        if lacking:
            return Score(procedure.empty, f"There is nothing in {' and '.join(lacking)}.", {"items": []})
        items = await self._items(procedure.extract, case)
        if not items:
            return Score(procedure.empty, "There is nothing to judge.", {"items": []})
        verdicts = await self._verdicts(procedure.judge, case, items)
        worths = [procedure.judge.verdicts[verdict.verdict] for verdict in verdicts]
        judged = [
            {
                "item": item,
                "verdict": verdict.verdict,
                **({"reason": verdict.reason} if verdict.reason else {}),
            }
            for item, verdict in zip(items, verdicts, strict=True)
        ]
        return Score(procedure.reduce(worths), self._reason(procedure.judge, verdicts), {"items": judged})

    async def asked(
        self,
        instructions: Instructions,
        material: Mapping[str, str],
        shape: Shape[ReplyT],
        values: Mapping[str, str] | None = None,
    ) -> ReplyT:
        """Ask the judge, and read its reply; ask once more if the reply cannot be used.

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
        """Ask the judge as `asked` does, and return the completion too, which may have log-probabilities.

        A judge that produces structured output gets the shape as a schema too. Its reply is read like any other reply,
        since servers may ignore the schema and replies may break off.
        """
        if ProducesStructuredOutput in self.sut_capabilities(JUDGE):
            options = options.replaced(response_schema=shape.schema)
        first = asked = question(instructions, material, shape.shown, values)
        while True:
            completion = (await self.ask(JUDGE, TextPrompt(asked, options))).completions[0]
            try:
                return read_completion(completion, shape, material.values()), completion
            except UnusableReplyError as problem:
                if asked is not first:
                    raise InvalidResponseError(
                        f"The judge of {self.name} replied twice in a way that cannot be used: {problem}: "
                        f"{quoted(completion.text or completion.reasoning or '', 200)}.",
                        fix=f"{_fix_for(completion)}; the case has no score."
                        f"{_ASK_AGAIN if self._keeps_answers(JUDGE) else ''}",
                    ) from None
                asked = repair(first, completion.text, str(problem), shape.shown)

    # --- the three steps ------------------------------------------------------------------------------------

    async def _items(self, extract: Extract | Items, case: Any) -> Sequence[str]:
        if not isinstance(extract, Extract):
            return extract(self, case)
        material, values = format_material(case, extract.shows), self._values(extract.settings)
        return (await self.asked(extract.instructions, material, STATEMENTS, values)).statements

    async def _verdicts(self, judge: Judge, case: Any, items: Sequence[str]) -> list[Verdict]:
        size = 1 if judge.one_by_one else _MOST_ITEMS
        chunks = [items[start : start + size] for start in range(0, len(items), size)]
        judged = await wait_for_all([self._get_verdicts(judge, case, chunk) for chunk in chunks])
        return [verdict for verdicts in judged for verdict in verdicts]

    async def _get_verdicts(self, judge: Judge, case: Any, items: Sequence[str]) -> Sequence[Verdict]:
        material = format_material(case, judge.shows)
        material |= {f"item[{place}]": item for place, item in enumerate(items, start=1)}
        shape = verdicts_shape(tuple(judge.verdicts), len(items), reasons=self.include_reason)
        return (await self.asked(judge.instructions, material, shape, self._values(judge.settings))).verdicts

    def _values(self, settings: Sequence[str]) -> dict[str, str] | None:
        """Return the values of `$name` in instructions; None leaves each `$` unchanged."""
        return {name: as_text(getattr(self, name)) for name in settings} or None

    def _reason(self, judge: Judge, verdicts: Sequence[Verdict]) -> str:
        """Count the verdicts of each kind, and give the reasons of those that are not worth the best."""
        worths = judge.verdicts
        best = max(worths.values()) if self.higher_is_better else min(worths.values())
        counts = [(word, sum(verdict.verdict == word for verdict in verdicts)) for word in worths]
        lines = [f"Of {len(verdicts)}: {', '.join(f'{count} {word}' for word, count in counts if count)}."]
        for place, verdict in enumerate(verdicts, start=1):
            if worths[verdict.verdict] != best and verdict.reason:
                lines.append(f"{place}: {verdict.reason}")
        return "\n".join(lines)


_ASK_AGAIN = (
    " The replies are kept in the cache: to ask the same judge again, --no-caching, or "
    "evaluate(…, cache_config=CacheConfig(use_cache=False))."
)


def _fix_for(completion: SUTCompletion) -> str:
    if completion.truncated_reasoning:
        return "Let the judge think less, or say more: its max_tokens, or the option of its SUT for that"
    if is_cut_off(completion):
        return "Let the judge say more: its max_tokens, or the option of its SUT for that"
    return "Choose a judge that follows the format"


def _check_settings(instructions: str, settings: Sequence[str], where: str) -> None:
    """Refuse instructions with a `$name` that is no setting."""
    template = Template(instructions)
    unknown = [name for name in template.get_identifiers() if name not in settings]
    if unknown or not template.is_valid():
        raise DefinitionError(
            f"{where} has instructions with {f'${unknown[0]}' if unknown else 'a $'} that names none of its settings.",
            fix=f"Its settings are: {', '.join(settings)}. Write $$ for a dollar.",
        )
