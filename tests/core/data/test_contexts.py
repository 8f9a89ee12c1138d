"""What may stand in a context, an annotation and metadata: what JSON gives back as it was."""

import dataclasses
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, PrivateAttr

from modelgauge.data.annotations import (
    Interaction,
    SUTCompletionAnnotations,
    SUTResponseAnnotations,
    TestItemAnnotations,
)
from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.data.json_values import MOST_LEVELS, inexact_parts, is_exact
from modelgauge.data.responses import SUTCompletion
from modelgauge.errors import InvalidDataError


class Want(BaseModel):
    answer: str
    choices: tuple[str, ...] = ()


class Aliased(BaseModel):
    answer: str = Field(alias="Answer")


class Loose(BaseModel):
    anything: Any


class Private(BaseModel):
    _hidden: int = PrivateAttr(default=0)


@dataclasses.dataclass
class Plain:
    answer: str


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ((1, 2), "the value is a tuple"),
        ({"a": [1, (2,)]}, "a[1] is a tuple"),
        ({1: "a"}, "a key of type int"),
        ({10**5000: "a"}, "a key of type int"),
        ({"a": {"b": math.nan}}, "a.b is nan"),
        ([math.inf], "[0] is inf"),
        ({"want": Want(answer="x")}, "want is a Want"),
        (Plain("x"), "is a Plain"),
        ({"a": {1, 2}}, "a is a set"),
        ("\ud800", "lone surrogate"),
        ({"\ud800": 1}, "UTF-8"),
        ([b"x"], "[0] is a bytes"),
        pytest.param(10**5000, "4,000 digits", id="huge"),
        (nested(MOST_LEVELS + 1), "levels deep"),
        (Loose(anything=(1, 2)), "Loose changes when it is written"),
        (Loose(anything={1: 2}), "Loose changes when it is written"),
        (Loose(anything=math.nan), "Loose changes when it is written"),
        (Loose(anything=Want(answer="x")), "Loose changes when it is written"),
    ],
)
def test_what_json_would_change_is_refused(context, said):
    for make in (lambda: TestItem("a", context=context), lambda: PromptWithContext("a", context=context)):
        with pytest.raises(InvalidDataError) as caught:
            make()
        assert said in caught.value.problem
        assert "context" in caught.value.problem
        assert caught.value.fix


def test_a_circular_context_is_refused():
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(InvalidDataError, match="levels deep"):
        TestItem("a", context=circle)


def test_a_model_with_something_private_is_refused():
    hidden = Private()
    hidden._hidden = 5
    with pytest.raises(InvalidDataError, match="changes when it is written"):
        TestItem("a", context=hidden)


@pytest.mark.parametrize(
    "context",
    [None, "text", 0, -0.0, True, [], {}, nested(MOST_LEVELS), {"a": [{"b": None}]}, "😀",
     pytest.param(10**999, id="large"),
     Want(answer="x", choices=("a", "b")), Aliased(Answer="x")],
)  # fmt: skip
def test_what_json_keeps_is_kept_as_the_same_object(context):
    item = TestItem([PromptWithContext("a", context=context)], context=context)
    assert item.context is context
    assert item.prompts[0].context is context
    again = TestItem.model_validate_json(item.model_dump_json())
    if isinstance(context, BaseModel):
        assert again.context_as(type(context)) == context
        assert again.prompts[0].context_as(type(context)) == context
        assert item.context_as(type(context)) is context
    else:
        assert again == item
        assert (
            math.copysign(1, again.context or 1) == math.copysign(1, context or 1) if context == 0 else True
        )


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=1),
        lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner),
        max_leaves=8,
    )
)
def test_a_value_is_exact_where_nothing_is_said_against_it(value):
    assert is_exact(value) == (next(inexact_parts(value), None) is None)


def test_context_as_reads_any_type_and_says_what_does_not_fit():
    item = TestItem("a", context={"answer": "x"})
    assert item.context_as(dict) is item.context
    assert item.context_as(dict[str, str]) == {"answer": "x"}
    assert item.context_as(Plain) == Plain("x")
    with pytest.raises(InvalidDataError, match="does not fit int"):
        item.context_as(int)
    with pytest.raises(InvalidDataError, match=r"does not fit Loose.*\{'answer': 'x'\}"):
        item.context_as(Loose)


# --- annotations -----------------------------------------------------------------------------------------


def annotated(
    *texts: str, annotations: dict[str, Any] | None = None, prompt_context: Any = None
) -> TestItemAnnotations:
    prompts = [PromptWithContext(f"p{i}", context=prompt_context) for i in range(len(texts))]
    interactions = [
        Interaction(
            prompt=prompt,
            response=SUTResponseAnnotations(
                completions=[
                    SUTCompletionAnnotations(completion=SUTCompletion(text), annotations=annotations or {})
                ]
            ),
        )
        for prompt, text in zip(prompts, texts, strict=True)
    ]
    return TestItemAnnotations(TestItem(prompts, id="the id"), interactions)


def test_an_annotation_is_typed_by_the_caller():
    live = annotated("x", annotations={"want": Want(answer="y"), "n": 3})
    recorded = TestItemAnnotations.model_validate_json(live.model_dump_json())
    for item in (live, recorded):
        completion = item.interactions[0].response.completions[0]
        assert completion.get_annotation("want", Want) == Want(answer="y")
        assert item.annotation("want", Want) == Want(answer="y")
        assert item.annotation("n", int) == item.annotation("n") == 3
    assert recorded.annotation("want") == {"answer": "y", "choices": []}


def test_an_unknown_annotation_names_the_known_ones():
    with pytest.raises(InvalidDataError) as caught:
        annotated("x", annotations={"toxicity": 1}).annotation("toxicty")
    assert "Did you mean 'toxicity'" in caught.value.fix


def test_an_annotation_of_another_class_is_an_error():
    with pytest.raises(InvalidDataError, match="does not fit Want"):
        annotated("x", annotations={"n": 3}).annotation("n", Want)


def test_an_annotation_that_json_would_change_is_refused():
    with pytest.raises(InvalidDataError, match="annotation 'spans'"):
        SUTCompletionAnnotations(completion=SUTCompletion("a"), annotations={"spans": [(1, 2)]})


def test_short_cuts_for_one_prompt_and_one_completion():
    item = annotated("x", prompt_context={"k": 1})
    assert item.text == "x"
    assert item.context == {"k": 1}


def test_short_cuts_refuse_several_completions():
    item = annotated("x", "y", prompt_context={"k": 1})
    assert item.context is None
    with pytest.raises(InvalidDataError, match="'the id' has 2 completions"):
        _ = item.text
    with pytest.raises(InvalidDataError, match="2 completions"):
        item.annotation("k")
