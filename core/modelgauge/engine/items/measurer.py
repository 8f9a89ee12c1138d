"""The measurements of an item: the author's `measure_quality`, checked, and one number for several repeats."""

import asyncio
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from modelgauge.data.annotations import TestItemAnnotations, measurement
from modelgauge.data.thresholds import judged
from modelgauge.engine.bookkeeping.failures import AtStage, of_author
from modelgauge.engine.loop.stalls import Pace
from modelgauge.engine.loop.threads import in_thread
from modelgauge.errors import InvalidDataError, InvalidOptionError, NewRunNeededError
from modelgauge.interfaces.test import PromptResponseTest
from modelgauge.stats.exact import exact_mean, pass_at_k
from modelgauge.wording.phrases import a_thing, counted

_PROCESSORS = os.cpu_count() or 1


class Measured(NamedTuple):
    """Finite measurements, and the names of those that were given as bool."""

    values: dict[str, float]
    binary: tuple[str, ...]


class Measurer:
    """Measures the items of one test.

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

    async def measure(self, item: TestItemAnnotations) -> Measured:
        """Call `measure_quality`, and compare measurements with the test's thresholds.

        Raises:
            InvalidDataError: it did not return finite numbers by name, or one is outside its declared range.
            Exception: whatever it raised.
        """
        test = self._test
        if test.measure_in_thread:
            return self._with_verdicts(await self._in_thread(test.measure_quality, item))
        return self._with_verdicts(self._pace.of(test.measure_quality, item))

    async def measure_in_part(self, item: TestItemAnnotations) -> Measured:
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

    def _with_verdicts(self, raw: Any) -> Measured:
        measured = self._checked_numbers(raw)
        if not self._test.thresholds:
            return measured
        passed = judged(self._test.thresholds, measured.values)
        return Measured({**measured.values, **passed}, (*measured.binary, *passed))

    def _checked_numbers(self, raw: Any) -> Measured:
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
        return Measured(values, tuple(binary))


def _measures_in_part(cls: type[PromptResponseTest]) -> bool:
    """Whether a class defines `measure_in_part`, and no subclass of it another `measure_quality`."""
    last = next(
        kind for kind in cls.__mro__ if "measure_in_part" in vars(kind) or "measure_quality" in vars(kind)
    )
    return last is not PromptResponseTest and "measure_in_part" in vars(last)


class Reducer(NamedTuple):
    """How the values of the repeats become one.

    Args:
        name: mean, majority, max, or pass@K.
        function: does it.
        repeats: how often each prompt is asked.
        least: how many values it takes; the other repeats may have failed.
    """

    name: str
    function: Callable[[Sequence[float]], float]
    repeats: int
    least: int = 1


@lru_cache(maxsize=64)
def reducer(name: str, repeats: int) -> Reducer:
    """The reducer that a name stands for.

    Args:
        name: mean, majority, max, or pass@K.
        repeats: how many values there will be.

    Raises:
        InvalidOptionError: the name is unknown, or K is larger than `repeats`.
    """
    if name in ("mean", "majority"):
        return Reducer(name, exact_mean if name == "mean" else majority, repeats)
    if name == "max":  # of fewer values it would be lower
        return Reducer(name, max, repeats, repeats)
    match = re.fullmatch(r"pass@([1-9][0-9]*)", name)
    if match is None:
        raise InvalidOptionError(
            f"There is no way to reduce repeats by '{name}'.", fix="Use mean, majority, max or pass@K."
        )
    k = int(match[1])
    if k > repeats:
        raise InvalidOptionError(
            f"{name} needs at least {counted(k, 'repeat')}, not {repeats}.", fix=f"Use --repeats {k} or more."
        )
    return Reducer(name, lambda values: pass_at(k, values), repeats, k)


def majority(values: Sequence[float]) -> float:
    """The most frequent value; the mean of those that are most frequent where several are."""
    counts = Counter(values)
    most = max(counts.values())
    return exact_mean([value for value, count in counts.items() if count == most])


def pass_at(k: int, values: Sequence[float]) -> float:
    """The probability that at least one of k answers, drawn from those given, is right.

    The estimate is that of `stats.pass_at_k`.

    Args:
        k: answers drawn, at most as many as there are.
        values: 1 for a right answer, 0 for a wrong answer.

    Raises:
        NewRunNeededError: a value is neither 0 nor 1; all items would fail, and each is paid.
    """
    other = next((value for value in values if value not in (0.0, 1.0)), None)
    if other is not None:
        raise NewRunNeededError(
            f"pass@{k} is for measurements that are 0 or 1, and the test gives {other:g}.",
            fix="Run it again with --reduce mean, majority or max: the cache pays for what was answered.",
        )
    return pass_at_k(len(values), int(sum(values)), k)


def joined(several: Sequence[Measured], reduce: Reducer) -> Measured:
    """The measurements of an item, computed from those of its repeats; what all gave as bool stays a bool."""
    values = (
        several[0].values
        if reduce.repeats == 1
        else reduced([measured.values for measured in several], reduce)
    )
    return Measured(
        values, tuple([name for name in values if all(name in measured.binary for measured in several)])
    )


def reduced(measurements: Sequence[Mapping[str, float]], reduce: Reducer) -> dict[str, float]:
    """One value for each measurement.

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
