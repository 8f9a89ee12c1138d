"""Replies with quirks of real servers, in whole runs: the text decides, and everything paid counts."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge import Retry, SUTOptions, TextPrompt, run_test
from modelgauge_openai.answers import check_answer
from modelgauge_openai.errors import ChatError
from modelgauge_openai.protocol import ChatResponse
from modelgauge_openai.reply import Reply
from modelgauge_openai.response import sut_response
from modelgauge_openai.sending import Sending

pytestmark = pytest.mark.usefixtures("no_pauses")

PARIS = {"role": "assistant", "content": "Paris."}
USAGE = {"prompt_tokens": 7, "completion_tokens": 3}


def chat(message=PARIS, usage=USAGE, **choice):
    choice = {"index": 0, "message": message, "finish_reason": "stop", **choice}
    return {"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage}


def completion(record):
    [item] = record.test_item_records
    return item.interactions[0].response.completions[0].completion


# --- other fields than the text ---------------------------------------------------------------------------------------

ODD = ([], {}, [1], {"a": None}, "much", "", True, -1, 10**400, [[{}]])
COST = {"input_tokens_cost": 0.00001, "request_cost": 0.005, "total_cost": 0.00503}


@pytest.mark.parametrize(
    ("body", "left_out"),
    [
        *((chat(usage=odd), "usage") for odd in ODD if not isinstance(odd, Mapping)),
        *((chat(usage={**USAGE, "cost": odd}), "usage.cost") for odd in ODD),
        *((chat(usage={**USAGE, "completion_tokens": odd}), "usage.completion_tokens") for odd in ODD),
        (chat(usage={**USAGE, "completion_tokens_details": []}), "usage.completion_tokens_details"),
        *((chat({**PARIS, "tool_calls": odd}), "tool_calls") for odd in ODD if odd != []),
        (chat({**PARIS, "tool_calls": [{"function": "f"}]}), "tool_calls"),
        *((chat(finish_reason=odd), "finish_reason") for odd in ODD if odd not in ("", "much")),
        *((chat(logprobs=odd), "logprobs") for odd in ODD if not isinstance(odd, Mapping)),
        (chat(logprobs={"content": {}}), "logprobs"),
        (chat(logprobs={"content": [{"top_logprobs": [{"token": "P"}, {"logprob": 1}]}]}), "logprobs"),
        (chat({**PARIS, "refusal": {"why": 1}}), "refusal"),
    ],
)
def test_field_that_is_not_understood_costs_no_answer(body, left_out, ask):
    record, requests = ask(body)
    assert (completion(record).text, completion(record).left_out, requests) == ("Paris.", (left_out,), 1)
    assert record.notes == (f"Fields of answers that were not understood are left out: {left_out} (1).",)


@pytest.mark.parametrize("field", ["logprobs", "refusal", "tool_calls", "finish_reason"])
def test_tokens_and_dollars_of_answer_with_odd_field_count(field, ask):
    body = chat(usage={**USAGE, "cost": COST}, **({} if field in PARIS else {field: [1]}))
    record, _ = ask(body)
    assert (record.spent.tokens, record.spent.cost_usd) == (10, 0.00503)


def test_log_probabilities_that_were_asked_for_and_are_not_understood_are_missing(ask):
    record, requests = ask(chat(logprobs=[]), prompt=TextPrompt("Q?", SUTOptions(top_logprobs=2)))
    [failed] = record.test_item_exceptions
    assert "without the log-probabilities" in failed.message
    assert (requests, record.spent.tokens) == (1, 10)


def test_answers_with_unknown_fields_are_read_from_the_cache_as_they_came(asking, serve):
    with serve(chat({**PARIS, "tool_calls": {}}, usage=[])) as (url, asked):
        first, second = (run_test(asking("Q?"), f"openai/m?base_url={url}") for _ in range(2))
    assert len(asked) == 1
    assert completion(second) == completion(first)
    assert completion(second).left_out == ("tool_calls", "usage")
    assert second.notes == first.notes


@pytest.mark.parametrize(
    "body",
    [
        {"choices": [], "usage": {**USAGE, "cost": COST}},
        {"choices": {}, "usage": {**USAGE, "cost": COST}},
        {"error": {"message": "No", "code": 400}, "usage": {**USAGE, "cost": COST}},
        chat({"content": {"form": 1}}, usage={**USAGE, "cost": COST}),
        f"data: {json.dumps(chat(usage={**USAGE, 'cost': COST}) | {'choices': []})}\n\n".encode(),
    ],
)
@pytest.mark.parametrize("status", [200, 400])
def test_tokens_and_dollars_of_refused_answer_count(body, status, ask):
    record, _ = ask(body, status, max_retries=0)
    assert record.counts.sut_errors == 1
    assert (record.spent.tokens, record.spent.cost_usd) == (10, 0.00503)


@pytest.mark.parametrize("status", [201, 203, 246])  # 246: Portkey's, where a guardrail let the answer pass
def test_answer_with_another_status_of_success_is_read(status, ask):
    assert completion(ask(chat(), status)[0]).text == "Paris."


# --- content ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "output_text", "text": "Paris."}],
        [{"type": "markdown", "markdown": "Paris."}],
        [{"type": "text", "content": "Paris."}],
        [{"type": "text", "text": {"value": "Paris.", "annotations": []}}],
        [{"type": "message", "content": [{"type": "output_text", "text": "Paris."}]}],
        [{"text": "Paris."}],
        [{"kind": "text", "value": "Paris."}],
        ["Par", "is."],
        [["Paris."]],
        {"type": "text", "text": "Paris."},
        {"role": "model", "parts": [{"text": "Paris."}]},
        [{"type": "reasoning", "text": "Hm."}, {"type": "text", "text": "Paris."}],
        [{"text": "Hm.", "thought": True}, {"text": "Paris."}],
        [None, {"type": "text", "text": None}, "Paris."],
    ],
)
def test_text_is_read_under_any_name(content, ask):
    record, requests = ask(chat({"content": content}))
    assert (completion(record).text, completion(record).left_out, requests) == ("Paris.", (), 1)


@pytest.mark.parametrize(
    "message", ["Paris.", ["Paris."], {"text": "Paris."}, {"content": None, "parts": [{"text": "Paris."}]}]
)
def test_message_without_content_is_read_by_other_names(message, ask):
    assert completion(ask(chat(message))[0]).text == "Paris."


@pytest.mark.parametrize(
    "thought", [{"type": "thinking", "thinking": "Hm."}, {"text": "Hm.", "thought": True}]
)
def test_thoughts_among_parts_are_no_text(thought, ask):
    done = completion(ask(chat({"content": [thought, "Paris."]}))[0])
    assert (done.text, done.reasoning) == ("Paris.", "Hm.")


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
        {"type": "citation", "text": "Paris, capital of France"},
        {"type": "reference", "reference_ids": [1]},
    ],
)
def test_part_that_is_no_text_is_left_out_beside_texts(part, ask):
    done = completion(ask(chat({"content": ["Paris.", part]}))[0])
    assert (done.text, done.left_out) == ("Paris.", ("content",))


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "image", "image": "AA=="}],
        [{"type": "file", "content": "AA=="}],
        [{"type": "hologram", "payload": {"text": 1}}],
        [{"type": "tool_use", "name": "f", "input": {"text": "x"}}],
        {},
        [{}],
        {"answer": "Paris."},
        42,
        True,
        [3],
    ],
)
def test_content_that_is_not_understood_is_no_empty_answer(content, asking, serve):
    with serve(chat({"content": content})) as (url, asked):
        first, second = (run_test(asking("Q?"), f"openai/m?base_url={url}") for _ in range(2))
    [failed] = second.test_item_exceptions
    assert failed.error_type == "InvalidResponseError"
    assert json.dumps(content, separators=(",", ":"))[1:-1].strip("[]") in failed.message
    assert len(asked) == 2  # neither retried nor kept
    assert (first.counts.empty, first.spent.tokens) == (0, 10)


NOTHING = {"prompt_tokens": 5, "completion_tokens": 0}


@pytest.mark.parametrize("content", ["", None, [], [{"type": "text", "text": ""}]])
@pytest.mark.parametrize("reason", ["stop", "", None])
def test_empty_text_without_a_token_is_retried_and_never_kept(content, reason, asking, serve):
    with serve(chat({"content": content, "reasoning_content": ""}, NOTHING, finish_reason=reason)) as (
        url,
        asked,
    ):
        first, second = (run_test(asking("Q?"), f"openai/m?base_url={url}") for _ in range(2))
    [failed] = second.test_item_exceptions
    assert failed.error_type == "EmptyAnswerError"
    assert len(asked) == 10
    assert (first.counts.empty, first.spent.tokens) == (1, 5 * 5)


@pytest.mark.parametrize(
    ("message", "usage", "reason", "empty"),
    [
        ({"content": ""}, USAGE, "stop", 1),
        ({"content": ""}, None, "stop", 1),
        ({"content": ""}, NOTHING, "length", 1),
        ({"content": "", "reasoning": "Hm."}, NOTHING, "stop", 1),
        ({"content": "", "refusal": "No."}, NOTHING, "stop", 0),
        ({"content": " "}, NOTHING, "stop", 0),
        ({"content": None, "tool_calls": [{"function": {"name": "f"}}]}, NOTHING, "stop", 0),
    ],
)
def test_empty_text_that_took_tokens_or_was_meant_is_an_answer(message, usage, reason, empty, ask):
    record, requests = ask(chat(message, usage, finish_reason=reason))
    assert (record.counts.scored, record.counts.empty, requests) == (1, empty, 1)


# --- bytes ------------------------------------------------------------------------------------------------------------


def text_of(record):
    return completion(record).text


GRUESSE = json.dumps(chat({"content": "Grüße aus München"}), ensure_ascii=False)


@pytest.mark.parametrize(
    ("body", "charset"),
    [
        (GRUESSE.encode("utf-8-sig"), ""),
        (GRUESSE.encode("utf-8-sig"), "utf-8"),
        (GRUESSE.encode("utf-16"), ""),
        (GRUESSE.encode("utf-16"), "utf-16"),
        (GRUESSE.encode("utf-16-le"), "UTF-16"),
        (GRUESSE.encode("utf-16-be"), '"utf-16"'),
        (GRUESSE.encode("utf-32"), ""),
        (GRUESSE.encode("latin-1"), "ISO-8859-1"),
        (GRUESSE.encode("cp1252"), "windows-1252"),
        (GRUESSE.encode(), "x-unknown"),
        (GRUESSE.encode(), "us-ascii"),
        (GRUESSE.encode(), "hex"),
        (b"\n\n " + GRUESSE.encode() + b"\n", ""),
        (f"data: {GRUESSE}\n\n".encode("utf-8-sig"), ""),
        (f"data: {GRUESSE}\n\n".encode("latin-1"), "latin-1"),
    ],
)
def test_body_is_decoded_by_its_mark_or_charset(body, charset, ask):
    record, requests = ask(
        body, content_type=f"application/json; Charset={charset}" if charset else "application/json"
    )
    assert (text_of(record), requests) == ("Grüße aus München", 1)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (rb"a\ud800b", "a\ufffdb"),
        (rb"a\udc00\ud800", "a\ufffd\ufffd"),
        (rb"\ud83d\ude00 \\ud83d", "\N{GRINNING FACE} \\ud83d"),
        (b"a\xed\xa0\x80b", "a\ufffdb"),
        (b"\xed\xa0\xbd\xed\xb8\x80", "\N{GRINNING FACE}"),
        (b"a\xffb", "a\ufffdb"),
        (b"a\tb\x0bc\nd\re", "a\tb\x0bc\nd\re"),
    ],
)
def test_characters_that_json_lacks_cost_no_answer(content, text, ask):
    record, requests = ask(json.dumps(chat({"content": "?"})).encode().replace(b'"?"', b'"' + content + b'"'))
    assert (text_of(record), requests) == (text, 1)


# --- further attempts -------------------------------------------------------------------------------------------------

WHOLE_BUT_WRONG = (
    b'{"choices": [], "usage": {},}',
    b"{'choices': []}",
    json.dumps(chat()).encode() + b" and more",
    b'{"choices": {"text": "no list"}}',
    b'{"model": "m", "message": {"role": "assistant", "content": "Paris."}, "done": true}',
    b'{"type": "message", "content": [{"type": "text", "text": "Paris."}]}',
    b"[1]",
    b"null",
    b'data: {"choices": [3]}\n\ndata: [DONE]\n\n',
)


@pytest.mark.parametrize("body", WHOLE_BUT_WRONG)
def test_whole_reply_of_another_form_is_asked_for_once(body, ask):
    record, requests = ask(body)
    assert (record.counts.sut_errors, requests) == (1, 1)


@pytest.mark.parametrize(
    "body", [b"", b"<html>", json.dumps(chat()).encode()[:-9], b'{"choices": []}', b"{}"]
)
def test_reply_that_is_cut_off_or_none_is_asked_for_again(body, ask):
    assert ask(body, max_retries=2)[1] == 3


@pytest.mark.parametrize(
    ("body", "requests", "words"),
    [
        ({"error": {"message": "Bad prompt", "code": 400}}, 1, "400 Bad Request: Bad prompt"),
        ({"object": "error", "message": "Too long", "type": "BadRequestError", "code": 400}, 1, "Too long"),
        ({"object": "error", "message": "Worker died", "code": 500}, 3, "Worker died"),
        ({"detail": "Engine is dead"}, 3, "Engine is dead"),
        ({"choices": None, "error": "Out of order"}, 3, "Out of order"),
        ({"error": "Too many tokens", "error_type": "validation"}, 1, "Too many tokens"),
        (b'data: {"error": "Too many tokens", "error_type": "validation"}\n\n', 1, "Too many tokens"),
        (b'data: {"error": "Out of memory", "error_type": "generation"}\n\n', 3, "Out of memory"),
    ],
)
def test_error_with_status_200_says_whether_to_ask_again(body, requests, words, ask):
    record, asked = ask(body, max_retries=2)
    [failed] = record.test_item_exceptions
    assert (asked, words in failed.message) == (requests, True)


@pytest.mark.parametrize(("status", "requests"), [(424, 3), (422, 1), (500, 3)])
def test_424_is_retried_as_5xx_are(status, requests, ask):
    body = {"error": "Request failed during generation: CUDA error", "error_type": "generation"}
    record, asked = ask(body, status, max_retries=2)
    assert asked == requests
    assert "CUDA error" in record.test_item_exceptions[0].message


# --- laws -------------------------------------------------------------------------------------------------------------

NAMES = (
    "usage",
    "cost",
    "total_cost",
    "completion_tokens",
    "function",
    "name",
    "content",
    "token",
    "top_logprobs",
    "x",
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
JSON = st.recursive(
    LEAVES,
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.sampled_from(NAMES), parts, max_size=3),
    max_leaves=8,
)
SENDING = Sending(stream=False, with_usage=True, may_rename=True, may_drop=False, completions="one_call")


def read(body):
    return SENDING.response("https://llm.example", Reply(200, {}, body))


@given(JSON, JSON, JSON)
def test_no_value_of_another_field_costs_the_text(of_response, of_choice, of_message):
    body = chat(
        {
            **PARIS,
            **dict.fromkeys(("refusal", "reasoning", "reasoning_details", "tool_calls", "audio"), of_message),
        },
        of_response,
        finish_reason="stop" if of_choice == "error" else of_choice,
        logprobs=of_choice,
        index=of_choice,
    )
    response = read(json.dumps({**body, "timings": of_response, "response_headers": of_response}).encode())
    check_answer("https://llm.example", {"model": "m"}, response)
    assert sut_response(response, None).completions[0].text == "Paris."
    assert ChatResponse.model_validate_json(response.model_dump_json()) == response


@given(st.integers(0, len(GRUESSE) - 1), st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
def test_every_beginning_of_a_reply_is_retried(length, charset):
    with pytest.raises(ChatError) as raised:
        read(GRUESSE[:length].encode(charset))
    assert raised.value.verdict == Retry()
