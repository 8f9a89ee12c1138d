"""Fakes for tests: a SUT with scripted replies, an annotator and a test, all real subclasses.

They go through the engine like any other, so a plugin's author can run a Test on a `FakeSUT`, a SUT with a
`FakeTest`, and see what reached them:

    sut = FakeSUT("fake", {"2 + 2 = ?": "4"})
    record = run_test(MyTest("mine"), sut, data_dir=tmp_path)
    assert sut.prompts[0].text == "2 + 2 = ?"
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from pydantic import BaseModel

from modelgauge.data.annotations import TestItemAnnotations, list_completions
from modelgauge.data.base import typed
from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.data.prompts import AnyPrompt, ChatPrompt, ContinuationPrompt, TextPrompt
from modelgauge.data.responses import SUTCompletion, SUTResponse, TokenProbability, TopTokens
from modelgauge.errors import MissingAnswerError
from modelgauge.interfaces.annotator import Annotator, CompletionAnnotator
from modelgauge.interfaces.sut import AcceptsTextPrompt, PromptResponseSUT, SUTCapability
from modelgauge.interfaces.test import PromptResponseTest

Reply = str | SUTCompletion | SUTResponse | Exception
Replies = Reply | Mapping[str, Reply] | Callable[[AnyPrompt], Reply]


class FakeSUT(PromptResponseSUT[AnyPrompt, SUTResponse]):
    """Answers prompts of all kinds with scripted replies, and keeps the prompts.

    A reply is a text, a `SUTCompletion`, a whole `SUTResponse`, or an exception, which is raised as a real
    SUT's would be. A text or a completion is given as often as `num_completions` asks, and has made-up
    `top_logprobs` where these are asked for. Continuations have made-up log-likelihoods: that which is the reply, white
    space around it aside, is the likeliest, and the others are less likely from one to the next.

    Args:
        uid: the name in records.
        replies: one reply to everything; or replies by the text of the prompt (of a chat, of its last
            message); or a function of the prompt. Answers of a function, and exceptions, are never cached.
        capabilities: to declare, in addition to those that its methods imply.

    Attributes:
        prompts: the prompts that it was asked, in order; an answer from the cache was asked too.
        calls: those of them that reached `evaluate`, which a real SUT would have charged for.

    Raises:
        MissingAnswerError: while running: the script has no reply for a prompt.
    """

    identity_excludes: ClassVar[frozenset[str]] = frozenset({"prompts", "calls"})

    def __init__(
        self, uid: str, replies: Replies = "Yes", capabilities: Iterable[type[SUTCapability]] = ()
    ) -> None:
        super().__init__(uid)
        self.replies = replies
        self.prompts: list[AnyPrompt] = []
        self.calls: list[AnyPrompt] = []
        self.capabilities = tuple(capabilities)  # type: ignore[misc]  # a real SUT's are its class's, a fake's its object's

    def translate_text_prompt(self, prompt: TextPrompt) -> TextPrompt:
        """Return the prompt itself."""
        self.prompts.append(prompt)
        return prompt

    def translate_chat_prompt(self, prompt: ChatPrompt) -> ChatPrompt:
        """Return the prompt itself."""
        self.prompts.append(prompt)
        return prompt

    def translate_continuation_prompt(self, prompt: ContinuationPrompt) -> ContinuationPrompt:
        """Return the prompt itself."""
        self.prompts.append(prompt)
        return prompt

    async def evaluate(self, request: AnyPrompt) -> SUTResponse:
        """Reply as the script says."""
        self.calls.append(request)
        reply = self._reply(request)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(request, ContinuationPrompt):
            return _scored(reply, request)
        if isinstance(reply, SUTResponse):
            return reply
        completion = reply if isinstance(reply, SUTCompletion) else SUTCompletion(reply)
        asked = request.options
        if asked.top_logprobs and completion.top_logprobs is None:
            made_up = _made_up_logprobs(completion.text, asked.top_logprobs)
            completion = completion.replaced(top_logprobs=made_up)
        return SUTResponse(completions=(completion,) * (asked.num_completions or 1))

    def translate_response(self, request: AnyPrompt, response: SUTResponse) -> SUTResponse:
        """Return the response itself."""
        del request
        return response

    def _reply(self, prompt: AnyPrompt) -> Reply:
        if callable(self.replies):
            return self.replies(prompt)
        if not isinstance(self.replies, Mapping):
            return self.replies
        text = get_text(prompt)
        if text not in self.replies:
            raise MissingAnswerError(
                f"The script of '{self.uid}' has no reply to {text[:80]!r}.",
                fix="Add one, or give a function.",
            )
        return self.replies[text]


class FakeAnnotatorRequest(BaseModel):
    """The native request of a `FakeAnnotator`."""

    prompt: PromptWithContext
    completion: SUTCompletion


class FakeAnnotator(CompletionAnnotator[Any]):
    """Returns scripted annotations, and keeps what it was asked about.

    Args:
        uid: the name in records.
        annotation: one annotation for everything, or a function of prompt and completion. An annotation is
            any JSON value or a pydantic model; an exception is raised as a real annotator's would be.
        kind: the class of the annotations, where a function returns models.

    Attributes:
        calls: the prompts and completions that reached `annotate`, which a real annotator would have charged
            for.
    """

    identity_excludes: ClassVar[frozenset[str]] = frozenset({"calls"})

    def __init__(
        self,
        uid: str,
        annotation: Any | Callable[[PromptWithContext, SUTCompletion], Any],
        kind: type[BaseModel] | None = None,
    ) -> None:
        super().__init__(uid)
        self.annotation = annotation
        self.kind = type(annotation) if isinstance(annotation, BaseModel) else kind
        self.calls: list[tuple[PromptWithContext, SUTCompletion]] = []

    def translate_request(self, prompt: PromptWithContext, completion: SUTCompletion) -> FakeAnnotatorRequest:
        """Prompt and completion, side by side."""
        return FakeAnnotatorRequest(prompt=prompt, completion=completion)

    async def annotate(self, request: FakeAnnotatorRequest) -> Any:
        """Annotate as the script says."""
        self.calls.append((request.prompt, request.completion))
        scripted = self.annotation
        annotation = scripted(request.prompt, request.completion) if callable(scripted) else scripted
        if isinstance(annotation, Exception):
            raise annotation
        return annotation

    def translate_response(self, request: FakeAnnotatorRequest, response: Any) -> Any:
        """Return the annotation as an object of its class."""
        del request
        return response if self.kind is None else typed(response, self.kind)


class FakeTest(PromptResponseTest):
    """Asks the given items, measures with the given function, and keeps what it measured.

    Args:
        uid: the name in records.
        items: test items; a prompt or a text becomes an item.
        measure: from an item and its responses to named numbers; by default `answered`, whether any
            completion has a text.
        annotators: by the names under which `measure` reads their annotations.
        requires: the capabilities that a SUT must have; by default text prompts.

    Attributes:
        measured: what `measure_quality` got, in the order in which items finished.
    """

    def __init__(
        self,
        uid: str,
        items: Iterable[TestItem | PromptWithContext | AnyPrompt | str],
        measure: Callable[[TestItemAnnotations], Mapping[str, float]] | None = None,
        annotators: Mapping[str, Annotator | str] | None = None,
        requires: Iterable[type[SUTCapability]] = (AcceptsTextPrompt,),
    ) -> None:
        super().__init__(uid)
        self.items = tuple(item if isinstance(item, TestItem) else TestItem([item]) for item in items)
        self.measure = measure or _answered
        self.annotators = dict(annotators or {})
        self.requires_sut_capabilities = tuple(requires)  # type: ignore[misc]  # as for a FakeSUT's capabilities
        self.measured: list[TestItemAnnotations] = []

    def make_test_items(self, dependencies: Mapping[str, Any]) -> Iterable[TestItem]:
        """Return the given items."""
        del dependencies
        return self.items

    def get_annotators(self) -> Mapping[str, Annotator | str]:
        """Return the given annotators."""
        return self.annotators

    def measure_quality(self, item: TestItemAnnotations) -> Mapping[str, float]:
        """Measure with the given function."""
        self.measured.append(item)
        return self.measure(item)


def get_text(prompt: AnyPrompt) -> str:
    """Return what a prompt asks: its text, the last message of a chat, or the context of continuations."""
    texts = [text for role, text in prompt.parts if role != "continuation"]
    return texts[-1]


def _answered(item: TestItemAnnotations) -> Mapping[str, float]:
    return {"answered": any(each.completion.text.strip() for each in list_completions(item.interactions))}


def _scored(reply: str | SUTCompletion | SUTResponse, prompt: ContinuationPrompt) -> SUTResponse:
    """Return a scripted response that has log-probabilities, else one with made-up scores."""
    if isinstance(reply, SUTResponse):
        if reply.completions[0].logprob is not None:
            return reply
        reply = reply.completions[0]
    wanted = (reply.text if isinstance(reply, SUTCompletion) else reply).strip()
    return SUTResponse(
        [
            SUTCompletion(
                text,
                logprob=-0.5 if text.strip() == wanted else -1.0 - place,
                is_greedy=text.strip() == wanted,
                num_tokens=max(1, len(text.split())),
            )
            for place, text in enumerate(prompt.continuations)
        ]
    )


def _made_up_logprobs(text: str, count: int) -> tuple[TopTokens, ...]:
    """Return words as tokens: the reply's word first, and each further word less likely by one."""
    return tuple(
        TopTokens(
            top_tokens=tuple(
                TokenProbability(token=word if rank == 0 else f"{word}~{rank}", logprob=-1.0 - rank)
                for rank in range(count)
            )
        )
        for word in text.split()
    )
