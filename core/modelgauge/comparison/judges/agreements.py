"""Agreement of labels: between judge and people, among people, and among judges."""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import FiniteFloat

from modelgauge.comparison.difference import Interval
from modelgauge.data.base import Count, Frozen, Text
from modelgauge.stats.agreement import (
    Ratings,
    Statistic,
    bootstrapped,
    cohen_kappa,
    confusion_matrix,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    make_statistic,
    ratings_of,
    ratio,
    raw_agreement,
)
from modelgauge.stats.intervals import joined_clusters, wilson_interval

LabelKind = Literal["binary", "grades", "numbers"]

_UNWEIGHTED = ("raw_agreement", "gwet_ac1", "fleiss_kappa")
_MOST_GRADES = 20
_MOST_SHOWN = 10  # categories of a confusion matrix


class Coefficient(Frozen):
    """A coefficient of agreement.

    Args:
        name: of its function in `modelgauge.stats`, such as "cohen_kappa".
        value: None if it does not exist: all labels are alike, say.
        interval: its 95 % confidence interval, by the bootstrap over answers; None if it does not exist.
    """

    name: Text
    value: FiniteFloat | None
    interval: Interval | None


class Agreement(Frozen):
    """Agreement of labels.

    Args:
        between: whose labels: the judge's and people's, those of people with each other, or those of several judges.
        sut: on whose answers; None for all.
        n: on how many answers, however many raters or judges they have.
        coefficients: of agreement; of judge and people the mean over all pairs of a judge and a rater, each weighted by
            the answers that both labelled.
        categories: the labels that there can be; empty if they are any numbers.
        confusion: how often a person gave each label (rows) where a judge gave each (columns), over all these pairs.
    """

    between: Literal["judge and people", "people", "judges"]
    sut: Text | None
    n: Count
    coefficients: tuple[Coefficient, ...]
    categories: tuple[FiniteFloat, ...] = ()
    confusion: tuple[tuple[Count, ...], ...] = ()


class LabelledAnswer(NamedTuple):
    """An answer with the labels of judges and of people.

    Args:
        sut: who gave it.
        judges: the label of each judge.
        people: the label of each rater by name; at least one.
        clusters: labels that it may share with other answers, such as those of its item and its text. Answers that
            share a label at the same position are not independent.
    """

    sut: str
    judges: tuple[float, ...]
    people: dict[str, float]
    clusters: tuple[Hashable, ...] = ()


def detect_label_kind(labels: Iterable[float]) -> LabelKind:
    """Return the scale of the labels: binary, ordinal or continuous.

    Args:
        labels: of judges and people.
    """
    held = set(labels)
    if held <= {0.0, 1.0}:
        return "binary"
    whole = all(value.is_integer() for value in held) and max(held) - min(held) <= _MOST_GRADES
    return "grades" if whole else "numbers"


def agreements(answers: Sequence[LabelledAnswer], sut: str | None, kind: LabelKind) -> Iterator[Agreement]:
    """Return the agreement of judge and people, and among people and among judges if there are several.

    Args:
        answers: on which they agree or not.
        sut: whose answers these are; None for all.
        kind: of the labels of all SUTs.
    """
    measured = partial(_agreement, sut=sut, kind=kind, clusters=_clusters(answers))
    people = _labels_of_people(answers)
    both = [[*answer.judges, *labels] for answer, labels in zip(answers, people, strict=True)]
    judges = len(answers[0].judges) if answers else 0
    yield measured("judge and people", both, judges=judges)
    if people and len(people[0]) > 1:
        yield agreement_of_people(answers, sut, kind)
    if judges > 1:
        yield measured("judges", [answer.judges for answer in answers])


def agreement_of_people(answers: Sequence[LabelledAnswer], sut: str | None, kind: LabelKind) -> Agreement:
    """Return the agreement of people with each other, on the answers that several of them labelled.

    Args:
        answers: on which they agree or not.
        sut: whose answers these are; None for all.
        kind: of the labels of all SUTs.
    """
    shared = [answer for answer in answers if len(answer.people) > 1]
    rows = _labels_of_people(shared)
    return _agreement("people", rows, sut, kind, clusters=_clusters(shared))


def _clusters(answers: Sequence[LabelledAnswer]) -> NDArray[np.int64] | None:
    """Return the clusters of answers; None if all are independent."""
    return joined_clusters(*zip(*(answer.clusters for answer in answers), strict=True))


def _labels_of_people(answers: Sequence[LabelledAnswer]) -> list[list[float | None]]:
    """Return the labels of each answer, by rater; None if a rater gave none."""
    raters = list(dict.fromkeys(rater for answer in answers for rater in answer.people))
    return [[answer.people.get(rater) for rater in raters] for answer in answers]


