"""Goldens are edited in place: what is wrong is refused at once, or before it is written, hashed or asked."""

import warnings

import pytest

from modelgauge.data.responses import ToolCall
from modelgauge.data.test_cases import ConversationalGolden, Golden, Turn
from modelgauge.errors import InvalidDataError
from modelgauge.evals import DatasetTest, EvaluationDataset
from modelgauge.metrics import ContainsMetric


def golden():
    return Golden(
        "How far is the moon?",
        context=["a fact"],
        expected_tools=[ToolCall(name="look", input_parameters={"at": 1})],
        additional_metadata={"page": 1},
    )


def append_number(one):
    one.context.append(5)


def put_object(one):
    one.additional_metadata["page"] = object()


def put_tuple_into_a_tool(one):
    one.expected_tools[0].input_parameters["at"] = (1, 2)


@pytest.mark.parametrize(
    ("edit", "field"),
    [
        (append_number, "context.1"),
        (put_object, "additional_metadata"),
        (put_tuple_into_a_tool, "expected_tools.0.input_parameters"),
    ],
)
def test_what_was_put_into_a_golden_is_checked_before_it_is_used(edit, field, tmp_path):
    one = golden()
    dataset = EvaluationDataset([Golden("another"), one])
    edit(one)
    uses = [
        lambda: dataset.content_hash,
        lambda: dataset.save_as("json", tmp_path),
        lambda: one.to_test_case("far"),
        lambda: DatasetTest("moon", dataset, [ContainsMetric(texts="far")]),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for use in uses:
            with pytest.raises(InvalidDataError) as refused:
                use()
            assert "The golden 'How far is the moon?'" in refused.value.problem
            assert field in refused.value.problem
    assert list(tmp_path.iterdir()) == []


def test_a_right_edit_is_kept(tmp_path):
    one = golden()
    dataset = EvaluationDataset([one])
    before = dataset.content_hash
    one.context.append("another fact")
    assert dataset.content_hash != before
    assert EvaluationDataset.from_file(dataset.save_as("jsonl", tmp_path)).goldens == [one]
    assert one.to_test_case("far").context == ["a fact", "another fact"]


def test_a_conversation_keeps_its_beginning():
    one = ConversationalGolden("A refund")
    with pytest.raises(InvalidDataError, match="neither 'scenario' nor 'turns'"):
        one.scenario = None
    assert one.scenario == "A refund"
    one.turns = [Turn("user", "I want my money back.")]
    one.scenario = None
    with pytest.raises(InvalidDataError, match="neither 'scenario' nor 'turns'"):
        one.turns = None
    one.turns.clear()
    with pytest.raises(InvalidDataError, match="turns"):
        _ = EvaluationDataset([one]).content_hash


def test_assigning_what_only_a_run_can_say_warns_as_the_constructor_does():
    one = golden()
    with pytest.warns(UserWarning, match="A golden with actual_output"):
        one.actual_output = "far"
    with pytest.warns(UserWarning, match="A golden with token_cost: "):
        one.token_cost = 0.1
    with pytest.warns(UserWarning, match="A golden with completion_time"):
        ConversationalGolden("A refund").completion_time = 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one.name = "moon"
        one.actual_output = None
