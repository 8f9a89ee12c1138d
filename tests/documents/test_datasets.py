"""deepeval.com/docs/evaluation-datasets; confident-ai.com/docs: datasets and goldens."""

import json

import pytest

from modelgauge.evals import EvaluationDataset


def test_goldens_of_one_turn_and_of_several(reader):
    names = reader.run("""
from deepeval.dataset import ConversationalGolden, EvaluationDataset, Golden

dataset = EvaluationDataset(goldens=[Golden(input="What is your name?")])
dataset.add_golden(Golden(input="Nice."))
conversations = EvaluationDataset(
    goldens=[
        ConversationalGolden(
            scenario="A user wants to send a present back.",
            expected_outcome="Sent to a person."
        )
    ]
)
conversations.add_golden(
    ConversationalGolden(scenario="A user says thanks.", expected_outcome="The thanks are taken.")
)
""")
    assert [golden.input for golden in names["dataset"].goldens] == ["What is your name?", "Nice."]
    assert not names["dataset"].is_multi_turn
    assert len(names["conversations"].goldens) == 2
    assert names["conversations"].is_multi_turn
    with pytest.raises(TypeError, match=r"You cannot add 'Golden' to a multi-turn dataset\."):
        reader.run("conversations.add_golden(Golden(input='one turn'))")
    with pytest.raises(TypeError, match=r"You cannot add 'ConversationalGolden' to a single-turn dataset\."):
        reader.run("dataset.add_golden(conversations.goldens[0])")


def test_all_fields_of_a_golden(reader):
    names = reader.run("""
from deepeval.dataset import ConversationalGolden, Golden
from deepeval.test_case import ToolCall, Turn

golden = Golden(
    input="Where is my parcel?",
    expected_output="In Bergen.",
    context=["Parcel 7 is in Bergen."],
    expected_tools=[ToolCall(name="Track")],
    additional_metadata={"level": 2},
    comments="Seen in March.",
    custom_column_key_values={"language": "en"},
    source_file="letters.txt",
)
conversational = ConversationalGolden(
    scenario="A parcel is lost.",
    expected_outcome="It is found.",
    user_description="In a hurry.",
    turns=[Turn(role="user", content="Where is it?")],
    custom_column_key_values={"language": "en"},
)
golden.expected_output = "In Oslo."
""")
    assert names["golden"].expected_output == "In Oslo."
    assert names["golden"].custom_column_key_values == {"language": "en"}
    assert names["conversational"].turns[0].content == "Where is it?"
    with pytest.warns(UserWarning, match="actual_output"):
        reader.run(
            'Golden(input="q", actual_output="a", retrieval_context=["r"], tools_called=[ToolCall(name="t")])'
        )


def test_from_goldens_over_the_app_to_test_cases_and_their_evaluation(reader, capsys):
    names = reader.run("""
from deepeval import evaluate
from deepeval.dataset import EvaluationDataset, Golden
from deepeval.metrics import AnswerRelevancyMetric
from deepeval.test_case import LLMTestCase

def your_llm_app(question):
    return f"You asked: {question}"

dataset = EvaluationDataset(goldens=[Golden(input="Is this right?"), Golden(input="Is this wrong?")])
for golden in dataset.goldens:
    test_case = LLMTestCase(
        input=golden.input,
        actual_output=your_llm_app(golden.input)
    )
    dataset.add_test_case(test_case)

result = evaluate(test_cases=dataset.test_cases, metrics=[AnswerRelevancyMetric()])
""")
    assert [name.success for name in names["result"]] == [True, False]
    assert names["result"].record.dataset.digest == names["dataset"].content_hash
    assert "1 of 2 test cases passed." in capsys.readouterr().out


def test_test_cases_without_goldens(reader):
    names = reader.run("""
from deepeval import evaluate
from deepeval.dataset import EvaluationDataset
from deepeval.metrics import AnswerRelevancyMetric, HallucinationMetric
from deepeval.test_case import LLMTestCase

first_test_case = LLMTestCase(input="q", actual_output="It is right.", context=["It is wrong.", "It is so."])
second_test_case = LLMTestCase(input="q", actual_output="It is wrong.", context=["It is so."])
dataset = EvaluationDataset(test_cases=[first_test_case])
dataset.test_cases.append(second_test_case)
dataset.add_test_case(LLMTestCase(input="r", actual_output="It is right.", context=["It is so."]))

hallucination_metric = HallucinationMetric(threshold=0.3)
answer_relevancy_metric = AnswerRelevancyMetric(threshold=0.5)
result = evaluate(dataset, [hallucination_metric, answer_relevancy_metric])
""")
    scores = [[data.score for data in name.metrics_data] for name in names["result"]]
    assert scores == [[0.5, 1], [0, 0], [0, 1]]
    assert [name.success for name in names["result"]] == [False, False, True]


def test_conversations_from_scenarios(reader):
    names = reader.run("""
from deepeval import evaluate
from deepeval.dataset import ConversationalGolden, EvaluationDataset
from deepeval.metrics import ConversationRelevancyMetric
from deepeval.test_case import ConversationalTestCase, Turn

def generate_turns(scenario):
    return [Turn(role="user", content=scenario), Turn(role="assistant", content="I see.")]

dataset = EvaluationDataset(goldens=[ConversationalGolden(scenario="A lost parcel.")])
for golden in dataset.goldens:
    test_case = ConversationalTestCase(
        scenario=golden.scenario,
        turns=generate_turns(golden.scenario)
    )
    dataset.add_test_case(test_case)

result = evaluate(test_cases=dataset.test_cases, metrics=[ConversationRelevancyMetric()])
""")
    assert names["result"].success


