"""Responses on their way to the store and back: a hit looks as a miss does."""

import dataclasses
import functools
import math
import sys
import types
import typing
from collections.abc import Awaitable, Coroutine
from typing import Any, Generic, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from modelgauge.data.estimates import Score
from modelgauge.errors import DefinitionError, InvalidResponseError
from modelgauge.interfaces.codec import ResponseCodec, response_type
from modelgauge.interfaces.sut import PromptResponseSUT

T = TypeVar("T")
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


class Answer(BaseModel):
    text: str
    scores: tuple[float, ...] = ()


class Detailed(Answer):
    reason: str = ""


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str


class StrictMore(Strict):
    reason: str = ""


class Aliased(BaseModel):
    text: str = Field(alias="Text")


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class Loose(BaseModel):
    part: Any


@dataclasses.dataclass
class Point:
    x: int


def through(kind: Any, response: Any) -> Any:
    codec = ResponseCodec("'it'", kind)
    return codec.load(codec.dump(response))


@pytest.mark.parametrize(
    ("kind", "response"),
    [
        (Any, {"a": [1, 1.5, None, True, "x"]}),
        (Any, "text"),
        (Any, None),
        (str, 'tex\n"t😀'),
        (int, 3),
        (dict[str, int], {"a": 1}),
        (dict[int, str], {1: "a"}),
        (list[Answer], [Answer(text="a"), Answer(text="b", scores=(0.1,))]),
        (tuple[int, str], (1, "a")),
        (set[int], {1, 2}),
        (Answer, Answer(text="a", scores=(1.0, 2.0))),
        (Aliased, Aliased(Text="a")),
        (Open, Open(a=1, b={"c": 2})),
        (Answer | None, None),
        (Answer | None, Answer(text="a")),
        (Answer | str, "plain"),
        (Answer | str, Answer(text="a")),
        (str | None, "null"),
        (Point, Point(3)),
        (bytes, b"abc"),
    ],
)
def test_a_response_comes_back_as_it_was(kind, response):
    again = through(kind, response)
    assert again == response
    assert type(again) is type(response)


@given(TEXTS)
def test_texts_come_back(text):
    for kind in (Any, str, str | Answer, str | None):
        codec = ResponseCodec("'it'", kind)
        assert codec.load(codec.dump(text)) == text
        assert codec.stays(text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
        max_leaves=6,
    )
)
def test_json_values_come_back(value):
    assert repr(through(Any, value)) == repr(value)


def test_what_stays_need_not_be_dumped():
    assert not ResponseCodec("'it'", int).stays("5")
    assert not ResponseCodec("'it'", str).stays("\ud800")
    assert not ResponseCodec("'it'", str).stays(5)


def test_an_instance_of_a_subclass_comes_back_as_the_declared_class():
    assert through(Answer, Detailed(text="a", reason="b")) == Answer(text="a")
    assert through(Strict, StrictMore(text="a", reason="b")) == Strict(text="a")


def test_without_a_declared_class_a_model_becomes_json():
    assert through(Any, Answer(text="a")) == {"text": "a", "scores": []}
    assert through(Any, [Answer(text="a")]) == [{"text": "a", "scores": []}]


def test_numbers_become_what_is_declared():
    assert type(through(float, 1)) is float


@pytest.mark.parametrize(
    ("kind", "response"),
    [
        (Any, math.nan),
        (Any, (1, 2)),
        (Any, {1: "a"}),
        (Any, object()),
        (Any, {"a": [b"x"]}),
        (Any, "\ud800"),
        (Any, ["\ud800"]),
        (str, "\ud800"),
        (str, 5),
        (str, None),
        (int, "five"),
        (dict, {1: "a"}),
        (list[int], [1, math.inf]),
        (Answer, None),
        (Answer, Loose(part=1)),
        (Answer, {"txt": "a"}),
        (Answer, Answer(text="\ud800")),
        (Answer, Answer(text="a", scores=(math.nan,))),
        (Answer, Answer.model_construct(text=5)),
        (Answer | str, 5),
        (Loose, Loose(part=object())),
        (Any, Loose(part=lambda: 1)),
    ],
)
def test_what_json_cannot_hold_or_the_class_does_not_take_is_refused(kind, response):
    with pytest.raises(InvalidResponseError) as caught:
        through(kind, response)
    assert "'it'" in caught.value.problem
    assert caught.value.fix


def test_circular_responses_are_refused():
    circle: list[Any] = []
    circle.append(circle)
    for response in (circle, Loose.model_construct(part=circle)):
        with pytest.raises(InvalidResponseError):
            through(Any, response)


@pytest.mark.parametrize("text", ['"x"', "{", "", "null", '{"text": 5}', "[]"])
def test_stored_text_that_does_not_fit_is_refused(text):
    with pytest.raises(InvalidResponseError):
        ResponseCodec("'it'", Answer).load(text)


@pytest.mark.parametrize(
    ("response", "told"),
    [
        (None, "'it' returned None, where it must return a text (str) or an Answer."),
        (5, "'it' returned an int (5), where it must return a text (str) or an Answer."),
        (
            ["x"],
            "'it' returned a list (['x']), where it must return a text (str) or an Answer, and does not fit",
        ),
        ({"scores": []}, "a text (str) or an Answer, and does not fit: text: Field required."),
        ({"text": 5}, "a text (str) or an Answer, and does not fit: text: Input should be a valid string."),
    ],
)
def test_a_wrong_response_is_told_in_words(response, told):
    with pytest.raises(InvalidResponseError) as caught:
        through(str | Answer, response)
    assert told in str(caught.value)
    assert "Union" not in str(caught.value)


