"""A real browser for tests: Debian's Chromium, driven by playwright. Tests skip where one of the two is missing."""

import shutil

import pytest


@pytest.fixture(scope="module")  # no longer: playwright's event loop runs in this thread until it is closed
def chromium():
    sync_api = pytest.importorskip("playwright.sync_api", reason="these tests need the package playwright")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("these tests need the program chromium: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()
