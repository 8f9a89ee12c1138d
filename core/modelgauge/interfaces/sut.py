"""The interface of systems under test: what they can do, how they are asked, and what their errors mean."""

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from modelgauge.data.prompts import AnyPrompt, ChatPrompt, ContinuationPrompt, TextPrompt
from modelgauge.data.responses import SUTResponse
from modelgauge.errors import DefinitionError, IncompatibleError
from modelgauge.interfaces.identity import interface_method, overrides
from modelgauge.interfaces.watched import Watched

Request = TypeVar("Request")
Response = TypeVar("Response")


# --- what a SUT can do: marker classes, compared by identity -------------------------------------------


class SUTCapability:
    """The base class of all capabilities.

    `methods` names what a SUT must define to have the capability; defining all of them declares it.
    """

    methods: ClassVar[tuple[str, ...]] = ()


class AcceptsTextPrompt(SUTCapability):
    """The SUT takes a `TextPrompt`: it defines `translate_text_prompt`."""

    methods = ("translate_text_prompt",)


class AcceptsChatPrompt(SUTCapability):
    """The SUT takes a `ChatPrompt`: it defines `translate_chat_prompt`."""

    methods = ("translate_chat_prompt",)


class ScoresContinuations(SUTCapability):
    """The SUT takes a `ContinuationPrompt`: it defines `translate_continuation_prompt`.

    Its response has a completion for each continuation, in order, with this text and its `logprob`, `is_greedy` and
    `num_tokens`.
    """

    methods = ("translate_continuation_prompt",)


class ProducesPerTokenLogProbabilities(SUTCapability):
    """The SUT returns `top_logprobs` where `SUTOptions.top_logprobs` asks for them."""


class ProducesStructuredOutput(SUTCapability):
    """The SUT answers in JSON that fits `SUTOptions.response_schema` where a prompt has one."""


def check_capabilities(owner: type, attribute: str, declared: object) -> None:
    """Refuse a class attribute that is no collection of capabilities.

    Raises:
        DefinitionError: it is not.
    """
    if isinstance(declared, tuple | list | set | frozenset) and all(
        isinstance(capability, type) and issubclass(capability, SUTCapability) for capability in declared
    ):
        return
    raise DefinitionError(
        f"{owner.__qualname__}.{attribute} is {declared!r}, not a tuple of capabilities.",
        fix=f"Write {attribute} = (AcceptsTextPrompt,)",
    )


# --- what `classify_error` of a SUT or an annotator returns --------------------------------------------


@dataclass(frozen=True, slots=True)
class Retry:
    """The call may succeed if it is made again.

    Args:
        after: seconds that the server asks to wait; None leaves it to the engine's back-off. A rate limit that asks
            for more than `call_timeout` stops the run of this object; `math.inf` does in any case.
        rate_limited: the server refused because of too many requests (429): fewer calls are sent at once, and the
            attempt does not count for `max_retries`.
        unreachable: no server answers at the address (a refused connection, an unknown host): all calls of this object
            wait until one gets through, and the attempt does not count for `max_retries`.
    """

    after: float | None = None
    rate_limited: bool = False
    unreachable: bool = False


@dataclass(frozen=True, slots=True)
class Fatal:
    """No call of this object can succeed (a bad key, an unknown model); after three of them in a row the run
    of this object stops."""


ErrorClass = Retry | Fatal | None


# --- the interface -------------------------------------------------------------------------------------


Completions = Literal["one_call", "many_calls", "auto"]
"""Ways of returning several completions of one prompt."""

NEEDED: dict[type[AnyPrompt], type[SUTCapability]] = {
    TextPrompt: AcceptsTextPrompt,
    ChatPrompt: AcceptsChatPrompt,
    ContinuationPrompt: ScoresContinuations,
}
"""The capability that a SUT needs for each kind of prompt."""


