"""What is registered, what registering costs, and how a name becomes a SUT."""

import asyncio
import re
import subprocess
import sys

import pytest
from chat_server import Plan, ThreadedChatServer

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
from modelgauge_openai.errors import ChatError
from modelgauge_openai.key import OpenAIKey
from modelgauge_openai.servers import SERVERS
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


@pytest.mark.parametrize(
    ("options", "env", "sent"),
    [
        ("", {"OPENAI_API_KEY": "sk-openai"}, None),
        ("&send_key=true", {"OPENAI_API_KEY": "sk-openai"}, "Bearer sk-openai"),
        ("&key_env=GROQ_API_KEY", {"OPENAI_API_KEY": "sk-openai", "GROQ_API_KEY": "gsk-1"}, "Bearer gsk-1"),
        ("&key=groq.api_key", {"OPENAI_API_KEY": "sk-openai", "GROQ_API_KEY": "gsk-2"}, "Bearer gsk-2"),
        ("&key_env=GROQ_API_KEY&send_key=false", {"GROQ_API_KEY": "gsk-1"}, None),
    ],
)
def test_which_key_goes_to_another_service(options, env, sent, server, named_host):
    sut = make(f"openai/m?base_url={named_host(server.base_url)}{options}", **env)
    asyncio.run(ask_once(sut))
    assert server.stats().recent[-1]["headers"].get("Authorization") == sent


def test_a_key_that_was_withheld_is_named_where_the_server_asks_for_one(named_host):
    with ThreadedChatServer(Plan(key="sk-openai")) as server:
        sut = make(f"openai/m?base_url={named_host(server.base_url)}", OPENAI_API_KEY="sk-openai")
        with pytest.raises(ChatError, match=r"openai\.api_key was not sent there.*\?send_key=true"):
            asyncio.run(ask_once(sut))


async def ask_once(sut):
    await sut.open()
    try:
        return await sut.evaluate(asked(sut))
    finally:
        await sut.close()


def test_the_key_in_a_header_of_its_own_further_headers_and_a_query(server):
    name = (
        f"openai/m?base_url={server.base_url}&key_env=AZURE_KEY&api_key_header=api-key"
        '&extra_query={"api-version":"2024-10-21"}&extra_headers={"X-Title":"a b"}'
    )
    asyncio.run(ask_once(make(name, AZURE_KEY="az-1")))
    headers = server.stats().recent[-1]["headers"]
    assert (headers["api-key"], headers["X-Title"]) == ("az-1", "a b")
    assert "Authorization" not in headers
    assert server.stats().recent[-1]["query"] == {"api-version": "2024-10-21"}


@pytest.mark.parametrize("name", ["Authorization", "API-Key", "X-Goog-Api-Key", "Cookie", "Host", "a b", "é"])
def test_no_key_and_no_nonsense_among_further_headers(name):
    with pytest.raises(InvalidOptionError, match=r"cannot be sent.*key_env"):
        OpenAIChat("openai/m", model="m", base_url="http://localhost/v1", extra_headers={name: "x"})


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            "key_env=NO_SUCH_KEY",
            "key_env=NO_SUCH_KEY names was found nowhere. Set the environment variable NO_SUCH_KEY",
        ),
        ("key=no.such", "key=no.such names was found nowhere. Set NO_SUCH, or write it into secrets.toml"),
        ("key=such", "Write SCOPE.NAME"),
        ("key=a.b&key_env=C", "Give one of them"),
    ],
)
def test_a_key_that_was_named_and_is_nowhere(options, problem):
    with pytest.raises((MissingSecretError, InvalidOptionError), match=re.escape(problem)):
        make(f"openai/m?{LOCAL}&{options}", OPENAI_API_KEY="sk-1")


def test_no_key_among_further_headers_where_another_header_holds_it():
    with pytest.raises(InvalidOptionError, match=r"cannot be sent"):
        OpenAIChat(
            "openai/m",
            model="m",
            base_url="http://localhost/v1",
            api_key_header="api-key",
            extra_headers={"api-key": "canary"},
        )


@pytest.mark.parametrize("name", ["key", "api_key", "access_token"])
def test_no_key_in_the_query(name):
    with pytest.raises(InvalidOptionError, match=rf"'{name}' in extra_query looks like a key") as raised:
        OpenAIChat("openai/m", model="m", base_url="http://localhost/v1", extra_query={name: "canary"})
    assert "canary" not in str(raised.value)


def test_where_a_key_stands_changes_no_answer_and_so_no_cache_key():
    plain = make(f"openai/m?{LOCAL}", OPENAI_API_KEY="sk-1").identity()
    for options in (
        "key_env=K",
        "key=a.b",
        "send_key=true",
        "key_env=K&api_key_header=api-key",
        "stream=true",
    ):
        assert make(f"openai/m?{LOCAL}&{options}", K="sk-2", A_B="sk-3").identity() == plain


def test_the_cache_key_of_a_plain_name_stays():
    assert make("openai/m", OPENAI_API_KEY="sk-1").identity() == {
        "made": [
            "openai/m",
            "modelgauge_openai:OpenAIChat",
            0,
            {"api_key": {"$secret": "openai.api_key"}, "model": "m"},
        ],
        "with": {},
    }


def test_fields_that_a_server_refuses_are_not_sent():
    sut = make(f"openai/m?{LOCAL}&omit=seed,logprobs,response_format")
    assert capabilities_of(sut) == PROMPTS
    assert "seed" not in asked(sut, random=7)
    with pytest.raises(InvalidOptionError, match=r"omit cannot hold messages, speed"):
        make(f"openai/m?{LOCAL}&omit=speed,messages")


def test_the_key_is_no_option():
    with pytest.raises(InvalidOptionError, match="secret"):
        make(f"openai/m?{LOCAL}&api_key=sk-1")


def test_options_of_the_name():
    name = f'openai/m?{LOCAL}&extra_body={{"reasoning_effort":"low"}}&max_tokens_field=max_completion_tokens'
    request = asked(make(name), max_tokens=5)
    assert request["reasoning_effort"] == "low"
    assert request["max_completion_tokens"] == 5


def test_extra_fields_are_sent_in_place_of_what_a_prompt_asks_for():
    sut = make(f'openai/m?{LOCAL}&extra_body={{"temperature":1,"seed":3}}')
    request = asked(sut, temperature=0, max_tokens=5)
    assert (request["temperature"], request["seed"], request["max_tokens"]) == (1, 3, 5)


@pytest.mark.parametrize("field", ["model", "messages", "stream", "n", "logprobs"])
def test_extra_fields_leave_the_form_of_the_answer(field):
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


@pytest.mark.parametrize("name", sorted(SERVERS))
def test_every_server_of_the_list_can_be_asked(name):
    key = SERVERS[name].get("key_env")
    sut = make(f"openai/m?server={name}", **({key: "k-1"} if key else {}))
    assert asked(sut, max_tokens=3)["model"] == "m"
    assert sut.initialization.arguments["base_url"].startswith(("https://", "http://localhost:"))


def test_a_server_without_its_key_names_the_variable():
    with pytest.raises(MissingSecretError, match="GROQ_API_KEY"):
        make("openai/m?server=groq", OPENAI_API_KEY="sk-1")
