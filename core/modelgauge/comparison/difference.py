"""`Difference`: how a measurement differs between two systems, and the rows of a comparison, which are differences.

Differences are the candidate's value minus the baseline's, everywhere. Each row is complete when it is made.
"""

from typing import Any, ClassVar, Literal

from pydantic import FiniteFloat, SerializerFunctionWrapHandler, model_serializer

from modelgauge.data.base import Count, Frozen, Text
from modelgauge.data.results import Direction

Interval = tuple[FiniteFloat, FiniteFloat]
PartlyKnown = tuple[FiniteFloat | None, FiniteFloat | None]
Verdict = Literal["better", "worse", "higher", "lower", "equivalent", "not_worse", "cannot_tell"]
"""A verdict on a candidate: "higher" and "lower" if the direction of the measurement is unknown."""


class Difference(Frozen):
    """Difference between a candidate's value and the baseline's, over their common items.

    Args:
        n_paired: items that both systems have a value for.
        n_only_baseline: items that only the baseline's run has.
        n_only_candidate: items that only the candidate's run has.
        n_failed: paired items that have no value on one side, or on both, since they failed there; they are in no
            `n_only_*`. An item that one of the runs scored without this measurement has not failed.
        n_failed_baseline: those without a value on the baseline's side.
        n_failed_candidate: those without a value on the candidate's side. Items without a value on both sides are in
            both numbers.
        n_unmeasured: paired items that have a value on one side, and were scored without this measurement on the
            other. Items without a value on both sides that did not fail on both are in no count.
        baseline_value: the baseline's mean over the paired items.
        candidate_value: the candidate's mean over the paired items.
        difference: candidate minus baseline; None if no item is paired.
        stderr: of the difference, from the paired differences; None if these are all equal.
        stderr_unpaired: as it would be on two separate samples of items.
        correlation: of the two systems' values over the items; None if one system's are all equal.
        interval: the difference's 95 % confidence interval, not adjusted for the family.
        interval_kind: its method, such as "tango".
        p_value: two-sided, that the true difference is 0.
        p_kind: the test, such as "mcnemar_exact".
        p_mid: McNemar's mid-p; None for other tests.
        p_adjusted: `p_value` adjusted for the family by Holm's method.
        wins: items on which the candidate is better (higher where the direction is unknown).
        losses: items on which the baseline is better.
        ties: items with equal values.
        bounds: (lowest, highest) difference, if every missing item were worst, or best, for either side; None where
            the measurement has no known range.
        bounds_interval: the 95 % confidence interval whatever the missing items would have scored: from the low end of
            the interval at the lowest bound to the high end of that at the highest; None if no item is missing.
        candidate_bounds: (lowest, highest) value of the candidate over the items of both runs, if each item that it
            failed on were lowest, or highest; None at an end that is not known.
        p_if_worst: `p_value` if every missing item were worst for the candidate, where that would be a loss; None where
            no item is missing, or the range or the direction is unknown.
        mde: the smallest true difference that such a comparison finds 4 times in 5.
        n_deciding: how many items decide the difference, where these are few: without them it would vanish or change
            its sign. None for right and wrong answers, of which wins and losses say so.
        n_clusters: how many independent clusters the items form; None if every item is its own cluster.
        direction: which values are better; None if the run does not say.
        value_range: the lowest and the highest possible value; None if they are not known.
    """

    n_paired: Count = 0
    n_only_baseline: Count = 0
    n_only_candidate: Count = 0
    n_failed: Count = 0
    n_failed_baseline: Count = 0
    n_failed_candidate: Count = 0
    n_unmeasured: Count = 0
    baseline_value: FiniteFloat | None = None
    candidate_value: FiniteFloat | None = None
    difference: FiniteFloat | None
    stderr: FiniteFloat | None = None
    stderr_unpaired: FiniteFloat | None = None
    correlation: FiniteFloat | None = None
    interval: Interval | None = None
    interval_kind: Text | None = None
    p_value: FiniteFloat | None = None
    p_kind: Text | None = None
    p_mid: FiniteFloat | None = None
    p_adjusted: FiniteFloat | None = None
    wins: Count = 0
    losses: Count = 0
    ties: Count = 0
    bounds: Interval | None = None
    bounds_interval: Interval | None = None
    candidate_bounds: PartlyKnown | None = None
    p_if_worst: FiniteFloat | None = None
    mde: FiniteFloat | None = None
    n_deciding: Count | None = None
    n_clusters: Count | None = None
    direction: Direction | None = None
    value_range: Interval | None = None

    written: ClassVar[tuple[str, ...]] = ()  # the keys of its JSON, in order; empty for all fields

    @property
    def worst_to_best(self) -> Interval | None:
        """The bounds, the worst for the candidate first."""
        if self.bounds is None or self.direction != "lower":
            return self.bounds
        return self.bounds[1], self.bounds[0]

    @property
    def n_units(self) -> int:
        """The number of independent items, or of clusters."""
        return self.n_paired if self.n_clusters is None else self.n_clusters

    @model_serializer(mode="wrap")
    def _write(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = write(self)
        return {name: fields[name] for name in self.written or fields if name in fields}


class GroupDifference(Difference):
    """The difference over the items of one group.

    Args:
        group: its name.
    """

    written = (
        "group",
        "n_paired",
        "baseline_value",
        "candidate_value",
        "difference",
        "stderr",
        "interval",
        "interval_kind",
    )

    group: Text


class MarginTest(Frozen):
    """Result of one-sided tests at level alpha of whether a difference is smaller than a margin.

    Each test gives missing items the least favourable value, so it is valid whatever they would have scored.

    Args:
        margin: in units of the measurement.
        interval: the difference's confidence interval with 1 - 2 alpha: of 90 % for 0.05.
        p_equivalent: that the difference is the margin or more, in either direction.
        p_not_worse: that the candidate is worse by the margin or more; None if the direction is unknown.
        equivalent: whether it is shown that the difference is smaller than the margin.
        not_worse: whether it is shown that the candidate is not worse by the margin or more; None if the
            direction is unknown.
    """

    margin: FiniteFloat
    interval: Interval | None = None
    p_equivalent: FiniteFloat | None = None
    p_not_worse: FiniteFloat | None = None
    equivalent: bool = False
    not_worse: bool | None = None


class RepeatShares(Frozen):
    """The variance of single paired differences, where prompts were asked several times.

    Args:
        between: the variance of the items' true differences, which more items make matter less.
        within: the variance of repeated answers to one item, which more repeats make matter less too.
    """

    between: FiniteFloat
    within: FiniteFloat


class RowSubject(Frozen):
    """The subject of a row: a measurement of a test, for one candidate.

    Args:
        test: the test (or data set).
        measurement: the measurement, whose name ends with the reduction of repeats unless it is their mean.
        candidate: the label of the candidate.
        matched_by: the key by which items were paired: "id", "source", "name", "input", or a field of their context.
    """

    test: Text
    measurement: Text
    candidate: Text
    matched_by: Text


class MeasurementComparison(Difference, RowSubject):
    """One measurement of one test, compared between the baseline and one candidate.

    Args:
        equivalence: equivalence and non-inferiority; None without a margin.
        groups: the differences by group, where groups were asked for.
        p_interaction: that the difference is the same in all groups that have a standard error; None if fewer than two
            have one, or if a cluster has items in several groups.
        p_interaction_adjusted: the same, adjusted for the family.
        groups_text: whether the difference is the same in all groups, as a sentence; None without groups.
        repeats: the variance between items and within them; None if prompts were asked once.
        verdict: the verdict on the candidate.
        verdict_text: the same as a sentence.
    """

    equivalence: MarginTest | None = None
    groups: tuple[GroupDifference, ...] = ()
    p_interaction: FiniteFloat | None = None
    p_interaction_adjusted: FiniteFloat | None = None
    groups_text: Text | None = None
    repeats: RepeatShares | None = None
    verdict: Verdict
    verdict_text: Text


class MacroComparison(Difference):
    """The mean over tests of the differences of a measurement that they have in common, with equal weights.

    Its standard error is None if that of a test is not known; for a test without a spread it is computed from its
    interval. `p_value` is by Student's t. `bounds` is the mean of the tests' bounds; None where one is not known.
    `p_if_worst` is the p value at the bound that is worse for the candidate, by the normal distribution.

    Args:
        measurement: its name.
        candidate: the label of the candidate.
        tests: the tests.
        verdict: the verdict on the candidate, on average.
        verdict_text: the same as a sentence.
    """

    written = (
        "measurement",
        "candidate",
        "tests",
        "difference",
        "stderr",
        "interval",
        "p_value",
        "p_adjusted",
        "direction",
        "value_range",
        "n_paired",
        "n_failed",
        "bounds",
        "p_if_worst",
        "verdict",
        "verdict_text",
    )

    measurement: Text
    candidate: Text
    tests: tuple[Text, ...]
    verdict: Verdict
    verdict_text: Text
