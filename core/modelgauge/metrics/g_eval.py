"""`GEval`: a grade by a criterion in words.

The method: Liu et al. 2023, "G-Eval: NLG Evaluation using GPT-4 with Better Human Alignment"
(arXiv:2303.16634): the judge writes evaluation steps for the criterion, grades by them, and the grade is
weighted by the probabilities of the judge's own tokens. There (section 2, "Scoring Function") a score is one of a set
that the prompt defines, and what lies between two comes of the probabilities alone. So a judge that says 7.5 where
whole numbers are asked for has given none of the scores: it is asked once more, and then the case has no score. (The
authors' script takes any number, and 0 where it reads none.) 7.0 is 7. The scale, 0 to 10, the rubric and the names
of the arguments are DeepEval's (deepeval.com/docs/metrics-llm-evals).
"""

import asyncio
import math
import re
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Self, TypeAlias, Unpack

from pydantic import model_validator

from modelgauge.config.options import TEXT, YES_NO, Values
from modelgauge.data.base import Frozen, Text
from modelgauge.data.estimates import Score, reaches
from modelgauge.data.prompts import SUTOptions
from modelgauge.data.responses import SUTCompletion, TokenProbability
from modelgauge.data.test_cases import LLMTestCase, LLMTestCaseParams
from modelgauge.errors import CallError, InvalidDataError, InvalidOptionError, MissingLogProbabilitiesError
from modelgauge.interfaces.sut import ProducesPerTokenLogProbabilities
from modelgauge.metrics.definition import MetricSettings, parse_members, say_once
from modelgauge.metrics.judge_base import JudgeMetric
from modelgauge.metrics.judges import JUDGE
from modelgauge.metrics.questions import TEMPLATES, format_material
from modelgauge.metrics.replies import STEPS, Points, points_shape

_Graded: TypeAlias = tuple[Points, SUTCompletion]

LEAST, MOST = 0, 10
_DEFAULT_PARAMS = (LLMTestCaseParams.INPUT, LLMTestCaseParams.ACTUAL_OUTPUT)
_TOP_TOKENS = 20  # the most that the usual APIs give
_STEPS, _SCORE = TEMPLATES / "g_eval_steps.md", TEMPLATES / "g_eval_score.md"
_SCORE_BY_RUBRIC = TEMPLATES / "g_eval_score_by_rubric.md"
_BEFORE_SCORE = re.compile(r"[\"']score[\"']\s*:\s*[\"']?$", re.IGNORECASE)
_WHOLE = re.compile(r"\s*([0-9]+)\s*", re.ASCII)


class Rubric(Frozen):
    """The meaning of a range of scores that `GEval` gives.

    Args:
        score_range: the first and the last of these scores, both included, on the scale from 0 to 10; twice
            the same for a single score.
        expected_outcome: the description of a case that earns one of these scores.

    Raises:
        InvalidDataError: there is no such range, or no outcome.
    """

    positional_fields: ClassVar[tuple[str, ...]] = ("score_range", "expected_outcome")

    score_range: tuple[int, int]
    expected_outcome: Text

    if TYPE_CHECKING:

        def __init__(self, score_range: tuple[int, int], expected_outcome: str) -> None: ...

    @model_validator(mode="after")
    def _check(self) -> Self:
        first, last = self.score_range
        if not LEAST <= first <= last <= MOST:
            raise InvalidDataError(
                f"There is no score_range from {first} to {last}.",
                fix=f"Give the first and the last score, both from {LEAST} to {MOST}: score_range=(7, 9).",
            )
        if not self.expected_outcome.strip():
            raise InvalidDataError(
                "The expected_outcome is empty.", fix="Say what a case is like that earns these scores."
            )
        return self

    def __str__(self) -> str:
        first, last = self.score_range
        return f"{first if first == last else f'{first} to {last}'}: {self.expected_outcome}"


