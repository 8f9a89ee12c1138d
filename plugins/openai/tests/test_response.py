"""Responses of the protocol, in the forms that servers use, as ours."""

import json

import pytest

from modelgauge import TopTokens, Usage
from modelgauge_openai.protocol import ChatResponse, received
from modelgauge_openai.response import Prices, sut_response


def translated(message, prices=None, usage=None, **choice):
    choice.setdefault("finish_reason", "stop")
    body = {"choices": [{"message": {"role": "assistant", **message}, **choice}], "usage": usage}
    received = ChatResponse.model_validate_json(json.dumps(body))
    assert ChatResponse.model_validate_json(received.model_dump_json()) == received  # as the cache keeps it
    return sut_response(received, prices)


def completion(message, **choice):
    [only] = translated(message, **choice).completions
    return only


def test_text_and_why_it_ended():
    done = completion({"content": "Paris"}, finish_reason="stop")
    assert (done.text, done.finish_reason, done.reasoning, done.top_logprobs) == ("Paris", "stop", None, None)


@pytest.mark.parametrize("message", [{"content": None}, {"content": ""}, {}, {"content": []}])
def test_no_content_is_an_empty_text(message):
    assert completion(message).text == ""


def test_the_texts_among_parts():
    parts = [
        {"type": "thinking", "thinking": []},
        {"type": "text", "text": "Par"},
        {"type": "text", "text": "is"},
        {"type": "text"},
        "!",
    ]
    done = completion({"content": parts})
    assert (done.text, done.left_out) == ("Paris!", ("content",))


def test_a_refusal_is_the_answer():
    refused = completion({"content": None, "refusal": "I will not."})
    assert refused.text == "I will not."
    assert refused.metadata == {"refusal": "I will not."}
    assert completion({"content": "Yes", "refusal": None}).metadata == {}


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_beside_the_text(name):
    done = completion({"content": "Paris", name: "France…"})
    assert (done.text, done.reasoning, done.truncated_reasoning) == ("Paris", "France…", False)


@pytest.mark.parametrize("nothing", ["", None, {"tokens": 3}])
def test_where_there_is_none_the_text_may_hold_it(nothing):
    done = completion({"content": "<think>x</think>Paris", "reasoning": nothing})
    assert (done.text, done.reasoning) == ("<think>x</think>Paris", None)


@pytest.mark.parametrize(
    ("message", "reasoning"),
    [
        (
            {
                "content": "Paris",
                "reasoning_details": [
                    {"type": "reasoning.summary", "summary": "short"},
                    {"type": "reasoning.text", "text": "France"},
                    {"type": "reasoning.text", "text": "Capital"},
                ],
            },
            "France\n\nCapital",
        ),
        ({"content": "Paris", "reasoning_details": [{"type": "reasoning.summary", "summary": "S"}]}, "S"),
        ({"content": "Paris", "reasoning_details": [{"type": "reasoning.encrypted", "data": "e"}]}, None),
        (
            {
                "content": [
                    {
                        "type": "thinking",
                        "thinking": [{"type": "text", "text": "Fra"}, {"type": "text", "text": "nce"}],
                    },
                    {"type": "text", "text": "Paris"},
                ]
            },
            "France",
        ),
    ],
)
def test_reasoning_in_parts(message, reasoning):
    done = completion(message)
    assert (done.text, done.reasoning) == ("Paris", reasoning)


def test_a_message_that_a_content_filter_withheld():
    body = {"choices": [{"index": 0, "message": None, "finish_reason": "content_filter"}]}
    [done] = sut_response(ChatResponse.model_validate(body), None).completions
    assert (done.text, done.finish_reason) == ("", "content_filter")


def test_reasoning_that_was_cut_off():
    done = completion({"content": None, "reasoning": "First, "}, finish_reason="length")
    assert (done.text, done.truncated_reasoning) == ("", True)
    assert not completion({"content": "Par", "reasoning": "Fr"}, finish_reason="length").truncated_reasoning


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"city": "Paris"}', {"city": "Paris"}),
        ({"city": "Paris"}, {"city": "Paris"}),
        ("{}", {}),
        ("", {}),
        (None, None),
        ('{"city": ', {"arguments": '{"city": '}),
        ('{"city": NaN}', {"arguments": '{"city": NaN}'}),
        ("[1]", {"arguments": [1]}),
    ],
)
def test_tool_calls(arguments, expected):
    call = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": arguments}}
    [made] = completion({"content": None, "tool_calls": [call]}, finish_reason="tool_calls").tool_calls
    assert (made.name, made.input_parameters) == ("weather", expected)


