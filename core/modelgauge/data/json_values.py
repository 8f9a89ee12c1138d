"""Exact JSON values, and the canonical text of a value, from which cache keys are made."""

import json
import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from pathlib import PurePath
from typing import Any, Self
from uuid import UUID

from pydantic import BaseModel

from modelgauge.data.read_only import DICTS, LISTS
from modelgauge.errors import InvalidDataError
from modelgauge.wording.phrases import a_class, a_thing, capitalized

MOST_LEVELS = 100
"""Deepest nesting of a value: what writes and reads records takes little more than twice as much."""

_LARGEST = 10**4000  # Python reads no int of more than 4,300 digits
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
_ANY_LEVEL = -10 * MOST_LEVELS  # where tags have deepened what was measured before
_NESTED = (*LISTS, *DICTS)
_TOO_DEEP = f"is nested more than {MOST_LEVELS} levels deep"


def finite(text: str) -> float:
    """Parse a number for `json.loads`, as its `parse_float` and `parse_constant`.

    Raises:
        ValueError: the number is NaN, or too large for a float.
    """
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a finite number")
    return number


def finite_number(what: str, value: Any, *, instead: str) -> float:
    """Convert a number of any type (of numpy, say) to a finite float.

    Args:
        what: the value's name in messages.
        value: what has a `__float__`.
        instead: what its author can do where there is no finite number.

    Raises:
        InvalidDataError: it is an array of several numbers, beyond what a float holds, or not finite.
    """
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidDataError(
            f"{what} is {a_thing(value)} that is not a number: {error}.", fix="Return one number."
        ) from None
    if not math.isfinite(number):
        raise InvalidDataError(f"{what} is {number}.", fix=f"Return a finite number, or {instead}.")
    return number


def is_exact(value: Any, level: int = 0) -> bool:
    """Return whether a value survives a round trip through JSON unchanged.

    Not exact are tuples, keys that are no strings, NaN, objects, and texts that UTF-8 cannot hold.

    Args:
        value: anything.
        level: of nesting at which it stands.
    """
    kind = type(value)
    if kind is str:
        return value.isascii() or _fits_utf8(value)
    if kind in _NESTED:
        return level < MOST_LEVELS and _are_exact(value, level + 1)
    if kind is float:
        return math.isfinite(value)
    return value is None or kind is bool or (kind is int and -_LARGEST < value < _LARGEST)


def _are_exact(value: dict[Any, Any] | list[Any], level: int) -> bool:
    if isinstance(value, dict):
        for key in value:  # loops, no generators: this runs for every context
            if type(key) is not str or not (key.isascii() or _fits_utf8(key)):
                return False
    parts = value.values() if isinstance(value, dict) else value
    for part in parts:  # noqa: SIM110  a loop, as above
        if not is_exact(part, level):
            return False
    return True


def inexact_parts(value: Any, path: str = "", level: int = 0) -> Iterator[str]:
    """Describe each part of a value that JSON would change or refuse; none where `is_exact`."""
    kind = type(value)
    here = path or "the value"
    if kind in DICTS and level < MOST_LEVELS:
        for key, part in value.items():
            if type(key) is not str:
                yield f"{here} has a key of type {type(key).__name__}, not str"
            elif not _fits_utf8(key):
                yield f"{here} has the key {key!r}, which UTF-8 cannot hold"
            else:
                yield from inexact_parts(part, f"{path}.{key}" if path else key, level + 1)
    elif kind in LISTS and level < MOST_LEVELS:
        for index, part in enumerate(value):
            yield from inexact_parts(part, f"{path}[{index}]", level + 1)
    elif not is_exact(value, level):
        yield f"{here if len(here) < 100 else here[:100] + '…'} {_why(value)}"


def _why(value: Any) -> str:
    kind = type(value)
    if kind is str:
        return "holds a lone surrogate, which UTF-8 cannot hold"
    if kind is float:
        return f"is {value}"
    if kind is int:
        return "is an int of more than 4,000 digits"
    return _TOO_DEEP if kind in _NESTED else f"is {a_class(kind)}"


