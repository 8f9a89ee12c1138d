"""What is asked and recorded: chats, options of generation, code, versions, and runs that are killed."""

import json
import os
import signal
import subprocess
import sys
import time
from threading import Thread

import pytest

from modelgauge import compare, list_items, run_test
from modelgauge.errors import RecordError, UsageError

DOCS = [{"question": f"What comes after {n}?", "answer": str(n + 1)} for n in range(12)]
GENERATE = {
    "doc_to_text": "Q: {{question}}\nA:",
    "doc_to_target": " {{answer}}",
    "description": "Count.\n",
    "fewshot_split": "test",
    "generation_kwargs": {"until": ["\n"]},
    "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
}


@pytest.fixture
def prompts(tmp_path):
    """The prompts of a test."""
    return lambda uid: [item.prompts[0].prompt for item in list_items(uid, data_dir=tmp_path / "data")]


def test_chats_have_examples_as_turns(write_task, prompts):
    uid = write_task("chat", DOCS, **GENERATE)
    chat = prompts(f"{uid}&chat_template=true&shots=2&limit=1&system=Be%20brief.")[0]
    assert [message.role.value for message in chat.messages] == ["system", *["user", "assistant"] * 2, "user"]
    assert chat.messages[0].text == "Be brief.\n\nCount.\n"
    assert chat.messages[-1].text == "Q: What comes after 0?\nA:"
    assert chat.options.stop_sequences == ("\n",)


def test_chats_may_have_examples_in_one_message(write_task, prompts):
    uid = write_task("chat", DOCS, **GENERATE)
    chat = prompts(f"{uid}&chat_template=true&multiturn=false&shots=2&limit=1")[0]
    assert [message.role.value for message in chat.messages] == ["system", "user"]
    assert chat.messages[1].text.count("Q:") == 3


def test_continuations_of_a_chat_and_its_begun_answer(write_task, prompts):
    uid = write_task(
        "choice",
        DOCS,
        output_type="multiple_choice",
        doc_to_text="{{question}}",
        doc_to_choice=["yes", "no"],
        doc_to_target=0,
        gen_prefix="The answer is",
    )
    prompt = prompts(f"{uid}&chat_template=true&limit=1")[0]
    assert [message.role.value for message in prompt.context] == ["user", "assistant"]
    assert prompt.context[-1].text == "The answer is"
    assert prompt.continuations == (" yes", " no")


def test_limit_is_a_number_or_a_share(write_task, prompts):
    uid = write_task("limited", DOCS, **GENERATE)
    assert len(prompts(uid)) == 12
    assert len(prompts(f"{uid}&limit=5")) == 5
    assert len(prompts(f"{uid}&limit=0.3")) == 4  # rounded up, as in lm-eval


def test_draws_have_the_tasks_temperature(write_task, prompts):
    draws = {"until": ["\n", ""], "do_sample": True, "temperature": 0.7, "top_p": 0.9, "max_new_tokens": 20}
    uid = write_task("draws", DOCS, **{**GENERATE, "generation_kwargs": draws})
    options = prompts(uid)[0].options
    assert (options.temperature, options.top_p, options.max_tokens) == (0.7, 0.9, 20)
    assert options.stop_sequences == ("\n",)


def test_items_have_task_document_and_target(write_task, tmp_path):
    uid = write_task("named", DOCS, **GENERATE)
    item = list(list_items(uid, data_dir=tmp_path / "data"))[3]
    assert item.id == "named/3"
    assert item.context == {"task": "named", "doc_id": 3, "target": " 4", "metadata": DOCS[3]}


def test_functions_of_a_folder_run_and_their_change_is_seen(write_task, folder, sut, tmp_path):
    scoring = folder / "scoring.py"
    scoring.write_text("def score(doc, results):\n    return {'length': len(results[0])}\n")
    metrics = [{"metric": "length", "aggregation": "mean", "higher_is_better": False}]
    config = {**GENERATE, "process_results": "!function scoring.score", "metric_list": metrics}
    uid = write_task("scored", DOCS, **config)
    first = run_test(uid, sut, data_dir=tmp_path / "data")
    assert first.result["length"].value > 1
    scoring.write_text("def score(doc, results):\n    return {'length': 2 * len(results[0])}\n")
    second = run_test(uid, sut, data_dir=tmp_path / "data")
    assert second.counts.sut_calls.paid == 0
    with pytest.raises(RecordError, match="cache_version"):
        compare(first.run_id, second.run_id, data_dir=tmp_path / "data")


SIGNAL = """import signal


def score(doc, results):
    signal.signal(signal.SIGALRM, lambda *_: None)
    return {"exact_match": 1.0}
"""


def test_code_with_a_signal_is_scored_on_the_main_thread_only(write_task, folder, sut, tmp_path):
    (folder / "signals.py").write_text(SIGNAL)
    uid = write_task("signals", DOCS, **GENERATE, process_results="!function signals.score")
    record = run_test(uid, sut, data_dir=tmp_path / "data")
    assert (record.result["exact_match"].value, record.counts.scored) == (1, 12)
    found = []
    thread = Thread(target=lambda: found.append(run_test(uid, sut, data_dir=tmp_path / "data")))
    thread.start()
    thread.join()
    assert (found[0].counts.scored, found[0].counts.failed) == (0, 12)
    assert "main thread" in found[0].test_item_exceptions[0].message


