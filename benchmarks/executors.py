"""What several processes cost and bring, beside one: on light and heavy SUTs, on those that wait, and over HTTP.

Run by hand: uv run python benchmarks/executors.py
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from common import RUNS, Echo, ExactMatch, scratch

from modelgauge import hookimpl, run_test
from modelgauge.config.settings import load_settings

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "faults"))
from chat_server import ChatServer, Plan

BUSY = 0.02  # seconds of processor time a call, of the heavy SUT
LIGHT, HEAVY, WAITING, HTTP = 20_000, 400, 4000, 4000
LATENCY = 0.1  # seconds a call, of the SUT that waits
EXECUTORS = ("processes", "ray?cpus=0") if find_spec("ray") else ("processes",)
"""Without processors reserved: so many workers as are asked for find room."""


class Busy(Echo):
    """Takes a while of processor time."""

    def evaluate(self, request: str) -> str:
        end = time.thread_time() + BUSY
        while time.thread_time() < end:
            pass
        return request


class Waiting(Echo):
    """Waits, as for a server."""

    async def evaluate(self, request: str) -> str:
        await asyncio.sleep(LATENCY)
        return request


@hookimpl
def modelgauge_register_tests(register):
    register("items", ExactMatch)


@hookimpl
def modelgauge_register_suts(register):
    for name, kind in {"echo": Echo, "busy": Busy, "waiting": Waiting}.items():
        register(name, kind)


def seconds(sut: str, items: int, options: Mapping[str, Any]) -> tuple[float, float]:
    """Seconds of a run, from its manifest to its record, and of processor time of this process."""
    settings = load_settings(plugins=[__file__])
    taken = []
    for _ in range(RUNS):
        with scratch() as folder:
            cpu = time.process_time()
            test = f"items?items={items}&size=100"
            record = run_test(test, sut, data_dir=folder, settings=settings, caching=False, **options)
            taken.append((record.seconds, time.process_time() - cpu))
            assert record.counts.scored == items
    return statistics.median(one for one, _ in taken), statistics.median(cpu for _, cpu in taken)


def main() -> None:
    with ChatServer(Plan(latency=LATENCY)) as server:
        compare(f"openai/any-model?base_url={server.base_url}")


def compare(model: str) -> None:
    """Print a row for each SUT and number of processes; `model` is the name of one behind HTTP."""
    places = {"concurrency": 256}
    compared = [
        ("a SUT that answers at once", "echo", LIGHT, (1, 2), {}),
        (f"{BUSY * 1000:g} ms of processor time a call", "busy", HEAVY, (1, 2), {"concurrency": 4}),
        (f"{LATENCY * 1000:g} ms of waiting a call", "waiting", WAITING, (1, 2), places),
        (f"HTTP, answers after {LATENCY * 1000:g} ms", model, HTTP, (1, 2), places),
    ]
    sys.stdout.write(
        "| SUT | where | items a second | processor time of the driver an item |\n|---|---|---|---|\n"
    )
    for what, sut, items, numbers, options in compared:
        runs = [("in process", options)]
        runs += [
            (f"{executor}, {number}", {**options, "executor": executor, "workers": number})
            for executor in EXECUTORS
            for number in numbers
        ]
        for where, given in runs:
            wall, cpu = seconds(sut, items, given)
            sys.stdout.write(f"| {what} | {where} | {items / wall:,.0f} | {cpu / items * 1e6:,.0f} us |\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