def _fits_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def check_exact(value: Any, what: str) -> Any:
    """Return a JSON value or a pydantic model unchanged, if its JSON gives back the same value.

    Of a model that says `comes_back` in its own class, that is known: its fields hold nothing else.

    Args:
        value: to be checked.
        what: its name in the message.

    Raises:
        InvalidDataError: it would not; the message names the part.
    """
    if isinstance(value, BaseModel):
        if "comes_back" not in type(value).__dict__ and not _comes_back(value):
            raise InvalidDataError(
                f"{what}: {type(value).__name__} changes when it is written as JSON and read back.",
                fix="Give each field a type that JSON preserves.",
            )
        return value
    if is_exact(value):
        return value
    raise InvalidDataError(
        f"{what}: {next(inexact_parts(value))}, so JSON would change or refuse it.",
        fix="Use str, int, finite float, bool, None, lists, dicts with str keys, or one pydantic model.",
    )


def _comes_back(model: BaseModel) -> bool:
    try:
        written = model.model_dump_json()
        return bool(type(model).model_validate_json(written, by_alias=True, by_name=True) == model)
    # pydantic's own errors are ValueErrors; a validator may raise others.
    except (ValueError, TypeError, RecursionError):
        return False


# --- the canonical text ---------------------------------------------------------------------------------


class IsDefault(partial[bool]):
    """The `exclude_if` of a field that was added to a class later, see `added_later`.

    Whatever is written calls it for each such field, so no Python runs in it.

    Args:
        default: of the field: None, False, 0 or (), each of which is one object.
    """

    def __new__(cls, default: object) -> Self:
        """Bind the default."""
        return super().__new__(cls, operator.is_, default)


def canonical_json(value: Any) -> str:
    """Return the canonical text of a value: sorted keys, no white space, ASCII only. Equal values have equal texts.

    A model of ours whose class or fields were renamed has its first names by `__key_form__`, so that keys stay.
    Models and dataclasses are walked field by field together with their class names, because a dump can drop
    the fields of a subclass and merge `1` with `"1"`. Fields that were `added_later` are left out while they have
    their default, so that texts made before stay equal. Values of different types differ (`1`, `1.0`, `True`,
    `"1"`), and so do `0.0` and `-0.0`.

    Raises:
        InvalidDataError: a part has no exact JSON (the message names its type).
    """
    return text_of_plain(value if type(value) is str else plain(value))


def text_of_plain(value: Any) -> str:
    """Return the canonical text of a value returned by `plain`.

    Raises:
        InvalidDataError: it holds NaN, an infinity, or what UTF-8 cannot hold.
    """
    try:
        text = _ENCODER.encode(value)
    except (ValueError, RecursionError) as error:
        raise _not_json(value, str(error)) from None
    if "\\ud" in text and not is_exact(value, _ANY_LEVEL):  # only then can there be a lone surrogate
        raise _not_json(value, next(inexact_parts(value, level=_ANY_LEVEL)))
    return text


def plain(value: Any, other: Callable[[Any], Any] | None = None, level: int = 0) -> Any:
    """Return a value as JSON that tags everything that JSON lacks, so that different values stay different.

    Args:
        value: JSON, models, dataclasses, tuples, sets, enums, bytes, dates, decimals, paths.
        other: makes JSON of any other object, or returns NotImplemented; without it, other objects are an error.
        level: of nesting at which it stands.

    Raises:
        InvalidDataError: a part is not JSON, and `other` cannot convert it.
    """
    kind = type(value)
    if kind is str or value is None or kind is bool or kind is int or kind is float:
        return value
    if level > MOST_LEVELS:
        raise InvalidDataError(f"{capitalized(a_class(kind))} {_TOO_DEEP}.", fix="Make a flatter value.")
    if other is not None and (made := other(value)) is not NotImplemented:
        return made
    inner = partial(plain, other=other, level=level + 1)
    if kind in DICTS:
        return _plain_dict(value, inner)
    if kind in LISTS:
        return [inner(part) for part in value]
    if isinstance(value, BaseModel):
        return _plain_model(value, inner)
    return _plain_object(value, inner)


