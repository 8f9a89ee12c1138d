"""Tasks with local files, and a SUT and a model of lm-eval that give the same answers."""

import hashlib
import json
import os
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from modelgauge import PromptResponseSUT, SUTCompletion, SUTResponse

_SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}  # read when datasets is imported


@pytest.fixture(scope="session")
def lm_eval(tmp_path_factory):
    """lm-eval, with a cache of data sets of its own."""
    if find_spec("lm_eval") is None:
        pytest.skip("lm_eval is not installed. `.ci/run` makes an environment that has it.")
    os.environ["HF_DATASETS_CACHE"] = str(tmp_path_factory.mktemp("datasets"))
    import lm_eval

    return lm_eval


@pytest.fixture(scope="session")
def shared_data():
    if not _SHARED.is_dir():
        pytest.skip(f"the published benchmarks and recorded completions are not on this machine: {_SHARED}")
    return _SHARED


@pytest.fixture
def folder(tmp_path, lm_eval):
    """An empty folder for tasks."""
    made = tmp_path / "tasks"
    made.mkdir()
    return made


@pytest.fixture
def write_task(folder):
    """Write a task and its documents; without documents, the task has those of an earlier one."""

    def write(name, docs=None, **config):
        data = folder / f"{config.pop('docs_of', name)}.jsonl"
        if docs is not None:
            data.write_text("".join(json.dumps(doc) + "\n" for doc in docs), encoding="utf-8")
        whole = {
            "task": name,
            "dataset_path": "json",
            "dataset_kwargs": {"data_files": {"test": str(data)}},
            "test_split": "test",
            "metadata": {"version": 1.0},
            **config,
        }
        lines = [f"{key}: {json.dumps(value)}\n" for key, value in whole.items()]  # JSON is YAML
        text = re.sub(r'"(!function [^"]*)"', r"\1", "".join(lines))
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
        return f"lm_eval/{name}?include={folder}"

    return write


def likelihood(context, continuation):
    """A log-likelihood that is the same for the same texts, and whether it is that of a greedy choice."""
    digest = hashlib.sha256(f"{context}\0{continuation}".encode()).digest()
    return -int.from_bytes(digest[:4], "big") / 2**29 - 0.1 * len(continuation), digest[4] < 64


def generation(context):
    """A text that is the same for the same context: words of it, and a number."""
    digest = hashlib.sha256(context.encode()).digest()
    words = context.split() or ["nothing"]
    return f" {' '.join(words[digest[0] % len(words) :])} {digest[1] % 3}.\n\nQ: more"


class Deterministic(PromptResponseSUT[dict, dict]):
    """A SUT of these likelihoods and generations. It ignores stop sequences, as some servers do."""

    def translate_text_prompt(self, prompt):
        return {"text": prompt.text, "count": prompt.options.num_completions or 1}

    def translate_chat_prompt(self, prompt):
        return {"text": str([message.text for message in prompt.messages]), "count": 1}

    def translate_continuation_prompt(self, prompt):
        return {"context": prompt.context, "continuations": list(prompt.continuations)}

    def evaluate(self, request):
        return {}

    def translate_response(self, request, response):
        if "text" in request:
            return SUTResponse([SUTCompletion(generation(request["text"]))] * request["count"])
        scored = [(text, *likelihood(request["context"], text)) for text in request["continuations"]]
        return SUTResponse(
            [
                SUTCompletion(text, logprob=logprob, is_greedy=is_greedy, num_tokens=1)
                for text, logprob, is_greedy in scored
            ]
        )


@pytest.fixture
def sut():
    return Deterministic("deterministic")


@pytest.fixture
def evaluate(lm_eval, folder, monkeypatch):
    """Measure tasks by lm-eval itself, with a model of these likelihoods and generations."""
    from lm_eval.api.model import LM
    from lm_eval.models.utils import postprocess_generated_text
    from lm_eval.tasks import TaskManager

    monkeypatch.setattr("lm_eval.evaluator.add_env_info", lambda results: None)  # takes seconds

    class Model(LM):
        def loglikelihood(self, requests):
            return [likelihood(*request.args) for request in requests]

        def loglikelihood_rolling(self, requests):
            return [likelihood("", request.args[0])[0] for request in requests]

        def generate_until(self, requests):
            return [
                postprocess_generated_text(generation(request.args[0]), request.args[1]["until"], None)
                for request in requests
            ]

    def evaluate(*tasks, **options):
        manager = TaskManager(include_path=str(folder), include_defaults=False)
        return lm_eval.simple_evaluate(
            Model(), tasks=list(tasks), task_manager=manager, bootstrap_iters=0, **options
        )

    return evaluate
