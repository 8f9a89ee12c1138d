"""Prompts and options as the protocol writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge import ChatMessage, ChatPrompt, ChatRole, SUTOptions, TextPrompt
from modelgauge.errors import InvalidOptionError
from modelgauge_openai.request import RequestMaker, seed_of

OPENAI = RequestMaker("gpt", "max_completion_tokens", takes_top_k=False)
CLOSED = {
    "type": "object",
    "properties": {"score": {"type": "integer", "enum": [0, 1]}},
    "required": ["score"],
    "additionalProperties": False,
}
OTHER = RequestMaker("llama", "max_tokens", takes_top_k=True, extra={"top_a": 0.5})


def test_what_is_not_asked_for_is_not_sent():
    assert OPENAI.of_text(TextPrompt("Hi")) == {
        "model": "gpt",
        "messages": [{"role": "user", "content": "Hi"}],
    }


def test_a_chat_keeps_its_roles():
    roles = (ChatRole.system, ChatRole.user, ChatRole.assistant, ChatRole.user)
    chat = ChatPrompt([ChatMessage(role=role, text=f"{role} speaks") for role in roles])
    messages = OPENAI.of_chat(chat)["messages"]
    assert messages == [{"role": role.value, "content": f"{role} speaks"} for role in roles]
    assert all(type(message["role"]) is str for message in messages)


def test_every_option_has_its_field():
    options = SUTOptions(
        num_completions=3,
        max_tokens=7,
        temperature=0.5,
        top_p=0.9,
        stop_sequences=("END", "\n"),
        presence_penalty=-0.5,
        frequency_penalty=1.5,
        random=42,
        top_logprobs=5,
        response_schema=CLOSED,
    )
    request = OPENAI.of_text(TextPrompt("Hi", options))
    del request["model"], request["messages"]
    assert request == {
        "n": 3,
        "max_completion_tokens": 7,
        "temperature": 0.5,
        "top_p": 0.9,
        "stop": ["END", "\n"],
        "presence_penalty": -0.5,
        "frequency_penalty": 1.5,
        "seed": 42,
        "logprobs": True,
        "top_logprobs": 5,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "response", "strict": True, "schema": CLOSED},
        },
    }


def test_zero_is_asked_for_too():
    options = SUTOptions(temperature=0, presence_penalty=0, random=0, top_logprobs=0)
    request = OPENAI.of_text(TextPrompt("Hi", options))
    assert (request["temperature"], request["presence_penalty"], request["seed"]) == (0, 0, 0)
    assert (request["logprobs"], request["top_logprobs"]) == (True, 0)


def test_other_servers_have_another_limit_of_tokens_and_top_k():
    request = OTHER.of_text(TextPrompt("Hi", SUTOptions(max_tokens=7, top_k_per_token=3)))
    assert (request["max_tokens"], request["top_k"], request["top_a"]) == (7, 3, 0.5)
    assert "max_completion_tokens" not in request


def test_openai_cannot_be_asked_for_top_k():
    with pytest.raises(InvalidOptionError, match=r"top_k_per_token=3.*base_url"):
        OPENAI.of_text(TextPrompt("Hi", SUTOptions(top_k_per_token=3)))


@pytest.mark.parametrize(
    ("lacks", "options", "option"),
    [
        ("has_logprobs", SUTOptions(top_logprobs=1), "logprobs=true"),
        ("has_structured_output", SUTOptions(response_schema=CLOSED), "structured_output=false"),
    ],
)
def test_what_a_model_is_said_to_lack_is_not_asked_for(lacks, options, option):
    poor = RequestMaker("m", "max_tokens", takes_top_k=True, **{lacks: False})
    with pytest.raises(InvalidOptionError, match=option):
        poor.of_text(TextPrompt("Hi", options))
    assert set(poor.of_text(TextPrompt("Hi"))) == {"model", "messages"}


@given(st.integers() | st.text())
def test_a_seed_is_an_int_and_always_the_same(random):
    seed = seed_of(random)
    assert isinstance(seed, int)
    assert seed == seed_of(random)
    assert seed == random if isinstance(random, int) else 0 <= seed < 2**31


def test_different_texts_are_different_seeds():
    assert len({seed_of(f"sample {number}") for number in range(100)}) == 100
