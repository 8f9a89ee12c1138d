"""The measurements of an item: the author's `measure_quality`, checked, and one number for several repeats."""

import asyncio
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

from modelgauge.data.annotations import TestItemAnnotations, measurement
from modelgauge.data.thresholds import judged
from modelgauge.engine.bookkeeping.failures import AtStage, of_author
from modelgauge.engine.loop.stalls import Pace
from modelgauge.engine.loop.threads import in_thread
from modelgauge.errors import InvalidDataError, InvalidOptionError, NewRunNeededError
from modelgauge.interfaces.test import PromptResponseTest
from modelgauge.stats.exact import exact_mean, pass_at_k, pass_hat_k
from modelgauge.wording.phrases import a_thing, counted

_PROCESSORS = os.cpu_count() or 1


class MeasuredValues(NamedTuple):
    """Finite measurements, and the names of those returned as bool."""

    values: dict[str, float]
    binary: tuple[str, ...]


class Measurer:
    """Caller of a test's `measure_quality`, with validation of its results.

    Args:
        test: its `measure_quality` runs on the event loop, or in threads where it says so: in as many at once as the
            machine has processors.
    """

    def __init__(self, test: PromptResponseTest) -> None:
        self._test = test
        self.uid = test.uid
        self.stage = AtStage("measure", test.uid)
        self.judges_blocked = test.judges_blocked_answers
        self.measures_in_part = _measures_in_part(type(test))
        self._ranges = {
            name: (float(low), float(high)) for name, (low, high) in test.measurement_ranges.items()
        }
        self._pace = Pace(
            f"measure_quality of '{test.uid}' takes", "set measure_in_thread = True in the class"
        )

    async def measure(self, item: TestItemAnnotations) -> MeasuredValues:
        """Call `measure_quality`, and compare measurements with the test's thresholds.

        Raises:
            InvalidDataError: it did not return finite numbers by name, or one is outside its declared range.
            Exception: whatever it raised.
        """
        test = self._test
        if test.measure_in_thread:
            return self._with_verdicts(await self._in_thread(test.measure_quality, item))
        return self._with_verdicts(self._pace.of(test.measure_quality, item))

    async def measure_in_part(self, item: TestItemAnnotations) -> MeasuredValues:
        """Call `measure_in_part`; measurements that it leaves out are missing, and thresholds are not compared.

        Raises:
            Exception: as `measure`.
        """
        test = self._test
        if test.measure_in_thread:
            return self._checked_numbers(await self._in_thread(test.measure_in_part, item))
        return self._checked_numbers(of_author(test.measure_in_part, item))

    @cached_property
    def _places(self) -> asyncio.Semaphore:
        return asyncio.Semaphore(_PROCESSORS)

    async def _in_thread(
        self, method: Callable[[TestItemAnnotations], Any], item: TestItemAnnotations
    ) -> Any:
        async with self._places:
            return await in_thread(lambda: method(item), "measure")

    def _with_verdicts(self, raw: Any) -> MeasuredValues:
        measured = self._checked_numbers(raw)
        if not self._test.thresholds:
            return measured
        passed = judged(self._test.thresholds, measured.values)
        return MeasuredValues({**measured.values, **passed}, (*measured.binary, *passed))

    def _checked_numbers(self, raw: Any) -> MeasuredValues:
        test = self._test
        if type(raw) is not dict and not isinstance(raw, Mapping):
            raise InvalidDataError(
                f"measure_quality of '{test.uid}' returned {a_thing(raw)}.",
                fix='Return a mapping from names to numbers: {"accuracy": 1.0}.',
            )
        values: dict[str, float] = {}
        binary: list[str] = []
        for given, value in raw.items():
            name = str(given)
            if value is True or value is False:  # nearly always one of these or a float
                values[name] = float(value)
                binary.append(name)
                continue
            values[name] = measurement(name, value)
            # That of numpy, which is not imported.
            if type(value) is not float and type(value).__name__ in ("bool_", "bool"):
                binary.append(name)
        if len(values) < len(raw):
            names = [str(given) for given in raw]
            raise InvalidDataError(
                f"measure_quality of '{test.uid}' returned '{max(names, key=names.count)}' twice, once not as a text.",
                fix="Give each measurement a name of its own, as a text.",
            )
        for name, (low, high) in self._ranges.items():
            if name in values and not low <= values[name] <= high:
                raise InvalidDataError(
                    f"Measurement '{name}' is {values[name]:g}, outside its range ({low:g}, {high:g}).",
                    fix=f"Correct measure_quality or measurement_ranges of '{test.uid}', or a metric's score_range.",
                )
        return MeasuredValues(values, tuple(binary))


def _measures_in_part(cls: type[PromptResponseTest]) -> bool:
    """Return whether a class defines `measure_in_part` and no subclass of it overrides `measure_quality`."""
    last = next(
        kind for kind in cls.__mro__ if "measure_in_part" in vars(kind) or "measure_quality" in vars(kind)
    )
    return last is not PromptResponseTest and "measure_in_part" in vars(last)


