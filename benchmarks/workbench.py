"""The workbench on 100,000 runs and a million items: how fast its index is made, and how soon its pages answer.

The data is cheap to make: a few hundred real runs, of which each folder that follows has the journal and the manifest
as hard links, and a record of its own that says another time. The server is a process of its own; 20 readers ask it
for one page a second each, over HTTP.

    uv run python benchmarks/workbench.py --runs 100000 --seconds 60
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import sqlite3
import statistics
import subprocess
import sys
import threading
import time
from collections import defaultdict
from contextlib import closing
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import quote

from common import header, scratch

from modelgauge import PromptWithContext, TestItem, run_test
from modelgauge.testing import FakeSUT, FakeTest

TEMPLATES, ITEMS, READERS = 200, 10, 20
WORDS = [
    "ducks",
    "eggs",
    "market",
    "bolts",
    "fibre",
    "robe",
    "profit",
    "house",
    "sprints",
    "file",
    "train",
    "glass",
    "dozen",
    "pencil",
    "week",
    "share",
    "apple",
]
BEGAN = datetime(2024, 1, 1, tzinfo=UTC)


def make_runs(data: Path, count: int) -> None:
    """Real runs, and folders that share their journals and manifests."""
    drawn = random.Random(0)
    templates = []
    for number in range(min(TEMPLATES, count)):
        record = run_test(
            FakeTest(f"test_{number % 40}", [item(place, drawn) for place in range(ITEMS)], measure),
            FakeSUT(f"sut-{number % 17}", lambda _: " ".join(drawn.choices(WORDS, k=60))),
            data_dir=data / "templates",
        )
        templates.append(data / "templates" / "runs" / record.run_id)
    records = [json.loads((template / "record.json").read_text()) for template in templates]
    for number in range(count):
        began = BEGAN + timedelta(minutes=9 * number)
        folder = data / "runs" / f"{began:%Y%m%d-%H%M%S}-{number % 0xFFFFF:05x}0"
        folder.mkdir(parents=True)
        template, record = templates[number % len(templates)], records[number % len(templates)]
        (folder / "record.json").write_text(json.dumps({**record, "run_timestamp": began.isoformat()}))
        for name in ("items.jsonl", "run.json"):
            os.link(template / name, folder / name)


def item(place: int, drawn: random.Random) -> TestItem:
    text = f"Question {place}: {' '.join(drawn.choices(WORDS, k=40))}?"
    return TestItem([PromptWithContext(text, context={"target": drawn.choice(WORDS)})], id=f"item-{place}")


def measure(answered: object) -> dict[str, float]:
    return {"right": hash(str(answered)) % 3 > 0}


class Server:
    """A workbench on a data folder."""

    def __init__(self, data: Path) -> None:
        command = [sys.executable, "-m", "modelgauge", "serve", "--port", "0", "--data-dir", str(data)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.port = int(re.search(r":(\d+)/", self.process.stdout.readline())[1])

    def memory(self, what: str) -> float:
        """Resident memory in MB: VmRSS now, or VmHWM at most."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"{what}:\s+(\d+)", status)[1]) / 1000

    def processor_time(self) -> float:
        """Seconds of processor time so far."""
        user, system = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait()


def indexed(data: Path) -> int:
    """How many runs the index has."""
    try:
        with closing(
            sqlite3.connect(f"file:{data / 'workbench.sqlite'}?mode=ro", uri=True, timeout=60)
        ) as db:
            return int(db.execute("SELECT COUNT(*) FROM runs WHERE first_item IS NOT NULL").fetchone()[0])
    except sqlite3.OperationalError:  # it is being made
        return 0


def read(port: int, seconds: float, keys: list[str], seed: int, took: dict[str, list[float]]) -> None:
    """Ask for one page a second, as a reader does."""
    drawn = random.Random(seed)
    begun = time.monotonic() + seed / READERS  # not all at once
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    for number in range(int(seconds)):
        time.sleep(max(0.0, begun + number - time.monotonic()))
        kind, path = asked(drawn, keys)
        at = time.perf_counter()
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        took[kind].append(time.perf_counter() - at)
        assert answer.status == 200, (path, answer.status)


def asked(drawn: random.Random, keys: list[str]) -> tuple[str, str]:
    """A page, and what kind of page it is."""
    run = f"/runs/{quote(drawn.choice(keys))}"
    word, other = drawn.sample(WORDS, 2)
    choices = {
        "list": f"/runs?page={drawn.randint(1, 50)}",
        "list, filtered": f"/runs?test=test_{drawn.randint(0, 39)}&sort=longest",
        "list, searched": f"/runs?q=test_{drawn.randint(0, 39)}+sut-{drawn.randint(0, 16)}",
        "run": run,
        "run, searched": f"{run}?q={word}+{other}&show=wrong",
        "item": f"{run}/items/{drawn.randint(1, ITEMS)}",
        "search in all items": f"/items?q={word}+{other}",
    }
    kind = drawn.choice([*choices])
    return kind, choices[kind]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=100_000)
    arguments.add_argument("--seconds", type=int, default=60)
    arguments.add_argument("--data", type=Path, help="keep the data in this folder, and use what is there")
    given = arguments.parse_args()
    with scratch() as temporary:
        data = given.data or temporary
        if not (data / "runs").is_dir():
            make_runs(data, given.runs)
        keys = sorted(one.name for one in (data / "runs").iterdir())
        for one in data.glob("workbench.sqlite*"):
            one.unlink()
        begun = time.monotonic()
        server = Server(data)
        while indexed(data) < len(keys):
            time.sleep(1)
        took = time.monotonic() - begun
        print(f"Indexed {len(keys):,} runs, {ITEMS * len(keys):,} items in {took:.0f} s:", end=" ")
        print(
            f"{ITEMS * len(keys) / took:,.0f} items a second, at most {server.memory('VmHWM'):.0f} MB,",
            end=" ",
        )
        print(f"a file of {(data / 'workbench.sqlite').stat().st_size / 1e6:,.0f} MB.\n")
        times: dict[str, list[float]] = defaultdict(list)
        readers = [
            threading.Thread(target=read, args=(server.port, given.seconds, keys, seed, times))
            for seed in range(READERS)
        ]
        for one in readers:
            one.start()
        for one in readers:
            one.join()
        header("page", "requests", "median ms", "p95 ms", "slowest ms")
        everything = [one for several in times.values() for one in several]
        for kind, several in [*sorted(times.items()), ("all", everything)]:
            several.sort()
            shown = statistics.median(several), several[int(0.95 * len(several))], several[-1]
            print(f"| {kind} | {len(several):,} | {' | '.join(f'{1000 * one:.0f}' for one in shown)} |")
        print(f"\nResident memory {server.memory('VmRSS'):.0f} MB, at most {server.memory('VmHWM'):.0f} MB.")
        server.stop()


if __name__ == "__main__":
    main()