_writing_lock = threading.Lock()  # not one of each metric, since these can be copied


class GEval(JudgeMetric):
    """A grade from 0 to 1 by a criterion in words.

    With `criteria`, the judge first writes the steps of the evaluation, once for the metric; with `evaluation_steps` it
    takes these. It is asked for a whole score from 0 to 10, of which the grade is a tenth; where it says 7.5, the
    grade is 0.75. If the judge has log-probabilities, the grade is the
    mean of all possible grades, weighted by their probabilities. In `strict_mode` the judge's own score counts, and
    only 10 is perfect. The breakdown has the `weighted_score`, which is None if nothing was weighted.

    Args:
        name: what the metric is called in reports.
        criteria: what makes an output good, in a sentence or more.
        evaluation_steps: how to find out, step by step.
        evaluation_params: the fields of the test case that the judge sees, and that a case must have; by
            default the input and the actual output.
        rubric: what the scores mean, in ranges that do not overlap. The judge then gives no other scores than these,
            and a grade is still a tenth of the score. DeepEval stretches a rubric that does not span 0 to 10; the log
            warns of this once.
        logprobs: whether to ask the judge for log-probabilities; by default, if it declares
            `ProducesPerTokenLogProbabilities`, and until it answers without them. With True, an answer without
            them is an error.
        settings: see `Metric`.

    Raises:
        InvalidOptionError: there are neither criteria nor steps, there is no such field, ranges overlap, or
            the rubric allows no score that passes.
    """

    score_range = (0.0, 1.0)

    def __init__(
        self,
        name: str,
        criteria: str | None = None,
        evaluation_params: Sequence[LLMTestCaseParams | str] | None = None,
        evaluation_steps: Sequence[str] | None = None,
        *,
        rubric: Sequence[Rubric] | None = None,
        logprobs: bool | None = None,
        **settings: Unpack[MetricSettings],
    ) -> None:
        super().__init__(name, **settings)
        self.criteria = _CRITERIA.check("GEval.criteria", criteria, or_none=True)
        no_steps = evaluation_steps in (None, [], ())
        steps = None if no_steps else _STEP_TEXTS.check("GEval.evaluation_steps", evaluation_steps)
        self.evaluation_steps = None if steps is None else tuple(steps)
        if not (self.criteria or "").strip() and self.evaluation_steps is None:
            raise InvalidOptionError(
                f"'{name}' has nothing to judge by.", fix="Give criteria=…, or evaluation_steps=[…]."
            )
        params = _DEFAULT_PARAMS if evaluation_params is None else evaluation_params
        named = parse_members(LLMTestCaseParams, params, "GEval", least=1)
        self.required_params = tuple(parameter.value for parameter in named)
        self.rubric = _in_order(rubric, name) if rubric is not None else None
        self.logprobs = YES_NO.check("GEval.logprobs", logprobs, or_none=True)
        self._scores = _list_scores(self.rubric)
        if (self._scores[0], self._scores[-1]) != (LEAST, MOST):
            say_once(
                f"A rubric of GEval from {self._scores[0]} to {self._scores[-1]} keeps the scale from 0 to 10: a score "
                "is a tenth of what the judge says. In DeepEval the lowest score of a rubric is 0 and its highest is 1."
            )
        self._steps: dict[tuple[str, str], tuple[str, ...]] = {}
        self._writing: dict[tuple[str, str], Future[None]] = {}
        self._without_logprobs: set[tuple[str, str]] = set()

    def _seal(self) -> None:
        super()._seal()
        highest = self._scores[-1]
        if self.threshold is not None and not reaches(_grade(highest), self.threshold, higher_is_better=True):
            raise InvalidOptionError(
                f"'{self.uid}' could never pass: its rubric ends at the score {highest} of {MOST}, and "
                f"{_grade(highest):g} is below the threshold {self.threshold:g}.",
                fix=f"Let the ranges of the rubric reach up to {MOST}, or lower the threshold.",
            )

    async def score(self, test_case: LLMTestCase) -> Score:
        """Ask the judge for a grade by the evaluation steps, and return a tenth of it."""
        steps = self.evaluation_steps or await self._written_steps()
        also = f"\nThe criterion behind them: {self.criteria}\n" if self.criteria else ""
        numbered = "\n".join(f"{place}. {step}" for place, step in enumerate(steps, start=1))
        values = {"steps": numbered, "criteria": also}
        if self.rubric is None:
            template, scale = _SCORE, {"least": str(LEAST), "most": str(MOST)}
        else:
            template, scale = _SCORE_BY_RUBRIC, {"rubric": "\n".join(map(str, self.rubric))}
        asked = partial(
            self.asked_with_completion,
            template,
            format_material(test_case, self.required_params),
            points_shape(self._scores, reasons=self.include_reason),
            values | scale,
        )
        weights = self._weights()
        reply, completion = await self._weighable(asked) if weights else await asked()
        weighted = weighted_score(completion, reply.score, self._scores) if weights else None
        return Score(
            _grade(reply.score if weighted is None else weighted),
            reply.reason,
            {
                "score": reply.score,
                "weighted_score": None if weighted is None else float(weighted),
                "steps": list(steps),
            },
        )

    async def _written_steps(self) -> tuple[str, ...]:
        """Return the evaluation steps, which each judge writes once, however many cases, threads and loops need
        them.
        """
        judge = self._judge_now()
        while True:
            with _writing_lock:
                if judge in self._steps:
                    return self._steps[judge]
                is_first = judge not in self._writing
                written = self._writing.setdefault(judge, Future())
                if is_first:
                    written.set_running_or_notify_cancel()  # so that nobody who waits can cancel it for others
            if is_first:
                return await self._write_steps(judge, written)
            with self.waiting():
                # Then there are steps; or their writer was stopped, by a limit of its run, say, and this one tries.
                await asyncio.wrap_future(written)

    async def _write_steps(self, judge: tuple[str, str], written: Future[None]) -> tuple[str, ...]:
        """Ask the judge for the steps. If that fails, all cases that wait for the steps fail with the same error."""
        values = {"criteria": str(self.criteria), "parameters": ", ".join(self.required_params)}
        try:
            self._steps[judge] = tuple((await self.asked(_STEPS, {}, STEPS, values)).steps)
            return self._steps[judge]
        except CallError as error:
            written.set_exception(error)
            raise
        finally:
            with _writing_lock:
                del self._writing[judge]
            if not written.done():
                written.set_result(None)

    def _judge_now(self) -> tuple[str, str]:
        """Return the current judge and its uid: the default judge can change."""
        return self.answering_judge, self._asked_sut(JUDGE).uid

    def _weights(self) -> bool:
        """Return whether to ask the current judge for log-probabilities."""
        if self.strict_mode:
            return False
        if self.logprobs is not None:
            return self.logprobs
        if self._judge_now() in self._without_logprobs:
            return False
        return ProducesPerTokenLogProbabilities in self.sut_capabilities(JUDGE)

    async def _weighable(self, asked: Callable[..., Awaitable[_Graded]]) -> _Graded:
        """Return a grade with log-probabilities, or without if the judge has none and `logprobs` does not require
        them.
        """
        try:
            return await asked(SUTOptions(top_logprobs=_TOP_TOKENS))
        except CallError as error:
            if self.logprobs or not isinstance(error.__cause__, MissingLogProbabilitiesError):
                raise
        self._without_logprobs.add(self._judge_now())
        return await asked()


