"""What the constructors of the data classes take, and what they say when they refuse."""

import inspect
import math
import operator
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.data.annotations import MeasuredTestItem
from modelgauge.data.base import Frozen
from modelgauge.data.estimates import Estimate, Score
from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.data.prompts import ChatMessage, ChatPrompt, ChatRole, Prompt, SUTOptions, TextPrompt
from modelgauge.data.responses import SUTCompletion, SUTResponse, TokenProbability, ToolCall
from modelgauge.data.test_cases import LLMTestCase
from modelgauge.errors import InvalidDataError


def refused(make) -> InvalidDataError:
    with pytest.raises(InvalidDataError) as caught:
        make()
    return caught.value


def test_text_is_positional_or_named():
    assert TextPrompt("hi") == TextPrompt(text="hi") == Prompt("hi", SUTOptions())


def test_chat_messages_take_roles_by_name_and_by_position():
    chat = ChatPrompt(
        [
            ChatMessage(role="system", text="be brief"),
            ChatMessage("user", "hi"),
            {"role": "user", "text": "x"},
        ]
    )
    assert [message.role for message in chat.messages] == [ChatRole.system, ChatRole.user, ChatRole.user]


def test_a_str_becomes_a_prompt_with_context():
    item = TestItem(
        ["one", TextPrompt("two"), PromptWithContext("three", source_id="s", context=[1])], context={"k": 1}
    )
    assert [prompt.prompt.text for prompt in item.prompts] == ["one", "two", "three"]
    assert all(isinstance(prompt, PromptWithContext) for prompt in item.prompts)
    assert item.prompts[2].context == [1]


@pytest.mark.parametrize("prompts", ["one", TextPrompt("one"), PromptWithContext("one"), ("one",)])
def test_one_prompt_need_not_stand_in_a_list(prompts):
    assert TestItem(prompts).prompts == (PromptWithContext("one"),)


def test_prompts_may_come_from_a_generator():
    item = TestItem(text for text in ["one", "two"])
    assert [prompt.prompt.text for prompt in item.prompts] == ["one", "two"]


def test_a_chat_prompt_becomes_a_prompt_with_context():
    chat = ChatPrompt([ChatMessage("user", "hi")])
    assert TestItem(chat).prompts[0].prompt is chat


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: TextPrompt(txt="hi"), "text"),
        (lambda: SUTOptions(temprature=1), "temperature"),
        (lambda: TestItem(["a"], contxt=1), "context"),
        (lambda: SUTCompletion("a", finish="stop"), "finish_reason"),
        (lambda: SUTResponse(completion=[SUTCompletion("a")]), "completions"),
        (lambda: TestItem([{"prompt": {"text": "a", "option": {}}}]), "options"),
    ],
)
def test_an_unknown_field_is_refused_with_the_right_name(make, name):
    assert f"Did you mean '{name}'" in refused(make).fix


def test_a_mistake_inside_names_the_place_and_the_fields_there():
    error = refused(lambda: ChatPrompt([{"role": "user", "content": "hi"}]))
    assert "unknown field 'messages.0.content'" in error.problem
    assert "'messages.0.text' is missing" in error.problem
    assert error.fix == "The fields are: role, text."


def test_error_for_a_lone_surrogate_names_it():
    error = refused(lambda: PromptWithContext("a\ud800"))
    assert "text: the text holds a lone surrogate" in error.problem


def test_a_mistake_in_a_prompt_is_reported_for_its_own_kind_only():
    error = refused(lambda: PromptWithContext({"messages": [{"role": "nobody", "text": "a"}]}))
    assert "prompt.messages.0.role" in error.problem
    assert "TextPrompt" not in str(error)
    assert "missing" not in str(error)


@pytest.mark.parametrize(
    "make",
    [
        TextPrompt,
        lambda: TextPrompt("a", SUTOptions(), "b"),
        lambda: TextPrompt("a", text="b"),
        lambda: SUTOptions(1),
        lambda: TextPrompt(5),
        lambda: TextPrompt("\ud800"),
        lambda: ChatPrompt([]),
        lambda: TestItem([]),
        lambda: TestItem([5]),
        lambda: TestItem(None),
        lambda: TestItem(["a"], id=""),
        lambda: SUTResponse([]),
        lambda: SUTOptions(temperature=-1),
        lambda: SUTOptions(max_tokens=0),
        lambda: SUTOptions(top_p=float("nan")),
        lambda: SUTOptions(response_schema={"enum": (1, 2)}),
        lambda: SUTOptions(response_schema="object"),
        lambda: TokenProbability(token="a", logprob=float("-inf")),
        lambda: Estimate(float("nan"), 3),
        lambda: Score(float("inf")),
        lambda: SUTCompletion("a", metadata={"when": (1, 2)}),
    ],
)
def test_wrong_values_are_refused(make):
    assert refused(make).fix


def test_refusals_are_value_errors():
    with pytest.raises(ValueError, match="unknown field"):
        TextPrompt("a", nothing=1)


@pytest.mark.parametrize(
    "value",
    [
        TextPrompt("a"),
        ChatMessage("user", "a"),
        TestItem("a"),
        SUTCompletion("a"),
        Estimate(1, 2),
        MeasuredTestItem(TestItem("a"), {"x": 1}),
    ],
)
def test_values_are_frozen(value):
    name = next(iter(type(value).model_fields))
    with pytest.raises(ValueError, match="frozen"):
        setattr(value, name, "other")


