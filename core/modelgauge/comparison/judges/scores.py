"""Scores that people would have given: a judge's scores, corrected by labels of a random sample."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import FiniteFloat

from modelgauge.comparison.difference import Interval
from modelgauge.data.base import Count, Frozen, Text
from modelgauge.errors import InvalidDataError
from modelgauge.stats.aggregations import error_bar
from modelgauge.stats.correction import CorrectedMean, prediction_powered_mean, rogan_gladen
from modelgauge.stats.intervals import joined_clusters, mean_error


class ScoreEstimate(Frozen):
    """One way to estimate the score that people would give a SUT.

    Args:
        method: "judge", the judge's mean over all its items, which has the judge's errors in it; "people", the mean of
            the labels; "ppi", the judge's mean corrected by the labels (`prediction_powered_mean`); "rogan_gladen",
            corrected by sensitivity and specificity.
        n: how many items it rests on.
        value: the estimate; None if there is no estimate.
        stderr: its standard error; None if it has none.
        interval: its 95 % confidence interval.
        bounds: (lowest, highest) value, if each missing label were 0, or 1; None if none is missing.
        weight: how far the judge is relied on by "ppi", from 0 to 1.
        sensitivity: the share of the items labelled 1 that the judge finds, for "rogan_gladen".
        specificity: the share of the items labelled 0 that the judge finds.
        why_not: why there is no value.
    """

    method: Literal["judge", "people", "ppi", "rogan_gladen"]
    n: Count
    value: FiniteFloat | None = None
    stderr: FiniteFloat | None = None
    interval: Interval | None = None
    bounds: Interval | None = None
    weight: FiniteFloat | None = None
    sensitivity: FiniteFloat | None = None
    specificity: FiniteFloat | None = None
    why_not: Text | None = None


class LabelledScores(NamedTuple):
    """The scores of one SUT's items, of which people labelled some.

    Args:
        people: (n,) the mean of people's labels for each labelled item.
        judged: (n,) the judge's scores of the same items.
        unlabelled: (N,) the judge's scores of the items that were not sampled.
        missing: (m,) the judge's scores of the items that were sampled, and got no label.
        binary: whether labels and scores are 0 or 1, or means of these by raters or by a panel of judges.
        declared: the lowest and the highest possible label and score; None if unknown.
        clusters: (n + N + m,) codes of the items, in the order of the fields above; None if they are independent.
    """

    people: NDArray[np.float64]
    judged: NDArray[np.float64]
    unlabelled: NDArray[np.float64]
    missing: NDArray[np.float64]
    binary: bool
    declared: Interval | None = None
    clusters: NDArray[np.int64] | None = None

    def get_clusters(self, start: int, number: int) -> NDArray[np.int64] | None:
        """Return the clusters of `number` items from a position on."""
        return None if self.clusters is None else self.clusters[start : start + number]


def score_estimates(scores: LabelledScores) -> tuple[ScoreEstimate, ...]:
    """Estimate the score of a SUT by its judge, by people, and by both.

    Args:
        scores: of its items.
    """
    if scores.binary:
        scores = scores._replace(declared=(0.0, 1.0))
    every = np.concatenate([scores.judged, scores.unlabelled, scores.missing])
    found = [
        ScoreEstimate(method="judge", n=len(every), value=float(every.mean()) if len(every) else None),
        _of_people(scores),
        _powered(scores),
    ]
    return tuple([*found, _rogan_gladen(scores)] if scores.binary else found)


def _of_people(scores: LabelledScores) -> ScoreEstimate:
    people, n = scores.people, len(scores.people)
    if not n:
        return ScoreEstimate(method="people", n=0, why_not="No item has a label.")
    clusters = joined_clusters(scores.get_clusters(0, n))
    error = mean_error(people, clusters)
    bar = error_bar(people, error, clusters, scores.declared)
    return ScoreEstimate(method="people", n=n, value=error.mean, stderr=bar.stderr, interval=bar.interval)


def _powered(scores: LabelledScores) -> ScoreEstimate:
    labelled, others = len(scores.people), len(scores.unlabelled)
    n = labelled + others

    def corrected(added: Sequence[float]) -> CorrectedMean:
        clusters = None
        if scores.clusters is not None:
            clusters = np.append(scores.clusters[:labelled], scores.clusters[n : n + len(added)])
        return prediction_powered_mean(
            np.concatenate([scores.people, added]),
            np.concatenate([scores.judged, scores.missing[: len(added)]]),
            scores.unlabelled,
            declared=scores.declared,
            clusters=clusters,
            unlabelled_clusters=scores.get_clusters(labelled, others),
        )

    if len(scores.people) < 2 or len(scores.unlabelled) < 2:
        what = "labelled" if len(scores.people) < 2 else "unlabelled"
        return ScoreEstimate(method="ppi", n=n, why_not=f"It takes two {what} items.")
    found, bounds = corrected([]), None
    if scores.binary and len(scores.missing):
        ends = sorted(corrected([label] * len(scores.missing)).value for label in (0.0, 1.0))
        bounds = ends[0], ends[1]
    return ScoreEstimate(
        method="ppi",
        n=n,
        value=found.value,
        stderr=found.stderr if (scores.people != scores.judged).any() else None,  # else no error was seen
        interval=found.interval,
        bounds=bounds,
        weight=found.weight,
    )


def _rogan_gladen(scores: LabelledScores) -> ScoreEstimate:
    decided = (scores.people != 0.5) & (scores.judged != 0.5)  # elsewhere there is no majority
    people, judged = scores.people[decided] > 0.5, scores.judged[decided] > 0.5
    others = scores.unlabelled[scores.unlabelled != 0.5] > 0.5
    n = len(people) + len(others)
    try:
        found = rogan_gladen(
            (int(others.sum()), len(others)),
            (int(judged[people].sum()), int(people.sum())),
            (int((~judged[~people]).sum()), int((~people).sum())),
        )
    except InvalidDataError as error:
        return ScoreEstimate(method="rogan_gladen", n=n, why_not=str(error))
    return ScoreEstimate(
        method="rogan_gladen",
        n=n,
        value=found.value,
        interval=found.interval if scores.clusters is None else None,
        sensitivity=found.sensitivity,
        specificity=found.specificity,
    )
