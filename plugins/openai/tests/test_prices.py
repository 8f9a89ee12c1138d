"""What requests and refused answers cost, and that prices are no part of the cache key."""

import json

import pytest
from chat_server import ThreadedChatServer

from modelgauge import SUTOptions, TextPrompt, Usage, run_test
from modelgauge_openai.reply import Reply
from modelgauge_openai.response import Prices, costs_in, usage_of
from modelgauge_openai.sut import OpenAIChat


def test_expected_cost_bounds_a_request_whose_length_is_bounded():
    sut = OpenAIChat("s", "m", base_url="http://127.0.0.1:1/v1", input_price=2.0, output_price=10.0)
    bounded = sut.translate_text_prompt(
        TextPrompt("x" * 400, options=SUTOptions(max_tokens=50, num_completions=2))
    )
    assert sut.expected_cost(bounded) == pytest.approx((100 * 2.0 + 100 * 10.0) / 1e6)
    assert sut.expected_cost(sut.translate_text_prompt(TextPrompt("x"))) is None


def test_prices_change_no_cache_key():
    one = OpenAIChat(
        "openai/m?input_price=1&output_price=2",
        "m",
        base_url="http://127.0.0.1:1/v1",
        input_price=1.0,
        output_price=2.0,
    )
    other = OpenAIChat("openai/m", "m", base_url="http://127.0.0.1:1/v1")
    assert one.identity() == other.identity()


def test_an_answer_that_broke_off_is_paid_each_time(asking):
    with ThreadedChatServer() as server:
        sut = f"openai/m?base_url={server.base_url}&input_price=1000000&output_price=1000000"
        record = run_test(asking(TextPrompt("[[answer a b]][[finish error]]")), sut, max_retries=1)
    assert record.counts.sut_errors == 1
    assert (record.counts.sut_calls.paid, record.spent.attempts) == (2, 2)
    assert record.spent.cost_usd == record.spent.tokens == 2 * (4 + 2)


@pytest.mark.parametrize(
    ("body", "usage"),
    [
        (
            {"choices": "none", "usage": {"prompt_tokens": 3, "completion_tokens": 1}},
            Usage(input_tokens=3, output_tokens=1, cost_usd=4.0),
        ),
        ({"choices": 3}, None),
        ({"usage": "much"}, None),
        ([1], None),
        ("text", None),
    ],
)
def test_costs_are_read_of_what_is_no_completion(body, usage):
    assert usage_of(costs_in(Reply(200, {}, json.dumps(body).encode())), Prices(1e6, 1e6)) == usage


def test_a_header_says_what_an_answer_cost_that_is_no_completion():
    read = costs_in(Reply(500, {"x-litellm-response-cost": "0.5"}, b'{"choices": 3}'))
    assert usage_of(read, None).cost_usd == 0.5
    assert usage_of(costs_in(Reply(200, {}, b"<html>")), None) is None
