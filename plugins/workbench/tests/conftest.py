"""Workbenches in processes of their own, and a browser that visits them."""

import re
import signal
import subprocess
import time
from http.client import HTTPConnection
from urllib.parse import urlencode

import pytest
from children import PATIENCE, Nesting, start


class Served:
    """A workbench in a process of its own.

    Args:
        data_dirs: its folders of data.
        options: more of its command line.
    """

    def __init__(self, *data_dirs, options=()):
        self.data_dirs = data_dirs
        folders = [part for folder in data_dirs for part in ("--data-dir", folder)]
        command = ("-m", "modelgauge", "serve", "--port", "0", *folders, *options)
        self.process = start(*command, kind=Nesting, stderr=subprocess.STDOUT)
        found = re.search(r"http://\S+:(\d+)/", self.process.stdout.readline())
        self.address, self.port = found[0].rstrip("/"), int(found[1])

    def ask(self, path, method="GET", body=None, **headers):
        """Status, headers and text of an answer; of a form, `body` has the fields."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if isinstance(body, dict):
            named.setdefault("Content-Type", "application/x-www-form-urlencoded")
            body = urlencode(body, doseq=True)
        try:
            connection.request(method, path, body, named)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            connection.close()

    def post(self, path, **fields):
        """Send a form as our own pages do."""
        _, _, text = self.ask("/login")
        token = re.search(r'name="csrf" value="(\w+)"', text)[1]
        return self.ask(path, "POST", {"csrf": token, **fields})

    def until(self, path, text):
        """Wait for a text in a page: runs are in the index a moment after they are in the folder."""
        patience = time.monotonic() + PATIENCE
        while text not in self.ask(path)[2]:
            assert time.monotonic() < patience, f"{path} never has {text}"
            time.sleep(0.05)

    def until_runs(self, number):
        """Wait until the index has so many runs."""
        self.until("/runs", f'id="count" data-refresh="2">{number}<')

    def stop(self, how=signal.SIGINT):
        """End the process, and return its exit code."""
        self.process.send_signal(how)
        code = self.process.wait(PATIENCE)
        self.process.stdout.close()
        return code


@pytest.fixture(scope="module")
def serve():
    """Start workbenches; all are stopped after the tests of the module."""
    running = []

    def of(*data_dirs, options=()):
        running.append(Served(*data_dirs, options=options))
        return running[-1]

    yield of
    for one in running:
        if one.process.poll() is None:
            one.stop()


def is_wrong(message):
    """Whether a line of the browser's console is an error; a refusal, which the page shows, is none."""
    refused = ("409 (Conflict)", "400 (Bad Request)")
    return message.type == "error" and not any(one in message.text for one in refused)


@pytest.fixture
def visit(chromium):
    """Open a page of a workbench, and see to it that nothing went wrong and nothing else was asked for."""
    contexts, wrong = [], []

    def of(workbench, path="/", width=1280, **options):
        context = chromium.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        context.set_default_timeout(1000 * PATIENCE)
        page = context.new_page()
        page.on("console", lambda message: wrong.append(message.text) if is_wrong(message) else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith((workbench.address, "data:")) else wrong.append(request.url)
            ),
        )
        press = page.keyboard.press

        def press_when_loaded(key):  # a browser forgets keys between two pages
            page.wait_for_load_state()
            press(key)

        page.keyboard.press = press_when_loaded
        page.goto(f"{workbench.address}{path}")
        return page

    yield of
    for context in contexts:
        context.close()
    assert wrong == []
