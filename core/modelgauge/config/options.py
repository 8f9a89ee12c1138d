"""Options: the values they take, and classes whose fields declare them.

A field declares an option once. Its name, type and default are the field's own; `option` adds help, group, bounds and
how it is written on the command line. The options of runs are in `run_options`, those of comparisons in
`modelgauge.comparison.options`. The command line, run files, settings, keyword arguments (`docs/keywords.py`) and the
reference follow from these fields.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import MISSING, Field, field, fields
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, TypedDict, TypeVar, Union, Unpack, get_args, get_origin

from modelgauge.errors import InvalidOptionError

T = TypeVar("T")

_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


class Values(NamedTuple):
    """The values that an option may have.

    Args:
        wanted: what to give, for messages.
        holds: whether a value is one of them.
        read: makes a value of a text, or raises ValueError.
        words: all values, if they are a few words.
    """

    wanted: str
    holds: Callable[[Any], bool]
    read: Callable[[str], Any] = str
    words: tuple[str, ...] = ()

    def parse(self, written: object) -> Any:
        """Return the value of what stands in a command line, the environment or a file of settings.

        Raises:
            ValueError: it is no such value; the message is what is wanted.
        """
        value = written
        if isinstance(written, str):
            with suppress(ValueError):
                value = self.read(written)
        if not self.holds(value):
            raise ValueError(self.wanted)
        return value

    def check(self, name: str, value: T, *, or_none: bool = False) -> T:
        """Return a value that an option can have, and refuse any other.

        Raises:
            InvalidOptionError: the message names the option and what to give.
        """
        if not (self.holds(value) or (or_none and value is None)):
            raise InvalidOptionError(
                f"{name} is {value!r}.", fix=f"Give {self.wanted}{', or None' if or_none else ''}."
            )
        return value


def instance_of(kind: Any, wanted: str) -> Values:
    """Accept objects of a class, or of one of several."""
    return Values(wanted, lambda value: isinstance(value, kind))


class Bounds(TypedDict, total=False):
    """The bounds of a number: `ge` and `le` may be reached, `gt` and `lt` may not."""

    ge: float
    gt: float
    le: float
    lt: float


def number(**bounds: Unpack[Bounds]) -> Values:
    """Accept finite numbers within bounds."""
    return _within(bounds, "a number", int | float, float)


def whole_number(**bounds: Unpack[Bounds]) -> Values:
    """Accept whole numbers within bounds."""
    return _within(bounds, "a whole number", int, int)


def _within(bounds: Bounds, noun: str, kind: Any, read: Callable[[str], Any]) -> Values:
    least, above = bounds.get("ge", -math.inf), bounds.get("gt", -math.inf)
    most, below = bounds.get("le", math.inf), bounds.get("lt", math.inf)

    def holds(value: Any) -> bool:
        return is_number(value, kind) and least <= value <= most and above < value < below

    return Values(f"{noun}{_in_words(bounds)}", holds, read)


def _in_words(bounds: Bounds) -> str:
    """Return what follows "a number": " from 0 to below 1"."""
    match bounds:
        case {"ge": least, "le": most}:
            return f" from {least} to {most}"
        case {"ge": least, "lt": below}:
            return f" from {least} to below {below}"
        case {"ge": least}:
            return f" of {least} or more"
        case {"gt": above, "lt": below}:
            return f" above {above} and below {below}"
        case {"gt": above}:
            return f" above {above}"
    return ""


def one_of(*words: str) -> Values:
    """Accept one of a few words."""
    return Values(f"one of: {', '.join(words)}", lambda value: value in words, words=words)


def truth(text: str) -> bool:
    """Parse true or false, as written in settings and options of names.

    Raises:
        ValueError: the text is neither.
    """
    word = text.strip().lower()
    if word not in (*_YES, *_NO):
        raise ValueError(text)
    return word in _YES


def is_number(value: object, kind: Any = int | float) -> bool:
    """Return whether a value is a number of a kind. True and False are not numbers."""
    return isinstance(value, kind) and not isinstance(value, bool)


NUMBER = number()
YES_NO = instance_of(bool, "True or False")._replace(read=truth)
FOLDER = instance_of((str, Path), "the path of a folder")
TEXT = instance_of(str, "a text")
FIELD = "the name of a field of the items' contexts"
"""The words for an option that names a field."""


class Facts(Bounds, total=False):
    """Facts about an option beside the name, type, default and help of its field.

    `wanted` replaces the words for its values in messages, `values` the values that follow from its type and bounds.
    `Option` explains the others.
    """

    group: str
    metavar: str
    flags: tuple[str, ...]
    wanted: str
    values: Values


class Option(NamedTuple):
    """An option, as its field declares it.

    Args:
        default: the value without the option; None if there is no fixed default.
        help: what it means; empty where the docstring of its class says it.
        values: what it may be; where the default is a tuple, what each part of it may be.
        group: what it concerns.
        metavar: what stands for its value in the help of commands; None if no command has it.
        flags: its names on the command line; empty for its own name.
    """

    default: Any
    help: str
    values: Values
    group: str = ""
    metavar: str | None = None
    flags: tuple[str, ...] = ()

    @property
    def several(self) -> bool:
        """True if the option may be given several times."""
        return isinstance(self.default, tuple)


def declared(help: str = "", **facts: Unpack[Facts]) -> dict[str, Any]:  # noqa: A002  as click calls it
    """Return the metadata of a field that is an option. `option` makes the whole field if its default is a constant."""
    return {"help": help, "facts": facts}


def option(default: T, help: str = "", **facts: Unpack[Facts]) -> T:  # noqa: A002  as click calls it
    """Return a field that is an option."""
    made: T = field(default=default, metadata=declared(help, **facts))
    return made


@cache
def options_in(kind: Any) -> dict[str, Option]:
    """Return the options that a dataclass declares, by name."""
    return {field.name: _make_option(field) for field in fields(kind) if "facts" in field.metadata}


def _make_option(field: Field[Any]) -> Option:
    facts: Facts = field.metadata["facts"]
    values = facts["values"] if "values" in facts else _choose_values(field.type, facts)
    return Option(
        None if field.default is MISSING else field.default,
        field.metadata["help"],
        values._replace(wanted=facts.get("wanted", values.wanted)),
        facts.get("group", ""),
        facts.get("metavar"),
        facts.get("flags", ()),
    )


def _choose_values(kind: Any, facts: Facts) -> Values:
    """Return the values that a type stands for: of `int | None` the whole numbers, of `tuple[str, ...]` the texts."""
    if get_origin(kind) in (Union, UnionType):
        [kind] = [part for part in get_args(kind) if part is not NoneType]
    if get_origin(kind) is tuple:
        kind = get_args(kind)[0]
    if get_origin(kind) is Literal:
        return one_of(*get_args(kind))
    bounds: Any = {name: bound for name, bound in facts.items() if name in Bounds.__annotations__}
    by_type = {bool: YES_NO, str: TEXT, int: whole_number(**bounds), float: number(**bounds)}
    return by_type[kind]


def check_options(options: Any) -> None:
    """Refuse an object whose class has options, if the value of an option is not valid.

    Raises:
        InvalidOptionError: the message names the option and what to give.
    """
    kind: Any = type(options)
    default_of = {each.name: each.default for each in fields(kind)}
    for name, about in options_in(kind).items():
        value = getattr(options, name)
        for part in value if about.several else [value]:
            about.values.check(name, part, or_none=default_of[name] is None)