def test_options_of_a_run_overlay_those_of_a_prompt():
    prompt = TextPrompt("a", SUTOptions(temperature=1, max_tokens=5))
    assert prompt.with_options(SUTOptions()) is prompt
    assert prompt.with_options(SUTOptions(temperature=0)).options == SUTOptions(temperature=0, max_tokens=5)
    chat = ChatPrompt([ChatMessage("user", "a")])
    assert chat.with_options(SUTOptions(num_completions=2)).options.num_completions == 2


def test_a_replaced_field_leaves_the_original():
    item = TestItem("a", context={"k": 1})
    other = item.replaced(id="x")
    assert (item.id, other.id, other.context) == (None, "x", {"k": 1})
    assert other == TestItem("a", context={"k": 1}, id="x")
    assert TestItem.model_validate_json(other.model_dump_json()) == other


def test_defaults_are_not_shared():
    first, second = SUTCompletion("a"), SUTCompletion("a")
    first.metadata["k"] = 1
    assert second.metadata == {}


def test_pytest_collects_no_data_class():
    collected = [cls for cls in Frozen.__subclasses__() if cls.__name__.startswith("Test")]
    assert collected
    assert not any(cls.__test__ for cls in collected)


def test_a_number_is_read_off_an_estimate_and_a_score():
    assert float(Estimate(0.5, 4)) == float(Score(0.5)) == 0.5
    half, whole = Score(0.5, "so"), Score(1)
    assert half < whole <= 1 < 1.5
    assert whole > half >= 0.5 > 0
    assert not half > whole
    assert sorted([whole, half]) == [half, whole]
    assert f"{half:.2f}" == "0.50"
    assert f"{half}" == str(half)
    for other in ("0.7", None):  # a text is not a number, even where one could be read from it
        with pytest.raises(TypeError):
            sorted([half, other])


def test_a_score_equals_its_value_and_another_score_only_in_all_its_fields():
    half = Score(0.5, "so")
    assert half == 0.5
    assert 0.5 == half  # noqa: SIM300  from the other side
    assert half != 0.7
    assert half not in ("0.5", None, "so")
    assert half == Score(0.5, "so")
    for other in (Score(0.5), Score(0.7, "so"), Score(0.5, "so", {"a": 1}), Score(0.5, "so", cost=0.1)):
        assert half != other
    assert hash(Score(0.5, "so", {"a": [1]})) == hash(0.5)
    assert {0.5: "found"}[half] == "found"
    assert half == pytest.approx(0.5001, abs=0.001)
    assert pytest.approx(0.5001, abs=0.001) == half
    assert [half, Score(1)] == pytest.approx([0.5, 1.0])
    assert half != pytest.approx(0.6)
    assert not Score(0)
    assert half


_NUMBERS = st.floats(min_value=-1e6, max_value=1e6, allow_nan=False)


@given(_NUMBERS, _NUMBERS.filter(lambda number: abs(number) > 1e-6))
def test_a_score_calculates_like_its_value(left, right):
    score, other = Score(left, "so"), Score(right)
    for work in (operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod):
        expected = work(left, right)
        assert work(score, other) == work(score, right) == work(left, other) == expected
        assert type(work(score, other)) is float
    for of_one in (abs, round, operator.neg, operator.pos, float, int, math.floor, math.ceil, math.trunc):
        assert of_one(score) == of_one(left)
    assert round(score, 2) == round(left, 2)
    assert (score**2, 2 ** Score(0.5)) == (left**2, 2**0.5)
    for compare in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq):
        assert compare(score, other.value) == compare(left, other) == compare(left, right)


def test_scores_go_into_statistics():
    scores = [Score(0.25, "a"), Score(0.5), Score(0.75, "b")]
    assert sum(scores) == 1.5
    assert (max(scores), min(scores)) == (scores[2], scores[0])
    assert statistics.mean(scores) == statistics.fmean(scores) == statistics.median(scores) == 0.5
    assert statistics.stdev(scores) == 0.25
    assert math.isclose(scores[0], 0.25)


def test_signatures_tell_what_may_be_given_by_position():
    assert str(inspect.signature(TextPrompt)).startswith("(text: ")
    kinds = {
        name: parameter.kind.name for name, parameter in inspect.signature(SUTCompletion).parameters.items()
    }
    assert (kinds["text"], kinds["reasoning"]) == ("POSITIONAL_OR_KEYWORD", "KEYWORD_ONLY")


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: ToolCall(name="x", output=object()), "ToolCall: output: the value is an object"),
        (lambda: ToolCall(name="x", input={"a": object()}), "ToolCall: input_parameters: a is an object"),
        (lambda: Score(0.5, breakdown={"a": object()}), "Score: breakdown: a is an object"),
        (
            lambda: LLMTestCase("a", tools_called=[{"name": "y", "output": object()}]),
            "LLMTestCase: tools_called.0.output: the value is an object",
        ),
    ],
)
def test_what_json_would_change_is_named_by_its_field(make, field):
    with pytest.raises(InvalidDataError) as caught:
        make()
    assert caught.value.problem.startswith(field)


def test_sut_role_is_alias_of_assistant():
    assert ChatRole.sut is ChatRole("sut") is ChatRole.assistant
    assert [*ChatRole] == [ChatRole.user, ChatRole.assistant, ChatRole.system]
    assert ChatMessage("sut", "yes") == ChatMessage(ChatRole.sut, "yes") == ChatMessage("assistant", "yes")
    assert (
        ChatMessage.load({"role": "sut", "text": "yes"}).model_dump_json()
        == '{"role":"assistant","text":"yes"}'
    )
    with pytest.raises(InvalidDataError):
        ChatMessage("model", "yes")
