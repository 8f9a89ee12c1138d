"""How many test cases `evaluate` judges a second by a trivial metric, and 1,000 judged ones beside a bare client.


Run it on an idle machine: python benchmarks/evals.py
"""

import asyncio
import statistics
import tempfile
import time

from modelgauge import FunctionSUT, Score
from modelgauge.evals import LLMTestCase, evaluate
from modelgauge.metrics import ExactMatchMetric, Metric

RUNS = 5
CASES = 10_000
JUDGED = 1_000
AT_ONCE = 100
ANSWER_TIME = 0.1


class Trivial(Metric):
    """Async, so that no thread is needed."""

    async def score(self, test_case):
        return float(test_case.actual_output == test_case.expected_output)


class Judged(Metric):
    """Asks one question."""

    async def score(self, test_case):
        answer = await self.ask("judge", f"Is this right? {test_case.input}")
        return Score(float(answer.completions[0].text))


async def slow_judge(_):
    """A judge behind a network."""
    await asyncio.sleep(ANSWER_TIME)
    return "1"


def cases(number):
    return [LLMTestCase(f"question {place}", "yes", "yes") for place in range(number)]


def seconds(given, metric, **options):
    with tempfile.TemporaryDirectory(prefix="modelgauge-benchmark-") as folder:
        begun = time.perf_counter()
        result = evaluate(given, [metric], data_dir=folder, print_results=False, **options)
        taken = time.perf_counter() - begun
    assert result.success
    assert len(result) == len(given)
    return taken


async def bare_client():
    places = asyncio.Semaphore(AT_ONCE)

    async def ask(number):
        async with places:
            return await slow_judge(str(number))

    begun = time.perf_counter()
    await asyncio.gather(*map(ask, range(JUDGED)))
    return time.perf_counter() - begun


def judged(*, use_cache):
    judge = FunctionSUT("judge", slow_judge, max_concurrency=AT_ONCE)
    metric = Judged(model=judge)
    return lambda: seconds(cases(JUDGED), metric, max_concurrent=AT_ONCE, use_cache=use_cache)


def main():
    given = cases(CASES)
    for name, metric in (("async metric", Trivial()), ("ExactMatchMetric", ExactMatchMetric())):
        for use_cache in (True, False):
            taken = sorted(seconds(given, metric, use_cache=use_cache) for _ in range(RUNS))
            cached = "with the cache" if use_cache else "without the cache"
            rates = f"median {CASES / taken[RUNS // 2]:,.0f}, best {CASES / taken[0]:,.0f} cases a second"
            print(f"{name}, {cached}: {rates}")
    ways = {
        "bare client": lambda: asyncio.run(bare_client()),
        "without the cache": judged(use_cache=False),
        "with the cache": judged(use_cache=True),
    }
    rows = {}
    for _ in range(RUNS):  # one after the other, since the machine has its moods
        for name, way in ways.items():
            rows.setdefault(name, []).append(way())
    bare = statistics.median(rows["bare client"])
    for name, taken in rows.items():
        middle = statistics.median(taken)
        print(
            f"{JUDGED:,} judged cases, {AT_ONCE} at once, {name}: {middle:.3f} s, {middle / bare:.3f} of bare"
        )


if __name__ == "__main__":
    main()
