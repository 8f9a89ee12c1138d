"""`plan_comparison`: the number of items and repeats for a comparison, and the differences that it can detect.

What is assumed of the systems lives in `assumptions`, the formulas in `stats`; nothing is rendered here.
"""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, Unpack

from pydantic import FiniteFloat

from modelgauge.comparison.named_runs import Given
from modelgauge.comparison.options import PlanOptions
from modelgauge.comparison.options_dicts import PlanOptionsDict
from modelgauge.comparison.plan_assumptions import Assumptions, assumptions
from modelgauge.data.base import Count, Frozen, Text
from modelgauge.errors import InvalidOptionError
from modelgauge.stats.comparisons.designs import items_with_failures
from modelgauge.stats.comparisons.power import (
    bounded_power,
    detectable_difference,
    detectable_effect,
    items_needed,
    mcnemar_power,
    proportions_power,
    t_power,
)

_Way: TypeAlias = tuple[Literal["paired", "separate"], str]  # the samples and the test

LOOK_ONCE = (
    "Ask all items before you look. Who tests after each fifth of them, and stops at the first p below 0.05, finds a "
    "difference between equal systems 14 times in 100, not 5 (Armitage, McPherson and Rowe 1969)."
)
_REPEATS = (1, 2, 3, 5, 10)
_MOST_ENUMERATED = 1_000_000  # items: beyond, enumeration takes long, and the normal approximation is as good


class ComparisonDesign(Frozen):
    """Requirements of one way to compare two systems, and the differences that it can detect.

    Args:
        samples: whether both systems answer the same items, or each a sample of its own.
        test: "mcnemar_exact", "mcnemar_normal", "proportions" or "t".
        items: how many items each system is asked to find the effect; None if no effect was given.
        power: the chance to find the effect with the items that there are; None if either was not given.
        gain: the smallest improvement that these items find with the planned power; None if they find none.
        loss: the smallest decline that they find, as a number above 0.
    """

    samples: Literal["paired", "separate"]
    test: Text
    items: Count | None = None
    power: FiniteFloat | None = None
    gain: FiniteFloat | None = None
    loss: FiniteFloat | None = None


class RepeatedDesign(Frozen):
    """A design that asks both systems the same items several times, and the difference that it finds.

    Args:
        items: how many items each system is asked.
        repeats: how often each.
        calls: to each system.
        stderr: the standard error of the difference.
        detectable: the smallest difference that is found with the planned power, by the normal approximation.
        cost_usd: dollars for the answers of both systems; None if it is not known.
    """

    items: Count
    repeats: Count
    calls: Count
    stderr: FiniteFloat
    detectable: FiniteFloat
    cost_usd: FiniteFloat | None = None


class ComparisonPlan(Frozen):
    """Number of items needed to compare two systems, or the difference that a comparison can detect.

    Args:
        schema_version: the version of the JSON format.
        assumed: of the systems.
        effect: the difference to find, candidate minus baseline; None to compute the difference that can be found.
        power: the chance to find it.
        alpha: the level of the two-sided test.
        comparisons: how many comparisons share the level, as in Holm's first step.
        designs: what each way to compare needs, or can find.
        cost_usd: dollars for the paired items that it needs, or for the available items; None if unknown.
        same_calls: the calls of the paired design, spent on more items or on more repeats; empty if the variance of the
            answers to one item is unknown.
        more_repeats: the available items, asked more often.
        notes: what a reader should know.
    """

    schema_version: Literal[1] = 1
    assumed: Assumptions
    effect: FiniteFloat | None = None
    power: FiniteFloat
    alpha: FiniteFloat
    comparisons: Count
    designs: tuple[ComparisonDesign, ...]
    cost_usd: FiniteFloat | None = None
    same_calls: tuple[RepeatedDesign, ...] = ()
    more_repeats: tuple[RepeatedDesign, ...] = ()
    notes: tuple[Text, ...] = ()


def plan_comparison(
    baseline: Given | None = None,
    candidate: Given | None = None,
    *,
    data_dir: str | Path | None = None,
    **options: Unpack[PlanOptionsDict],
) -> ComparisonPlan:
    """Plan a comparison: how many items it needs to detect a difference, or which difference n items can detect.

    The assumptions about the systems come from two runs, or else from `rate` or `stddev`. All tests are two-sided. The
    page "Comparisons" of the reference says which formulas these are.

    Args:
        baseline: a run of a system: its record, its id, its folder, or `latest`.
        candidate: a run of another system on the same test.
        data_dir: where runs are looked up by id.
        options: "Options of a plan" in the reference lists them.

    Raises:
        InvalidOptionError: an option is missing, cannot be what was given, or does not go with another.
        RecordError: there is no such run, or there are several.
        UnknownNameError: the runs have no such measurement in common, or have several and the call names none.
        InvalidDataError: the runs do not say how much the systems vary.
    """
    if (baseline is None) != (candidate is None):
        raise InvalidOptionError("A plan needs two runs or none.", fix="Give --runs A B.")
    chosen = PlanOptions(**options)
    runs = None if baseline is None or candidate is None else (baseline, candidate)
    folder = Path(data_dir) if data_dir is not None else None
    return plan_for(assumptions(runs, chosen, folder), chosen)


