"""The native response between its author and the store: to JSON text, and back to the class that the author
declared.

The class comes from the author's annotations, never from what is stored; a fresh response goes the same way
as a stored one, so that both look the same.
"""

import inspect
import re
import sys
import types
import typing
from collections.abc import Awaitable, Callable, Coroutine
from functools import lru_cache
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic_core import PydanticSerializationError, from_json, to_json

from modelgauge.data.base import adapter
from modelgauge.data.json_values import inexact_parts, is_exact
from modelgauge.data.read_only import DICTS, LISTS
from modelgauge.errors import DefinitionError, InvalidResponseError
from modelgauge.wording.phrases import a_thing, beginning, with_article


class ResponseCodec:
    """Writes and revives the responses of one method.

    Args:
        owner: the object, for messages.
        kind: the response's declared type; `Any` for plain JSON.
    """

    def __init__(self, owner: str, kind: Any) -> None:
        self.owner = owner
        self.kind = kind
        self._str_stays = kind is Any or kind is str or str in get_args(kind)
        self._adapter: TypeAdapter[Any] | None = None
        if kind is not Any and kind is not str:
            try:
                self._adapter = adapter(kind) if isinstance(kind, type) else TypeAdapter(kind)
            except (PydanticUserError, PydanticUndefinedAnnotation, TypeError) as error:
                raise DefinitionError(
                    f"The responses of {owner} are declared as {kind!r}, which JSON does not hold: {error}.",
                    fix="Declare a pydantic model, a JSON type (str, dict, list, …) or a dataclass.",
                ) from None

    def stays(self, response: Any) -> bool:
        """Return whether a response is a str that comes from the store unchanged: the usual, fast case."""
        return type(response) is str and self._str_stays and (response.isascii() or is_exact(response))

    def comes_back(self, response: Any) -> bool:
        """Return whether a value survives JSON unchanged: true of plain texts, and of classes with `comes_back`."""
        if type(response) is self.kind and "comes_back" in self.kind.__dict__:
            return True
        return self.stays(response)

    def dump(self, response: Any) -> str:
        """Serialize the response as JSON text.

        Raises:
            InvalidResponseError: JSON cannot hold it.
        """
        if self.stays(response):
            return to_json(response).decode()
        bad = None
        try:
            if isinstance(response, BaseModel):
                if self._adapter is None:
                    return response.model_dump_json()
                # As the declared class has it: what only a subclass has could not be read back.
                return self._adapter.dump_json(response, warnings="error").decode()
            flat = _without_models(response)
            bad = next(inexact_parts(flat), None)
            if bad is None:
                return to_json(flat).decode()
            text = self._dump_declared(response)
        except PydanticSerializationError:  # its message is of pydantic's inner life
            why = "it is neither JSON nor what is declared" if bad is None else bad
            raise self._refusal(response, why) from None
        except (ValueError, RecursionError) as error:
            raise self._refusal(response, str(error)) from None
        if text is None:
            raise self._refusal(response, f"{bad}, so JSON would change or refuse it")
        return text

    def _dump_declared(self, response: Any) -> str | None:
        """Serialize a dataclass, a tuple or a set, if it comes back as the declared type."""
        if self._adapter is None:
            return None
        text = self._adapter.dump_json(response, warnings="error").decode()
        return text if self._adapter.validate_json(text) == response else None

    def load(self, text: str) -> Any:
        """Parse a JSON text as a response of the declared class.

        Raises:
            InvalidResponseError: it does not fit the class.
        """
        if self._adapter is None or (self._str_stays and text.startswith('"')):
            try:
                value = from_json(text, allow_inf_nan=False)
            except ValueError as error:
                raise self._refusal(text, str(error)) from None
            if self.kind is str and not isinstance(value, str):
                raise self._of_other_kind(value)
            return value
        try:
            return self._adapter.validate_json(text, by_alias=True, by_name=True)
        except ValidationError as error:
            raise self._unfit(text, error) from None

    def _unfit(self, text: str, error: ValidationError) -> InvalidResponseError:
        """Return the error for a response of another type; for an object or a list, with the problems inside."""
        try:
            value = from_json(text)
        except ValueError as wrong:
            return self._refusal(text, str(wrong))
        lines = [line for line in error.errors(include_url=False) if line["loc"] not in ((), ("str",))]
        inside = ""
        if isinstance(value, dict | list) and lines:  # the branch of a union is no part of the value
            names = {kind.__name__ for kind in (self.kind, *get_args(self.kind)) if isinstance(kind, type)}
            where = ".".join(str(part) for part in lines[0]["loc"] if part not in names)
            inside = f", and does not fit: {where + ': ' if where else ''}{lines[0]['msg']}"
        return self._of_other_kind(value, inside)

    def _of_other_kind(self, value: Any, inside: str = "") -> InvalidResponseError:
        shown = "None" if value is None else f"{a_thing(value)} ({beginning(repr(value), 60)})"
        return InvalidResponseError(
            f"{self.owner} returned {shown}, where it must return {in_words(self.kind)}{inside}.",
            fix="Return that, or correct the method's return annotation.",
        )

    def _refusal(self, response: Any, why: str) -> InvalidResponseError:
        wanted = "a JSON value or a pydantic model" if self.kind is Any else in_words(self.kind)
        return InvalidResponseError(
            f"{self.owner} returned {a_thing(response)} that JSON cannot hold: {why}.",
            fix=f"Return {wanted}.",
        )


