"""How long comparing runs takes, and how much memory: two runs of a million items, and 27 tests on 5 SUTs.

The runs are written as their journals would be. Processor seconds and the peak of memory, each in a process of its own.
Run by hand: uv run python benchmarks/comparing_runs.py [items]
"""

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from modelgauge import compare
from modelgauge.engine.run_files.folder import RunFolder

ITEMS = 1_000_000
TESTS, SUTS, ITEMS_EACH = 27, 5, 1_300


def write_run(folder: Path, run_id: str, test: str, sut: str, items: int, invocation: str) -> None:
    """A run of items with a chat of two messages, a context of two fields, and an answer of some 300 characters."""
    drawn = random.Random(f"{test} {sut}")
    run = RunFolder(folder / "runs" / run_id)
    run.path.mkdir(parents=True)
    said = {
        "schema_version": 1, "run_id": run_id, "invocation_id": invocation,
        "run_timestamp": "2026-01-31T12:00:00+00:00", "test_uid": test, "sut_uid": sut,
        "test_initialization": {"uid": test, "class_name": "m:T", "cache_version": 0, "arguments": {}, "opaque": []},
        "sut_initialization": {"uid": sut, "class_name": "m:S", "cache_version": 0, "arguments": {}, "opaque": []},
    }  # fmt: skip
    (run.path / "run.json").write_text(json.dumps(said), encoding="utf-8")
    counts = {"items": items, "not_begun": 0, "scored": items}
    known = {"counts": counts, "ranges": {"accuracy": [0, 1]}, "directions": {"accuracy": "higher"}}
    (run.path / "record.json").write_text(json.dumps({**said, **known}), encoding="utf-8")
    order = [*range(items)]
    drawn.shuffle(order)
    with run.journal.open("w", encoding="utf-8") as file:
        for index in order:
            file.write(f"{line(index, right=drawn.random() < 0.7)}\n")


def line(index: int, *, right: bool) -> str:
    question = (
        f"Question {index}: a farmer has {index % 977} sheep and sells {index % 13} of them on each day."
    )
    prompt = {
        "messages": [{"role": "system", "text": "Think, then answer."}, {"role": "user", "text": question}]
    }
    completion = {
        "text": f"The farmer sells {index % 13} sheep a day, and a week has seven days. " * 4 + f"Answer: {index}",
        "reasoning": None, "raw_text": None, "truncated_reasoning": False, "top_logprobs": None, "tool_calls": None,
        "finish_reason": "stop", "metadata": {},
    }  # fmt: skip
    item = {
        "prompts": [{"prompt": prompt, "source_id": f"q{index}", "context": {"answer": index, "topic": index % 7}}],
        "context": None, "id": f"question-{index}",
    }  # fmt: skip
    interaction = {
        "prompt_index": 0, "repeat": 0, "key": f"{index:064x}",
        "response": {"completions": [{"completion": completion, "annotations": {}}], "usage": None},
    }  # fmt: skip
    record = {
        "kind": "item", "index": index, "test_item": item, "interactions": [interaction],
        "measurements": {"accuracy": float(right)}, "binary": ["accuracy"], "repeat_measurements": [],
        "digests": None, "redacted": False,
    }  # fmt: skip
    return json.dumps(record, separators=(",", ":"))


def two_runs(folder: Path, items: int) -> None:
    write_run(folder, "a", "exam", "small", items, "a")
    write_run(folder, "b", "exam", "big", items, "b")


def many_runs(folder: Path) -> None:
    for test in range(TESTS):
        for sut in range(SUTS):
            write_run(folder, f"{test:02}-{sut}", f"test_{test:02}", f"sut_{sut}", ITEMS_EACH, "all")


def measured(folder: Path, what: str) -> str:
    """What a process of its own says of a comparison."""
    made = subprocess.run(
        [sys.executable, __file__, "--compare", what, str(folder)], capture_output=True, text=True, check=True
    )
    return made.stdout.strip()


def compared(what: str, folder: Path) -> None:
    began, wall = time.process_time(), time.perf_counter()
    if what == "two":
        found = compare("a", "b", data_dir=folder)
    elif what == "groups":
        found = compare("a", "b", data_dir=folder, match="input", group_by="topic")
    else:
        found = compare("all", baseline_sut="sut_0", data_dir=folder)
    paired = sum(comparison.n_paired for comparison in found.comparisons)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{len(found.comparisons)} comparisons of {paired:,} pairs: {time.process_time() - began:.1f} s of processor, "
        f"{time.perf_counter() - wall:.1f} s, {peak:.0f} MiB at most"
    )


def main() -> None:
    items = int(sys.argv[1]) if len(sys.argv) > 1 else ITEMS
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        two_runs(Path(folder), items)
        print(f"two runs of {items:,} items: {measured(Path(folder), 'two')}", flush=True)
        print(f"the same by input, in groups: {measured(Path(folder), 'groups')}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        many_runs(Path(folder))
        print(f"{TESTS} tests on {SUTS} SUTs: {measured(Path(folder), 'all')}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--compare"]:
        compared(sys.argv[2], Path(sys.argv[3]))
    else:
        main()
