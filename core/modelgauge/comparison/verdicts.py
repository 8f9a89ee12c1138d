"""Verdicts: the conclusion that a comparison allows about the candidate, as one word and as sentences.

A difference is a finding where its adjusted p value is below alpha. Else the sentence says "cannot tell", and which
difference would have been found: "not significant" is never "equal".
"""

import math
from dataclasses import dataclass

from modelgauge.comparison.difference import Difference, Interval, MarginTest, Verdict
from modelgauge.comparison.families import Family
from modelgauge.comparison.units import choose_unit
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


def verdict(difference: Difference, family: Family, margin: MarginTest | None = None) -> Verdict:
    """Return the verdict on a candidate.

    Args:
        difference: with its adjusted p value.
        family: of the p value.
        margin: the test of equivalence; None without a margin.
    """
    if difference.difference and family.is_finding(difference.p_adjusted):
        if difference.direction is None:
            return "higher" if difference.difference > 0 else "lower"
        return "better" if (difference.difference > 0) == (difference.direction == "higher") else "worse"
    if margin is not None and margin.equivalent:
        return "equivalent"
    return "not_worse" if margin is not None and margin.not_worse else "cannot_tell"


def verdict_text(
    candidate: str,
    difference: Difference,
    family: Family,
    *,
    margin: MarginTest | None = None,
    n_tests: int | None = None,
    in_short: bool = False,
) -> str:
    """Return a verdict as sentences.

    Args:
        candidate: the label of the candidate.
        difference: with its adjusted p value.
        family: of the p value.
        margin: the test of equivalence; None without a margin.
        n_tests: the number of tests that a mean is over; None for a single test.
        in_short: whether to leave out missing items and intervals that are not adjusted.
    """
    sentences = _Sentences(candidate, difference, family, margin, n_tests, in_short)
    return " ".join(filter(None, sentences.all()))


def groups_text(p_adjusted: float | None, family: Family) -> str:
    """Say whether the difference is the same in all groups.

    Args:
        p_adjusted: the adjusted p value that it is; None if it was not tested.
        family: of the p value.
    """
    if p_adjusted is None:
        why = "a cluster has items in several, or fewer than two have a standard error"
        return f"It is not tested whether the difference is the same in all groups: {why}."
    if family.is_finding(p_adjusted):
        return f"The difference is not the same in all groups (p is {_p(p_adjusted)}, adjusted)."
    return "Cannot tell whether the difference is the same in all groups."


def found_difference(difference: Difference, family: Family) -> float | None:
    """Return the true difference that would be found 4 times in 5 at this level; None if none is known to be."""
    if difference.mde is None:
        return None
    return _detectable(max(difference.stderr or 0.0, difference.mde / detectable_difference(1.0)), family)


def _detectable(stderr: float, family: Family) -> float:
    return detectable_difference(stderr, alpha=family.alpha, family=max(1, family.size))


def may_be_worse(difference: Difference, family: Family) -> bool:
    """Return whether the candidate would be significantly worse with the missing items at their worst."""
    worst = difference.p_if_worst
    return worst is not None and worst * max(1, family.size) < family.alpha


def missing_items_text(difference: Difference, *, found: Verdict = "cannot_tell") -> str:
    """Say what the missing items could change about a difference; empty if none is missing.

    Args:
        difference: of a test, or the mean over tests.
        found: its verdict, in whose terms a difference that was found is given: as a positive number.
    """
    n_failed = difference.n_failed
    if not n_failed:
        return ""
    are, them = ("is", "it") if n_failed == 1 else ("are", "them")
    sentence = f"{n_failed:,} of {counted(difference.n_paired + n_failed, 'item')} failed and {are} left out"
    if difference.bounds is None:
        return f"{sentence}."
    amounts, (low, high) = _Amounts(difference), difference.bounds
    opposite = _OPPOSITES.get(found)
    if opposite is not None and (difference.difference or 0.0) < 0:
        low, high = -high, -low
    if opposite is not None and low < 0:
        if high <= 0:
            return (
                f"{sentence}; with {them} it is {opposite} by {amounts.number(-high)} to {amounts.of(-low)}."
            )
        ends = f"{opposite} by {amounts.of(-low)} and {found} by {amounts.of(high)}"
        return f"{sentence}; with {them} it is between {ends}."
    return f"{sentence}; with {them} the difference is at least {amounts.number(low)}, at most {amounts.of(high)}."


