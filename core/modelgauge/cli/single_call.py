"""One call of one SUT or annotator: its request and response, or why its answer is not cached.

For looking at a plugin at work (`modelgauge run-sut`, `run-annotator`, `cache explain`). A question is a
run of one item, so that all holds that holds in a run; but nothing is cached, and its folder is thrown away.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory
from typing import Any

from modelgauge.api import Runner
from modelgauge.cache.explaining import Explanation, explain
from modelgauge.cache.opening import existing_cache
from modelgauge.data.item_records import Failure, ItemRecord
from modelgauge.data.items import PromptWithContext
from modelgauge.data.prompts import AnyPrompt
from modelgauge.data.responses import SUTCompletion, SUTResponse
from modelgauge.engine.calls.policy import CallPolicy, JudgeSUTs, Owner, learn_secrets, why_unkept
from modelgauge.engine.calls.splitting import single_prompts
from modelgauge.errors import IncompatibleError, RunStoppedError, UsageError
from modelgauge.interfaces.annotator import CompletionAnnotator
from modelgauge.interfaces.sut import (
    NEEDED,
    PromptResponseSUT,
    capabilities_of,
    capability_for,
    fix_for_missing,
    request_for,
)
from modelgauge.plugins.resolution import AnnotatorName, SUTName
from modelgauge.testing.fakes import FakeSUT, FakeTest

_ANNOTATION = "annotation"
_PATIENCE = 3.0  # seconds


@dataclass(slots=True)
class SingleCall:
    """One call, step by step. Steps after a failure are None; a blocked answer has both an answer and a failure.

    Args:
        uid: of the SUT or annotator.
        request: the native request: a JSON value or pydantic model. A list of those that were answered, where each
            completion took a call of its own.
        response: the native response: a JSON value or pydantic model; or a list of them.
        answer: the `SUTResponse`, or the annotation.
        failure: why there is no answer.
    """

    uid: str
    request: Any = None
    response: Any = None
    answer: Any = None
    failure: Failure | None = None


def ask(sut: SUTName, prompt: AnyPrompt, **options: Any) -> SingleCall:
    """Ask a SUT one prompt.

    Args:
        sut: a uid or an object.
        prompt: text or chat.
        options: see `Runner`; caching is off, whatever they say.

    Raises:
        UsageError: a name or a secret is wrong, or the SUT does not take such a prompt.
        RunStoppedError: the SUT could not be opened, or will never answer.
    """
    with throwaway_runner(options) as runner:
        made = _sut(runner, sut, prompt)
        return _make_call(runner, made, made, PromptWithContext(prompt), {})


def annotate(
    annotator: AnnotatorName, prompt: PromptWithContext, completion: SUTCompletion, **options: Any
) -> SingleCall:
    """Have an annotator judge one completion; SUTs that it asks are asked.

    Args:
        annotator: a uid or an object.
        prompt: what was asked, with the context that the annotator may need.
        completion: what was answered.
        options: see `Runner`; caching is off, whatever they say.

    Raises:
        UsageError: a name or a secret is wrong.
        RunStoppedError: the annotator could not be opened, or will never answer.
    """
    answering = FakeSUT("given", SUTResponse((completion,)))
    answering.split_reasoning = False
    with throwaway_runner(options) as runner:
        made = runner.resolver().annotator(annotator)
        return _make_call(runner, made, answering, prompt, {_ANNOTATION: made})


def explain_ask(sut: SUTName, prompt: AnyPrompt, **options: Any) -> Explanation:
    """Say whether a SUT's answer to a prompt is in the cache, and how the nearest entry differs if not.

    Args:
        sut: a uid or an object.
        prompt: text or chat, with all options that a run would lay over it.
        options: see `Runner`.

    Raises:
        UsageError: a name or a secret is wrong, the SUT does not take such a prompt, or is never cached.
    """
    runner = Runner(**options)
    made = _sut(runner, sut, prompt)
    explained = _explain(runner, made, {}, request_for(made, prompt), _texts(prompt))
    if not explained.hit and made.completions != "one_call":  # each completion may be there by itself
        _, single = next(single_prompts(prompt, 0))
        first = _explain(runner, made, {}, request_for(made, single), _texts(prompt))
        return first if first.hit else explained
    return explained


def explain_annotate(
    annotator: AnnotatorName, prompt: PromptWithContext, completion: SUTCompletion, **options: Any
) -> Explanation:
    """Explain why an annotator's judgement of a completion is in the cache, or is not.

    Args:
        annotator: a uid or an object.
        prompt: what was asked, with the context that the annotator may need.
        completion: what was answered.
        options: see `Runner`.

    Raises:
        UsageError: a name or a secret is wrong, or the annotator is never cached.
    """
    runner = Runner(**options)
    resolver = runner.resolver()
    made = resolver.annotator(annotator)
    request = made.translate_request(prompt, completion)
    texts = {"the completion's text": completion.text, **_texts(prompt.prompt)}
    return _explain(runner, made, resolver.judges(made), request, texts)


@contextmanager
def throwaway_runner(options: Mapping[str, Any]) -> Iterator[Runner]:
    """Return a `Runner` without cache, with short waits for the server, in a temporary folder."""
    with TemporaryDirectory(prefix="modelgauge-") as folder:
        runner = Runner(folder, **{**options, "caching": False, "progress": False})
        runner.options = replace(runner.options, first_patience=_PATIENCE)
        yield runner


def _sut(runner: Runner, sut: SUTName, prompt: AnyPrompt) -> PromptResponseSUT[Any, Any]:
    made = runner.resolver().sut(sut)
    needed = capability_for(prompt)
    if needed not in capabilities_of(made):
        raise IncompatibleError(
            f"'{made.uid}' takes no {type(prompt).__name__}.", fix=fix_for_missing(made, [needed])
        )
    return made


def _make_call(
    runner: Runner,
    owner: Owner,
    sut: PromptResponseSUT[Any, Any],
    prompt: PromptWithContext,
    annotators: Mapping[str, CompletionAnnotator[Any]],
) -> SingleCall:
    """Run a test of one prompt, and note the native request and response of the SUT or the annotator."""
    call = SingleCall(owner.uid)
    answered = _listen(owner, call)
    test = FakeTest("probe", [prompt], lambda _: {}, annotators, requires=())
    record = runner.run([test], [sut])[0]
    if len(answered) > 1:
        call.request, call.response = map(list, zip(*answered, strict=True))
    if record.failure is not None:
        why, kind = record.failure.message, record.failure.error_type
        raise RunStoppedError(
            why if kind == RunStoppedError.__name__ else f"{kind}: {why}",
            fix="`--debug` shows where it was raised.",
        )
    for item in record.iter_items():
        if item.failure is not None:
            call.failure = item.failure
            if not annotators:
                call.answer = next(list_responses(item), None)
            continue
        first = item.interactions[0].response.completions[0]
        call.answer = first.get_annotation(_ANNOTATION) if annotators else next(list_responses(item))
    return call


def list_responses(item: ItemRecord) -> Iterator[SUTResponse]:
    """Return the responses to an item's prompts, without annotations."""
    return (interaction.response.unannotated for interaction in item.interactions)


