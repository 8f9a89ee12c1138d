"""Structured output: a JSON Schema as the `response_format` of the protocol.

Source: OpenAI's guide "Structured model outputs" (https://platform.openai.com/docs/guides/structured-outputs),
its section "Supported schemas".
"""

import re
from collections.abc import Mapping
from typing import Any

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_KEYWORDS = frozenset(
    {"$defs", "$ref", "additionalProperties", "anyOf", "const", "description", "enum", "items"}
    | {"properties", "required", "title", "type"}
)


def response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The field that asks for an answer of a schema.

    It is asked for strictly where the schema is one that servers can keep to; others would be refused, and
    are followed as well as the model can. The schema's title is its name there.
    """
    title = schema.get("title")
    name = title if isinstance(title, str) and _NAME.fullmatch(title) else "response"
    strict = schema.get("type") == "object" and can_be_strict(schema)
    return {"type": "json_schema", "json_schema": {"name": name, "strict": strict, "schema": dict(schema)}}


def can_be_strict(schema: Any) -> bool:
    """Whether a schema holds known keywords only, and every object in it requires all that it allows."""
    if not isinstance(schema, Mapping) or not schema.keys() <= _KEYWORDS:
        return False
    properties = schema.get("properties", {})
    if schema.get("type") == "object" or properties:
        closed = schema.get("additionalProperties") is False
        if not closed or set(schema.get("required", ())) != set(properties):
            return False
    parts = [*properties.values(), *schema.get("$defs", {}).values(), *schema.get("anyOf", ())]
    if "items" in schema:
        parts.append(schema["items"])
    return all(can_be_strict(part) for part in parts)
