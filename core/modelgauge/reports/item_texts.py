"""JSON values as texts, and the one that people look for in the contexts of an item: the right answer."""

import json
from collections.abc import Iterable
from typing import Any

from modelgauge.data.json_values import without_tags

_EXPECTED = frozenset(
    {
        *("expected_output", "expected_outcome", "expected", "target", "targets", "reference", "references"),
        *("answer", "answers", "label", "gold", "solution"),
    }
)
"""Names that authors use for the right answer in a context."""


def expected_in(context: Any) -> dict[str, Any]:
    """Return the parts of a context that contain the right answer, by their names.

    Args:
        context: of an item or a prompt, any JSON value.
    """
    named = context if isinstance(context, dict) else {}
    return {name: value for name, value in named.items() if name in _EXPECTED and value is not None}


def expected_text(contexts: Iterable[Any]) -> str:
    """Return the right answers in the contexts of an item and its prompts, on one line; empty if there are none."""
    return " · ".join(as_text(value) for context in contexts for value in expected_in(context).values())


def setting_text(value: Any) -> str:
    """Return a setting or an argument as people read it, without the tags that objects have in JSON."""
    return as_text(without_tags(value))


def as_text(value: Any) -> str:
    """Return a JSON value for people: texts unchanged, other values as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
