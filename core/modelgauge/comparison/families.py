"""`Family`: the comparisons whose p values are adjusted together."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Self

from modelgauge.comparison.result import Comparison
from modelgauge.stats.comparisons.families import holm

Question = Hashable
"""The question that a p value answers. Measurements with equal values on all items ask one question."""


@dataclass(frozen=True, slots=True)
class Family:
    """The level of findings, and the number of p values that are adjusted together.

    Args:
        baseline: the label of the baseline.
        alpha: the level below which an adjusted p value is a finding.
        size: the number of p values.
        adjusted: the adjusted p values by question; empty for a finished comparison.
    """

    baseline: str
    alpha: float
    size: int
    adjusted: Mapping[Question, float] = field(default_factory=dict)

    @classmethod
    def adjusting(cls, baseline: str, alpha: float, p_values: Mapping[Question, float]) -> Self:
        """Adjust p values by Holm's method."""
        adjusted = dict(zip(p_values, holm([*p_values.values()]), strict=True))
        return cls(baseline, alpha, len(adjusted), adjusted)

    @classmethod
    def of(cls, comparison: Comparison) -> Self:
        """Return the family of a comparison."""
        return cls(comparison.baseline.label, comparison.alpha, comparison.family)

    @property
    def level_of_each(self) -> float:
        """The level of each p value if all must hold together (Bonferroni)."""
        return self.alpha / max(1, self.size)

    def is_finding(self, p_adjusted: float | None) -> bool:
        """Return whether an adjusted p value is a finding."""
        return p_adjusted is not None and p_adjusted < self.alpha
