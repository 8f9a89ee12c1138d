"""How often 95 % intervals hold the truth, by simulation: of means, of clustered means, of pairs, of finite sets.

Run by hand: uv run python benchmarks/coverage.py [samples]
"""

import itertools
import math
import sys
from collections.abc import Callable

import numpy as np

from modelgauge.data.annotations import MeasuredTestItem
from modelgauge.data.items import TestItem
from modelgauge.stats import (
    MeasuredItems,
    bounded_interval,
    imbens_manski_interval,
    mean,
    mean_error,
    t_interval,
    tango_interval,
    wilson_interval,
)

Interval = tuple[float, float]
SIZES = (5, 20, 100)
ALPHA = 0.05
GRID = np.linspace(0.0005, 0.9995, 1000)
generator = np.random.default_rng(1)

SCORES: dict[str, tuple[Callable[[int], np.ndarray], float]] = {
    "all 0.7": (lambda n: np.full(n, 0.7), 0.7),
    "uniform": (generator.random, 0.5),
    "near 0: beta(0.5, 5)": (lambda n: generator.beta(0.5, 5, n), 1 / 11),
    "near 1: beta(20, 1)": (lambda n: generator.beta(20, 1, n), 20 / 21),
    "90 % 0, else 0.5": (lambda n: 0.5 * (generator.random(n) < 0.1), 0.05),
    "97 % 1, else uniform": (
        lambda n: np.where(generator.random(n) < 0.97, 1, generator.random(n)),
        0.985,
    ),
    "99 % 0.7, else 0": (lambda n: 0.7 * (generator.random(n) < 0.99), 0.693),
    "two humps: beta(0.2, 0.2)": (lambda n: generator.beta(0.2, 0.2, n), 0.5),
    "narrow: beta(50, 50)": (lambda n: generator.beta(50, 50, n), 0.5),
    "1 to 5 stars": (lambda n: generator.choice(5, n, p=[0.05, 0.05, 0.1, 0.3, 0.5]) / 4, 0.7875),
}


def student(values: np.ndarray) -> Interval:
    interval = t_interval(mean_error(values))
    return (float(values[0]),) * 2 if interval is None else (max(0.0, interval[0]), min(1.0, interval[1]))


def wilson_of_mean(values: np.ndarray) -> Interval:
    return wilson_interval(float(values.sum()), len(values)) or (0.0, 1.0)


def bernstein(values: np.ndarray) -> Interval:
    """Maurer and Pontil (2009), theorem 4, on both sides."""
    n, log = len(values), math.log(4 / ALPHA)
    half = math.sqrt(2 * values.var(ddof=1) * log / n) + 7 * log / (3 * (n - 1))
    return max(0.0, values.mean() - half), min(1.0, values.mean() + half)


def betting(values: np.ndarray) -> Interval:
    """The hedged capital of Waudby-Smith and Ramdas (2024), with their bets for a fixed number of values."""
    n = len(values)
    steps = np.arange(1, n + 1)
    means = (0.5 + values.cumsum()) / (steps + 1)
    variances = (0.25 + ((values - means) ** 2).cumsum()) / (steps + 1)
    bets = np.sqrt(2 * math.log(2 / ALPHA) / (n * np.append(0.25, variances[:-1])))[:, None]
    distances = values[:, None] - GRID
    up = np.log1p(np.minimum(bets, 0.5 / GRID) * distances).cumsum(0)
    down = np.log1p(-np.minimum(bets, 0.5 / (1 - GRID)) * distances).cumsum(0)
    kept = GRID[(np.maximum(up, down) + math.log(0.5)).max(0) < math.log(1 / ALPHA)]
    return (kept[0] - 0.001, kept[-1] + 0.001) if len(kept) else (values.mean(),) * 2


def bounded(values: np.ndarray) -> Interval:
    return bounded_interval(values, 0, 1) or (0.0, 1.0)


def held(interval: Interval, truth: float) -> bool:
    return interval[0] - 1e-9 <= truth <= interval[1] + 1e-9


def cell(intervals: list[Interval], truth: float) -> str:
    share = np.mean([held(interval, truth) for interval in intervals])
    return f"{share:.3f} ({np.mean([high - low for low, high in intervals]):.3f})"


def table(title: str, *columns: str) -> None:
    print(f"\n{title}: coverage (mean width)\n\n| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")


