"""Responses of a SUT, in the same form for every SUT."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import AfterValidator, AliasChoices, Field, FiniteFloat, ValidationInfo

from modelgauge.data.base import Frozen, Text, added_later
from modelgauge.data.copies import unshared
from modelgauge.data.json_values import check_exact


def _exact(value: Any, info: ValidationInfo) -> Any:
    return check_exact(value, info.field_name or "a value")


JsonValue = Annotated[Any, AfterValidator(_exact)]
"""Any JSON value or pydantic model that is the same after JSON."""

JsonObject = Annotated[dict[str, Any], AfterValidator(_exact)]
"""A dict that is the same after JSON."""

Own = AfterValidator(unshared)
"""Lists and mappings are copied, so that later changes to the caller's value do not reach the field."""

OwnJsonObject = Annotated[JsonObject, Own]
"""A JSON object, copied, so that later changes to the caller's dict do not reach it."""


def hashable(value: Any) -> Any:
    """Convert a JSON value to a hashable form that preserves equality."""
    if isinstance(value, dict):
        try:
            return frozenset(value.items())  # quickly, where it holds no lists and no objects
        except TypeError:
            return frozenset((name, hashable(part)) for name, part in value.items())
    return tuple(map(hashable, value)) if isinstance(value, list) else value


class TokenProbability(Frozen):
    """A token and the natural logarithm of its probability.

    Args:
        token: as the SUT writes it.
        logprob: finite; SUTs that say minus infinity mean a very small number.
    """

    token: Text
    logprob: FiniteFloat


class TopTokens(Frozen):
    """The most likely tokens at one position, the most likely first."""

    top_tokens: tuple[TokenProbability, ...]


class ToolCall(Frozen):
    """A tool that an app called, or should have called.

    Args:
        name: the tool.
        description: what the tool does.
        reasoning: why it was called.
        output: what it returned, any JSON value.
        input_parameters: its arguments; `input` and `inputParameters` are aliases.
    """

    meant_by: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("inputs", "args", "arguments", "kwargs", "params", "parameters"), "input_parameters"
    )

    name: Text
    description: Text | None = None
    reasoning: Text | None = None
    output: Annotated[JsonValue, Own] = None
    input_parameters: OwnJsonObject | None = Field(
        default=None, validation_alias=AliasChoices("input_parameters", "input", "inputParameters")
    )

    def __hash__(self) -> int:
        return hash((type(self), hashable(self.__dict__)))


TokenCount = Annotated[int, Field(ge=0, le=2**53)]  # so that sums of any number of calls are numbers still


class Usage(Frozen):
    """Usage of a call, as reported by the SUT: tokens by its own tokenizer, and US dollars; never negative.

    A local model counts its forward passes too. Those of a batch are in the usage of its first answer.
    """

    input_tokens: TokenCount | None = None
    output_tokens: TokenCount | None = None
    reasoning_tokens: TokenCount | None = None
    cost_usd: Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)] | None = None
    forward_passes: TokenCount | None = added_later(None)


class SUTCompletion(Frozen):
    """One answer of a SUT to a prompt.

    Args:
        text: the answer, without the reasoning block.
        reasoning: what the model thought; None if it does not say.
        raw_text: the text as it came, where a reasoning block was split off.
        truncated_reasoning: whether the answer ended inside the reasoning block.
        top_logprobs: the most likely tokens, one entry a position.
        tool_calls: the tools that were called.
        finish_reason: why it ended, in the SUT's own words.
        metadata: what an app returns in addition to its text, such as its retrieval context.
        blocked: True if a content filter of the service withheld the answer or a part of it. The text is what came, and
            may be empty; the service's categories go in the metadata.
        left_out: the fields of the SUT's own response that are not understood, so that the completion lacks them.
        logprob: the natural logarithm of the probability of the whole text, if it is a continuation that was scored
            (`ContinuationPrompt`); finite.
        is_greedy: True if each token of a scored continuation is the most likely one.
        num_tokens: the number of tokens of a scored continuation.
        token_logprobs: these tokens with their log-probabilities, if the SUT has them.
    """

    positional_fields: ClassVar[tuple[str, ...]] = ("text",)

    text: Text
    reasoning: Text | None = None
    raw_text: Text | None = None
    truncated_reasoning: bool = False
    top_logprobs: tuple[TopTokens, ...] | None = None
    tool_calls: tuple[ToolCall, ...] | None = None
    finish_reason: Text | None = None
    metadata: JsonObject = Field(default_factory=dict)
    blocked: bool = added_later(False)
    left_out: tuple[Text, ...] = added_later(())
    logprob: FiniteFloat | None = added_later(None)
    is_greedy: bool | None = added_later(None)
    num_tokens: TokenCount | None = added_later(None)
    token_logprobs: tuple[TokenProbability, ...] | None = added_later(None)

    @property
    def is_empty(self) -> bool:
        """True if an answer came that has no text, calls no tool and was not blocked."""
        has_come = self.metadata.get("actual_output", "") is not None  # an app may have had no output at all
        return has_come and not (self.text or self.tool_calls or self.blocked)

    if TYPE_CHECKING:

        def __init__(
            self,
            text: str,
            *,
            reasoning: str | None = None,
            raw_text: str | None = None,
            truncated_reasoning: bool = False,
            top_logprobs: Sequence[TopTokens] | None = None,
            tool_calls: Sequence[ToolCall] | None = None,
            finish_reason: str | None = None,
            metadata: dict[str, Any] = ...,
            blocked: bool = False,
            left_out: Sequence[str] = (),
            logprob: float | None = None,
            is_greedy: bool | None = None,
            num_tokens: int | None = None,
            token_logprobs: Sequence[TokenProbability] | None = None,
        ) -> None: ...


class SUTResponse(Frozen):
    """The completions of one prompt, at least one, and what they cost."""

    positional_fields: ClassVar[tuple[str, ...]] = ("completions", "usage")

    completions: Annotated[tuple[SUTCompletion, ...], Field(min_length=1)]
    usage: Usage | None = None

    @property
    def is_blocked(self) -> bool:
        """True if the service blocked a completion."""
        return any(completion.blocked for completion in self.completions)

    if TYPE_CHECKING:

        def __init__(self, completions: Sequence[SUTCompletion], usage: Usage | None = None) -> None: ...
