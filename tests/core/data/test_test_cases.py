"""Test cases and goldens: what they take, what they refuse, and how a golden becomes a test case."""

import copy
import json
import pickle
import warnings
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.data.case_fields import RUNTIME_FIELDS
from modelgauge.data.items import TestItem
from modelgauge.data.json_values import canonical_json, check_exact, plain
from modelgauge.data.responses import ToolCall
from modelgauge.data.test_cases import (
    ConversationalGolden,
    ConversationalTestCase,
    Golden,
    LLMTestCase,
    LLMTestCaseParams,
    Turn,
    TurnParams,
)
from modelgauge.errors import InvalidDataError

FULL = {
    "input": "What is the tallest mountain?",
    "actual_output": "Everest",
    "expected_output": "Mount Everest",
    "context": ["Everest is 8,849 m high."],
    "retrieval_context": ["K2 is 8,611 m high.", "Everest is 8,849 m high."],
    "tools_called": [ToolCall(name="search", input_parameters={"q": "mountain"}, output=[1, None])],
    "expected_tools": [ToolCall(name="search")],
    "token_cost": 0.25,
    "completion_time": 1.5,
    "name": "mountains",
    "tags": ["geography"],
    "comments": "easy",
    "custom_column_key_values": {"difficulty": 1},
    "metadata": {"source": {"page": 3}},
}


def test_a_test_case_holds_what_it_is_given():
    case = LLMTestCase(**FULL)
    assert {name: getattr(case, name) for name in FULL} == FULL
    assert set(LLMTestCase.model_fields) == set(FULL)


def test_a_test_case_shares_nothing_with_what_it_is_given():
    parameters, output, metadata = {"q": ["a"]}, [["x"]], {"page": [1]}
    call = ToolCall(name="search", input_parameters=parameters, output=output)
    parameters["q"].append("b")
    output[0].append("y")
    assert (call.input_parameters, call.output) == ({"q": ["a"]}, [["x"]])
    case = LLMTestCase("q", tools_called=[call], metadata=metadata, custom_column_key_values=metadata)
    talk = ConversationalTestCase([turn := Turn("user", "hi", retrieval_context=["doc"], metadata=metadata)])
    metadata["page"].append(2)
    call.input_parameters["q"].append("c")
    turn.retrieval_context.append("more")
    assert case.tools_called[0].input_parameters == {"q": ["a"]}
    assert case.metadata == case.custom_column_key_values == {"page": [1]}
    assert (talk.turns[0].retrieval_context, talk.turns[0].metadata) == (["doc"], {"page": [1]})


def test_a_test_case_shares_nothing_with_its_golden():
    golden = Golden("q", additional_metadata={"pages": [1]}, expected_tools=[ToolCall(name="a", output=[])])
    case = golden.to_test_case("yes")
    golden.additional_metadata["pages"].append(2)
    golden.expected_tools[0].output.append(3)
    assert (case.metadata, case.expected_tools[0].output) == ({"pages": [1]}, [])


def test_a_test_case_with_lists_says_what_to_use_instead_of_a_hash():
    assert len({LLMTestCase("q"), LLMTestCase("q"), LLMTestCase("p")}) == 2
    with pytest.raises(
        TypeError, match=r"LLMTestCase 'q' has no hash.*its name, id\(…\) or it\.model_dump_json"
    ):
        hash(LLMTestCase("q", tags=["a"]))


@pytest.mark.parametrize(
    "make",
    [
        lambda: LLMTestCase("q", retrieval_context={"x", "y"}),
        lambda: LLMTestCase("q", tools_called={"x"}),
        lambda: Golden("q", tags=frozenset("ab")),
        lambda: Turn("user", "q", retrieval_context={"x"}),
        lambda: ConversationalTestCase({Turn("user", "q")}),
    ],
)
def test_what_has_no_order_is_refused(make):
    with pytest.raises(InvalidDataError, match=r"a (frozen)?set has no order of its own; give a list"):
        make()


