"""How long a new user takes from `pip install` to two runs compared in the browser.

The commands are those of the README of the workbench; the clicks are made by Chromium, without a person's thinking.

Run by hand: uv run python benchmarks/first_comparison.py
It needs Chromium, and a package index for what ModelGauge requires.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from common import header, scratch
from playwright.sync_api import sync_playwright

REPOSITORY = Path(__file__).resolve().parents[1]
INSTALLED = (
    ".",
    "plugins/workbench",
    "demo_plugins/demo_tests",
    "demo_plugins/demo_suts",
    "demo_plugins/demo_annotators",
)
MEASURED = ("run-test", "--test", "demo_01", "--sut", "demo_yes_no", "--sut", "demo_constant")
PATIENCE = 60


@contextmanager
def timed(what: str, steps: list[tuple[str, float]]) -> Iterator[None]:
    """Note how many seconds a step takes."""
    begun = time.perf_counter()
    yield
    steps.append((what, time.perf_counter() - begun))


def click_through(address: str) -> str:
    """Choose both runs in the list and compare them; return what the page says first."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"{address}runs")
        while page.get_by_role("checkbox", name="compare").count() < 2:
            page.reload()
        for box in page.get_by_role("checkbox", name="compare").all():
            box.check()
        page.get_by_role("button", name="compare the chosen runs").click()
        verdict = page.locator(".verdict").first.inner_text()
        browser.close()
    return verdict


def address_of(server: "subprocess.Popen[str]") -> str:
    """The address that `modelgauge serve` prints."""
    output: IO[str] | None = server.stdout
    found = re.search(r"http://\S+/", output.readline() if output else "")
    if found is None:
        sys.exit("`modelgauge serve` printed no address.")
    return found[0]


def main() -> None:
    steps: list[tuple[str, float]] = []
    with scratch() as folder:
        bin_folder = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        with timed("python -m venv, pip install", steps):
            subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
            pip = [bin_folder / "pip", "install", "-q", "--disable-pip-version-check"]
            subprocess.run([*pip, *(REPOSITORY / one for one in INSTALLED)], check=True)
        with timed("modelgauge run-test, two SUTs", steps):
            command = [bin_folder / "modelgauge", *MEASURED]
            subprocess.run(
                command, check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        begun = time.perf_counter()
        server = subprocess.Popen(
            [bin_folder / "modelgauge", "serve", "--port", "0"], cwd=folder, stdout=subprocess.PIPE, text=True
        )
        try:
            address = address_of(server)
            steps.append(("modelgauge serve, until it has an address", time.perf_counter() - begun))
            with timed("in the browser: the list, two clicks, the comparison", steps):
                verdict = click_through(address)
        finally:
            server.terminate()
            server.wait(PATIENCE)
    header("step", "seconds")
    for what, seconds in [*steps, ("all", sum(seconds for _, seconds in steps))]:
        print(f"| {what} | {seconds:.1f} |")
    print(f"The page says: {verdict}")


if __name__ == "__main__":
    main()
