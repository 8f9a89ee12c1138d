"""One question to one SUT, or one completion to one annotator: what is said, or why it is not cached.

For looking at a plugin at work (`modelgauge run-sut`, `run-annotator`, `cache explain`). A question is a
run of one item, so that all holds that holds in a run; but nothing is cached, and its folder is thrown away.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from modelgauge.api import Runner
from modelgauge.cache import DiskCache, Explanation, explain
from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.data.measured import TestItemAnnotations
from modelgauge.data.prompts import AnyPrompt, ChatPrompt, TextPrompt
from modelgauge.data.records import TestItemExceptionRecord, TestItemRecord
from modelgauge.data.responses import SUTCompletion, SUTResponse
from modelgauge.engine.calls.callee import Asked, Owner, keys_of, learn_secrets, why_unkept
from modelgauge.errors import IncompatibleError, RunStoppedError, UsageError
from modelgauge.interfaces.annotator import CompletionAnnotator
from modelgauge.interfaces.sut import (
    AcceptsChatPrompt,
    AcceptsTextPrompt,
    PromptResponseSUT,
    SUTCapability,
    capabilities_of,
    request_for,
)
from modelgauge.interfaces.test import PromptResponseTest
from modelgauge.plugins.resolution import AnnotatorName, SUTName

_ANNOTATION = "annotation"


@dataclass(slots=True)
class Exchange:
    """What was said. Parts that a failure left out are None.

    Args:
        uid: of the SUT or annotator.
        request: the native request: a JSON value or pydantic model.
        response: the native response, likewise.
        answer: the `SUTResponse`, or the annotation.
        failure: why there is no answer.
    """

    uid: str
    request: Any = None
    response: Any = None
    answer: Any = None
    failure: TestItemExceptionRecord | None = None


def ask(sut: SUTName, prompt: AnyPrompt, **options: Any) -> Exchange:
    """Ask a SUT one prompt.

    Args:
        sut: a uid or an object.
        prompt: text or chat.
        options: see `Runner`; caching is off, whatever they say.

    Raises:
        UsageError: a name or a secret is wrong, or the SUT does not take such a prompt.
        RunStoppedError: the SUT could not be opened, or will never answer.
    """
    with TemporaryDirectory(prefix="modelgauge-") as folder:
        runner = _runner(folder, options)
        made = runner.resolver().sut(sut)
        _check_takes(made, prompt)
        exchange = Exchange(made.uid)
        _listen(made, ("translate_text_prompt", "translate_chat_prompt"), exchange)
        item = _run(runner, OneItem("probe", PromptWithContext(prompt), {}), made, exchange)
        if item is not None:
            said = item.interactions[0].response
            exchange.answer = SUTResponse(
                completions=tuple(one.completion for one in said.completions), usage=said.usage
            )
    return exchange


def annotate(
    annotator: AnnotatorName, prompt: PromptWithContext, completion: SUTCompletion, **options: Any
) -> Exchange:
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
    with TemporaryDirectory(prefix="modelgauge-") as folder:
        runner = _runner(folder, options)
        made = runner.resolver().annotator(annotator)
        exchange = Exchange(made.uid)
        _listen(made, ("translate_request",), exchange)
        item = _run(
            runner, OneItem("probe", prompt, {_ANNOTATION: made}), SaysThis("given", completion), exchange
        )
        if item is not None:
            exchange.answer = item.interactions[0].response.completions[0].get_annotation(_ANNOTATION)
    return exchange


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
    made = runner.resolver().sut(sut)
    _check_takes(made, prompt)
    return _explained(runner, made, {}, request_for(made, prompt), _texts(prompt))


def explain_annotate(
    annotator: AnnotatorName, prompt: PromptWithContext, completion: SUTCompletion, **options: Any
) -> Explanation:
    """Likewise for an annotator's judgement of a completion.

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
    return _explained(runner, made, resolver.judges(made), request, texts)


class OneItem(PromptResponseTest):
    """A test that asks one prompt and measures nothing.

    Args:
        uid: the name in messages.
        prompt: the only prompt.
        annotators: judge the answer.
    """

    requires_sut_capabilities: ClassVar[tuple[type[SUTCapability], ...]] = ()

    def __init__(
        self, uid: str, prompt: PromptWithContext, annotators: Mapping[str, CompletionAnnotator[Any]]
    ) -> None:
        super().__init__(uid)
        self._prompt = prompt
        self._annotators = annotators

    def make_test_items(self, dependencies: Mapping[str, Path]) -> Sequence[TestItem]:
        """The item."""
        del dependencies
        return [TestItem([self._prompt])]

    def get_annotators(self) -> Mapping[str, CompletionAnnotator[Any] | str]:
        """Those that were given."""
        return self._annotators

    def measure_quality(self, item: TestItemAnnotations) -> Mapping[str, float]:
        """Nothing."""
        del item
        return {}

    def aggregate_measurements(self, items: Any) -> Mapping[str, Any]:
        """Nothing."""
        del items
        return {}


