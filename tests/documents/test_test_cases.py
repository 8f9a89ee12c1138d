"""deepeval.com/docs: evaluation-test-cases, evaluation-multiturn-test-cases; confident-ai.com/docs: test cases."""

import pytest

from modelgauge.errors import InvalidDataError


def test_a_test_case_with_all_that_a_metric_may_need(reader):
    names = reader.run("""
from deepeval.test_case import LLMTestCase, ToolCall

test_case = LLMTestCase(
    input="When does the museum open?",
    expected_output="At nine, except on Mondays.",
    actual_output="At nine.",
    context=["The museum opens at nine and is closed on Mondays."],
    retrieval_context=["Opening hours: nine to five."],
    tools_called=[ToolCall(name="Calendar")]
)
""")
    case = names["test_case"]
    assert case.input == "When does the museum open?"
    assert case.retrieval_context == ["Opening hours: nine to five."]
    assert case.tools_called[0].name == "Calendar"
    assert case.token_cost is None


def test_tools_called_and_expected(reader):
    names = reader.run("""
from deepeval.test_case import LLMTestCase, ToolCall

test_case = LLMTestCase(
    input="What is seven times six?",
    actual_output="Forty-two.",
    tools_called=[
        ToolCall(
            name="Calculator Tool",
            description="Multiplies two numbers.",
            input={"first": 7, "second": 6},
            output=42
        ),
        ToolCall(
            name="WebSearch Tool",
            reasoning="Nobody asked for it.",
            input={"search_query": "42"},
            output={"pages": ["one", "two"]}
        )
    ],
    expected_tools=[
        ToolCall(
            name="Calculator Tool",
            input_parameters={"first": 7, "second": 6},
            output=42
        )
    ]
)
""")
    called = names["test_case"].tools_called
    assert called[0].input_parameters == {"first": 7, "second": 6}
    assert called[0] == names["test_case"].expected_tools[0].replaced(description="Multiplies two numbers.")
    assert called[1].output == {"pages": ["one", "two"]}


def test_what_an_answer_cost_and_how_a_case_is_called(reader):
    names = reader.run("""
from deepeval.test_case import ConversationalTestCase, LLMTestCase, Turn

costly = LLMTestCase(token_cost=1.32, input="q")
slow = LLMTestCase(completion_time=7.53, input="q")
test_case = LLMTestCase(name="my-external-unique-id", input="q", tags=["Topic 1", "Topic 3"])
convo_test_case = ConversationalTestCase(name="my-external-unique-id", turns=[Turn(role="user", content="hi")])
""")
    assert names["costly"].token_cost == 1.32
    assert names["slow"].completion_time == 7.53
    assert names["test_case"].name == names["convo_test_case"].name
    assert names["test_case"].tags == ["Topic 1", "Topic 3"]


def test_a_conversation_of_turns(reader):
    names = reader.run("""
from deepeval.test_case import ConversationalTestCase, ToolCall, Turn

turns = [
    Turn(role="user", content="My parcel is late."),
    Turn(role="assistant", content="Sorry! It comes today.", retrieval_context=["Parcel 7: today."]),
    Turn(role="user", content="Thanks.", user_id="u1"),
    Turn(role="assistant", content="Bye.", tools_called=[ToolCall(name="Close")], additional_metadata={"a": 1}),
]
test_case = ConversationalTestCase(
    scenario="A user misses a parcel.",
    expected_outcome="The user knows when it comes.",
    chatbot_role="A clerk of the post office.",
    context=["Parcels come within three days."],
    turns=turns
)
""")
    case = names["test_case"]
    assert [turn.role for turn in case.turns] == ["user", "assistant"] * 2
    assert case.turns[1].retrieval_context == ["Parcel 7: today."]
    assert case.turns[3].tools_called[0].name == "Close"
    assert case.chatbot_role == "A clerk of the post office."


def test_a_conversation_of_test_cases(reader):
    names = reader.run("""
from deepeval.test_case import LLMTestCase, ConversationalTestCase

test_case = ConversationalTestCase(
    chatbot_role="A clerk.",
    turns=[LLMTestCase(input="Is it late?", actual_output="It comes today.")]
)
""")
    turns = names["test_case"].turns
    assert [(turn.role, turn.content) for turn in turns] == [
        ("user", "Is it late?"),
        ("assistant", "It comes today."),
    ]


def test_a_slip_of_the_documents_is_an_error_that_names_the_right_argument(reader):
    with pytest.raises(InvalidDataError, match=r"unknown field 'output'.*'actual_output'"):
        reader.run("""
from deepeval.test_case import LLMTestCase

LLMTestCase(input="q", output="a")
""")
