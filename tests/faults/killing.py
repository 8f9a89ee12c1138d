"""Starting runs that are killed, and reading what they left: log, cache, journal."""

import json
import sqlite3
import subprocess
from collections import Counter
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import children
from run_child import Order

from modelgauge.cache.keys import unpack

SIGKILL = 9


class RunFactory:
    """Runs orders, each in a process of its own."""

    def __init__(self):
        script = Path(__file__).with_name("run_child.py")
        self._process = children.start(script, stdin=subprocess.PIPE, stderr=None)

    def do(self, order: Order) -> bool:
        """Do an order; whether the process was killed."""
        self._process.stdin.write(json.dumps(asdict(order)) + "\n")
        self._process.stdin.flush()
        ended = self._process.stdout.readline()
        assert ended.strip() in ("0", str(SIGKILL)), ended
        return int(ended) == SIGKILL

    def close(self):
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


def events(log: Path) -> list[tuple[str, str]]:
    """The events of the last process that wrote into the log."""
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    found = [tuple(line.partition(" ")[::2]) for line in lines]
    starts = [place for place, (event, _) in enumerate(found) if event == "start"]
    return found[starts[-1] :] if starts else []


def details(found: list[tuple[str, str]], kind: str) -> Counter[str]:
    """What the events of one kind were about."""
    return Counter(detail for event, detail in found if event == kind)


def committed(data_dir: Path) -> set[str]:
    """The prompts whose answers are in the cache, read past ModelGauge's own store."""
    database = data_dir / "cache" / "cache.db"
    if not database.exists():
        return set()
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        rows = connection.execute("SELECT key, value FROM Cache").fetchall() if "Cache" in tables else []
    requests = [json.loads(unpack(key, value).key.parts)[3] for key, value in rows]
    return {
        request if isinstance(request, str) else request["messages"][-1]["content"] for request in requests
    }


def journalled(folder: Path) -> list[str]:
    """The prompts of the whole lines of a journal."""
    path = folder / "items.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [json.loads(line)["test_item"]["prompts"][0]["prompt"]["text"] for line in lines]


def outcome(record) -> tuple:
    """What of a run may not depend on how it came about: counts of items, result, and the items in order."""
    counts = record.counts
    items = sorted(record.iter_items(), key=lambda record: record.index)
    return (
        (counts.items, counts.scored, counts.failed),
        record.result,
        record.cancelled,
        record.failure,
        [item.model_dump(mode="json") for item in items],
    )
