"""How many test cases `evaluate` and `assert_test` judge a second by a trivial metric, and 1,000 judged ones beside
a bare client.

The judge answers over HTTP, from a server on the loopback interface; and, to tell what is the engine's own share, from
a function of this process.

Run it on an idle machine: python benchmarks/evals.py
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import header, medians
from over_http import CALLS, CONCURRENCY, LATENCY, ChatServer, Plan, bare_calls
from over_http import name as server_name

from modelgauge import FunctionSUT, Score
from modelgauge.evals import LLMTestCase, evaluate
from modelgauge.metrics import ExactMatchMetric, Metric

RUNS = 5
CASES = 10_000


class Trivial(Metric):
    """Async, so that no thread is needed."""

    async def score(self, test_case):
        return float(test_case.actual_output == test_case.expected_output)


class Judged(Metric):
    """Asks one question."""

    async def score(self, test_case):
        answer = await self.ask("judge", test_case.input)
        return Score(float(bool(answer.completions[0].text)))


async def slow_judge(_):
    """A judge behind a network."""
    await asyncio.sleep(LATENCY)
    return "1"


def cases(number):
    return [LLMTestCase(f"question {place}", "yes", "yes") for place in range(number)]


ASSERTING = f"""
import time
from pathlib import Path
from modelgauge.evals import LLMTestCase, assert_test
from modelgauge.metrics import ExactMatchMetric

def test_many():
    begun = time.perf_counter()
    for place in range({CASES}):
        assert_test(LLMTestCase(f"question {{place}}", "yes", "yes"), [ExactMatchMetric()])
    Path("seconds").write_text(str(time.perf_counter() - begun))
"""


BARE = f"""
import pytest

@pytest.mark.parametrize("place", range({CASES}))
def test_one(place):
    assert place >= 0
"""

ASSERTING_EACH = f"""
import pytest
from modelgauge.evals import LLMTestCase, assert_test
from modelgauge.metrics import ExactMatchMetric

@pytest.mark.parametrize("place", range({CASES}))
def test_one(place):
    assert_test(LLMTestCase(f"question {{place}}", "yes", "yes"), [ExactMatchMetric()])
"""


def of_pytest(source):
    """The seconds that a test file wrote down, where it did, and the processor time of its process of pytest."""
    with tempfile.TemporaryDirectory(prefix="modelgauge-benchmark-") as folder:
        Path(folder, "test_many.py").write_text(source, encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_many.py"]
        before = os.times()
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        written = Path(folder, "seconds")
        seconds = float(written.read_text(encoding="utf-8")) if written.exists() else None
    return seconds, sum(after[2:4]) - sum(before[2:4])


def seconds(given, metric, **options):
    with tempfile.TemporaryDirectory(prefix="modelgauge-benchmark-") as folder:
        begun = time.perf_counter()
        result = evaluate(given, [metric], data_dir=folder, print_results=False, **options)
        taken = time.perf_counter() - begun
    assert result.success
    assert not result.record.notes  # what cannot be cached measures something else
    assert len(result) == len(given)
    return taken


async def bare_function():
    places = asyncio.Semaphore(CONCURRENCY)

    async def ask(number):
        async with places:
            return await slow_judge(str(number))

    await asyncio.gather(*map(ask, range(CALLS)))


def trivial():
    given = cases(CASES)
    for name, metric in (("async metric", Trivial()), ("ExactMatchMetric", ExactMatchMetric())):
        taken = sorted(seconds(given, metric) for _ in range(RUNS))
        print(
            f"{name}: median {CASES / taken[RUNS // 2]:,.0f}, best {CASES / taken[0]:,.0f} cases a second",
            flush=True,
        )
    taken = sorted(of_pytest(ASSERTING)[0] for _ in range(RUNS))
    print(
        f"assert_test: median {CASES / taken[RUNS // 2]:,.0f}, best {CASES / taken[0]:,.0f} cases a second",
        flush=True,
    )
    bare, each = (min(of_pytest(source)[1] for _ in range(RUNS)) / CASES for source in (BARE, ASSERTING_EACH))
    print(
        f"a test of pytest for each case: {1e6 * each:,.0f} us of processor time, {each / bare:.2f} times that of a "
        "test that does nothing",
        flush=True,
    )


def judged(name, bare, judge):
    """Judged cases beside the bare client, in turns, since the machine has its moods."""
    given = [LLMTestCase(f"{number} {'x' * 1000}", "yes", "yes") for number in range(CALLS)]
    metric = Judged(model=judge)
    evaluated = {
        f"without the cache, {name}": {"use_cache": False},
        f"with the cache, {name}": {"use_cache": True},
    }
    works = {
        what: lambda options=options: seconds(given, metric, max_concurrent=CONCURRENCY, **options)
        for what, options in evaluated.items()
    }
    medians("judged", CALLS, {f"bare client, {name}": lambda: asyncio.run(bare()), **works})


def main():
    trivial()
    header()
    with ChatServer(Plan(latency=LATENCY)) as server:
        judged("HTTP", lambda: bare_calls(server.base_url), server_name(server))
    judge = FunctionSUT("judge", slow_judge, version=1, max_concurrency=CONCURRENCY)  # cached by its version
    judged("in process", bare_function, judge)


if __name__ == "__main__":
    main()
