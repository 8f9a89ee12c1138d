"""How often intervals of comparisons hold the truth, and how often their tests find what is not there, by simulation.

Coverage below 93.5 % is marked by an asterisk. Run by hand: uv run python benchmarks/comparisons.py [samples] [part]
"""

import sys
from collections.abc import Callable, Iterable
from itertools import combinations
from statistics import NormalDist

import numpy as np
from graded_scores import CASES, SIZES, drawn

from modelgauge.comparison.compare import compare_pairs
from modelgauge.comparison.item_pairs import ItemPairs, PairedSide
from modelgauge.comparison.options import CompareOptions
from modelgauge.comparison.pairing.paired_runs import PairedRuns
from modelgauge.comparison.result import Comparison, System
from modelgauge.stats import (
    bootstrap_difference,
    difference_bounds,
    discordant_shares,
    equivalence_test,
    interaction_test,
    mcnemar_test,
    mean_error,
    paired_difference,
    sign_flip_test,
    t_interval,
    wilcoxon_test,
)
from modelgauge.stats.distributions import student_t_sf

Interval = tuple[float, float]
LEAST = 0.935
generator = np.random.default_rng(1)


def coverage(intervals: Iterable[Interval | None], truth: float) -> str:
    """The share of intervals that hold the truth, and their mean width; how often there is one, if not always."""
    held = [*intervals]
    found = [one for one in held if one is not None]
    share = np.mean([low - 1e-9 <= truth <= high + 1e-9 for low, high in found])
    exist = "" if len(found) == len(held) else f", in {min(len(found) / len(held), 0.99):.0%}"
    return f"{marked(share)} ({np.mean([high - low for low, high in found]):.3f}{exist})"


def marked(share: float) -> str:
    return f"{share:.3f}{'*' if share < LEAST else ''}"


def errors(p_values: Iterable[float | None]) -> str:
    """The share of p values below 5 %; one that does not exist finds nothing."""
    return f"{np.mean([p is not None and p < 0.05 for p in p_values]):.3f}"


def table(title: str, *columns: str) -> None:
    print(f"\n{title}\n\n| {' | '.join(columns)} |\n|{' --- |' * len(columns)}", flush=True)


def row(*cells: object) -> None:
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def right_and_wrong(n: int, rates: tuple[float, float], correlation: float) -> tuple[np.ndarray, np.ndarray]:
    losses, wins = discordant_shares(*rates, correlation)
    both = rates[0] - losses
    kinds = generator.choice(4, n, p=np.maximum(0, [both, losses, wins, 1 - both - losses - wins]))
    return np.isin(kinds, (0, 1)) * 1.0, np.isin(kinds, (0, 2)) * 1.0


def of_right_and_wrong(samples: int) -> None:
    table(
        "Right and wrong answers",
        "baseline", "candidate", "correlation", "n", "Tango", "Student's t", "McNemar exact", "mid-p", "t",
    )  # fmt: skip
    for rates in ((0.5, 0.5), (0.9, 0.9), (0.99, 0.99), (0.5, 0.6), (0.9, 0.95), (0.99, 0.95)):
        for correlation in (0.0, 0.4):
            for n in (10, 50, 200):
                drawn = [right_and_wrong(n, rates, correlation) for _ in range(samples)]
                found = [paired_difference(*pair, declared=(0, 1)) for pair in drawn]
                plain = [mean_error(after - before) for before, after in drawn]
                discordances = [mcnemar_test(*pair) for pair in drawn]
                truth = rates[1] - rates[0]
                tests = ["", "", ""]
                if not truth:
                    tests = [
                        errors(discordance.p_value for discordance in discordances),
                        errors(discordance.p_mid for discordance in discordances),
                        errors(
                            2 * student_t_sf(abs(e.mean) / e.stderr, e.df) if e.stderr else 1.0 for e in plain
                        ),
                    ]
                row(
                    *rates, correlation, n,
                    coverage((one.difference.interval for one in found), truth),
                    coverage((t_interval(one) or (one.mean, one.mean) for one in plain), truth),
                    *tests,
                )  # fmt: skip


