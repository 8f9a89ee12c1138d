"""W6: peak memory of a whole process, 2 KB prompts and responses, 10,000 to 1,000,000 items; and of a driver.

Run by hand: uv run python benchmarks/memory.py [10000 100000 1000000]
"""

import resource
import subprocess
import sys
from pathlib import Path

from common import Echo, ExactMatch, header, scratch

from modelgauge import run_test
from modelgauge.config.settings import load_settings

NAMES = str(Path(__file__).with_name("executors.py"))
"""A plugin file: workers make their objects by names."""


def one(items: int, how: str) -> None:
    """Run in a process of its own, and print its peak in MB; that of its workers does not count."""
    with scratch() as folder:
        if how == "driver":
            record = run_test(
                f"items?items={items}&size=2000",
                "echo",
                data_dir=folder,
                caching=False,
                settings=load_settings(plugins=[NAMES]),
                executor="processes",
                workers=2,
            )
        else:
            record = run_test(
                ExactMatch("exact", items, size=2000),
                Echo("echo"),
                data_dir=folder,
                caching=how == "cold cache",
            )
    if record.counts.scored != items:
        raise SystemExit(f"not all scored: {record.counts}")
    if how == "cold cache" and record.notes:  # what cannot be cached measures something else
        raise SystemExit(record.notes[0])
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, record.seconds)


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        one(int(sys.argv[2]), sys.argv[3])
        return
    header("items", "how", "peak", "an item beyond the smallest", "time")
    sizes = [int(size) for size in sys.argv[1:]] or [10_000, 100_000, 1_000_000]
    for how in ("no cache", "cold cache", "driver"):
        smallest: float | None = None
        for items in sizes:
            arguments = [sys.executable, __file__, "--one", str(items), how]
            done = subprocess.run(arguments, check=True, capture_output=True, text=True)
            peak, seconds = (float(part) for part in done.stdout.split())
            smallest = peak if smallest is None else smallest
            beyond = 1024 * 1024 * (peak - smallest) / items
            print(f"| {items:,} | {how} | {peak:.0f} MB | {beyond:.0f} B | {seconds:.1f} s |", flush=True)


if __name__ == "__main__":
    main()
