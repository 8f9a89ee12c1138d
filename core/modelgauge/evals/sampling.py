"""Which cases or goldens `max_test_items` chooses, before an app is used for any: those that a run would take."""

from collections.abc import Sequence
from typing import TypeVar

from modelgauge.config.options import RunOptions
from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.data.test_cases import ConversationalGolden, ConversationalTestCase, Golden, LLMTestCase
from modelgauge.datasets.dataset_test import item_ids, prompt_of
from modelgauge.engine.item_ids import Ids
from modelgauge.engine.source import numbered, sample
from modelgauge.errors import InvalidOptionError

MemberT = TypeVar("MemberT", bound=LLMTestCase | ConversationalTestCase | Golden | ConversationalGolden)


def sampled(members: Sequence[MemberT], options: RunOptions) -> list[MemberT]:
    """The members that a run with these options judges, in their order.

    Args:
        members: test cases or goldens.
        options: of the run; `max_test_items` and `seed` matter.

    Raises:
        InvalidOptionError: none would be chosen.
    """
    most = options.max_test_items
    if most is not None and most < 1:
        raise InvalidOptionError(
            f"max_test_items is {most}, so nothing would be judged.", fix="Give 1 or more."
        )
    if most is None or most >= len(members):
        return list(members)
    ids = item_ids(members)
    items = (
        TestItem(PromptWithContext(prompt_of(member)), id=item_id)
        for member, item_id in zip(members, ids, strict=True)
    )
    return [
        members[one.index] for one in sample(numbered(items, Ids("evaluate"), "evaluate"), most, options.seed)
    ]