@dataclass(frozen=True, slots=True)
class _Sentences:
    """The sentences of a verdict; for the arguments see `verdict_text`."""

    candidate: str
    row: Difference
    family: Family
    margin: MarginTest | None
    n_tests: int | None
    in_short: bool

    def all(self) -> tuple[str, ...]:
        word = verdict(self.row, self.family, self.margin)
        missing = () if self.in_short else (_of_unpaired_items(self.row), self._of_missing_items(word))
        return self._first(word), _of_few_items(self.row), self._of_level(), *missing

    def _first(self, word: Verdict) -> str:
        amounts, margin, baseline = _Amounts(self.row), self.margin, self.family.baseline
        if word == "cannot_tell":
            return self._cannot_tell(amounts)
        if margin is not None and word == "equivalent":
            return (
                f"There is no difference larger than {amounts.in_full(margin.margin)} between {self.candidate} and "
                f"{baseline}{amounts.between(margin.interval)}."
            )
        if margin is not None and word == "not_worse":
            return (
                f"{self.candidate} is not worse than {baseline} by {amounts.in_full(margin.margin)} or more"
                f"{amounts.between(margin.interval)}; whether it is better cannot be told."
            )
        sentence = f"{self._size_found(word, amounts)}{self._average}."
        if margin is not None and margin.equivalent:
            sentence += f" That is less than the margin of {amounts.in_full(margin.margin)}."
        return sentence + self._of_interval_with_0() + self._without_adjustment()

    @property
    def _average(self) -> str:
        return "" if self.n_tests is None else f", on average over {self.n_tests:,} tests"

    def _size_found(self, word: Verdict, amounts: "_Amounts") -> str:
        """Give a difference that was found as a positive number."""
        difference, interval = self.row.difference or 0.0, self.row.interval
        if difference < 0 and interval is not None:
            interval = -interval[1], -interval[0]
        by = f"{amounts.of(abs(difference))}{amounts.between(interval)}"
        return f"{self.candidate} is {word} than {self.family.baseline} by {by}"

    def _cannot_tell(self, amounts: "_Amounts") -> str:
        row = self.row
        whether = "differs from" if row.direction is None else "is better or worse than"
        sentence = f"Cannot tell whether {self.candidate} {whether} {self.family.baseline}{self._average}"
        if row.difference is None:
            return f"{sentence}: no item has a value of both."
        if row.stderr is None:
            unknown = "the standard error of one of them is not known"
            return f"{sentence}: {_without_spread(row, amounts) if self.n_tests is None else unknown}."
        sentence += f" ({amounts.observed(row.difference, row.interval)}): {self._would_be_found(amounts)}."
        margin = "" if self.margin is None else amounts.in_full(self.margin.margin)
        return f"{sentence}{self._of_p_value()}{margin and f' That it is less than {margin} is not shown.'}"

    def _would_be_found(self, amounts: "_Amounts") -> str:
        """Say which true difference would have been found 4 times in 5."""
        row, width, too_few = self.row, math.inf, False
        if self.n_tests is not None:
            mde: float | None = _detectable(row.stderr or 0.0, self.family)
        else:
            mde = found_difference(row, self.family)
            width = math.inf if row.value_range is None else row.value_range[1] - row.value_range[0]
            # even with all of them on one side
            too_few = 2.0 ** (1 - row.n_units) >= self.family.level_of_each
        if mde is None or mde > width or too_few:
            return "with so few items hardly any difference would be found"
        return f"a difference of {amounts.of(mde)} would have been found 4 times in 5"

    def _of_missing_items(self, word: Verdict) -> str:
        text = missing_items_text(self.row, found=word)
        if word != "worse" and may_be_worse(self.row, self.family):
            text += f" At worst, {self.candidate} is significantly worse."
        return text

    def _of_interval_with_0(self) -> str:
        """Say that the interval of a finding includes 0, which is possible with another method or level."""
        row = self.row
        if row.interval is None or not row.interval[0] <= 0 <= row.interval[1] or row.p_adjusted is None:
            return ""
        by = f" by {_METHODS[row.p_kind]}" if row.p_kind in _METHODS else ""
        return f" The interval includes 0, but the finding rests on p, which is {_p(row.p_adjusted)}{by}."

    def _of_level(self) -> str:
        """Give the level of findings and the confidence of the interval, unless they match."""
        alpha = self.family.alpha
        if self.row.interval is None or math.isclose(alpha, 1 - CONFIDENCE):
            return ""
        return f"A finding is a p below {alpha:g}; the interval has a confidence of {100 * CONFIDENCE:g} %."

    def _without_adjustment(self) -> str:
        if self.in_short or self.family.size < 2 or self.row.interval is None:
            return ""
        return f" The interval is not adjusted for the {self.family.size:,} comparisons."

    def _of_p_value(self) -> str:
        """Say why there is no finding, where the p value or the interval alone looks like a finding."""
        row, size = self.row, self.family.size
        if row.p_value is None or row.p_adjusted is None:
            return ""
        if row.p_value < self.family.alpha:
            return f" By itself p is {_p(row.p_value)}, but {_p(row.p_adjusted)} for {size:,} comparisons."
        if row.interval is not None and (row.interval[0] > 0 or row.interval[1] < 0):
            return f" The interval excludes 0, but the test is not significant: p is {_p(row.p_value)}."
        return ""