def _agreement(
    between: Literal["judge and people", "people", "judges"],
    rows: Sequence[Sequence[float | None]],
    sut: str | None,
    kind: LabelKind,
    *,
    judges: int = 0,
    clusters: NDArray[np.int64] | None = None,
) -> Agreement:
    given = sorted({label for row in rows for label in row if label is not None})
    if not given:
        return Agreement(between=between, sut=sut, n=0, coefficients=())
    categories = given
    if kind != "numbers":
        low, high = (0, 1) if kind == "binary" else (int(given[0]), int(given[-1]))
        categories = [float(value) for value in range(low, high + 1)]
    ratings = ratings_of(rows, categories)
    confusion: tuple[tuple[int, ...], ...] = ()
    if between == "judge and people" and kind != "numbers" and len(categories) <= _MOST_SHOWN:
        counts = np.sum([confusion_matrix(pair) for pair in _pairs(ratings, judges)], axis=0)
        confusion = tuple(tuple(row) for row in counts.tolist())
    named = dict(_coefficients(kind, 2 if judges else len(rows[0])))
    statistics = [make_statistic(function) for function in named.values()]
    if judges:
        statistics = [partial(_mean_of_pairs, statistic, judges) for statistic in statistics]
    found = bootstrapped(statistics, ratings, clusters=clusters)
    if (ratings.counts > 0).sum(axis=1).max() == 1:  # nobody disagrees, and nothing varies
        found = _of_full_agreement(named, statistics, ratings, clusters)
    return Agreement(
        between=between,
        sut=sut,
        n=len(rows),
        coefficients=[
            Coefficient(name=name, value=value, interval=interval)
            for name, (value, interval) in zip(named, found, strict=True)
        ],
        categories=categories if kind != "numbers" else (),
        confusion=confusion,
    )


def _of_full_agreement(
    names: Iterable[str],
    statistics: Sequence[Statistic],
    ratings: Ratings,
    clusters: NDArray[np.int64] | None,
) -> list[tuple[float | None, Interval | None]]:
    """Return the coefficients of raters who agree on all answers, each with its interval.

    The share of answers on which they agree is at least the lower end of Wilson's interval, with each cluster counted
    once. The interval of a coefficient begins at its value if the others were disagreements, spread alike over the
    labels. There is none for a coefficient that weighs how far labels are apart.
    """
    n = len(ratings.codes)
    units = n if clusters is None else int(clusters.max()) + 1
    agreed, _ = wilson_interval(units, units) or (0.0, 1.0)
    other = ratings.codes.copy()
    first = (other >= 0).argmax(axis=1)
    labels = len(ratings.categories)
    other[np.arange(n), first] = (other[np.arange(n), first] + 1) % labels
    both = ratings._replace(codes=np.concatenate([ratings.codes, other]))
    times = np.repeat([[1.0, 0.0], [agreed, 1 - agreed]], n, axis=1)
    found: list[tuple[float | None, Interval | None]] = []
    for name, statistic in zip(names, statistics, strict=True):
        value, low = statistic(both, times).tolist()
        if name == "raw_agreement":
            low = agreed
        known = (labels == 2 or name in _UNWEIGHTED) and not math.isnan(value + low)
        found.append((None if math.isnan(value) else value, (low, 1.0) if known else None))
    return found


def _coefficients(kind: LabelKind, raters: int) -> Iterator[tuple[str, Callable[[Ratings], float | None]]]:
    """Return the coefficients that suit these labels, by name."""
    yield "raw_agreement", raw_agreement
    if kind != "numbers" and raters == 2:
        yield "cohen_kappa", partial(cohen_kappa, weights=None if kind == "binary" else "quadratic")
    elif kind != "numbers":
        yield "fleiss_kappa", fleiss_kappa
    level: Literal["nominal", "interval"] = "nominal" if kind == "binary" else "interval"
    yield "krippendorff_alpha", partial(krippendorff_alpha, level=level)
    if kind != "numbers":
        yield "gwet_ac1", gwet_ac1


def _pairs(ratings: Ratings, judges: int) -> Iterator[Ratings]:
    """Return the labels of each rater and each judge; the judges come first."""
    columns = range(ratings.codes.shape[1])
    for judge, rater in product(columns[:judges], columns[judges:]):
        yield ratings._replace(codes=ratings.codes[:, [rater, judge]])


def _mean_of_pairs(
    statistic: Statistic, judges: int, ratings: Ratings, times: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the mean of a coefficient over judges and raters, weighted by the answers that both labelled."""
    pairs = [*_pairs(ratings, judges)]
    values = np.array([statistic(pair, times) for pair in pairs])
    answers = np.array([times @ (pair.codes >= 0).all(axis=1) for pair in pairs])
    answers[np.isnan(values)] = 0
    return ratio(np.nansum(values * answers, axis=0), answers.sum(axis=0))