_WORDS: dict[Any, str] = {str: "a text (str)", type(None): "None", Any: "a JSON value"}


def in_words(kind: Any) -> str:
    """Describe a type for an error message: `a text (str) or a SUTCompletion`."""
    if get_origin(kind) in (typing.Union, types.UnionType):
        return " or ".join(in_words(part) for part in get_args(kind))
    if kind in _WORDS:
        return _WORDS[kind]
    name = kind.__name__ if isinstance(kind, type) else re.sub(r"[\w.]+\.", "", str(kind))  # no modules
    return with_article(name)


def _without_models(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if type(value) in LISTS:
        return [_without_models(part) for part in value]
    if type(value) in DICTS:
        return {key: _without_models(part) for key, part in value.items()}
    return value


def response_type(method: Callable[..., Any], cls: type) -> Any:
    """Return the response type of a method: its return annotation, or the class's generic argument, or plain JSON.

    Args:
        method: `evaluate` or `annotate` of an object.
        cls: the object's class.

    Raises:
        DefinitionError: the annotation names something that cannot be found.
    """
    return _response_type(inspect.unwrap(getattr(method, "__func__", method)), cls)


@lru_cache(maxsize=1024)
def _response_type(function: Callable[..., Any], cls: type) -> Any:
    annotations = getattr(function, "__annotations__", {})
    declared = annotations.get("return") if isinstance(annotations, dict) else None
    where = f"The return annotation of {cls.__qualname__}.{getattr(function, '__name__', 'evaluate')}"
    kind = _awaited_type(_resolved(declared, getattr(function, "__globals__", {}), where))
    if kind is None or isinstance(kind, TypeVar):
        names = vars(sys.modules[cls.__module__]) if cls.__module__ in sys.modules else {}
        kind = _resolved(_generic_argument(cls), names, f"The response type of {cls.__qualname__}")
    return Any if kind is None or isinstance(kind, TypeVar) else kind


def _resolved(declared: Any, names: dict[str, Any], where: str) -> Any:
    """Look up the names in one annotation of a method; errors in its other annotations do not matter."""
    holder = types.SimpleNamespace(__annotations__={"return": declared})
    try:
        found = typing.get_type_hints(holder, names, include_extras=True)["return"]
    except (NameError, AttributeError, TypeError, SyntaxError) as error:
        raise DefinitionError(
            f"{where}, {declared!r}, cannot be read: {error}.",
            fix="Define or import what it names at the top of the module, not under `if TYPE_CHECKING`.",
        ) from None
    return None if found is type(None) else found


def _awaited_type(kind: Any) -> Any:
    """`Awaitable[X]` and `X | Awaitable[X]` stand for X."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Awaitable, Coroutine):
        return parts[-1]
    if origin in (typing.Union, types.UnionType):
        plain = tuple(part for part in parts if get_origin(part) not in (Awaitable, Coroutine))
        return typing.Union[plain] if plain else _awaited_type(parts[0])  # noqa: UP007  of a tuple
    return kind


def _generic_argument(cls: type) -> Any:
    """Return the response type among the arguments that a class gives to `PromptResponseSUT[Request, Response]`.

    A class in between may be generic itself. Its type variable is then replaced by the argument of its subclass:

        class Served(PromptResponseSUT[Request, T]): ...
        class Chat(Served[Answer]): ...

    For `Served` this returns T. `Chat` passes Answer for T, so for `Chat` it returns Answer.
    """
    for generic in cls.__dict__.get("__orig_bases__", cls.__bases__):
        origin, arguments = get_origin(generic) or generic, get_args(generic)
        position = getattr(origin, "__dict__", {}).get("generic_response_position")
        if position is not None:
            return arguments[position] if arguments else None
        found = _generic_argument(origin) if isinstance(origin, type) else None
        if isinstance(found, TypeVar):
            given = dict(zip(getattr(origin, "__parameters__", ()), arguments, strict=False))
            found = given.get(found, found)
        if found is not None:
            return found
    return None