def of_scores(samples: int) -> None:
    methods = (student, wilson_of_mean, bernstein, betting, bounded)
    table(
        "Means of scores from 0 to 1",
        "n",
        "scores",
        *(method.__name__.replace("_", " ") for method in methods),
    )
    for n in SIZES:
        for name, (draw, truth) in SCORES.items():
            drawn = [draw(n) for _ in range(samples)]
            cells = [
                cell([method(values) for values in drawn[: 300 if method is betting else None]], truth)
                for method in methods
            ]
            print("|", " | ".join([str(n), name, *cells]), "|")


def measured(values: np.ndarray, shared: list[int] | None = None, failed: int = 0) -> MeasuredItems:
    item = TestItem(["q"], id="q")
    items = [
        MeasuredTestItem.model_construct(test_item=item, measurements={"x": float(value)}) for value in values
    ]
    return MeasuredItems.of(items, ranges={"x": (0, 1)}, shared=shared, failed=[item] * failed)


def of_right_answers(samples: int) -> None:
    table("Right and wrong answers", "share right", *(f"n = {n}" for n in SIZES))
    for truth in (0.5, 0.7, 0.9, 0.97):
        cells = [
            cell([wilson_interval(right, n) for right in generator.binomial(n, truth, samples)], truth)
            for n in SIZES
        ]
        print("|", " | ".join([str(truth), *cells]), "|")


