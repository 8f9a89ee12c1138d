"""Servers that people use, each with a tiny model of random weights that is made on the spot.

llama.cpp's server is in the group dev. The others take minutes to install and to start, so they are tested where an
environment variable names a Python that has them.
"""

import json
import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
from completions_server import Answers, completions_server, scores

from modelgauge import ContinuationPrompt, SUTOptions, TextPrompt, run_test
from modelgauge.cli.checking import check

NEEDS = {
    "llama_cpp_python": ("TESTS_LLAMA_CPP_PYTHON", "llama-cpp-python[server] and gguf"),
    "transformers": ("TESTS_TRANSFORMERS_PYTHON", "transformers[serving] and torch"),
    "litellm": ("TESTS_LITELLM_PYTHON", "litellm[proxy]"),
}
MODELS = {
    "llamacpp": "tiny",
    "llama_cpp_python": "tiny",
    "transformers": "tiny",
    "litellm": "by-openai",
    "litellm, one by one": "by-mistral",
}
LACKS = {
    "llamacpp": set(),
    "llama_cpp_python": {"structured output"},
    "transformers": {"log-probabilities", "structured output", "seed", "list of models"},
    "litellm": set(),
    "litellm, one by one": {"log-probabilities", "seed"},
}
STREAMS_WITHOUT_USAGE = {"llama_cpp_python"}
CALLS = {"llamacpp": 1, "llama_cpp_python": 2, "transformers": 2, "litellm": 1, "litellm, one by one": 3}


def python_of(kind):
    """The Python that has a server; the test is skipped where there is none."""
    if kind == "llamacpp":
        if not (find_spec("xllamacpp") and find_spec("gguf")):
            pytest.skip("xllamacpp and gguf are not installed; the group dev has them for Linux on x86-64.")
        return sys.executable
    variable, packages = NEEDS[kind]
    python = os.environ.get(variable)
    if not python:
        pytest.skip(f"{variable} names no Python that has {packages}.")
    return python


@contextmanager
def serving(kind, folder, *upstream):
    """The base URL of a server, which ends with its standard input."""
    python = python_of(kind)
    script = str(Path(__file__).with_name("real_server.py"))
    folder.mkdir()
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(
            [python, script, kind, str(folder), *upstream],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
        )
        try:
            base_url = process.stdout.readline().decode().strip()
            if not base_url:
                pytest.fail(
                    f"{kind} did not start: {(folder / 'log.txt').read_text('utf-8', 'replace')[-2000:]}"
                )
            yield base_url
        finally:
            process.stdin.close()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()


@pytest.fixture(scope="module")
def base_urls(tmp_path_factory):
    """Gives the base URL of a kind of server, which is started once."""
    folder, running = tmp_path_factory.mktemp("servers"), {}
    with ExitStack() as stack:

        def base_url(kind):
            if kind not in running:
                python_of(kind)
                upstream = [base_url("llamacpp")] if kind == "litellm" else []
                running[kind] = stack.enter_context(serving(kind, folder / kind, *upstream))
            return running[kind]

        yield base_url


@pytest.fixture(params=MODELS)
def server(request):
    return request.param


@pytest.fixture
def name(server, base_urls):
    """The name of the SUT."""
    return f"openai/{MODELS[server]}?base_url={base_urls(server.partition(',')[0])}"


def answers(record):
    return [
        [completion.completion for completion in item.interactions[0].response.completions]
        for item in record.test_item_records
    ]


def test_what_the_server_has_is_found_out(server, name):
    findings = check(name, SUTOptions(max_tokens=150)).findings
    assert {finding.ability for finding in findings if not finding.is_there} == LACKS[server], findings
    [completions] = [finding.detail for finding in findings if finding.ability == "several completions"]
    assert completions.startswith(f"2 of 2, by {CALLS[server]} call")