def plan_for(assumed: Assumptions, options: PlanOptions) -> ComparisonPlan:
    """Return the plan under these assumptions.

    Args:
        assumed: of the systems and the items.
        options: of the plan.

    Raises:
        InvalidOptionError: there is neither an effect nor a number of items.
    """
    effect, power, alpha, family = options.effect, options.power, options.alpha, options.comparisons
    if effect is None and assumed.items is None:
        raise InvalidOptionError(
            "The plan needs an effect to detect or a number of items.",
            fix="Give --effect 0.05, or --items 500 to learn which effect these find.",
        )
    designs = tuple(_design(assumed, options, way) for way in _ways(assumed))
    items = assumed.items if effect is None else designs[0].items
    calls = (items or 0) * assumed.repeats
    repeated = partial(
        _repeated_design, assumed, partial(detectable_difference, power=power, alpha=alpha, family=family)
    )
    repeats = _REPEATS if assumed.within_variance is not None else ()
    return ComparisonPlan(
        assumed=assumed,
        effect=effect,
        power=power,
        alpha=alpha,
        comparisons=family,
        designs=designs,
        cost_usd=_cost(assumed, calls),
        same_calls=tuple(repeated(calls // number, number) for number in repeats if calls // number >= 2),
        more_repeats=tuple(repeated(assumed.items, number) for number in repeats if assumed.items),
        notes=(*assumed.notes, LOOK_ONCE),
    )


def _ways(assumed: Assumptions) -> tuple[_Way, ...]:
    """Return the applicable samples and tests, recommended ones first."""
    if assumed.rate is None or assumed.repeats > 1:
        return ("paired", "t"), ("separate", "t")
    return ("paired", "mcnemar_exact"), ("paired", "mcnemar_normal"), ("separate", "proportions")


def _power(assumed: Assumptions, options: PlanOptions, way: _Way, effect: float, n: float) -> float:
    """Return the power to detect an effect with n independent items."""
    samples, test = way
    level: dict[str, Any] = {"alpha": options.alpha, "family": options.comparisons}
    if test == "t" and n > 1:
        whole, count = (assumed.paired_variance, 1) if samples == "paired" else (assumed.separate_variance, 2)
        variance = _with_repeats(assumed, whole, assumed.repeats)
        if samples == "paired" and assumed.unseen is not None:
            return bounded_power(effect, math.sqrt(variance), n, assumed.unseen, **level)
        return t_power(effect, math.sqrt(variance / n), count * (n - 1), **level)
    if test == "t" or n < 1:
        return 0.0
    if test == "proportions":
        rate = assumed.rate or 0.0
        return proportions_power(rate, rate + effect, math.floor(n), **level)
    exact = test == "mcnemar_exact" and n <= _MOST_ENUMERATED
    return mcnemar_power(*assumed.discordant(effect), math.floor(n), exact=exact, **level)


def _with_repeats(assumed: Assumptions, variance: float, repeats: int) -> float:
    """Return the variance of the difference of two means of repeats: ω² + σ² / R."""
    within = assumed.within_variance or 0.0
    return max(0.0, variance - within) + within / repeats


def _design(assumed: Assumptions, options: PlanOptions, way: _Way) -> ComparisonDesign:
    """Return the number of items that this design needs, and the effect that it detects with the available items."""
    (samples, test), effect, power = way, options.effect, options.power
    failures = assumed.failure_rates if samples == "paired" else (max(assumed.failure_rates),)
    reaches = partial(_power, assumed, options, way)
    items = reached = gain = loss = None
    if effect is not None:
        needed = items_needed(lambda n: reaches(effect, n / assumed.design_effect), power=power)
        items = items_with_failures(needed, *failures)
    if assumed.items is not None:
        n = assumed.items * math.prod(1 - rate for rate in failures) / assumed.design_effect
        reached = None if effect is None else reaches(effect, n)
        most = [assumed.largest_effect(sign, correlated=test.startswith("mcnemar")) for sign in (1, -1)]
        gain = detectable_effect(lambda size: reaches(size, n), most[0], power=power)
        loss = detectable_effect(lambda size: reaches(-size, n), most[1], power=power)
    return ComparisonDesign(samples=samples, test=test, items=items, power=reached, gain=gain, loss=loss)


def _repeated_design(
    assumed: Assumptions, detectable: Callable[[float], float], items: int, repeats: int
) -> RepeatedDesign:
    n = items * math.prod(1 - rate for rate in assumed.failure_rates) / assumed.design_effect
    stderr = math.sqrt(_with_repeats(assumed, assumed.paired_variance, repeats) / n)
    return RepeatedDesign(
        items=items,
        repeats=repeats,
        calls=items * repeats,
        stderr=stderr,
        detectable=detectable(stderr),
        cost_usd=_cost(assumed, items * repeats),
    )


def _cost(assumed: Assumptions, calls: int) -> float | None:
    return None if assumed.cost_usd is None else calls * assumed.cost_usd