class CalledByEngine(Watched):
    """Base of SUTs and annotators, which the engine opens, calls and closes.

    Class attributes:
        max_concurrency: most calls at once; None leaves it to the engine.
        has_deadline: False if calls compute in this process, and so may take as long as they need: `--timeout` and
            `--call-timeout` do not apply to them, nor to `open`.
    """

    max_concurrency: int | None = None
    has_deadline: bool = True

    def classify_error(self, error: BaseException) -> ErrorClass:
        """Say whether an error of `evaluate` or `annotate` is worth another attempt; None leaves it to the engine."""
        del error
        return None

    if TYPE_CHECKING:

        def open(self) -> Any: ...  # an author's may be `async def` or a plain `def`

    else:

        @interface_method
        async def open(self) -> None:
            """Make what a run needs; called once a run.

            An `async def` makes a session or a connection, in the run's event loop, before the first item. A plain
            `def` loads a model, in a thread, before the first call that is sent: a run whose answers are all cached
            loads none.
            """

    @interface_method
    async def close(self) -> None:
        """Release what `open` made; called once a run, if it was opened."""


class PromptResponseSUT(CalledByEngine, Generic[Request, Response]):
    """A system that answers prompts.

    An author writes three steps: from our prompt to the system's own request, from request to the system's
    own response (the only expensive step; it is cached, retried and limited by the engine), and from there to
    ours. Requests and responses are JSON values or pydantic models.

    Class attributes:
        capabilities: what the SUT can do beyond the prompts that its methods accept.
        completions: what a prompt with `num_completions` takes: "one_call" that answers with all of them, or
            "many_calls", which the engine makes, each for a prompt without `num_completions`. "auto" finds out:
            many, once a response has one completion where several were asked for, or `evaluate` raises
            `SingleCompletionError`.
        split_reasoning: False leaves reasoning (`<think>` blocks and the like, see `text.split_reasoning`) in the text.
        reasoning_marks: the marks before and behind the model's reasoning, `("<plan>", "</plan>")`, in place of those
            that `text.split_reasoning` knows.
        max_concurrency: most calls at once; None leaves it to the engine.
        batch_size: for `evaluate_batch`: most requests in a batch.
        capability_fixes: sentences that name the option for a capability that the SUT lacks as it is.
    """

    capabilities: ClassVar[tuple[type[SUTCapability], ...]] = ()
    capability_fixes: ClassVar[Mapping[type[SUTCapability], str]] = {}
    completions: Completions = "one_call"
    split_reasoning: bool = True
    reasoning_marks: tuple[str, str] | None = None
    batch_size: int = 32
    generic_response_position: ClassVar[int] = 1

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _check_declared(cls)

    @interface_method
    def translate_text_prompt(self, prompt: TextPrompt) -> Request:
        """Return the system's own request for a text. Pure and quick. Defining it declares `AcceptsTextPrompt`."""
        raise NotImplementedError

    @interface_method
    def translate_chat_prompt(self, prompt: ChatPrompt) -> Request:
        """Return the system's own request for a chat. Pure and quick. Defining it declares `AcceptsChatPrompt`."""
        raise NotImplementedError

    @interface_method
    def translate_continuation_prompt(self, prompt: ContinuationPrompt) -> Request:
        """Return the system's own request for all continuations of a context, to be answered by one call.

        Pure and quick. Defining it declares `ScoresContinuations`.
        """
        raise NotImplementedError

    @interface_method
    def evaluate(self, request: Request) -> Response | Awaitable[Response]:
        """Send the request and return the system's own response. May be `async def`.

        An answer that this method refuses was paid all the same. `CallError(problem, fix=…, usage=…)` makes it count.
        """
        raise NotImplementedError

    @interface_method
    def translate_response(self, request: Request, response: Response) -> SUTResponse:
        """Return the completions in the system's own response. Pure and quick."""
        raise NotImplementedError

    @interface_method
    def evaluate_batch(self, requests: Sequence[Request]) -> list[Response]:
        """Answer several requests at once, in order: instead of `evaluate`, for local models."""
        raise NotImplementedError

    def expected_cost(self, request: Request) -> float | None:
        """Return the expected cost of a request in US dollars, if prices are known (`--dry-run`). Pure and quick."""
        del request
        return None

    @interface_method
    def list_models(self) -> Awaitable[Sequence[str]]:
        """Name the models that the SUT's server has, for `modelgauge run-sut --check`. An `async def`; optional; called
        while the SUT is open."""
        raise NotImplementedError


