"""What the benchmarks share: the tests and SUTs that they run, medians, and the line that says what machine it was."""

import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from modelgauge import (
    PromptResponseSUT,
    PromptResponseTest,
    PromptWithContext,
    SUTCompletion,
    SUTResponse,
    TestItem,
)

RUNS = 5
_OF_MEDIANS = ("workload", "what", "median of wall (spread)", "rate", "CPU an item", "limit / this")


class ExactMatch(PromptResponseTest):
    """`items` prompts of about `size` bytes, scored by exact match."""

    def __init__(self, uid: str, items: int, size: int = 1000) -> None:
        super().__init__(uid)
        self.items = items
        self.padding = "x" * size

    def make_test_items(self, dependencies: Mapping[str, Path]) -> Iterator[TestItem]:
        for number in range(self.items):
            text = f"{number} {self.padding}"
            yield TestItem([PromptWithContext(text, source_id=str(number), context=number)])

    def measure_quality(self, item):
        return {"accuracy": item.text.partition(" ")[0] == str(item.context)}


class Echo(PromptResponseSUT):
    """Answers at once, on the event loop."""

    def translate_text_prompt(self, prompt) -> str:
        return prompt.text

    async def evaluate(self, request: str) -> str:
        return request

    def translate_response(self, request, response) -> SUTResponse:
        return SUTResponse(completions=(SUTCompletion(text=response),))


class ThreadedEcho(Echo):
    """Answers at once, as a plain function."""

    def evaluate(self, request: str) -> str:
        return request


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder that is gone afterwards."""
    path = Path(tempfile.mkdtemp(prefix="modelgauge-benchmark-"))
    try:
        yield path
    finally:
        shutil.rmtree(path)


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds of wall and of processor time."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def medians(
    name: str, items: int, works: Mapping[str, Callable[[], object]], runs: int = RUNS
) -> dict[str, float]:
    """Run each work in turn, several times over, and print a row for each; the first is the limit.

    Args:
        name: of the workload.
        items: that each work does.
        works: by name; each is called `runs` times.
    """
    times: dict[str, list[tuple[float, float]]] = {key: [] for key in works}
    for _ in range(runs):
        for key, work in works.items():
            times[key].append(timed(work))
    walls = {key: statistics.median(wall for wall, _ in several) for key, several in times.items()}
    limit = next(iter(walls.values()))
    for key, several in times.items():
        cpu = statistics.median(cpu for _, cpu in several)
        spread = f"{min(w for w, _ in several):.2f}-{max(w for w, _ in several):.2f} s"
        print(
            f"| {name} | {key} | {walls[key]:.3f} s ({spread}) | {items / walls[key]:,.0f}/s | "
            f"{1e6 * cpu / items:.0f} us | {limit / walls[key]:.2f} |",
            flush=True,
        )
    return walls


def header(*columns: str) -> None:
    """Date, machine and versions, and the head of a table.

    Args:
        columns: of the table; those of `medians` by default.
    """
    columns = columns or _OF_MEDIANS
    versions = ", ".join(
        f"{name} {metadata.version(name)}" for name in ("modelgauge-framework", "pydantic", "diskcache")
    )
    print(f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, {platform.machine()} {sys.platform},")
    print(f"Python {platform.python_version()}, {versions}; load {os.getloadavg()[0]:.1f}\n")
    print(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")
