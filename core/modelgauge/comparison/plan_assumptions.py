"""`Assumptions`: what a plan assumes of two systems, by numbers that are given or by two earlier runs.

Nothing is computed from them here; see `plan`.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import FiniteFloat

from modelgauge.comparison.named_runs import Given, chosen_measurements, named_run
from modelgauge.comparison.options import ALLOWED, CompareOptions, PlanOptions
from modelgauge.comparison.pairing.latest import ids_of_latest
from modelgauge.comparison.pairing.paired_runs import paired_runs
from modelgauge.data.base import Count, Frozen, Text, added_later
from modelgauge.data.records import TestRecord
from modelgauge.errors import InvalidDataError, InvalidOptionError, RecordError
from modelgauge.stats.comparisons.designs import (
    correlation_range,
    design_effect,
    difference_stddev,
    discordant_shares,
    paired_repeat_variance,
    repeat_variance,
)
from modelgauge.stats.comparisons.paired import compute_differences, correlation
from modelgauge.wording.phrases import counted

# Runs of other tests say how much systems vary, too.
_ALLOWED = tuple(kind for kind in ALLOWED if kind != "test")
_NO_CORRELATION = (
    "--correlation is not given: 0 is assumed, so that pairing saves nothing; its test even takes a few items more. "
    "Answers of two systems to the same items are mostly alike, and then it saves items. Two --runs say what the "
    "correlation is."
)


class Assumptions(Frozen):
    """Assumptions of a plan about two systems and their items. Variances are those of single answers.

    Args:
        measurement: the measurement that was read from runs; None without runs.
        rate: the share of items that the baseline gets right; None for measurements that are other numbers.
        correlation: of the two systems' values over the items.
        paired_variance: of the paired differences; for a rate, where the systems are equally good.
        separate_variance: the sum of the variances of both systems' values.
        within_variance: the part of both variances within items, which repeats average out; None if unknown.
        unseen: the loss and the gain of the imaginary items of the test; None if the range is unknown, or for a rate.
        items: how many items there are to ask; None for as many as it takes.
        repeats: how often each item is asked.
        failure_rates: the share of items that fails, for the baseline and for the candidate.
        design_effect: by how much clusters multiply the variances.
        cost_usd: dollars for one answer of both systems, with the questions of judges; None if it is not known.
        notes: what a reader should know.
    """

    measurement: Text | None = None
    rate: FiniteFloat | None = None
    correlation: FiniteFloat
    paired_variance: FiniteFloat
    separate_variance: FiniteFloat
    within_variance: FiniteFloat | None = None
    unseen: tuple[FiniteFloat, FiniteFloat] | None = added_later(None)
    items: Count | None = None
    repeats: Count = 1
    failure_rates: tuple[FiniteFloat, FiniteFloat] = (0.0, 0.0)
    design_effect: FiniteFloat = 1.0
    cost_usd: FiniteFloat | None = None
    notes: tuple[Text, ...] = ()

    def discordant(self, effect: float) -> tuple[float, float]:
        """Return the shares of items that only the baseline, and only the candidate, gets right.

        Args:
            effect: the candidate's rate less the baseline's.
        """
        rate = self.rate or 0.0
        return discordant_shares(rate, rate + effect, self.correlation)

    def largest_effect(self, direction: int, *, correlated: bool) -> float:
        """Return the largest difference that such systems can have; 0 if the correlation allows none.

        Args:
            direction: 1 for a better candidate, -1 for a worse candidate.
            correlated: whether they have to have this correlation, too.
        """
        if self.rate is None:
            return 1e4 * math.sqrt(self.separate_variance)
        rate, end = self.rate, 1.0 if direction > 0 else 0.0
        if correlated and self.correlation and 0 < rate < 1:  # it bounds the ratio of the odds
            odds = rate / (1 - rate)
            limit = (odds if self.correlation > 0 else 1 / odds) * self.correlation ** (-2 * direction)
            end = limit / (1 + limit)
        return max(0.0, direction * (end - rate)) * (1 - 1e-9)


def assumptions(
    runs: tuple[Given, Given] | None, options: PlanOptions, data_dir: Path | None = None
) -> Assumptions:
    """Return the assumptions of a plan.

    Args:
        runs: of the baseline and of the candidate; None if the options say what to assume.
        options: of the plan.
        data_dir: where runs are looked up by id.

    Raises:
        InvalidOptionError: an option is missing, or does not go with another.
        RecordError, UnknownNameError, InvalidDataError: see `_of_runs`.
    """
    if sum(given is not None for given in (runs, options.rate, options.stddev)) != 1:
        raise InvalidOptionError(
            "A plan needs two runs, or a rate, or a standard deviation.",
            fix="Give --runs A B, --rate 0.7 or --stddev 0.3, and one of them only.",
        )
    assumed = _from_options(options) if runs is None else _of_runs(*runs, options, data_dir)
    if (options.repeats or 1) > 1 and assumed.within_variance is None:
        raise InvalidOptionError(
            f"It is unknown how much {options.repeats} answers to one item vary.",
            fix="Give --repeat-correlation, or --runs that were made with --repeats.",
        )
    rate = options.failure_rate
    assumed = assumed.replaced(
        items=options.items or assumed.items,
        repeats=options.repeats or assumed.repeats,
        failure_rates=assumed.failure_rates if rate is None else (rate, rate),
        design_effect=(
            design_effect([options.cluster_size], options.cluster_correlation)
            if options.cluster_size > 1
            else assumed.design_effect
        ),
    )
    return _fitting(assumed, options.effect or 0.0)


def _from_options(options: PlanOptions) -> Assumptions:
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
    """Return the assumptions with a correlation that is possible for systems that differ by the effect.

    Two runs can have a correlation that is impossible at the rates of the plan; the nearest possible one is used.
    """
    if assumed.rate is None:
        return assumed
    candidate = assumed.rate + effect
    if not 0 <= candidate <= 1:
        raise InvalidOptionError(
            f"A rate of {assumed.rate:.4g} and --effect {effect:g} make a rate of {candidate:.4g}.",
            fix=f"Give an effect from {-assumed.rate:.4g} to {1 - assumed.rate:.4g}.",
        )
    least, most = correlation_range(assumed.rate, candidate)
    if assumed.measurement is None or least <= assumed.correlation <= most:
        _shares(assumed.rate, candidate, assumed.correlation)
        return assumed
    nearest = min(max(assumed.correlation, least), most)
    note = (
        f"The runs have a correlation of {assumed.correlation:.2f}; {nearest:.2f} is used, the nearest that rates of "
        f"{assumed.rate:.4g} and {candidate:.4g} can have."
    )
    return assumed.replaced(correlation=nearest, notes=(*assumed.notes, note))


def _shares(rate: float, candidate: float, alike: float) -> tuple[float, float]:
    try:
        return discordant_shares(rate, candidate, alike)
    except InvalidDataError as error:
        raise InvalidOptionError(f"--correlation {alike:g}: {error.problem}", fix=error.fix) from None


# --- of two runs ------------------------------------------------------------------------------------------


def _of_runs(baseline: Given, candidate: Given, options: PlanOptions, data_dir: Path | None) -> Assumptions:
    """Derive assumptions from two runs of one test.

    Raises:
        RecordError: a run cannot be found or read, they are one run, or they have no test or item in common.
        InvalidOptionError: an option says what they say.
        UnknownNameError: they have no such measurement in common, or several and none was named.
        InvalidDataError: they have no two items with a value in common, or the systems never differ.
    """
    if options.correlation is not None or options.repeat_correlation is not None:
        raise InvalidOptionError(
            "--runs say what --correlation and --repeat-correlation are.", fix="Leave them out."
        )
    choice = CompareOptions(data_dir=data_dir, allow=_ALLOWED)
    latest = ids_of_latest([baseline, candidate], choice)
    runs = [latest.get(given, given) if isinstance(given, str) else given for given in (baseline, candidate)]
    records = [named_run(given, data_dir).record for given in runs]
    try:
        (items,) = paired_runs(runs[0], runs[1:], choice).items
    except RecordError as error:
        raise RecordError(
            f"--runs: {error.problem}", fix="Give two runs of one test, on the same items."
        ) from None
    common = [name for name in items.before.values if name in items.after.values]
    name, *_ = chosen_measurements(common, [options.measurement] if options.measurement else ())
    values = np.array([items.before.values[name], items.after.values[name]])
    scored = ~np.isnan(values)
    both = np.flatnonzero(scored.all(axis=0))
    if len(both) < 2:
        raise InvalidDataError(
            f"Two items or more need a value of '{name}' in both --runs; {counted(len(both), 'has one', 'have one')}.",
            fix="Give runs on the same items, or plan with --rate or --stddev.",
        )
    repeats = [
        [held[name](place) for place in both.tolist()]
        for held in (items.before.repeats, items.after.repeats)
        if name in held
    ]
    alone = items.n_only_baseline + items.n_only_candidate
    costs = [_cost_of_an_answer(record) for record in records]
    same_repeats = len(repeats) == 2 and records[0].repeats == records[1].repeats
    return Assumptions(
        **_variation(values[:, both], repeats),
        measurement=name,
        unseen=compute_differences(values[0, both], values[1, both], None, items.ranges.get(name)).unseen,
        items=values.shape[1],
        repeats=records[0].repeats if same_repeats else 1,
        failure_rates=tuple((1 - scored.mean(axis=1)).tolist()),
        design_effect=_design_effect(values[1, both] - values[0, both], items.clusters, both),
        cost_usd=None if None in costs else sum(filter(None, costs)),
        notes=(f"{counted(alone, 'item is', 'items are')} left out: not in both runs.",) if alone else (),
    )


def _variation(values: NDArray[np.float64], repeats: Sequence[Sequence[Sequence[float]]]) -> dict[str, Any]:
    """Return the fields of `Assumptions` that describe the variation of two systems over the same items."""
    before, after = values
    paired, within = float(np.var(after - before, ddof=1)), None
    separate = float(np.var(values, axis=1, ddof=1).sum())
    if len(repeats) == 2:
        between, within = paired_repeat_variance(*repeats)
        paired, separate = between + within, sum(sum(repeat_variance(held)) for held in repeats)
    if not paired:
        raise InvalidDataError(
            f"The two --runs differ by the same on all {len(before)} items, so they do not say how much systems vary.",
            fix="Plan with --rate or --stddev instead.",
        )
    binary = within is None and bool(np.isin(values, (0.0, 1.0)).all())
    return {
        "rate": float(before.mean()) if binary else None,
        "correlation": correlation(before, after) or 0.0,
        "paired_variance": paired,
        "separate_variance": separate,
        "within_variance": within,
    }


def _design_effect(
    differences: NDArray[np.float64], clusters: NDArray[np.int64] | None, places: NDArray[np.int64]
) -> float:
    """Return the factor by which clusters of items multiply the variance of the differences."""
    if clusters is None:
        return 1.0
    codes = clusters[places]
    each = [differences[codes == code] for code in np.unique(codes)]
    if len(each) < 2 or len(each) == len(codes):
        return 1.0
    return design_effect([*map(len, each)], max(0.0, repeat_variance(each).correlation or 0.0))


def _cost_of_an_answer(record: TestRecord) -> float | None:
    """Return the dollars per answer to an item; None if the run does not know, or paid for nothing."""
    calls, answers = record.counts.sut_calls, record.counts.items * record.repeats
    if record.spent is None or not record.spent.cost_usd or not calls.paid or not answers:
        return None
    return record.spent.cost_usd / answers * (calls.paid + calls.cached) / calls.paid
