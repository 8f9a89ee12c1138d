import datetime as dt
from collections.abc import Iterable, Sequence
from enum import Enum, IntEnum
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, NewType, Optional, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from modelgauge.plugins.names import convert, describe_type, encode, spelling


class Color(Enum):
    RED = "r"


class Level(IntEnum):
    LOW = 1


class Box(BaseModel):
    width: int


Meters = NewType("Meters", float)


@pytest.mark.parametrize(
    ("hint", "written", "value"),
    [
        (str, "a%20b", "a b"),
        (Any, "1", "1"),
        (None, "1", "1"),
        (int, "-3", -3),
        (float, "1e-3", 0.001),
        (float, "2", 2.0),
        (bool, "yes", True),
        (bool, "FALSE", False),
        (Path, "a/b", Path("a/b")),
        (PathLike, "a", Path("a")),
        (Color, "r", Color.RED),
        (Color, "RED", Color.RED),
        (Level, "1", Level.LOW),
        (Literal["a", 2, True] | None, "a", "a"),
        (Literal["a", 2, True] | None, "2", 2),
        (Literal["a", 2, True] | None, "true", True),
        (Literal["a", 2, True] | None, "none", None),
        (Optional[int], "3", 3),  # noqa: UP045  the old spelling is what is tested
        (int | None, "none", None),
        (str | None, "x", "x"),
        (int | str, "5", 5),
        (str | int, "5", 5),
        (Union[str, float], "x", "x"),  # noqa: UP007  likewise
        (bool | int, "1", 1),
        (bool | int, "true", True),
        (Literal["auto"] | int, "auto", "auto"),
        (str | list[str], "a", "a"),
        (str | list[str], "a,b", ["a", "b"]),
        (list[int], "1,2", [1, 2]),
        (list[int], "", []),
        (list, "a,b", ["a", "b"]),
        (list[str], "a%2Cb,c", ["a,b", "c"]),
        (list[str], "%5Ba],c", ["[a]", "c"]),
        (str | Sequence[str] | None, "%5Ba]", "[a]"),
        (list[int] | None, "1", [1]),
        (Sequence[float], "1,2", [1.0, 2.0]),
        (Iterable[str], "x", ["x"]),
        (tuple[int, ...], "1,2,3", (1, 2, 3)),
        (tuple[int, str], "1,x", (1, "x")),
        (set[int], "1,1", {1}),
        (Meters, "1.5", 1.5),
        (Annotated[int, Field(gt=0)], "3", 3),
        (dt.date, "2024-02-29", dt.date(2024, 2, 29)),
        (Box, "%7B%22width%22:3%7D", Box(width=3)),
        (dict[str, int], '{"a":1}', {"a": 1}),
    ],
)
def test_text_becomes_a_value_of_the_type(hint, written, value):
    converted = convert(written, hint)
    assert converted == value
    assert type(converted) is type(value)


@pytest.mark.parametrize(
    ("hint", "written"),
    [
        (int, "1.5"),
        (int, ""),
        (float, "nan"),
        (float, "-inf"),
        (float, "warm"),
        (bool, "maybe"),
        (Color, "blue"),
        (Literal["a"], "b"),
        (int | None, "x"),
        (list[int], "1,x"),
        (list[str], '["a","b"]'),
        (str | Sequence[str] | None, '["a","b"]'),
        (tuple[int, str], "1"),
        (Annotated[int, Field(gt=0)], "0"),
        (Box, "{}"),
        (type("Opaque", (), {}), "x"),
    ],
)
def test_what_does_not_convert_is_refused(hint, written):
    with pytest.raises(ValueError):  # noqa: PT011  its message is the caller's
        convert(written, hint)


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (str, "a text"),
        (int | None, "a whole number, or none"),
        (list[float], "a list, each part a number"),
        (list, "a list, each part a text"),
        (Literal["a", "b"], "one of 'a', 'b'"),
        (bool | Literal["auto"], "true or false, or 'auto'"),
        (Color, "'r'"),
        (tuple[int, ...], "a list, each part a whole number"),
        (tuple[int, str], "a list, each part a whole number or a text"),
        (dict[str, int], "a JSON object"),
        (Path, "a path"),
        (Annotated[int, Field(gt=0)], "a whole number"),
        (Box, "Box"),
    ],
)
def test_types_are_described_in_words(hint, words):
    assert describe_type(hint) == words


@given(st.text())
def test_every_text_survives(text):
    assert convert(encode(text), str) == text


@given(st.lists(st.text(min_size=1), min_size=1))
def test_every_list_survives_and_has_one_spelling(texts):
    written = ",".join(encode(text, within_list=True) for text in texts)
    assert convert(written, list[str]) == texts
    assert spelling(written, list[str]) == written


def test_one_value_has_one_spelling():
    assert spelling("a%2Cb", str) == spelling("a,b", str) == spelling("%61,b", str) == "a,b"
    assert spelling("a%2Cb", list[str]) == "a%2Cb"