DIFFERENCES: dict[str, Callable[[int], np.ndarray]] = {
    "normal": generator.standard_normal,
    "skewed: exponential": lambda n: generator.exponential(1, n) - 1,
    "heavy tails: t with 3 df": lambda n: generator.standard_t(3, n),
    "80 % are 0, else normal": lambda n: generator.standard_normal(n) * (generator.random(n) < 0.2),
    "90 % are 0, else exponential": lambda n: generator.exponential(1, n) * (generator.random(n) < 0.1) - 0.1,
}


def of_numbers(samples: int) -> None:
    table("Numbers", "differences", "n", "Student's t", "BCa", "t", "sign flips", "Wilcoxon", "bootstrap")
    for name, draw in DIFFERENCES.items():
        for n in (10, 50, 200):
            zeros, drawn = np.zeros(n), [draw(n) for _ in range(samples)]
            found = [paired_difference(zeros, one) for one in drawn]
            boots = [bootstrap_difference(zeros, one, resamples=500) for one in drawn]
            row(
                name, n,
                coverage((one.difference.interval for one in found), 0.0),
                coverage((boot.interval for boot in boots), 0.0),
                errors(one.p_value for one in found),
                errors(sign_flip_test(zeros, one, permutations=999) for one in drawn),
                errors(wilcoxon_test(zeros, one) for one in drawn),
                errors(boot.p_value for boot in boots),
            )  # fmt: skip


def of_graded_scores(samples: int) -> None:
    table("Graded scores from 0 to 1", "scores", "n", "here", "Student's t", "here finds", "t finds")
    for name in CASES:
        for n in SIZES:
            pairs, truth = drawn(name, n, samples)
            found = [paired_difference(*pair, declared=(0, 1.0001)) for pair in pairs]
            plain = [mean_error(after - before) for before, after in pairs]
            finds = ["", ""]
            if truth == 0:
                finds = [
                    errors(one.p_value for one in found),
                    errors(
                        2 * student_t_sf(abs(e.mean) / e.stderr, e.df) if e.stderr else None for e in plain
                    ),
                ]
            row(
                name, n,
                coverage((one.difference.interval for one in found), truth),
                coverage((t_interval(one) or (one.mean, one.mean) for one in plain), truth),
                *finds,
            )  # fmt: skip


def of_missing_items(samples: int) -> None:
    table(
        "Missing items: the interval around the bounds", "n", "missing", "why", "all items", "complete cases"
    )
    for n in (50, 200):
        for share in (0.02, 0.1):
            for why in ("at random", "where the candidate is wrong"):
                bounds, complete = [], []
                for _ in range(samples):
                    before, after = right_and_wrong(n, (0.7, 0.75), 0.4)
                    lost = generator.random(n) < (share if why == "at random" else 4 * share * (1 - after))
                    complete.append(
                        paired_difference(before[~lost], after[~lost], declared=(0, 1)).difference.interval
                    )
                    after[lost] = np.nan
                    bounds.append(difference_bounds(before, after, 0, 1).interval)
                row(n, share, why, coverage(bounds, 0.05), coverage(complete, 0.05))


def of_equivalence(samples: int) -> None:
    table("Equivalence, where the difference is the margin: found in (at most 0.05)", "values", "n", "share")
    for n in (50, 200, 1000):
        found = [
            equivalence_test(np.zeros(n), generator.normal(0.2, 1, n), 0.2).p_equivalent
            for _ in range(samples)
        ]
        row("normal", n, errors(found))
        for rates in ((0.85, 0.9), (0.94, 0.99)):
            pairs = (right_and_wrong(n, rates, 0.2) for _ in range(samples))
            row(
                f"{rates[0]} and {rates[1]}",
                n,
                errors(equivalence_test(*pair, 0.05).p_equivalent for pair in pairs),
            )
    table(
        "Graded scores, where the candidate is worse by the margin: not worse in (at most 0.05)",
        "scores", "n", "share",
    )  # fmt: skip
    for name in ("all lose 0.03", *(name for name in CASES if "lose" in name and "0.97" not in name)):
        for n in (5, *SIZES):
            pairs, truth = ([(np.full(n, 0.9), np.full(n, 0.87))] * samples, -0.03)
            if name in CASES:
                pairs, truth = drawn(name, n, samples)
            found = (equivalence_test(*pair, -truth, declared=(0, 1.0001)) for pair in pairs)
            row(name, n, errors(one.p_not_lower for one in found))


