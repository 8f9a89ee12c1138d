"""What measurements must reach, and whether those of an item do."""

from collections.abc import Mapping

from pydantic import FiniteFloat

from modelgauge.data.base import Frozen
from modelgauge.data.results import PASSED


class Threshold(Frozen):
    """What a measurement must reach for its item to pass.

    Args:
        value: the least that passes; where lower is better, the most.
        higher_is_better: the direction.
    """

    value: FiniteFloat
    higher_is_better: bool = True

    def is_reached(self, value: float) -> bool:
        """Whether a value passes."""
        return value >= self.value if self.higher_is_better else value <= self.value


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
