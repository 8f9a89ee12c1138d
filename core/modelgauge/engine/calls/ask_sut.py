"""One question to a SUT: our prompt to its request, the call, its response to ours, reasoning split off."""

from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from modelgauge.data.annotations import Interaction, make_interaction
from modelgauge.data.items import PromptWithContext
from modelgauge.data.prompts import AnyPrompt, ContinuationPrompt, SUTOptions
from modelgauge.data.responses import SUTCompletion, SUTResponse, Usage
from modelgauge.engine.bookkeeping.app_trace import AppReport, attach_trace
from modelgauge.engine.bookkeeping.failures import add_note
from modelgauge.engine.bookkeeping.tally import CallTally
from modelgauge.engine.calls.afresh import replacing
from modelgauge.engine.calls.call import Target
from modelgauge.engine.calls.retries import usage_in
from modelgauge.engine.calls.services import CallResult
from modelgauge.engine.calls.splitting import Split, joined, single_prompts
from modelgauge.engine.loop.together import wait_for_all
from modelgauge.errors import InvalidResponseError, SingleCompletionError
from modelgauge.interfaces.sut import PromptResponseSUT, request_for
from modelgauge.text.answers import split_reasoning
from modelgauge.wording.phrases import a_thing, counted

_ROUNDING = 1e-3
"""The largest log-probability that a sum of rounded numbers may have."""

_Answer = tuple[SUTResponse, CallResult]
"""Our response, and the call that gave the native one."""


async def ask_sut(
    target: Target,
    prompt: PromptWithContext,
    tally: CallTally,
    repeat: int = 0,
    options: SUTOptions | None = None,
) -> Interaction:
    """Ask a SUT one prompt, by one call or by one for each completion.

    Args:
        target: the SUT.
        prompt: the prompt.
        tally: where the call is counted.
        repeat: which repeat of the prompt this is; each has an answer of its own.
        options: of the run, which replace those of the prompt.

    Raises:
        RunStoppedError: no call may be sent any more.
        Exception: whatever made the question fail.
    """
    sut = target.owner
    if not isinstance(sut, PromptResponseSUT):
        raise TypeError(sut)
    sent: Any = prompt.prompt if options is None else prompt.prompt.with_options(options)
    number = target.services.options.first_repeat + repeat
    if sent.num_completions == 1 or sut.completions == "one_call":
        response, call = await _ask(target, sut, sent, tally, number)
        return make_interaction(prompt, response, repeat, keys=[call.key], time=call.time)
    answers = await _ask_several(target, sut, sent, tally, number)
    responses = [response for response, _ in answers]
    times = [call.time for _, call in answers if call.time is not None]
    return make_interaction(
        prompt,
        joined(responses) if len(responses) > 1 else responses[0],
        repeat,
        keys=[call.key for _, call in answers],
        time=max(times, key=lambda time: time.seconds, default=None),
    )


async def _ask_several(
    target: Target, sut: PromptResponseSUT[Any, Any], prompt: AnyPrompt, tally: CallTally, number: int
) -> list[_Answer]:
    """Ask for several completions: by one call, unless a call gives one completion only."""
    singles = list(single_prompts(prompt, number))
    split = _split(target, sut, *singles[0])
    answers: list[_Answer] = []
    with suppress(SingleCompletionError):
        answers.append(await _ask(target, sut, prompt, tally, number, split=split))
        if len(answers[0][0].completions) > 1:
            return answers
    answers += await wait_for_all(
        [_ask(target, sut, single, tally, its) for its, single in singles[len(answers) :]]
    )
    return answers


def _split(target: Target, sut: PromptResponseSUT[Any, Any], number: int, prompt: AnyPrompt) -> Split:
    def is_single(request: Any, response: Any) -> bool:
        try:
            return len(sut.translate_response(request, response).completions) == 1
        except Exception:  # noqa: BLE001  it is raised again, once the response is kept
            return False

    return Split(target.paces.request.of(request_for, sut, prompt), number, is_single)


def _ask(
    target: Target,
    sut: PromptResponseSUT[Any, Any],
    prompt: AnyPrompt,
    tally: CallTally,
    number: int,
    *,
    split: Split | None = None,
) -> Coroutine[Any, Any, _Answer]:
    """Send a prompt as one call. `number` tells identical requests apart."""
    return replacing(
        lambda: _ask_once(target, sut, prompt, tally, number, split=split),
        target.services.options,
        lambda answer: answer[0].is_blocked,
    )


