"""A server of the protocol on this machine, no key in the environment, and a test to run."""

import socket

import pytest
from chat_server import ThreadedChatServer

from modelgauge import PromptResponseTest, TestItem, TextPrompt
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
