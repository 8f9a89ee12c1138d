"""The classes of an item's contexts: a context that is a model of the author's is JSON once it was written or sent."""

from typing import Any

from pydantic import BaseModel

from modelgauge.data.items import TestItem

ContextClasses = tuple[Any, ...]
"""The class of an item's own context, then those of its prompts; None for a context that is no model."""


def context_classes(item: TestItem) -> ContextClasses | None:
    """Return the classes of an item's contexts; None if no context is a model."""
    kinds = [type(item.context), *[type(prompt.context) for prompt in item.prompts]]
    # Not issubclass, which takes its time with models.
    classes = tuple([kind if BaseModel in kind.__mro__ else None for kind in kinds])
    return classes if any(classes) else None


def with_contexts(item: TestItem, classes: ContextClasses | None) -> TestItem:
    """Return an item read from JSON with the context objects that `make_test_items` created."""
    if classes is None:
        return item
    own, *of_prompts = classes
    prompts = tuple(
        prompt if cls is None else prompt.replaced(context=prompt.context_as(cls))
        for prompt, cls in zip(item.prompts, of_prompts, strict=True)
    )
    context = item.context if own is None else item.context_as(own)
    return item.replaced(prompts=prompts, context=context)
