"""Makes the pictures of the pages that the tutorial on results shows, from the tutorial's own example.

By hand, after a change to pages: `uv run python docs/pictures.py`. It needs the program Chromium.
"""

from __future__ import annotations

import base64
import re
import shutil
import sys
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

from modelgauge.cli.main import cli

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_DOCS = Path(__file__).parent
_TUTORIAL = _DOCS / "tutorials" / "look-at-compare-and-share-results.md"
_MOST = 60_000  # bytes of a picture
_WIDTH = 1040
_PLACE = """(() => {
  const box = document.querySelector(".item:not([hidden])").getBoundingClientRect();
  return { x: box.x + scrollX - 16, y: box.y + scrollY, width: box.width + 32, height: box.height + 4 };
})()"""
_PICTURES = {  # the file, the page, what it shows, and its height
    "run.webp": ("page.html", "#run=1", 760),
    "comparison.webp": ("compared.html", "", 780),
    "side-by-side.webp": ("compared.html", "#compare=0&show=won&item=Peru", 0),
}


def main() -> None:
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        _make_pages(Path(folder))
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (page, address, height) in _PICTURES.items():
            path = _DOCS / "pictures" / name
            _take(browser, f"{(Path(folder) / page).as_uri()}{address}", height, path)
            size = path.stat().st_size
            sys.stdout.write(f"{path.relative_to(_DOCS)} {size:,} bytes\n")
            if size > _MOST:
                sys.exit(f"{name} has more than {_MOST:,} bytes: show less of the page.")
        browser.close()


def _make_pages(folder: Path) -> None:
    """Do what the tutorial says, in a folder."""
    example = re.search(r'```python title="capitals.py"\n(.*?)```', _TUTORIAL.read_text("utf-8"), re.DOTALL)
    if example is None:
        sys.exit(f"{_TUTORIAL} has no capitals.py.")
    (folder / "capitals.py").write_text(example[1], encoding="utf-8")
    ran = ["run-test", "--plugin", "capitals.py", "--test", "capitals", "--sut", "old", "--sut", "new"]
    compared = ["compare", "latest", "--baseline-sut", "old", "--higher-is-better", "accuracy"]
    with chdir(folder):
        cli.main([*ran, "--max-errors", "1"], standalone_mode=False)
        cli.main(["report", "latest", "-o", "page.html"], standalone_mode=False)
        cli.main([*compared, "--html", "compared.html"], standalone_mode=False)


def _take(browser: Browser, address: str, height: int, path: Path) -> None:
    """Take a picture of a page from its top; of an open item alone where there is no height."""
    page = browser.new_page(viewport={"width": _WIDTH, "height": height or 900})
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    clip: dict[str, float] = {"x": 0, "y": 0, "width": _WIDTH, "height": height}
    if not height:
        page.locator(".item:visible h2").wait_for()
        page.evaluate("document.activeElement.blur()")
        clip = page.evaluate(_PLACE)
    session = page.context.new_cdp_session(page)  # playwright itself knows no WebP
    options = {"format": "webp", "quality": 60, "captureBeyondViewport": True, "clip": {**clip, "scale": 1}}
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(base64.b64decode(session.send("Page.captureScreenshot", options)["data"]))
    page.close()


if __name__ == "__main__":
    main()
