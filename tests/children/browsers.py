"""A real browser for tests: Debian's Chromium, driven by playwright; and checks of how a page looks in it.

Tests skip where a program or a package is missing.
"""

import shutil

import pytest


def program(*names):
    """The path of the first Chromium of these names that is installed."""
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip(f"this test needs the program {names[-1]}: apt-get install {names[-1]}")
    return found


@pytest.fixture(scope="module")  # no longer: playwright's event loop runs in this thread until it is closed
def chromium():
    sync_api = pytest.importorskip("playwright.sync_api", reason="these tests need the package playwright")
    # The shell draws the same pages in two thirds of the time.
    path = program("chromium-headless-shell", "chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def axe():
    """Find what keeps people from using a page, at the size and in the colours that it has now."""
    reason = "this test needs the package axe-playwright-python"
    script = pytest.importorskip("axe_playwright_python.sync_playwright", reason=reason).Axe().axe_script

    def violations(page):
        if not page.evaluate("'axe' in window"):  # once a page
            page.evaluate(script)
        found = page.evaluate("axe.run({resultTypes: ['violations']}).then(({violations}) => violations)")
        return [f"{one['id']} {one['nodes'][0]['html'][:200]}" for one in found]

    return violations


@pytest.fixture
def check_looks(axe):
    """Check that nothing is wider than the page, and that axe finds nothing."""

    def check(page):
        page.wait_for_load_state()  # a page can be read before its styles are there
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), page.url
        assert axe(page) == [], page.url

    return check


@pytest.fixture
def check_all_looks(check_looks):
    """Check the looks of a page on small, middle and large screens; in both colours on the outer two."""

    def check(page):
        page.wait_for_load_state()
        page.set_viewport_size({"width": 768, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), page.url
        for width, colours in ((320, "dark"), (1280, "light")):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=colours)
            check_looks(page)

    return check
