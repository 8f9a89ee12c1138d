"""W1 to W3: 10,000 items on an in-process SUT, without a cache, with a cold one and with a warm one.

Run by hand: uv run python benchmarks/engine.py
"""

import json
from pathlib import Path

import diskcache
from common import Echo, ExactMatch, ThreadedEcho, header, medians, scratch

from modelgauge import run_test

ITEMS = 10_000
GROUP = 500


def bare_loop(folder: Path) -> None:
    """The same work without a framework: ask, score, write the same lines."""
    padding = "x" * 1000
    scores = []
    with (folder / "bare.jsonl").open("w", encoding="utf-8") as file:
        for number in range(ITEMS):
            text = f"{number} {padding}"
            response = text
            score = float(response.partition(" ")[0] == str(number))
            scores.append(score)
            prompt = {"prompt": {"text": text}, "source_id": str(number), "context": number}
            completion = {"completion": {"text": response}, "annotations": {}}
            line = {
                "kind": "item",
                "index": number,
                "test_item": {"prompts": [prompt], "context": None, "id": str(number)},
                "interactions": [
                    {"prompt": prompt, "response": {"completions": [completion], "usage": None}}
                ],
                "measurements": {"accuracy": score},
            }
            file.write(json.dumps(line) + "\n")
    sum(scores)


def bare_sets(folder: Path) -> None:
    """diskcache alone: 1 KB values, 500 a transaction."""
    cache = diskcache.Cache(str(folder), eviction_policy="none", cull_limit=0)
    value = "x" * 1000
    for start in range(0, ITEMS, GROUP):
        with cache.transact():
            for number in range(start, start + GROUP):
                cache.set(f"{number:064d}", f"{number} {value}")
    cache.close()


def bare_gets(folder: Path) -> None:
    """diskcache alone: read all of them."""
    cache = diskcache.Cache(str(folder))
    for number in range(ITEMS):
        cache.get(f"{number:064d}")
    cache.close()


def run(folder: Path, sut: Echo, *, caching: bool) -> None:
    record = run_test(ExactMatch("exact", ITEMS), sut, data_dir=folder, caching=caching)
    if record.counts.scored != ITEMS or record.result["accuracy"].value != 1.0:
        raise SystemExit(f"wrong result: {record}")
    if caching and record.notes:  # what cannot be cached measures something else
        raise SystemExit(record.notes[0])


def cold(sut: Echo) -> None:
    with scratch() as folder:
        run(folder, sut, caching=True)


def fresh_sets() -> None:
    with scratch() as folder:
        bare_sets(folder)


def main() -> None:
    header()
    with scratch() as folder:
        medians(
            "W1",
            ITEMS,
            {
                "bare loop": lambda: bare_loop(folder),
                "async def": lambda: run(folder, Echo("echo"), caching=False),
                "plain def": lambda: run(folder, ThreadedEcho("echo"), caching=False),
            },
        )
    medians(
        "W2", ITEMS, {"diskcache, 500 sets a transaction": fresh_sets, "cold": lambda: cold(Echo("echo"))}
    )
    with scratch() as folder, scratch() as bare:
        bare_sets(bare)
        run(folder, Echo("echo"), caching=True)
        medians(
            "W3",
            ITEMS,
            {
                "diskcache gets": lambda: bare_gets(bare),
                "warm": lambda: run(folder, Echo("echo"), caching=True),
            },
        )


if __name__ == "__main__":
    main()
