"""A folder with a model as transformers saves it: adapters, placements, and what a run records."""

import json
import signal
import subprocess
import sys

import pytest

from modelgauge import ContinuationPrompt, PromptResponseTest, ScoresContinuations, TestItem, run_test
from modelgauge.errors import InputFileError
from modelgauge_transformers.sut import TransformersModel

CHOICES = [" blue", " as green as grass", "!"]


def opened(folder, **options):
    sut = TransformersModel(f"transformers/{folder}", str(folder), device="cpu", **options)
    sut.open()
    return sut


def logprobs(sut):
    request = sut.translate_continuation_prompt(ContinuationPrompt("The sky is", CHOICES))
    return [sum(score["logprobs"]) for score in sut.evaluate_batch([request])[0]["scores"]]


@pytest.fixture(scope="session")
def adapter(tiny, tmp_path_factory):
    """A folder with a LoRA adapter of random weights."""
    peft = pytest.importorskip("peft")
    import torch
    from transformers import AutoModelForCausalLM

    torch.manual_seed(2)
    model = AutoModelForCausalLM.from_pretrained(tiny)
    config = peft.LoraConfig(
        r=2, target_modules=["q_proj", "v_proj"], init_lora_weights=False, task_type="CAUSAL_LM"
    )
    folder = tmp_path_factory.mktemp("adapter")
    peft.get_peft_model(model, config).save_pretrained(folder)
    return folder


def test_adapter_changes_scores_as_peft_does(tiny, adapter):
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    with_adapter = opened(tiny, adapter=str(adapter))
    encode = with_adapter._model.tokens.tokenizer.encode
    model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(tiny), adapter).eval()
    context, expected = encode("The sky is"), []
    for choice in CHOICES:
        ids = context + encode(choice)
        with torch.inference_mode():
            logs = model(torch.tensor([ids])).logits[0].log_softmax(-1)
        expected.append(sum(float(logs[at - 1, ids[at]]) for at in range(len(context), len(ids))))
    assert logprobs(with_adapter) == pytest.approx(expected, abs=1e-4)
    assert logprobs(opened(tiny)) != pytest.approx(expected, abs=1e-2)


def test_adapter_is_part_of_the_identity_by_its_content(tiny, adapter, tmp_path):
    plain = TransformersModel("x", str(tiny)).cache_version
    with_adapter = TransformersModel("x", str(tiny), adapter=str(adapter)).cache_version
    assert with_adapter.startswith(f"{plain}+sha256:")
    for file in adapter.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    assert TransformersModel("x", str(tiny), adapter=str(tmp_path)).cache_version == with_adapter
    (tmp_path / "adapter_config.json").write_text("{}")
    assert TransformersModel("x", str(tiny), adapter=str(tmp_path)).cache_version != with_adapter


def test_adapter_of_another_model_is_refused(tiny, adapter, tmp_path):
    config = json.loads((adapter / "adapter_config.json").read_text())
    for file in adapter.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "adapter_config.json").write_text(json.dumps({**config, "target_modules": ["c_attn"]}))
    with pytest.raises(InputFileError, match="does not fit the model"):
        opened(tiny, adapter=str(tmp_path))
    (tmp_path / "adapter_config.json").write_text(
        json.dumps({**config, "target_modules": ["q_proj", "k_proj"]})
    )
    with pytest.raises(InputFileError, match=r"no weights for .*k_proj"):
        opened(tiny, adapter=str(tmp_path))
    with pytest.raises(InputFileError, match=r"no adapter_config\.json"):
        TransformersModel("x", str(tiny), adapter=str(tiny))


@pytest.mark.parametrize("device", ["auto", "balanced", "sequential"])
def test_device_map_gives_the_same_scores(tiny, device):
    spread = TransformersModel("x", str(tiny), device=device)
    spread.open()
    assert logprobs(spread) == pytest.approx(logprobs(opened(tiny)), abs=1e-4)


class Skies(PromptResponseTest):
    requires_sut_capabilities = (ScoresContinuations,)

    def make_test_items(self, dependencies):
        for number in range(5):
            yield TestItem([ContinuationPrompt(f"Sky {number} is", CHOICES)])

    def measure_quality(self, item):
        return {"blue": item.interactions[0].response.completions[0].completion.is_greedy}


def test_record_counts_passes_and_tokens_of_paid_calls(tiny, tmp_path):
    for passes in (2, 0):  # contexts, then what is left of the choices; at last the cache
        sut = TransformersModel(f"transformers/{tiny}", str(tiny), device="cpu")
        record = run_test(Skies("skies"), sut, data_dir=tmp_path)
        read = 5 * (len("Sky 0 is") + sum(len(choice) - 1 for choice in CHOICES))
        assert (record.spent.forward_passes, record.spent.tokens) == (passes, read if passes else 0)


KILLED = """
import os, signal, time
from pathlib import Path

from modelgauge import PromptResponseTest, SUTOptions, TestItem, TextPrompt, hookimpl
from modelgauge_transformers.sut import TransformersModel


class Numbers(PromptResponseTest):
    def make_test_items(self, dependencies):
        for number in range(60):
            yield TestItem(TextPrompt(f"{number}", SUTOptions(max_tokens=3)))

    def measure_quality(self, item):
        return {"length": len(item.text)}


class Killed(TransformersModel):
    batch_size = 8
    batches = 0

    def evaluate_batch(self, requests):
        Killed.batches += 1
        with open("asked", "a") as log:
            log.writelines(request["text"] + "\\n" for request in requests)
        if Killed.batches == 4 and not Path("killed").exists():
            Path("killed").touch()
            (journal,) = Path("data").glob("runs/*/items.jsonl")
            while len(journal.read_text().splitlines()) < 8:  # until a batch is committed
                time.sleep(0.01)
            self._model.forward.model.register_forward_hook(lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        return super().evaluate_batch(requests)


@hookimpl
def modelgauge_register_tests(register):
    register("numbers", Numbers)


@hookimpl
def modelgauge_register_suts(register):
    register.provider("killed", Killed)
"""


def modelgauge(folder, *arguments):
    command = [sys.executable, "-m", "modelgauge", *arguments, "--plugin", "killed.py", "--data-dir", "data"]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="a signal of POSIX")
def test_resume_after_kill_in_a_batch_asks_no_committed_prompt_again(tiny, tmp_path):
    (tmp_path / "killed.py").write_text(KILLED)
    asked = tmp_path / "asked"
    killed = modelgauge(tmp_path, "run-test", "--test", "numbers", "--sut", f"killed/{tiny}?device=cpu")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    (run,) = (tmp_path / "data" / "runs").iterdir()
    lines = map(json.loads, (run / "items.jsonl").read_text().splitlines())
    committed = {line["test_item"]["prompts"][0]["prompt"]["text"] for line in lines}
    assert 8 <= len(committed) < 60
    before = asked.read_text().split()
    resumed = modelgauge(tmp_path, "resume", run.name)
    assert resumed.returncode == 0, resumed.stderr
    again = asked.read_text().split()[len(before) :]
    assert not committed & set(again)
    assert {*before, *again} == set(map(str, range(60)))
    assert json.loads((run / "record.json").read_text())["counts"]["scored"] == 60
