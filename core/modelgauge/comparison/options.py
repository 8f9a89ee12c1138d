"""The options of comparisons, and of plans of these, each declared once by a field.

The commands `compare` and `plan`, `modelgauge.compare`, `modelgauge.plan_comparison` and the reference follow from the
fields.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, get_args

from modelgauge.config.options import (
    FIELD,
    FOLDER,
    Option,
    Values,
    check_options,
    is_number,
    option,
    options_in,
)
from modelgauge.errors import InvalidOptionError
from modelgauge.wording.did_you_mean import known_names

Allowed = Literal["data", "targets", "reduction", "thresholds", "judge", "test"]
"""In what runs may differ that makes their numbers incomparable, unless it is allowed."""
ALLOWED: tuple[Allowed, ...] = get_args(Allowed)

_NAME = "the name of a measurement"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """The options of a comparison.

    Raises:
        InvalidOptionError: an option cannot have the given value.
    """

    data_dir: str | Path | None = option(
        None, "The folder of runs; by default what the settings say.", group="items", values=FOLDER
    )
    baseline_sut: str | None = option(
        None,
        "The baseline's SUT, by its label or uid, if its runs measured several; without a CANDIDATE, the others are "
        "compared with it.",
        group="items",
        wanted="the uid of a SUT",
        metavar="UID",
    )
    match: str | None = option(
        None,
        "Pair items by this key: id, source, name, input, or a field of their contexts. By default the first key that "
        "pairs items and is unique on both sides.",
        group="items",
        wanted="a key of items, such as id",
        metavar="KEY",
    )
    allow: tuple[Allowed, ...] = option(
        (),
        "Compare even if the runs differ in this: data, targets, reduction, thresholds, judge or test; repeatable.",
        group="items",
        metavar="KIND",
    )
    measurements: tuple[str, ...] = option(
        (),
        "Compare only this measurement; repeatable. Each further measurement makes differences harder to find.",
        group="items",
        wanted=_NAME,
        metavar="NAME",
        flags=("--measurement",),
    )
    lower_is_better: tuple[str, ...] = option(
        (),
        "Treat lower values of this measurement as better; repeatable.",
        group="verdict",
        wanted=_NAME,
        metavar="NAME",
    )
    higher_is_better: tuple[str, ...] = option(
        (),
        "Treat higher values of this measurement as better; repeatable.",
        group="verdict",
        wanted=_NAME,
        metavar="NAME",
    )
    group_by: str | None = option(
        None,
        "Also compare for each value of this field of the items' contexts, and test whether the groups differ.",
        group="items",
        wanted=FIELD,
        metavar="FIELD",
    )
    test: Literal["permutation", "wilcoxon", "bootstrap"] | None = option(
        None,
        "Method for p values: permutation, wilcoxon or bootstrap. By default McNemar's test for right and wrong, "
        "Student's t for numbers; clustered if items are.",
        group="verdict",
        metavar="METHOD",
    )
    alpha: float = option(
        0.05,
        "An adjusted p value below this is a finding.",
        group="verdict",
        gt=0,
        lt=0.5,
        metavar="NUMBER",
    )
    margin: float | None = option(
        None,
        "Test whether a difference is smaller than this, in units of the measurement: 0.01 for one point.",
        group="verdict",
        gt=0,
        metavar="NUMBER",
    )
    seed: int = option(0, "The seed of permutations and random draws.", group="verdict", ge=0, metavar="N")

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
                f"'{both[0]}' is in both lower_is_better and higher_is_better.",
                fix="Remove it from one of them.",
            )


OPTIONS: dict[str, Option] = options_in(CompareOptions)
"""Each option of a comparison by its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """The options of a plan.

    Raises:
        InvalidOptionError: an option cannot have the given value.
    """

    measurement: str | None = option(
        None,
        "Plan for this measurement of the runs; by default the only measurement.",
        group="systems",
        wanted=_NAME,
        metavar="NAME",
    )
    rate: float | None = option(
        None,
        "The share of items that the baseline gets right, if there are no runs.",
        group="systems",
        gt=0,
        lt=1,
        metavar="NUMBER",
    )
    stddev: float | None = option(
        None,
        "The standard deviation of other measurements over the items, if there are no runs.",
        group="systems",
        gt=0,
        metavar="NUMBER",
    )
    correlation: float | None = option(
        None,
        "The correlation of the systems over the items; give 0 if it is unknown: then pairing saves nothing.",
        group="systems",
        ge=-1,
        le=1,
        metavar="NUMBER",
    )
    effect: float | None = option(
        None,
        "The difference to find, candidate minus baseline: 0.05 for five points.",
        group="goal",
        values=Values(
            "a number other than 0",
            lambda value: is_number(value) and value != 0 and math.isfinite(value),
            float,
        ),
        metavar="NUMBER",
    )
    items: int | None = option(
        None,
        "Number of items; by default those that the runs have in common.",
        group="items",
        ge=2,
        metavar="N",
    )
    power: float = option(0.8, "The chance to find the effect.", group="goal", gt=0, lt=1, metavar="NUMBER")
    alpha: float = option(0.05, "The level of the test.", group="goal", gt=0, lt=1, metavar="NUMBER")
    comparisons: int = option(
        1, "Number of comparisons that share the level, by Holm's method.", group="goal", ge=1, metavar="N"
    )
    failure_rate: float | None = option(
        None,
        "The share of items that will fail, for each system; by default that of the runs.",
        group="items",
        ge=0,
        lt=1,
        metavar="NUMBER",
    )
    cluster_size: float = option(
        1.0,
        "Number of items in a cluster, such as questions about one text; by default as in the runs.",
        group="items",
        ge=1,
        metavar="N",
    )
    cluster_correlation: float = option(
        0.0,
        "The correlation of the differences of two items in a cluster.",
        group="items",
        ge=0,
        le=1,
        metavar="NUMBER",
    )
    repeats: int | None = option(
        None,
        "Number of repeats of each item; by default as in the runs.",
        group="items",
        ge=1,
        metavar="N",
    )
    repeat_correlation: float | None = option(
        None,
        "The correlation of two answers of a system to one item; by default that of runs with repeats.",
        group="systems",
        ge=0,
        le=1,
        metavar="NUMBER",
    )

    def __post_init__(self) -> None:
        check_options(self)


PLAN_OPTIONS: dict[str, Option] = options_in(PlanOptions)
"""Each option of a plan by its name."""