async def _ask_once(
    target: Target,
    sut: PromptResponseSUT[Any, Any],
    prompt: AnyPrompt,
    tally: CallTally,
    number: int,
    *,
    split: Split | None,
) -> _Answer:
    """Send a prompt once, and translate the response."""
    request = target.paces.request.of(request_for, sut, prompt)
    call = await target.call(request, tally, number, split)
    try:
        read = target.paces.response
        response = read.of(translated, sut, prompt, request, call.response, call.report)
    except Exception as error:
        attach_trace(error, call.report)
        note_kept_answer(target, error)
        if call.paid:
            target.settle(usage_in(error))
        raise
    if call.report is not None:
        tally.note_metrics(call.report.trace)
    if call.paid:
        target.settle(response.usage)
    return response, call


def note_kept_answer(target: Target, error: Exception) -> None:
    """Say with an error of `translate_response` that the answer is paid and kept: it is read again, not asked again."""
    if not target.is_cached:
        return
    note = (
        "The answer is kept in the cache: with a corrected translate_response, the same command reads it there and "
        "pays nothing. If the answer itself is wrong, `modelgauge resume RUN --retry-failed` asks for another."
    )
    add_note(error, note)


def translated(
    sut: PromptResponseSUT[Any, Any], prompt: AnyPrompt, request: Any, response: Any, report: AppReport | None
) -> SUTResponse:
    """Our response of a SUT's own, with what an observed app reported meanwhile, and with reasoning split off.

    Raises:
        InvalidResponseError: `translate_response` returned something else, or not the score of each continuation.
        Exception: what it raised.
    """
    ours = sut.translate_response(request, response)
    if not isinstance(ours, SUTResponse) or not _is_whole(ours):
        what = f"{a_thing(ours)}" + (" of wrong parts" if isinstance(ours, SUTResponse) else "")
        raise InvalidResponseError(
            f"translate_response of '{sut.uid}' returned {what}.",
            fix="Return SUTResponse(completions=[SUTCompletion(text=…)]).",
        )
    if report is not None:
        ours = report.added_to(ours)
    if isinstance(prompt, ContinuationPrompt):  # its texts are given, so none of them is reasoning
        _check_scores(sut, prompt, ours)
        return ours
    return without_reasoning(sut, ours)


def _check_scores(
    sut: PromptResponseSUT[Any, Any], prompt: ContinuationPrompt, response: SUTResponse
) -> None:
    """Refuse a response that does not score each continuation. A missing score must not become a wrong answer.

    Raises:
        InvalidResponseError: a continuation has no completion, log-probability or number of tokens of its own.
    """
    problem = None if response.is_blocked else _unscored(prompt, response)
    if problem is not None:
        raise InvalidResponseError(
            f"The response of '{sut.uid}' to a ContinuationPrompt {problem}.",
            fix="Let translate_response return a SUTCompletion for each continuation, in order, with its text, "
            "logprob, is_greedy and num_tokens.",
        )


def _unscored(prompt: ContinuationPrompt, response: SUTResponse) -> str | None:
    """Return what is wrong with the scores of a response; None if nothing is."""
    asked = len(prompt.continuations)
    if tuple([completion.text for completion in response.completions]) != prompt.continuations:
        return f"has {counted(len(response.completions), 'completion')} with other texts than the {asked} continuations"
    for number, completion in enumerate(response.completions, start=1):
        lacking = [
            name for name in ("logprob", "is_greedy", "num_tokens") if getattr(completion, name) is None
        ]
        if lacking:
            return f"has no {lacking[0]} for continuation {number} of {asked}"
        if (completion.logprob or 0) > _ROUNDING:
            return f"has logprob {completion.logprob:g} for continuation {number} of {asked}, and none is above 0"
    return None


def _is_whole(response: SUTResponse) -> bool:
    """Return whether a response is valid for its class.

    pydantic's `model_construct` and `model_copy` do not validate.
    """
    usage: object = response.usage
    for completion in response.completions:  # a loop: this runs for every answer
        part: object = completion
        if not (isinstance(part, SUTCompletion) and isinstance(part.text, str)):
            return False
    return usage is None or isinstance(usage, Usage)


def without_reasoning(sut: PromptResponseSUT[Any, Any], response: SUTResponse) -> SUTResponse:
    """Split the reasoning off the texts, unless the SUT leaves it in."""
    if not sut.split_reasoning:
        return response
    completions = tuple([split_off(completion, sut.reasoning_marks) for completion in response.completions])
    return response if completions == response.completions else response.replaced(completions=completions)


def split_off(completion: SUTCompletion, marks: tuple[str, str] | None = None) -> SUTCompletion:
    """Return a completion with the reasoning, if any, split off its text.

    Args:
        completion: the completion of a SUT or an app.
        marks: the marks around its reasoning, if the SUT names them.
    """
    if completion.reasoning is not None:
        return completion
    split = split_reasoning(completion.text, marks)
    if split.reasoning is None:
        return completion
    return completion.replaced(
        text=split.text,
        reasoning=split.reasoning,
        raw_text=completion.text,
        truncated_reasoning=split.truncated,
    )