_CRITERIA = TEXT._replace(
    wanted="a text that says what makes an output good; what the judge sees of a case is evaluation_params=[…]"
)
_STEP_TEXTS = Values(
    "a list with a text for each step",
    lambda steps: (
        isinstance(steps, Sequence)
        and not isinstance(steps, str)  # its letters would be the steps
        and all(isinstance(step, str) and step.strip() for step in steps)
    ),
)
_RUBRIC = Values(
    'a list of Rubric(score_range=(0, 4), expected_outcome="…")',
    lambda rubric: bool(rubric) and all(isinstance(band, Rubric) for band in rubric),
)


def _in_order(rubric: Sequence[Rubric], name: str) -> tuple[Rubric, ...]:
    """Sort the ranges of a rubric.

    Raises:
        InvalidOptionError: it is empty, holds something else, or two of its ranges overlap.
    """
    _RUBRIC.check("GEval.rubric", rubric)
    ordered = sorted(rubric, key=lambda band: band.score_range)
    for lower, upper in pairwise(ordered):
        if lower.score_range[1] >= upper.score_range[0]:
            raise InvalidOptionError(
                f"'{name}' has a rubric whose ranges {lower.score_range} and {upper.score_range} overlap.",
                fix="Let each score stand in one range only.",
            )
    return tuple(ordered)


