"""Downloads, from a real server on the loopback interface."""

import io
import socket
import ssl
import urllib.error
import urllib.request
from http.client import HTTPMessage
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from modelgauge.dependencies.download import _SafeRedirects, download
from modelgauge.dependencies.safety import DownloadLimits
from modelgauge.errors import DefinitionError, DownloadError

HASTY = DownloadLimits(timeout=5, tries=3, backoff=0)


def fetch(url, target, limits=HASTY, max_bytes=1 << 20):
    told = []
    download(
        url,
        target,
        max_bytes=max_bytes,
        progress=lambda done, total: told.append((done, total)),
        limits=limits,
    )
    return told


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "target"


def test_the_bytes_arrive_and_progress_is_told(server, answer_body, target):
    content = bytes(range(256)) * 4096
    told = fetch(server.serve("/file", answer_body(content)), target)
    assert target.read_bytes() == content
    assert told[-1] == (len(content), len(content))
    assert [done for done, _ in told] == sorted({done for done, _ in told})


def test_an_empty_file_is_a_file(server, answer_body, target):
    fetch(server.serve("/empty", answer_body(b"")), target)
    assert target.read_bytes() == b""


def test_a_body_without_length_arrives(server, target):
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(b"to the end of the connection")

    assert fetch(server.serve("/file", answer), target)[-1][1] is None
    assert target.read_bytes() == b"to the end of the connection"


def chunked(*chunks: bytes, ended: bool):
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.protocol_version = "HTTP/1.1"
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for chunk in chunks:
            handler.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
        if ended:
            handler.wfile.write(b"0\r\n\r\n")
        handler.close_connection = True

    return answer


def test_a_chunked_body_arrives(server, target):
    fetch(server.serve("/file", chunked(b"one", b"two", ended=True)), target)
    assert target.read_bytes() == b"onetwo"


def test_a_chunked_body_that_breaks_off_is_an_error(server, target):
    with pytest.raises(DownloadError, match="the connection broke"):
        fetch(server.serve("/file", chunked(b"one", ended=False)), target)
    assert not target.exists()


def test_a_short_body_is_an_error_and_nothing_is_kept(server, answer_body, target):
    url = server.serve("/file", answer_body(b"half", announced=8))
    with pytest.raises(DownloadError, match="announced 8 bytes and sent 4, in try 3 of 3"):
        fetch(url, target)
    assert not target.exists()
    assert len(server.requests) == 3


def test_a_failure_that_passes_is_tried_again(server, answer_body, target):
    busy, short = answer_body(b"busy", status=503), answer_body(b"who", announced=5)
    fetch(server.serve("/file", busy, short, answer_body(b"whole")), target)
    assert target.read_bytes() == b"whole"


def test_not_found_names_address_and_status_and_is_not_tried_again(server, answer_body, target):
    url = server.serve("/file", answer_body(b"no", status=404))
    with pytest.raises(DownloadError, match="404") as caught:
        fetch(url, target)
    assert url in str(caught.value)
    assert len(server.requests) == 1
    assert not target.exists()


def test_a_server_that_never_answers_times_out(server, target):
    url = server.serve("/file", lambda _: server.released.wait(10))
    with pytest.raises(DownloadError, match=r"timed out|timeout"):
        fetch(url, target, DownloadLimits(timeout=0.1, tries=1))


def test_headers_that_trickle_time_out_although_no_single_read_does(server, target):
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
        while not server.released.wait(0.01):
            handler.wfile.write(b".")

    url = server.serve("/file", answer)
    with pytest.raises(DownloadError, match="no complete answer in"):
        fetch(url, target, DownloadLimits(timeout=0.2, tries=1))
    assert not target.exists()


def test_headers_that_break_off_are_an_error(server, target):
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Le")
        handler.close_connection = True

    with pytest.raises(DownloadError, match="sent nothing"):
        fetch(server.serve("/file", answer), target)
    assert not target.exists()


@pytest.mark.parametrize("field", ["timeout", "tries", "stall_seconds", "backoff"])
def test_patience_must_make_sense(field):
    with pytest.raises(DefinitionError, match=f"{field}=-1"):
        DownloadLimits(**{field: -1})


def test_a_body_that_stops_coming_times_out(server, target):
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "100")
        handler.end_headers()
        handler.wfile.write(b"some")
        server.released.wait(10)

    with pytest.raises(DownloadError, match="connection broke"):
        fetch(server.serve("/file", answer), target, DownloadLimits(timeout=0.1, tries=1))
    assert not target.exists()


def test_a_trickle_is_a_stall_although_no_single_read_times_out(server, target):
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "100000")
        handler.end_headers()
        while not server.released.wait(0.01):
            handler.wfile.write(b".")

    limits = DownloadLimits(timeout=5, stall_seconds=0.1, stall_bytes=1000, tries=1)
    with pytest.raises(DownloadError, match="stalled"):
        fetch(server.serve("/file", answer), target, limits)


def test_nobody_listening_is_an_error_with_the_address(target):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/file"
        with pytest.raises(DownloadError, match="no connection") as caught:
            fetch(url, target)
    assert url in str(caught.value)


