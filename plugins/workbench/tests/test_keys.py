"""Keys for everything, and errors that say what to do."""

import re

import pytest

from modelgauge import run_test
from modelgauge.testing import FakeSUT, FakeTest


@pytest.fixture(scope="module")
def workbench(serve, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    run_test(FakeTest("apples", ["one"]), FakeSUT("fake-sut"), data_dir=folder)
    served = serve(folder)
    served.until("/ratings", "apples")
    return served


def test_each_key_is_listed_and_everything_has_letters(visit, workbench):
    page = visit(workbench, "/ratings")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the page"
    page.keyboard.press("?")
    listed = page.get_by_role("dialog", name="Keys of this page").inner_text()
    assert re.search(r"R\s+Runs", listed)
    assert re.search(r"b\s+Rate these answers", listed)
    page.keyboard.press("Escape")
    page.keyboard.press(".")
    assert page.locator(".hints kbd").count() > 5
    page.keyboard.press("Escape")
    assert page.locator(".hints kbd").count() == 0
    page.keyboard.press(".")
    with page.expect_navigation():
        page.keyboard.type(page.locator(".hints kbd").nth(1).inner_text())  # after the skip link
    assert page.url.endswith("/runs")
    with page.expect_navigation():
        page.keyboard.press("A")
    assert page.url.endswith("/ratings")


def test_what_is_not_there_says_what_to_do(workbench):
    for path, status in {
        "/nothing": 404,
        "/runs/none": 404,
        "/ratings/queue?run=none": 400,
        "/static/none.js": 404,
    }.items():
        found, _, text = workbench.ask(path)
        assert found == status, path
        assert re.search(r"<h1>[A-Z].+\.</h1>\s*<p>[A-Z].+\.</p>", text), path
    found, _, text = workbench.ask("/runs", "DELETE")
    assert found in (403, 405)
    assert "<h1>" in text
