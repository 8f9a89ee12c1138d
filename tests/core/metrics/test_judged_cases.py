"""From a prompt, its context and a completion to a test case."""

import pytest
from pydantic import BaseModel

from modelgauge import ChatPrompt, PromptWithContext, SUTCompletion, ToolCall
from modelgauge.errors import InvalidDataError
from modelgauge.evals import ConversationalGolden, ConversationalTestCase, Golden, LLMTestCase, Turn
from modelgauge.metrics import case_of


class Row(BaseModel):
    """A context of an author's own."""

    expected_output: str
    difficulty: int = 3


def made(context, completion="4"):
    completion = SUTCompletion(completion) if isinstance(completion, str) else completion
    return case_of(PromptWithContext("2 + 2 = ?", context=context), completion)


@pytest.mark.parametrize(
    "context",
    [
        Golden("2 + 2 = ?", expected_output="4"),
        LLMTestCase("2 + 2 = ?", expected_output="4"),
        LLMTestCase("2 + 2 = ?", "something older", "4"),
        {"expected_output": "4", "difficulty": 3},
        Row(expected_output="4"),
    ],
)
def test_references_come_from_the_context(context):
    assert made(context) == LLMTestCase("2 + 2 = ?", "4", "4")


@pytest.mark.parametrize("context", [None, "4", ["4"], {"answer": "4"}])
def test_any_other_context_is_the_tests_own(context):
    assert made(context) == LLMTestCase("2 + 2 = ?", "4")


def test_a_case_that_says_the_same_is_taken_as_it_is():
    case = LLMTestCase("2 + 2 = ?", "4", retrieval_context=["a sum"])
    assert made(case) is case


def test_what_the_app_says_goes_before_the_context():
    completion = SUTCompletion(
        "4",
        tool_calls=[ToolCall(name="add")],
        metadata={"retrieval_context": ["found"], "completion_time": 1.5, "other": 1},
    )
    for context in (None, {"retrieval_context": ["older"]}, LLMTestCase("2 + 2 = ?", "3", completion_time=9)):
        case = made(context, completion)
        assert case.actual_output == "4"
        assert case.retrieval_context == ["found"]
        assert case.completion_time == 1.5
        assert case.tools_called == [ToolCall(name="add")]


@pytest.mark.parametrize(
    "context", [{"retrieval_context": 3}, {"turns": [{"role": "nobody", "content": ""}]}]
)
def test_a_reference_of_a_wrong_type_is_an_error(context):
    with pytest.raises(InvalidDataError):
        made(context)


def test_metadata_of_a_wrong_type_is_an_error():
    with pytest.raises(InvalidDataError, match="completion_time"):
        made(LLMTestCase("?", "4"), SUTCompletion("4", metadata={"completion_time": "long"}))


def test_conversations():
    turns = [Turn("user", "hi"), Turn("assistant", "4")]
    case = ConversationalTestCase(turns)
    assert made(case) is case
    assert made({"turns": [turn.model_dump() for turn in turns]}).turns == turns
    assert made(ConversationalGolden("greeting", turns=turns[:1])).turns == turns
    assert made(ConversationalGolden("sums")).turns == [Turn("user", "2 + 2 = ?"), Turn("assistant", "4")]


def test_the_input_of_a_chat():
    chat = ChatPrompt([{"role": "system", "text": "Be brief."}, {"role": "user", "text": "Hi"}])
    assert case_of(PromptWithContext(chat), SUTCompletion("Hi.")).input == "system: Be brief.\nuser: Hi"
    assert case_of(PromptWithContext(ChatPrompt(chat.messages[1:])), SUTCompletion("Hi.")).input == "Hi"
