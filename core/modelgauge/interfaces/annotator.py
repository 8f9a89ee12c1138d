"""The interface of annotators: an expensive judgement of one prompt and completion."""

from collections.abc import Awaitable, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from modelgauge.data.items import PromptWithContext
from modelgauge.data.prompts import AnyPrompt
from modelgauge.data.responses import SUTCompletion, SUTResponse, Usage
from modelgauge.errors import DefinitionError
from modelgauge.interfaces.identity import interface_method
from modelgauge.interfaces.sut import CalledByEngine, PromptResponseSUT, SUTCapability, capabilities_of

AnnotationT = TypeVar("AnnotationT")


class Asker(Protocol):
    """The engine, as judges see it: it carries their questions to their SUTs."""

    async def ask(
        self, annotator: "CompletionAnnotator[Any]", name: str, prompt: AnyPrompt
    ) -> SUTResponse: ...

    def asked_sut(self, annotator: "CompletionAnnotator[Any]", name: str) -> PromptResponseSUT[Any, Any]: ...

    def keeps_answers(self, annotator: "CompletionAnnotator[Any]", name: str) -> bool: ...

    def waiting(self) -> AbstractContextManager[None]: ...


current_asker: ContextVar[Asker] = ContextVar("modelgauge_asker")
judged_cost: ContextVar[float | None] = ContextVar("modelgauge_judged_cost", default=None)
"""The cost in US dollars of the completion whose request is made now; None if its SUT reports none."""


class CompletionAnnotator(CalledByEngine, Generic[AnnotationT]):
    """Judges one completion of one prompt.

    An author writes three steps: prompt and completion to the annotator's own request, request to its own
    response (the expensive step; cached, retried and limited by the engine), and from there to the
    annotation. Requests and responses are JSON values or pydantic models, and so are annotations.

    Class attributes:
        max_concurrency: most calls at once; None leaves it to the engine.
    """

    required_methods: ClassVar[tuple[str, ...]] = ("translate_request", "annotate", "translate_response")

    @interface_method
    def translate_request(self, prompt: PromptWithContext, completion: SUTCompletion) -> Any:
        """Return the annotator's own request for a completion. Pure and quick."""
        raise NotImplementedError

    @interface_method
    def annotate(self, request: Any) -> Any | Awaitable[Any]:
        """Judge, and return the annotator's own response. May be `async def`; a judge asks its SUTs here."""
        raise NotImplementedError

    @interface_method
    def translate_response(self, request: Any, response: Any) -> AnnotationT:
        """Return the annotation for the annotator's own response. Pure and quick."""
        raise NotImplementedError

    def get_suts(self) -> Mapping[str, PromptResponseSUT[Any, Any] | str]:
        """Return the SUTs that `annotate` asks, as objects or uids, by the names used to ask them."""
        return {}

    async def ask(self, name: str, prompt: AnyPrompt | str) -> SUTResponse:
        """Ask one of the SUTs of `get_suts`, as a call of the engine: cached, retried, limited, counted.

        Raises:
            DefinitionError: it was called outside a run's `annotate`, or no SUT has this name.
            CallError: the SUT failed.
        """
        asked = PromptWithContext(prompt).prompt if isinstance(prompt, str) else prompt
        return await self._asker().ask(self, self._asked_name(name), asked)

    def sut_capabilities(self, name: str) -> frozenset[type[SUTCapability]]:
        """Return the capabilities of a SUT of `get_suts`, even if only its uid is known.

        Raises:
            DefinitionError: it was called outside a run's `annotate`, or no SUT has this name.
        """
        return capabilities_of(self._asked_sut(name))

    def _asked_sut(self, name: str) -> PromptResponseSUT[Any, Any]:
        return self._asker().asked_sut(self, self._asked_name(name))

    def _keeps_answers(self, name: str) -> bool:
        """Return whether the answers of a SUT in `get_suts` are cached, so that the same question gets the same
        answer.

        Raises:
            DefinitionError: it was called outside a run's `annotate`, or no SUT has this name.
        """
        return self._asker().keeps_answers(self, self._asked_name(name))

    def waiting(self) -> AbstractContextManager[None]:
        """Stop the clock of this call's deadline while it waits for what another call asks.

        During `ask` the clock stands still without this.
        """
        return self._asker().waiting()

    def _asked_name(self, name: str) -> str:
        """Return the name in `get_suts` of the SUT that is currently asked as `name`."""
        return name

    def _sut_in_messages(self, _name: str) -> str:
        return f"'{_name}' of '{self.uid}'"

    def _asker(self) -> Asker:
        asker = current_asker.get(None)
        if asker is None:
            raise DefinitionError(
                f"'{self.uid}' asked a SUT outside a run.", fix="Call self.ask only in `async def annotate`."
            )
        return asker


def make_request(
    annotator: "CompletionAnnotator[Any]",
    prompt: PromptWithContext,
    completion: SUTCompletion,
    cost: float | None,
) -> Any:
    """Make an annotator's request; while it is made, the cost of the completion can be read.

    Args:
        annotator: makes it.
        prompt: what was asked.
        completion: what is judged.
        cost: in US dollars; None if the SUT does not say.
    """
    token = judged_cost.set(cost)
    try:
        return annotator.translate_request(prompt, completion)
    finally:
        judged_cost.reset(token)


def cost_of_each(usage: Usage | None, completions: int) -> float | None:
    """Return an equal share of a response's cost for each completion; None if the SUT does not report it.

    Args:
        usage: of the response.
        completions: how many it has.
    """
    return None if usage is None or usage.cost_usd is None else usage.cost_usd / completions


Annotator = CompletionAnnotator[Any]
