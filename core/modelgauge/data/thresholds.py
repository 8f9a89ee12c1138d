"""The decision whether an item passed its thresholds: `has_passed`. That on a run is in `runs/passing.py`.

The class `Threshold` is in `results.py`, since cache keys contain the module of a class.
"""

from collections.abc import Mapping
from types import MappingProxyType

from modelgauge.data.results import Direction, Threshold

PASSED = "passed"
"""The measurement that says whether an item passed all its thresholds; `NAME.passed`, that of one of them."""


def has_passed(
    measurements: Mapping[str, float],
    name: str | None = None,
    thresholds: Mapping[str, Threshold] = MappingProxyType({}),
) -> bool | None:
    """Return whether an item passed a threshold, or all thresholds. All code that needs to know calls this function.

    The measurement `NAME.passed` (or `passed`) decides if the item has it; all repeats must pass. Otherwise the
    measurements are compared with the thresholds.

    Args:
        measurements: of the item.
        name: the measurement with the threshold; None for all.
        thresholds: of the test, by the names of measurements.

    Returns:
        None if a measurement is missing, or has no threshold: the item has neither passed nor failed.
    """
    known = measurements.get(PASSED if name is None else f"{name}.{PASSED}")
    if known is not None:
        return known >= 1
    if name is None:
        each = [has_passed(measurements, key, thresholds) for key in thresholds]
        return None if None in each or not each else all(each)
    if name not in measurements or name not in thresholds:
        return None
    return thresholds[name].is_reached(measurements[name])


def judged(thresholds: Mapping[str, Threshold], measurements: Mapping[str, float]) -> dict[str, bool]:
    """Return the measurements `NAME.passed` and `passed` that an item lacks.

    An item that lacks a measurement with a threshold does not pass all of them.

    Args:
        thresholds: of the test, by the names of measurements.
        measurements: of the item.
    """
    each = {f"{name}.{PASSED}": has_passed(measurements, name, thresholds) for name in thresholds}
    found = {name: passed for name, passed in each.items() if passed is not None}
    if thresholds:
        found[PASSED] = len(found) == len(each) and all(found.values())
    return {name: passed for name, passed in found.items() if name not in measurements}


def failing(measurements: Mapping[str, float]) -> tuple[str, ...]:
    """Return the measurements of an item that did not reach their thresholds, in one of its repeats at least."""
    return tuple([name for name in measurements if has_passed(measurements, name) is False])


def known_directions(
    declared: Mapping[str, Direction], thresholds: Mapping[str, Threshold]
) -> dict[str, Direction]:
    """Return which values are better, "higher" or "lower", for each measurement with a known direction.

    Args:
        declared: of the test.
        thresholds: of the test; what passes them is better, and to pass is.
    """
    of_thresholds: dict[str, Direction] = {
        name: "higher" if threshold.higher_is_better else "lower" for name, threshold in thresholds.items()
    }
    passed: dict[str, Direction] = {f"{name}.{PASSED}": "higher" for name in thresholds}
    return {**of_thresholds, **passed, **({PASSED: "higher"} if thresholds else {}), **declared}
