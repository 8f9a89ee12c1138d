"""What an option is: its values, its default, its help; and how classes of options say this of their fields.

The options of runs are in `run_options`, those of comparisons in `modelgauge.comparison.options`. The command line, the
reference and the signatures in Python follow from them.
"""

import math
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field, fields
from inspect import cleandoc
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from modelgauge.errors import InvalidOptionError

T = TypeVar("T")

_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


class Values(NamedTuple):
    """The values that an option may have.

    Args:
        wanted: what to give, for messages.
        holds: whether a value is one of them.
        read: makes a value of a text, or raises ValueError.
    """

    wanted: str
    holds: Callable[[Any], bool]
    read: Callable[[str], Any] = str

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
    """The objects of a class, or of one of several."""
    return Values(wanted, lambda value: isinstance(value, kind))


def whole_number(least: int | None = None) -> Values:
    """The whole numbers from `least` on."""
    return Values(
        "a whole number" if least is None else f"a whole number of {least} or more",
        lambda value: is_number(value, int) and (least is None or value >= least),
        int,
    )


def one_of(*words: str) -> Values:
    """The values of an option that takes one of a few words."""
    return Values(f"one of: {', '.join(words)}", lambda value: value in words)


def truth(text: str) -> bool:
    """True or false, as settings and the options of names write them.

    Raises:
        ValueError: the text is neither.
    """
    word = text.strip().lower()
    if word not in (*_YES, *_NO):
        raise ValueError(text)
    return word in _YES


def is_number(value: object, kind: Any = int | float) -> bool:
    """Whether a value is a number of a kind; True and False are not numbers."""
    return isinstance(value, kind) and not isinstance(value, bool)


NUMBER = Values("a number", lambda value: is_number(value) and math.isfinite(value), float)
FROM_0_TO_1 = Values("a number from 0 to 1", lambda value: is_number(value) and 0 <= value <= 1, float)
FROM_0 = Values("a number of 0 or more", lambda value: is_number(value) and 0 <= value < math.inf, float)
ABOVE_0 = Values("a number above 0", lambda value: is_number(value) and 0 < value < math.inf, float)
SECONDS = FROM_0._replace(wanted="a number of seconds of 0 or more")
YES_NO = instance_of(bool, "True or False")._replace(read=truth)
FOLDER = instance_of((str, Path), "the path of a folder")
TEXT = instance_of(str, "a text")
FIELD = TEXT._replace(wanted="the name of a field of the items' contexts")


class OptionInfo(NamedTuple):
    """Default, group, values and help of an option.

    Args:
        default: the value without the option; None if there is no fixed default.
        group: what it concerns; which groups there are says the class that has the option.
        values: what it may be; where the default is a tuple, what each part of it may be.
        metavar: what stands for its value in the help of commands; None if no command has it.
        flags: its names on the command line.
        help: what it means.
    """

    default: Any
    group: str
    values: Values
    metavar: str | None = None
    flags: tuple[str, ...] = ()
    help: str = ""

    @property
    def several(self) -> bool:
        """Whether the option may be given several times."""
        return isinstance(self.default, tuple)


def info(*facts: Any) -> dict[str, OptionInfo]:
    """The metadata of a field that is an option; arguments as of `OptionInfo`."""
    return {"info": OptionInfo(*facts)}


def option(default: T, group: str, values: Values, metavar: str | None = None, *flags: str) -> T:
    """A field that is an option; arguments as of `OptionInfo`."""
    return field(default=default, metadata=info(default, group, values, metavar, flags))


def options_in(kind: Any) -> dict[str, OptionInfo]:
    """The options among the fields of a dataclass, by name; their help is what its docstring says of them."""
    help_of = dict(re.findall(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", cleandoc(kind.__doc__ or ""), re.MULTILINE))
    return {
        field.name: field.metadata["info"]._replace(help=" ".join(help_of.get(field.name, "").split()))
        for field in fields(kind)
        if field.metadata
    }


def check_options(options: Any) -> None:
    """Refuse an object whose class has options, if the value of an option is not valid.

    Raises:
        InvalidOptionError: the message names the option and what to give.
    """
    for option in fields(options):
        if not option.metadata:
            continue
        about, value = option.metadata["info"], getattr(options, option.name)
        for part in value if about.several else [value]:
            about.values.check(option.name, part, or_none=option.default is None)
