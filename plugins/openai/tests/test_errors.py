"""What is said of an answer that is none, and whether another attempt is worth it."""

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict
from pydantic import ValidationError

from modelgauge import Fatal, Retry
from modelgauge.errors import MissingLogProbabilitiesError
from modelgauge_openai.answers import check_answer, unreadable
from modelgauge_openai.errors import ChatError, refused
from modelgauge_openai.protocol import ChatResponse, model_names
from modelgauge_openai.reply import Reply
from modelgauge_openai.waiting import wait_of

URL = "https://api.openai.com/v1/chat/completions"


def error_of(status, body=b"", **headers):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    reply = Reply(
        status, CIMultiDict({name.replace("_", "-"): text for name, text in headers.items()}), content
    )
    return refused(URL, reply.status, reply.headers, reply.text)


def openai_error(message="No", code=None, kind="error"):
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


@pytest.mark.parametrize("status", [408, 409, 425, 500, 502, 503, 504, 520, 529])
def test_what_may_pass_is_tried_again(status):
    assert error_of(status).verdict == Retry()
    assert error_of(status, Retry_After="3").verdict == Retry(after=3.0)


def test_too_many_requests():
    assert error_of(429).verdict == Retry(rate_limited=True)
    assert error_of(429, Retry_After="1.5").verdict == Retry(after=1.5, rate_limited=True)


@pytest.mark.parametrize("status", [301, 307, 401, 402, 403, 404, 405])
def test_what_no_call_can_mend(status):
    assert error_of(status).verdict == Fatal()


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (429, "insufficient_quota"),
        (400, "model_not_found"),
        (400, "invalid_api_key"),
        (429, "billing_not_active"),
    ],
)
def test_nor_what_its_code_says(status, code):
    assert error_of(status, openai_error(code=code)).verdict == Fatal()


@pytest.mark.parametrize("status", [400, 413, 422, 501])
def test_what_only_this_request_has_wrong(status):
    assert error_of(status, openai_error(code="context_length_exceeded")).verdict is None


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (openai_error("Too long.", "context_length_exceeded"), "Too long (context_length_exceeded)"),
        (
            {"error": {"message": "Too long", "type": "BadRequestError", "code": 400}},
            "Too long (BadRequestError)",
        ),
        ({"object": "error", "message": "Too long", "type": "BadRequestError"}, "Too long (BadRequestError)"),
        ({"error": "Too long"}, "Too long"),
        ({"detail": "Too long"}, "Too long"),
        (
            {"detail": [{"loc": ["body", "n"], "msg": "Too long"}]},
            '[{"loc": ["body", "n"], "msg": "Too long"}]',
        ),
        (b"Too\n  long.\n", "Too long"),
        ([{"error": {"message": "Too long", "code": 400}}], "Too long"),
        ({"error": [{"message": "Too long", "code": "e1"}]}, "Too long (e1)"),
        ({"error": {"message": {"error": "Too long"}, "type": "None", "code": "400"}}, "Too long"),
        (b"", "nothing more"),
        (b"[]", "[]"),
        (b"\xff\xff", "\ufffd\ufffd"),
    ],
)
def test_the_words_of_the_server_in_their_many_forms(body, said):
    assert str(error_of(400, body)).startswith(f"{URL} answered 400 Bad Request: {said}. ")


def test_the_request_is_named_and_long_answers_are_cut():
    message = str(error_of(500, b"x" * 100_000, x_request_id="req_7"))
    assert "(request req_7)" in message
    assert len(message) < 1000


def test_each_says_what_to_do():
    assert "OPENAI_API_KEY" in error_of(401).fix
    assert "name of the model" in error_of(404, openai_error(code="model_not_found")).fix
    assert "billing" in error_of(429, openai_error(code="insufficient_quota")).fix
    assert error_of(308, Location="https://else.example/v1").fix.endswith("https://else.example/v1")


