"""What measurements must reach, and whether those of an item do."""

from collections.abc import Mapping

from pydantic import FiniteFloat

from modelgauge.data.base import Frozen
from modelgauge.data.results import PASSED

_TOLERANCE = 1e-9
"""Far above the noise of floats, and far below a difference that a score could mean."""


def reaches(value: float, threshold: float, *, higher_is_better: bool) -> bool:
    """Whether a value passes a threshold: every comparison of the two, whoever makes it.

    Args:
        value: a score, or another measurement.
        threshold: the least that passes, or the most; a value within 1e-9 of it passes.
        higher_is_better: the direction.
    """
    beyond = value - threshold if higher_is_better else threshold - value
    return beyond >= -_TOLERANCE


class Threshold(Frozen):
    """What a measurement must reach for its item to pass.

    Args:
        value: the least that passes; where lower is better, the most. A value within 1e-9 of it passes.
        higher_is_better: the direction.
    """

    value: FiniteFloat
    higher_is_better: bool = True

    def is_reached(self, value: float) -> bool:
        """Whether a value passes."""
        return reaches(value, self.value, higher_is_better=self.higher_is_better)


def judged(thresholds: Mapping[str, Threshold], measurements: Mapping[str, float]) -> dict[str, bool]:
    """Whether an item passed, as far as its measurements do not say so themselves: `NAME.passed` and `passed`.

    An item without a measurement that has a threshold did not reach it.

    Args:
        thresholds: of the test, by the names of measurements.
        measurements: of the item; what they say goes before what follows from the thresholds.
    """
    found: dict[str, bool] = {}
    every = True
    for name, threshold in thresholds.items():
        said = measurements.get(f"{name}.{PASSED}")
        if said is None and name in measurements:
            said = found[f"{name}.{PASSED}"] = threshold.is_reached(measurements[name])
        every = every and bool(said)
    if thresholds and PASSED not in measurements:
        found[PASSED] = every
    return found