class SaysThis(PromptResponseSUT[None, str]):
    """Answers everything with one completion, as it was given.

    Args:
        uid: the name in messages.
        completion: the answer.
    """

    split_reasoning = False

    def __init__(self, uid: str, completion: SUTCompletion) -> None:
        super().__init__(uid)
        self._completion = completion

    def translate_text_prompt(self, prompt: TextPrompt) -> None:
        """Nothing is asked."""
        del prompt

    def translate_chat_prompt(self, prompt: ChatPrompt) -> None:
        """Nothing is asked."""
        del prompt

    async def evaluate(self, request: None) -> str:
        """The text; the rest of the completion is put back by `translate_response`."""
        del request
        return self._completion.text

    def translate_response(self, request: None, response: str) -> SUTResponse:
        """The completion."""
        del request, response
        return SUTResponse(completions=(self._completion,))


def _runner(folder: str, options: Mapping[str, Any]) -> Runner:
    return Runner(folder, **{**options, "caching": False, "progress": False})


def _run(
    runner: Runner, test: OneItem, sut: PromptResponseSUT[Any, Any], exchange: Exchange
) -> TestItemRecord | None:
    """The item's record; None where it failed, which the exchange then tells."""
    record = runner.run([test], [sut])[0]
    if record.failure is not None:
        raise RunStoppedError(
            f"{record.failure.error_type}: {record.failure.message}",
            fix="`--debug` shows where it was raised.",
        )
    for item in record.iter_items():
        if isinstance(item, TestItemRecord):
            return item
        exchange.failure = item
    return None


def _explained(
    runner: Runner,
    owner: Owner,
    asked: Asked,
    request: Any,
    texts: Mapping[str, str],
) -> Explanation:
    learn_secrets(owner, runner.options.redactor)
    keys = keys_of(owner, asked)
    if keys is None:
        if owner.is_cheap and asked:
            judges = ", ".join(f"'{one.uid}'" for one in asked.values())
            raise UsageError(
                f"'{owner.uid}' is computed in each run, from the answers of {judges}. Only these are cached.",
                fix="Explain one of them: --sut UID --prompt QUESTION.",
            )
        why = owner.why_uncacheable(asked) or f"asking '{owner.uid}' costs next to nothing"
        raise UsageError(f"Nothing is ever cached: {why}.", fix="Each run makes such calls anew.")
    key = keys.key(request)
    held = why_unkept(owner, keys, key, "null", runner.options.redactor)
    if held is not None:
        raise UsageError(
            f"Such a call is never cached: '{owner.uid}' with {held}.", fix="Each run makes it anew."
        )
    folder = runner.options.data_dir / "cache"
    if not (folder / "cache.db").exists():
        return Explanation(key=key.digest, hit=False)
    cache = DiskCache(folder)
    try:
        return explain(cache, key, texts)
    finally:
        cache.close()
        cache.leave()


def _texts(prompt: AnyPrompt) -> dict[str, str]:
    """What the user wrote, by what it is called."""
    if isinstance(prompt, TextPrompt):
        return {"the prompt's text": prompt.text}
    return {
        f"the text of message {number}, {message.role.value}": message.text
        for number, message in enumerate(prompt.messages, start=1)
    }


def _listen(owner: Owner, asks: Sequence[str], into: Exchange) -> None:
    """Note what an object's translations are given and give, on the object itself."""

    def noting_request(translate: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: Any) -> Any:
            into.request = translate(*args)
            return into.request

        return noted

    def noting_response(translate: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def noted(request: Any, response: Any) -> Any:
            into.response = response
            return translate(request, response)

        return noted

    for name in asks:
        setattr(owner, name, noting_request(getattr(owner, name)))
    name = "translate_response"
    setattr(owner, name, noting_response(getattr(owner, name)))


def _check_takes(sut: PromptResponseSUT[Any, Any], prompt: AnyPrompt) -> None:
    needed = AcceptsChatPrompt if isinstance(prompt, ChatPrompt) else AcceptsTextPrompt
    has = capabilities_of(sut)
    if needed not in has:
        raise IncompatibleError(
            f"'{sut.uid}' takes no {type(prompt).__name__}.",
            fix=f"It has: {', '.join(sorted(one.__name__ for one in has))}. Choose a SUT that takes it.",
        )
