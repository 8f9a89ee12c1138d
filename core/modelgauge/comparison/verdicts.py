"""Verdicts: what a comparison allows to say of the candidate, as one word and as sentences for any reader.

A difference is a finding where its adjusted p value is below alpha. Else the sentence says "cannot tell", and which
difference would have been found: "not significant" is never "equal".
"""

import math
from dataclasses import dataclass

from modelgauge.comparison.result import Interval, MacroComparison, MeasurementComparison, Verdict
from modelgauge.comparison.units import unit_of
from modelgauge.stats.comparisons.power import detectable_difference
from modelgauge.stats.intervals import CONFIDENCE
from modelgauge.wording.figures import exact, figure
from modelgauge.wording.phrases import counted

_METHODS = {
    "permutation": "the permutation test",
    "wilcoxon": "Wilcoxon's test",
    "bootstrap": "the bootstrap",
    "mcnemar_exact": "McNemar's test",
}
_OPPOSITES: dict[Verdict, Verdict] = {
    "better": "worse",
    "worse": "better",
    "higher": "lower",
    "lower": "higher",
}


@dataclass(frozen=True, slots=True)
class FamilyVerdicts:
    """The verdicts on the comparisons of one family.

    Args:
        baseline: the label of the baseline.
        family: how many p values were adjusted together.
        alpha: the level below which an adjusted p value is a finding.
        in_short: whether sentences say nothing of missing items and of intervals that are not adjusted.
    """

    baseline: str
    family: int
    alpha: float
    in_short: bool = False

    def of(self, row: MeasurementComparison) -> MeasurementComparison:
        """The comparison with its verdict; it has its adjusted p values already."""
        verdict = self._verdict(row)
        sentences = [
            self._sentence(row, verdict),
            _of_few_items(row),
            self._of_level(row),
            *((_of_unpaired_items(row), self._of_missing_items(row, verdict)) if not self.in_short else ()),
        ]
        return row.replaced(
            verdict=verdict,
            verdict_text=" ".join(filter(None, sentences)),
            groups_text=self._of_groups(row),
        )

    def of_mean(self, mean: MacroComparison) -> MacroComparison:
        """The mean over tests with its verdict; it has its adjusted p value already."""
        verdict, amounts = self._finding(mean) or "cannot_tell", _Amounts(mean)
        average = f"on average over {len(mean.tests):,} tests"
        if verdict != "cannot_tell":
            text = f"{self._size_found(mean, verdict, amounts)}, {average}."
            text += self._of_interval_with_0(mean) + self._without_adjustment(mean)
        else:
            text = f"{self._whether(mean)}, {average}"
            if mean.stderr is None:
                text += ": the standard error of one of them is not known."
            else:
                needed = (
                    f"a difference of {amounts.of(self._mde(mean.stderr))} would have been found 4 times in 5"
                )
                text += f" ({amounts.observed(mean.difference, mean.interval)}): {needed}.{self._of_p_value(mean)}"
        missing = "" if self.in_short else self._of_missing_items(mean, verdict)
        sentences = filter(None, [text, self._of_level(mean), missing])
        return mean.replaced(verdict=verdict, verdict_text=" ".join(sentences))

    def _of_missing_items(self, row: MeasurementComparison | MacroComparison, verdict: Verdict) -> str:
        text = missing_items_text(row, found=verdict)
        if verdict != "worse" and may_be_worse(row, self.alpha, self.family):
            text += f" At worst, {row.candidate} is significantly worse."
        return text

    def _finding(self, row: MeasurementComparison | MacroComparison) -> Verdict | None:
        if not row.difference or not self._is_finding(row.p_adjusted):
            return None
        if row.direction is None:
            return "higher" if row.difference > 0 else "lower"
        return "better" if (row.difference > 0) == (row.direction == "higher") else "worse"

    def _verdict(self, row: MeasurementComparison) -> Verdict:
        finding = self._finding(row)
        if finding is not None:
            return finding
        if row.equivalence is not None and row.equivalence.equivalent:
            return "equivalent"
        return "not_worse" if row.equivalence is not None and row.equivalence.not_worse else "cannot_tell"

    def _is_finding(self, p_adjusted: float | None) -> bool:
        return p_adjusted is not None and p_adjusted < self.alpha

    def _sentence(self, row: MeasurementComparison, verdict: Verdict) -> str:
        amounts, margin = _Amounts(row), row.equivalence
        if verdict == "cannot_tell" or row.difference is None:
            return self._cannot_tell(row, amounts)
        if margin is not None and verdict == "equivalent":
            return (
                f"There is no difference larger than {amounts.in_full(margin.margin)} between {row.candidate} and "
                f"{self.baseline}{amounts.between(margin.interval)}."
            )
        if margin is not None and verdict == "not_worse":
            return (
                f"{row.candidate} is not worse than {self.baseline} by {amounts.in_full(margin.margin)} or more"
                f"{amounts.between(margin.interval)}; whether it is better cannot be told."
            )
        sentence = f"{self._size_found(row, verdict, amounts)}."
        if margin is not None and margin.equivalent:
            sentence += f" That is less than the margin of {amounts.in_full(margin.margin)}."
        return sentence + self._of_interval_with_0(row) + self._without_adjustment(row)

    def _size_found(
        self, row: MeasurementComparison | MacroComparison, verdict: Verdict, amounts: "_Amounts"
    ) -> str:
        """How large a difference is that was found, as a positive number."""
        difference, interval = row.difference or 0.0, row.interval
        if difference < 0 and interval is not None:
            interval = -interval[1], -interval[0]
        by = f"{amounts.of(abs(difference))}{amounts.between(interval)}"
        return f"{row.candidate} is {verdict} than {self.baseline} by {by}"

    def _whether(self, row: MeasurementComparison | MacroComparison) -> str:
        whether = "differs from" if row.direction is None else "is better or worse than"
        return f"Cannot tell whether {row.candidate} {whether} {self.baseline}"

    def _mde(self, stderr: float) -> float:
        """The true difference that would have been found 4 times in 5."""
        return detectable_difference(stderr, alpha=self.alpha, family=max(1, self.family))

    def _cannot_tell(self, row: MeasurementComparison, amounts: "_Amounts") -> str:
        sentence = self._whether(row)
        if row.difference is None:
            return f"{sentence}: no item has a value of both."
        if row.stderr is None:
            return f"{sentence}: {_without_spread(row, amounts)}."
        mde = found_difference(row, self.alpha, self.family)
        units = row.n_paired if row.n_clusters is None else row.n_clusters
        width = math.inf if row.value_range is None else row.value_range[1] - row.value_range[0]
        too_few = 2.0 ** (1 - units) >= self.alpha / max(1, self.family)  # even with all of them on one side
        found = "with so few items hardly any difference would be found"
        if mde is not None and mde <= width and not too_few:
            found = f"a difference of {amounts.of(mde)} would have been found 4 times in 5"
        sentence += f" ({amounts.observed(row.difference, row.interval)}): {found}."
        margin = "" if row.equivalence is None else amounts.in_full(row.equivalence.margin)
        return (
            f"{sentence}{self._of_p_value(row)}{margin and f' That it is less than {margin} is not shown.'}"
        )

    def _of_interval_with_0(self, row: MeasurementComparison | MacroComparison) -> str:
        """Say that the interval of a finding includes 0, which is possible with another method or level."""
        if row.interval is None or not row.interval[0] <= 0 <= row.interval[1] or row.p_adjusted is None:
            return ""
        kind = getattr(row, "p_kind", None)
        by = f" by {_METHODS[kind]}" if kind in _METHODS else ""
        return f" The interval includes 0, but the finding rests on p, which is {_p(row.p_adjusted)}{by}."

    def _of_level(self, row: MeasurementComparison | MacroComparison) -> str:
        """Give the level of findings and the confidence of the interval, unless they match."""
        if row.interval is None or math.isclose(self.alpha, 1 - CONFIDENCE):
            return ""
        return (
            f"A finding is a p below {self.alpha:g}; the interval has a confidence of {100 * CONFIDENCE:g} %."
        )

    def _without_adjustment(self, row: MeasurementComparison | MacroComparison) -> str:
        if self.in_short or self.family < 2 or row.interval is None:
            return ""
        return f" The interval is not adjusted for the {self.family:,} comparisons."

    def _of_p_value(self, row: MeasurementComparison | MacroComparison) -> str:
        """Why there is no finding, where the p value or the interval alone looks like a finding."""
        if row.p_value is None or row.p_adjusted is None:
            return ""
        if row.p_value < self.alpha:
            return f" By itself p is {_p(row.p_value)}, but {_p(row.p_adjusted)} for {self.family:,} comparisons."
        if row.interval is not None and (row.interval[0] > 0 or row.interval[1] < 0):
            return f" The test is more careful than the interval: p is {_p(row.p_value)}."
        return ""

    def _of_groups(self, row: MeasurementComparison) -> str | None:
        if not row.groups:
            return None
        p = row.p_interaction_adjusted
        if p is None:
            why = "a cluster has items in several, or fewer than two have a standard error"
            return f"It is not tested whether the difference is the same in all groups: {why}."
        if self._is_finding(p):
            return f"The difference is not the same in all groups (p is {_p(p)}, adjusted)."
        return "Cannot tell whether the difference is the same in all groups."


