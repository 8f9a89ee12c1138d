"""How requests are fitted to servers that stream, or that refuse fields."""

import json

import pytest
from chat_server import Plan, ThreadedChatServer

from modelgauge import Retry, SUTOptions, TextPrompt, run_test
from modelgauge.cli.checking import check
from modelgauge_openai.errors import ChatError
from modelgauge_openai.reply import Reply
from modelgauge_openai.response import sut_response
from modelgauge_openai.sending import Sending
from modelgauge_openai.streaming import read_stream


def completions(record):
    [item] = record.test_item_records
    return [completion.completion for completion in item.interactions[0].response.completions]


def test_a_server_that_only_streams_answers_as_others_do(asking):
    options = SUTOptions(num_completions=2, top_logprobs=2)
    test = asking(TextPrompt("[[reasoning I see]][[answer Grüße, du!]]", options))
    answers = []
    for stream in (False, True):
        with ThreadedChatServer(Plan(only_streams=stream)) as server:
            record = run_test(test, f"openai/m?base_url={server.base_url}&stream={str(stream).lower()}")
        answers.append((completions(record), record.test_item_records[0].interactions[0].response.usage))
    assert answers[0] == answers[1]
    assert answers[1][0][0].text == "Grüße, du!"
    assert answers[1][0][0].reasoning == "I see"


def events(*chunks):
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


def cut(*chunks):
    return events(*chunks).removesuffix("data: [DONE]\n\n")


def piece(delta, finish=None, index=0):
    return {"choices": [{"index": index, "delta": delta, "finish_reason": finish}]}


def test_pieces_of_tool_calls_and_of_interleaved_choices():
    first = {"index": 0, "id": "c", "type": "function", "function": {"name": "weather", "arguments": ""}}
    stream = events(
        piece({"role": "assistant", "content": None, "tool_calls": [first]}),
        piece({"content": "b"}, index=1),
        piece({"tool_calls": [{"index": 0, "function": {"arguments": '{"city":'}}]}),
        piece({"tool_calls": [{"index": 0, "function": {"name": None, "arguments": ' "Paris"}'}}]}),
        piece({"tool_calls": [{"index": 1, "function": {"name": "time"}}]}, "tool_calls"),
        piece({}, "stop", index=1),
        {"choices": [], "usage": {"prompt_tokens": 3}},
    )
    response = read_stream(stream).response
    weather, time = response["choices"][0]["message"]["tool_calls"]
    assert weather["function"] == {"name": "weather", "arguments": '{"city": "Paris"}'}
    assert time["function"] == {"name": "time"}
    assert response["choices"][1] == {"message": {"content": "b"}, "finish_reason": "stop"}
    assert response["usage"] == {"prompt_tokens": 3}


def read(stream, *, asked=True, **headers):
    """Return the completion of a streamed reply."""
    sending = Sending(stream=asked, with_usage=True, may_rename=True, may_drop=False, completions="one_call")
    body = stream if isinstance(stream, bytes) else stream.encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    response = sending.response("https://llm.example", Reply(200, named, body))
    [only] = sut_response(response, None).completions
    return only


def test_error_within_stream_is_the_answer():
    with pytest.raises(ChatError, match="503 Service Unavailable: Overloaded"):
        read(events(piece({"content": "Par"}), {"error": {"message": "Overloaded", "code": 503}}))


@pytest.mark.parametrize(
    "stream",
    [
        "",
        'data: {"choices"',
        "data: [1]",
        "<html></html>",
        cut(piece({"content": "Par"})),
        cut({"choices": [3]}),
    ],
)
def test_stream_that_is_cut_is_retried(stream):
    with pytest.raises(ChatError, match="stream") as raised:
        read(stream)
    assert raised.value.verdict == Retry()


@pytest.mark.parametrize("chunk", [{"choices": [3]}, {"choices": [{"index": "x"}]}, [1], "data: {"])
def test_whole_stream_that_cannot_be_read_is_not_asked_for_again(chunk):
    with pytest.raises(ChatError, match="stream") as raised:
        read(events(piece({"content": "Par"}, "stop"), chunk))
    assert raised.value.verdict is None