@pytest.mark.parametrize("make", [LLMTestCase, Golden, lambda raw: Turn("user", raw), ConversationalGolden])
def test_bytes_are_no_text(make):
    with pytest.raises(InvalidDataError, match="should be a valid string, not of type bytes"):
        make(b"x")


def test_only_the_input_is_required():
    assert LLMTestCase("hi") == LLMTestCase(input="hi")
    assert LLMTestCase("hi", "out", "want").expected_output == "want"
    with pytest.raises(InvalidDataError, match="'input' is missing"):
        LLMTestCase(actual_output="x")


def test_a_test_case_comes_back_from_json():
    case = LLMTestCase(**FULL)
    assert LLMTestCase.model_validate_json(case.model_dump_json()) == case
    assert check_exact(case, "context") is case


def test_a_test_case_is_frozen():
    case = LLMTestCase("hi")
    with pytest.raises(ValueError, match="frozen"):
        case.input = "ho"


@pytest.mark.parametrize("case", [LLMTestCase("hi"), ConversationalTestCase([Turn("user", "hi")])])
def test_what_is_assigned_to_a_test_case_is_told_to_go_into_a_copy(case):
    with pytest.raises(InvalidDataError, match=r"'name' cannot be assigned.*replaced\(name=…\)"):
        case.name = "x"
    with pytest.raises(InvalidDataError, match=r"has no field 'nam'\. Did you mean 'name'"):
        case.nam = "x"
    assert case.replaced(name="x").name == "x"
    assert case.name is None
    with pytest.raises(InvalidDataError, match="name: Input should be a valid string"):
        case.replaced(name=5)
    with pytest.raises(InvalidDataError, match="unknown field 'nam'"):
        case.replaced(nam="x")


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (
            lambda: LLMTestCase("a", metadata={}, additional_metadata={}),
            "'metadata' is given twice, since 'additional_metadata' is another name of it",
        ),
        (
            lambda: ToolCall(name="x", input={}, input_parameters={}),
            "'input_parameters' is given twice, since 'input' and 'inputParameters' are other names of it",
        ),
        (
            lambda: LLMTestCase("a", tools_called=ToolCall(name="x")),
            "tools_called is one ToolCall, and must be a list. Put it into a list: tools_called=[ToolCall(…)].",
        ),
        (lambda: ConversationalTestCase(Turn("user", "x")), "turns is one Turn, and must be a list."),
    ],
)
def test_what_is_given_twice_or_alone_is_told_so(make, told):
    with pytest.raises(InvalidDataError) as caught:
        make()
    assert told in str(caught.value)
    assert ";" not in str(caught.value)


def test_a_test_case_does_not_follow_a_list_that_changes_later():
    texts = ["a"]
    case = LLMTestCase("hi", context=texts)
    texts.append("b")
    assert case.context == ["a"]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("expected_ouput", "expected_output"),
        ("retrival_context", "retrieval_context"),
        ("tool_called", "tools_called"),
    ],
)
@pytest.mark.parametrize("cls", [LLMTestCase, Golden])
def test_an_unknown_argument_is_an_error_that_suggests_the_right_one(cls, wrong, right):
    with pytest.raises(InvalidDataError, match=f"unknown field '{wrong}'. Did you mean '{right}'"):
        cls(input="hi", **{wrong: "x"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("input", 5),
        ("actual_output", ["a"]),
        ("context", "not a list"),
        ("retrieval_context", [1]),
        ("tools_called", ["search"]),
        ("token_cost", -1),
        ("token_cost", True),
        ("token_cost", "1"),
        ("completion_time", float("nan")),
        ("metadata", {"a": (1, 2)}),
        ("input", "\ud800"),
    ],
)
def test_a_value_of_a_wrong_type_is_refused(name, value):
    with pytest.raises(InvalidDataError, match=name):
        LLMTestCase(**{"input": "hi", name: value})


