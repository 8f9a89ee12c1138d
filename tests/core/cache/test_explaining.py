"""Why there is no answer: the nearest entry, and what differs, in words."""

from enum import Enum

import pytest
from pydantic import BaseModel

from modelgauge import FunctionSUT, PromptResponseSUT
from modelgauge.cache import DiskCache, Entry, KeyMaker, explain


class Shape(Enum):
    round = 1
    square = 2


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
    cache = DiskCache(tmp_path / "cache")

    def key(identity, request):
        return KeyMaker("sut", identity).key(request)

    def explanation(asked, *cached, **texts):
        cache.clear()
        cache.put_many([Entry(key(*one), '"yes"') for one in cached])
        return explain(cache, key(*asked), texts)

    def differences(asked, *cached, **texts):
        found = explanation(asked, *cached, **texts)
        assert not found.hit
        return {one.part: (one.asked, one.cached, one.absent) for one in found.differences}

    differences.whole = explanation
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
