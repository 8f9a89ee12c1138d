"""10,000 test cases and a metric that computes: `evaluate` beside the same in other tools, in the same minute.

They are no dependencies of the project; those that are not installed are left out. On an idle machine:

    uv run --with pydantic-evals --with deepeval python benchmarks/peers.py
"""

import contextlib
import importlib.metadata
import io
import os
import statistics
import tempfile
import time

os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "YES"  # before it is imported

from modelgauge.evals import LLMTestCase, evaluate
from modelgauge.metrics import Metric

CASES = 10_000
FEW = 1_000  # for a tool that takes milliseconds a case
REPETITIONS = 5


class SameText(Metric):
    async def score(self, test_case):
        return float(test_case.actual_output == test_case.expected_output)


def modelgauge():
    """With the journal of its run on disk, without the cache."""
    cases = [LLMTestCase(f"question {place}", "yes", "yes") for place in range(CASES)]

    def once():
        with tempfile.TemporaryDirectory(prefix="modelgauge-benchmark-") as folder:
            evaluate(cases, [SameText()], data_dir=folder, print_results=False, use_cache=False)

    return CASES, once


def pydantic_evals():
    """In memory."""
    from pydantic_evals import Case, Dataset
    from pydantic_evals.evaluators import Evaluator

    class Same(Evaluator):
        async def evaluate(self, ctx):
            return float(ctx.output == ctx.expected_output)

    async def answer(_):
        return "yes"

    cases = [Case(name=f"{place}", inputs=f"{place}", expected_output="yes") for place in range(CASES)]
    dataset = Dataset(name="peers", cases=cases, evaluators=[Same()])
    return CASES, lambda: dataset.evaluate_sync(answer, progress=False)


def deepeval():
    """In memory, without its cache, its display and its pause between cases; 1,000 at once."""
    from deepeval import evaluate
    from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig
    from deepeval.metrics import BaseMetric
    from deepeval.test_case import LLMTestCase

    class Same(BaseMetric):
        async_mode, strict_mode, include_reason, evaluation_model = True, False, False, None
        __name__ = "Same"

        def __init__(self):
            self.threshold = 0.5

        def measure(self, test_case, *_args, **_kwargs):
            self.score = float(test_case.actual_output == test_case.expected_output)
            self.success = self.score >= self.threshold
            return self.score

        async def a_measure(self, test_case, *args, **kwargs):
            return self.measure(test_case, *args, **kwargs)

        def is_successful(self):
            return self.success

    cases = [
        LLMTestCase(input=f"{place}", actual_output="yes", expected_output="yes") for place in range(FEW)
    ]
    options = {
        "display_config": DisplayConfig(show_indicator=False, print_results=False),
        "async_config": AsyncConfig(max_concurrent=1_000, throttle_value=0),
        "cache_config": CacheConfig(write_cache=False, use_cache=False),
    }
    return FEW, lambda: evaluate(cases, [Same()], **options)


def rate(prepare):
    cases, once = prepare()
    taken = []
    for _ in range(REPETITIONS):
        begun = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()):
            once()
        taken.append(time.perf_counter() - begun)
    return cases / statistics.median(taken)


def main():
    for prepare in (modelgauge, pydantic_evals, deepeval):
        name = prepare.__name__.replace("_", "-")
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            print(f"{name}: not installed")
            continue
        with tempfile.TemporaryDirectory(prefix="modelgauge-benchmark-") as folder, contextlib.chdir(folder):
            measured = rate(prepare)  # some leave files where they are started
        print(f"{name} {version}: {measured:,.0f} cases a second")


if __name__ == "__main__":
    main()
