"""A web server on the loopback interface that does what a test tells it, a source in memory, and a store."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from modelgauge.dependencies.sources import ExternalData
from modelgauge.dependencies.store import DependencyStore

Answer = Callable[[BaseHTTPRequestHandler], None]


class Server:
    """Answers by path; counts what was asked for, with the headers."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Answer]] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.released = threading.Event()  # lets handlers that hang go when the test is over
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._server.server_port}{path}"

    def serve(self, path: str, *answers: Answer) -> str:
        """The answers come one after the other, the last one again and again."""
        self.answers[path] = list(answers)
        return self.url(path)

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append((self.path, dict(self.headers)))
                answers = outer.answers[self.path]
                answer = answers.pop(0) if len(answers) > 1 else answers[0]
                try:
                    answer(self)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def log_message(self, *args: object) -> None:
                """Quiet."""

        return Handler


def body(content: bytes, *, announced: int | None = None, status: int = 200) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(content) if announced is None else announced))
        handler.end_headers()
        handler.wfile.write(content)

    return answer


def redirect(location: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", location)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    running = Server()
    yield running
    running.close()


@pytest.fixture
def answer_body() -> Callable[..., Answer]:
    return body


@pytest.fixture
def answer_redirect() -> Callable[[str], Answer]:
    return redirect


class Memory(ExternalData):
    """A source that gives bytes and counts how often it is asked."""

    def __init__(self, content=b"content", *, name="file.txt", **options):
        super().__init__(**options)
        self.content = content
        self.name = name
        self.fetched = 0

    @property
    def source(self):
        return f"memory {self.name}"

    @property
    def file_name(self):
        return self.name

    def fetch(self, target, progress):
        self.fetched += 1
        progress(0, len(self.content))
        target.write_bytes(self.content)
        progress(len(self.content), len(self.content))


@pytest.fixture
def memory() -> type[Memory]:
    return Memory


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "dependencies"


@pytest.fixture
def store(directory: Path) -> DependencyStore:
    return DependencyStore(directory)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where an archive is unpacked to; the folder that holds it is empty."""
    folder = tmp_path / "inside" / "out"
    folder.parent.mkdir()
    return folder


@pytest.fixture
def nothing_outside(tmp_path: Path, folder: Path) -> Iterator[None]:
    """Nothing is left but an archive and the folder that it was unpacked to."""
    yield
    assert {path.name for path in folder.parent.iterdir()} <= {"out", "text"}
    assert {path.name for path in tmp_path.iterdir()} == {"inside"}
    assert not any(path.is_symlink() for path in folder.rglob("*"))
