"""Serves a tiny model of random weights by a server that people use, until standard input ends.

    python real_server.py llamacpp FOLDER
    python real_server.py llama_cpp_python FOLDER
    python real_server.py transformers FOLDER
    python real_server.py litellm FOLDER UPSTREAM

The model is made in FOLDER; LiteLLM asks UPSTREAM, a base URL. Its own base URL is the first line that is printed. The
Python that runs this has the server installed.
"""

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

WIDTH, HEADS, CONTEXT = 64, 4, 2048
SAYABLE = b'abcdefghijklmnopqrstuvwxyz .,0123456789{}":'
PATIENCE = 300.0


def main(kind, folder, *upstream):
    serve = {
        "llamacpp": llamacpp,
        "llama_cpp_python": llama_cpp_python,
        "transformers": transformers,
        "litellm": litellm,
    }[kind]
    with serve(Path(folder), *upstream) as base_url:
        print(base_url, flush=True)
        sys.stdin.read()


# --- llama.cpp's own server, from the wheel xllamacpp -----------------------------------------------------------------


@contextmanager
def llamacpp(folder):
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(folder / "tiny.gguf")
    params.port, params.n_parallel, params.n_ctx, params.warmup = 0, 4, CONTEXT, False
    params.cpuparams.n_threads = 1
    write_gguf(params.model.path)
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"


def write_gguf(path):
    import numpy as np
    from gguf import GGUFWriter, TokenType

    random = np.random.default_rng(0)

    def weights(*shape):
        return (0.2 * random.standard_normal(shape)).astype(np.float32)

    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    writer = GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(WIDTH)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([TokenType.UNKNOWN, *[TokenType.CONTROL] * 2, *[TokenType.BYTE] * 256])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template("{% for message in messages %}{{ message['content'] }} {% endfor %}")
    embeddings, output = weights(len(tokens), WIDTH), weights(len(tokens), WIDTH)
    embeddings[:, 0] = (
        5  # a constant, by which the model says ASCII only, ends no answer early, and closes texts soon
    )
    output[:, 0] = [-20, -20, -20, *(0 if byte in SAYABLE else -20 for byte in range(256))]
    output[3 + ord('"'), 0] = 0.6
    writer.add_tensor("token_embd.weight", embeddings)
    writer.add_tensor("output.weight", output)
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(WIDTH, np.float32))
    for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        writer.add_tensor(f"blk.0.{name}.weight", weights(WIDTH, WIDTH))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


# --- servers in a process of their own --------------------------------------------------------------------------------


@contextmanager
def llama_cpp_python(folder):
    write_gguf(str(folder / "tiny.gguf"))
    model = ("--model", str(folder / "tiny.gguf"), "--model_alias", "tiny", "--n_ctx", str(CONTEXT))
    with started([sys.executable, "-m", "llama_cpp.server"], "/v1/models", *model) as base_url:
        yield base_url


@contextmanager
def transformers(folder):
    write_transformers(folder / "tiny")
    os.environ["HF_HOME"] = str(folder)
    os.chdir(folder)  # for the model is called like its folder
    with started([program("transformers")], "/health", "serve", "tiny", "--device", "cpu") as base_url:
        yield base_url


def write_transformers(folder):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    tokens = ["<s>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE(vocab={token: place for place, token in enumerate(tokens)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
    fast.chat_template = "{% for message in messages %}{{ message['content'] }} {% endfor %}"
    fast.save_pretrained(folder)
    ends = {"bos_token_id": 0, "eos_token_id": 1}
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokens),
            hidden_size=32,
            intermediate_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            max_position_embeddings=CONTEXT,
            **ends,
        )
    )
    model.generation_config = GenerationConfig(do_sample=True, **ends)
    model.save_pretrained(folder)


@contextmanager
def litellm(folder, upstream):
    models = [
        {
            "model_name": f"by-{provider}",
            "litellm_params": {"model": f"{provider}/tiny", "api_base": upstream, "api_key": "none"},
        }
        for provider in ("openai", "mistral")
    ]
    config = folder / "litellm.yaml"
    config.write_text(json.dumps({"model_list": models}), encoding="utf-8")  # JSON is YAML
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ["LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY"] = "true"
    with started([program("litellm")], "/health/liveliness", "--config", str(config)) as base_url:
        yield base_url


def program(name):
    """A program that lies beside the running Python."""
    return str(Path(sys.executable).with_name(name))


@contextmanager
def started(command, health, *arguments):
    """A program on a free port, until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [*command, *arguments, "--host", "127.0.0.1", "--port", str(port)],
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
    )
    try:
        wait_for(f"http://127.0.0.1:{port}{health}", process)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for(url, process):
    direct = build_opener(ProxyHandler({}))
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        try:
            direct.open(url, timeout=5).close()
        except (URLError, OSError):
            time.sleep(0.2)
        else:
            return
    sys.exit(f"{process.args[0]} did not start.")


if __name__ == "__main__":
    main(*sys.argv[1:])
