"""`Assumptions`: what a plan assumes of two systems, by numbers that are given or by two earlier runs.

Nothing is computed from them here; see `plan`.
"""

import math
from typing import Any

import numpy as np
from pydantic import FiniteFloat

from modelgauge.comparison.planning.options import PlanOptions
from modelgauge.data.base import Count, Frozen, Text
from modelgauge.data.records import TestRecord
from modelgauge.errors import InvalidDataError, InvalidOptionError, UnknownNameError
from modelgauge.runs.recorded_run import RecordedRun
from modelgauge.stats.comparisons.designs import design_effect, difference_stddev, discordant_shares
from modelgauge.stats.comparisons.paired import correlation
from modelgauge.stats.comparisons.repeats import paired_repeat_variance, repeat_variance
from modelgauge.wording.did_you_mean import did_you_mean

Answers = dict[str, tuple[float, ...]]
"""For each item that a run asked the values of its repeats; none where the item has no value."""


_NO_CORRELATION = (
    "--correlation is not given: 0 is assumed, so that pairing saves nothing. Two --runs say what it is."
)


class Assumptions(Frozen):
    """What a plan assumes of two systems and their items. Variances are those of single answers.

    Args:
        measurement: the one that runs were read for; None where there were no runs.
        rate: the share of items that the baseline gets right; None for measurements that are other numbers.
        correlation: of the two systems' values over the items.
        paired_variance: of the paired differences; for a rate, where the systems are equally good.
        separate_variance: the sum of the variances of both systems' values.
        within_variance: the part of both variances that lies within items, which repeats average out; None where it is
            not known.
        items: how many items there are to ask; None for as many as it takes.
        repeats: how often each item is asked.
        failure_rates: the share of items that fails, for the baseline and for the candidate.
        design_effect: by how much clusters multiply the variances.
        cost_usd: dollars for one answer of both systems, with the questions of judges; None where it is not known.
        notes: what a reader should know.
    """

    measurement: Text | None = None
    rate: FiniteFloat | None = None
    correlation: FiniteFloat
    paired_variance: FiniteFloat
    separate_variance: FiniteFloat
    within_variance: FiniteFloat | None = None
    items: Count | None = None
    repeats: Count = 1
    failure_rates: tuple[FiniteFloat, FiniteFloat] = (0.0, 0.0)
    design_effect: FiniteFloat = 1.0
    cost_usd: FiniteFloat | None = None
    notes: tuple[Text, ...] = ()

    def discordant(self, effect: float) -> tuple[float, float]:
        """The shares of items that only the baseline, and that only the candidate gets right.

        Args:
            effect: the candidate's rate less the baseline's.
        """
        rate = self.rate or 0.0
        return discordant_shares(rate, rate + effect, self.correlation)

    def largest_effect(self, direction: int) -> float:
        """The largest difference that systems with this rate and correlation can have.

        Args:
            direction: 1 for a better candidate, -1 for a worse one.
        """
        rate, end = self.rate or 0.0, 1.0 if direction > 0 else 0.0
        if self.correlation and 0 < rate < 1:  # it bounds the ratio of the odds
            odds = rate / (1 - rate)
            limit = (odds if self.correlation > 0 else 1 / odds) * self.correlation ** (-2 * direction)
            end = limit / (1 + limit)
        return abs(end - rate) * (1 - 1e-9)


def assumptions(runs: tuple[RecordedRun, RecordedRun] | None, options: PlanOptions) -> Assumptions:
    """What a plan assumes.

    Args:
        runs: of the baseline and of the candidate; None where the options say what to assume.
        options: of the plan.

    Raises:
        InvalidOptionError: an option is missing, or does not go with another.
        UnknownNameError, InvalidDataError: see `_of_runs`.
    """
    if sum(one is not None for one in (runs, options.rate, options.stddev)) != 1:
        raise InvalidOptionError(
            "A plan is made from two runs, or from a rate, or from a standard deviation.",
            fix="Give --runs A B, --rate 0.7 or --stddev 0.3, and one of them only.",
        )
    assumed = _given(options) if runs is None else _of_runs(*runs, options)
    if (options.repeats or 1) > 1 and assumed.within_variance is None:
        raise InvalidOptionError(
            f"It is not known how much {options.repeats} answers to one item vary.",
            fix="Give --repeat-correlation, or --runs that were made with --repeats.",
        )
    rate = options.failure_rate
    assumed = assumed.replaced(
        items=options.items or assumed.items,
        repeats=options.repeats or assumed.repeats,
        failure_rates=assumed.failure_rates if rate is None else (rate, rate),
        design_effect=design_effect([options.cluster_size], options.cluster_correlation),
    )
    return assumed if options.effect is None else _fitting(assumed, options.effect)


