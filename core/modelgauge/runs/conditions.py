"""Conditions on named numbers, as people write them: `accuracy < 0.9`. What the names mean is each caller's own."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from modelgauge.config.options import NUMBER
from modelgauge.data.estimates import reaches
from modelgauge.errors import InvalidOptionError
from modelgauge.wording.did_you_mean import known_names

_FORM = re.compile(r"\s*(?P<name>\S|\S.*\S)\s*(?P<op><=|>=|==|!=|<|>)\s*(?P<number>[-+\w.]+)\s*", re.DOTALL)
_EXAMPLE = 'Write a name, one of < <= > >= == != and a number, in quotes: "accuracy < 0.9".'


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a named number.

    Args:
        name: of the number.
        operator: one of `<`, `<=`, `>`, `>=`, `==` and `!=`.
        number: what it is compared with; numbers within 1e-9 of each other are equal, as for thresholds.
    """

    name: str
    operator: str
    number: float

    @classmethod
    def parse(cls, text: str) -> "Condition":
        """Read `NAME OP NUMBER`; a name may hold spaces.

        Raises:
            InvalidOptionError: the text has another form.
        """
        found = _FORM.fullmatch(text)
        if found is None:
            raise InvalidOptionError(f"{text!r} is not a condition.", fix=_EXAMPLE)
        try:
            return cls(found["name"], found["op"], NUMBER.parse(found["number"]))
        except ValueError as wanted:
            raise InvalidOptionError(
                f"{text!r} is not a condition: {found['number']!r} is not {wanted}.", fix=_EXAMPLE
            ) from None

    def holds(self, value: float) -> bool:
        """Return whether the condition is true of a value."""
        at_least, at_most = (reaches(value, self.number, higher_is_better=higher) for higher in (True, False))
        held = {
            "<": not at_least,
            "<=": at_most,
            ">": not at_most,
            ">=": at_least,
            "==": at_least and at_most,
            "!=": not (at_least and at_most),
        }
        return held[self.operator]

    def may_hold(self, lowest: float, highest: float) -> bool:
        """Return whether the condition can be true of a value in a range."""
        nearest = min(max(self.number, lowest), highest)
        return any(map(self.holds, (lowest, nearest, highest)))

    def check_name(self, known: Iterable[str], what: str) -> None:
        """Refuse a name that nothing has.

        Args:
            known: the names that there are.
            what: they name, in the plural.

        Raises:
            InvalidOptionError: the message suggests the nearest.
        """
        check_known(self.name, known, what, f"for the condition '{self}'")

    def __str__(self) -> str:
        return f"{self.name} {self.operator} {self.number:.15g}"


def check_within(number: float, name: str, ends: tuple[float, float] | None, given: str) -> None:
    """Refuse a number that a value of this name cannot have.

    Args:
        number: what was given.
        name: of the value.
        ends: its lowest and highest possible value; None if unknown.
        given: the number as it was given.

    Raises:
        InvalidOptionError: the number is outside the range.
    """
    low, high = ends or (-math.inf, math.inf)
    if low <= number <= high:
        return
    percent = " A share of 80 % is 0.8." if (low, high) == (0, 1) else ""
    limits = [f"{word} {end:g}" for word, end in (("at least", low), ("at most", high)) if math.isfinite(end)]
    raise InvalidOptionError(
        f"'{given}' is outside the declared range of '{name}', which is {' and '.join(limits)}.",
        fix=f"Give a number within the range of '{name}'.{percent}",
    )


def check_known(name: str, known: Iterable[str], what: str, purpose: str) -> None:
    """Refuse a name that nothing has.

    Args:
        name: what was given.
        known: the names that there are.
        what: they name, in the plural.
        purpose: what the name was given for.

    Raises:
        InvalidOptionError: the message suggests the nearest.
    """
    names = list(dict.fromkeys(known))
    if name not in names:
        fix = known_names(name, names, f"The {what} are")
        raise InvalidOptionError(f"There is no {name!r} {purpose}.", fix=fix)