WAYS = "mean, majority, min, max, all, pass@K, pass^K or MofN"
"""The ways to reduce the measurements of repeats."""


class Reducer(NamedTuple):
    """A way to make one value of those of the repeats.

    Args:
        name: one of `WAYS`.
        function: reduces the values.
        repeats: the number of times that each prompt is sent.
        least: the fewest values that it takes; the other repeats may have failed.
    """

    name: str
    function: Callable[[Sequence[float]], float]
    repeats: int
    least: int = 1


@lru_cache(maxsize=64)
def reducer(name: str, repeats: int) -> Reducer:
    """Return the reducer of a name.

    Args:
        name: mean, majority, min, max; or, for right and wrong answers, all, pass@K, pass^K or MofN (at least M of all
            N repeats are right).
        repeats: the number of values.

    Raises:
        InvalidOptionError: the name is unknown, or does not fit the number of repeats.
    """
    if name in ("mean", "majority"):
        return Reducer(name, exact_mean if name == "mean" else majority, repeats)
    if name in ("min", "max"):  # of fewer values they would be nearer to the middle
        return Reducer(name, min if name == "min" else max, repeats, repeats)
    if name == "all":
        return Reducer(name, partial(at_least, name, repeats), repeats, repeats)
    if drawn := re.fullmatch(r"pass([@^])([1-9][0-9]*)", name):
        k = int(drawn[2])
        if k > repeats:
            raise InvalidOptionError(
                f"{name} needs at least {counted(k, 'repeat')}, not {repeats}.",
                fix=f"Use --repeats {k} or more.",
            )
        return Reducer(name, partial(pass_at if drawn[1] == "@" else pass_all, k), repeats, k)
    if share := re.fullmatch(r"([1-9][0-9]*)of([1-9][0-9]*)", name):
        right, of = int(share[1]), int(share[2])
        if of != repeats or right > of:
            raise InvalidOptionError(
                f"{name} does not fit {counted(repeats, 'repeat')}.",
                fix=f"Use --reduce {min(right, repeats)}of{repeats}{'' if of == repeats else f', or --repeats {of}'}.",
            )
        return Reducer(name, partial(at_least, name, right), repeats, repeats)
    raise InvalidOptionError(f"There is no way to reduce repeats by '{name}'.", fix=f"Use {WAYS}.")


def majority(values: Sequence[float]) -> float:
    """Return the most frequent value; the mean if several are equally frequent."""
    counts = Counter(values)
    most = max(counts.values())
    return exact_mean([value for value, count in counts.items() if count == most])


def pass_at(k: int, values: Sequence[float]) -> float:
    """Return the probability that at least one of k answers, drawn from those given, is right; see `stats.pass_at_k`.

    Args:
        k: answers drawn, at most as many as there are.
        values: 1 for a right answer, 0 for a wrong answer.

    Raises:
        NewRunNeededError: a value is neither 0 nor 1; all items would fail, and each is paid.
    """
    return pass_at_k(len(values), _count_right(f"pass@{k}", values), k)


def pass_all(k: int, values: Sequence[float]) -> float:
    """Return the probability that all of k answers, drawn from those given, are right; see `stats.pass_hat_k`.

    Args:
        k: as for `pass_at`.
        values: as for `pass_at`.

    Raises:
        NewRunNeededError: as `pass_at`.
    """
    return pass_hat_k(len(values), _count_right(f"pass^{k}", values), k)


def at_least(name: str, right: int, values: Sequence[float]) -> float:
    """Return 1 if at least that many answers are right, else 0.

    Raises:
        NewRunNeededError: as `pass_at`.
    """
    return float(_count_right(name, values) >= right)


def _count_right(name: str, values: Sequence[float]) -> int:
    other = next((value for value in values if value not in (0.0, 1.0)), None)
    if other is not None:
        raise NewRunNeededError(
            f"{name} is for measurements that are 0 or 1, and the test gives {other:g}.",
            fix="Run it again with --reduce mean, majority, min or max: the answers come from the cache.",
        )
    return int(sum(values))


def joined(several: Sequence[MeasuredValues], reduce: Reducer) -> MeasuredValues:
    """Reduce the measurements of an item's repeats. A measurement that is a bool in every repeat stays one."""
    values = (
        several[0].values
        if reduce.repeats == 1
        else reduced([measured.values for measured in several], reduce)
    )
    return MeasuredValues(
        values, tuple([name for name in values if all(name in measured.binary for measured in several)])
    )


def reduced(measurements: Sequence[Mapping[str, float]], reduce: Reducer) -> dict[str, float]:
    """Return one value for each measurement.

    Raises:
        InvalidDataError: a repeat lacks a measurement that another has.
    """
    names = dict.fromkeys(name for measurement in measurements for name in measurement)
    for name in names:
        if any(name not in measurement for measurement in measurements):
            raise InvalidDataError(
                f"Measurement '{name}' is there for some repeats of an item only.",
                fix="Return it from measure_quality for every answer.",
            )
    return {name: reduce.function([measurement[name] for measurement in measurements]) for name in names}