def _explain(
    runner: Runner, owner: Owner, judge_suts: JudgeSUTs, request: Any, texts: Mapping[str, str]
) -> Explanation:
    learn_secrets(owner, runner.options.redactor)
    keys = CallPolicy.of(owner, judge_suts).make_keys()
    if keys is None:
        if owner.is_cheap and judge_suts:
            judges = ", ".join(f"'{sut.uid}'" for sut in judge_suts.values())
            raise UsageError(
                f"'{owner.uid}' is computed in each run, from the answers of {judges}. Only these are cached.",
                fix="Explain one of them: --sut UID --prompt QUESTION.",
            )
        why = owner.why_uncacheable(judge_suts) or f"asking '{owner.uid}' costs next to nothing"
        raise UsageError(f"Nothing is ever cached: {why}.", fix="Each run makes such calls again.")
    key = keys.key(request)
    held = why_unkept(owner, keys, key, "null", runner.options.redactor)
    if held is not None:
        raise UsageError(
            f"Such a call is never cached: '{owner.uid}' with {held}.", fix="Each run makes it again."
        )
    with existing_cache(runner.options.cache, runner.options.data_dir) as cache:
        return Explanation(key=key.digest, hit=False) if cache is None else explain(cache, key, texts)


def _texts(prompt: AnyPrompt) -> dict[str, str]:
    """Return the texts that the user wrote, by description."""
    return {
        f"the text of message {number}, {role}" if role else "the prompt's text": text
        for number, (role, text) in enumerate(prompt.parts, start=1)
    }


def _listen(owner: Owner, into: SingleCall) -> list[tuple[Any, Any]]:
    """Replace the translating methods of an object, so that its native request and response are noted.

    Returns:
        All requests that are answered from now on, with their responses.
    """
    answered: list[tuple[Any, Any]] = []

    def noting_request(translate: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: Any) -> Any:
            into.request = translate(*args)
            return into.request

        return noted

    def noting_response(request: Any, response: Any) -> Any:
        if not any(response is known for _, known in answered):
            answered.append((request, response))
        into.response = response
        return translate_response(request, response)

    for name in (*(method for kind in NEEDED.values() for method in kind.methods), "translate_request"):
        if hasattr(owner, name):
            setattr(owner, name, noting_request(getattr(owner, name)))
    translate_response: Callable[[Any, Any], Any] = owner.translate_response
    owner.translate_response = noting_response  # type: ignore[method-assign]  # of this object alone
    return answered