def capabilities_of(
    sut: PromptResponseSUT[Any, Any] | type[PromptResponseSUT[Any, Any]],
) -> frozenset[type[SUTCapability]]:
    """Return all capabilities of a SUT: those it declares, and those implied by its methods."""
    cls = sut if isinstance(sut, type) else type(sut)
    implied = {
        capability
        for capability in NEEDED.values()
        if all(overrides(cls, name) for name in capability.methods)
    }
    return frozenset(implied | set(sut.capabilities))


def fix_for_missing(sut: PromptResponseSUT[Any, Any], missing: Iterable[type[SUTCapability]]) -> str:
    """Return what to do about capabilities that a SUT lacks: its own sentences, then another SUT."""
    own = [sut.capability_fixes[capability] for capability in missing if capability in sut.capability_fixes]
    has = ", ".join(sorted(capability.__name__ for capability in capabilities_of(sut)))
    return " ".join([*own, f"{'Or choose' if own else 'Choose'} a SUT that has it; '{sut.uid}' has: {has}."])


def capability_for(prompt: AnyPrompt) -> type[SUTCapability]:
    """Return the capability that a SUT needs for a prompt."""
    return next(capability for kind, capability in NEEDED.items() if isinstance(prompt, kind))


def request_for(sut: PromptResponseSUT[Any, Any], prompt: AnyPrompt) -> Any:
    """Return a SUT's own request for a prompt.

    Raises:
        IncompatibleError: the SUT does not take this kind of prompt.
    """
    needed = capability_for(prompt)
    (method,) = needed.methods
    if not overrides(type(sut), method):
        raise IncompatibleError(
            f"'{sut.uid}' takes no {type(prompt).__name__}.",
            fix=f"Name {needed.__name__} in the test's requires_sut_capabilities, and choose another SUT.",
        )
    return getattr(sut, method)(prompt)


def check_sut(sut: PromptResponseSUT[Any, Any] | type[PromptResponseSUT[Any, Any]]) -> None:
    """Refuse a SUT, or a class of SUTs, that cannot answer anything.

    Raises:
        DefinitionError: a step is missing, or a method of a declared capability; the message names it.
    """
    cls = sut if isinstance(sut, type) else type(sut)
    _check_declared(cls)
    if not overrides(cls, "evaluate") and not overrides(cls, "evaluate_batch"):
        raise DefinitionError(
            f"{cls.__qualname__} has no evaluate.",
            fix="Define def evaluate(self, request), or evaluate_batch.",
        )
    if not overrides(cls, "translate_response"):
        raise DefinitionError(
            f"{cls.__qualname__} has no translate_response.",
            fix="Define def translate_response(self, request, response) -> SUTResponse.",
        )
    if capabilities_of(cls).isdisjoint(NEEDED.values()):
        raise DefinitionError(
            f"{cls.__qualname__} accepts no kind of prompt.",
            fix="Define translate_text_prompt, translate_chat_prompt or translate_continuation_prompt.",
        )


def _check_declared(cls: type[PromptResponseSUT[Any, Any]]) -> None:
    check_capabilities(cls, "capabilities", cls.capabilities)
    if cls.reasoning_marks is not None and not _are_two_texts(cls.reasoning_marks):
        raise DefinitionError(
            f"{cls.__qualname__}.reasoning_marks is {cls.reasoning_marks!r}, not two texts.",
            fix='Give the marks before and behind the reasoning: reasoning_marks = ("<plan>", "</plan>")',
        )
    for capability in cls.capabilities:
        missing = [name for name in capability.methods if not overrides(cls, name)]
        if missing:
            raise DefinitionError(
                f"{cls.__qualname__} declares {capability.__name__} without {', '.join(missing)}.",
                fix=f"Define def {missing[0]}(self, prompt), or do not declare it in `capabilities`.",
            )


def _are_two_texts(marks: object) -> bool:
    return (
        isinstance(marks, tuple) and len(marks) == 2 and all(isinstance(mark, str) and mark for mark in marks)
    )
