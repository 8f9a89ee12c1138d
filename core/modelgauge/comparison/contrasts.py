"""`Contrast`: one measurement, compared between the baseline and one candidate; verdicts are in `verdicts`."""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from modelgauge.comparison.difference import (
    Difference,
    GroupDifference,
    Interval,
    MarginTest,
    MeasurementComparison,
    RepeatShares,
)
from modelgauge.comparison.families import Family, Question
from modelgauge.comparison.item_pairs import ItemPairs
from modelgauge.comparison.options import CompareOptions
from modelgauge.comparison.paired_values import PairedValues
from modelgauge.comparison.verdicts import groups_text, verdict, verdict_text
from modelgauge.data.results import Direction
from modelgauge.errors import InvalidOptionError
from modelgauge.stats.comparisons.designs import paired_repeat_variance
from modelgauge.stats.comparisons.equivalence import equivalence_test
from modelgauge.stats.comparisons.families import interaction_test
from modelgauge.stats.comparisons.paired import compute_differences


def build_contrasts(pairs: Sequence[tuple[ItemPairs, str]], options: CompareOptions) -> "list[Contrast]":
    """Compare measurements of paired items. Those with equal values on all items of both sides ask one question.

    A score of 0 or 1 and whether it passed, say: they must not cost each other's p values.

    Raises:
        InvalidDataError: a value is outside its range.
    """

    def are_equal(one: tuple[ItemPairs, str], other: tuple[ItemPairs, str]) -> bool:
        (items, name), (its_items, its_name) = one, other
        return items is its_items and all(
            np.array_equal(values[name], values[its_name], equal_nan=True)
            for values in (items.before.values, items.after.values)
        )

    questions = [
        next(place for place, earlier in enumerate(pairs) if earlier is pair or are_equal(earlier, pair))
        for pair in pairs
    ]
    return [
        Contrast(items, name, options, question)
        for (items, name), question in zip(pairs, questions, strict=True)
    ]


class Contrast:
    """One measurement of two systems: its p values, and with the family of these its row of the comparison.

    Args:
        items: of both systems.
        name: of the measurement, which both have.
        options: of the comparison.
        question: a number that measurements with equal values share.

    Raises:
        InvalidDataError: a value is outside the range.

    Attributes:
        values: of the items that have a value of both.
        difference: its p value is not adjusted.
        p_interaction: that the difference is the same in all groups; None if it is not tested.
    """

    def __init__(self, items: ItemPairs, name: str, options: CompareOptions, question: int = 0) -> None:
        self.items, self.name, self.question = items, name, question
        self._options, self._direction = options, items.directions.get(name)
        all_items = PairedValues.of(items, name)
        before, after = np.isnan(all_items.before), np.isnan(all_items.after)
        unmeasured, self._scored = items.unmeasured(name), all_items.scored
        missing = ~self._scored & ~unmeasured
        self._every, self.values = all_items.at(self._scored | missing), all_items.at(self._scored)
        bounds, bounds_interval = self._every.bounds()
        self.difference = self._of_values().replaced(
            n_only_baseline=items.n_only_baseline,
            n_only_candidate=items.n_only_candidate,
            n_failed=int(missing.sum()),
            n_failed_baseline=int(before[missing].sum()),
            n_failed_candidate=int(after[missing].sum()),
            n_unmeasured=int((unmeasured & ~(before & after)).sum()),
            direction=self._direction,
            value_range=self._every.ends,
            bounds=bounds,
            bounds_interval=bounds_interval,
            candidate_bounds=self._every.candidate_bounds(),
            p_if_worst=self._every.p_if_worst(self._direction, options),
        )
        self.p_interaction = _p_interaction(self.values, self._groups) if self._groups else None

    @property
    def places(self) -> NDArray[np.int64]:
        """The places of the items that have a value of both systems, among all that are paired."""
        return np.flatnonzero(self._scored)

    def _of_values(self) -> Difference:
        """Return the difference over the items for which both systems have a value."""
        values = self.values
        if not len(values.before):
            return Difference(difference=None)
        higher, lower = int((values.after > values.before).sum()), int((values.after < values.before).sum())
        wins, losses = (lower, higher) if self._direction == "lower" else (higher, lower)
        return values.difference(self._options).replaced(
            wins=wins,
            losses=losses,
            ties=len(values.before) - wins - losses,
            n_deciding=values.deciding_items(),
        )

    @cached_property
    def _groups(self) -> dict[str, PairedValues]:
        """The values of each group, in the order of the names; none if no groups were asked for."""
        if self.items.groups is None or not self._scored.any():
            return {}
        groups = np.array(self.items.groups, dtype=object)[self._scored]
        names, codes = np.unique(groups, return_inverse=True)
        places = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
        return {name: self.values.at(own) for name, own in zip(names.tolist(), places, strict=True)}

    def p_values(self) -> dict[Question, float]:
        """Return the p values of the difference and of the groups, by the question that each answers."""
        both = {"p_value": self.difference.p_value, "p_interaction": self.p_interaction}
        return {(kind, self.question, p): p for kind, p in both.items() if p is not None}

    def p_adjusted(self, family: Family) -> float | None:
        """Return the adjusted p value of the difference."""
        return family.adjusted.get(("p_value", self.question, self.difference.p_value))

    def row(self, family: Family) -> MeasurementComparison:
        """Return the row with its verdict.

        Raises:
            InvalidOptionError: the margin is no part of the measurement's range.
        """
        items, difference = self.items, self.difference.replaced(p_adjusted=self.p_adjusted(family))
        p_interaction = family.adjusted.get(("p_interaction", self.question, self.p_interaction))
        is_paired = difference.n_paired > 0
        margin = _margin_test(self._every, self.name, self._direction, self._options) if is_paired else None
        return MeasurementComparison(
            **dict(difference),
            test=items.test,
            measurement=self.name,
            candidate=items.candidate,
            matched_by=items.matched_by,
            equivalence=margin,
            groups=tuple([_group_difference(name, values) for name, values in self._groups.items()]),
            p_interaction=self.p_interaction,
            p_interaction_adjusted=p_interaction,
            groups_text=groups_text(p_interaction, family) if self._groups else None,
            repeats=_repeats(items, self.name, self._scored) if is_paired else None,
            verdict=verdict(difference, family, margin),
            verdict_text=verdict_text(items.candidate, difference, family, margin=margin),
        )


