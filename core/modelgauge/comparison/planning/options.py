"""The options of a plan: the values and the meaning of each, in one place.

The `plan` command, `modelgauge.plan_comparison` and the reference follow from it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

from modelgauge.config.options import (
    ABOVE_0,
    TEXT,
    OptionInfo,
    Values,
    check_options,
    is_number,
    option,
    options_in,
    whole_number,
)


def _numbers(wanted: str, holds: Callable[[float], bool]) -> Values:
    return Values(f"a number {wanted}", lambda value: is_number(value) and holds(value), float)


_SHARE = _numbers("from 0 to 1", lambda value: 0 <= value <= 1)
_INSIDE = _numbers("above 0 and below 1", lambda value: 0 < value < 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """The options of a plan.

    Args:
        measurement: Plan for this measurement of the runs; by default the only measurement.
        rate: The share of items that the baseline gets right, if there are no runs.
        stddev: The standard deviation of other measurements over the items, if there are no runs.
        correlation: The correlation of the systems over the items; give 0 if it is unknown: then pairing saves
            nothing.
        effect: The difference to find, candidate minus baseline: 0.05 for five points.
        items: How many items are asked; by default those that the runs have in common.
        power: The chance to find the effect.
        alpha: The level of the test.
        comparisons: How many comparisons share the level, by Holm's method.
        failure_rate: The share of items that will fail, for each system; by default that of the runs.
        cluster_size: How many items are in a cluster, such as questions about one text; by default as in the runs.
        cluster_correlation: The correlation of the differences of two items in a cluster.
        repeats: How often each item is asked; by default as often as in the runs.
        repeat_correlation: The correlation of two answers of a system to one item; by default that of runs with
            repeats.

    Raises:
        InvalidOptionError: an option cannot have the given value.
    """

    measurement: str | None = option(
        None, "systems", TEXT._replace(wanted="the name of a measurement"), "NAME"
    )
    rate: float | None = option(None, "systems", _INSIDE, "NUMBER")
    stddev: float | None = option(None, "systems", ABOVE_0, "NUMBER")
    correlation: float | None = option(
        None, "systems", _numbers("from -1 to 1", lambda value: -1 <= value <= 1), "NUMBER"
    )
    effect: float | None = option(
        None, "goal", _numbers("other than 0", lambda value: value != 0 and math.isfinite(value)), "NUMBER"
    )
    items: int | None = option(None, "items", whole_number(2), "N")
    power: float = option(0.8, "goal", _INSIDE, "NUMBER")
    alpha: float = option(0.05, "goal", _INSIDE, "NUMBER")
    comparisons: int = option(1, "goal", whole_number(1), "N")
    failure_rate: float | None = option(
        None, "items", _numbers("from 0 to below 1", lambda value: 0 <= value < 1), "NUMBER"
    )
    cluster_size: float = option(
        1.0, "items", _numbers("of 1 or more", lambda value: 1 <= value < math.inf), "N"
    )
    cluster_correlation: float = option(0.0, "items", _SHARE, "NUMBER")
    repeats: int | None = option(None, "items", whole_number(1), "N")
    repeat_correlation: float | None = option(None, "systems", _SHARE, "NUMBER")

    def __post_init__(self) -> None:
        check_options(self)


class PlanOptionsDict(TypedDict, total=False):
    """The options of a plan that `modelgauge.plan_comparison` takes by name; what each means is in `OPTIONS`."""

    measurement: str | None
    rate: float | None
    stddev: float | None
    correlation: float | None
    effect: float | None
    items: int | None
    power: float
    alpha: float
    comparisons: int
    failure_rate: float | None
    cluster_size: float
    cluster_correlation: float
    repeats: int | None
    repeat_correlation: float | None


OPTIONS: dict[str, OptionInfo] = options_in(PlanOptions)
"""Each option by its name."""
