"""Clients that send incomplete requests, and many clients that listen to events."""

import asyncio
import socket
import threading
import time
from contextlib import suppress

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from modelgauge_workbench import connections
from modelgauge_workbench.connections import TimedConnection
from modelgauge_workbench.runs import live
from modelgauge_workbench.runs.live import Looks

PATIENCE = 30


async def echo(request):
    return PlainTextResponse(await request.body())


@pytest.fixture
def server(monkeypatch):
    """The port of a server whose clients must be quick."""
    monkeypatch.setattr(connections, "HEADERS", 0.3)
    monkeypatch.setattr(connections, "_BODY", 0.3)
    monkeypatch.setattr(connections, "_RATE", 100)
    app = Starlette(routes=[Route("/", echo, methods=["GET", "POST"])])
    config = uvicorn.Config(app, http=TimedConnection, log_level="warning", lifespan="off")
    made = uvicorn.Server(config)
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=made.run, kwargs={"sockets": [listening]})
    thread.start()
    yield listening.getsockname()[1]
    made.should_exit = True
    thread.join()
    listening.close()


def connected(port):
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HT",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: b",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nhalf",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HT",
    ],
)
def test_half_sent_request_is_closed(server, sent):
    began = time.monotonic()
    with connected(server) as client:
        client.sendall(sent)
        while client.recv(4096):
            pass
    assert 0.2 < time.monotonic() - began < 5


@pytest.mark.parametrize("head", [b"", b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n"])
def test_client_that_drips_is_closed(server, head):
    """Single bytes do not extend the time limit of headers, and hardly that of a body."""
    began = time.monotonic()
    with connected(server) as client, suppress(ConnectionError):
        client.sendall(head)
        while time.monotonic() - began < PATIENCE:
            client.sendall(b"G")
            time.sleep(0.05)
    assert time.monotonic() - began < 5


def test_request_that_comes_in_time_is_answered(server):
    """Allow long bodies that keep arriving, reused connections and slow answers."""
    body = b"x" * 200
    with connected(server) as client:
        for _ in range(2):
            client.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200\r\n\r\n")
            for start in range(0, 200, 20):  # in 0.6 s
                time.sleep(0.06)
                client.sendall(body[start : start + 20])
            answer = b""
            while not answer.endswith(body):
                answer += client.recv(4096)
            assert answer.startswith(b"HTTP/1.1 200")


def streams_of(looks, addresses, look, seconds):
    """Listen to a stream for each address, and return what each got."""

    async def listen(address):
        return [event async for event in looks.events(address, look).body_iterator]

    async def all_of_them():
        tasks = [asyncio.ensure_future(listen(address)) for address in addresses]
        await asyncio.sleep(seconds)
        stopping.set()
        return await asyncio.gather(*tasks)

    stopping = threading.Event()
    looks._is_stopping = stopping.is_set
    return asyncio.run(all_of_them())


def test_streams_of_one_address_share_their_looks(monkeypatch):
    monkeypatch.setattr(live, "_PAUSE", 0.2)
    seen = []

    def look():
        seen.append(time.monotonic())
        return str(len(seen)), True

    found = streams_of(Looks(bool), ["/runs/a"] * 50, look, 1.1)
    assert 2 <= len(seen) <= 7
    assert all(events[0] == "data: 1\n\n" for events in found)
    assert {len(events) for events in found} <= set(range(2, 8))


def test_streams_of_many_addresses_leave_most_of_the_time_to_pages(monkeypatch):
    monkeypatch.setattr(live, "_PAUSE", 0.05)
    busy, together = [], []

    def look():
        together.append(threading.current_thread())
        began = time.monotonic()
        time.sleep(0.01)
        busy.append(time.monotonic() - began)
        assert len(together) == 1
        together.clear()
        return "{}", True

    began = time.monotonic()
    streams_of(Looks(bool), [f"/runs/a?q={number}" for number in range(50)], look, 1.0)
    assert sum(busy) < 0.35 * (time.monotonic() - began)


def test_stream_ends_with_its_run():
    events = streams_of(Looks(bool), ["/runs/a"], lambda: ("", False), 0.1)
    assert events == [["event: ended\ndata: {}\n\n"]]