@pytest.mark.parametrize("file_type", ["csv", "json", "jsonl"])
def test_save_as_and_back(reader, file_type):
    names = reader.run(f"""
from deepeval.dataset import EvaluationDataset, Golden

goldens = [Golden(input="one", context=["a", "b|c"]), Golden(input="two", expected_output="zwei")]
dataset = EvaluationDataset(goldens)
dataset.save_as(
    file_type="{file_type}",
    directory="./my-test-dataset",
)
""")
    (file,) = (reader.folder / "my-test-dataset").iterdir()
    assert file.suffix == f".{file_type}"
    assert EvaluationDataset.from_file(file).goldens == names["goldens"]


def test_save_as_with_test_cases(reader):
    reader.run("""
from deepeval.dataset import EvaluationDataset, Golden
from deepeval.test_case import LLMTestCase

dataset = EvaluationDataset(goldens=[Golden(input="First golden")])
dataset.add_test_case(LLMTestCase(input="First golden", actual_output="Yes"))
dataset.save_as(file_type="csv", directory="./my-test-dataset", include_test_cases=True)
""")
    (file,) = (reader.folder / "my-test-dataset").iterdir()
    assert len(file.read_text(encoding="utf-8").splitlines()) == 3


ROW = {
    "query": "Where is it?",
    "actual_output": "In Oslo.",
    "expected_output": "In Bergen.",
    "context": ["Parcels go by Oslo.", "Then on."],
    "retrieval_context": ["Oslo: here.", "Bergen: not yet."],
}


def check_case(case):
    assert case.input == ROW["query"]
    assert case.actual_output == ROW["actual_output"]
    assert case.expected_output == ROW["expected_output"]
    assert case.context == ROW["context"]
    assert case.retrieval_context == ROW["retrieval_context"]


@pytest.mark.parametrize("delimiter", ["|", ";"])
def test_test_cases_from_a_csv_file(reader, delimiter):
    cells = [delimiter.join(value) if isinstance(value, list) else value for value in ROW.values()]
    reader.write("example.csv", ",".join(ROW) + "\n" + ",".join(cells) + "\n")
    names = reader.run(f"""
from deepeval.dataset import EvaluationDataset

dataset = EvaluationDataset()
dataset.add_test_cases_from_csv_file(
    file_path="example.csv",
    input_col_name="query",
    actual_output_col_name="actual_output",
    expected_output_col_name="expected_output",
    context_col_name="context",
    context_col_delimiter="{delimiter}",
    retrieval_context_col_name="retrieval_context",
    retrieval_context_col_delimiter="{delimiter}"
)
""")
    check_case(names["dataset"].test_cases[0])


def test_test_cases_from_a_json_file(reader):
    reader.write("example.json", json.dumps([ROW]))
    names = reader.run("""
from deepeval.dataset import EvaluationDataset

dataset = EvaluationDataset()
dataset.add_test_cases_from_json_file(
    file_path="example.json",
    input_key_name="query",
    actual_output_key_name="actual_output",
    expected_output_key_name="expected_output",
    context_key_name="context",
    retrieval_context_key_name="retrieval_context",
)
""")
    check_case(names["dataset"].test_cases[0])


def test_goldens_from_files(reader):
    reader.write("example.csv", "query,language\nWhere is it?,en\n")
    reader.write("example.json", '[{"query": "Where is it?"}]')
    reader.write(
        "example.jsonl",
        '{"input": "Where is it?", "expected_output": "In Oslo.", "context": ["Parcels go by Oslo."]}\n',
    )
    names = reader.run("""
from deepeval.dataset import EvaluationDataset

dataset = EvaluationDataset()
dataset.add_goldens_from_csv_file(
    file_path="example.csv",
    input_col_name="query",
)
dataset.add_goldens_from_json_file(
    file_path="example.json",
    input_key_name="query",
)
dataset.add_goldens_from_jsonl_file(
    file_path="example.jsonl",
)
""")
    goldens = names["dataset"].goldens
    assert [golden.input for golden in goldens] == ["Where is it?"] * 3
    assert goldens[0].custom_column_key_values == {"language": "en"}
    assert goldens[2].context == ["Parcels go by Oslo."]


def test_goldens_of_conversations_from_files(reader):
    reader.write(
        "conversations.csv", "scenario,expected_outcome,user_description\nLost parcel,Found,In a hurry\n"
    )
    reader.write(
        "conversations.jsonl",
        '{"scenario": "Late parcel", "expected_outcome": "Told when", "context": ["c"]}\n',
    )
    names = reader.run("""
from deepeval.dataset import EvaluationDataset

dataset = EvaluationDataset()
dataset.add_goldens_from_csv_file(
    file_path="conversations.csv",
    scenario_col_name="scenario",
    expected_outcome_col_name="expected_outcome",
    user_description_col_name="user_description",
)
dataset.add_goldens_from_jsonl_file(
    file_path="conversations.jsonl",
)
""")
    first, second = names["dataset"].goldens
    assert (first.scenario, first.expected_outcome, first.user_description) == (
        "Lost parcel",
        "Found",
        "In a hurry",
    )
    assert second.context == ["c"]