@pytest.mark.parametrize("refused", ["max_tokens", "max_completion_tokens"])
def test_a_limit_of_tokens_that_is_refused_is_sent_by_its_other_name(refused, asking):
    prompts = [TextPrompt(f"prompt {number}", SUTOptions(max_tokens=5)) for number in range(20)]
    with ThreadedChatServer(Plan(refuses=(refused,))) as server:
        record = run_test(asking(*prompts), f"openai/m?base_url={server.base_url}", concurrency=1)
        assert record.counts.scored == 20
        assert server.stats().calls == 20 + (refused == "max_tokens")


def test_where_it_is_named_by_the_user_the_run_stops_and_names_the_option(asking):
    prompts = [TextPrompt(f"prompt {number}", SUTOptions(max_tokens=5)) for number in range(20)]
    with ThreadedChatServer(Plan(refuses=("max_tokens",))) as server:
        name = f"openai/m?base_url={server.base_url}&max_tokens_field=max_tokens"
        record = run_test(asking(*prompts), name, concurrency=1)
        assert server.stats().calls == 3
    assert "?max_tokens_field=max_completion_tokens" in record.test_item_exceptions[0].message


def test_structured_output_is_given_up_only_where_the_user_says_so(asking):
    schema = {"type": "object", "properties": {}, "additionalProperties": False, "required": []}
    test = asking(TextPrompt("x", SUTOptions(response_schema=schema)))
    with ThreadedChatServer(Plan(refuses=("response_format",))) as server:
        name = f"openai/m?base_url={server.base_url}"
        refused = run_test(test, name)
        assert "?structured_output=false" in refused.test_item_exceptions[0].message
        assert run_test(test, f"{name}&structured_output=auto").counts.scored == 1
        assert "response_format" not in server.stats().recent[-1]["body"]


def test_both_names_refused_end_in_an_error(asking):
    with ThreadedChatServer(Plan(refuses=("max_tokens", "max_completion_tokens"))) as server:
        record = run_test(
            asking(TextPrompt("x", SUTOptions(max_tokens=5))), f"openai/m?base_url={server.base_url}"
        )
        assert server.stats().calls == 2
    assert "max_tokens_field" in record.test_item_exceptions[0].message


FOUR = SUTOptions(num_completions=4)


@pytest.mark.parametrize("plan", [Plan(ignores=("n",)), Plan(refuses=("n",))])
def test_completions_are_asked_for_one_by_one_where_the_server_gives_one(plan, asking):
    with ThreadedChatServer(plan) as server:
        name = f"openai/m?base_url={server.base_url}"
        test = asking(*(TextPrompt(f"question {number}", FOUR) for number in range(3)))
        record = run_test(test, name, concurrency=1)
        assert record.counts.scored == 3
        assert [len(one.interactions[0].response.completions) for one in record.test_item_records] == [4] * 3
        assert (record.counts.sut_calls.paid, server.stats().completed) == (12, 12)
        usage = record.test_item_records[0].interactions[0].response.usage
        assert (usage.input_tokens, usage.output_tokens) == (8, 8)
        warm = run_test(test, name)
        again = run_test(test, f"{name}&completions=many_calls")
        assert (warm.counts.sut_calls.paid, again.counts.sut_calls.paid, server.stats().completed) == (
            0,
            0,
            12,
        )


def test_one_call_is_never_split(asking):
    for plan, message in (
        (Plan(ignores=("n",)), "completions=many_calls"),
        (Plan(refuses=("n",)), "'n' is not"),
    ):
        with ThreadedChatServer(plan) as server:
            name = f"openai/m?base_url={server.base_url}&completions=one_call"
            [failed] = run_test(asking(TextPrompt("Hi", FOUR)), name).test_item_exceptions
            assert message in failed.message
            assert server.stats().calls == 1


@pytest.mark.parametrize(
    ("plan", "missing", "calls"),
    [
        (Plan(models=("m",)), [], 6),
        (Plan(models=("m",), refuses=("logprobs", "seed"), ignores=("n",)), ["log-probabilities", "seed"], 7),
        (Plan(ignores=("logprobs",)), ["log-probabilities", "list of models"], 6),
    ],
)
def test_a_check_finds_out_what_the_server_has(plan, missing, calls):
    with ThreadedChatServer(plan) as server:
        done = check(f"openai/m?base_url={server.base_url}", SUTOptions())
        stats = server.stats()
    found = [finding.ability for finding in done.findings if not finding.is_there]
    assert found == [*missing[:1], "structured output", *missing[1:]]  # the server echoes the question
    assert (stats.calls, done.spent.attempts) == (calls, calls + 1)