class _Amounts:
    """Differences in words: in points where values go from 0 to 1, with the digits that the error bar allows."""

    def __init__(self, row: MeasurementComparison | MacroComparison) -> None:
        self._unit = unit_of(row.value_range)
        low, high = row.interval or row.bounds or (0.0, 0.0)
        self._error = self._unit.scale * (high - low) / 2 or None

    def number(self, value: float) -> str:
        return figure(self._unit.scale * value, self._error)

    def of(self, value: float) -> str:
        return self._unit.counted(self.number(value))

    def in_full(self, value: float) -> str:
        """A number that was given, in all its digits."""
        return self._unit.counted(exact(self._unit.scale * value))

    def between(self, interval: Interval | None, form: str = " ({})") -> str:
        """Return an interval as text; empty if there is none."""
        return "" if interval is None else form.format(" to ".join(map(self.number, interval)))

    def observed(self, difference: float, interval: Interval | None) -> str:
        return f"difference {self.of(difference)}{self.between(interval, ', {}')}"


def _without_spread(row: MeasurementComparison, amounts: _Amounts) -> str:
    """Why there is no standard error, with the interval, if that exists without it."""
    alike = "have equal values" if row.ties == row.n_paired else "differ alike"
    sentence = f"they {alike} on {counted(row.n_paired, 'item')}"
    if row.n_clusters is not None:
        sentence += f" in {counted(row.n_clusters, 'cluster')}"
    if row.n_paired == 1:
        sentence = "there is one item only"
    elif row.n_clusters == 1:
        sentence = "all items belong together, like one item"
    failed = f"the {row.n_failed:,} that failed" if row.n_failed > 1 else "the one that failed"
    if row.interval is None:
        return f"{sentence}, which does not say how much others vary"
    if row.n_failed and row.bounds is None:
        return f"{sentence}; with {failed} the difference could be anything"
    low, high = (row.bounds_interval if row.n_failed else None) or row.interval
    those = f"with {failed} " if row.n_failed else ""
    return f"{sentence}; {those}the difference could be anything from {amounts.number(low)} to {amounts.of(high)}"


