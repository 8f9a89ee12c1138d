"""A real MLflow server on loopback, and a server that only keeps what it is sent."""

import json
import os
import signal
import socket
import subprocess
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from urllib.error import URLError
from urllib.request import urlopen

import pytest

PYTHON = "TESTS_MLFLOW_PYTHON"
PATIENCE = 180.0
QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
}  # no processes for jobs
INFO = {"run_id": "r", "artifact_uri": "mlflow-artifacts:/1/r/artifacts"}
ANSWER = {"experiment_id": "1", "runs": [{"info": INFO, "data": {}}]}


@pytest.fixture(autouse=True)
def _no_server_of_the_users(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("URI", "TOKEN", "USERNAME", "PASSWORD"):
        monkeypatch.delenv(f"MLFLOW_TRACKING_{name}", raising=False)
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME", raising=False)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="session")
def mlflow(tmp_path_factory):
    """The address of a server; it takes some 600 MB, so that its Python is another one than ours."""
    python = os.environ.get(PYTHON)
    if not python:
        pytest.skip(f"{PYTHON} names no Python that has mlflow.")
    folder, port = tmp_path_factory.mktemp("mlflow"), free_port()
    store = [
        "--backend-store-uri",
        f"sqlite:///{folder}/mlflow.db",
        "--artifacts-destination",
        f"{folder}/files",
    ]
    command = [
        python,
        "-m",
        "mlflow",
        "server",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--workers",
        "1",
        *store,
    ]
    address, env = f"http://127.0.0.1:{port}", {**os.environ, **QUIET}
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, cwd=folder, env=env, start_new_session=True
        )
    try:
        ends = time.monotonic() + PATIENCE
        while not answers(f"{address}/health"):
            assert process.poll() is None, (folder / "log.txt").read_text()
            assert time.monotonic() < ends
            time.sleep(0.2)
        yield address
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)  # with its worker
        process.wait(30)


def answers(url):
    try:
        with urlopen(url, timeout=5) as answer:
            return answer.status == 200
    except (URLError, OSError):
        return False


@pytest.fixture
def recorder():
    """A server with an `address` that keeps its `requests`; it answers by its `answers`, then as MLflow would."""
    kept = SimpleNamespace(requests=[], answers=[])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            kept.requests.append(
                SimpleNamespace(
                    method=self.command, path=self.path, login=self.headers.get("Authorization"), body=body
                )
            )
            status, headers, content = kept.answers.pop(0) if kept.answers else (200, {}, ANSWER)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(json.dumps(content).encode())

        do_GET = do_PUT = do_POST  # noqa: N815  names of the standard library's

        def log_message(self, *_): ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        kept.address = f"http://127.0.0.1:{server.server_port}"
        yield kept
        server.shutdown()
