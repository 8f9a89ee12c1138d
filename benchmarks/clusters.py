"""How often intervals of comparisons hold the truth, and what their tests find, where items form clusters; simulated.

Run by hand: uv run python benchmarks/clusters.py [samples]
"""

import sys

import numpy as np
from comparisons import coverage, errors, generator, right_and_wrong, row, table

from modelgauge.stats import mean_error, paired_difference, t_interval
from modelgauge.stats.distributions import student_t_sf


def of_clusters(samples: int) -> None:
    table(
        "Clustered differences",
        "clusters", "sizes", "differences", "correlation", "here", "ignored", "here finds",
    )  # fmt: skip
    for groups in (5, 20, 50):
        for kind in ("4", "1 to 20"):
            for name in ("normal", "right and wrong, 0.5", "right and wrong, 0.9"):
                for correlation in (0.0, 0.5):
                    sizes = np.full(groups, 4) if kind == "4" else np.linspace(1, 20, groups).astype(int)
                    labels = np.repeat(np.arange(groups), sizes)
                    found, ignored = [], []
                    for _ in range(samples):
                        pair = clustered(labels, name, correlation)
                        found.append(
                            paired_difference(
                                *pair, clusters=labels, declared=(name != "normal" and (0, 1)) or None
                            )
                        )
                        ignored.append(t_interval(mean_error(pair[1] - pair[0])))
                    row(
                        groups, kind, name, correlation,
                        coverage((one.difference.interval for one in found), 0.0),
                        coverage(ignored, 0.0),
                        errors(one.p_value for one in found),
                    )  # fmt: skip


def of_few_clusters(samples: int) -> None:
    table(
        "Right and wrong answers of which few share a cluster",
        "items", "clusters", "only one right", "correlation", "here", "CR2 with t", "here finds", "CR2 finds",
    )  # fmt: skip
    kinds = {
        "1 of 2": np.repeat(np.arange(99), [2] + [1] * 98),
        "20 of 2": np.repeat(np.arange(80), [2] * 20 + [1] * 60),
        "1 of 10": np.repeat(np.arange(91), [10] + [1] * 90),
        "25 of 4": np.repeat(np.arange(25), 4),
        "20 of 1 to 20": np.repeat(np.arange(20), np.linspace(1, 20, 20).astype(int)),
    }
    for kind, labels in kinds.items():
        for shares in ((0.03, 0.0), (0.03, 0.03), (0.1, 0.05), (0.25, 0.25)):
            for correlation in (0.5, 1.0):
                found, plain = [], []
                for _ in range(samples):
                    pair = discordant_clusters(labels, shares, correlation)
                    found.append(paired_difference(*pair, clusters=labels, declared=(0, 1)))
                    plain.append(mean_error(pair[1] - pair[0], labels))
                truth = shares[1] - shares[0]
                finds = ["", ""]
                if not truth:
                    finds = [
                        errors(one.p_value for one in found),
                        errors(
                            2 * student_t_sf(abs(e.mean) / e.stderr, e.df) if e.stderr else None
                            for e in plain
                        ),
                    ]
                row(
                    len(labels), kind, f"{shares[0]}, {shares[1]}", correlation,
                    coverage((one.difference.interval for one in found), truth),
                    coverage((t_interval(one) or (one.mean, one.mean) for one in plain), truth),
                    *finds,
                )  # fmt: skip


def discordant_clusters(
    labels: np.ndarray, shares: tuple[float, float], correlation: float
) -> tuple[np.ndarray, np.ndarray]:
    """Two systems of which only the baseline, or only the candidate, is right on these shares of the items."""
    odds = [*shares, 1 - sum(shares)]
    shared, own = (
        generator.choice(3, labels.max() + 1, p=odds)[labels],
        generator.choice(3, len(labels), p=odds),
    )
    kinds = np.where(generator.random(len(labels)) < correlation**0.5, shared, own)
    return (kinds != 1) * 1.0, (kinds != 0) * 1.0


def clustered(labels: np.ndarray, name: str, correlation: float) -> tuple[np.ndarray, np.ndarray]:
    """Two systems' values, where a share of the items repeats what was drawn for its cluster."""
    groups, n, alike = labels.max() + 1, len(labels), generator.random(len(labels)) < correlation**0.5
    if name == "normal":
        shared, own = generator.standard_normal(groups), generator.standard_normal(n)
        return np.zeros(n), correlation**0.5 * shared[labels] + (1 - correlation) ** 0.5 * own
    rate = float(name.rpartition(" ")[2])
    shared_pair = [one[labels] for one in right_and_wrong(groups, (rate, rate), 0.0)]
    own_pair = right_and_wrong(n, (rate, rate), 0.0)
    before, after = (np.where(alike, shared, own) for shared, own in zip(shared_pair, own_pair, strict=True))
    return before, after


def main() -> None:
    samples = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for part in (of_clusters, of_few_clusters):
        generator.bit_generator.state = np.random.default_rng(1).bit_generator.state
        part(samples)


if __name__ == "__main__":
    main()
