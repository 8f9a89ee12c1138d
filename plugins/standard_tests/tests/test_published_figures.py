"""The published data, and published completions replayed; skipped where they are not on this machine."""

import hashlib
import json
from pathlib import Path

import pytest

from modelgauge import list_items, run_test
from modelgauge.cli.main import cli
from modelgauge_standard_tests.sources import BBH_TASKS, GSM8K_SHA256

RIGHT = {  # of the nine tasks with published completions
    "boolean_expressions": 232,
    "date_understanding": 218,
    "dyck_languages": 142,
    "logical_deduction_three_objects": 219,
    "multistep_arithmetic_two": 119,
    "navigate": 241,
    "snarks": 105,
    "sports_understanding": 244,
    "word_sorting": 101,
}
REPEATED = {"causal_judgement": 2, "sports_understanding": 2}


def _sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def bbh_files(shared_data):
    def of(task):
        folder = shared_data / "bbh"
        return {"task": folder / "tasks" / f"{task}.json", "prompt": folder / "cot-prompts" / f"{task}.txt"}

    return of


@pytest.fixture
def published(shared_data):
    def of(task):
        outputs = shared_data / "bbh" / "outputs"
        metrics = json.loads((outputs / f"{task}.metrics.json").read_text(encoding="utf-8"))
        return json.loads((outputs / f"{task}.json").read_text(encoding="utf-8"))["outputs"], metrics[
            "accuracy"
        ]

    return of


@pytest.fixture
def replayed(published, bbh_files, tmp_path):
    """A task's record, with the published completions as answers."""

    def run(task):
        rows = [{"prompt": one["input"], "response": one["prediction"]} for one in published(task)[0]]
        answers = tmp_path / f"{task}.jsonl"
        answers.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return run_test(
            f"bbh_{task}", f"replay/{answers}", data_dir=tmp_path / "data", dependencies=bbh_files(task)
        )

    return run


@pytest.mark.parametrize("task", BBH_TASKS)
def test_every_task_makes_its_items_of_the_published_files(task, bbh_files, tmp_path):
    files = bbh_files(task)
    assert (_sha256(files["task"]), _sha256(files["prompt"])) == BBH_TASKS[task]
    examples = json.loads(files["task"].read_text(encoding="utf-8"))["examples"]
    items = list(list_items(f"bbh_{task}", data_dir=tmp_path, dependencies=files))
    assert [item.context["target"] for item in items] == [example["target"] for example in examples]
    assert len({item.id for item in items}) == len(items)
    assert sum("~" in item.id for item in items) == REPEATED.get(task, 0)


@pytest.mark.parametrize("task", sorted(set(RIGHT) - {"snarks"}))
def test_prompts_are_the_papers_to_the_byte(task, bbh_files, published, tmp_path):
    items = list_items(f"bbh_{task}", data_dir=tmp_path, dependencies=bbh_files(task))
    assert [item.prompts[0].prompt.text for item in items] == [one["input"] for one in published(task)[0]]


@pytest.mark.parametrize("task", sorted(set(RIGHT) - {"snarks"}))
def test_replayed_completions_give_the_published_accuracy(task, replayed, published):
    outputs, percent = published(task)
    record = replayed(task)
    accuracy = record.result["accuracy"]
    assert (accuracy.value, accuracy.n) == (RIGHT[task] / len(outputs), len(outputs))
    assert 100 * accuracy.value == percent
    assert (record.counts.items, record.counts.scored) == (len(outputs), len(outputs))


def test_the_damaged_snarks_item_is_a_counted_error(replayed, published):
    outputs, percent = published("snarks")
    record = replayed("snarks")
    accuracy = record.result["accuracy"]
    assert (accuracy.value, accuracy.n) == (105 / 177, 177)
    assert accuracy.bounds == (105 / 178, 106 / 178)
    assert 100 * accuracy.bounds[1] == percent
    assert (record.counts.items, record.counts.scored, record.counts.sut_errors) == (178, 177, 1)
    (failed,) = record.test_item_exceptions
    assert (failed.stage, failed.error_type) == ("sut", "MissingAnswerError")
    sent = {item.test_item.prompts[0].prompt.text for item in record.test_item_records}
    assert sent < {output["input"] for output in outputs}
    assert "\n(A) The NB\n" in failed.test_item.prompts[0].prompt.text


@pytest.mark.parametrize(("model", "right"), [("6b_finetuning", 286), ("175b_verification", 742)])
def test_replayed_solutions_are_judged_as_their_authors_did(model, right, shared_data, tmp_path):
    questions = shared_data / "gsm8k" / "test.jsonl"
    solutions = shared_data / "gsm8k" / f"solutions-{model}.jsonl"
    assert _sha256(questions) == GSM8K_SHA256
    record = run_test(
        "gsm8k",
        f"replay/{solutions}?prompt=question&response=solution",
        data_dir=tmp_path,
        dependencies={"questions": questions},
    )
    accuracy = record.result["accuracy"]
    assert (accuracy.value, accuracy.n, record.counts.scored) == (right / 1319, 1319, 1319)
    with solutions.open(encoding="utf-8") as lines:
        judged = {row["question"]: float(row["is_correct"]) for row in map(json.loads, lines)}
    measured = {
        one.test_item.prompts[0].prompt.text: one.measurements["accuracy"] for one in record.test_item_records
    }
    assert measured == judged


@pytest.mark.parametrize("uid", ["gsm8k", "bbh_snarks"])
def test_bundle_takes_the_data_along(uid, shared_data, bbh_files, tmp_path, monkeypatch, capsys):
    files = (
        bbh_files("snarks") if uid == "bbh_snarks" else {"questions": shared_data / "gsm8k" / "test.jsonl"}
    )
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        assert cli.main([*map(str, arguments)], standalone_mode=False) == 0

    for key, file in files.items():
        run("dependencies", "add", "--test", uid, key, file)
    run("run-test", "--test", uid, "--sut", "demo_yes_no", "--max-test-items", "2")
    run("bundle", "latest", "--with-data", "-o", "run.mgb")
    said = capsys.readouterr()
    assert "Left out" not in said.out + said.err
    run("unbundle", "run.mgb", "-o", "received")
    brought = {
        path.parents[2].name: _sha256(path) for path in Path("received/dependencies").glob("*/*/*/data/*")
    }
    assert brought == {key: _sha256(file) for key, file in files.items()}
