"""How far labels of answers agree: a judge's with people's, people's with each other's, judges' with each other's."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Literal, NamedTuple

from pydantic import FiniteFloat

from modelgauge.data.base import Count, Frozen, Text
from modelgauge.stats.agreement import (
    Ratings,
    agreement_interval,
    cohen_kappa,
    confusion_matrix,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    ratings_of,
    raw_agreement,
)

Interval = tuple[FiniteFloat, FiniteFloat]
LabelKind = Literal["binary", "grades", "numbers"]

_MOST_GRADES = 20
_MOST_SHOWN = 10  # categories of a confusion matrix


class Coefficient(Frozen):
    """A coefficient of agreement.

    Args:
        name: of its function in `modelgauge.stats`, such as "cohen_kappa".
        value: None where it does not exist: all labels are alike, say.
        interval: its 95 % confidence interval, by the bootstrap over answers; None where it does not exist.
    """

    name: Text
    value: FiniteFloat | None
    interval: Interval | None


class Agreement(Frozen):
    """How far labels agree.

    Args:
        between: whose labels: the judge's and people's, those of people with each other, or those of several judges.
        sut: on whose answers; None for all.
        n: on how many answers. Several raters or judges of an answer count once.
        n_split: how many answers are left out, since raters or judges are split, without a majority.
        coefficients: of agreement.
        categories: the labels that there can be; empty where they are any numbers.
        confusion: how often people gave each label (rows) where the judge gave each (columns).
    """

    between: Literal["judge and people", "people", "judges"]
    sut: Text | None
    n: Count
    n_split: Count = 0
    coefficients: tuple[Coefficient, ...]
    categories: tuple[FiniteFloat, ...] = ()
    confusion: tuple[tuple[Count, ...], ...] = ()


class LabelledAnswer(NamedTuple):
    """An answer with the labels of judges and of people.

    Args:
        sut: who gave it.
        judges: the label of each judge.
        people: the label of each rater by name; at least one.
    """

    sut: str
    judges: tuple[float, ...]
    people: dict[str, float]


def kind_of(labels: Iterable[float]) -> LabelKind:
    """What labels are: 0 and 1, whole numbers of which there are few, or any numbers.

    Args:
        labels: of judges and people.
    """
    held = set(labels)
    if held <= {0.0, 1.0}:
        return "binary"
    whole = all(one.is_integer() for one in held) and max(held) - min(held) <= _MOST_GRADES
    return "grades" if whole else "numbers"


def agreements(answers: Sequence[LabelledAnswer], sut: str | None, kind: LabelKind) -> Iterator[Agreement]:
    """The agreement of judge and people, and where there are several of people and of judges, among themselves.

    Args:
        answers: on which they agree or not.
        sut: whose answers these are; None for all.
        kind: of the labels of all SUTs.
    """
    measured = partial(_agreement, sut=sut, kind=kind)
    both = [(_majority(one.people.values()), _majority(one.judges)) for one in answers]
    told = [one for one in both if None not in one]
    yield measured("judge and people", told).replaced(n_split=len(both) - len(told))
    raters = list(dict.fromkeys(rater for one in answers for rater in one.people))
    if len(raters) > 1:
        labels = [[one.people.get(rater) for rater in raters] for one in answers]
        yield measured("people", [row for row in labels if len(raters) - row.count(None) > 1])
    if answers and len(answers[0].judges) > 1:
        yield measured("judges", [one.judges for one in answers])


def _majority(labels: Iterable[float]) -> float | None:
    """The label that most gave; None where several labels were given most."""
    (label, most), *others = Counter(labels).most_common(2)
    return None if others and others[0][1] == most else label


def _agreement(
    between: Literal["judge and people", "people", "judges"],
    rows: Sequence[Sequence[float | None]],
    sut: str | None,
    kind: LabelKind,
) -> Agreement:
    given = sorted({label for row in rows for label in row if label is not None})
    if not given:
        return Agreement(between=between, sut=sut, n=0, coefficients=())
    categories = given
    if kind != "numbers":
        low, high = (0, 1) if kind == "binary" else (int(given[0]), int(given[-1]))
        categories = [float(one) for one in range(low, high + 1)]
    ratings = ratings_of(rows, categories)
    confusion: tuple[tuple[int, ...], ...] = ()
    if between == "judge and people" and kind != "numbers" and len(categories) <= _MOST_SHOWN:
        confusion = tuple(tuple(row) for row in confusion_matrix(ratings).tolist())
    return Agreement(
        between=between,
        sut=sut,
        n=len(rows),
        coefficients=[
            Coefficient(name=name, value=function(ratings), interval=agreement_interval(function, ratings))
            for name, function in _coefficients(kind, len(rows[0]))
        ],
        categories=categories if kind != "numbers" else (),
        confusion=confusion,
    )


def _coefficients(kind: LabelKind, raters: int) -> Iterator[tuple[str, Callable[[Ratings], float | None]]]:
    """The coefficients that fit such labels, by their names."""
    yield "raw_agreement", raw_agreement
    if kind != "numbers" and raters == 2:
        yield "cohen_kappa", partial(cohen_kappa, weights=None if kind == "binary" else "quadratic")
    elif kind != "numbers":
        yield "fleiss_kappa", fleiss_kappa
    level: Literal["nominal", "interval"] = "nominal" if kind == "binary" else "interval"
    yield "krippendorff_alpha", partial(krippendorff_alpha, level=level)
    if kind != "numbers":
        yield "gwet_ac1", gwet_ac1
