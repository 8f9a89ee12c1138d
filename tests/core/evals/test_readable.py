"""What spans show of an app's arguments and results: JSON of anything, and nothing is changed by being shown."""

import io
from collections import deque
from dataclasses import dataclass, field

import pytest
from pydantic import BaseModel

from modelgauge.observe.readable import error_text, is_stream, shown, shown_parts


@dataclass
class Part:
    name: str
    rest: object = field(default=None)


class Model(BaseModel):
    name: str
    rest: object = None


class Plain:
    def __repr__(self):
        return "<plain>"


class Wrong:
    def __repr__(self):
        raise KeyError("no repr")


class SaylessError(Exception):
    def __str__(self):
        raise LookupError("no words")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, None),
        (True, True),
        (5, 5),
        (0.5, 0.5),
        ("text", "text"),
        (b"bytes", "bytes"),
        (float("nan"), "nan"),
        ("\ud800", "'\\ud800'"),
        ([1, (2, 3)], [1, [2, 3]]),
        (deque([1]), [1]),
        ({"a": {"b": [Plain()]}}, {"a": {"b": ["<plain>"]}}),
        (Part("p", Plain()), {"name": "p", "rest": "<plain>"}),
        (Model(name="m", rest=[1]), {"name": "m", "rest": [1]}),
        (Part, repr(Part)),
        (Plain(), "<plain>"),
        (Wrong(), "<Wrong, whose repr raised KeyError>"),
        ([float("inf")], "[inf]"),
    ],
)
def test_anything_is_shown_as_json(value, told):
    assert shown(value) == told


def test_a_set_is_shown_as_a_list():
    assert sorted(shown({1, 2})) == [1, 2]
    assert shown(frozenset({1})) == [1]


@pytest.mark.parametrize("wrap", [lambda one: one, lambda one: [one], lambda one: {"a": (one,)}])
@pytest.mark.parametrize("make", [lambda: iter([1, 2]), lambda: (n for n in [1, 2])])
def test_a_stream_is_shown_and_not_read(wrap, make):
    stream = make()
    assert repr(stream) in str(shown(wrap(stream)))
    assert list(stream) == [1, 2]


@pytest.mark.parametrize("cls", [Part, Model])
def test_a_stream_in_a_field_is_shown_and_not_read(cls):
    stream = iter("ab")
    assert shown(cls(name="p", rest=[stream, 1])) == {"name": "p", "rest": [repr(stream), 1]}
    assert list(stream) == ["a", "b"]


def test_what_can_be_read_only_once_is_a_stream():
    assert is_stream(io.StringIO("a"))
    assert is_stream(n for n in ())
    assert not any(map(is_stream, ([], "a", {}, range(3), None)))


def test_a_value_that_holds_itself_is_shown_by_its_repr():
    value = [1]
    value.append(value)
    assert shown(value) == "[1, [...]]"


def test_the_repr_of_a_large_object_is_cut():
    class Large:
        def __repr__(self):
            return "x" * 100_000

    text = shown(Large())
    assert 9_000 < len(text) <= 10_100
    assert text.startswith("xxx")
    assert shown("x" * 100_000) == "x" * 100_000


def test_each_part_is_shown_for_itself_by_a_name():
    assert shown_parts({"a": Plain(), 5: [1], "\ud800": None}) == {
        "a": "<plain>",
        "5": [1],
        "'\\ud800'": None,
    }


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("no"), "ValueError: no"),
        (KeyError("a"), "KeyError: 'a'"),
        (SaylessError(), "SaylessError: (no message: its __str__ raised LookupError)"),
        (ValueError("\ud800"), "ValueError: \\ud800"),
    ],
)
def test_an_exception_is_told_by_class_and_message(error, told):
    assert error_text(error) == told
