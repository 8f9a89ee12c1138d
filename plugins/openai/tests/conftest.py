"""A server of the protocol on this machine, no key in the environment, and a test to run."""

import json
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from chat_server import ThreadedChatServer

from modelgauge import PromptResponseTest, TestItem, TextPrompt, run_test
from modelgauge_openai.sut import OpenAIChat


@pytest.fixture(autouse=True)
def no_key(monkeypatch, tmp_path):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def server():
    with ThreadedChatServer() as running:
        yield running


@pytest.fixture
def sut(server):
    return OpenAIChat("openai/any-model", model="any-model", base_url=server.base_url)


@pytest.fixture
def named_host(monkeypatch):
    """Gives the address of a server on this machine a name that does not say so."""
    resolve = socket.getaddrinfo

    def resolved(host, *args, **kwargs):
        return resolve("127.0.0.1" if host == "llm.example" else host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    return lambda base_url: base_url.replace("127.0.0.1", "llm.example")


class Prompts(PromptResponseTest):
    """Asks given prompts; the score of each is 1 where there is an answer."""

    def __init__(self, uid, prompts):
        super().__init__(uid)
        self.prompts = [TextPrompt(prompt) if isinstance(prompt, str) else prompt for prompt in prompts]

    def make_test_items(self, dependencies):
        return [TestItem([prompt]) for prompt in self.prompts]

    def measure_quality(self, item):
        return {"answered": bool(item.interactions[0].response.completions[0].completion.text)}


@pytest.fixture
def asking():
    """Makes a test of prompts."""
    return lambda *prompts: Prompts("prompts", list(prompts))


@contextmanager
def serving(body, status=200, content_type="application/json"):
    """Run a server with the same reply to every question. Yield its URL and the list of requests."""
    asked = []
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1", asked
        finally:
            server.shutdown()


@pytest.fixture
def serve():
    """`with serve(body, …) as (url, asked)`: a server that gives every question the same reply."""
    return serving


@pytest.fixture
def no_pauses(monkeypatch):
    """Remove the pauses between attempts."""
    monkeypatch.setattr("modelgauge.engine.calls.retries.Backoff.wait", lambda *_: 0.0)


@pytest.fixture
def ask(asking):
    """Ask a server with a given reply one question. Return the record and the number of requests."""

    def ask(body, status=200, content_type="application/json", prompt="Q?", more="", **options):
        with serving(body, status, content_type) as (url, asked):
            record = run_test(asking(prompt), f"openai/m?base_url={url}{more}", **options)
            return record, len(asked)

    return ask