def of_leaderboards(samples: int) -> None:
    table(
        "Leaderboards: all hold together, and alike systems that are told apart",
        "systems", "values", "n", "intervals", "ranks", "told apart",
    )  # fmt: skip
    cases: dict[str, Callable[[int, int], tuple[np.ndarray, np.ndarray]]] = {
        "normal, all alike": lambda n, m: (normal_systems(n, m, np.zeros(m)), np.zeros(m)),
        "normal, two alike": lambda n, m: (
            normal_systems(n, m, np.arange(m) // 2 * 0.3),
            np.arange(m) // 2 * 0.3,
        ),
        "right and wrong, all alike": lambda n, m: (
            (normal_systems(n, m, np.zeros(m)) > -0.5) * 1.0,
            np.zeros(m),
        ),
    }
    for m in (3, 6):
        for name, draw in cases.items():
            for n in (10, 50, 200):
                held = []
                for _ in range(samples // 4):
                    values, truth = draw(n, m)
                    (board,) = compared(
                        [(values[:, 0], after) for after in values.T[1:]], several=True
                    ).leaderboard
                    of_label = dict(zip(map(str, range(m)), truth, strict=True))
                    inside = [
                        low - 1e-9 <= of_label[first] - of_label[other] <= high + 1e-9
                        for first, other, low, high in board.intervals
                    ]
                    ranks = [
                        best <= m - sum(truth < of_label[label]) and 1 + sum(truth > of_label[label]) <= worst
                        for label, (best, worst) in ((one.system, one.ranks) for one in board.systems)
                    ]
                    together = [{*group} for group in board.groups]
                    apart = [
                        of_label[one] == of_label[other]
                        and not any({one, other} <= group for group in together)
                        for one, other in combinations(of_label, 2)
                    ]
                    held.append((all(inside), all(ranks), any(apart)))
                *shares, told_apart = np.mean(held, axis=0)
                row(m, name, n, *map(marked, shares), f"{told_apart:.3f}")


def normal_systems(n: int, m: int, means: np.ndarray) -> np.ndarray:
    return generator.normal(size=(n, 1)) + generator.normal(size=(n, m)) + means


def of_interactions(samples: int) -> None:
    table(
        "Interaction, where all groups differ alike: found in (at most 0.05)",
        "groups", "sizes", "differences", "share",
    )  # fmt: skip
    for groups in (2, 5):
        for sizes in ((10,) * groups, (50,) * groups, (10, *(50,) * (groups - 1))):
            for name in ("normal", "skewed: exponential"):
                p_values = []
                for _ in range(samples):
                    found = [
                        mean_error((1 + place) * DIFFERENCES[name](size)) for place, size in enumerate(sizes)
                    ]
                    p_values.append(interaction_test(*zip(*found, strict=True)))
                row(groups, ", ".join(map(str, sizes)), name, errors(p_values))


def compared(
    pairs: list[tuple[np.ndarray, np.ndarray]],
    *,
    several: bool = False,
    ranges: dict[str, Interval] | None = None,
    same_items: bool = False,
) -> Comparison:
    """What `compare` says of a baseline and a candidate that have done several tests, or of several candidates."""
    numbers = range(1, len(pairs) + 1)
    labels = [str(number) for number in numbers] if several else ["candidate"]
    systems = [System(label=label, sut_uid=label, runs={}, given=label) for label in ("0", *labels)]
    items = tuple(
        ItemPairs(
            test="test" if several else f"test {number}",
            candidate=str(number) if several else "candidate",
            matched_by="id",
            n_only_baseline=0,
            n_only_candidate=0,
            before=PairedSide(np.arange(len(before)), {"score": before}),
            after=PairedSide(np.arange(len(after)), {"score": after}),
            directions={"score": "higher"},
            questions=np.arange(len(before)) if same_items else None,
            ranges=ranges or ({"score": (0.0, 1.0)} if set(before) | set(after) <= {0.0, 1.0} else {}),
        )
        for number, (before, after) in zip(numbers, pairs, strict=True)
    )
    return compare_pairs(PairedRuns(systems[0], tuple(systems[1:]), items), CompareOptions())


def of_verdicts(samples: int) -> None:
    table(
        "Verdicts: a finding where there is none (at most 0.05), and what is said to be found 4 times in 5",
        "values", "n", "tests", "better or worse", "found",
    )  # fmt: skip
    for name in ("normal", "right and wrong: 0.6"):
        for n in (50, 200, 1000):
            for tests in (1, 5, 20):
                false, found = [], []
                for _ in range(samples):
                    pairs = [of_mean(name, n, 0.0) for _ in range(tests)]
                    shown = compared(pairs)
                    rows = shown.comparisons
                    false.append(any(one.verdict != "cannot_tell" for one in (*rows, *shown.macro)))
                    difference = min(0.25, needed_difference(rows[0].stderr or 1.0, shown.family))
                    far = compared([of_mean(name, n, difference), *pairs[1:]]).comparisons[0]
                    found.append(far.verdict == "better")
                row(name, n, tests, f"{np.mean(false):.3f}", f"{np.mean(found):.3f}")


MEANS = [*((tests, n) for tests in (2, 5) for n in (5, 10, 50)), (20, 10)]
"""Numbers of tests, and of the items of each."""


def of_means(samples: int) -> None:
    table("Means over tests", "values", "tests", "items of each", "interval", "finds")
    for name in ("normal", "right and wrong: 0.6", "right and wrong: 0.9"):
        for tests, n in MEANS:
            found = [compared([of_mean(name, n, 0.0) for _ in range(tests)]).macro[0] for _ in range(samples)]
            row(
                name, tests, n,
                coverage((one.interval for one in found), 0.0),
                errors(one.p_value for one in found),
            )  # fmt: skip
    for name in ("97 % gain 0.03, 3 % lose 0.97", "3 % lose all, others up to 0.1"):
        for tests, n in MEANS:
            pairs, truth = drawn(name, n, tests * samples)
            found = [
                compared(pairs[start : start + tests], ranges={"score": (0.0, 1.0001)}).macro[0]
                for start in range(0, len(pairs), tests)
            ]
            finds = errors(one.p_value for one in found) if truth == 0 else ""
            row(name, tests, n, coverage((one.interval for one in found), truth), finds)
    for name in ("normal", "right and wrong: 0.6"):
        for n in (10, 50):
            found = [compared([of_mean(name, n, 0.0)] * 8, same_items=True).macro[0] for _ in range(samples)]
            row(
                f"{name}; one test 8 times", 8, n,
                coverage((one.interval for one in found), 0.0),
                errors(one.p_value for one in found),
            )  # fmt: skip


def needed_difference(stderr: float, family: int) -> float:
    """What the sentence of a verdict that cannot tell says would have been found 4 times in 5."""
    normal = NormalDist()
    return (normal.inv_cdf(1 - 0.05 / (2 * family)) + normal.inv_cdf(0.8)) * stderr


def of_mean(name: str, n: int, shift: float) -> tuple[np.ndarray, np.ndarray]:
    """Two systems whose means differ by this much."""
    if name == "normal":
        return np.zeros(n), generator.normal(shift, 0.3, n)
    rate = float(name.rpartition(" ")[2])
    return right_and_wrong(n, (rate, rate + shift), 0.4)


def main() -> None:
    samples = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    parts = (
        of_right_and_wrong,
        of_numbers,
        of_graded_scores,
        of_missing_items,
        of_equivalence,
        of_leaderboards,
        of_interactions,
        of_verdicts,
        of_means,
    )
    for part in parts:
        if part.__name__ in sys.argv[2:] or len(sys.argv) < 3:
            generator.bit_generator.state = np.random.default_rng(1).bit_generator.state
            part(samples)


if __name__ == "__main__":
    main()
