"""The table of `run-test --dry-run`: what each pair would take."""

from collections.abc import Iterator, Sequence

from modelgauge.documents.document import Block, Sentences, TableBlock, TableColumn
from modelgauge.engine.planning import Plan
from modelgauge.wording.figures import dollars
from modelgauge.wording.phrases import counted, one_line

_MOST_OF_A_REASON = 500
_NOTE = "Nothing was sent. Questions that judges ask, and attempts after failures, come on top."


def plans_document(plans: Sequence[Plan]) -> Iterator[Block]:
    """Return what runs would take: a row for each pair, and the sum.

    Args:
        plans: at least one.
    """
    yield _table(plans)
    yield Sentences([sum_of_plans(plans), *_failing(plans), _NOTE])


def _table(plans: Sequence[Plan]) -> TableBlock:
    sut, annotators = [plan.sut_calls for plan in plans], [plan.annotator_calls for plan in plans]
    numbers = [
        TableColumn("items", [f"{plan.items:,}" for plan in plans], right=True),
        TableColumn("SUT calls", [f"{calls.paid:,}" for calls in sut], right=True),
        TableColumn("cached", [f"{calls.cached:,}" for calls in sut], right=True),
    ]
    if any(calls.paid or calls.cached for calls in annotators):
        numbers.append(
            TableColumn("annotator calls", [f"{calls.paid:,}" for calls in annotators], right=True)
        )
        numbers.append(TableColumn("cached", [f"{calls.cached:,}" for calls in annotators], right=True))
    if any(plan.cost_usd is not None and plan.sut_calls.paid for plan in plans):
        numbers.append(TableColumn("cost", [dollars(plan.cost_usd) for plan in plans], right=True))
    return TableBlock(
        [
            TableColumn("Test", [plan.test_uid for plan in plans], fold=8),
            TableColumn("SUT", [plan.sut_label or plan.sut_uid for plan in plans], fold=8),
            *numbers,
        ]
    )


def _failing(plans: Sequence[Plan]) -> Iterator[str]:
    """Name the items that will fail, and why."""
    for plan in plans:
        if plan.failing:
            pair = f"{plan.test_uid} on {plan.sut_label or plan.sut_uid}"
            yield f"{counted(plan.failing, 'item')} of {pair} will fail:"
            yield from (f"  {one_line(reason, _MOST_OF_A_REASON)}" for reason in plan.reasons)


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
