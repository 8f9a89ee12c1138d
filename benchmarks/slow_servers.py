"""How many calls at once a server gets that works on 1, 4 or 1,000: beside the best fixed `concurrency`.

Run by hand: uv run python benchmarks/slow_servers.py [serial slots roomy]
"""

import sys
import time
from pathlib import Path

from common import ExactMatch, header, scratch

from modelgauge import run_test

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "faults"))
from chat_server import ChatServer, Plan

SERVERS = {  # slots, seconds a call, items, time-out, numbers of calls at once to compare with
    "serial": (1, 0.2, 60, 3.0, (1, 2, 4, 8)),
    "slots": (4, 0.5, 120, 4.0, (2, 4, 8, 16)),
    "roomy": (1000, 0.5, 3000, 30.0, (64, 128, 256)),
}


def run(
    slots: int, seconds: float, items: int, timeout: float, concurrency: int | None
) -> tuple[float, int, int]:
    """Wall seconds, requests and scored items of one run."""
    with ChatServer(Plan(latency=seconds, slots=slots)) as server, scratch() as folder:
        begun = time.perf_counter()
        record = run_test(
            ExactMatch("slow", items, size=20),
            f"openai/any-model?base_url={server.base_url}",
            data_dir=folder,
            attempt_timeout=timeout,
            **({} if concurrency is None else {"concurrency": concurrency}),
        )
        return time.perf_counter() - begun, server.stats().calls, record.counts.scored


def main() -> None:
    header(
        "server", "best fixed concurrency", "seconds", "requests", "by itself: seconds", "requests", "scored"
    )
    for name in sys.argv[1:] or SERVERS:
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
