"""What a SUT can do, found out by a few questions, for `modelgauge run-sut --check`."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from modelgauge.api import Runner
from modelgauge.cli.single_call import responses_of, throwaway_runner
from modelgauge.data.item_records import TestItemRecord
from modelgauge.data.items import TestItem
from modelgauge.data.prompts import AnyPrompt, ChatMessage, ChatPrompt, SUTOptions, TextPrompt
from modelgauge.data.responses import SUTResponse
from modelgauge.data.results import Spent
from modelgauge.interfaces.identity import overrides
from modelgauge.interfaces.sut import (
    AcceptsTextPrompt,
    ProducesPerTokenLogProbabilities,
    ProducesStructuredOutput,
    PromptResponseSUT,
    capabilities_of,
)
from modelgauge.plugins.resolution import SUTName
from modelgauge.testing.fakes import FakeTest
from modelgauge.wording.phrases import counted

_QUESTION = "What is the capital of France?"
_RANDOM = "Write a random number of ten digits."
_SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
_MAX_TOKENS = 256
_NOT_DECLARED = "not asked: the SUT does not declare it"


@dataclass(frozen=True, slots=True)
class Ability:
    """Whether a SUT can do something.

    Args:
        ability: what.
        is_there: None if it was not asked for.
        detail: how, or why not.
    """

    ability: str
    is_there: bool | None
    detail: str


@dataclass(slots=True)
class Check:
    """What a SUT can do, and what it took to find out.

    Args:
        uid: of the SUT.
        findings: the first says whether it answers at all.
        spent: by all questions.
    """

    uid: str
    findings: list[Ability] = field(default_factory=list)
    spent: Spent = field(default_factory=Spent)


def check(sut: SUTName, sut_options: SUTOptions, **options: Any) -> Check:
    """Ask a SUT some six questions; only the first, if it does not answer that.

    Args:
        sut: a uid or an object.
        sut_options: for all questions; answers end after 256 tokens where these set no other limit.
        options: see `Runner`; caching is off, whatever they say.

    Raises:
        UsageError: a name or a secret is wrong.
    """
    with throwaway_runner(options) as runner:
        made = runner.resolver().sut(sut)
        checking = _Checking(runner, made, SUTOptions(max_tokens=_MAX_TOKENS).overlaid(sut_options))
        checking.answers()
        if checking.done.findings[0].is_there:
            checking.completions()
            checking.log_probabilities()
            checking.structured_output()
            checking.seed()
            checking.models()
        return checking.done


class _Checking:
    def __init__(self, runner: Runner, sut: PromptResponseSUT[Any, Any], options: SUTOptions) -> None:
        self._runner, self._sut, self._options = runner, sut, options
        self._has = capabilities_of(sut)
        self.done = Check(sut.uid)

    def answers(self) -> None:
        """Whether it answers, and what its usage says."""
        answers, why = self._ask(_QUESTION)
        self._note("answers", bool(answers), _first_answer(answers) or why)
        usage = answers[0].usage if answers else None
        if answers:
            counted = {} if usage is None else usage.model_dump(exclude_none=True)
            detail = ", ".join(f"{value:,} {name.replace('_', ' ')}" for name, value in counted.items())
            self._note("usage", bool(counted), detail or "none: caps on tokens and cost do not hold")

    def completions(self) -> None:
        """Whether `num_completions` gives as many, and by how many calls."""
        before = self.done.spent.attempts
        answers, why = self._ask(_QUESTION, num_completions=2)
        if answers:
            calls, came = self.done.spent.attempts - before, len(answers[0].completions)
            why = f"{came} of 2, by {counted(calls, 'call')}"
        self._note("several completions", bool(answers) and len(answers[0].completions) == 2, why)

    def log_probabilities(self) -> None:
        """Whether `top_logprobs` gives them."""
        if ProducesPerTokenLogProbabilities not in self._has:
            self._note("log-probabilities", None, _NOT_DECLARED)
            return
        answers, why = self._ask(_QUESTION, top_logprobs=2)
        tokens = answers[0].completions[0].top_logprobs if answers else None
        self._note(
            "log-probabilities",
            bool(tokens),
            f"of {counted(len(tokens), 'token')}" if tokens else why or "none came",
        )

    def structured_output(self) -> None:
        """Whether the answer has the form that `response_schema` asks for, of which the question says nothing."""
        if ProducesStructuredOutput not in self._has:
            self._note("structured output", None, _NOT_DECLARED)
            return
        answers, why = self._ask(_QUESTION, response_schema=_SCHEMA)
        is_cut = bool(answers) and answers[0].completions[0].finish_reason == "length"
        fits = bool(answers) and _fits(answers[0].completions[0].text)
        self._note("structured output", None if is_cut and not fits else fits, _first_answer(answers) or why)

    def seed(self) -> None:
        """Whether a seed (`random`) gives the same answer again."""
        answers, why = self._ask(_RANDOM, times=2, random=1, temperature=1)
        texts = [answer.completions[0].text for answer in answers]
        same = len(texts) == 2 and texts[0] == texts[1]
        self._note("seed", same, f"{'twice' if same else 'not'} the same answer" if texts else why)

    def models(self) -> None:
        """Which models its server lists."""
        if not overrides(type(self._sut), "list_models"):
            return
        self.done.spent += Spent(attempts=1)
        names: tuple[str, ...] = ()
        why = "none"
        try:
            names = tuple(asyncio.run(self._models()))
        except Exception as error:  # noqa: BLE001  the author's; all else that was found is shown
            why = f"{type(error).__name__}: {error}"
        self._note("list of models", bool(names), ", ".join(names) or why)

    async def _models(self) -> Sequence[str]:
        await self._sut.open()
        try:
            return await self._sut.list_models()
        finally:
            await self._sut.close()

    def _note(self, ability: str, is_there: bool | None, detail: str) -> None:
        self.done.findings.append(Ability(ability, is_there, detail))

    def _ask(self, text: str, times: int = 1, **asked: Any) -> tuple[list[SUTResponse], str]:
        """The answers to a question that is asked a number of times; none, and why, where one failed."""
        options = self._options.overlaid(SUTOptions(**asked))
        prompt: AnyPrompt = TextPrompt(text, options)
        if AcceptsTextPrompt not in self._has:
            prompt = ChatPrompt([ChatMessage("user", text)], options)
        test = FakeTest("check", [TestItem([prompt] * times)], lambda _: {}, requires=())
        record = self._runner.run([test], [self._sut])[0]
        self.done.spent += record.spent or Spent()
        if record.failure is not None:
            return [], record.failure.message
        for item in record.iter_items():
            if not isinstance(item, TestItemRecord):
                return [], item.message
            return list(responses_of(item)), ""
        return [], "it was not asked"


def _first_answer(answers: Sequence[SUTResponse]) -> str:
    """The text of the first answer; where the limit of tokens ended it, with what to do."""
    if not answers:
        return ""
    completion = answers[0].completions[0]
    cut = "[cut off: raise --max-tokens]" if completion.finish_reason == "length" else ""
    return f"{completion.text} {cut}".strip() or "an empty text"


def _fits(text: str) -> bool:
    try:
        answer = json.loads(text)
    except ValueError:
        return False
    return isinstance(answer, dict) and answer.keys() == {"city"} and isinstance(answer["city"], str)
