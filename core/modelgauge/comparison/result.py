"""`Comparison`: what a comparison found, as terminal, page, gate and JSON show it.

Differences are the candidate's value less the baseline's, everywhere.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field, FiniteFloat, PrivateAttr

from modelgauge.comparison.pairing.paired_items import FlippedItem, PairedItems
from modelgauge.data.base import Count, Frozen, Text
from modelgauge.data.responses import JsonValue
from modelgauge.data.results import Direction
from modelgauge.wording.notebook import html_table
from modelgauge.wording.phrases import beginning

_MOST_ROWS = 50  # in a notebook
Interval = tuple[FiniteFloat, FiniteFloat]
PartlyKnown = tuple[FiniteFloat | None, FiniteFloat | None]
Verdict = Literal["better", "worse", "higher", "lower", "equivalent", "not_worse", "cannot_tell"]
"""A verdict on a candidate: "higher" and "lower" if the direction of the measurement is unknown."""


class System(Frozen):
    """One side of a comparison: a SUT or an app, by the runs that measured it.

    Args:
        label: its name in tables, unique in a comparison.
        sut_uid: the SUT of its runs.
        runs: for each test (or data set) the id of the run.
        given: the run, invocation or file as the caller named it.
    """

    label: Text
    sut_uid: Text
    runs: dict[str, str]
    given: Text


class GroupDifference(Frozen):
    """The difference over the items of one group.

    Args:
        group: its name.
        n_paired: its items that both systems have a value for.
        baseline_value: the baseline's mean.
        candidate_value: the candidate's mean.
        difference: candidate minus baseline.
        stderr: of the difference; None if it is not known.
        interval: the difference's 95 % confidence interval.
        interval_kind: its method.
    """

    group: Text
    n_paired: Count
    baseline_value: FiniteFloat
    candidate_value: FiniteFloat
    difference: FiniteFloat
    stderr: FiniteFloat | None = None
    interval: Interval | None = None
    interval_kind: Text | None = None


class MarginTest(Frozen):
    """Whether a difference is smaller than a margin that would matter, by one-sided tests at the level alpha.

    Each test counts missing items as the values most against it, so it is valid whatever they would have scored.

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


