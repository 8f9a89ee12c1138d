"""Published answers and figures: GSM8K's recorded solutions, and BBQ as lm-eval itself measures it."""

import json

import pytest

from modelgauge import Estimate, run_test
from modelgauge_lm_eval.names import installed_folder


def read_rows(path):
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def test_recorded_solutions_of_gsm8k_score_as_published(shared_data, folder, tmp_path):
    questions = shared_data / "gsm8k" / "test.jsonl"
    task = installed_folder() / "gsm8k" / "gsm8k.yaml"
    files = json.dumps({"data_files": {"train": str(questions), "test": str(questions)}})
    (folder / "local.yaml").write_text(
        f"include: {task}\ntask: gsm8k_local\ndataset_path: json\ndataset_name: null\ndataset_kwargs: {files}\n"
    )
    rows = [
        # The task's strict filter wants the answer behind "####", which the published solutions have behind "A:".
        {"prompt": f"Question: {row['question']}\nAnswer:", "response": row["solution"].replace("A:", "####")}
        for row in read_rows(shared_data / "gsm8k" / "solutions-175b_verification.jsonl")
    ]
    answers = tmp_path / "answers.jsonl"
    answers.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    record = run_test(
        f"lm_eval/gsm8k_local?shots=0&include={folder}", f"replay/{answers}", data_dir=tmp_path / "data"
    )
    assert {name: (found.value, found.n) for name, found in record.result.items()} == {
        "exact_match,strict-match": (742 / 1319, 1319),
        "exact_match,flexible-extract": (742 / 1319, 1319),
    }
    assert record.test_initialization["cache_version"].startswith("3.0, configuration ")


@pytest.fixture
def bbq(shared_data, write_task):
    """BBQ's questions on age as a task."""
    docs = [
        {
            "text": f"{row['context']}\n\nQ: {row['question']}\nA:",
            "choices": [row["ans0"], row["ans1"], row["ans2"]],
            "label": row["label"],
            "condition": row["context_condition"],
        }
        for row in read_rows(shared_data / "bbq" / "Age.jsonl")
    ]
    mean = {"aggregation": "mean", "higher_is_better": True}
    return write_task(
        "bbq_age",
        docs,
        output_type="multiple_choice",
        doc_to_text="text",
        doc_to_choice="choices",
        doc_to_target="label",
        metric_list=[{"metric": "acc", **mean}, {"metric": "acc_norm", **mean}],
    )


def test_bbq_equals_simple_evaluate_to_the_last_digit(bbq, sut, evaluate, tmp_path):
    record = run_test(bbq, sut, data_dir=tmp_path / "data")
    theirs = evaluate("bbq_age")["results"]["bbq_age"]
    assert {name: found.value for name, found in record.result.items() if isinstance(found, Estimate)} == {
        "acc": theirs["acc,none"],
        "acc_norm": theirs["acc_norm,none"],
    }
    assert record.counts.scored == record.result["acc"].n == 3680
    condition = record.test_item_records[0].test_item.context["metadata"]["condition"]
    assert condition in ("ambig", "disambig")
