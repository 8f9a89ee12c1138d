"""Names as users write them, `uid` or `provider/model`, either with `?key=value&…`; and the values of options.

A value is read by a constructor's type hint. Lists are written with commas (`stop=a,b`; a comma inside an element
is `%2C`), not as JSON. Types that are not listed here are read by pydantic, from text (a date) or from JSON (a
model). Which names exist is the registry's; what a constructor takes is in `construction.py`.
"""

import types
import typing
from collections import abc
from enum import Enum
from importlib import import_module
from os import PathLike
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal, Union
from urllib.parse import quote, unquote

from modelgauge.config.options import NUMBER, truth
from modelgauge.errors import InvalidOptionError

# What a value holds as it is, so that URLs and paths stay readable.
_AS_IT_IS = "/:@$!*'();=~"


def uid_problem(uid: object) -> str | None:
    """Say why this cannot be a uid; None if it can."""
    if not isinstance(uid, str) or not uid:
        return "a uid is a text that is not empty"
    if uid.split() != [uid] or not uid.isprintable():
        return "a uid has no white space"
    if "?" in uid:
        return "a uid has no '?': options begin there"
    return None


def provider_problem(prefix: object) -> str | None:
    """Say why this cannot be the prefix of a provider; None if it can."""
    if isinstance(prefix, str) and "/" in prefix:
        return "a provider has no '/': the model begins there"
    return uid_problem(prefix)


def split_name(name: str) -> tuple[str, dict[str, str]]:
    """Split a name at its first `?`.

    Returns:
        What stands before the `?`, and the options: keys decoded, values as written.

    Raises:
        InvalidOptionError: an option without `=` or without a key, or a key that is given twice.
    """
    base, has_options, query = name.partition("?")
    options: dict[str, str] = {}
    for part in query.split("&") if has_options else ():
        key_as_written, equals, value = part.partition("=")
        key = decode(key_as_written)
        if not (equals and key):
            raise InvalidOptionError(
                f"{name!r}: {part!r} is not an option.", fix="Write NAME?key=value&key=value."
            )
        if key in options:
            raise InvalidOptionError(f"{name!r} gives {key!r} twice.", fix="Give it once; lists take commas.")
        options[key] = value
    return base, options


def join_name(base: str, options: dict[str, str]) -> str:
    """Spell a name in its one form: options sorted by key. The values are in their one form already."""
    query = "&".join(f"{quote(key, safe='')}={value}" for key, value in sorted(options.items()))
    return f"{base}?{query}" if query else base


def decode(text: str) -> str:
    """Resolve percent-encoding; `+` stays a plus.

    Raises:
        InvalidOptionError: the bytes are not UTF-8.
    """
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise InvalidOptionError(f"{text!r} is not percent-encoded UTF-8.", fix="Encode it again.") from None


def encode(text: str, *, within_list: bool = False) -> str:
    """Percent-encode a value, or one element of a list, in its one spelling."""
    return quote(text, safe=_AS_IT_IS if within_list else _AS_IT_IS + ",")


# --- values of options --------------------------------------------------------------------------------

_SEQUENCES: dict[Any, type] = {
    list: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
    abc.Sequence: list,
    abc.MutableSequence: list,
    abc.Collection: list,
    abc.Iterable: list,
    abc.Set: set,
}
_ANYTHING = (Any, object, str, None)


def convert(written: str, hint: Any) -> Any:
    """Convert the written value of an option to its type.

    Args:
        written: the value as it stands in the name, still percent-encoded.
        hint: the type that is wanted.

    Raises:
        ValueError: it does not convert.
    """
    hint = _plain(hint)
    if _is_union(hint):
        return _convert_to_member(written, typing.get_args(hint))
    if is_list(hint):
        return _convert_list(written, hint)
    return _convert_scalar(decode(written), hint)


def spelling(written: str, hint: Any) -> str:
    """Spell a value in its one form: percent-encoded only where it must be."""
    hint = _plain(hint)
    members = typing.get_args(hint) if _is_union(hint) else (hint,)
    if any(is_list(_plain(member)) for member in members):
        return ",".join(encode(decode(part), within_list=True) for part in written.split(","))
    return encode(decode(written))


