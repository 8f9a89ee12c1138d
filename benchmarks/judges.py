"""How often intervals of agreement, and of scores that people's labels correct, hold the truth, by simulation.

Coverage below 93.5 % is marked by an asterisk. Run by hand: uv run python benchmarks/judges.py [samples]
"""

import itertools
import sys

import numpy as np
from comparisons import Interval, coverage, generator, row, table

from modelgauge.stats import (
    agreement_interval,
    cohen_kappa,
    gwet_ac1,
    krippendorff_alpha,
    mean_error,
    prediction_powered_mean,
    ratings_of,
    rogan_gladen,
    t_interval,
    wilson_interval,
)
from modelgauge.stats.intervals import MeanError


def labels_of(n: int, rate: float, right: float) -> list[tuple[int, int]]:
    """People's labels and those of a judge that is right with this probability."""
    people = generator.random(n) < rate
    judge = np.where(generator.random(n) < right, people, ~people)
    return [*zip(people.astype(int).tolist(), judge.astype(int).tolist(), strict=True)]


def of_agreement(samples: int) -> None:
    coefficients = (cohen_kappa, krippendorff_alpha, gwet_ac1)
    table(
        "Agreement, BCa bootstrap",
        "share of one label", "n", "Cohen's kappa", "Krippendorff's alpha", "Gwet's AC1",
    )  # fmt: skip
    for rate in (0.5, 0.9, 0.99):
        truths = [function(ratings_of(labels_of(1_000_000, rate, 0.9), [0, 1])) for function in coefficients]
        for n in (50, 200):
            drawn = [ratings_of(labels_of(n, rate, 0.9), [0, 1]) for _ in range(samples // 4)]
            row(rate, n, *(
                coverage((agreement_interval(function, one, resamples=400) for one in drawn), truth)
                for function, truth in zip(coefficients, truths, strict=True)
            ))  # fmt: skip


def of_corrections(samples: int) -> None:
    table(
        "Corrected scores: n items that are labelled, and N others",
        "share right", "judge finds right, wrong", "n", "N", "PPI++", "PPI++ with t", "labels only",
        "Rogan and Gladen", "judge only",
    )  # fmt: skip
    judges = ((1.0, 0.9), (0.98, 0.98), (0.95, 0.8), (0.8, 0.6))
    for rate, (finds_right, finds_wrong) in itertools.product((0.5, 0.9, 0.99), judges):
        for n, others in itertools.product((14, 30, 100), (100, 1_000, 10_000)):
            found: list[list[Interval | None]] = [[], [], [], [], []]
            for _ in range(samples):
                people = generator.random(n + others) < rate
                judge = generator.random(n + others) < np.where(people, finds_right, 1 - finds_wrong)
                powered = prediction_powered_mean(people[:n], judge[:n], judge[n:], declared=(0, 1))
                found[0].append(powered.interval)
                found[1].append(t_interval(MeanError(powered.value, powered.stderr, n - 1)))
                found[2].append(wilson_interval(people[:n].sum(), n))
                found[4].append(t_interval(mean_error(judge)))
                right, wrong = int(people[:n].sum()), int((~people[:n]).sum())
                hits, refusals = int((judge & people)[:n].sum()), int((~judge & ~people)[:n].sum())
                if right and wrong and hits * wrong + refusals * right > right * wrong:
                    rest = int(judge[n:].sum()), others
                    found[3].append(rogan_gladen(rest, (hits, right), (refusals, wrong)).interval)
            row(
                rate, f"{finds_right:g}, {finds_wrong}", n, others, *(coverage(one, rate) for one in found),
            )  # fmt: skip


def of_clustered_corrections(samples: int) -> None:
    """Four questions on each text; a text is hard or easy, and the judge errs on half of the texts alone."""
    table(
        "Corrected scores: texts with four questions each, and 250 texts without labels",
        "share right", "labelled texts", "clusters", "ignored",
    )  # fmt: skip
    for rate, texts in itertools.product((0.5, 0.9), (10, 25, 50)):
        found: list[list[Interval | None]] = [[], []]
        for _ in range(samples):
            labels = np.arange(4 * (texts + 250)) // 4
            people, judge = clustered_labels(labels, rate)
            n = 4 * texts
            given = people[:n], judge[:n], judge[n:]
            clusters = {"clusters": labels[:n], "unlabelled_clusters": labels[n:]}
            found[0].append(prediction_powered_mean(*given, declared=(0, 1), **clusters).interval)
            found[1].append(prediction_powered_mean(*given, declared=(0, 1)).interval)
        row(rate, texts, *(coverage(one, rate) for one in found))


def clustered_labels(texts: np.ndarray, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """People's labels and a judge's, where half of the labels and of the errors are those of the text."""

    def drawn(share: float) -> np.ndarray:
        of_text = (generator.random(int(texts.max()) + 1) < share)[texts]
        own = generator.random(len(texts)) < share
        return np.where(generator.random(len(texts)) < 0.7, of_text, own)

    people = drawn(rate)
    return people, people ^ drawn(0.15)


def main() -> None:
    samples = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for part in (of_agreement, of_corrections, of_clustered_corrections):
        part(samples)


if __name__ == "__main__":
    main()
