"""Sessions, what goes over the wire, and how a call fails."""

import asyncio
import contextlib
import json
import socket
import ssl
import time
import traceback

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey
from blockbuster import blockbuster_ctx

from modelgauge import Fatal, Retry
from modelgauge.errors import CallError
from modelgauge_openai import connection
from modelgauge_openai.connection import Connection
from modelgauge_openai.errors import ChatError
from modelgauge_openai.key import OpenAIKey
from modelgauge_openai.sut import OpenAIChat

CANARY = "sk-canary-0123456789"


def request(text):
    return {"model": "any-model", "messages": [{"role": "user", "content": text}]}


def ask(sut, *texts):
    """The responses, or the errors, to some prompts one after the other."""

    async def one(text):
        try:
            return await sut.evaluate(request(text))
        except CallError as error:
            return error

    async def main():
        await sut.open()
        try:
            return [await one(text) for text in texts]
        finally:
            await sut.close()

    return asyncio.run(main())


def test_what_is_sent(server, sut):
    [response] = ask(sut, "Grüße \N{EARTH GLOBE EUROPE-AFRICA}")
    sent = server.stats().recent[0]
    assert sent["body"] == request("Grüße \N{EARTH GLOBE EUROPE-AFRICA}")
    assert sent["headers"]["Content-Type"] == "application/json"
    assert "Authorization" not in sent["headers"]
    assert response.choices[0].message.content == "Grüße \N{EARTH GLOBE EUROPE-AFRICA}"


def test_the_key_is_sent_to_the_server_that_is_named(server):
    with_key = OpenAIChat("openai/m", model="m", api_key=OpenAIKey(f" {CANARY}\n"), base_url=server.base_url)
    ask(with_key, "x")
    assert server.stats().recent[-1]["headers"]["Authorization"] == f"Bearer {CANARY}"


def test_unless_it_shall_not_be(server):
    without = OpenAIChat(
        "openai/m", model="m", api_key=OpenAIKey(CANARY), base_url=server.base_url, send_key=False
    )
    ask(without, "x")
    assert CANARY not in str(server.stats().recent)


def test_a_prompt_of_megabytes(server, sut):
    text = "x" * (3 * 2**20)
    [response] = ask(sut, text)
    assert response.choices[0].message.content == text


def test_connections_are_kept_alive(server, sut, monkeypatch):
    made = []
    create = asyncio.BaseEventLoop.create_connection

    async def counting(*args, **kwargs):
        made.append(args)
        return await create(*args, **kwargs)

    monkeypatch.setattr(asyncio.BaseEventLoop, "create_connection", counting)
    ask(sut, *(f"prompt {number}" for number in range(10)))
    assert server.stats().completed == 10
    assert len(made) == 1


def test_nothing_blocks_the_loop(sut):
    with blockbuster_ctx():
        [response] = ask(sut, "quick")
    assert response.choices


def test_one_session_for_all_runs_of_a_loop_and_another_for_another_loop(sut):
    async def twice():
        await sut.open()
        await sut.open()
        await sut.close()
        first = await sut.evaluate(request("one run is over, the other goes on"))
        await sut.close()
        await sut.close()  # once more than it was opened: nothing is left to close
        with pytest.raises(CallError, match="not open"):
            await sut.evaluate(request("x"))
        return first

    for _ in range(2):
        assert asyncio.run(twice()).choices


def test_runs_in_two_loops_do_not_close_each_others_session(sut):
    async def main():
        await sut.open()
        await asyncio.to_thread(ask, sut, "in a loop of another thread")
        response = await sut.evaluate(request("here"))
        await sut.close()
        return response

    assert asyncio.run(main()).choices


@pytest.mark.parametrize(
    ("fault", "verdict"),
    [
        ("reset", Retry()),
        ("disconnect", Retry()),
        ("short_body", Retry()),
        ("truncated", Retry()),
        ("html", Retry()),
        ("empty", Retry()),
        ("error200", Retry()),
        ("408", Retry()),
        ("409", Retry()),
        ("429", Retry(rate_limited=True)),
        ("429 retry_after=0.5", Retry(after=0.5, rate_limited=True)),
        ("429 retry_after_ms=30", Retry(after=0.03, rate_limited=True)),
        ("500", Retry()),
        ("502", Retry()),
        ("503 retry_after=2", Retry(after=2.0)),
        ("529", Retry()),
        ("quota", Fatal()),
        ("401", Fatal()),
        ("403", Fatal()),
        ("404", Fatal()),
        ("redirect", Fatal()),
        ("400", None),
        ("422", None),
    ],
)
def test_what_each_fault_means(sut, fault, verdict):
    [error] = ask(sut, f"[[fault {fault}]]")
    assert isinstance(error, ChatError)
    assert sut.classify_error(error) == verdict


