"""The options of comparisons and plans as keyword arguments. `docs/generate.py` writes them from `options.py`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypedDict

from modelgauge.comparison.options import Allowed


class CompareOptionsDict(TypedDict, total=False):
    """The options of a comparison."""

    data_dir: str | Path | None
    """The folder of runs; by default what the settings say."""
    baseline_sut: str | None
    """The baseline's SUT, by its label or uid, if its runs measured several; without a CANDIDATE, the others are
    compared with it.
    """
    match: str | None
    """Pair items by this key: id, source, name, input, or a field of their contexts. By default the first key that
    pairs items and is unique on both sides.
    """
    allow: Allowed | Sequence[Allowed]
    """Compare even if the runs differ in this: data, targets, reduction, thresholds, judge or test; repeatable.
    """
    measurements: str | Sequence[str]
    """Compare only this measurement; repeatable. Each further measurement makes differences harder to find.
    """
    lower_is_better: str | Sequence[str]
    """Treat lower values of this measurement as better; repeatable."""
    higher_is_better: str | Sequence[str]
    """Treat higher values of this measurement as better; repeatable."""
    group_by: str | None
    """Also compare for each value of this field of the items' contexts, and test whether the groups differ.
    """
    test: Literal["permutation", "wilcoxon", "bootstrap"] | None
    """Method for p values: permutation, wilcoxon or bootstrap. By default McNemar's test for right and wrong, Student's
    t for numbers; clustered if items are.
    """
    alpha: float
    """An adjusted p value below this is a finding."""
    margin: float | None
    """Test whether a difference is smaller than this, in units of the measurement: 0.01 for one point."""
    seed: int
    """The seed of permutations and random draws."""


class PlanOptionsDict(TypedDict, total=False):
    """The options of a plan."""

    measurement: str | None
    """Plan for this measurement of the runs; by default the only measurement."""
    rate: float | None
    """The share of items that the baseline gets right, if there are no runs."""
    stddev: float | None
    """The standard deviation of other measurements over the items, if there are no runs."""
    correlation: float | None
    """The correlation of the systems over the items; give 0 if it is unknown: then pairing saves nothing."""
    effect: float | None
    """The difference to find, candidate minus baseline: 0.05 for five points."""
    items: int | None
    """Number of items; by default those that the runs have in common."""
    power: float
    """The chance to find the effect."""
    alpha: float
    """The level of the test."""
    comparisons: int
    """Number of comparisons that share the level, by Holm's method."""
    failure_rate: float | None
    """The share of items that will fail, for each system; by default that of the runs."""
    cluster_size: float
    """Number of items in a cluster, such as questions about one text; by default as in the runs."""
    cluster_correlation: float
    """The correlation of the differences of two items in a cluster."""
    repeats: int | None
    """Number of repeats of each item; by default as in the runs."""
    repeat_correlation: float | None
    """The correlation of two answers of a system to one item; by default that of runs with repeats."""
