"""Gates: conditions that a comparison must meet for a build to pass. Callers report failed gates."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

from modelgauge.comparison.contrasts import check_margin
from modelgauge.comparison.difference import Interval, MacroComparison, MeasurementComparison
from modelgauge.comparison.families import Family
from modelgauge.comparison.options import CompareOptions
from modelgauge.comparison.result import Comparison
from modelgauge.comparison.verdicts import may_be_worse, missing_items_text
from modelgauge.config.allowance import Allowance
from modelgauge.data.base import Frozen, Text
from modelgauge.data.estimates import figure_beside
from modelgauge.data.results import get_range
from modelgauge.errors import InvalidOptionError
from modelgauge.runs.conditions import Condition, check_known, check_within
from modelgauge.runs.recorded_run import RecordedRun
from modelgauge.wording.figures import exact, p_phrase
from modelgauge.wording.phrases import counted


class GateOutcome(Frozen):
    """The outcome of a gate for one measurement of one candidate.

    Args:
        gate: as it was asked for: `--fail-if-worse`.
        test: the test (or data set).
        measurement: the measurement.
        candidate: the label of the candidate.
        passed: whether the build may pass.
        why: what decided it, as a sentence.
    """

    gate: Text
    test: Text
    measurement: Text
    candidate: Text
    passed: bool
    why: Text

    @property
    def about(self) -> str:
        """The gate, and what it judges."""
        return f"{self.gate}: {self.test}, {self.measurement}"

    @classmethod
    def of(cls, gate: str, row: MeasurementComparison | MacroComparison, why: str, *, passed: bool) -> Self:
        """Create the outcome of a gate for a row of a comparison; means over tests are listed under their number."""
        test = f"mean of {len(row.tests):,} tests" if isinstance(row, MacroComparison) else row.test
        measurement, candidate = row.measurement, row.candidate
        return cls(gate=gate, test=test, measurement=measurement, candidate=candidate, passed=passed, why=why)


@dataclass(frozen=True, slots=True)
class Gates:
    """Conditions for every test, measurement and candidate of a comparison.

    Args:
        fail_if_worse: none is significantly worse, after adjustment; nor on average over tests.
        require_not_worse: each is shown to be worse by less than this, in units of the measurement. The comparison
            must have been made with it as its margin.
        fail_if: none of these is true of a candidate's value.
        max_failed: no more of the items of both runs than this failed in either.

    The first three must be true whatever the failed items would have scored.
    """

    fail_if_worse: bool = False
    require_not_worse: float | None = None
    fail_if: tuple[Condition, ...] = ()
    max_failed: Allowance | None = None

    def __bool__(self) -> bool:
        numbers = self.require_not_worse, self.max_failed
        return self.fail_if_worse or numbers != (None, None) or bool(self.fail_if)

    def check_before(self, baseline: Iterable[RecordedRun], options: CompareOptions) -> None:
        """Refuse options and gates that cannot fit the baseline, before anything is run for the comparison.

        Args:
            baseline: its runs.
            options: of the comparison.

        Raises:
            InvalidOptionError: the baseline has no such measurement, or no value of it could be on the other side of a
                condition, or a margin is no part of its range.
        """
        ranges = {name: ends for run in baseline for name, ends in _list_ranges(run).items()}
        named = (*options.measurements, *options.lower_is_better, *options.higher_is_better)
        for name in named if ranges else ():
            check_known(name, ranges, "measurements of the baseline", "in the baseline's runs")
        for condition in self.fail_if if ranges else ():
            condition.check_name(ranges, "measurements of the baseline")
            check_within(condition.number, condition.name, ranges[condition.name], str(condition))
        for name, ends in ranges.items():
            if options.margin is not None and name in (options.measurements or (name,)):
                check_margin(options.margin, name, ends)

    def outcomes(self, comparison: Comparison) -> list[GateOutcome]:
        """Return the outcome of each gate for each measurement that it concerns.

        Raises:
            InvalidOptionError: a gate needs the direction of a measurement, which is unknown, or names a measurement
                that was not compared.
        """
        rows = comparison.comparisons
        for condition in self.fail_if:
            condition.check_name((row.measurement for row in rows), "measurements that were compared")
        self._check_directions(rows)
        family, means = Family.of(comparison), comparison.macro if self.fail_if_worse else ()
        return [
            *(outcome for row in rows for outcome in self._of_row(row, family)),
            # Over all tests a loss may show that each of them is too small for.
            *(
                GateOutcome.of(
                    "--fail-if-worse",
                    mean,
                    mean.verdict_text,
                    passed=not (mean.verdict == "worse" or may_be_worse(mean, family)),
                )
                for mean in means
            ),
        ]

    def _check_directions(self, rows: Iterable[MeasurementComparison]) -> None:
        names = [
            repr(name) for name in dict.fromkeys(row.measurement for row in rows if row.direction is None)
        ]
        gates = {
            "--fail-if-worse": self.fail_if_worse,
            "--require-not-worse": self.require_not_worse is not None,
        }
        gate = next((name for name, asked in gates.items() if asked), None)
        if gate and names:
            raise InvalidOptionError(
                f"{gate} cannot judge {', '.join(names)}: nothing says whether higher or lower values are better.",
                fix="Give --higher-is-better NAME or --lower-is-better NAME for each, or compare others alone: "
                "--measurement NAME.",
            )

    def _of_row(self, row: MeasurementComparison, family: Family) -> Iterator[GateOutcome]:
        if self.fail_if_worse:
            passed = not (_is_worse(row, family) or may_be_worse(row, family))
            yield GateOutcome.of("--fail-if-worse", row, row.verdict_text, passed=passed)
        if self.require_not_worse is not None:
            passed, why = _not_worse(row, family.alpha)
            gate = f"--require-not-worse {exact(self.require_not_worse)}"
            yield GateOutcome.of(gate, row, why, passed=passed)
        for condition in self.fail_if:
            if condition.name == row.measurement:
                passed, why = _unless(condition, row)
                yield GateOutcome.of(f"--fail-if '{condition}'", row, why, passed=passed)
        if self.max_failed is not None:
            of_both = row.n_paired + row.n_failed
            passed = not self.max_failed.exceeded_by(row.n_failed, of_both)
            why = f"{row.n_failed:,} of {counted(of_both, 'item')} failed"
            yield GateOutcome.of(f"--max-failed {self.max_failed.text}", row, why, passed=passed)


def _list_ranges(run: RecordedRun) -> dict[str, Interval | None]:
    """Return the range of each measurement of a run, by its name in comparisons; None for an unknown range."""
    items, record = run.frame(), run.record
    declared = {name: get_range(ends) for name, ends in (record.ranges or {}).items()}
    ranges = {name: declared.get(name, items.bool_ranges.get(name)) for name in items.names}
    ending = "" if record.reduction is None else f".{record.reduction}"
    return {**ranges, **{f"{name}{ending}": ends for name, ends in ranges.items()}}


def _is_worse(row: MeasurementComparison, family: Family) -> bool:
    """Return whether the candidate is significantly worse, even if the verdict is about a margin.

    A candidate that failed on every item, and on more items than the baseline did, has no value to test: it is
    worse.
    """
    if not row.n_paired and row.n_failed_candidate > row.n_failed_baseline:
        return True
    if row.difference is None or not family.is_finding(row.p_adjusted):
        return False
    return row.difference > 0 if row.direction == "lower" else row.difference < 0


def _not_worse(row: MeasurementComparison, alpha: float) -> tuple[bool, str]:
    """Return whether non-inferiority is shown, without adjustment, because the gate passes only if all are shown."""
    found = row.equivalence
    if found is None:
        return False, f"no item of {row.candidate} was paired that could show it"
    if found.p_not_worse is None:
        alike = f"{row.candidate} differs by the same amount on {counted(row.n_paired, 'item')}"
        return False, f"{alike}, which without a range does not show how much others vary"
    is_not = "is not" if found.not_worse else "may be"
    statement = f"{row.candidate} {is_not} worse by {exact(found.margin)} or more"
    why = f"{statement}, one-sided {p_phrase(found.p_not_worse, alpha)}"
    missing = "" if found.not_worse else missing_items_text(row)
    return bool(found.not_worse), f"{why}. {missing}" if missing else why


def _unless(condition: Condition, row: MeasurementComparison) -> tuple[bool, str]:
    value = row.candidate_value
    if value is None:
        return False, f"no item of {row.candidate} was paired, so it has no value"
    over = f"over {counted(row.n_paired, 'paired item')}"
    shown = f"{row.candidate} has {figure_beside(value, condition.number)} {over}"
    low, high = row.candidate_bounds or (value, value)
    lowest = -math.inf if low is None else min(low, value)
    highest = math.inf if high is None else max(high, value)
    if condition.holds(value) or not condition.may_hold(lowest, highest):
        return not condition.holds(value), shown
    failed = counted(row.n_failed_candidate, "failed item")
    known = [
        f"{words} {figure_beside(end, condition.number)}"
        for words, end in (("at least", lowest), ("at most", highest))
        if math.isfinite(end)
    ]
    anything = f"any value, since '{row.measurement}' declares no range"
    return False, f"{shown}; with its {failed} it may have {' and '.join(known) or anything}"
