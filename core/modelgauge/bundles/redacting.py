"""Item records without their texts, for bundles that shall hold none.

What stays: ids, measurements, which prompts are equal, options, tokens, the kinds of errors.
"""

from typing import Any

from modelgauge.data.annotations import PromptInteractionAnnotations, SUTCompletionAnnotations
from modelgauge.data.item_records import ItemRecord, TestItemRecord
from modelgauge.data.items import Digests, PromptWithContext, TestItem, hex_digest
from modelgauge.data.prompts import ChatPrompt
from modelgauge.data.responses import SUTCompletion

_NO_ERROR_TEXTS: dict[str, Any] = {"message": "", "traceback": "", "traces": ()}


class TextRemover:
    """Puts marks in place of texts: equal marks for equal prompts, which share one answer."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def without_texts(self, record: ItemRecord) -> ItemRecord:
        """The record of an item without its texts; by its digests the item is still recognized."""
        item = record.test_item
        digests = Digests(id=hex_digest(str(item.id)), item=hex_digest(item.model_dump_json()))
        prompts = tuple([self._prompt(prompt) for prompt in item.prompts])
        own = dict(zip(map(id, item.prompts), prompts, strict=True))
        kept: dict[str, Any] = {
            "test_item": TestItem(prompts, id=item.id),
            "interactions": tuple(
                [
                    _bare(interaction, own.get(id(interaction.prompt)) or self._prompt(interaction.prompt))
                    for interaction in record.interactions
                ]
            ),
            "digests": record.digests or digests,
            "redacted": True,
        }
        if isinstance(record, TestItemRecord):
            failed = tuple([failure.replaced(**_NO_ERROR_TEXTS) for failure in record.failed_repeats])
            return record.replaced(**kept, failed_repeats=failed)
        return record.replaced(**kept, **_NO_ERROR_TEXTS)

    def _prompt(self, prompt: PromptWithContext) -> PromptWithContext:
        asked = prompt.prompt
        if isinstance(asked, ChatPrompt):
            messages = tuple([message.replaced(text=self._mark(message.text)) for message in asked.messages])
            return PromptWithContext(asked.replaced(messages=messages), prompt.source_id)
        return PromptWithContext(asked.replaced(text=self._mark(asked.text)), prompt.source_id)

    def _mark(self, text: str) -> str:
        return f"[text {self._numbers.setdefault(hex_digest(text), len(self._numbers) + 1)}]"


def _bare(
    interaction: PromptInteractionAnnotations, prompt: PromptWithContext
) -> PromptInteractionAnnotations:
    """An interaction without texts, and without the keys of its calls, by which short texts could be guessed."""
    completions = tuple(
        [
            SUTCompletionAnnotations(
                completion=SUTCompletion("", finish_reason=each.completion.finish_reason),
                annotations=dict.fromkeys(each.annotations),
            )
            for each in interaction.response.completions
        ]
    )
    response = interaction.response.replaced(completions=completions)
    return interaction.replaced(prompt=prompt, response=response, key=None, annotation_keys=(), other_keys=())
