"""What the page of a run costs: seconds and memory beside `show` of the same run, and the file's size.

The run is written as its journal would be, 2.1 KB an item. Each figure is of a process of its own, whose processor time
stands beside that of reading and parsing the journal line by line, since machines differ.
Run by hand: uv run python benchmarks/pages.py [items]
"""

import json
import os
import random
import resource
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

from common import RUNS, header, scratch

from modelgauge.documents.terminal import Style, as_text
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.reports.runs_report import runs_document
from modelgauge.runs.recorded_run import recorded_run

ITEMS = 10_000
WORDS = [f"word{number}" for number in range(3000)]


def write_run(data: Path, items: int) -> Path:
    """A run whose items have a question of 60 words, an answer of 120, a subject, and two measurements."""
    drawn = random.Random(1)
    run = RunFolder(data / "runs" / "pages")
    run.path.mkdir(parents=True)
    made = {"class_name": "m:T", "cache_version": 0, "arguments": {}, "opaque": []}
    said = {
        "schema_version": 1, "run_id": "pages", "invocation_id": "pages", "run_timestamp": "2026-01-31T12:00:00+00:00",
        "test_uid": "exam", "sut_uid": "sut", "test_initialization": {"uid": "exam", **made},
        "sut_initialization": {"uid": "sut", **made},
    }  # fmt: skip
    (run.path / "run.json").write_text(json.dumps(said), encoding="utf-8")
    known = {"counts": {"items": items, "not_begun": 0, "scored": items}, "seconds": 1.0}
    (run.path / "record.json").write_text(json.dumps({**said, **known}), encoding="utf-8")
    with run.journal.open("w", encoding="utf-8") as file:
        for index in range(items):
            file.write(f"{line(index, drawn)}\n")
    return run.path


def line(index: int, drawn: random.Random) -> str:
    question = f"Question {index}: {' '.join(drawn.choices(WORDS, k=60))}"
    item = {
        "prompts": [{"prompt": {"text": question}, "source_id": None, "context": None}],
        "context": {"target": str(index), "subject": f"s{index % 20}"}, "id": f"question-{index}",
    }  # fmt: skip
    completion = {
        "text": " ".join(drawn.choices(WORDS, k=120)), "reasoning": None, "raw_text": None,
        "truncated_reasoning": False, "top_logprobs": None, "tool_calls": None, "finish_reason": "stop", "metadata": {},
    }  # fmt: skip
    interaction = {
        "prompt_index": 0, "repeat": 0, "key": f"{index:064x}",
        "response": {"completions": [{"completion": completion, "annotations": {}}], "usage": None},
    }  # fmt: skip
    record = {
        "kind": "item", "index": index, "test_item": item, "interactions": [interaction],
        "measurements": {"accuracy": float(index % 2), "length": float(len(completion["text"]))},
        "binary": ["accuracy"], "repeat_measurements": [], "digests": None, "redacted": False,
    }  # fmt: skip
    return json.dumps(record, separators=(",", ":"))


def figures(path: Path, work: str) -> tuple[float, float]:
    """Processor seconds, and MiB at the peak, of a process that does a work."""
    command = [sys.executable, __file__, f"--{work}", str(path)]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    seconds, peak = done.stdout.split()
    return float(seconds), float(peak)


def measured(work: str, path: Path) -> None:
    """Do a work in this process, and print its figures."""
    began = time.process_time()
    if work == "read":
        with (path / "items.jsonl").open("rb") as file:
            for one in file:
                json.loads(one)
    else:
        run = recorded_run(RunFolder(path))
        as_text(runs_document([run]), Style())
        if work == "page":
            run_page = import_module("modelgauge.reports.pages.run_page")
            with run_page.writing(path / "report.html") as write:
                run_page.write_runs([run], write)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(time.process_time() - began, peak)


def main() -> None:
    items = int(sys.argv[1]) if len(sys.argv) > 1 else ITEMS
    with scratch() as data:
        path = write_run(data, items)
        header(
            "items",
            "reading and parsing the journal",
            "show",
            "page beside show",
            "of reading",
            "memory",
            "file",
        )
        figures(path, "page")  # compiles the modules, as an installed package is compiled once
        for _ in range(RUNS):
            (read, _), (show, least), (page, most) = (figures(path, one) for one in ("read", "show", "page"))
            size = (path / "report.html").stat().st_size / 1e6
            print(
                f"| {items:,} | {read:.2f} s | {show:.2f} s, {least:.0f} MiB | {page - show:.2f} s | "
                f"{(page - show) / read:.1f} times | {most - least:.0f} MiB more | {size:.1f} MB |",
                flush=True,
            )


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1].startswith("--"):
        measured(sys.argv[1].removeprefix("--"), Path(sys.argv[2]))
    else:
        main()
