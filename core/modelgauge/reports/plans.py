"""The table of `run-test --dry-run`: what each pair would take."""

from collections.abc import Callable, Sequence

from modelgauge.data.results import CallCounts
from modelgauge.engine.planning import Plan
from modelgauge.reports.layout import Page, Style, one_line
from modelgauge.wording.figures import dollars
from modelgauge.wording.phrases import counted

_MOST_OF_A_REASON = 500
_NOTE = "Nothing was sent. Questions that judges ask, and attempts after failures, come on top."


def render_plans(plans: Sequence[Plan], style: Style, redact: Callable[[str], str] = str) -> str:
    """What runs would take: a row for each pair, and the sum.

    Args:
        plans: at least one.
        style: of the terminal.
        redact: takes secrets out of a text.

    Returns:
        Lines without white space at their ends.
    """
    page = Page(style, redact)
    judged = any(plan.annotator_calls.paid or plan.annotator_calls.cached for plan in plans)
    priced = any(plan.cost_usd is not None and plan.sut_calls.paid for plan in plans)
    counts = ["items", "SUT calls", "cached", *(["annotator calls", "cached"] if judged else [])]
    head = ["Test", "SUT", *counts, *(["cost"] if priced else [])]
    rows = []
    for plan in plans:
        row = [plan.test_uid, plan.sut_label or plan.sut_uid, f"{plan.items:,}", *_cells(plan.sut_calls)]
        row += _cells(plan.annotator_calls) if judged else []
        rows.append([*row, *([dollars(plan.cost_usd)] if priced else [])])
    page.add_table(rows, head, folds={"Test": 8, "SUT": 8}, right=head[2:])
    page.add(sum_of_plans(plans))
    for plan in plans:
        if plan.failing:
            page.add(
                f"{counted(plan.failing, 'item')} of {plan.test_uid} on {plan.sut_label or plan.sut_uid} will fail:"
            )
            for reason in plan.reasons:
                page.add(f"  {one_line(reason, _MOST_OF_A_REASON)}")
    page.add(_NOTE)
    return page.rendered()


def _cells(calls: CallCounts) -> list[str]:
    return [f"{calls.paid:,}", f"{calls.cached:,}"]


def sum_of_plans(plans: Sequence[Plan]) -> str:
    """What runs would take together, as a sentence."""
    calls = sum(plan.sut_calls.paid + plan.annotator_calls.paid - plan.unsent for plan in plans)
    tokens = sum(plan.prompt_tokens for plan in plans)
    sent = f", prompts of about {counted(tokens, 'token')}" if tokens else ""
    to_pay = f"To pay: {counted(calls, 'call')}{sent}"
    costs = [plan.cost_usd for plan in plans if plan.sut_calls.paid]
    known = [cost for cost in costs if cost is not None]
    if not known:
        return f"{to_pay}{'; the cost is unknown' if calls else ''}."
    more = " and what SUTs without known prices ask" if len(known) < len(costs) else ""
    return f"{to_pay}; about {dollars(sum(known))}{more}."
