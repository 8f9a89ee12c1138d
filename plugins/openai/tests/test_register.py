"""What is registered, what registering costs, and how a name becomes a SUT."""

import subprocess
import sys

import pytest

from modelgauge import (
    AcceptsChatPrompt,
    AcceptsTextPrompt,
    ProducesPerTokenLogProbabilities,
    ProducesStructuredOutput,
    TextPrompt,
)
from modelgauge.config.secrets import SecretStore
from modelgauge.errors import InvalidOptionError, MissingSecretError, SettingsError
from modelgauge.interfaces.sut import capabilities_of
from modelgauge.plugins.discovery import discover
from modelgauge_openai.key import OpenAIKey
from modelgauge_openai.sut import OpenAIChat

LOCAL = "base_url=http://127.0.0.1:1/v1"
PROMPTS = {AcceptsTextPrompt, AcceptsChatPrompt}


def make(name, **env):
    return discover().suts.make(name, secrets=SecretStore(env=env))


def asked(sut, **options):
    return sut.translate_text_prompt(TextPrompt("Hi", options=options))


def test_registration_imports_neither_aiohttp_nor_pydantic():
    code = (
        "import sys, modelgauge_openai.register\n"
        "heavy = {'aiohttp', 'pydantic', 'modelgauge_openai.sut', 'modelgauge_openai.key'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_any_model_of_openai_is_a_sut():
    sut = make("openai/gpt-4o", OPENAI_API_KEY="sk-1")
    assert isinstance(sut, OpenAIChat)
    assert asked(sut)["model"] == "gpt-4o"
    assert capabilities_of(sut) == {*PROMPTS, ProducesPerTokenLogProbabilities, ProducesStructuredOutput}


@pytest.mark.parametrize(
    ("name", "logprobs"),
    [
        ("gpt-4o", True),
        ("gpt-5-chat-latest", True),
        ("o3-mini", False),
        ("gpt-5-mini", False),
        ("gpt-5-mini?logprobs=true", True),
        ("gpt-4o?logprobs=false", False),
        (f"o3-mini?{LOCAL}", True),
    ],
)
def test_reasoning_models_of_openai_have_no_log_probabilities(name, logprobs):
    sut = make(f"openai/{name}", OPENAI_API_KEY="sk-1")
    assert (ProducesPerTokenLogProbabilities in capabilities_of(sut)) == logprobs
    assert ProducesStructuredOutput in capabilities_of(sut)


def test_structured_output_can_be_switched_off_and_another_form_asked_for():
    body = '{"response_format":{"type":"json_object"}}'
    sut = make(f"openai/m?{LOCAL}&structured_output=false&extra_body={body}")
    assert capabilities_of(sut) == {*PROMPTS, ProducesPerTokenLogProbabilities}
    assert asked(sut)["response_format"] == {"type": "json_object"}
    with pytest.raises(InvalidOptionError, match="structured_output=false"):
        make(f"openai/m?{LOCAL}&extra_body={body}")


def test_a_model_with_a_slash_in_its_name():
    assert asked(make(f"openai/meta-llama/Llama-3?{LOCAL}"))["model"] == "meta-llama/Llama-3"


def test_openai_needs_a_key_and_says_where_to_get_one():
    with pytest.raises(MissingSecretError, match=r"OPENAI_API_KEY.*secrets\.toml.*platform\.openai\.com"):
        make("openai/gpt-4o")
    with pytest.raises(MissingSecretError):
        make("openai/gpt-4o?base_url=https://eu.api.openai.com/v1")
    with pytest.raises(MissingSecretError):
        make("openai/gpt-4o?send_key=false", OPENAI_API_KEY="sk-1")


def test_other_servers_need_none():
    assert make(f"openai/m?{LOCAL}").uid == f"openai/m?{LOCAL}"


@pytest.mark.parametrize("key", ["sk one", "sk\x7f", "sk-\N{BULLET}\N{BULLET}"])
def test_a_key_that_no_header_can_carry_is_told_without_showing_it(key):
    with pytest.raises(SettingsError, match=r"openai\.api_key") as raised:
        OpenAIChat("openai/m", model="m", api_key=OpenAIKey(key))
    assert key not in str(raised.value)


def test_the_key_is_no_option():
    with pytest.raises(InvalidOptionError, match="secret"):
        make(f"openai/m?{LOCAL}&api_key=sk-1")


def test_options_of_the_name():
    name = f'openai/m?{LOCAL}&extra_body={{"reasoning_effort":"low"}}&max_tokens_field=max_completion_tokens'
    request = asked(make(name), max_tokens=5)
    assert request["reasoning_effort"] == "low"
    assert request["max_completion_tokens"] == 5


@pytest.mark.parametrize("field", ["model", "messages", "stream", "temperature"])
def test_extra_fields_replace_none_of_our_own(field):
    with pytest.raises(InvalidOptionError, match=field):
        OpenAIChat("openai/m", model="m", base_url="http://localhost/v1", extra_body={field: 1})


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), object(), "\ud800"], ids=["nan", "inf", "object", "surrogate"]
)
def test_extra_fields_are_json(value):
    with pytest.raises(InvalidOptionError, match="extra_body holds what JSON does not"):
        OpenAIChat("openai/m", model="m", base_url="http://localhost/v1", extra_body={"field": [value]})


@pytest.mark.parametrize("options", ["input_price=1", "output_price=1", "input_price=-1&output_price=1"])
def test_prices_come_in_pairs(options):
    with pytest.raises(InvalidOptionError, match="Give both"):
        make(f"openai/m?{LOCAL}&{options}")


def test_prices_change_no_answer_and_so_no_cache_key():
    plain, priced = (
        OpenAIChat("openai/m", model="m", base_url="http://localhost/v1", **prices)
        for prices in ({}, {"input_price": 1.0, "output_price": 2.0})
    )
    assert plain.identity() == priced.identity()


def test_the_key_is_in_the_identity_by_name_only():
    one, other = (
        OpenAIChat("openai/m", model="m", api_key=OpenAIKey(f"sk-canary-{number}")) for number in (1, 2)
    )
    assert one.identity() == other.identity()
    assert "canary" not in repr(one.identity()) + repr(vars(one)) + repr(one.initialization)