def _given(options: PlanOptions) -> Assumptions:
    alike = options.correlation or 0.0
    if options.rate is not None:
        separate = 2 * options.rate * (1 - options.rate)
        paired = sum(_shares(options.rate, options.rate, alike))
    else:
        stddev = options.stddev or 0.0
        separate, paired = 2 * stddev**2, difference_stddev(stddev, stddev, alike) ** 2
    within = None if options.repeat_correlation is None else (1 - options.repeat_correlation) * separate
    if not paired:
        raise InvalidOptionError("With --correlation 1 the systems never differ.", fix="Give a smaller one.")
    if within is not None and within > paired + 1e-12:
        raise InvalidOptionError(
            f"Two systems cannot be more alike (--correlation {alike:g}) than two answers of one of them "
            f"(--repeat-correlation {options.repeat_correlation:g}).",
            fix="Lower the one, or raise the other.",
        )
    return Assumptions(
        rate=options.rate,
        correlation=alike,
        paired_variance=paired,
        separate_variance=separate,
        within_variance=within,
        notes=() if options.correlation is not None else (_NO_CORRELATION,),
    )


def _fitting(assumed: Assumptions, effect: float) -> Assumptions:
    """The assumptions, with a correlation that systems can have which differ by the effect: runs may have a higher."""
    if assumed.rate is None:
        return assumed
    candidate = assumed.rate + effect
    if not 0 <= candidate <= 1:
        raise InvalidOptionError(
            f"A rate of {assumed.rate:.4g} and --effect {effect:g} make a rate of {candidate:.4g}.",
            fix=f"Give an effect from {-assumed.rate:.4g} to {1 - assumed.rate:.4g}.",
        )
    low, high = sorted((assumed.rate, candidate))
    most = math.sqrt(low * (1 - high) / (high * (1 - low))) if low > 0 and high < 1 else 0.0
    if assumed.measurement is None or assumed.correlation <= most:
        _shares(assumed.rate, candidate, assumed.correlation)
        return assumed
    note = (
        f"The runs have a correlation of {assumed.correlation:.2f}; {most:.2f} is used, the most that rates of "
        f"{assumed.rate:.4g} and {candidate:.4g} can have."
    )
    return assumed.replaced(correlation=most, notes=(*assumed.notes, note))


def _shares(rate: float, candidate: float, alike: float) -> tuple[float, float]:
    try:
        return discordant_shares(rate, candidate, alike)
    except InvalidDataError as error:
        raise InvalidOptionError(f"--correlation {alike:g}: {error.problem}", fix=error.fix) from None


# --- of two runs ------------------------------------------------------------------------------------------


