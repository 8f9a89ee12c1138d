"""How servers are asked that are slow, or refuse calls.

How many calls at once a server gets that works on 1, 4 or 1,000 (`serial`, `slots`, `roomy`), beside the best fixed
`concurrency`; and what becomes of calls to a server that answers three a minute and says nothing more (`limited`), one
that is started again (`restarted`), and a port where nobody listens (`dead`).

Run by hand: uv run python benchmarks/slow_servers.py [serial slots roomy limited restarted dead]
"""

import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from common import ExactMatch, header, scratch

from modelgauge import TestRecord, run_test

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "faults"))
from chat_server import ChatServer, Plan

SERVERS = {  # slots, seconds a call, items, time-out, numbers of calls at once to compare with
    "serial": (1, 0.2, 60, 3.0, (1, 2, 4, 8)),
    "slots": (4, 0.5, 120, 4.0, (2, 4, 8, 16)),
    "roomy": (1000, 0.5, 3000, 30.0, (64, 128, 256)),
}


REFUSING = {  # what the server does, items
    "limited": (Plan(latency=0.5, per_minute=3), 10),
    "restarted": (Plan(latency=0.5, slots=4), 60),
    "dead": (None, 1000),
}
_STOPS_AFTER, _AWAY = 2.0, 8.0  # seconds


def run(
    slots: int, seconds: float, items: int, timeout: float, concurrency: int | None
) -> tuple[float, int, int]:
    """Wall seconds, requests and scored items of one run."""
    options = {} if concurrency is None else {"concurrency": concurrency}
    with ChatServer(Plan(latency=seconds, slots=slots)) as server:
        wall, record = timed(server.base_url, items, attempt_timeout=timeout, **options)
        return wall, server.stats().calls, record.counts.scored


def timed(base_url: str, items: int, **options: Any) -> tuple[float, TestRecord]:
    """Wall seconds and record of a run."""
    with scratch() as folder:
        begun = time.perf_counter()
        record = run_test(
            ExactMatch("slow", items, size=20),
            f"openai/any-model?base_url={base_url}",
            data_dir=folder,
            **options,
        )
        return time.perf_counter() - begun, record


def refused(name: str) -> None:
    """Print what becomes of a run whose calls are refused."""
    plan, items = REFUSING[name]
    if plan is None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        wall, record = timed(f"http://127.0.0.1:{port}/v1", items)
    else:
        with ChatServer(plan) as server, restarting(server) if name == "restarted" else nullcontext():
            wall, record = timed(server.base_url, items)
    counts, spent = record.counts, record.spent
    print(
        f"| {name} | {counts.scored} of {items} | {counts.failed} | {wall:.0f} | {spent.attempts if spent else ''} |"
    )


@contextmanager
def restarting(server: ChatServer) -> Iterator[None]:
    """Stop the server once, and start it again some seconds later."""

    def stop_and_start() -> None:
        time.sleep(_STOPS_AFTER)
        server.stop()
        time.sleep(_AWAY)
        server.start()

    thread = threading.Thread(target=stop_and_start)
    thread.start()
    yield
    thread.join()


def main() -> None:
    names = sys.argv[1:] or [*SERVERS, *REFUSING]
    if set(names) & set(SERVERS):
        header(
            "server",
            "best fixed concurrency",
            "seconds",
            "requests",
            "by itself: seconds",
            "requests",
            "scored",
        )
    for name in names:
        if name in SERVERS:
            compared(name)
    if set(names) & set(REFUSING):
        header("server", "scored", "failed", "seconds", "attempts")
    for name in names:
        if name in REFUSING:
            refused(name)


def compared(name: str) -> None:
    """Print how a server is asked by itself, beside the best fixed number of calls at once."""
    slots, seconds, items, timeout, numbers = SERVERS[name]
    fixed = {number: run(slots, seconds, items, timeout, number) for number in numbers}
    whole = {number: one for number, one in fixed.items() if one[2] == items}
    best = min(whole, key=lambda number: whole[number][0])
    wall, requests, scored = run(slots, seconds, items, timeout, None)
    print(
        f"| {name} | {best} | {whole[best][0]:.1f} | {whole[best][1]} | {wall:.1f} ({wall / whole[best][0]:.2f}) | "
        f"{requests} ({requests / whole[best][1]:.2f}) | {scored} of {items} |"
    )


if __name__ == "__main__":
    main()
