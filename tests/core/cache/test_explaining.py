"""Why there is no answer: the nearest entry, and what differs, in words."""

import hashlib
import json
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePosixPath
from typing import Any

import pytest
from pydantic import BaseModel

from modelgauge import FunctionSUT, PromptResponseSUT
from modelgauge.cache.explaining import explain
from modelgauge.cache.folder import FolderBackend
from modelgauge.cache.keys import Entry, Key, KeyMaker
from modelgauge.cache.responses import ResponseCache

HERE = __name__


class Shape(Enum):
    round = 1
    square = 2


class Size(Enum):
    round = 1


@dataclass
class Box:
    width: int
    shape: Any


class Request(BaseModel):
    text: str
    seed: int | None = None


class Wide(Request):
    top_k: int | None = None


class SUT(PromptResponseSUT):
    def __init__(self, uid, temperature=None, shapes=(), inner=None, **more):
        super().__init__(uid)

    def translate_text_prompt(self, prompt):
        return prompt.text

    def evaluate(self, request):
        return request

    def translate_response(self, request, response):
        return response


class Newer(SUT):
    cache_version = 2


@pytest.fixture
def explained(tmp_path):
    """`explained(asked, *cached, texts)`: each an identity and a request; the differences, by part."""
    cache = ResponseCache(FolderBackend(tmp_path / "cache"))

    def key(identity, request):
        return KeyMaker("sut", identity).key(request)

    def of_keys(asked, *cached, texts=None):
        cache.clear()
        cache.put_many([Entry(one, '"yes"') for one in cached])
        return explain(cache, asked, texts)

    def explanation(asked, *cached, **texts):
        return of_keys(key(*asked), *(key(*one) for one in cached), texts=texts)

    def by_part(found):
        assert not found.hit
        return {
            difference.part: (difference.asked, difference.cached, difference.absent)
            for difference in found.differences
        }

    def differences(asked, *cached, **texts):
        return by_part(explanation(asked, *cached, **texts))

    differences.whole, differences.whole_of_keys = explanation, of_keys
    differences.of_keys = lambda *keys: by_part(of_keys(*keys))
    yield differences
    cache.close()
    cache.leave()


def of(sut, request="hi", asked=None):
    return sut.identity(asked), request


def test_arguments_are_called_by_their_names(explained):
    assert explained(of(SUT("s", temperature=0.5)), of(SUT("s", temperature=1.0))) == {
        "argument temperature": (0.5, 1.0, None)
    }


def test_a_part_that_is_null_is_no_part_that_is_absent(explained):
    assert explained(of(SUT("s", temperature=None)), of(SUT("s"))) == {
        "argument temperature": (None, None, "cached")
    }
    assert explained(of(SUT("s", temperature=None)), of(SUT("s", temperature=2))) == {
        "argument temperature": (None, 2, None)
    }


def test_parts_of_arguments_and_nested_objects_are_found(explained):
    assert explained(
        of(SUT("s", shapes=[Shape.round, {"a": [1, 2]}], inner=SUT("x", temperature=0))),
        of(SUT("s", shapes=[Shape.square, {"a": [1]}], inner=SUT("x", temperature=1))),
    ) == {
        "argument shapes[0]": (1, 2, None),
        "argument shapes[1].a[1]": (2, None, "cached"),
        "argument inner, its argument temperature": (0, 1, None),
    }


def test_uid_class_and_version_are_called_so(explained):
    found = explained(of(Newer("new")), of(SUT("old")))
    assert found["uid"] == ("new", "old", None)
    assert found["cache_version"] == (2, 0, None)
    assert found["class"][0].endswith(":Newer")


def test_the_suts_that_a_judge_asks_are_named(explained):
    judge = SUT("judge")
    found = explained(
        of(judge, asked={"model": SUT("x", temperature=0)}),
        of(judge, asked={"model": SUT("x", temperature=1)}),
    )
    assert found == {"the SUT that it asks as 'model', its argument temperature": (0, 1, None)}


def test_requests_differ_by_field_and_class(explained):
    sut = FunctionSUT("s", str, version=1)
    assert explained(of(sut, Request(text="hi", seed=1)), of(sut, Request(text="hi"))) == {
        "request: seed": (1, None, None)
    }
    found = explained(of(sut, Wide(text="ho")), of(sut, Wide(text="ho", top_k=3)))
    assert found == {"request: top_k": (None, 3, None)}
    found = explained(of(sut, Wide(text="he")), of(sut, Request(text="he")))
    assert set(found) == {"request: its class", "request: top_k"}