class _Amounts:
    """Formatter of differences: in points if values go from 0 to 1, with the digits that the error bar allows."""

    def __init__(self, row: Difference) -> None:
        self._unit = choose_unit(row.value_range)
        low, high = row.interval or row.bounds or (0.0, 0.0)
        self._error = self._unit.scale * (high - low) / 2 or None

    def number(self, value: float) -> str:
        return figure(self._unit.scale * value, self._error)

    def of(self, value: float) -> str:
        return self._unit.counted(self.number(value))

    def in_full(self, value: float) -> str:
        """Format a given number with all its digits."""
        return self._unit.counted(exact(self._unit.scale * value))

    def between(self, interval: Interval | None, form: str = " ({})") -> str:
        """Return an interval as text; empty if there is none."""
        return "" if interval is None else form.format(" to ".join(map(self.number, interval)))

    def observed(self, difference: float, interval: Interval | None) -> str:
        return f"difference {self.of(difference)}{self.between(interval, ', {}')}"


def _without_spread(row: Difference, amounts: _Amounts) -> str:
    """Explain why there is no standard error, with the interval, if that exists without it."""
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


def _of_few_items(row: Difference) -> str:
    """Say that few items decide the difference; empty if they are not few."""
    if row.n_deciding is None:
        return ""
    decide = "decides" if row.n_deciding == 1 else "decide"
    return f"{row.n_deciding} of {counted(row.n_paired, 'item')} {decide} this."


def _of_unpaired_items(row: Difference) -> str:
    """Say that runs have items which are not compared; empty if all are."""
    alone = row.n_only_baseline + row.n_only_candidate
    both = row.n_paired + row.n_failed
    if not alone:
        return ""
    are = "is" if both == 1 else "are"
    return f"Only {both:,} of {counted(both + alone, 'item')} {are} in both runs; this says nothing about the others."


def _p(value: float) -> str:
    return "below 0.001" if value < 0.001 else f"{value:.2g}"
