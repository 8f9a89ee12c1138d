"""What a server says with its refusal, in the message of the failed item."""

import json
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from modelgauge import PromptResponseSUT, SUTCompletion, SUTResponse, run_test
from modelgauge.engine.calls.error_bodies import note_body
from modelgauge.testing import FakeTest

raised = []


@pytest.fixture
def server():
    """The address of a server that refuses everything with `server.body`, behind its headers."""

    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(422)
            self.send_header("Content-Length", str(len(made.body)))
            self.end_headers()
            self.wfile.flush()
            self.wfile.write(made.body)

        def log_message(self, *args):
            pass

    made = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    made.body = json.dumps({"error": {"message": "max_tokens is 9000,\n at most 4096"}}).encode()
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
