"""Several answers to one prompt, reduced to one measurement each."""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from modelgauge.errors import InvalidDataError, InvalidOptionError, NewRunNeededError
from modelgauge.stats.exact import exact_mean


class Reducer(NamedTuple):
    """How the values of the repeats become one.

    Args:
        name: mean, majority, max, or pass@K.
        function: does it.
        least: how many values it takes; the other repeats may have failed.
    """

    name: str
    function: Callable[[Sequence[float]], float]
    least: int = 1


def reducer(name: str, repeats: int) -> Reducer:
    """The reducer that a name stands for.

    Args:
        name: mean, majority, max, or pass@K.
        repeats: how many values there will be.

    Raises:
        InvalidOptionError: the name is unknown, or K is larger than `repeats`.
    """
    if name in ("mean", "majority"):
        return Reducer(name, exact_mean if name == "mean" else majority)
    if name == "max":  # of fewer values it would be lower
        return Reducer(name, max, repeats)
    match = re.fullmatch(r"pass@([1-9][0-9]*)", name)
    if match is None:
        raise InvalidOptionError(
            f"There is no way to reduce repeats by '{name}'.", fix="Use mean, majority, max or pass@K."
        )
    k = int(match[1])
    if k > repeats:
        raise InvalidOptionError(
            f"{name} needs at least {k} repeats, not {repeats}.", fix=f"Use --repeats {k} or more."
        )
    return Reducer(name, lambda values: pass_at(k, values), k)


def majority(values: Sequence[float]) -> float:
    """The most frequent value; the mean of those that are most frequent where several are."""
    counts = Counter(values)
    most = max(counts.values())
    return exact_mean([value for value, count in counts.items() if count == most])


def pass_at(k: int, values: Sequence[float]) -> float:
    """The probability that at least one of k answers, drawn from those given, is right.

    The unbiased estimator of Chen et al. 2021, "Evaluating Large Language Models Trained on Code", equation 1.

    Args:
        k: answers drawn, at most as many as there are.
        values: 1 for a right answer, 0 for a wrong one.

    Raises:
        NewRunNeededError: a value is neither 0 nor 1; all items would fail, and each is paid.
    """
    other = next((value for value in values if value not in (0.0, 1.0)), None)
    if other is not None:
        raise NewRunNeededError(
            f"pass@{k} is for measurements that are 0 or 1, and the test gives {other:g}.",
            fix="Run it again with --reduce mean, majority or max: the cache pays for what was answered.",
        )
    n, right = len(values), int(sum(values))
    return 1.0 - math.comb(n - right, k) / math.comb(n, k)


def reduced(measurements: Sequence[Mapping[str, float]], reduce: Reducer) -> dict[str, float]:
    """One value for each measurement.

    Raises:
        InvalidDataError: a repeat lacks a measurement that another has.
    """
    names = dict.fromkeys(name for one in measurements for name in one)
    for name in names:
        if any(name not in one for one in measurements):
            raise InvalidDataError(
                f"Measurement '{name}' is there for some repeats of an item only.",
                fix="Return it from measure_quality for every answer.",
            )
    return {name: reduce.function([one[name] for one in measurements]) for name in names}
