"""What is refused, by a real server."""

import json
import re
import signal
import socket

import pytest
from children import run

from modelgauge import run_test
from modelgauge.evals import EvaluationDataset, Golden
from modelgauge.testing import FakeSUT, FakeTest

TOKEN = "a-token-of-at-least-16-characters"


@pytest.fixture(scope="module")
def workbench(serve, tmp_path_factory):
    return serve(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def guarded(serve, tmp_path_factory):
    return serve(tmp_path_factory.mktemp("data"), options=["--token", TOKEN, "--read-only"])


def test_only_names_of_this_machine_are_answered(workbench):
    for host in ("127.0.0.1", f"localhost:{workbench.port}", "[::1]:1"):
        assert workbench.ask("/runs", Host=host)[0] == 200
    for host in ("rebound.example", f"127.0.0.1.rebound.example:{workbench.port}", "[", ""):
        assert workbench.ask("/runs", Host=host)[0] in (400, 403), host


def test_no_page_of_another_site_can_change_anything(workbench):
    status, _, text = workbench.ask("/login", "POST", {"token": "x"})
    assert status == 403
    assert "The form comes from another page" in text
    for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec_Fetch_Site": "cross-site"}):
        status, _, text = workbench.ask("/login", "POST", "{}", Content_Type="application/json", **headers)
        assert (status, "another site" in text) == (403, True)
    assert workbench.ask("/login", "POST", "x", Content_Type="text/plain")[0] == 403


def test_every_answer_has_the_headers_of_safety(workbench):
    for path in ("/runs", "/static/workbench.css", "/report/page.css", "/nothing"):
        _, headers, _ = workbench.ask(path)
        assert "default-src 'none'; script-src 'self'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "same-origin"


def test_no_path_leads_out_of_the_folders(workbench):
    for path in (
        "/static/../safety.py",
        "/static/%2e%2e/safety.py",
        "/report/..%2f__init__.py",
        "/runs/..%2f..%2fx",
        "/runs/%00",
    ):
        status, _, text = workbench.ask(path)
        assert (status, "<h1>" in text) == (404, True), path


def test_no_address_or_form_makes_the_workbench_fail(serve, tmp_path):
    data = tmp_path / "data"
    run_id = run_test(FakeTest("t", ["a"]), FakeSUT("s"), data_dir=data).run_id
    EvaluationDataset([Golden(input="a")]).push("questions", data_dir=data)
    workbench = serve(data)
    long = "9" * 5000
    workbench.until("/runs", f"/runs/{run_id}")
    for status, path in (
        *((404, f"/runs/{run_id}/items/{number}") for number in ("0", "9" * 30, long, "x")),
        *((404, f"/datasets-golden/{run_id}/{number}") for number in ("0", "9" * 30, long, "x")),
        (404, "/runs/nosuch/live"),
        *((400, path) for path in ("/runs?q=a%00b", "/items?q=a%00b", f"/runs/{run_id}?sort=%00%3C")),
        *((200, f"{path}={long}") for path in ("/runs?page", f"/runs/{run_id}?failure", "/datasets?x")),
        (200, f"/datasets/questions/cases?version=1&run={run_id}&item={long}"),
        (200, f"/ratings/queue?run={run_id}&n={long}"),
    ):
        found, _, text = workbench.ask(path)
        assert (found, "The workbench failed" in text) == (status, False), path[:100]
    for path in ("/runs/restore", f"/runs/{run_id}/notes", "/starts", "/starts/resume", "/login"):
        status, _, text = workbench.ask(path, "POST", "{}", Content_Type="application/json")
        assert (status, "takes a form" in text) == (415, True), path
    assert workbench.post("/datasets/questions/restore", version=long)[0] == 400
    assert workbench.ask("/login", "POST", "{}", Origin="http://[")[0] == 403
    said = {"parent": None, "rows": [{"input": "x"}]}  # a version is there: who sends it has not seen it
    for status, origins in ((409, [None]), (400, 5), (400, ["x"]), (400, [0.5]), (400, {"a": 1})):
        found, _, text = workbench.ask(
            "/datasets/questions/versions.json",
            "POST",
            json.dumps(said | {"origins": origins}),
            Content_Type="application/json",
        )
        assert (found, "problem" in json.loads(text)) == (status, True), origins


def test_no_link_leads_out_of_the_folders(serve, tmp_path):
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    hidden = run_test(FakeTest("t", ["hidden words"]), FakeSUT("s"), data_dir=elsewhere).run_id
    run_test(FakeTest("shown", ["a"]), FakeSUT("s"), data_dir=data)
    (data / "runs" / hidden).symlink_to(elsewhere / "runs" / hidden)
    (data / "datasets").mkdir()
    (data / "datasets" / "evil").symlink_to(elsewhere)
    workbench = serve(data)
    workbench.until("/runs", "shown")
    assert workbench.ask(f"/runs/{hidden}")[0] == 404
    said = {"parent": None, "rows": [{"input": "x"}], "origins": [None], "author": "", "message": ""}
    path = "/datasets/evil/versions.json"
    status, _, text = workbench.ask(path, "POST", json.dumps(said), Content_Type="application/json")
    assert (status, "is a link" in text) == (400, True)
    assert [one.name for one in elsewhere.glob("v*")] == []


def test_who_sends_too_much_or_hangs_up_does_no_harm(workbench):
    head = "POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: "
    with socket.create_connection(("127.0.0.1", workbench.port)) as large:
        large.sendall(f"{head}{1 << 40}\r\n\r\n".encode())
        assert large.recv(1000).startswith(b"HTTP/1.1 413")
    slow = [socket.create_connection(("127.0.0.1", workbench.port)) for _ in range(100)]
    for one in slow:
        one.sendall(f"{head}100\r\n\r\n{{".encode())
    assert workbench.ask("/runs")[0] == 200
    for one in slow:
        one.close()
    for _ in range(3):  # a hundred tracebacks would fill the pipe of its output, and stop it
        assert workbench.ask("/runs")[0] == 200


def test_a_request_that_breaks_off_leaves_no_traceback(serve, tmp_path):
    workbench = serve(tmp_path)
    broken = b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", workbench.port)) as client:
            client.sendall(broken)
            assert client.recv(1000).startswith(b"HTTP/1.1 400")
    workbench.process.send_signal(signal.SIGINT)
    with workbench.process.stdout as output:
        said = output.read()
    workbench.process.wait()
    assert "Invalid HTTP request received." in said
    assert "Traceback" not in said


def test_a_token_lets_in_people_and_programs_and_nobody_else(guarded):
    status, headers, _ = guarded.ask("/runs?q=a", Accept="text/html")
    assert (status, headers["Location"]) == (303, "/login?next=/runs%3Fq%3Da")
    assert guarded.ask("/runs")[0] == 401
    assert guarded.ask("/runs", Authorization="Bearer wrong")[0] == 401
    assert guarded.ask("/runs", Authorization=f"Bearer {TOKEN}")[0] == 200
    assert guarded.ask("/runs", Cookie=f"modelgauge_{guarded.port}=1.abc")[0] == 401
    assert guarded.ask("/runs", Cookie=f"modelgauge_{guarded.port}=x")[0] == 401


def test_the_form_of_the_token_gives_a_cookie_that_scripts_cannot_read(guarded, visit):
    page = visit(guarded, "/runs?q=a")
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Come in").click()
    page.wait_for_url("**/runs?q=a")
    (cookie,) = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert TOKEN not in cookie["value"]


def test_visitors_of_a_read_only_workbench_change_nothing(guarded):
    headers = {"Authorization": f"Bearer {TOKEN}", "Content_Type": "application/json"}
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        status, _, text = guarded.ask("/runs", method, "{}", **headers)
        assert (status, "for reading" in text) == (403, True)


def test_at_another_address_a_token_is_made_and_shown_once(serve, tmp_path):
    workbench = serve(tmp_path, options=["--host", "0.0.0.0"])
    token = re.search(r"token, which is shown only now: (\S+)", workbench.process.stdout.readline())[1]
    assert workbench.ask("/runs", Host="any.example")[0] == 401
    assert workbench.ask("/runs", Host="any.example", Authorization=f"Bearer {token}")[0] == 200
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or token.encode() not in file.read_bytes()
    key = tmp_path / "workbench.key"
    assert key.stat().st_mode & 0o077 == 0


def test_a_short_token_is_refused(tmp_path):
    ended = run("-m", "modelgauge", "serve", "--data-dir", tmp_path, "--token", "short")
    assert (ended.returncode, "at least 16 characters" in ended.stderr) == (2, True)
