"""The table of `run-test --dry-run`: what each pair would take."""

from collections.abc import Iterator, Sequence

from modelgauge.documents.document import Block, Sentences, TableBlock, TableColumn
from modelgauge.engine.planning import Plan
from modelgauge.wording.figures import dollars
from modelgauge.wording.phrases import counted, one_line

_MOST_OF_A_REASON = 500
BESIDE = "Questions that judges ask, and attempts after failures, come on top."
"""Usage that the sum of plans does not include."""


def plans_document(plans: Sequence[Plan]) -> Iterator[Block]:
    """Return what runs would take: a row for each pair, and the sum.

    Args:
        plans: at least one.
    """
    yield plans_table(plans)
    yield Sentences([sum_of_plans(plans), *failing_in_words(plans), f"Nothing was sent. {BESIDE}"])


def plans_table(plans: Sequence[Plan], *, has_tokens: bool = False) -> TableBlock:
    """Return a row for each pair.

    Args:
        plans: at least one.
        has_tokens: whether it has the tokens of the prompts that are sent.
    """
    sut, annotators = [plan.sut_calls for plan in plans], [plan.annotator_calls for plan in plans]
    numbers = [
        ("items", [f"{plan.items:,}" for plan in plans]),
        ("SUT calls", [f"{calls.paid:,}" for calls in sut]),
        ("cached", [f"{calls.cached:,}" for calls in sut]),
    ]
    if any(calls.paid or calls.cached for calls in annotators):
        numbers.append(("annotator calls", [f"{calls.paid:,}" for calls in annotators]))
        numbers.append(("cached", [f"{calls.cached:,}" for calls in annotators]))
    if has_tokens:
        numbers.append(("tokens of prompts", [f"{plan.prompt_tokens:,}" for plan in plans]))
    if any(plan.cost_usd is not None and plan.sut_calls.paid for plan in plans):
        numbers.append(("cost", [dollars(plan.cost_usd) for plan in plans]))
    return TableBlock(
        [
            TableColumn("Test", [plan.test_uid for plan in plans], fold=8, kind="name"),
            TableColumn("SUT", [plan.sut_label or plan.sut_uid for plan in plans], fold=8, kind="name"),
            *(TableColumn(head, cells, right=True, kind="number") for head, cells in numbers),
        ],
        label="What each pair takes",
        kind="rows",
    )


def failing_in_words(plans: Sequence[Plan]) -> Iterator[str]:
    """Name the items that will fail, and why."""
    for plan in plans:
        if plan.failing:
            pair = f"{plan.test_uid} on {plan.sut_label or plan.sut_uid}"
            yield f"{counted(plan.failing, 'item')} of {pair} will fail:"
            yield from (f"  {one_line(reason, _MOST_OF_A_REASON)}" for reason in plan.reasons)


def sum_of_plans(plans: Sequence[Plan]) -> str:
    """Say in a sentence what runs would take together."""
    calls = sum(plan.sut_calls.paid + plan.annotator_calls.paid - plan.unsent for plan in plans)
    tokens = sum(plan.prompt_tokens for plan in plans)
    sent = f", about {counted(tokens, 'prompt token')} in all" if tokens else ""
    to_pay = f"To pay: {counted(calls, 'call')}{sent}"
    costs = [plan.cost_usd for plan in plans if plan.sut_calls.paid]
    known = [cost for cost in costs if cost is not None]
    if not known:
        return f"{to_pay}{'; the cost is unknown' if calls else ''}."
    more = " and what SUTs without known prices ask" if len(known) < len(costs) else ""
    return f"{to_pay}; about {dollars(sum(known))}{more}."
