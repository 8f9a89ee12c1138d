"""What `modelgauge export` costs: seconds and memory for all tables of a run, and their size.

The run is that of `pages.py`. Each figure is of a process of its own; its processor time stands beside that of reading
and parsing the journal line by line, since machines differ.
Run by hand: uv run python benchmarks/exports.py [items]
"""

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

from common import header, scratch
from pages import write_run

from modelgauge.cli.main import cli

ITEMS = 100_000


def figures(path: Path, work: str) -> tuple[float, float]:
    """Processor seconds, and MiB at the peak, of a process that does a work."""
    command = [sys.executable, __file__, f"--{work}", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, peak = done.stdout.splitlines()[-1].split()
    return float(seconds), float(peak)


def measured(work: str, path: Path) -> None:
    """Do a work in this process, and print its figures."""
    began = time.process_time()
    if work == "read":
        with (path / "items.jsonl").open("rb") as file:
            for one in file:
                json.loads(one)
    else:
        cli.main(["export", str(path), "--to", work, "-o", str(path.parent / work)], standalone_mode=False)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(time.process_time() - began, peak)


def main() -> None:
    items = int(sys.argv[1]) if len(sys.argv) > 1 else ITEMS
    with scratch() as data:
        path = write_run(data, items)
        header("items", "to", "processor time", "of reading and parsing the journal", "memory", "files")
        read, _ = figures(path, "read")
        for work in ("csv", "jsonl", "parquet"):
            seconds, peak = figures(path, work)
            size = sum(file.stat().st_size for file in (path.parent / work).iterdir()) / 1e6
            row = (
                f"{items:,}",
                work,
                f"{seconds:.1f} s",
                f"{seconds / read:.1f} times",
                f"{peak:.0f} MiB",
                f"{size:.0f} MB",
            )
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1].startswith("--"):
        measured(sys.argv[1].removeprefix("--"), Path(sys.argv[2]))
    else:
        main()