def test_metadata_has_one_alias_each():
    assert LLMTestCase("hi", additional_metadata={"a": 1}).metadata == {"a": 1}
    assert Golden("hi", metadata={"a": 1}).additional_metadata == {"a": 1}
    assert Turn("user", "hi", additional_metadata={"a": 1}).metadata == {"a": 1}


@pytest.mark.parametrize("name", ["inputs", "args", "arguments", "parameters"])
def test_what_others_call_the_parameters_of_a_tool_is_told_with_our_name(name):
    with pytest.raises(InvalidDataError, match=f"unknown field '{name}'. Did you mean 'input_parameters'"):
        ToolCall(name="search", **{name: {}})
    with pytest.raises(InvalidDataError, match="Did you mean 'input_parameters'"):
        LLMTestCase("q", tools_called=[{"name": "search", name: {}}])


def test_a_tool_call_takes_its_parameters_under_either_name():
    assert ToolCall(name="t", input={"a": 1}) == ToolCall(name="t", input_parameters={"a": 1})


def test_parameters_name_fields():
    assert {param.value for param in LLMTestCaseParams} <= set(LLMTestCase.model_fields)
    assert {param.value for param in TurnParams} <= {*Turn.model_fields, *ConversationalTestCase.model_fields}
    assert LLMTestCaseParams.ACTUAL_OUTPUT == "actual_output"


# --- conversations ------------------------------------------------------------------------------------------


def test_a_test_case_among_the_turns_is_a_question_and_its_answer():
    answered = LLMTestCase("hi", "ho", retrieval_context=["r"], tools_called=[ToolCall(name="t")])
    conversation = ConversationalTestCase(turns=[answered, Turn("user", "bye")], chatbot_role="clerk")
    assert conversation.turns == [
        Turn("user", "hi"),
        Turn("assistant", "ho", retrieval_context=["r"], tools_called=[ToolCall(name="t")]),
        Turn("user", "bye"),
    ]


def test_a_conversation_is_never_empty():
    with pytest.raises(InvalidDataError, match="at least 1 item"):
        ConversationalTestCase(turns=[])
    with pytest.raises(InvalidDataError, match="'turns' is missing"):
        ConversationalTestCase(chatbot_role="clerk")
    with pytest.raises(InvalidDataError, match="neither 'scenario' nor 'turns'"):
        ConversationalGolden(expected_outcome="happy")


def test_a_turn_without_an_answer_is_refused():
    with pytest.raises(InvalidDataError, match=r"turns\[1\] is a test case without an 'actual_output'"):
        ConversationalTestCase(turns=[Turn("user", "hi"), LLMTestCase("hi")])


def test_only_users_and_assistants_have_turns():
    with pytest.raises(InvalidDataError, match="'user' or 'assistant'"):
        Turn("robot", "hi")


def test_a_conversation_comes_back_from_json():
    case = ConversationalTestCase(
        [LLMTestCase("hi", "ho")],
        scenario="greeting",
        expected_outcome="happy",
        user_description="polite",
        context=["c"],
        name="n",
    )
    assert ConversationalTestCase.model_validate_json(case.model_dump_json()) == case


# --- goldens ------------------------------------------------------------------------------------------------


def test_a_golden_is_editable_and_checked():
    golden = Golden("hi", expected_output="ho")
    golden.expected_output = "hey"
    golden.context = ("c",)
    assert golden == Golden("hi", expected_output="hey", context=["c"])
    with pytest.raises(InvalidDataError, match="context"):
        golden.context = "not a list"
    assert golden.context == ["c"]
    with pytest.raises(InvalidDataError, match=r"no field 'expected_ouput'\. Did you mean 'expected_output'"):
        golden.expected_ouput = "x"


@pytest.mark.parametrize("name", RUNTIME_FIELDS)
def test_a_golden_with_a_runtime_field_warns_where_it_is_made(name):
    with pytest.warns(UserWarning, match=f"A golden with {name}") as caught:
        golden = Golden("hi", **{name: FULL[name]})
    assert getattr(golden, name) == FULL[name]
    assert caught[0].filename == __file__


