"""What `modelgauge plan` shows: the items that a comparison needs, and the differences that it can find."""

from collections.abc import Callable, Sequence

from modelgauge.comparison.plan import ComparisonDesign, ComparisonPlan, RepeatedDesign
from modelgauge.reports.layout import Page, Style
from modelgauge.wording.figures import dollars, figure
from modelgauge.wording.phrases import counted

_DESIGNS = {
    ("paired", "mcnemar_exact"): "same items: McNemar, exact",
    ("paired", "mcnemar_normal"): "same items: McNemar, normal",
    ("paired", "t"): "same items: Student's t",
    ("separate", "proportions"): "separate samples: normal",
    ("separate", "t"): "separate samples: Student's t",
}


def render_comparison_plan(plan: ComparisonPlan, style: Style, redact: Callable[[str], str] = str) -> str:
    """A plan as a person reads it.

    Args:
        plan: to be shown.
        style: of the terminal.
        redact: takes secrets out of a text.

    Returns:
        Lines without white space at their ends.
    """
    page = Page(style, redact)
    page.add(_goal(plan), "bold")
    _add_designs(plan, page)
    facts = [("assumed", ", ".join(_assumed(plan)))]
    if plan.cost_usd is not None:
        facts.append(("cost", f"about {dollars(plan.cost_usd)} for all answers of both systems"))
    page.add_facts([*facts, *(("note", note) for note in plan.notes)])
    page.add_gap()
    for rows, head in (
        (plan.same_calls, "The same calls, spent on more items or on more repeats"),
        (
            plan.more_repeats,
            f"The {counted(plan.assumed.items or 0, 'item')} that there are, asked more often",
        ),
    ):
        if rows:
            page.add(head, "bold")
            _add_repeats(rows, page)
    return page.rendered()


def _goal(plan: ComparisonPlan) -> str:
    chance = f"with a power of {plan.power:g} at the level {plan.alpha:g}"
    if plan.comparisons > 1:
        chance += f", in {plan.comparisons:,} comparisons together"
    rate, effect = plan.assumed.rate, plan.effect
    if effect is None:
        return f"What {counted(plan.assumed.items or 0, 'item')} can find {chance}"
    what = f" ({figure(rate)} to {figure(rate + effect)})" if rate is not None else ""
    return f"To find a difference of {figure(effect)}{what} {chance}"


def _add_designs(plan: ComparisonPlan, page: Page) -> None:
    designs, items = plan.designs, plan.assumed.items
    alike = all(_effect_text(design.gain) == _effect_text(design.loss) for design in designs)
    cells: dict[str, Callable[[ComparisonDesign], str]] = {
        "Design": lambda design: _DESIGNS[design.samples, design.test]
    }
    if plan.effect is not None:
        cells["needs"] = lambda design: f"{design.items or 0:,}"
    if plan.effect is not None and items:
        cells["power"] = lambda design: f"{design.power or 0.0:.2f}"
    if items:
        cells["finds" if alike else "finds a gain of"] = lambda design: _effect_text(design.gain)
    if items and not alike:
        cells["a loss of"] = lambda design: _effect_text(design.loss)
    rows = [[cell(design) for cell in cells.values()] for design in designs]
    page.add_table(rows, [*cells], folds={"Design": 20}, right=[*cells][1:])


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


def _add_repeats(rows: Sequence[RepeatedDesign], page: Page) -> None:
    head = ["items", "repeats", "calls of each", "std err", "finds", "cost"]
    cells = [
        [
            f"{design.items:,}",
            f"{design.repeats:,}",
            f"{design.calls:,}",
            f"{design.stderr:.3g}",
            _effect_text(design.detectable),
        ]
        + [dollars(design.cost_usd)] * (design.cost_usd is not None)
        for design in rows
    ]
    page.add_table(cells, head[: len(cells[0])], folds={}, right=head)