class MeasurementComparison(Frozen):
    """One measurement of one test, compared between the baseline and one candidate.

    Args:
        test: the test (or data set).
        measurement: the measurement, whose name ends with the reduction of repeats unless it is their mean.
        candidate: the label of the candidate.
        matched_by: the key by which items were paired: "id", "source", "name", "input", or a field of their context.
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
        difference: candidate minus baseline.
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

    test: Text
    measurement: Text
    candidate: Text
    matched_by: Text
    n_paired: Count
    n_only_baseline: Count
    n_only_candidate: Count
    n_failed: Count
    n_failed_baseline: Count = 0
    n_failed_candidate: Count = 0
    n_unmeasured: Count = 0
    baseline_value: FiniteFloat | None
    candidate_value: FiniteFloat | None
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
    wins: Count
    losses: Count
    ties: Count
    bounds: Interval | None = None
    bounds_interval: Interval | None = None
    candidate_bounds: PartlyKnown | None = None
    p_if_worst: FiniteFloat | None = None
    mde: FiniteFloat | None = None
    n_deciding: Count | None = None
    n_clusters: Count | None = None
    direction: Direction | None = None
    value_range: Interval | None = None
    equivalence: MarginTest | None = None
    groups: tuple[GroupDifference, ...] = ()
    p_interaction: FiniteFloat | None = None
    p_interaction_adjusted: FiniteFloat | None = None
    groups_text: Text | None = None
    repeats: RepeatShares | None = None
    verdict: Verdict
    verdict_text: Text

    @property
    def worst_to_best(self) -> Interval | None:
        """The bounds, the worst for the candidate first."""
        if self.bounds is None or self.direction != "lower":
            return self.bounds
        return self.bounds[1], self.bounds[0]


class MacroComparison(Frozen):
    """The mean over tests of the differences of a measurement that they have in common.

    Args:
        measurement: its name.
        candidate: the label of the candidate.
        tests: the tests.
        difference: the mean of their differences, all tests alike.
        stderr: its standard error; None if that of a test is not known. For a test without a spread it is computed
            from its interval.
        interval: its 95 % confidence interval, not adjusted.
        p_value: two-sided, that the true mean is 0, by Student's t.
        p_adjusted: `p_value` adjusted for the family by Holm's method.
        direction: which values are better; None if the runs do not say.
        value_range: the lowest and the highest possible value; None if they are not known.
        n_paired: how many items of these tests are paired.
        n_failed: how many of their items failed in either run.
        bounds: the mean of the tests' `bounds`; None where one is not known.
        p_if_worst: the p value at the bound that is worse for the candidate, by the normal distribution and `stderr`;
            None if that is no loss.
        verdict: the verdict on the candidate, on average.
        verdict_text: the same as a sentence.
    """

    measurement: Text
    candidate: Text
    tests: tuple[Text, ...]
    difference: FiniteFloat
    stderr: FiniteFloat | None = None
    interval: Interval | None = None
    p_value: FiniteFloat | None = None
    p_adjusted: FiniteFloat | None = None
    direction: Direction | None = None
    value_range: Interval | None = None
    n_paired: Count = 0
    n_failed: Count = 0
    bounds: Interval | None = None
    p_if_worst: FiniteFloat | None = None
    verdict: Verdict
    verdict_text: Text


class RankedSystem(Frozen):
    """A system's place on a leaderboard.

    Args:
        system: its label.
        value: its mean over its items that the baseline's run has too.
        n: how many items that is over; None in comparisons of older versions.
        ranks: (best, worst) rank that it may have, 1 for the best.
    """

    system: Text
    value: FiniteFloat
    n: Count | None = None
    ranks: tuple[Count, Count]


class LeaderboardTable(Frozen):
    """Three systems or more, each compared with each on one measurement of one test.

    Two systems are compared on the items that both have. A candidate and the baseline are told apart where the verdict
    does so, two candidates by the same test.

    Args:
        test: the test (or data set).
        measurement: its name.
        n: how many items all of the systems have a value for.
        direction: which values are better; None if the runs do not say: then the highest value is first.
        systems: best first.
        groups: the labels of indistinguishable systems, best first; a system may be in several.
        intervals: for each pair (first, second, low, high): the interval of first less second, with the confidence
            1 - alpha / m of m p values that are shown together; all hold together with confidence 1 - alpha.
    """

    test: Text
    measurement: Text
    n: Count
    direction: Direction | None = None
    systems: tuple[RankedSystem, ...]
    groups: tuple[tuple[Text, ...], ...]
    intervals: tuple[tuple[Text, Text, FiniteFloat, FiniteFloat], ...] = ()


class Differing(Frozen):
    """A difference between two compared runs, other than their answers.

    Args:
        test: the test (or data set).
        candidate: the label of the candidate.
        kind: "data", "targets", "reduction", "thresholds", "judge" or "test", which make numbers incomparable unless
            they are allowed; else "sut", "options", "plugins", "hyperparameters" or "sample".
        name: what differs, such as "temperature".
        baseline: its value in the baseline's run; None if it has none.
        candidate_value: its value in the candidate's run.
        fields: of "targets", the fields in which the contexts of these two items differ.
    """

    test: Text
    candidate: Text
    kind: Text
    name: Text
    baseline: JsonValue = None
    candidate_value: JsonValue = None
    fields: Annotated[tuple[Text, ...], Field(exclude_if=lambda fields: not fields)] = ()


class Comparison(Frozen):
    """A baseline and its candidates, compared on all tests and measurements that they have in common.

    Args:
        schema_version: the version of the JSON format.
        baseline: what the candidates are compared with.
        candidates: in the order in which they were given.
        alpha: the level below which an adjusted p value is a finding.
        family: how many p values were adjusted together: those of all comparisons, of their groups, of means over
            tests, and of pairs of candidates on leaderboards; measurements with equal values on all items count once.
        comparisons: one for each test, measurement and candidate.
        macro: means over tests, if there are two tests or more.
        leaderboard: for each test and measurement, if there are three systems or more.
        differs: in what else the runs differ.
        notes: what a reader should know besides.
    """

    schema_version: Literal[1] = 1
    baseline: System
    candidates: tuple[System, ...]
    alpha: FiniteFloat
    family: Count
    comparisons: tuple[MeasurementComparison, ...]
    macro: tuple[MacroComparison, ...] = ()
    leaderboard: tuple[LeaderboardTable, ...] = ()
    differs: tuple[Differing, ...] = ()
    notes: tuple[Text, ...] = ()
    _paired: Sequence[PairedItems] = PrivateAttr(default=())

    def __str__(self) -> str:
        """The verdicts, a line for each comparison and each mean over tests."""
        rows = [f"{row.test}, {row.measurement}: {row.verdict_text}" for row in self.comparisons]
        return "\n".join([*rows, *(f"{mean.measurement}: {mean.verdict_text}" for mean in self.macro)])

    def __repr__(self) -> str:
        """Name the systems and what is compared, in a line; `str` has the verdicts."""
        measured = ", ".join(dict.fromkeys(f"{row.test} {row.measurement}" for row in self.comparisons))
        candidates = ", ".join(self.labels[1:])
        return f"<Comparison of {candidates} with {self.baseline.label}: {beginning(measured, 200)}>"

    def _repr_html_(self) -> str:
        """Return the table that a notebook shows: a row for each verdict."""
        rows = [
            (row.test, row.measurement, row.candidate, row.verdict_text, f"{row.n_paired:,}")
            for row in self.comparisons[:_MOST_ROWS]
        ]
        for mean in self.macro:
            tests = f"mean over {len(mean.tests)} tests"
            rows.append((tests, mean.measurement, mean.candidate, mean.verdict_text, ""))
        head = ("Test", "Measurement", "Candidate", "Verdict", "Items")
        title = f"{', '.join(self.labels[1:])} against {self.baseline.label}"
        return html_table(title, head, rows, self.notes, left_out=len(self.comparisons) - _MOST_ROWS)

    def with_items(self, paired: Sequence[PairedItems]) -> "Comparison":
        """Return a copy of the comparison that knows its items.

        Args:
            paired: the paired items of each comparison.
        """
        bound = self.model_copy()
        bound._paired = paired  # noqa: SLF001  its own class
        return bound

    @property
    def labels(self) -> list[str]:
        """The labels of all systems, that of the baseline first."""
        return [self.baseline.label, *(system.label for system in self.candidates)]

    @property
    def paired(self) -> Sequence[PairedItems]:
        """The paired items of each comparison; none where the comparison was read from JSON."""
        return self._paired

    def iter_flips(self, most: int | None = None) -> Iterator[FlippedItem]:
        """The items on which the systems differ: for each comparison the lost, then the won, the worst first.

        Args:
            most: at most this many lost and this many won items of each comparison, and no others are read; None for
                all.
        """
        for row, items in zip(self.comparisons, self._paired, strict=False):
            yield from items.flips(row.measurement, most)
