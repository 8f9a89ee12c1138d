"""What goes to a SUT: text or chat prompts, with the options of sampling."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeAlias

from pydantic import AfterValidator, Discriminator, Field, SerializeAsAny, Tag

from modelgauge.data.base import Frozen, Text
from modelgauge.data.responses import JsonObject

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class ChatRole(StrEnum):
    """The role of the speaker of a chat message."""

    user = "user"
    assistant = "assistant"
    system = "system"
    sut = assistant  # as MLCommons' ModelGauge calls it

    @classmethod
    def _missing_(cls, value: object) -> "ChatRole | None":
        return cls.assistant if value == "sut" else None


class SUTOptions(Frozen):
    """How a SUT is asked to answer; None means "not asked for", and leaves the choice to the SUT.

    Args:
        num_completions: how many completions to return.
        max_tokens: most tokens in a completion.
        temperature: temperature of sampling, 0 for the most likely token.
        top_p: nucleus sampling, 0 to 1.
        top_k_per_token: choose among this many most likely tokens.
        stop_sequences: where to stop; the sequence itself is not returned.
        presence_penalty: penalty for tokens that occurred.
        frequency_penalty: penalty for tokens by how often they occurred.
        random: a seed, or any text; equal requests with different values are different requests.
        top_logprobs: for each position, return the log-probabilities of this many tokens.
        response_schema: a JSON Schema for the completion's text. SUTs that declare `ProducesStructuredOutput` follow
            it. More of them can if every object in it requires all its properties and allows no others.
    """

    num_completions: Annotated[int, Field(ge=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_k_per_token: Annotated[int, Field(ge=1)] | None = None
    stop_sequences: tuple[Text, ...] | None = None
    presence_penalty: Annotated[float, Field(allow_inf_nan=False)] | None = None
    frequency_penalty: Annotated[float, Field(allow_inf_nan=False)] | None = None
    random: int | Text | None = None
    top_logprobs: Annotated[int, Field(ge=0)] | None = None
    response_schema: JsonObject | None = None

    def overlaid(self, over: "SUTOptions") -> "SUTOptions":
        """A copy in which the options that `over` sets replace these."""
        asked = {name: value for name, value in over.__dict__.items() if value is not None}
        return self.replaced(**asked) if asked else self


_NO_OPTIONS = SUTOptions()


def asks_nothing(options: SUTOptions) -> bool:
    """Whether all choices are left to the SUT."""
    return options is _NO_OPTIONS or options == _NO_OPTIONS


Options = Annotated[SUTOptions, Field(exclude_if=asks_nothing)]
"""Left out of JSON where nothing is asked for: most prompts of most tests."""


class _WithOptions(Frozen):
    """A prompt of any kind: it has a field `options`."""

    if TYPE_CHECKING:
        options: SUTOptions

    def with_options(self, over: SUTOptions) -> Self:
        """The prompt with run-level options, which replace its own."""
        options = self.options.overlaid(over)
        return self if options is self.options else self.replaced(options=options)


class TextPrompt(_WithOptions):
    """A prompt of one text, for SUTs that take no chat.

    Args:
        text: the prompt as the SUT gets it.
        options: how to answer.
    """

    positional_fields: ClassVar[tuple[str, ...]] = ("text", "options")

    text: Text
    options: Options = _NO_OPTIONS

    if TYPE_CHECKING:

        def __init__(self, text: str, options: SUTOptions = _NO_OPTIONS) -> None: ...


Prompt: TypeAlias = TextPrompt


class ChatMessage(Frozen):
    """One message of a chat.

    Args:
        role: user, assistant or system.
        text: of the message.
    """

    positional_fields: ClassVar[tuple[str, ...]] = ("role", "text")

    role: ChatRole
    text: Text

    if TYPE_CHECKING:

        def __init__(self, role: ChatRole | str, text: str) -> None: ...


class ChatPrompt(_WithOptions):
    """A chat that the SUT continues.

    Args:
        messages: at least one message, oldest first.
        options: how to answer.
    """

    positional_fields: ClassVar[tuple[str, ...]] = ("messages", "options")

    messages: Annotated[tuple[ChatMessage, ...], Field(min_length=1)]
    options: Options = _NO_OPTIONS

    if TYPE_CHECKING:

        def __init__(
            self, messages: Sequence[ChatMessage | Mapping[str, str]], options: SUTOptions = _NO_OPTIONS
        ) -> None: ...


AnyPrompt: TypeAlias = TextPrompt | ChatPrompt


def prompt_text(prompt: AnyPrompt) -> str:
    """A prompt for a person: the text, or the messages with their roles."""
    if isinstance(prompt, ChatPrompt):
        return "\n".join(f"[{message.role.value}] {message.text}" for message in prompt.messages)
    return prompt.text


def _kind(value: Any) -> str:
    """The kind of prompt that a value or its JSON is, so that a mistake is reported for this kind only."""
    kind = type(value)
    if kind is TextPrompt:  # the usual case first: this runs for every prompt of a test
        return "<text>"
    if kind is dict:
        return "<chat>" if "messages" in value else "<text>"
    if kind is str:
        return "<str>"
    return "<chat>" if isinstance(value, ChatPrompt) else "<str>" if isinstance(value, str) else "<text>"


if TYPE_CHECKING:
    PromptField: TypeAlias = AnyPrompt
else:
    PromptField = Annotated[
        Annotated[TextPrompt, Tag("<text>")]
        | Annotated[ChatPrompt, Tag("<chat>")]
        | Annotated[str, AfterValidator(TextPrompt), Tag("<str>")],
        Discriminator(_kind),
        SerializeAsAny(),
    ]
    """The type of a field that holds an `AnyPrompt`, and makes a `TextPrompt` of a str."""
