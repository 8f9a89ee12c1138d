"""The numbers of one measurement, compared between the baseline and one candidate; verdicts are in `verdicts`."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelgauge.comparison.options import CompareOptions
from modelgauge.comparison.pairing.paired_items import PairedItems
from modelgauge.comparison.result import (
    GroupDifference,
    Interval,
    MarginTest,
    MeasurementComparison,
    PartlyKnown,
    RepeatShares,
)
from modelgauge.data.results import Direction
from modelgauge.errors import InvalidOptionError
from modelgauge.stats.comparisons.bootstrap import bootstrap_difference
from modelgauge.stats.comparisons.designs import paired_repeat_variance
from modelgauge.stats.comparisons.distribution_free import rank_direction, sign_flip_test, wilcoxon_test
from modelgauge.stats.comparisons.equivalence import equivalence_test
from modelgauge.stats.comparisons.families import interaction_test
from modelgauge.stats.comparisons.missing_items import difference_bounds
from modelgauge.stats.comparisons.paired import (
    PairedDifference,
    deciding_items,
    differences_of,
    paired_difference,
)
from modelgauge.stats.intervals import CONFIDENCE, is_proportion, joined_clusters

_LEAST_RESAMPLED = 20
"""The fewest items, or clusters, to resample. With fewer, the intervals of the bootstrap are too narrow."""


class _Values(NamedTuple):
    """One measurement of two systems on the same items, and what is known of it.

    Args:
        before: (n,) the baseline's.
        after: (n,) the candidate's.
        clusters: (n,) codes; None if every item is its own cluster.
        declared: the lowest and the highest possible value, infinite at an open end; None if they are not known.
    """

    before: NDArray[np.float64]
    after: NDArray[np.float64]
    clusters: NDArray[np.int64] | None
    declared: Interval | None

    @property
    def ends(self) -> Interval | None:
        """The range, where it has two ends."""
        low, high = self.declared or (-math.inf, math.inf)
        return (low, high) if low < high < math.inf and low > -math.inf else None

    def at(self, places: NDArray[np.bool_] | NDArray[np.int64]) -> "_Values":
        """Select the values and clusters of some items."""
        clusters = None if self.clusters is None else joined_clusters(self.clusters[places])
        return self._replace(before=self.before[places], after=self.after[places], clusters=clusters)

    @property
    def is_whole(self) -> bool:
        """Return whether no value is missing."""
        return not (np.isnan(self.before).any() or np.isnan(self.after).any())

    @property
    def extremes(self) -> "tuple[_Values, _Values] | None":
        """Return the values with the lowest, and with the highest possible difference; None if they are unknown."""
        if self.is_whole:
            return self, self
        if self.ends is None or not len(self.before):
            return None
        low, high = self.ends
        return self._filled(high, low), self._filled(low, high)

    def _filled(self, before: float, after: float) -> "_Values":
        """Replace each missing value of a side by a number."""
        return self._replace(
            before=np.nan_to_num(self.before, nan=before), after=np.nan_to_num(self.after, nan=after)
        )

    @property
    def n_units(self) -> int:
        """How many of them are independent: items, or clusters."""
        return len(self.before) if self.clusters is None else int(self.clusters.max()) + 1

    def deciding_items(self) -> int | None:
        """Count the items that decide the difference. Return None if they are many, or for right and wrong answers."""
        if is_proportion(np.concatenate([self.before, self.after]), self.declared):
            return None
        return deciding_items(self.before, self.after)

    def paired_difference(self, confidence: float = CONFIDENCE) -> PairedDifference:
        return paired_difference(
            self.before, self.after, clusters=self.clusters, declared=self.declared, confidence=confidence
        )


def contrast(items: PairedItems, name: str, options: CompareOptions) -> MeasurementComparison:
    """Compare a measurement that both systems have; its verdict waits for the other comparisons of its family.

    Raises:
        InvalidOptionError: the margin is no part of the measurement's range.
        InvalidDataError: a value is outside the range.
    """
    before, after = items.before.values[name], items.after.values[name]
    scored = ~(np.isnan(before) | np.isnan(after))
    unmeasured = items.unmeasured(name)
    missing = ~scored & ~unmeasured
    all_items = _Values(before, after, items.clusters, _declared_range(items, name, scored))
    every, direction = all_items.at(scored | missing), items.directions.get(name)
    known: dict[str, Any] = {
        "test": items.test,
        "measurement": name,
        "candidate": items.candidate,
        "matched_by": items.matched_by,
        "n_paired": int(scored.sum()),
        "n_only_baseline": items.n_only_baseline,
        "n_only_candidate": items.n_only_candidate,
        "n_unmeasured": int((unmeasured & ~(np.isnan(before) & np.isnan(after))).sum()),
        "n_failed": int(missing.sum()),
        "n_failed_baseline": int(np.isnan(before[missing]).sum()),
        "n_failed_candidate": int(np.isnan(after[missing]).sum()),
        "direction": direction,
        **_with_missing_items(every, direction, options),
        "verdict": "cannot_tell",
        "verdict_text": "",
    }
    if not scored.any():
        return MeasurementComparison(
            baseline_value=None, candidate_value=None, difference=None, wins=0, losses=0, ties=0, **known
        )
    values = all_items.at(scored)
    found = _difference(values, options)
    higher, lower = int((values.after > values.before).sum()), int((values.after < values.before).sum())
    wins, losses = (lower, higher) if direction == "lower" else (higher, lower)
    groups, p_interaction = _by_group(values, items, scored)
    return MeasurementComparison(
        **known,
        **_means(found),
        stderr_unpaired=found.stderr_unpaired,
        correlation=found.correlation,
        p_value=found.p_value,
        p_kind=found.p_kind,
        p_mid=found.p_mid,
        wins=wins,
        losses=losses,
        ties=len(values.before) - wins - losses,
        mde=found.mde,
        n_deciding=values.deciding_items(),
        n_clusters=found.difference.n_clusters,
        equivalence=_margin_test(every, name, direction, options),
        groups=groups,
        p_interaction=p_interaction,
        repeats=_repeats(items, name, scored),
    )


def _declared_range(items: PairedItems, name: str, scored: NDArray[np.bool_]) -> Interval | None:
    """The range that the runs declare; (0, 1) for right and wrong if they declare none."""
    if name in items.ranges:
        return items.ranges[name]
    both = [values[name][scored] for values in (items.before.values, items.after.values)]
    return (0.0, 1.0) if scored.any() and is_proportion(np.concatenate(both)) else None


def _with_missing_items(
    every: _Values, direction: Direction | None, options: CompareOptions
) -> dict[str, Any]:
    """Return the range, and the bounds that the missing items allow."""
    bounds, bounds_interval = _bounds(every)
    return {
        "value_range": every.ends,
        "bounds": bounds,
        "bounds_interval": bounds_interval,
        "candidate_bounds": _bounds_of_mean(every.after, every.declared),
        "p_if_worst": _p_if_worst(every, direction, options),
    }


def _bounds(every: _Values) -> tuple[Interval | None, Interval | None]:
    """Return the lowest and highest difference that missing items allow, and the interval whatever they would be."""
    if every.ends is None or not len(every.before):
        return None, None
    found = difference_bounds(every.before, every.after, *every.ends, clusters=every.clusters)
    return found.bounds, None if every.is_whole else found.interval


def _bounds_of_mean(values: NDArray[np.float64], declared: Interval | None) -> PartlyKnown | None:
    """Return the lowest and the highest mean that missing values allow; None at an end that is not known."""
    if not len(values):
        return None
    missing, total = int(np.isnan(values).sum()), math.fsum(values[~np.isnan(values)])
    ends = (0.0, 0.0) if not missing else declared or (-math.inf, math.inf)
    low, high = ((total + missing * end) / len(values) for end in ends)
    return low if math.isfinite(low) else None, high if math.isfinite(high) else None


def _p_if_worst(every: _Values, direction: Direction | None, options: CompareOptions) -> float | None:
    """Return the p value with every missing item at the worst for the candidate; None if that is no loss."""
    extremes = every.extremes
    if every.is_whole or extremes is None or direction is None:
        return None
    found = _difference(extremes[direction == "lower"], options)
    loss = found.difference.value if direction == "lower" else -found.difference.value
    return found.p_value if loss > 0 else None


def pair_difference(
    items: PairedItems, name: str, options: CompareOptions, confidence: float
) -> PairedDifference | None:
    """Return the difference of a measurement over the items with a value of both systems; None if there are none.

    Args:
        items: of two systems.
        name: of the measurement.
        options: how p values are computed.
        confidence: of the interval, between 0 and 1.
    """
    before, after = items.before.values[name], items.after.values[name]
    scored = ~(np.isnan(before) | np.isnan(after))
    every = _Values(before, after, items.clusters, _declared_range(items, name, scored))
    return _difference(every.at(scored), options, confidence) if scored.any() else None


def _difference(values: _Values, options: CompareOptions, confidence: float = CONFIDENCE) -> PairedDifference:
    """The difference with its error bar, and its p value by the test that was asked for, where that can be made."""
    found = values.paired_difference(confidence)
    if found.difference.interval is None:  # without a p value, nothing can be concluded about other items
        return found
    if options.test == "permutation":
        p_value = sign_flip_test(values.before, values.after, clusters=values.clusters, seed=options.seed)
        return found._replace(p_value=p_value, p_kind="permutation", p_mid=None)
    if options.test == "wilcoxon" and values.clusters is None and _ranks_agree(values, found):
        p_value = wilcoxon_test(values.before, values.after)
        return found._replace(p_value=p_value, p_kind="wilcoxon", p_mid=None)
    if options.test == "bootstrap" and values.n_units >= _LEAST_RESAMPLED:
        drawn = bootstrap_difference(
            values.before,
            values.after,
            clusters=values.clusters,
            seed=options.seed,
            confidence=confidence,
        )
        if drawn.interval is not None:
            difference = found.difference.replaced(interval=drawn.interval, interval_kind="bca")
            return found._replace(
                difference=difference, p_value=drawn.p_value, p_kind="bootstrap", p_mid=None
            )
    return found


def _means(found: PairedDifference) -> dict[str, Any]:
    """What a comparison and the difference of a group have in common."""
    difference = found.difference
    return {
        "baseline_value": found.baseline,
        "candidate_value": found.candidate,
        "difference": difference.value,
        "stderr": difference.stderr,
        "interval": difference.interval,
        "interval_kind": difference.interval_kind,
    }


def _ranks_agree(values: _Values, found: PairedDifference) -> bool:
    """Whether ranks and means put the candidate on the same side, so that a test of the ranks speaks of the means."""
    return rank_direction(values.before, values.after) == int(np.sign(found.difference.value))


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
    values: _Values, name: str, direction: Direction | None, options: CompareOptions
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


def _repeats(items: PairedItems, name: str, scored: NDArray[np.bool_]) -> RepeatShares | None:
    sides = [repeats.get(name) for repeats in (items.before.repeats, items.after.repeats)]
    if not all(sides):
        return None
    places = np.flatnonzero(scored).tolist()
    before, after = ([values_of(place) for place in places] for values_of in sides if values_of is not None)
    if len(places) < 2 or not all(max(map(len, side)) > 1 for side in (before, after)):
        return None
    found = paired_repeat_variance(before, after)
    return RepeatShares(between=found.between, within=found.within)


def _by_group(
    values: _Values, items: PairedItems, scored: NDArray[np.bool_]
) -> tuple[tuple[GroupDifference, ...], float | None]:
    """The difference in each group, in the order of their names, and the p value that it is the same in all."""
    if items.groups is None:
        return (), None
    names, codes = np.unique(np.array(items.groups, dtype=object)[scored], return_inverse=True)
    parts = [
        values.at(places)
        for places in np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    ]
    groups = tuple(
        [
            GroupDifference(group=name, n_paired=len(part.before), **_means(part.paired_difference()))
            for name, part in zip(names.tolist(), parts, strict=True)
        ]
    )
    apart = values.clusters is None or sum(part.n_units for part in parts) == values.n_units
    return groups, _p_interaction(parts) if apart else None


def _p_interaction(parts: list[_Values]) -> float | None:
    """The p value that groups of independent items do not differ; of those whose differences spread."""
    errors = [differences_of(part.before, part.after, part.clusters, part.declared).error for part in parts]
    known = [error for error in errors if error.stderr]
    return interaction_test(*zip(*known, strict=True)) if len(known) > 1 else None