def _of_runs(baseline: RecordedRun, candidate: RecordedRun, options: PlanOptions) -> Assumptions:
    """What two runs of one test let assume of their systems.

    Raises:
        InvalidOptionError: they are one run, or of different tests, or an option says what they say.
        UnknownNameError: they have no such measurement in common, or several and none was named.
        InvalidDataError: they have no two items with a value in common, or the systems never differ.
    """
    if options.correlation is not None or options.repeat_correlation is not None:
        raise InvalidOptionError(
            "--runs say what --correlation and --repeat-correlation are.", fix="Leave them out."
        )
    name, before, after = _common_answers(baseline, candidate, options.measurement)
    both = [item for item in before if item in after]
    paired = [item for item in both if before[item] and after[item]]
    if len(paired) < 2:
        raise InvalidDataError(
            f"Two items or more need a value of '{name}' in both --runs, and {len(paired)} have one.",
            fix="Give runs on the same items, or plan with --rate or --stddev.",
        )
    alone = len(before) + len(after) - 2 * len(both)
    records = (baseline.record, candidate.record)
    costs = [_cost_of_an_answer(record) for record in records]
    repeats = {record.repeats if record.reduction is None else 1 for record in records}
    return Assumptions(
        **_variation([before[item] for item in paired], [after[item] for item in paired]),
        measurement=name,
        items=len(both),
        repeats=repeats.pop() if len(repeats) == 1 else 1,
        failure_rates=tuple(sum(not held[item] for item in both) / len(both) for held in (before, after)),
        cost_usd=None if None in costs else sum(filter(None, costs)),
        notes=(f"{alone:,} items that only one of the runs has are left out.",) if alone else (),
    )


def _common_answers(
    baseline: RecordedRun, candidate: RecordedRun, measurement: str | None
) -> tuple[str, Answers, Answers]:
    one, other = baseline.record, candidate.record
    for wrong, problem in {
        one.run_id == other.run_id: f"--runs names run {one.run_id} twice.",
        one.test_uid != other.test_uid: f"--runs are of two tests: {one.test_uid} and {other.test_uid}.",
    }.items():
        if wrong:
            raise InvalidOptionError(problem, fix="Give the runs of two systems on one test.")
    first, second = _answers(baseline), _answers(candidate)
    common = [name for name in first if name in second]
    name = measurement if measurement is not None or len(common) != 1 else common[0]
    if name is None or name not in common:
        missing = "several measurements" if name is None else f"no measurement '{name}'"
        what = missing if common else "no measurement"
        choose = f"{did_you_mean(name or '', common)}Choose with --measurement: {', '.join(common)}."
        raise UnknownNameError(
            f"The two --runs have {what} in common.", fix=choose if common else "Give runs with scored items."
        )
    return name, first[name], second[name]


def _answers(run: RecordedRun) -> dict[str, Answers]:
    """What was measured of each item, by measurement: the only function here that reads a run."""
    found: dict[str, Answers] = {}
    ids = []
    for item in run.items().in_order():
        ids.append(str(item.test_item.id))
        repeats = item.repeat_measurements if item.kind == "item" and run.record.reduction is None else ()
        for name, value in item.measurements.items():
            each = tuple(one[name] for one in repeats if name in one)
            found.setdefault(name, {})[ids[-1]] = each or (value,)
    return {name: {item: values.get(item, ()) for item in ids} for name, values in found.items()}


def _variation(before: list[tuple[float, ...]], after: list[tuple[float, ...]]) -> dict[str, Any]:
    """The fields of `Assumptions` that say how much two systems vary over the same items."""
    means = [np.array([math.fsum(one) / len(one) for one in held]) for held in (before, after)]
    paired = float(np.var(means[1] - means[0], ddof=1))
    separate, within = sum(float(np.var(one, ddof=1)) for one in means), None
    if all(max(map(len, held)) > 1 for held in (before, after)):
        between, within = paired_repeat_variance(before, after)
        paired, separate = between + within, sum(sum(repeat_variance(held)) for held in (before, after))
    if not paired:
        raise InvalidDataError(
            f"The two --runs differ by the same on all {len(before)} items, so they do not say how much systems vary.",
            fix="Plan with --rate or --stddev instead.",
        )
    binary = within is None and bool(np.isin(means, (0.0, 1.0)).all())
    return {
        "rate": float(means[0].mean()) if binary else None,
        "correlation": correlation(*means) or 0.0,
        "paired_variance": paired,
        "separate_variance": separate,
        "within_variance": within,
    }


def _cost_of_an_answer(record: TestRecord) -> float | None:
    """Dollars for each answer to an item; None where the run does not know, or paid for nothing."""
    calls, answers = record.counts.sut_calls, record.counts.items * record.repeats
    if record.spent is None or not record.spent.cost_usd or not calls.paid or not answers:
        return None
    return record.spent.cost_usd / answers * (calls.paid + calls.cached) / calls.paid