def test_a_golden_that_is_read_back_does_not_warn_again():
    with pytest.warns(UserWarning, match="actual_output"):
        golden = Golden("hi", actual_output="ho")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Golden.model_validate_json(golden.model_dump_json()) == golden


def test_a_golden_has_all_fields_of_its_test_case():
    assert set(LLMTestCase.model_fields) - {"metadata"} < set(Golden.model_fields)
    assert set(ConversationalTestCase.model_fields) - {"metadata"} < set(ConversationalGolden.model_fields)


def test_a_golden_makes_a_test_case():
    golden = Golden(
        "hi",
        expected_output="ho",
        context=["c"],
        expected_tools=[ToolCall(name="t")],
        name="n",
        tags=["t"],
        comments="k",
        custom_column_key_values={"a": "b"},
        additional_metadata={"m": 1},
        source_file="f.md",
    )
    assert golden.to_test_case("hey", retrieval_context=["r"], completion_time=2) == LLMTestCase(
        "hi",
        "hey",
        "ho",
        context=["c"],
        expected_tools=[ToolCall(name="t")],
        name="n",
        tags=["t"],
        comments="k",
        custom_column_key_values={"a": "b"},
        metadata={"m": 1},
        retrieval_context=["r"],
        completion_time=2,
    )
    with pytest.raises(InvalidDataError, match="actual_ouput"):
        golden.to_test_case(actual_ouput="x")


def test_a_conversational_golden_makes_a_conversation():
    golden = ConversationalGolden("greeting", expected_outcome="happy", additional_metadata={"m": 1})
    assert golden.to_test_case([Turn("user", "hi")]) == ConversationalTestCase(
        [Turn("user", "hi")], scenario="greeting", expected_outcome="happy", metadata={"m": 1}
    )
    with pytest.raises(InvalidDataError, match="'turns' is missing"):
        golden.to_test_case()


@pytest.mark.parametrize("given", ["metadata", "additional_metadata"])
@pytest.mark.parametrize(
    "make",
    [
        partial(LLMTestCase, "q"),
        partial(Turn, "user", "q"),
        partial(ConversationalTestCase, [Turn("user", "q")]),
        partial(Golden, "q"),
        partial(ConversationalGolden, "s"),
    ],
)
def test_metadata_can_be_given_and_read_under_both_names(make, given):
    made = make(**{given: {"page": 3}})
    assert made.metadata == made.additional_metadata == {"page": 3}
    again = type(made).model_validate_json(made.model_dump_json())
    assert again == made
    assert again.metadata == again.additional_metadata == {"page": 3}
    assert make().metadata is make().additional_metadata is None


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([-0.5, 0.0, 1.0])
    | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=1), inner, max_size=3),
    max_leaves=6,
)


@given(json_values, json_values)
def test_tool_calls_have_a_hash_and_equal_ones_have_one_hash(first, second):
    calls = [ToolCall(name="look", input_parameters={"q": one}, output=one) for one in (first, second)]
    copies = [ToolCall.model_validate_json(call.model_dump_json()) for call in calls]
    assert [hash(call) for call in calls] == [hash(one) for one in copies]
    assert len({*calls, *copies}) == 2 - (calls[0] == calls[1])


def test_calls_whose_numbers_are_equal_have_one_hash():
    calls = [ToolCall(name="look", input={"q": [one, {"b": 2}]}) for one in (1, 1.0, True)]
    assert len(set(calls)) == 1
    assert len({*calls, ToolCall(name="look", input={"q": [2, {"b": 2}]})}) == 2


# --- read-only ------------------------------------------------------------------------------------------

TOOL = ToolCall(name="search", input_parameters={"terms": ["a", {"b": 1}]}, output=["c"])