@pytest.mark.parametrize("response", [object(), b"x"])
def test_what_is_neither_json_nor_declared_is_told_without_pydantics_own_words(response):
    with pytest.raises(InvalidResponseError, match=r"Return a text \(str\) or an Answer\.$") as caught:
        through(str | Answer, response)
    assert "Pydantic" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "NaN", "[1,]", "[" * 10_000])
def test_stored_text_that_is_no_json_is_refused(text):
    for kind in (Any, str):
        with pytest.raises(InvalidResponseError):
            ResponseCodec("'it'", kind).load(text)


class Handle:
    """What pydantic knows nothing of."""


def test_a_type_that_json_cannot_give_back_is_a_definition_error():
    with pytest.raises(DefinitionError, match=r"Handle"):
        ResponseCodec("'it'", Handle)


# --- which class it is -----------------------------------------------------------------------------------


class Base(PromptResponseSUT[str, Answer]):
    pass


class Halfway(PromptResponseSUT[str, T], Generic[T]):
    pass


class Bare(PromptResponseSUT):
    pass


def declared(cls: type, method: Any = None) -> Any:
    return response_type(method or cls.evaluate, cls)


def test_the_annotation_comes_first():
    class One(Base):
        def evaluate(self, request: str) -> Detailed: ...

    class Two(Base):
        async def evaluate(self, request: str) -> Detailed: ...

    assert declared(One) is declared(Two) is Detailed


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (Awaitable[Detailed], Detailed),
        (Coroutine[Any, Any, Detailed], Detailed),
        (Detailed | Awaitable[Detailed], Detailed),
        (Awaitable[Detailed] | Coroutine[Any, Any, Detailed], Detailed),
        (str | Answer | Awaitable[str | Answer], str | Answer),
        (typing.Optional[Answer], Answer | None),  # noqa: UP045  what is tested
        ("Answer | None", Answer | None),
        (list["Answer"], list[Answer]),
        (Any, Any),
    ],
)
def test_annotations_of_all_kinds(annotation, expected):
    def evaluate(self, request): ...

    evaluate.__annotations__["return"] = annotation
    assert declared(Base, evaluate) == expected


def test_else_the_generic_argument():
    class Unannotated(Base):
        def evaluate(self, request): ...

    class Given(Halfway[Detailed]):
        def evaluate(self, request): ...

    class Deeper(Given):
        pass

    class Open(Halfway[T], Generic[T]):
        def evaluate(self, request) -> T: ...

    class Closed(Open[Detailed]):
        pass

    assert declared(Unannotated) is Answer
    assert declared(Given) is declared(Deeper) is declared(Closed) is Detailed
    assert declared(Base) is Answer


def test_else_json():
    class Nothing(Bare):
        def evaluate(self, request): ...

    assert declared(Nothing) is Any
    assert declared(Bare) is Any
    assert declared(Halfway) is Any


def test_a_forward_reference_among_the_generic_arguments():
    module = types.ModuleType("made_up_module")
    sys.modules["made_up_module"] = module
    try:
        source = (
            "from modelgauge.interfaces.sut import PromptResponseSUT\n"
            "class It(PromptResponseSUT['Req', 'Resp']):\n    def evaluate(self, request): ...\n"
            "class Req: ...\nclass Resp: ...\n"
        )
        exec(source, vars(module))
        assert declared(module.It) is module.Resp
    finally:
        del sys.modules["made_up_module"]


def test_only_the_return_annotation_must_be_readable():
    def evaluate(self, request: "Unknown") -> "Answer": ...  # noqa: F821

    assert declared(Base, evaluate) is Answer


@pytest.mark.parametrize("annotation", ["Unknown", "Answer.missing", "not python", list["Unknown"]])  # noqa: F821
def test_an_unreadable_annotation_is_a_definition_error(annotation):
    def evaluate(self, request): ...

    evaluate.__annotations__["return"] = annotation
    with pytest.raises(DefinitionError, match=r"return annotation of Base\.evaluate") as caught:
        declared(Base, evaluate)
    assert "TYPE_CHECKING" in caught.value.fix


def test_a_decorated_method_keeps_its_annotation():
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args): ...

        return wrapper

    class One(Base):
        @decorate
        def evaluate(self, request: str) -> Detailed: ...

    assert declared(One) is Detailed


@pytest.mark.parametrize("method", [len, functools.partial(print), lambda request: request])
def test_callables_without_annotations(method):
    assert declared(Bare, method) is Any


def test_only_the_declared_class_itself_may_say_that_it_comes_back():
    class More(Score):
        more: int = 0

    codec = ResponseCodec("'x'", Score)
    assert codec.comes_back(Score(1.0))
    assert not codec.comes_back(More(1.0))
    assert not ResponseCodec("'x'", More).comes_back(More(1.0))
    assert not ResponseCodec("'x'", Answer).comes_back(Answer(text="a"))


def test_a_plain_text_comes_back_where_a_text_is_declared():
    assert ResponseCodec("'x'", Any).comes_back("a")
    assert ResponseCodec("'x'", str).comes_back("ä")
    assert not ResponseCodec("'x'", str).comes_back("\ud800")
    assert not ResponseCodec("'x'", Answer).comes_back("a")
    assert not ResponseCodec("'x'", Any).comes_back(["a"])