@pytest.mark.parametrize(
    ("status", "message", "option"),
    [
        (
            400,
            "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
            "s",
        ),
        (400, "This response_format type is unavailable now", "s"),
        (400, "This model does not support response format `json_schema`.", "s"),
        (422, "body.response_format: extra fields not permitted", "s"),
        (403, "You are not allowed to request logprobs from this model", "l"),
        (400, "openai does not support parameters: ['logprobs'], for model=o3-mini", "l"),
    ],
)
def test_what_not_every_model_has_is_switched_off_in_its_name(status, message, option):
    fix = error_of(status, openai_error(message)).fix
    assert {"s": "?structured_output=false", "l": "?logprobs=false"}[option] in fix


def test_such_words_are_no_reason_where_something_else_is_wrong():
    assert "logprobs" not in error_of(500, openai_error("logprobs worker died")).fix
    assert (
        "OPENAI_API_KEY" in error_of(401, openai_error("no response_format for you", "invalid_api_key")).fix
    )


def test_an_error_survives_pickling():
    again = pickle.loads(pickle.dumps(error_of(500)))
    assert isinstance(again, ChatError)
    assert str(again) == str(error_of(500))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "2"}, 2.0),
        ({"Retry-After": " 0.25 "}, 0.25),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "soon"}, None),
        ({"retry-after-ms": "250", "Retry-After": "1"}, 0.25),
        ({"retry-after-ms": "x", "Retry-After": "1"}, 1.0),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:30 GMT", "Date": "Wed, 21 Oct 2015 07:28:00 GMT"}, 30.0),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:30 GMT", "Date": "Wed, 21 Oct 2015 07:29:00 GMT"}, 0.0),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:30 GMT"}, 0.0),
    ],
)
def test_how_long_to_wait(headers, seconds):
    assert wait_of(CIMultiDict(headers)) == seconds


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6m0s"}, 1.0),
        (
            {
                "x-ratelimit-remaining-requests": "9",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-reset-tokens": "1h6m0.5s",
            },
            3960.5,
        ),
        ({"x-ratelimit-reset-requests": "120ms"}, 0.12),
        ({"x-ratelimit-reset-tokens": "59.7"}, 59.7),
        ({"X-RateLimit-Reset": "1445412510000"}, 30.0),
        ({"x-ratelimit-reset": "1445412510"}, 30.0),
        (
            {
                "anthropic-ratelimit-tokens-remaining": "0",
                "anthropic-ratelimit-tokens-reset": "2015-10-21T07:28:40Z",
                "anthropic-ratelimit-requests-reset": "2015-10-21T07:28:05Z",
            },
            40.0,
        ),
        ({"x-ratelimit-reset-requests": "soon"}, None),
        ({"x-ratelimit-reset-requests": ""}, None),
        ({"Retry-After": "2", "x-ratelimit-reset-requests": "9s"}, 2.0),
    ],
)
def test_when_limits_are_reset(headers, seconds, monkeypatch):
    monkeypatch.setattr("time.time", lambda: 1_445_412_480.0)
    assert wait_of(CIMultiDict(headers)) == pytest.approx(seconds)


@given(
    st.dictionaries(st.sampled_from(["x-ratelimit-reset-tokens", "anthropic-ratelimit-x-reset"]), st.text())
)
def test_no_reset_is_too_odd(headers):
    seconds = wait_of(CIMultiDict(headers), [{"@type": "google.rpc.RetryInfo", "retryDelay": 3}, None])
    assert seconds is not None
    assert seconds >= 0


def test_a_date_without_a_clock_of_the_server(monkeypatch):
    monkeypatch.setattr("time.time", lambda: 1_445_412_480.0)
    assert wait_of(CIMultiDict({"Retry-After": "Wed, 21 Oct 2015 07:28:30 GMT"})) == 30.0


@given(st.text())
def test_no_header_is_too_odd(text):
    seconds = wait_of(CIMultiDict({"Retry-After": text}))
    assert seconds is None or seconds >= 0


@given(st.binary(max_size=200), st.integers(300, 599))
def test_no_body_is_too_odd(body, status):
    assert error_of(status, body).problem.startswith(f"{URL} answered {status}")


def unreadable_error(body):
    with pytest.raises(ValidationError) as raised:
        ChatResponse.model_validate_json(body)
    return unreadable(URL, raised.value, body.decode())


def test_a_body_that_is_cut_off_may_come_whole_next_time():
    error = unreadable_error(b'{"choices": [{"message"')
    assert error.verdict == Retry()
    assert '{"choices": [{"message"' in str(error)