def full_case():
    return LLMTestCase(
        "q",
        "a",
        context=["one"],
        retrieval_context=("two",),
        tools_called=[TOOL],
        tags=["t"],
        metadata={"pages": [1, {"x": 2}]},
        custom_column_key_values={"level": [3]},
    )


CHANGES = [
    lambda case: case.context.append("more"),
    lambda case: case.retrieval_context.extend(["more"]),
    lambda case: case.tools_called.clear(),
    lambda case: case.tags.sort(),
    lambda case: case.context.__setitem__(0, "other"),
    lambda case: case.context.__delitem__(slice(None)),
    lambda case: case.context.__iadd__(["more"]),
    lambda case: case.metadata.update(pages=[]),
    lambda case: case.metadata["pages"].pop(),
    lambda case: case.metadata["pages"][1].setdefault("y", 1),
    lambda case: case.metadata.__ior__({"y": 1}),
    lambda case: case.custom_column_key_values["level"].insert(0, 1),
    lambda case: case.tools_called[0].input_parameters["terms"].append("more"),
    lambda case: case.tools_called[0].input_parameters["terms"][1].popitem(),
    lambda case: case.tools_called[0].output.reverse(),
]


@pytest.mark.parametrize("change", CHANGES)
def test_lists_and_mappings_of_case_are_read_only(change):
    case = full_case()
    for each in (case, pickle.loads(pickle.dumps(case)), copy.deepcopy(case), case.replaced(name="mine")):
        with pytest.raises(InvalidDataError, match=r"cannot be changed\..*case\.replaced"):
            change(each)
    assert case == full_case()


@pytest.mark.parametrize(
    "change",
    [
        lambda talk: talk.turns.append(talk.turns[0]),
        lambda talk: talk.turns[1].retrieval_context.append("more"),
        lambda talk: talk.turns[1].tools_called[0].input_parameters.clear(),
    ],
)
def test_lists_and_mappings_of_conversation_are_read_only(change):
    turns = [Turn("user", "q"), Turn("assistant", "a", retrieval_context=["r"], tools_called=[TOOL])]
    talk = ConversationalTestCase(turns)
    with pytest.raises(InvalidDataError, match="cannot be changed"):
        change(talk)
    assert talk.turns == turns


def test_read_only_lists_equal_ordinary_ones_and_have_same_json():
    case = full_case()
    assert case.context == ["one"]
    assert case.context == ["one"]
    assert case.metadata == {"pages": [1, {"x": 2}]}
    assert case.tools_called == [TOOL]
    assert hash(case.tools_called[0]) == hash(TOOL)
    assert isinstance(case.context, list)
    assert [*case.context, "more"] == ["one", "more"]
    assert case.context + ["more"] == ["one", "more"]  # noqa: RUF005  a sum is a list too
    assert json.loads(json.dumps(case.metadata)) == case.metadata
    assert LLMTestCase.load(json.loads(case.model_dump_json())) == case
    assert repr(case.context) == "['one']"
    assert TestItem("q", context=case.metadata).context == case.metadata
    for held in (case.context, case.metadata, case.tools_called[0].input_parameters):
        assert canonical_json(plain(held)) == canonical_json(plain(json.loads(json.dumps(held))))


def test_editing_original_lists_or_copies_changes_no_case():
    context = ["one"]
    case = LLMTestCase("q", context=context, metadata={"pages": [1]}, tools_called=[TOOL])
    golden = Golden("q", context=case.context, metadata=case.metadata, expected_tools=case.tools_called)
    golden.context.append("two")
    golden.additional_metadata["pages"].append(2)
    golden.expected_tools[0].input_parameters["terms"].append("more")
    for copied in (context, case.context.copy(), case.context[:], list(case.context)):
        copied.append("two")
    assert golden.to_test_case("a").context == ["one", "two"]
    assert (case.context, case.metadata, case.tools_called) == (["one"], {"pages": [1]}, [TOOL])