def describe_type(hint: Any) -> str:
    """Describe a type for error messages: `a number`, `a whole number, or none`, `one of 'a', 'b'`."""
    hint = _plain(hint)
    arguments = typing.get_args(hint)
    if _is_union(hint):
        return ", or ".join(describe_type(member) for member in arguments)
    if typing.get_origin(hint) is Literal:
        return _describe_choices(arguments)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _describe_choices([member.value for member in hint])
    if is_list(hint):
        parts = dict.fromkeys(describe_type(part) for part in arguments if part is not Ellipsis)
        return f"a list, each part {' or '.join(parts) or 'a text'}"
    kind = hint.__origin__ if typing.get_origin(hint) is Annotated else typing.get_origin(hint) or hint
    words = _WORDS.get(kind) if _hashable(kind) else None
    return words or getattr(hint, "__name__", None) or str(hint)


_WORDS = {
    type(None): "none",
    Any: "a text",
    object: "a text",
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    Path: "a path",
    dict: "a JSON object",
}


def _describe_choices(values: abc.Sequence[Any]) -> str:
    listed = ", ".join(repr(_format_member(value)) for value in values)
    return listed if len(values) == 1 else f"one of {listed}"


def is_list(hint: Any) -> bool:
    """Return whether values of this type are written with commas."""
    return (typing.get_origin(hint) or hint) in _SEQUENCES


def _plain(hint: Any) -> Any:
    """Return the type behind a NewType or a type alias."""
    while True:
        behind = getattr(hint, "__supertype__", None) or (
            getattr(hint, "__value__", None) if type(hint).__name__ == "TypeAliasType" else None
        )
        if behind is None:
            return hint
        hint = behind


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (Union, types.UnionType)


def _convert_to_member(written: str, members: tuple[Any, ...]) -> Any:
    """Convert to the narrowest type that takes the text: a list if there is a comma, numbers before words, str last."""
    order = {int: 1, float: 2, bool: 3, type(None): 4, str: 6}

    def rank(member: Any) -> int:
        plain = _plain(member)
        if is_list(plain):
            return 0 if "," in written else 7
        return 0 if typing.get_origin(plain) is Literal else order.get(plain, 5) if _hashable(plain) else 5

    if any(is_list(_plain(member)) for member in members):
        _refuse_json(written)
    for member in sorted(members, key=rank):
        try:
            return convert(written, member)
        except ValueError:
            continue
    raise ValueError(written)


def _refuse_json(written: str) -> None:
    """Refuse a list in JSON, which would be cut at its commas; a text that begins with `[` is written with %5B."""
    if written.startswith("[") and written.endswith("]"):
        raise ValueError(written)


def _hashable(hint: Any) -> bool:
    return isinstance(hint, abc.Hashable)


def _convert_list(written: str, hint: Any) -> Any:
    _refuse_json(written)
    made = _SEQUENCES[typing.get_origin(hint) or hint]
    parts = written.split(",") if written else []
    elements = typing.get_args(hint) or (str,)
    if made is tuple and Ellipsis not in elements and typing.get_args(hint):
        if len(parts) != len(elements):
            raise ValueError(written)
        return tuple(convert(part, element) for part, element in zip(parts, elements, strict=True))
    return made(convert(part, elements[0]) for part in parts)


def _convert_scalar(text: str, hint: Any) -> Any:
    if hint in _ANYTHING:
        return text
    for scalar, read in _SCALARS.items():
        if hint is scalar:
            return read(text)
    if typing.get_origin(hint) is Literal:
        return _choose(text, {_format_member(member): member for member in typing.get_args(hint)})
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _choose(
            text, {**hint.__members__, **{_format_member(member.value): member for member in hint}}
        )
    return _convert_by_pydantic(text, hint)


_SCALARS: dict[Any, abc.Callable[[str], Any]] = {
    bool: truth,
    int: int,
    float: NUMBER.parse,  # no NaN, which equals nothing and has no JSON
    type(None): lambda text: _choose(text.lower(), {"none": None, "null": None}),
    Path: Path,
    PurePath: PurePath,
    PathLike: Path,
}


def _choose(text: str, choices: dict[str, Any]) -> Any:
    if text not in choices:
        raise ValueError(text)
    return choices[text]


def _format_member(member: object) -> str:
    return str(member).lower() if isinstance(member, bool | None) else str(member)


def _convert_by_pydantic(text: str, hint: Any) -> Any:
    # Imported for the rare type that needs it; whoever has such a hint has imported pydantic already.
    pydantic = import_module("pydantic")
    try:
        adapter = pydantic.TypeAdapter(hint)
    except pydantic.PydanticUserError as error:
        raise ValueError(text) from error
    try:
        return adapter.validate_python(text)
    except pydantic.ValidationError:
        return adapter.validate_json(text)
