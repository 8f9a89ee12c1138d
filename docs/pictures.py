"""Makes the pictures of pages in the docs, from the example of the tutorial on results.

By hand, after a change to pages: `uv run python docs/pictures.py`. It needs the program Chromium.
"""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
import sys
from contextlib import chdir, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright

from modelgauge.cli.main import cli

if TYPE_CHECKING:
    from collections.abc import Iterator

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
_WORKBENCH = "workbench.webp", 640


def main() -> None:
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        _make_pages(Path(folder))
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (page, address, height) in _PICTURES.items():
            _take(browser, f"{(Path(folder) / page).as_uri()}{address}", height, name)
        with _served(Path(folder)) as compared:
            name, height = _WORKBENCH
            _take(browser, compared, height, name)
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


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    """Serve the runs of a folder; the address of the page that compares them."""
    command = [sys.executable, "-m", "modelgauge", "serve", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603  our own program
        found = re.search(r"http://\S+/", server.stdout.readline() if server.stdout else "")
        if found is None:
            sys.exit("`modelgauge serve` printed no address.")
        runs = sorted(one.name for one in (folder / "run_data" / "runs").iterdir())
        yield f"{found[0]}compare?{urlencode([('runs', run) for run in runs])}"
        server.terminate()


def _take(browser: Browser, address: str, height: int, name: str) -> None:
    """Take a picture of a page from its top; of an open item alone where there is no height."""
    page = browser.new_page(viewport={"width": _WIDTH, "height": height or 900})
    answer = page.goto(address)
    while answer is not None and not answer.ok:  # a workbench has not read its runs yet
        answer = page.reload()
    page.wait_for_selector("html[data-ready]")
    clip: dict[str, float] = {"x": 0, "y": 0, "width": _WIDTH, "height": height}
    if not height:
        page.locator(".item:visible h2").wait_for()
        page.evaluate("document.activeElement.blur()")
        clip = page.evaluate(_PLACE)
    session = page.context.new_cdp_session(page)  # playwright itself knows no WebP
    options = {"format": "webp", "quality": 60, "captureBeyondViewport": True, "clip": {**clip, "scale": 1}}
    path = _DOCS / "pictures" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(base64.b64decode(session.send("Page.captureScreenshot", options)["data"]))
    size = path.stat().st_size
    sys.stdout.write(f"{path.relative_to(_DOCS)} {size:,} bytes\n")
    if size > _MOST:
        sys.exit(f"{name} has more than {_MOST:,} bytes: show less of the page.")
    page.close()


if __name__ == "__main__":
    main()