def check_margin(margin: float, name: str, ends: Interval | None) -> None:
    """Refuse a margin that no difference of a measurement could reach.

    Raises:
        InvalidOptionError: the margin is at least as large as the range.
    """
    low, high = ends or (-math.inf, math.inf)
    if margin >= high - low:
        raise InvalidOptionError(
            f"margin is {margin:g}, and '{name}' goes from {low:g} to {high:g} only.",
            fix="Give it in units of the measurement: 0.01 for one point of a share."
            " With measurements of other units, compare some only (--measurement NAME).",
        )


def _margin_test(
    values: PairedValues, name: str, direction: Direction | None, options: CompareOptions
) -> MarginTest | None:
    margin = options.margin
    if margin is None:
        return None
    check_margin(margin, name, values.ends)
    lower: float | None = 1.0
    higher: float | None = 1.0
    interval = None
    if values.extremes is not None:  # else the missing items could change anything
        lowest, highest = (
            equivalence_test(
                extreme.before,
                extreme.after,
                margin,
                clusters=extreme.clusters,
                declared=extreme.declared,
                alpha=options.alpha,
            )
            for extreme in values.extremes
        )
        lower, higher = lowest.p_not_lower, highest.p_not_higher
        interval = lowest.interval and highest.interval and (lowest.interval[0], highest.interval[1])
    not_worse = {"higher": lower, "lower": higher, None: None}[direction]
    p_equivalent = None if lower is None or higher is None else max(lower, higher)
    return MarginTest(
        margin=margin,
        interval=interval,
        p_equivalent=p_equivalent,
        p_not_worse=not_worse,
        equivalent=p_equivalent is not None and p_equivalent < options.alpha,
        not_worse=not_worse is not None and not_worse < options.alpha if direction else None,
    )


def _repeats(items: ItemPairs, name: str, scored: NDArray[np.bool_]) -> RepeatShares | None:
    sides = [repeats.get(name) for repeats in (items.before.repeats, items.after.repeats)]
    if not all(sides):
        return None
    places = np.flatnonzero(scored).tolist()
    before, after = ([values_of(place) for place in places] for values_of in sides if values_of is not None)
    if len(places) < 2 or not all(max(map(len, side)) > 1 for side in (before, after)):
        return None
    found = paired_repeat_variance(before, after)
    return RepeatShares(between=found.between, within=found.within)


def _group_difference(name: str, values: PairedValues) -> GroupDifference:
    found = dict(values.difference())
    return GroupDifference(group=name, **{key: found[key] for key in GroupDifference.written if key in found})


def _p_interaction(values: PairedValues, groups: Mapping[str, PairedValues]) -> float | None:
    """Return the p value that groups do not differ, of those whose differences spread; None if they share clusters."""
    if values.clusters is not None and sum(part.n_units for part in groups.values()) != values.n_units:
        return None
    errors = [
        compute_differences(part.before, part.after, part.clusters, part.declared).error
        for part in groups.values()
    ]
    known = [error for error in errors if error.stderr]
    return interaction_test(*zip(*known, strict=True)) if len(known) > 1 else None
