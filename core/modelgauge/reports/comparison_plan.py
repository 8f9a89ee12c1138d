"""What `modelgauge plan` shows: the items that a comparison needs, and the differences that it can find."""

from collections.abc import Callable, Sequence

from modelgauge.comparison.planning.plan import ComparisonDesign, ComparisonPlan, RepeatedDesign
from modelgauge.data.figures import dollars, figure
from modelgauge.reports.layout import Page, Style, counted

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
    page, indent = Page(style, redact), len("assumed")
    page.add(_goal(plan), "bold")
    _add_designs(plan, page)
    page.add_fact("assumed", ", ".join(_assumed(plan)), indent=indent)
    if plan.cost_usd is not None:
        page.add_fact(
            "cost", f"about {dollars(plan.cost_usd)} for all answers of both systems", indent=indent
        )
    for note in plan.notes:
        page.add_fact("note", note, indent=indent)
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
    designs = plan.designs
    cells: dict[str, Callable[[ComparisonDesign], str]] = {
        "Design": lambda one: _DESIGNS[one.samples, one.test],
    }
    if plan.effect is not None:
        cells["needs"] = lambda one: f"{one.items or 0:,}"
    if plan.assumed.items is not None:
        if plan.effect is not None:
            cells["power"] = lambda one: f"{one.power or 0.0:.2f}"
        cells["finds a gain of"] = lambda one: _found(one.gain)
        if any(_found(one.gain) != _found(one.loss) for one in designs):
            cells["a loss of"] = lambda one: _found(one.loss)
        else:
            cells = {name.replace(" a gain of", ""): cell for name, cell in cells.items()}
    rows = [[cell(one) for cell in cells.values()] for one in designs]
    page.add_table(rows, [*cells], folds={"Design": 20}, right=[*cells][1:])


def _found(effect: float | None) -> str:
    return "none" if effect is None else figure(float(f"{effect:.3g}"))


def _assumed(plan: ComparisonPlan) -> list[str]:
    assumed, within = plan.assumed, plan.assumed.within_variance
    facts = [f"{assumed.measurement} as in the runs"] if assumed.measurement else []
    if assumed.rate is not None:
        facts.append(f"rate {figure(assumed.rate)}")
    facts.append(f"correlation {assumed.correlation:.2f}")
    if assumed.rate is None or within is not None:
        facts.append(f"variance of differences {assumed.paired_variance:.3g}")
    if within is not None:
        facts.append(f"of which {within:.3g} within items")
    if assumed.items is not None:
        facts.append(counted(assumed.items, "item"))
    if assumed.repeats > 1:
        facts.append(f"{assumed.repeats} repeats")
    if any(assumed.failure_rates):
        facts.append("failures " + " and ".join(f"{100 * rate:.2g} %" for rate in assumed.failure_rates))
    if assumed.design_effect != 1:
        facts.append(f"design effect of clusters {assumed.design_effect:.3g}")
    return facts


def _add_repeats(rows: Sequence[RepeatedDesign], page: Page) -> None:
    head = ["items", "repeats", "calls of each", "std err", "finds"]
    cells = [
        [
            f"{one.items:,}",
            f"{one.repeats:,}",
            f"{one.calls:,}",
            f"{one.stderr:.3g}",
            _found(one.detectable),
            *([dollars(one.cost_usd)] if one.cost_usd is not None else []),
        ]
        for one in rows
    ]
    head += ["cost"] if rows[0].cost_usd is not None else []
    page.add_table(cells, head, folds={}, right=head)
