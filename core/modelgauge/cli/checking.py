"""Features of a SUT, tested by a few questions, for `modelgauge run-sut --check`."""

import asyncio
import inspect
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from modelgauge.api import Runner
from modelgauge.cli.single_call import list_responses, throwaway_runner
from modelgauge.data.items import TestItem
from modelgauge.data.prompts import (
    AnyPrompt,
    ChatMessage,
    ChatPrompt,
    ContinuationPrompt,
    SUTOptions,
    TextPrompt,
)
from modelgauge.data.responses import SUTResponse
from modelgauge.data.results import Spent
from modelgauge.interfaces.identity import overrides
from modelgauge.interfaces.sut import (
    AcceptsTextPrompt,
    ProducesPerTokenLogProbabilities,
    ProducesStructuredOutput,
    PromptResponseSUT,
    ScoresContinuations,
    capabilities_of,
)
from modelgauge.plugins.resolution import SUTName
from modelgauge.testing.fakes import FakeTest
from modelgauge.wording.phrases import counted

_QUESTION = "What is the capital of France?"
_CONTEXT, _CONTINUATIONS = "The capital of France is", (" Paris", " London")
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
    """Result of testing one feature of a SUT.

    Args:
        ability: what.
        is_there: None if it was not asked for.
        detail: how, or why not.
    """

    ability: str
    is_there: bool | None
    detail: str


@dataclass(frozen=True, slots=True)
class Check:
    """Features of a SUT, and the cost of testing them.

    Args:
        uid: of the SUT.
        findings: the first says whether it answers at all.
        spent: by all questions.
    """

    uid: str
    findings: list[Ability]
    spent: Spent


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
        asking = _FeatureTester(runner, made, SUTOptions(max_tokens=_MAX_TOKENS).overlaid(sut_options))
        findings = [*_findings(asking)]
        return Check(made.uid, findings, asking.spent)


class _FeatureTester:
    """Sender of questions that adds up their usage."""

    def __init__(self, runner: Runner, sut: PromptResponseSUT[Any, Any], options: SUTOptions) -> None:
        self._runner, self.sut, self._options = runner, sut, options
        self.has = capabilities_of(sut)
        self.spent = Spent()

    def ask(self, text: str, times: int = 1, **asked: Any) -> tuple[list[SUTResponse], str]:
        """Return the answers to a question that is asked several times; none, and the reason, if one failed."""
        options = self._options.overlaid(SUTOptions(**asked))
        if AcceptsTextPrompt in self.has:
            return self.send(TextPrompt(text, options), times)
        return self.send(ChatPrompt([ChatMessage("user", text)], options), times)

    def send(self, prompt: AnyPrompt, times: int = 1) -> tuple[list[SUTResponse], str]:
        """Return the answers to a prompt that is sent several times; none, and the reason, if one failed."""
        test = FakeTest("check", [TestItem([prompt] * times)], lambda _: {}, requires=())
        record = self._runner.run([test], [self.sut])[0]
        self.spent += record.spent or Spent()
        if record.failure is not None:
            return [], record.failure.message
        for item in record.iter_items():
            if item.failure is not None:
                return [], item.failure.message
            return list(list_responses(item)), ""
        return [], "it was not asked"


def _findings(asking: _FeatureTester) -> Iterator[Ability]:
    """Yield whether a SUT answers and reports usage, then whether it supports each option."""
    answers, why = asking.ask(_QUESTION)
    yield Ability("answers", bool(answers), _first_answer(answers) or why)
    if not answers:
        return
    known = {} if answers[0].usage is None else answers[0].usage.model_dump(exclude_none=True)
    detail = ", ".join(f"{value:,} {name.replace('_', ' ')}" for name, value in known.items())
    yield Ability("usage", bool(known), detail or "none: caps on tokens and cost do not hold")

    before = asking.spent.attempts
    answers, why = asking.ask(_QUESTION, num_completions=2)
    if answers:
        calls, came = asking.spent.attempts - before, len(answers[0].completions)
        why = f"{came} of 2, by {counted(calls, 'call')}"
    yield Ability("several completions", bool(answers) and len(answers[0].completions) == 2, why)

    yield _log_probabilities(asking)
    if ScoresContinuations in asking.has:
        yield _log_likelihoods(asking)
    yield _structured_output(asking)

    answers, why = asking.ask(_RANDOM, times=2, random=1, temperature=1)
    texts = [answer.completions[0].text for answer in answers]
    same = len(texts) == 2 and texts[0] == texts[1]
    yield Ability("seed", same, f"{'twice' if same else 'not'} the same answer" if texts else why)
    if overrides(type(asking.sut), "list_models"):
        yield _models(asking)


def _log_probabilities(asking: _FeatureTester) -> Ability:
    """Test whether `top_logprobs` returns log-probabilities."""
    if ProducesPerTokenLogProbabilities not in asking.has:
        return Ability("log-probabilities", None, _NOT_DECLARED)
    answers, why = asking.ask(_QUESTION, top_logprobs=2)
    tokens = answers[0].completions[0].top_logprobs if answers else None
    detail = f"of {counted(len(tokens), 'token')}" if tokens else why or "none came"
    return Ability("log-probabilities", bool(tokens), detail)


def _log_likelihoods(asking: _FeatureTester) -> Ability:
    """Test whether continuations get scores."""
    answers, why = asking.send(ContinuationPrompt(_CONTEXT, _CONTINUATIONS))
    scores = [
        f"{completion.text.strip()} {completion.logprob:.2f}"
        for answer in answers
        for completion in answer.completions
        if completion.logprob is not None
    ]
    return Ability("log-likelihoods", bool(scores), ", ".join(scores) or why)


def _structured_output(asking: _FeatureTester) -> Ability:
    """Test whether the answer has the form of `response_schema`, which the question does not mention."""
    if ProducesStructuredOutput not in asking.has:
        return Ability("structured output", None, _NOT_DECLARED)
    answers, why = asking.ask(_QUESTION, response_schema=_SCHEMA)
    is_cut = bool(answers) and answers[0].completions[0].finish_reason == "length"
    fits = bool(answers) and _fits(answers[0].completions[0].text)
    return Ability("structured output", None if is_cut and not fits else fits, _first_answer(answers) or why)


def _models(asking: _FeatureTester) -> Ability:
    """Test which models the server lists."""

    async def listed() -> Sequence[str]:
        opened = asking.sut.open()
        if inspect.isawaitable(opened):
            await opened
        try:
            return await asking.sut.list_models()
        finally:
            await asking.sut.close()

    asking.spent += Spent(attempts=1)
    try:
        names = tuple(asyncio.run(listed()))
    except Exception as error:  # noqa: BLE001  the author's; all else that was found is shown
        return Ability("list of models", False, f"{type(error).__name__}: {error}")
    return Ability("list of models", bool(names), ", ".join(names) or "none")


def _first_answer(answers: Sequence[SUTResponse]) -> str:
    """Return the text of the first answer, with advice if the token limit ended it."""
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
