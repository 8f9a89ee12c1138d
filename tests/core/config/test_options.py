"""Options that the fields of a class declare: the values that follow from type and bounds."""

from dataclasses import dataclass
from typing import Literal

import pytest

from modelgauge.config.options import Values, check_options, option, options_in
from modelgauge.errors import InvalidOptionError


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    whole: int = option(0)
    counted: int | None = option(None, ge=1)
    number: float = option(0)
    share: float | None = option(None, ge=0, le=1)
    rate: float | None = option(None, ge=0, lt=1)
    level: float = option(0.05, gt=0, lt=0.5)
    positive: float = option(1, gt=0)
    seconds: float = option(1, gt=0, wanted="a number of seconds above 0")
    flag: bool = option(False)
    name: str | None = option(None)
    word: Literal["one", "two"] | None = option(None)
    words: tuple[Literal["one", "two"], ...] = option(())
    even: int = option(0, values=Values("an even number", lambda value: value % 2 == 0, int))
    other: object = None

    def __post_init__(self) -> None:
        check_options(self)


@pytest.mark.parametrize(
    ("name", "wanted", "valid", "invalid"),
    [
        ("whole", "a whole number", [-1, 10**400], [True, 0.0, "0", None]),
        ("counted", "a whole number of 1 or more", [None, 1], [0, False]),
        ("number", "a number", [-1, 0.5], [float("nan"), float("inf"), 1j, None]),
        ("share", "a number from 0 to 1", [None, 0, 1], [-0.1, 1.1]),
        ("rate", "a number from 0 to below 1", [0], [1]),
        ("level", "a number above 0 and below 0.5", [0.01], [0, 0.5]),
        ("positive", "a number above 0", [0.1], [0, float("inf")]),
        ("seconds", "a number of seconds above 0", [0.1], [0]),
        ("flag", "True or False", [True], [1, "no", None]),
        ("name", "a text", [None, ""], [1]),
        ("word", "one of: one, two", [None, "one"], ["three", 1]),
        ("words", "one of: one, two", [(), ("one", "two")], [("one", "three")]),
        ("even", "an even number", [2], [1]),
    ],
)
def test_values_follow_from_type_and_bounds(name, wanted, valid, invalid):
    for value in valid:
        assert getattr(Options(**{name: value}), name) == value
    for value in invalid:
        with pytest.raises(InvalidOptionError, match=rf"^{name} is .*\. Give {wanted}(, or None)?\.$"):
            Options(**{name: value})


@pytest.mark.parametrize(
    ("name", "written", "value"),
    [("whole", "7", 7), ("share", "0.5", 0.5), ("flag", "yes", True), ("word", "one", "one")],
)
def test_written_values_are_parsed_by_type(name, written, value):
    assert options_in(Options)[name].values.parse(written) == value


def test_fields_without_declaration_are_no_options():
    assert "other" not in options_in(Options)


def test_type_without_values_is_refused():
    @dataclass
    class Unclear:
        names: dict[str, str] | None = option(None)

    with pytest.raises(KeyError):
        options_in(Unclear)