def test_each_item_gets_its_completions_and_a_warm_run_sends_nothing(server, name, asking):
    options = SUTOptions(num_completions=3, max_tokens=6, temperature=1)
    test = asking(*(TextPrompt(f"question {number}", options) for number in range(6)))
    record = run_test(test, name)
    assert [len(answer) for answer in answers(record)] == [3] * 6
    assert record.spent.tokens > 6 * 3
    assert record.counts.sut_calls.paid == 6 * (1 if CALLS[server] == 1 else 3)
    warm = run_test(test, name)
    assert (warm.counts.sut_calls.paid, warm.spent.attempts) == (0, 0)
    assert answers(warm) == answers(record)


def test_a_stream_is_read(server, name, asking):
    record = run_test(asking(TextPrompt("Hi", SUTOptions(max_tokens=6))), f"{name}&stream=true")
    [[completion]] = answers(record)
    assert completion.finish_reason in ("stop", "length")
    assert (record.spent.tokens > 0) == (server not in STREAMS_WITHOUT_USAGE)


def test_options_reach_llamacpp(base_urls, asking):
    schema = {
        "type": "object",
        "properties": {"n": {"enum": [1, 2]}},
        "required": ["n"],
        "additionalProperties": False,
    }
    prompts = [
        TextPrompt("Hi", SUTOptions(max_tokens=20, response_schema=schema)),
        TextPrompt("Hi", SUTOptions(max_tokens=4, top_logprobs=3)),
        TextPrompt("Hi", SUTOptions(max_tokens=2)),
    ]
    record = run_test(asking(*prompts), f"openai/tiny?base_url={base_urls('llamacpp')}")
    [[structured], [weighed], [short]] = answers(record)
    assert json.loads(structured.text)["n"] in (1, 2)
    assert [len(logprob.top_tokens) for logprob in weighed.top_logprobs] == [3] * 4
    assert (len(short.text), short.finish_reason) == (2, "length")


def test_litellm_names_its_models_where_one_is_wrong(base_urls, asking):
    name = f"openai/by-opnai?base_url={base_urls('litellm')}"
    record = run_test(asking(*(f"question {number}" for number in range(5))), name)
    assert "The server has: by-openai, by-mistral." in record.failure.message


@pytest.mark.parametrize("server", ["llamacpp", "transformers"], indirect=True)
def test_continuations_are_refused_where_echo_is_ignored(server, name, asking):
    test = asking(*(ContinuationPrompt("The capital is", [f" {word}", " it"]) for word in "abcd"))
    test.requires_sut_capabilities = ()
    record = run_test(test, f"{name}&api=completions")
    assert record.counts.scored == 0
    assert "so it cannot score continuations. vLLM and SGLang" in record.failure.message
    assert "(llama.cpp)" in record.failure.message or server != "llamacpp"


@pytest.mark.parametrize("server", ["llamacpp", "transformers"], indirect=True)
def test_texts_are_completed(server, name, asking):
    options = SUTOptions(max_tokens=4, num_completions=2)
    record = run_test(asking(TextPrompt("Once upon a", options)), f"{name}&api=completions")
    [found] = answers(record)
    assert [completion.finish_reason for completion in found] == ["length"] * 2
    assert all(completion.text for completion in found)
    assert record.spent.tokens > 8


def test_litellm_hands_on_what_its_server_gives(tmp_path, asking):
    python_of("litellm")
    with (
        completions_server(Answers("vllm")) as (url, asked),
        serving("litellm", tmp_path / "proxy", url) as proxy,
    ):
        test = asking(ContinuationPrompt("The capital is", [" Paris", " a city"]))
        test.requires_sut_capabilities = ()
        record = run_test(test, f"openai/by-openai?base_url={proxy}&api=completions")
    [found] = answers(record)
    assert len(asked) == 1
    assert [completion.logprob for completion in found] == pytest.approx(
        [sum(scores("The capital is", text)[0]) for text in (" Paris", " a city")]
    )