def _list_scores(rubric: Sequence[Rubric] | None) -> tuple[int, ...]:
    """Return the possible scores, in ascending order."""
    ranges = [(LEAST, MOST)] if rubric is None else [band.score_range for band in rubric]
    return tuple(score for first, last in ranges for score in range(first, last + 1))


def _grade(score: float | Fraction) -> float:
    return float((Fraction(score) - LEAST) / (MOST - LEAST))


def weighted_score(
    completion: SUTCompletion, given: float, scores: Sequence[int] = tuple(range(LEAST, MOST + 1))
) -> Fraction | None:
    """Return the mean of the scores that a judge could have given, weighted by their probabilities.

    Σ p(s) · s / Σ p(s) over the scores s among the most likely tokens where the score stands (Liu et al. 2023, section
    2, "Scoring Function"). None if the completion has no log-probabilities, or the score is not a single token.

    Args:
        completion: of the judge; its text holds `"score": GIVEN`.
        given: the score that the judge gave.
        scores: all that it could have given. One that may be the beginning of another is left out; see `_chances`.
    """
    positions = completion.top_logprobs or ()
    before = ""
    found: dict[int, Fraction] | None = None
    for place, position in enumerate(positions):
        likeliest = position.top_tokens[0].token if position.top_tokens else ""
        following = positions[place + 1].top_tokens[:1] if place + 1 < len(positions) else ()
        chances = _chances(position.top_tokens, given, scores)
        goes_on = any(token.token[:1].isdigit() for token in following)
        if _BEFORE_SCORE.search(before) and given in chances and not goes_on:
            found = chances  # the last one counts: what stands before it may be thoughts
        before = (before + likeliest)[-100:]
    whole = sum((found or {}).values(), Fraction(0))
    if found is None or not whole:  # some servers say that what was said has no chance
        return None
    return sum(score * chance for score, chance in found.items()) / whole


def _chances(tokens: Sequence[TokenProbability], given: float, scores: Sequence[int]) -> dict[int, Fraction]:
    """Return the probabilities of the scores among some tokens, except tokens that may begin a longer score.

    Where a tokenizer splits numbers into digits, the token 1 begins the score 10 as well as the score 1, and only for
    the token that the judge chose is it known what follows. So 1 is left out, unless the judge chose it, or 10 is
    among the tokens too.
    """
    chances: dict[int, Fraction] = {}
    for token in tokens:
        number = _WHOLE.fullmatch(token.token)
        if number is not None and int(number[1]) in scores:
            chance = Fraction(math.exp(token.logprob))
            chances[int(number[1])] = chances.get(int(number[1]), Fraction(0)) + chance
    begun = {
        score
        for score in chances
        for longer in scores
        if score != given and longer not in chances and longer != score and str(longer).startswith(str(score))
    }
    return {score: chance for score, chance in chances.items() if score not in begun}
