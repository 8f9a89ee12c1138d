"""Report of `modelgauge plan`: the items that a comparison needs, and the differences that it can detect."""

from collections.abc import Iterator, Sequence

from modelgauge.comparison.plan import ComparisonPlan, RepeatedDesign
from modelgauge.documents.document import Block, Fact, FactList, Heading, TableBlock, TableColumn
from modelgauge.wording.figures import dollars, figure
from modelgauge.wording.phrases import counted

_DESIGNS = {
    ("paired", "mcnemar_exact"): "same items: McNemar, exact",
    ("paired", "mcnemar_normal"): "same items: McNemar, normal",
    ("paired", "t"): "same items: Student's t",
    ("separate", "proportions"): "separate samples: normal",
    ("separate", "t"): "separate samples: Student's t",
}


def comparison_plan_document(plan: ComparisonPlan) -> Iterator[Block]:
    """Return a plan as a person reads it."""
    yield Heading(_goal(plan))
    yield _designs_table(plan)
    facts = [Fact("assumed", ", ".join(_assumed(plan)))]
    if plan.cost_usd is not None:
        facts.append(Fact("cost", f"about {dollars(plan.cost_usd)} for all answers of both systems"))
    yield FactList([*facts, *(Fact("note", note) for note in plan.notes)])
    if plan.same_calls:
        yield Heading("The same calls, spent on more items or on more repeats")
        yield _repeats_table(plan.same_calls)
    if plan.more_repeats:
        yield Heading(f"The {counted(plan.assumed.items or 0, 'item')} that there are, asked more often")
        yield _repeats_table(plan.more_repeats)


def _goal(plan: ComparisonPlan) -> str:
    chance = f"with a power of {plan.power:g} at the level {plan.alpha:g}"
    if plan.comparisons > 1:
        chance += f", in {plan.comparisons:,} comparisons together"
    rate, effect = plan.assumed.rate, plan.effect
    if effect is None:
        return f"What {counted(plan.assumed.items or 0, 'item')} can find {chance}"
    what = f" ({figure(rate)} to {figure(rate + effect)})" if rate is not None else ""
    return f"To find a difference of {figure(effect)}{what} {chance}"


def _designs_table(plan: ComparisonPlan) -> TableBlock:
    designs, items = plan.designs, plan.assumed.items
    gains = [_effect_text(design.gain) for design in designs]
    losses = [_effect_text(design.loss) for design in designs]
    columns = [TableColumn("Design", [_DESIGNS[design.samples, design.test] for design in designs], fold=20)]
    if plan.effect is not None:
        columns.append(TableColumn("needs", [f"{design.items or 0:,}" for design in designs], right=True))
    if plan.effect is not None and items:
        columns.append(TableColumn("power", [f"{design.power or 0.0:.2f}" for design in designs], right=True))
    if items:
        columns.append(TableColumn("finds" if gains == losses else "finds a gain of", gains, right=True))
    if items and gains != losses:
        columns.append(TableColumn("a loss of", losses, right=True))
    return TableBlock(columns)


def _effect_text(effect: float | None) -> str:
    return "none" if effect is None else figure(float(f"{effect:.3g}"))


def _assumed(plan: ComparisonPlan) -> list[str]:
    assumed, within = plan.assumed, plan.assumed.within_variance
    variance = f"variance of differences {assumed.paired_variance:.3g}"
    facts = {
        f"{assumed.measurement} as in the runs": assumed.measurement,
        f"rate {figure(assumed.rate or 0.0)}": assumed.rate,
        f"correlation {assumed.correlation:.2f}": True,
        variance: assumed.rate is None or within is not None,
        f"of which {within or 0.0:.3g} within items": within is not None,
        counted(assumed.items or 0, "item"): assumed.items,
        f"{assumed.repeats} repeats": assumed.repeats > 1,
        " and ".join(f"{100 * rate:.2g} %" for rate in assumed.failure_rates) + " failures": any(
            assumed.failure_rates
        ),
        f"design effect of clusters {assumed.design_effect:.3g}": assumed.design_effect != 1,
    }
    return [fact for fact, is_known in facts.items() if is_known]


def _repeats_table(designs: Sequence[RepeatedDesign]) -> TableBlock:
    columns = {
        "items": [f"{design.items:,}" for design in designs],
        "repeats": [f"{design.repeats:,}" for design in designs],
        "calls of each": [f"{design.calls:,}" for design in designs],
        "std err": [f"{design.stderr:.3g}" for design in designs],
        "finds": [_effect_text(design.detectable) for design in designs],
    }
    if designs[0].cost_usd is not None:
        columns["cost"] = [dollars(design.cost_usd) for design in designs]
    return TableBlock([TableColumn(head, cells, right=True) for head, cells in columns.items()])