def test_a_request_of_one_value_is_told_as_a_whole(explained):
    assert explained(of(SUT("s"), PurePosixPath("a")), of(SUT("s"), PurePosixPath("b"))) == {
        "request": ("a", "b", None)
    }


def test_what_the_user_wrote_is_found_in_the_request(explained):
    sut = SUT("s")
    chat = [{"role": "user", "content": "hi there"}]
    assert explained(
        of(sut, {"messages": chat, "temperature": 0}),
        of(sut, {"messages": [{"role": "user", "content": "ho"}], "temperature": 0}),
        **{"the prompt's text": "hi there"},
    ) == {"request: messages[0].content (the prompt's text differs)": ("hi there", "ho", None)}
    assert explained(
        of(sut, "Question: hi there, in short"),
        of(sut, "Question: hi there"),
        **{"the prompt's text": "hi there"},
    ) == {
        "request (the prompt's text is the same)": (
            "Question: hi there, in short",
            "Question: hi there",
            None,
        )
    }


def test_the_same_question_to_another_object_is_nearer_than_another_question(explained):
    entries = [of(SUT("s", temperature=1), f"question {n}") for n in range(5)]
    found = explained(
        of(SUT("s", temperature=1), "hello"),
        of(SUT("s", temperature=0), "hello"),
        *entries,
        **{"the prompt's text": "hello"},
    )
    assert found == {"argument temperature": (1, 0, None)}


def test_of_several_other_questions_the_one_most_alike_is_nearest(explained):
    sut = SUT("s")
    cities = ("Paris", "Rome", "Lima")
    found = explained(
        of(sut, "How old is Rome now?"),
        *(of(sut, f"How old is {city}?") for city in cities),
        **{"the prompt's text": "How old is Rome now?"},
    )
    asked, cached, _ = found["request (the prompt's text differs)"]
    assert (asked, cached) == ("How old is Rome now?", "How old is Rome?")


def test_an_answer_that_is_there_and_an_empty_cache(explained):
    asked = of(SUT("s"))
    nothing = explained.whole(asked)
    assert (nothing.hit, nothing.nearest, nothing.differences) == (False, None, ())
    there = explained.whole(asked, asked)
    assert (there.hit, there.nearest, there.differences) == (True, there.key, ())


A_SUT = SUT("s").identity()
WITH_NOTHING = {"made": ["s", "acme:SUT", 0, {}], "with": {}}


@pytest.mark.parametrize(
    ("asked", "cached", "differences"),
    [
        # Values that are more than JSON: their class stands beside what they hold.
        (Box(1, Shape.round), Box(2, Shape.round), {".width": (1, 2, None)}),
        (Box(1, Shape.round), Box(1, Size.round), {".shape (its class)": (f"{HERE}:Shape", f"{HERE}:Size", None)}),
        ({1, 2}, {1, 3}, {"[1]": (2, 3, None)}),
        ((1, 2), (1, 3), {"[1]": (2, 3, None)}),
        (PurePosixPath("a"), PurePosixPath("b"), {"": ("a", "b", None)}),
        ({"$kind": 1, "of": 2}, {"$kind": 1, "of": 3}, {".of": (2, 3, None)}),
        ({"of": 1}, {"of": 1, "more": None}, {".more": (None, None, "asked")}),
        (1, True, {"": (1, True, None)}),  # which Python calls equal
        # Objects with an identity of their own.
        ([SUT("x")], [SUT("y")], {"[0], its uid": ("x", "y", None)}),
        ({"of": SUT("x", inner=SUT("i", shapes=1))}, {"of": SUT("x", inner=SUT("i", shapes=2))},
         {".of, its argument inner, its argument shapes": (1, 2, None)}),
    ],
)  # fmt: skip
def test_parts_of_an_argument_are_told(explained, asked, cached, differences):
    assert explained(of(SUT("s", shapes=asked)), of(SUT("s", shapes=cached))) == {
        f"argument shapes{part}": values for part, values in differences.items()
    }


@pytest.mark.parametrize(
    ("asked", "cached", "differences"),
    [
        (A_SUT | {"with": {"m": 1}}, A_SUT, {"the SUT 'm'": (1, None, "cached")}),
        ({"with": 1}, {"with": 2}, {"the SUTs that it asks": (1, 2, None)}),
        ({"made": ["s", "c", 0, 1]}, {"made": ["s", "c", 0, 2]}, {"arguments": (1, 2, None)}),
        ({"made": ["s", "c", 0]}, {"made": ["s", "c", 1]}, {"cache_version": (0, 1, None)}),
        ({"other": [1]}, {"other": [2]}, {"identity.other[0]": (1, 2, None)}),
        ("one", "other", {"identity": ("one", "other", None)}),
    ],
)
def test_parts_of_an_identity_are_told(explained, asked, cached, differences):
    assert explained((asked, "hi"), (cached, "hi")) == differences