def of_shared_answers(samples: int) -> None:
    table("40 items of 10 distinct prompts, 4 of each", "share right", "as 40 items", "as 10 prompts")
    labels = [place // 4 for place in range(40)]
    for truth in (0.5, 0.7, 0.8, 0.9, 0.95):
        drawn = [np.repeat(generator.random(10) < truth, 4) for _ in range(samples)]
        as_items = [mean(measured(values), "x").interval for values in drawn]
        as_prompts = [mean(measured(values, labels), "x").interval for values in drawn]
        print(f"| {truth} | {cell(as_items, truth)} | {cell(as_prompts, truth)} |")


def clustered(values: np.ndarray, labels: np.ndarray, *, imaginary: bool) -> Interval:
    error = mean_error(values, labels)
    if not error.stderr:
        groups = int(labels.max()) + 1
        return wilson_interval(error.mean * groups, groups)
    if imaginary:
        return bounded_interval(values, 0, 1, clusters=labels)
    low, high = t_interval(error)
    return max(0.0, low), min(1.0, high)


CHANCES: dict[str, Callable[[float, int], np.ndarray]] = {
    "independent": lambda truth, groups: np.full(groups, truth),
    "correlated 0.5": lambda truth, groups: generator.beta(truth, 1 - truth, groups),
    "all alike": lambda truth, groups: (generator.random(groups) < truth).astype(float),
}


def draw_clustered(alike: str, truth: float, sizes: np.ndarray) -> np.ndarray:
    chances = np.repeat(CHANCES[alike](truth, len(sizes)), sizes)
    return (generator.random(len(chances)) < chances).astype(float)


def of_clusters(samples: int) -> None:
    table(
        "Clustered right and wrong answers",
        "clusters",
        "of sizes",
        "share right",
        "within a cluster",
        "CR2 alone",
        "CR2 with imaginary clusters",
    )
    for groups in (5, 20, 100):
        unequal = np.maximum(1, np.round(20 / np.arange(1, groups + 1) ** 0.7)).astype(int)
        for kind, sizes in (("4", np.full(groups, 4)), (f"1 to 20: {unequal.sum()}", unequal)):
            labels = np.repeat(np.arange(groups), sizes)
            for truth in (0.5, 0.9):
                for alike in CHANCES:
                    drawn = [draw_clustered(alike, truth, sizes) for _ in range(samples)]
                    cells = [
                        cell([clustered(one, labels, imaginary=imaginary) for one in drawn], truth)
                        for imaginary in (False, True)
                    ]
                    print("|", " | ".join([str(groups), kind, str(truth), alike, *cells]), "|")


def of_pairs(samples: int) -> None:
    table("Two systems on the same items", "only baseline right", "only candidate right", "n", "t", "Tango")
    for baseline, candidate in ((0.2, 0.1), (0.05, 0.05), (0.05, 0.01), (0.3, 0.3)):
        for n in SIZES:
            counts = generator.multinomial(n, [baseline, candidate, 1 - baseline - candidate], samples)
            signs = [np.repeat([-1.0, 1.0, 0.0], row) for row in counts]
            student_ = [t_interval(mean_error(one)) or (one[0], one[0]) for one in signs]
            tango = [tango_interval(*map(int, row[:2]), n) for row in counts]
            truth = candidate - baseline
            print(f"| {baseline} | {candidate} | {n} | {cell(student_, truth)} | {cell(tango, truth)} |")


def of_finite_sets(samples: int) -> None:
    table(
        "Samples of 200 questions, about these 200",
        "share right",
        "sample",
        "about all questions like these",
        "about these",
    )
    for truth in (0.5, 0.9):
        questions = (np.arange(200) < 200 * truth).astype(float)
        for n in (20, 100, 180):
            drawn = [generator.choice(questions, n, replace=False) for _ in range(samples)]
            endless, finite = [], []
            for values in drawn:
                items = measured(values)
                endless.append(mean(items, "x").interval)
                items.population = 200
                finite.append(mean(items, "x").interval)
            print(f"| {truth} | {n} | {cell(endless, truth)} | {cell(finite, truth)} |")


def of_failing_judges(samples: int) -> None:
    """An item passes two metrics, one of them asks a judge that fails on a fifth of the items."""
    table(
        "Passed, where a judge fails on 20 %", "n", "shown", "known failures counted", "shown", "all scored"
    )
    truth = 0.6 * 0.7
    for n in (20, 100, 400, 1000):
        counted, scored = [], []
        for _ in range(samples):
            first, second, answers = (generator.random(n) < share for share in (0.6, 0.7, 0.8))
            passed = first & second
            counted.append((passed[answers].sum(), (answers | ~first).sum()))
            scored.append((passed[answers].sum(), answers.sum()))
        cells = [
            f"{np.mean([right / of for right, of in one]):.2f} | "
            + cell([wilson_interval(int(right), int(of)) for right, of in one], truth)
            for one in (counted, scored)
        ]
        print("|", " | ".join([str(n), *cells]), "|")


def imbens_manski(values: np.ndarray, failed: np.ndarray) -> Interval:
    """The interval with normal quantiles around the bounds, as it was published."""
    low, high = (mean_error(np.where(failed, end, values)) for end in (0.0, 1.0))
    stderrs = max(low.stderr or 0, 1e-9), max(high.stderr or 0, 1e-9)
    return imbens_manski_interval((low.mean, high.mean), stderrs)


def failing(values: np.ndarray, truth: float, share: float, why: str) -> np.ndarray:
    """Which items fail: a share of all, at random or the more likely the lower or the higher their score."""
    relative = {
        "at random": 1.0,
        "low scores": (1 - values) / (1 - truth),
        "high scores": values / truth,
    }[why]
    return generator.random(len(values)) < np.minimum(share * relative, 1)


def of_failed_items(samples: int) -> None:
    table("Items that failed", "scores", "n", "failed", "which", "scored items", "Imbens and Manski", "here")
    rates: dict[str, tuple[Callable[[int], np.ndarray], float]] = {
        f"right and wrong: {rate}": (lambda n, rate=rate: (generator.random(n) < rate) * 1.0, rate)
        for rate in (0.5, 0.8, 0.97)
    }
    names = ("near 0: beta(0.5, 5)", "90 % 0, else 0.5", "1 to 5 stars")
    for name, (draw, truth) in (rates | {name: SCORES[name] for name in names}).items():
        for n, share in itertools.product((20, 100), (0.02, 0.1, 0.3)):
            for why in ("at random", "low scores", "high scores"):
                found: dict[str, list[Interval]] = {"scored": [], "normal": [], "here": []}
                for _ in range(samples):
                    values = draw(n)
                    failed = failing(values, truth, share, why)
                    if failed.all():
                        continue
                    estimate = mean(measured(values[~failed], failed=int(failed.sum())), "x")
                    found["scored"].append(estimate.interval)
                    found["here"].append(estimate.bounds_interval or estimate.interval)
                    found["normal"].append(imbens_manski(values, failed))
                cells = [cell(intervals, truth) for intervals in found.values()]
                print("|", " | ".join([name, str(n), str(share), why, *cells]), "|")


def main() -> None:
    samples = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    print(f"Coverage of 95 % intervals, {samples} samples each (betting: 300)")
    parts = (
        of_scores,
        of_right_answers,
        of_shared_answers,
        of_failing_judges,
        of_clusters,
        of_pairs,
        of_finite_sets,
        of_failed_items,
    )
    for part in parts:
        part(samples)


if __name__ == "__main__":
    main()