def test_a_list_of_errors_with_status_200():
    body = b'[{"error": {"code": 429, "message": "Resource exhausted", "status": "RESOURCE_EXHAUSTED"}}]'
    error = unreadable_error(body)
    assert error.verdict == Retry(rate_limited=True)
    assert "Resource exhausted" in str(error)


def test_json_of_another_form_comes_again():
    error = unreadable_error(b'{"choices": {"text": "no list"}}')
    assert error.verdict is None
    assert "choices" in str(error)
    with pytest.raises(ChatError, match="completions, not chat") as raised:
        checked({"choices": [{"text": "completions, not chat"}]})
    assert raised.value.verdict is None


def checked(body, **request):
    check_answer(URL, {"model": "m", **request}, ChatResponse.model_validate(body))


def choice(**fields):
    return {"message": {"content": "x"}, **fields}


def test_an_answer_that_holds_what_was_asked_for_passes():
    checked({"choices": [choice()]})
    checked({"choices": [choice(), choice()]}, n=2)
    checked({"choices": [choice(logprobs={"content": []})]}, logprobs=True)
    checked({"choices": [{"message": {"refusal": "No"}}]}, logprobs=True)
    checked({"choices": [{"message": None, "finish_reason": "content_filter"}]}, logprobs=True)


@pytest.mark.parametrize(
    ("body", "request_fields", "verdict"),
    [
        ({"choices": []}, {}, Retry()),
        ({}, {}, Retry()),
        ({"choices": [choice(finish_reason="error")]}, {}, Retry()),
        ({"error": {"message": "Overloaded", "code": 503}}, {}, Retry()),
        ({"error": {"message": "Slow down", "code": 429}}, {}, Retry(rate_limited=True)),
        ({"error": {"message": "No such model", "code": "model_not_found"}}, {}, Fatal()),
        ({"error": {"message": "Bad", "code": 400}}, {}, None),
        ({"error": "Out of order"}, {}, Retry()),
        ({"choices": None, "error": {"message": "Slow down", "code": "429"}}, {}, Retry(rate_limited=True)),
        ({"error": {"message": "Slow down", "type": "rate_limit_exceeded"}}, {}, Retry(rate_limited=True)),
        ({"error": [{"message": "Overloaded", "code": 503}]}, {}, Retry()),
        ({"choices": None}, {}, Retry()),
        ({"choices": [{"message": None, "finish_reason": "stop"}]}, {}, Retry()),
        (
            {"choices": [{"message": {"content": ""}, "error": {"message": "Upstream", "code": 429}}]},
            {},
            Retry(rate_limited=True),
        ),
        ({"choices": [choice()]}, {"n": 2}, None),
        ({"choices": [choice()]}, {"logprobs": True}, None),
    ],
)
def test_one_that_does_not_is_neither_scored_nor_kept(body, request_fields, verdict):
    with pytest.raises(ChatError) as raised:
        checked(body, **request_fields)
    assert raised.value.verdict == verdict
    assert isinstance(raised.value, MissingLogProbabilitiesError) == ("logprobs" in request_fields)


def test_one_completion_may_be_enough_and_a_part_of_them_never_is():
    one = ChatResponse.model_validate({"choices": [choice()]})
    check_answer(URL, {"model": "m", "n": 4}, one, may_be_single=True)
    two = ChatResponse.model_validate({"choices": [choice(), choice()]})
    with pytest.raises(ChatError, match=r"2 of 4 completions.*completions=many_calls"):
        check_answer(URL, {"model": "m", "n": 4}, two, may_be_single=True)


@pytest.mark.parametrize(
    ("listed", "names"),
    [
        ({"object": "list", "data": [{"id": "a"}, {"id": "b", "owned_by": "us"}]}, ["a", "b"]),
        ([{"id": "a"}], ["a"]),  # Together's
        ({"data": None}, []),
        ({"error": {"message": "Not found"}}, []),
        ("nothing", []),
        ([1, {"name": "a"}], []),
    ],
)
def test_the_names_of_a_servers_models(listed, names):
    assert model_names(listed) == names