def _of_few_items(row: MeasurementComparison) -> str:
    """Say that few items decide the difference; empty if they are not few."""
    if row.n_deciding is None:
        return ""
    decide = "decides" if row.n_deciding == 1 else "decide"
    return f"{row.n_deciding} of {counted(row.n_paired, 'item')} {decide} this."


def found_difference(row: MeasurementComparison, alpha: float, family: int) -> float | None:
    """Return the true difference that would be found 4 times in 5 at this level; None if none is known to be."""
    if row.mde is None:
        return None
    stderr = max(row.stderr or 0.0, row.mde / detectable_difference(1.0))
    return detectable_difference(stderr, alpha=alpha, family=max(1, family))


def may_be_worse(row: MeasurementComparison | MacroComparison, alpha: float, family: int) -> bool:
    """Return whether the candidate would be significantly worse with the missing items at their worst."""
    return row.p_if_worst is not None and row.p_if_worst * max(1, family) < alpha


def missing_items_text(
    row: MeasurementComparison | MacroComparison, *, found: Verdict = "cannot_tell"
) -> str:
    """Say what the missing items could change about a difference; empty if none is missing.

    Args:
        row: the comparison, or a mean over tests.
        found: its verdict, in whose terms a difference that was found is given: as a positive number.
    """
    if not row.n_failed:
        return ""
    every = row.n_paired + row.n_failed
    are, them = ("is", "it") if row.n_failed == 1 else ("are", "them")
    sentence = f"{row.n_failed:,} of {counted(every, 'item')} failed and {are} left out"
    if row.bounds is None:
        return f"{sentence}."
    amounts, (low, high) = _Amounts(row), row.bounds
    opposite = _OPPOSITES.get(found)
    if opposite is not None and (row.difference or 0.0) < 0:
        low, high = -high, -low
    if opposite is not None and low < 0:
        if high <= 0:
            return (
                f"{sentence}; with {them} it is {opposite} by {amounts.number(-high)} to {amounts.of(-low)}."
            )
        ends = f"{opposite} by {amounts.of(-low)} and {found} by {amounts.of(high)}"
        return f"{sentence}; with {them} it is between {ends}."
    return f"{sentence}; with {them} the difference is at least {amounts.number(low)}, at most {amounts.of(high)}."


def _of_unpaired_items(row: MeasurementComparison) -> str:
    """Say that runs have items which are not compared; empty if all are."""
    alone = row.n_only_baseline + row.n_only_candidate
    both = row.n_paired + row.n_failed
    if not alone:
        return ""
    are = "is" if both == 1 else "are"
    return f"Only {both:,} of {counted(both + alone, 'item')} {are} in both runs; this says nothing about the others."


def _p(value: float) -> str:
    return "below 0.001" if value < 0.001 else f"{value:.2g}"
