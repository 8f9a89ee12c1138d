"""Items of a test: prompts with their context, and the ids by which items are joined."""

import hashlib
from collections.abc import Iterable, Mapping
from json.encoder import encode_basestring_ascii as quoted
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, BeforeValidator, Field

from modelgauge.data.base import Frozen, Text, typed
from modelgauge.data.prompts import PROMPTS, AnyPrompt, ChatPrompt, PromptField, TextPrompt
from modelgauge.data.responses import JsonValue

T = TypeVar("T")


class _WithContext:
    """A class with a field `context`, which the author needs to judge an answer. A SUT never sees it."""

    def context_as(self: Any, cls: type[T]) -> T:
        """Return the context as an object of this class, even if it was read from a record.

        Raises:
            InvalidDataError: the context does not fit the class.
        """
        return typed(self.context, cls)


class PromptWithContext(Frozen, _WithContext):
    """A prompt, with context that is not sent to the SUT.

    Args:
        prompt: text or chat prompt; a str becomes a `TextPrompt`.
        source_id: the id of this prompt in the data set that it comes from.
        context: any JSON value or pydantic model.
    """

    positional_fields: ClassVar[tuple[str, ...]] = ("prompt", "source_id", "context")

    prompt: PromptField
    source_id: Text | None = None
    context: JsonValue = None

    if TYPE_CHECKING:

        def __init__(
            self, prompt: AnyPrompt | str, source_id: str | None = None, context: Any = None
        ) -> None: ...


def _as_prompts(value: Any) -> Any:
    """Turn each prompt into a `PromptWithContext`; a prompt or str stands for a list with this prompt."""
    kind = type(value)
    # Not isinstance: of a model, that takes its time.
    listed = value if kind is list or kind is tuple else _listed(value)
    return tuple([_with_context(prompt) for prompt in listed]) if type(listed) in (list, tuple) else value


def _listed(value: Any) -> Any:
    if isinstance(value, (str, *PROMPTS, PromptWithContext)):
        return [value]
    if isinstance(value, Iterable) and not isinstance(value, (bytes, Mapping, BaseModel)):
        return list(value)
    return value


def _with_context(value: Any) -> Any:
    kind = type(value)
    if kind is str or kind in PROMPTS:
        return PromptWithContext(value)
    return value


class TestItem(Frozen, _WithContext):
    """The smallest unit that can be judged: one or more prompts.

    Args:
        prompts: at least one; a str or a bare prompt becomes a `PromptWithContext`.
        context: any JSON value or pydantic model; a SUT never sees it.
        id: unique within the test and the same in every run; by default derived from source ids or prompts.
    """

    __test__: ClassVar[bool] = False
    positional_fields: ClassVar[tuple[str, ...]] = ("prompts", "context", "id")

    prompts: Annotated[tuple[PromptWithContext, ...], Field(min_length=1), BeforeValidator(_as_prompts)]
    context: JsonValue = None
    id: Annotated[str, Field(min_length=1)] | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            prompts: Iterable[PromptWithContext | AnyPrompt | str] | PromptWithContext | AnyPrompt | str,
            context: Any = None,
            id: str | None = None,  # noqa: A002  the field's name
        ) -> None: ...


def get_context(item: TestItem) -> Any:
    """Return the context of an item, or of its only prompt if the item has none."""
    is_of_prompt = item.context is None and len(item.prompts) == 1
    return item.prompts[0].context if is_of_prompt else item.context


_Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


class Digests(Frozen):
    """Digests by which `resume` recognizes an item from whose record secrets were removed.

    Args:
        id: BLAKE2b of its id, 128 bits.
        item: BLAKE2b of its whole JSON, 128 bits.
    """

    id: _Digest
    item: _Digest


def hex_digest(text: str) -> str:
    """Return the digest of an item's id, or of its JSON."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def derived_id(item: TestItem) -> str:
    """Return the id of an item whose author gave none: its source ids, else a digest of its prompts' kinds and texts.

    Options are left out, so that a test keeps its ids when it changes how it samples. The digest is
    taken of JSON that is written here alone, so that ids stay when anything else changes.
    """
    sources = [prompt.source_id for prompt in item.prompts if prompt.source_id is not None]
    if len(sources) == len(item.prompts):
        return "+".join(sources)
    parts = [_digested(prompt.prompt) for prompt in item.prompts]
    return hashlib.sha256(f"[{','.join(parts)}]".encode("ascii")).hexdigest()[:16]


def _digested(prompt: AnyPrompt) -> str:
    if isinstance(prompt, TextPrompt):
        return f'["text",{quoted(prompt.text)}]'
    kind = "chat" if isinstance(prompt, ChatPrompt) else "continuations"
    parts = ",".join(f"[{quoted(role)},{quoted(text)}]" for role, text in prompt.parts)
    return f'["{kind}",[{parts}]]'