def test_a_tool_without_a_name_and_a_custom_tool():
    calls = [
        {"function": {"name": None, "arguments": "{}"}},
        {"type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}},
        {"type": "unknown"},
    ]
    made = completion({"content": None, "tool_calls": calls}).tool_calls
    assert [(one.name, one.input_parameters) for one in made] == [
        ("", {}),
        ("sql", {"input": "SELECT 1"}),
        ("", None),
    ]


def test_log_probabilities_most_likely_first():
    top = [{"token": "b", "logprob": -2.0, "bytes": [98]}, {"token": "a", "logprob": -0.1, "bytes": None}]
    tokens = [
        {"token": "a", "logprob": -0.1, "top_logprobs": top},
        {"token": "!", "logprob": 0.0, "top_logprobs": []},
    ]
    positions = completion({"content": "a!"}, logprobs={"content": tokens, "refusal": None}).top_logprobs
    assert [(token.token, token.logprob) for token in positions[0].top_tokens] == [("a", -0.1), ("b", -2.0)]
    assert positions[1] == TopTokens(top_tokens=())


def test_a_token_without_any_chance():
    body = (
        '{"choices": [{"message": {"content": "a"}, "logprobs": {"content": [{"token": "a", "logprob": 0,'
        ' "top_logprobs": [{"token": "z", "logprob": -Infinity}]}]}}]}'
    )
    [position] = sut_response(received(body), None).completions[0].top_logprobs
    assert position.top_tokens[0].logprob == -9999.0


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1.5", '"NaN"'])
def test_what_is_received_comes_back_from_its_json(number):
    function = f'{{"name": "f", "arguments": {{"n": [{number}]}}}}'
    body = (
        f'{{"choices": [{{"message": {{"tool_calls": [{{"function": {function}}}]}}}}], "other": {number}}}'
    )
    response = received(body)
    assert ChatResponse.model_validate_json(response.model_dump_json()) == response
    assert response.choices[0].message.tool_calls[0]["function"]["arguments"] == {"n": [response.other]}


USAGE = {
    "prompt_tokens": 1000,
    "completion_tokens": 200,
    "completion_tokens_details": {"reasoning_tokens": 150},
    "prompt_tokens_details": {"cached_tokens": 0},
}


def test_usage_and_what_it_costs():
    plain = translated({"content": "x"}, usage=USAGE).usage
    assert plain == Usage(input_tokens=1000, output_tokens=200, reasoning_tokens=150)
    priced = translated({"content": "x"}, usage=USAGE, prices=Prices(input=2.5, output=10.0)).usage
    assert priced.cost_usd == pytest.approx(1000 * 2.5e-6 + 200 * 10e-6)


def test_usage_that_is_not_counted():
    assert translated({"content": "x"}, usage=None).usage is None
    partial = translated({"content": "x"}, usage={"prompt_tokens": 5}, prices=Prices(1, 1)).usage
    assert partial == Usage(input_tokens=5)
    wrong = {"prompt_tokens": -1, "completion_tokens": 10**30}
    assert translated({"content": "x"}, usage=wrong, prices=Prices(1, 1)).usage == Usage()


def test_usage_in_fractions():
    fractions = {
        "prompt_tokens": 5.0,
        "completion_tokens": 2.4,
        "completion_tokens_details": {"reasoning_tokens": 1.0},
    }
    assert translated({"content": "x"}, usage=fractions).usage == Usage(
        input_tokens=5, output_tokens=3, reasoning_tokens=1
    )
    endless = received(
        '{"choices": [{"message": {}}], "usage": {"prompt_tokens": 1e999, "completion_tokens": 1}}'
    )
    assert sut_response(endless, None).usage == Usage(output_tokens=1)
    assert received(endless.model_dump_json()) == endless


@pytest.mark.parametrize(
    ("usage", "headers", "dollars"),
    [
        ({"prompt_tokens": 1, "cost": 0.00014}, {}, 0.00014),
        ({"prompt_tokens": 1}, {"x-litellm-response-cost": "0.0002"}, 0.0002),
        (None, {"x-litellm-response-cost": "2e-05"}, 2e-05),
        ({"prompt_tokens": 1, "cost": 0.5}, {"x-litellm-response-cost": "0.7"}, 0.5),
        ({"prompt_tokens": 1, "cost": -1}, {"x-litellm-response-cost": "None"}, None),
    ],
)
def test_costs_that_servers_report(usage, headers, dollars):
    body = json.dumps({"choices": [{"message": {"content": "x"}}], "usage": usage})
    response = received(body, headers)
    assert sut_response(response, None).usage.cost_usd == dollars
    assert received(response.model_dump_json()) == response  # the cache keeps what it cost


def test_prices_of_the_user_come_before_reported_costs():
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.5}
    assert translated({"content": "x"}, usage=usage, prices=Prices(1e6, 1e6)).usage.cost_usd == 2.0


@pytest.mark.parametrize(("counted", "tokens"), [(7, None), (19, 19)])
def test_usage_of_one_of_several_completions_is_none_of_all(counted, tokens):
    choice = {"message": {"content": "x"}, "finish_reason": "stop"}
    body = {
        "choices": [choice, choice],
        "usage": {"prompt_tokens": 3, "completion_tokens": counted},
        "timings": {"predicted_n": 7},
    }
    usage = sut_response(ChatResponse.model_validate(body), None).usage
    assert (usage.input_tokens, usage.output_tokens) == (3, tokens)


def test_what_the_server_did_not_send_is_not_written():
    message = {"content": "x", "tool_calls": [{"function": {"name": "f"}}]}
    body = {"choices": [{"message": message}], "usage": {"prompt_tokens": 1}}
    assert json.loads(received(json.dumps(body)).model_dump_json()) == body


def test_what_it_does_not_know_is_kept():
    message = {"content": "x", "audio": {"id": "a"}}
    body = json.dumps({"id": "c1", "choices": [{"message": message, "index": 0}], "took": 3})
    kept = json.loads(ChatResponse.model_validate_json(body).model_dump_json())
    assert (kept["id"], kept["took"], kept["choices"][0]["message"]["audio"]) == ("c1", 3, {"id": "a"})
