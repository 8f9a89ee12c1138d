"""HTTP errors of common clients: the server is quoted in the message, and the status decides about another attempt."""

import asyncio
import json
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import aiohttp
import pytest
import requests

from modelgauge import PromptResponseSUT, Retry, SUTCompletion, SUTResponse, run_test
from modelgauge.engine.calls.http_errors import note_body
from modelgauge.engine.calls.retries import Backoff, classify
from modelgauge.testing import FakeTest

raised = []


@pytest.fixture
def server():
    """The address of a server that refuses everything with `server.body`, behind its headers."""

    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self):
            made.asked += 1
            self.send_response(made.status)
            self.send_header("Content-Length", str(len(made.body)))
            if made.retry_after is not None:
                self.send_header("Retry-After", made.retry_after)
            self.end_headers()
            self.wfile.flush()
            self.wfile.write(made.body)

        def log_message(self, *args):
            pass

    made = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    made.body = json.dumps({"error": {"message": "max_tokens is 9000,\n at most 4096"}}).encode()
    made.status, made.retry_after, made.asked = 422, None, 0
    made.address = f"http://127.0.0.1:{made.server_address[1]}/"
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    raised.clear()
    yield made
    for error in raised:
        error.close()
    made.shutdown()
    made.server_close()
    thread.join()


def by_urllib(address):
    try:
        urllib.request.urlopen(address, timeout=10)
    except urllib.error.HTTPError as error:
        raised.append(error)
        raise


class HTTPStatusError(Exception):
    """As in httpx, and in requests under its own name: the response holds what was read of it."""

    def __init__(self, body):
        super().__init__("422 Unprocessable")
        self.response = SimpleNamespace(_content=body)


def by_httpx(address):
    try:
        by_urllib(address)
    except urllib.error.HTTPError as error:
        raise HTTPStatusError(error.read()) from None


class Asking(PromptResponseSUT[str, str]):
    """Asks the server in a thread, since its `evaluate` is a plain function."""

    ask = by_urllib

    def translate_text_prompt(self, prompt):
        return prompt.text

    def evaluate(self, request):
        return type(self).ask(request)

    def translate_response(self, request, response):
        return SUTResponse([SUTCompletion(response)])


class AskingByHttpx(Asking):
    ask = by_httpx


def by_requests(address):
    requests.get(address, timeout=10).raise_for_status()


class AskingByRequests(Asking):
    ask = by_requests


class AskingByAiohttp(Asking):
    async def evaluate(self, request):
        async with aiohttp.ClientSession() as session, session.get(request, raise_for_status=True):
            raise AssertionError


CLIENTS = [Asking, AskingByRequests, AskingByAiohttp]


@pytest.fixture
def attempts(server, tmp_path, monkeypatch):
    """Return the number of attempts at each of four items, and the record."""
    monkeypatch.setattr(Backoff, "wait", lambda self, attempt, verdict: 0.0)

    def attempts(sut, status, retry_after=None):
        server.status, server.retry_after = status, retry_after
        test = FakeTest("t", [f"{server.address}?{number}" for number in range(4)])
        record = run_test(test, sut("s"), data_dir=tmp_path, max_retries=2, caching=False, concurrency=1)
        return server.asked, record

    return attempts


@pytest.mark.parametrize("sut", CLIENTS)
@pytest.mark.parametrize("status", [400, 403, 404, 413, 422, 501])
def test_refused_request_fails_its_item_at_once(sut, status, attempts):
    asked, record = attempts(sut, status)
    assert (asked, record.counts.failed) == (4, 4)


@pytest.mark.parametrize("sut", CLIENTS)
@pytest.mark.parametrize("status", [408, 500, 502, 503, 529])
def test_passing_error_is_retried(sut, status, attempts):
    asked, record = attempts(sut, status)
    assert (asked, record.counts.failed) == (12, 4)


@pytest.mark.parametrize("sut", CLIENTS)
def test_wrong_key_stops_the_run_after_three_calls(sut, attempts):
    asked, record = attempts(sut, 401)
    assert asked == 3
    assert "3 calls that cannot succeed" in record.failure.message


@pytest.mark.parametrize("sut", CLIENTS)
@pytest.mark.parametrize(
    ("retry_after", "after"),
    [(None, None), ("7", 7), ("-1", 0), ("inf", None), ("soon", None), ("Sat, 01 Jan 2000 00:00:00 GMT", 0)],
)
def test_rate_limit_says_how_long_to_wait(sut, retry_after, after, server):
    server.status, server.retry_after = 429, retry_after
    answer = sut("s").evaluate
    with pytest.raises(Exception, match="429") as caught:
        asyncio.run(answer(server.address))
    assert classify(sut("s"), caught.value) == Retry(after=after, rate_limited=True)


def test_verdict_of_the_author_comes_first(server):
    class Patient(Asking):
        def classify_error(self, error):
            return Retry(after=1)

    with pytest.raises(urllib.error.HTTPError) as caught:
        by_urllib(server.address)
    assert classify(Patient("s"), caught.value) == Retry(after=1)


def test_http_error_without_a_response_is_a_network_error():
    assert classify(Asking("s"), requests.HTTPError("reset")) == Retry()


@pytest.mark.parametrize("sut", [Asking, AskingByHttpx])
def test_body_of_an_http_error_is_in_the_message(server, tmp_path, sut):
    record = run_test(FakeTest("t", [server.address]), sut("s"), data_dir=tmp_path, max_retries=0)
    failed = record.test_item_exceptions[0].failure
    assert "422" in failed.message
    assert failed.message.endswith(
        'The server says: {"error": {"message": "max_tokens is 9000,\\n at most 4096"}}'
    )


def test_author_reads_the_body_after_it_was_noted(server):
    with pytest.raises(urllib.error.HTTPError) as caught:
        by_urllib(server.address)
    note_body(caught.value, may_wait=True)
    assert caught.value.read() == server.body


def test_body_on_the_socket_is_left_there_in_the_event_loop(server):
    with pytest.raises(urllib.error.HTTPError) as caught:
        by_urllib(server.address)
    note_body(caught.value)
    assert not hasattr(caught.value, "__notes__")
    assert caught.value.read() == server.body


def test_long_body_is_cut_between_words(server):
    server.body = b"x" * 390 + b' "sk-secret-of-forty-characters-and-more" ' + b"y" * 9000
    with pytest.raises(urllib.error.HTTPError) as caught:
        by_urllib(server.address)
    note_body(caught.value, may_wait=True)
    (note,) = caught.value.__notes__
    assert note == f'The server says: {"x" * 390} "…'


@pytest.mark.parametrize("body", [b"", b" \n"])
def test_empty_body_adds_nothing(server, body):
    server.body = body
    with pytest.raises(urllib.error.HTTPError) as caught:
        by_urllib(server.address)
    note_body(caught.value, may_wait=True)
    assert not hasattr(caught.value, "__notes__")


def test_other_errors_and_closed_bodies_stay_as_they_are():
    closed = urllib.error.HTTPError("http://x", 500, "no", None, None)
    for error in (ValueError("no"), closed, KeyboardInterrupt()):
        note_body(error, may_wait=True)
        assert not hasattr(error, "__notes__")