def _plain_dict(value: dict[Any, Any], inner: Callable[[Any], Any]) -> dict[str, Any]:
    made = {}
    tagged = False
    for key, part in value.items():
        if type(key) is not str:
            raise _not_json(value, f"it has a key of type {type(key).__name__}, not str")
        tagged = tagged or key.startswith("$")
        made[key] = inner(part)
    return {"$dict": made} if tagged else made  # so that no dict can pose as one of our own tags


def _plain_model(value: BaseModel, inner: Callable[[Any], Any]) -> dict[str, Any]:
    if (key_form := getattr(type(value), "__key_form__", None)) is not None:
        name, named = key_form(value)
        return {"$model": name, "fields": {key: inner(part) for key, part in named.items()}}
    held = value.__dict__  # besides the fields, what cached properties have left there
    fields = {
        name: inner(held[name])
        for name, field in type(value).model_fields.items()
        if name in held and not (isinstance(field.exclude_if, IsDefault) and field.exclude_if(held[name]))
    }
    made: dict[str, Any] = {"$model": class_name(type(value)), "fields": fields}
    if value.__pydantic_extra__:
        made["extra"] = {name: inner(part) for name, part in value.__pydantic_extra__.items()}
    if value.__pydantic_private__:
        made["private"] = {name: inner(part) for name, part in value.__pydantic_private__.items()}
    return made


def _plain_object(value: Any, inner: Callable[[Any], Any]) -> dict[str, Any]:
    cls = type(value)
    name = class_name(cls)
    if cls is tuple:
        return {"$tuple": [inner(part) for part in value]}
    if isinstance(value, Enum):
        return {"$enum": name, "value": inner(value.value)}
    if is_dataclass(cls):
        held = {field.name: inner(getattr(value, field.name)) for field in fields(cls)}
        return {"$dataclass": name, "fields": held}
    if isinstance(value, set | frozenset):
        parts = [inner(part) for part in value]
        return {"$set": name, "of": sorted(parts, key=text_of_plain)}
    for kind, text in _BY_TEXT.items():
        if isinstance(value, kind):
            return {"$text": name, "text": text(value)}
    for base in _SUBCLASSED:
        if isinstance(value, base):  # a named tuple, an OrderedDict, a numpy float
            return {"$subclass": name, "value": inner(base(value))}
    raise _not_json(value, "nothing says what makes two of them equal")


_BY_TEXT: dict[Any, Callable[[Any], str]] = {
    **dict.fromkeys((date, time, timedelta, Decimal, UUID, PurePath), str),  # these say in full what they are
    bytes: bytes.hex,
    bytearray: bytearray.hex,
}
_SUBCLASSED: tuple[Any, ...] = (str, int, float, tuple, list, dict)
_WITH_PLAIN = (BaseModel, Enum, set, frozenset, *_BY_TEXT, *_SUBCLASSED)


def has_plain(value: Any) -> bool:
    """Return whether `plain` converts a value by itself, if it converts its parts."""
    return isinstance(value, _WITH_PLAIN) or is_dataclass(type(value))


def class_name(cls: type) -> str:
    """Return the name of a class in keys and records, as `module:qualname`."""
    return f"{cls.__module__}:{cls.__qualname__}"


def _not_json(value: Any, why: str) -> InvalidDataError:
    return InvalidDataError(
        f"{capitalized(a_thing(value))} has no exact JSON: {why}.",
        fix="Return str, finite numbers, lists, dicts with str keys, or a pydantic model of these.",
    )


_TAGS = {
    **dict.fromkeys(("$tuple", "$object", "$opaque", "$model", "$dataclass"), ""),
    "$enum": "value",
    "$subclass": "value",
    "$set": "of",
    "$text": "text",
}
"""Attributes with the value of an object that JSON does not know, by its tag; if empty, the tag has the value."""


def without_tags(value: Any) -> Any:
    """Return a JSON value for people: in place of tagged objects their values, or the names of their classes.

    Args:
        value: an argument in an initialization.
    """
    if isinstance(value, list):
        return [without_tags(part) for part in value]
    if isinstance(value, dict):
        for tag, field in _TAGS.items():
            if tag in value:
                return without_tags(value.get(field or tag))
        return {name: without_tags(part) for name, part in value.items()}
    return value