def test_workers_in_other_processes_load_the_task_too(write_task, tmp_path):
    uid = write_task("many", DOCS, **GENERATE)
    answers = tmp_path / "answers.jsonl"
    rows = [
        {"prompt": f"Count.\nQ: {doc['question']}\nA:", "response": f" {doc['answer']}\nQ:"} for doc in DOCS
    ]
    answers.write_text("".join(json.dumps(row) + "\n" for row in rows))
    record = run_test(uid, f"replay/{answers}", data_dir=tmp_path / "data", executor="processes", workers=2)
    assert (record.result["exact_match"].value, record.counts.scored) == (1, 12)


def test_equal_configurations_in_other_folders_have_one_version(write_task, folder, sut, tmp_path):
    uid = write_task("named", DOCS, **GENERATE)
    moved = tmp_path / "moved"
    first = run_test(f"{uid}&limit=2", sut, data_dir=tmp_path / "data")
    folder.rename(moved)
    (moved / "named.yaml").write_text((moved / "named.yaml").read_text())
    folder.mkdir()
    (moved / "named.jsonl").rename(folder / "named.jsonl")
    second = run_test(f"lm_eval/named?include={moved}&limit=2", sut, data_dir=tmp_path / "data")
    versions = [record.test_initialization["cache_version"] for record in (first, second)]
    assert versions[0] == versions[1]
    assert versions[0].startswith("1.0, configuration ")


def test_task_that_runs_what_a_model_wrote_must_be_allowed(write_task, sut, tmp_path):
    uid = write_task("unsafe", DOCS, **GENERATE, unsafe_code=True)
    with pytest.raises(UsageError, match="--allow-code"):
        run_test(uid, sut, data_dir=tmp_path / "data")
    assert run_test(uid, sut, data_dir=tmp_path / "data", allow_code=True).counts.scored == 12


def test_run_of_a_stranger_names_no_folder(write_task, tmp_path, sut, monkeypatch):
    uid = write_task("named", DOCS, **GENERATE)
    record = run_test(uid, sut, data_dir=tmp_path / "data")
    manifest = record.folder / "run.json"
    said = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**said, "hyperparameters": {"not": "signed"}}))
    rescored = subprocess.run(
        [sys.executable, "-m", "modelgauge", "rescore", record.folder, "--data-dir", tmp_path / "data"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert rescored.returncode == 2
    assert f"--test '{uid}'" in " ".join(rescored.stderr.split())


def test_scores_are_measured_again_without_the_sut(write_task, sut, tmp_path):
    uid = write_task("named", DOCS, **GENERATE)
    record = run_test(uid, sut, data_dir=tmp_path / "data")
    from modelgauge import rescore

    (again,) = rescore(record.run_id, tmp_path / "data")
    assert again.result == record.result


SLOW_SUT = """
import time
from pathlib import Path
from modelgauge import PromptResponseSUT, SUTCompletion, SUTResponse, hookimpl


class Slow(PromptResponseSUT[str, str]):
    batch_size = 4

    def translate_text_prompt(self, prompt):
        return prompt.text

    def evaluate_batch(self, requests):
        with Path("asked.txt").open("a") as log:
            log.writelines(request.replace("\\n", " ") + "\\n" for request in requests)
        time.sleep(0.2)
        return requests

    def translate_response(self, request, response):
        return SUTResponse([SUTCompletion(" 5")])


@hookimpl
def modelgauge_register_suts(register):
    register("slow", Slow)
"""


def test_killed_run_resumes_without_asking_a_committed_document_twice(write_task, tmp_path):
    many = [{"question": f"What comes after {n}?", "answer": str(n + 1)} for n in range(200)]
    uid = write_task("many", many, **GENERATE)
    (tmp_path / "slow.py").write_text(SLOW_SUT)
    command = [sys.executable, "-m", "modelgauge", "--plugin", "slow.py"]
    begun = subprocess.Popen(
        [*command, "run-test", "--test", uid, "--sut", "slow"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    runs = tmp_path / "run_data" / "runs"
    due = time.monotonic() + 120
    while not (journals := list(runs.glob("*/items.jsonl"))) or journals[0].read_text().count("\n") < 20:
        assert time.monotonic() < due
        assert begun.poll() is None
        time.sleep(0.05)
    os.kill(begun.pid, signal.SIGKILL)
    begun.wait()
    committed = journals[0].read_text().rpartition("\n")[0].splitlines()
    asked = (tmp_path / "asked.txt").read_text()
    resumed = subprocess.run(
        [*command, "resume", "latest"], cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert resumed.returncode == 0, resumed.stderr
    further = (tmp_path / "asked.txt").read_text().removeprefix(asked).splitlines()
    done = {json.loads(line)["test_item"]["context"]["doc_id"] for line in committed if '"test_item"' in line}
    assert len(done) >= 20
    assert not {f"Count. Q: What comes after {number}? A:" for number in done} & set(further)
    assert "200 scored, 0 failed" in resumed.stdout
