"""Pages of runs in a real browser."""

import pytest
from children import PATIENCE

from modelgauge import run_test
from modelgauge.cli.main import cli


@pytest.fixture
def visit(chromium):
    """Open a page, and see to it that nothing went wrong and nothing was asked of a network."""
    contexts, wrong = [], []

    def of(address, width=1280, **options):
        context = chromium.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        context.set_default_timeout(1000 * PATIENCE)
        page = context.new_page()
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: wrong.append(f"a dialog: {dialog.message}"))
        page.on(
            "request", lambda request: None if request.url.startswith("file:") else wrong.append(request.url)
        )
        page.goto(address)
        page.wait_for_selector("html[data-ready]")
        return page

    yield of
    for context in contexts:
        context.close()
    assert wrong == []


@pytest.fixture
def report(tmp_path):
    """Run tests on SUTs, and write the page of all of their runs."""

    def of(*pairs, options=()):
        runs = [run_test(test, sut, data_dir=tmp_path / "data").run_id for test, sut in pairs]
        page = tmp_path / "page.html"
        command = ["report", *runs, "--data-dir", str(tmp_path / "data"), "-o", str(page), *options]
        assert cli.main(command, standalone_mode=False) == 0
        return page.as_uri()

    return of
