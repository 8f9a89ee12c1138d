"""Prompts for a SUT: texts, chats, and texts with continuations to score, with sampling options."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, SerializeAsAny, Tag

from modelgauge.data.base import Frozen, Text
from modelgauge.data.responses import JsonObject
from modelgauge.errors import InvalidDataError


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
    """Sampling options for a SUT. None means "not set", and leaves the choice to the SUT.

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
        """Return a copy in which the options set in `over` replace these."""
        asked = {name: value for name, value in over.__dict__.items() if value is not None}
        return self.replaced(**asked) if asked else self


_NO_OPTIONS = SUTOptions()


def asks_nothing(options: SUTOptions) -> bool:
    """Return whether no option is set."""
    return options is _NO_OPTIONS or options == _NO_OPTIONS


Options = Annotated[SUTOptions, Field(exclude_if=asks_nothing)]
"""Left out of JSON where nothing is asked for: most prompts of most tests."""


class _Prompt(Frozen):
    """A prompt of any kind: it has texts, and a field `options`."""

    if TYPE_CHECKING:
        options: SUTOptions

    @property
    def num_completions(self) -> int:
        """The number of completions that are asked for."""
        return self.options.num_completions or 1

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """The texts in order, each with its role: "user", "continuation", and "" for the one text of a `TextPrompt`."""
        raise NotImplementedError

    def with_texts(self, change: Callable[[str], str]) -> Self:
        """Return a copy with each text changed.

        Args:
            change: returns the new text.
        """
        raise NotImplementedError

    def with_options(self, over: SUTOptions) -> Self:
        """Return the prompt with run-level options, which override its own."""
        options = self.options.overlaid(over)
        return self if options is self.options else self.replaced(options=options)


class TextPrompt(_Prompt):
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

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """The text, without a role."""
        return (("", self.text),)

    def with_texts(self, change: Callable[[str], str]) -> Self:
        """Return a copy with another text; see `parts`."""
        return self.replaced(text=change(self.text))


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


def _one_text(value: Any) -> Any:
    """Refuse a text where a list of texts is meant: pydantic would refuse it in other words."""
    if isinstance(value, str):
        raise InvalidDataError("continuations is one text, and must be a list.", fix="Put it into a list.")
    return value


class ChatPrompt(_Prompt):
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

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """The messages with their roles."""
        return _list_parts(self.messages)

    def with_texts(self, change: Callable[[str], str]) -> Self:
        """Return a copy with other texts of the messages; see `parts`."""
        return self.replaced(messages=_changed(self.messages, change))


class ContinuationPrompt(_Prompt):
    """A context, and texts that may follow it: the SUT says how likely it finds each of them.

    Args:
        context: a text, or a chat whose next message the continuations are. With an empty text, the continuation's own
            log-likelihood is asked for, from its first token on: the rolling log-likelihood, for perplexities.
        continuations: at least one text, none of them empty. What stands between context and continuation, such as a
            space, is part of either.
        options: how to answer.
    """

    positional_fields: ClassVar[tuple[str, ...]] = ("context", "continuations", "options")

    context: Text | Annotated[tuple[ChatMessage, ...], Field(min_length=1)]
    continuations: Annotated[
        tuple[Annotated[Text, Field(min_length=1)], ...], Field(min_length=1), BeforeValidator(_one_text)
    ]
    options: Options = _NO_OPTIONS

    if TYPE_CHECKING:

        def __init__(
            self,
            context: str | Sequence[ChatMessage | Mapping[str, str]],
            continuations: Sequence[str],
            options: SUTOptions = _NO_OPTIONS,
        ) -> None: ...

    @property
    def num_completions(self) -> int:
        """One completion: nothing is sampled, so the option of this name has no effect."""
        return 1

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """The context, then the continuations."""
        context = (("context", self.context),) if isinstance(self.context, str) else _list_parts(self.context)
        return (*context, *(("continuation", text) for text in self.continuations))

    def with_texts(self, change: Callable[[str], str]) -> Self:
        """Return a copy with another context and other continuations; see `parts`."""
        context = change(self.context) if isinstance(self.context, str) else _changed(self.context, change)
        return self.replaced(context=context, continuations=tuple(map(change, self.continuations)))


AnyPrompt: TypeAlias = TextPrompt | ChatPrompt | ContinuationPrompt
PROMPTS = (TextPrompt, ChatPrompt, ContinuationPrompt)
"""The classes of prompts."""


def _list_parts(messages: Sequence[ChatMessage]) -> tuple[tuple[str, str], ...]:
    return tuple([(message.role.value, message.text) for message in messages])


def _changed(messages: Sequence[ChatMessage], change: Callable[[str], str]) -> tuple[ChatMessage, ...]:
    return tuple([message.replaced(text=change(message.text)) for message in messages])


def parts_in(prompt: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the texts of a prompt's JSON, with their roles, as `parts` of the prompt gives them."""
    if "text" in prompt:
        return (("", prompt["text"]),)
    context = prompt["messages"] if "messages" in prompt else prompt["context"]
    if isinstance(context, str):
        before = [("context", context)]
    else:
        before = [(message["role"], message["text"]) for message in context]
    return (*before, *[("continuation", text) for text in prompt.get("continuations", ())])


def prompt_text(prompt: AnyPrompt) -> str:
    """Return a prompt for a person: the text, or the texts with their roles."""
    return "\n".join(f"[{role}] {text}" if role else text for role, text in prompt.parts)


def _kind(value: Any) -> str:
    """Return the kind of prompt of a value or its JSON, so that errors refer to this kind only."""
    kind = type(value)
    if kind is TextPrompt:  # the usual case first: this runs for every prompt of a test
        return "<text>"
    if kind is dict:
        return (
            "<chat>" if "messages" in value else "<continuations>" if "continuations" in value else "<text>"
        )
    if isinstance(value, str):
        return "<str>"
    is_chat, is_scored = isinstance(value, ChatPrompt), isinstance(value, ContinuationPrompt)
    return "<chat>" if is_chat else "<continuations>" if is_scored else "<text>"


if TYPE_CHECKING:
    PromptField: TypeAlias = AnyPrompt
else:
    PromptField = Annotated[
        Annotated[TextPrompt, Tag("<text>")]
        | Annotated[ChatPrompt, Tag("<chat>")]
        | Annotated[ContinuationPrompt, Tag("<continuations>")]
        | Annotated[str, AfterValidator(TextPrompt), Tag("<str>")],
        Discriminator(_kind),
        SerializeAsAny(),
    ]
    """The type of a field that holds an `AnyPrompt`, and makes a `TextPrompt` of a str."""