@pytest.mark.parametrize("announced", [None, 10])
def test_more_than_the_limit_is_refused(server, target, announced):
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        if announced:
            handler.send_header("Content-Length", str(announced))
        handler.end_headers()
        handler.wfile.write(b"0123456789")

    with pytest.raises(DownloadError, match="more than the 9 bytes"):
        fetch(server.serve("/file", answer), target, max_bytes=9)
    assert not target.exists()


def test_redirects_are_followed_without_credentials(server, answer_body, answer_redirect, target):
    server.serve("/there", answer_body(b"moved"))
    fetch(server.serve("/here", answer_redirect("/there")), target)
    assert target.read_bytes() == b"moved"
    assert [path for path, _ in server.requests] == ["/here", "/there"]
    assert not {"Authorization", "Cookie", "Proxy-Authorization"} & set(server.requests[1][1])


@pytest.mark.parametrize(
    "location", ["file:///etc/hostname", "ftp://127.0.0.1/file", "data:text/plain,hello"]
)
def test_redirects_to_other_schemes_are_refused(server, answer_redirect, target, location):
    with pytest.raises(DownloadError, match=r"[Rr]edirect"):
        fetch(server.serve("/here", answer_redirect(location)), target)
    assert not target.exists()


def test_redirects_from_https_to_http_are_refused():
    request = urllib.request.Request("https://example.org/file")
    refused = pytest.raises(DownloadError, match="not as safe")
    with refused, io.BytesIO() as answer:
        _SafeRedirects().redirect_request(request, answer, 302, "", HTTPMessage(), "http://example.org/file")


def test_a_redirect_to_no_address_is_an_error(server, answer_redirect, target):
    with pytest.raises(DownloadError, match="connection failed"):
        fetch(server.serve("/here", answer_redirect("http://[")), target)


def test_a_redirect_loop_ends(server, answer_redirect, target):
    with pytest.raises(DownloadError, match="302"):
        fetch(server.serve("/here", answer_redirect("/here")), target)


@pytest.mark.parametrize("garbage", [b"not http at all\r\n\r\n", b"", b"HTTP/1.1 999999 what\r\n\r\n"])
def test_an_answer_that_is_not_http_is_an_error(server, target, garbage):
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(garbage)
        handler.close_connection = True

    with pytest.raises(DownloadError, match="connection"):
        fetch(server.serve("/file", answer), target, DownloadLimits(timeout=5, tries=1))


def test_a_certificate_that_is_not_valid_is_not_tried_again(target, monkeypatch):
    tries = []

    def refuse(*_, **__):
        tries.append(1)
        raise urllib.error.URLError(ssl.SSLCertVerificationError("expired"))

    monkeypatch.setattr(urllib.request.OpenerDirector, "open", refuse)
    with pytest.raises(DownloadError, match="the server's certificate is not valid"):
        fetch("https://example.org/file", target)
    assert len(tries) == 1


def test_https_to_a_server_that_speaks_http_is_an_error(server, answer_body, target):
    url = server.serve("/file", answer_body(b"plain")).replace("http:", "https:")
    with pytest.raises(DownloadError, match=r"no connection .*SSL.*in try 2 of 2"):
        fetch(url, target, DownloadLimits(timeout=5, tries=2, backoff=0))


def test_a_slow_server_that_sends_enough_in_each_window_is_waited_for(server, target):
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        for _ in range(4):
            handler.wfile.write(b"0123456789")
            server.released.wait(0.06)

    fetch(
        server.serve("/file", answer),
        target,
        DownloadLimits(timeout=5, tries=1, stall_seconds=0.05, stall_bytes=10),
    )
    assert target.read_bytes() == b"0123456789" * 4


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_a_status_that_can_pass_is_tried_again(server, answer_body, target, status):
    fetch(server.serve("/file", answer_body(b"", status=status), answer_body(b"whole")), target)
    assert target.read_bytes() == b"whole"


@pytest.mark.parametrize("status", [400, 401, 404, 410, 501])
def test_a_status_that_stays_is_not_tried_again(server, answer_body, target, status):
    with pytest.raises(DownloadError, match=f"the server answered {status} "):
        fetch(server.serve("/file", answer_body(b"", status=status)), target)
    assert len(server.requests) == 1


def test_the_wait_doubles_before_each_further_try(server, answer_body, target, monkeypatch):
    waits = []
    monkeypatch.setattr("time.sleep", waits.append)
    with pytest.raises(DownloadError, match="in try 4 of 4"):
        fetch(
            server.serve("/file", answer_body(b"", status=503)), target, DownloadLimits(tries=4, backoff=0.5)
        )
    assert waits == [0.5, 1, 2]


def test_as_much_as_the_limit_is_taken_and_the_client_says_who_it_is(server, answer_body, target):
    fetch(server.serve("/file", answer_body(b"012345678")), target, max_bytes=9)
    assert target.read_bytes() == b"012345678"
    assert server.requests[0][1]["User-Agent"] == "modelgauge"


@pytest.mark.parametrize(
    ("field", "least"),
    [("timeout", 0.001), ("stall_seconds", 0.001), ("stall_bytes", 0), ("tries", 1), ("backoff", 0)],
)
def test_patience_begins_at_its_least(field, least):
    assert getattr(DownloadLimits(**{field: least}), field) == least
    for value in (least - 0.0005, float("nan")):
        with pytest.raises(
            DefinitionError, match=rf"DownloadLimits\({field}=.* is too small. Give at least {least:g}\."
        ):
            DownloadLimits(**{field: value})