def test_role_and_repeat_are_parts_of_a_key(explained):
    asked = KeyMaker("sut", A_SUT).key("hi")
    cached = KeyMaker("annotator", A_SUT).key("hi", repeat=2)
    assert explained.of_keys(asked, cached) == {
        "SUT or annotator": ("sut", "annotator", None),
        "which repeat it is": (0, 2, None),
    }


@pytest.mark.parametrize("parts", ["nonsense", '"text"', "{}", "[" * 100_000])
def test_an_entry_whose_key_is_none_of_ours_differs_in_all(explained, parts):
    cached = Key(hashlib.sha256(parts.encode()).hexdigest(), parts)
    assert explained.of_keys(KeyMaker("sut", "s").key("hi"), cached) == {
        "the form of keys": (1, None, "cached"),
        "SUT or annotator": ("sut", None, "cached"),
        "identity": ("s", None, "cached"),
        "request": ("hi", None, "cached"),
        "which repeat it is": (0, None, "cached"),
    }


@pytest.mark.parametrize(
    ("asked", "nearer", "further"),
    [
        # What differs in fewer parts; of as many, what has more in common at both ends.
        ([1, 2, 3], [1, 0, 3], [0, 0, 3]),
        ("how old is Rome", "how old is Lima", "who was in Rome"),
        ("Rome is how old", "Lima is how old", "Rome is a city"),
        ("abab", "abax", "ab"),  # whose end is not counted twice
        # Another question is further away than two other differences, and nearer than four.
        (
            {"text": "what is asked", "a": 1, "b": 2},
            {"text": "what is asked", "a": 3, "b": 4},
            {"text": "what else", "a": 1, "b": 2},
        ),
        ({"text": "what is asked", "a": 1}, {"text": "in short: what is asked", "a": 2}, {"text": "what else", "a": 1}),
        (["what is asked", *"abcd"], ["", *"abcd"], ["what is asked", "ax", "bx", "cx", "dx"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("first", ["nearer", "further"])
def test_the_nearest_entry_is_told_in_whatever_order_they_lie(explained, asked, nearer, further, first):
    keys = {name: KeyMaker("sut", "s").key(one) for name, one in (("nearer", nearer), ("further", further))}
    order = [keys.pop(first), *keys.values()]
    found = explained.whole_of_keys(KeyMaker("sut", "s").key(asked), *order, texts={"it": "what is asked"})
    assert found.nearest == KeyMaker("sut", "s").key(nearer).digest


def test_a_text_that_stands_elsewhere_or_is_empty_is_not_found_in_the_request(explained):
    assert explained(
        of(SUT("hi there"), ["hi there", 5]), of(SUT("s"), ["hi there", 6]), it="hi there", empty=""
    ) == {
        "uid": ("hi there", "s", None),
        "request: [1]": (5, 6, None),
    }
    assert explained(of(SUT("s"), ["hi there"]), of(SUT("s"), [6]), empty="", it="hi there") == {
        "request: [0] (it differs)": ("hi there", 6, None)
    }


@pytest.mark.parametrize("fields", [5, [1], None, "x"])
def test_a_damaged_class_in_a_cached_request_is_shown_as_it_is(explained, fields):
    asked, cached = (
        {"$model": "acme:Request", "fields": {"text": "hi"}},
        {"$model": "acme:Request", "fields": fields},
    )
    maker = KeyMaker("sut", "s")
    parts = maker.key("THERE").parts.replace('"THERE"', json.dumps(cached))
    found = explained.of_keys(
        Key("0" * 64, maker.key("THERE").parts.replace('"THERE"', json.dumps(asked))),
        Key(hashlib.sha256(parts.encode()).hexdigest(), parts),
    )
    assert found == {"request: text": ("hi", None, "cached"), "request": (None, fields, "asked")}


def test_of_entries_equally_near_the_first_that_was_stored_is_told(explained):
    keys = [KeyMaker("sut", "s").key(one) for one in ("b", "c", "d")]
    for order in (keys, keys[::-1]):
        assert explained.whole_of_keys(KeyMaker("sut", "s").key("a"), *order).nearest == order[0].digest
