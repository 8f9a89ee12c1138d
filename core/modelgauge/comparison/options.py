"""The options of comparisons and of plans of these: the values and the meaning of each, in one place.

The commands `compare` and `plan`, `modelgauge.compare`, `modelgauge.plan_comparison` and the reference follow from it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypedDict

from modelgauge.config.options import (
    ABOVE_0,
    FIELD,
    FOLDER,
    FROM_0_TO_1,
    TEXT,
    OptionInfo,
    Values,
    check_options,
    is_number,
    one_of,
    option,
    options_in,
    whole_number,
)
from modelgauge.errors import InvalidOptionError
from modelgauge.wording.did_you_mean import known_names

ALLOWED = ("data", "targets", "reduction", "thresholds", "judge", "test")
"""In what runs may differ that makes their numbers incomparable, unless it is allowed."""

_NAME = TEXT._replace(wanted="the name of a measurement")
_LEVEL = Values("a number above 0 and below 0.5", lambda value: is_number(value) and 0 < value < 0.5, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """The options of a comparison.

    Args:
        data_dir: The folder of runs; by default what the settings say.
        baseline_sut: The baseline's SUT, by its label or uid, if its runs measured several; without a CANDIDATE, the
            others are compared with it.
        match: Pair items by this key: id, source, name, input, or a field of their contexts. By default the first key
            that pairs items and is unique on both sides.
        allow: Compare even if the runs differ in this: data, targets, reduction, thresholds, judge or test;
            repeatable.
        measurements: Compare only this measurement; repeatable. Each further measurement makes differences harder to
            find.
        lower_is_better: Treat lower values of this measurement as better; repeatable.
        higher_is_better: Treat higher values of this measurement as better; repeatable.
        group_by: Also compare for each value of this field of the items' contexts, and test whether the groups differ.
        test: How p values are computed: permutation, wilcoxon or bootstrap. By default McNemar's test for right and
            wrong, Student's t for numbers; clustered if items are.
        alpha: An adjusted p value below this is a finding.
        margin: Test whether a difference is smaller than this, in units of the measurement: 0.01 for one point.
        seed: The seed of permutations and random draws.

    Raises:
        InvalidOptionError: an option cannot have the given value.
    """

    data_dir: str | Path | None = option(None, "items", FOLDER)  # noqa: RUF009  it makes a field
    baseline_sut: str | None = option(None, "items", TEXT._replace(wanted="the uid of a SUT"), "UID")
    match: str | None = option(None, "items", FIELD._replace(wanted="a key of items, such as id"), "KEY")
    allow: tuple[str, ...] = option((), "items", one_of(*ALLOWED), "KIND")
    measurements: tuple[str, ...] = option((), "items", _NAME, "NAME", "--measurement")
    lower_is_better: tuple[str, ...] = option((), "verdict", _NAME, "NAME")
    higher_is_better: tuple[str, ...] = option((), "verdict", _NAME, "NAME")
    group_by: str | None = option(None, "items", FIELD, "FIELD")
    test: str | None = option(None, "verdict", one_of("permutation", "wilcoxon", "bootstrap"), "METHOD")
    alpha: float = option(0.05, "verdict", _LEVEL, "NUMBER")
    margin: float | None = option(None, "verdict", ABOVE_0, "NUMBER")
    seed: int = option(0, "verdict", whole_number(0), "N")

    @classmethod
    def of(cls, **given: Any) -> Self:
        """Make options of keyword arguments; a text stands for a list with that text.

        Raises:
            InvalidOptionError: an option does not exist, or cannot have the given value.
        """
        for name in given:
            if name not in OPTIONS:
                fix = known_names(name, OPTIONS, "The options are")
                raise InvalidOptionError(f"There is no option '{name}'.", fix=fix)
        return cls(**given)

    def __post_init__(self) -> None:
        for name, about in OPTIONS.items():
            if about.several:
                given: Any = getattr(self, name)
                object.__setattr__(self, name, (given,) if isinstance(given, str) else tuple(given or ()))
        check_options(self)
        both = [name for name in self.lower_is_better if name in self.higher_is_better]
        if both:
            raise InvalidOptionError(
                f"'{both[0]}' is given as better the lower it is, and the higher it is.",
                fix="Give it once.",
            )


class CompareOptionsDict(TypedDict, total=False):
    """The options of a comparison that `modelgauge.compare` takes by name; what each means is in `OPTIONS`."""

    data_dir: str | Path | None
    baseline_sut: str | None
    match: str | None
    allow: str | Sequence[str]
    measurements: str | Sequence[str]
    lower_is_better: str | Sequence[str]
    higher_is_better: str | Sequence[str]
    group_by: str | None
    test: str | None
    alpha: float
    margin: float | None
    seed: int


OPTIONS: dict[str, OptionInfo] = options_in(CompareOptions)
"""Each option of a comparison by its name."""


# --- plans ----------------------------------------------------------------------------------------------------


def _numbers(wanted: str, holds: Callable[[float], bool]) -> Values:
    return Values(f"a number {wanted}", lambda value: is_number(value) and holds(value), float)


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

    measurement: str | None = option(None, "systems", _NAME, "NAME")
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
    cluster_correlation: float = option(0.0, "items", FROM_0_TO_1, "NUMBER")
    repeats: int | None = option(None, "items", whole_number(1), "N")
    repeat_correlation: float | None = option(None, "systems", FROM_0_TO_1, "NUMBER")

    def __post_init__(self) -> None:
        check_options(self)


class PlanOptionsDict(TypedDict, total=False):
    """The options of a plan that `modelgauge.plan_comparison` takes by name; what each means is in `PLAN_OPTIONS`."""

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


PLAN_OPTIONS: dict[str, OptionInfo] = options_in(PlanOptions)
"""Each option of a plan by its name."""