def test_a_date_to_wait_for(sut):
    [error] = ask(sut, "[[fault 429 retry_after_date=60]]")
    assert 58 <= sut.classify_error(error).after <= 61


def test_errors_of_others_are_left_to_the_engine(sut):
    assert sut.classify_error(RuntimeError("x")) is None


def test_nobody_listens():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    [error] = ask(OpenAIChat("openai/m", model="m", base_url=f"http://127.0.0.1:{port}/v1"), "x")
    assert error.verdict == Retry(unreachable=True)
    assert f"127.0.0.1:{port}" in error.problem
    assert "that the server runs" in error.fix


def test_a_server_whose_queue_is_full_refuses():
    with contextlib.ExitStack() as opened:
        full = opened.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)  # and nobody accepts
        for _ in range(4):
            one = opened.enter_context(socket.socket())
            one.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                one.connect(full.getsockname())
        sut = OpenAIChat("openai/m", model="m", base_url=f"http://127.0.0.1:{full.getsockname()[1]}/v1")
        begun = time.monotonic()
        [error] = ask(sut, "x")
    assert error.verdict == Retry(rate_limited=True, unreachable=True)
    assert "lower --concurrency" in error.fix
    assert 0.9 < time.monotonic() - begun < 20


def test_a_certificate_that_is_not_trusted_will_not_be_the_next_time():
    refusal = ssl.SSLCertVerificationError("self-signed certificate")
    key = ConnectionKey("host.example", 443, True, True, None, None, None)
    error = Connection("openai/m", "https://host.example/v1", None)._broken(
        aiohttp.ClientConnectorCertificateError(key, refusal)
    )
    assert error.verdict == Fatal()
    assert "self-signed certificate" in error.problem


def test_the_way_through_a_proxy(server, monkeypatch):
    monkeypatch.setenv("http_proxy", server.base_url.removesuffix("/v1"))
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    far = OpenAIChat("openai/m", model="m", base_url="http://far.invalid/v1")
    [response] = ask(far, "by proxy")
    assert response.choices[0].message.content == "by proxy"
    assert server.stats().recent[0]["headers"]["Host"] == "far.invalid"


def test_a_server_that_speaks_no_http():
    async def main():
        async def babble(reader, writer):
            writer.write(b"SSH-2.0-OpenSSH_9.6\r\n")
            await reader.read(1)
            writer.close()

        async with await asyncio.start_server(babble, "127.0.0.1", 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            sut = OpenAIChat("openai/m", model="m", base_url=f"http://127.0.0.1:{port}/v1")
            await sut.open()
            try:
                await sut.evaluate(request("x"))
            finally:
                await sut.close()

    with pytest.raises(ChatError, match="gave no answer") as raised:
        asyncio.run(main())
    assert raised.value.verdict == Retry()


def test_a_response_without_end_is_not_read_to_its_end(sut, monkeypatch):
    monkeypatch.setattr(connection, "MOST_BYTES", 10_000)
    long, short = ask(sut, "x" * 20_000, "short")
    assert isinstance(long, ChatError)
    assert long.verdict is None
    assert "10,000 bytes" in str(long)
    assert short.choices


def test_no_answer_that_lacks_what_was_asked_for(sut):
    async def main():
        await sut.open()
        try:
            await sut.evaluate({**request("[[fault null]]"), "n": 2})
            await sut.evaluate({**request("[[fault empty]]"), "n": 2})
        finally:
            await sut.close()

    with pytest.raises(ChatError, match="without any choices"):
        asyncio.run(main())


@pytest.mark.parametrize(
    "fault", ["echo_key", "401", "500", "reset", "truncated", "redirect", "short_body", "404"]
)
def test_the_key_is_in_no_error(server, fault):
    sut = OpenAIChat("openai/m", model="m", api_key=OpenAIKey(CANARY), base_url=server.base_url)
    [error] = ask(sut, f"[[fault {fault}]]")
    shown = "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))
    causes = [error, error.__cause__, error.__context__]
    shown += "".join(repr(cause) + repr(getattr(cause, "args", "")) for cause in causes)
    assert CANARY not in shown
    assert json.dumps(CANARY) not in shown


def test_a_response_that_quotes_it_is_as_it_came(server):
    sut = OpenAIChat("openai/m", model="m", api_key=OpenAIKey(CANARY), base_url=server.base_url)
    [response] = ask(sut, f"My key is {CANARY}.")
    text = sut.translate_response({}, response).completions[0].text
    assert text == f"My key is {CANARY}."


@pytest.mark.parametrize("word", ["EMPTY", "ollama", "x", "id", "message"])
def test_a_word_given_for_a_key_does_not_maim_the_answers_of_a_local_server(server, word):
    sut = OpenAIChat("openai/m", model="m", api_key=OpenAIKey(word), base_url=server.base_url)
    [response] = ask(sut, f"six boxes, {word}")
    assert sut.translate_response({}, response).completions[0].text == f"six boxes, {word}"
