"""`PairedValues`: one measurement of two systems on the same items, and their difference."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelgauge.comparison.difference import Difference, Interval, PartlyKnown
from modelgauge.comparison.item_pairs import ItemPairs
from modelgauge.comparison.options import CompareOptions
from modelgauge.data.results import Direction
from modelgauge.stats.comparisons.bootstrap import bootstrap_difference
from modelgauge.stats.comparisons.distribution_free import rank_direction, sign_flip_test, wilcoxon_test
from modelgauge.stats.comparisons.missing_items import difference_bounds
from modelgauge.stats.comparisons.paired import PairedDifference, deciding_items, paired_difference
from modelgauge.stats.intervals import CONFIDENCE, is_proportion, joined_clusters

_LEAST_RESAMPLED = 20
"""The fewest items, or clusters, to resample. With fewer, the intervals of the bootstrap are too narrow."""


class PairedValues(NamedTuple):
    """One measurement of two systems on the same items, with its clusters and its range.

    Args:
        before: (n,) the baseline's; NaN where it has none.
        after: (n,) the candidate's.
        clusters: (n,) codes; None if every item is its own cluster.
        declared: the lowest and the highest possible value, infinite at an open end; None if they are not known.
    """

    before: NDArray[np.float64]
    after: NDArray[np.float64]
    clusters: NDArray[np.int64] | None
    declared: Interval | None

    @classmethod
    def of(cls, items: ItemPairs, name: str) -> "PairedValues":
        """Return a measurement of paired items, all of them."""
        found = cls(
            items.before.values[name], items.after.values[name], items.clusters, items.ranges.get(name)
        )
        scored = found.at(found.scored)
        if name in items.ranges or not len(scored.before):
            return found
        is_right_or_wrong = is_proportion(np.concatenate([scored.before, scored.after]))
        return found._replace(declared=(0.0, 1.0)) if is_right_or_wrong else found

    def at(self, places: NDArray[np.bool_] | NDArray[np.int64]) -> "PairedValues":
        """Select the values and clusters of some items."""
        clusters = None if self.clusters is None else joined_clusters(self.clusters[places])
        return self._replace(before=self.before[places], after=self.after[places], clusters=clusters)

    @property
    def scored(self) -> NDArray[np.bool_]:
        """A mask of the items that have a value of both systems, (n,)."""
        return ~(np.isnan(self.before) | np.isnan(self.after))

    @property
    def ends(self) -> Interval | None:
        """The range, where it has two ends."""
        low, high = self.declared or (-math.inf, math.inf)
        return (low, high) if low < high < math.inf and low > -math.inf else None

    @property
    def n_units(self) -> int:
        """The number of independent items, or of clusters."""
        return len(self.before) if self.clusters is None else int(self.clusters.max()) + 1

    # --- without missing values ---------------------------------------------------------------------

    def difference(self, options: CompareOptions | None = None, confidence: float = CONFIDENCE) -> Difference:
        """Return the difference, with its p value by the test that was asked for, if that fits."""
        found = self._paired_difference(confidence) if options is None else self._tested(options, confidence)
        return Difference(
            n_paired=len(self.before),
            baseline_value=found.baseline,
            candidate_value=found.candidate,
            difference=found.difference.value,
            stderr=found.difference.stderr,
            stderr_unpaired=found.stderr_unpaired,
            correlation=found.correlation,
            interval=found.difference.interval,
            interval_kind=found.difference.interval_kind,
            p_value=found.p_value,
            p_kind=found.p_kind,
            p_mid=found.p_mid,
            mde=found.mde,
            n_clusters=found.difference.n_clusters,
        )

    def _tested(self, options: CompareOptions, confidence: float) -> PairedDifference:
        found = self._paired_difference(confidence)
        if found.difference.interval is None:  # without a p value, nothing can be concluded about other items
            return found
        if options.test == "permutation":
            p_value = sign_flip_test(self.before, self.after, clusters=self.clusters, seed=options.seed)
            return found._replace(p_value=p_value, p_kind="permutation", p_mid=None)
        if options.test == "wilcoxon" and self.clusters is None and self._ranks_agree(found):
            p_value = wilcoxon_test(self.before, self.after)
            return found._replace(p_value=p_value, p_kind="wilcoxon", p_mid=None)
        if options.test == "bootstrap" and self.n_units >= _LEAST_RESAMPLED:
            drawn = bootstrap_difference(
                self.before,
                self.after,
                clusters=self.clusters,
                seed=options.seed,
                confidence=confidence,
            )
            if drawn.interval is not None:
                difference = found.difference.replaced(interval=drawn.interval, interval_kind="bca")
                return found._replace(
                    difference=difference, p_value=drawn.p_value, p_kind="bootstrap", p_mid=None
                )
        return found

    def _paired_difference(self, confidence: float) -> PairedDifference:
        return paired_difference(
            self.before, self.after, clusters=self.clusters, declared=self.declared, confidence=confidence
        )

    def _ranks_agree(self, found: PairedDifference) -> bool:
        """Return whether ranks and means favour one side: then a test of the ranks tells of the means."""
        return rank_direction(self.before, self.after) == int(np.sign(found.difference.value))

    def deciding_items(self) -> int | None:
        """Count the items that decide the difference. Return None if they are many, or for right and wrong answers."""
        if is_proportion(np.concatenate([self.before, self.after]), self.declared):
            return None
        return deciding_items(self.before, self.after)

    # --- with missing values ------------------------------------------------------------------------

    @property
    def is_whole(self) -> bool:
        """True if no value is missing."""
        return bool(self.scored.all())

    @property
    def extremes(self) -> "tuple[PairedValues, PairedValues] | None":
        """The values with the lowest, and with the highest possible difference; None if they are unknown."""
        if self.is_whole:
            return self, self
        if self.ends is None or not len(self.before):
            return None
        low, high = self.ends
        return self._filled(high, low), self._filled(low, high)

    def _filled(self, before: float, after: float) -> "PairedValues":
        """Replace each missing value of a side by a number."""
        return self._replace(
            before=np.nan_to_num(self.before, nan=before), after=np.nan_to_num(self.after, nan=after)
        )

    def bounds(self) -> tuple[Interval | None, Interval | None]:
        """Return the lowest and highest difference that missing items allow, and the interval of both."""
        if self.ends is None or not len(self.before):
            return None, None
        found = difference_bounds(self.before, self.after, *self.ends, clusters=self.clusters)
        return found.bounds, None if self.is_whole else found.interval

    def candidate_bounds(self) -> PartlyKnown | None:
        """Return the lowest and highest mean that the missing items allow the candidate; None at an unknown end."""
        if not len(self.after):
            return None
        lacks = np.isnan(self.after)
        missing, total = int(lacks.sum()), math.fsum(self.after[~lacks])
        ends = (0.0, 0.0) if not missing else self.declared or (-math.inf, math.inf)
        low, high = ((total + missing * end) / len(self.after) for end in ends)
        return low if math.isfinite(low) else None, high if math.isfinite(high) else None

    def p_if_worst(self, direction: Direction | None, options: CompareOptions) -> float | None:
        """Return the p value with every missing item worst for the candidate; None if that is no loss."""
        extremes = self.extremes
        if self.is_whole or extremes is None or direction is None:
            return None
        found = extremes[direction == "lower"].difference(options)
        loss = (found.difference or 0.0) * (1 if direction == "lower" else -1)
        return found.p_value if loss > 0 else None
