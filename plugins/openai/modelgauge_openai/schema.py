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
_TYPES = frozenset({"anyOf", "const", "enum", "type"})
"""The keywords by which a value has a type."""


def response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the field that requests an answer with a schema.

    It is asked for strictly where the schema is one that servers can keep to; others would be refused, and
    are followed as well as the model can. The schema's title is its name there.
    """
    title = schema.get("title")
    name = title if isinstance(title, str) and _NAME.fullmatch(title) else "response"
    strict = schema.get("type") == "object" and can_be_strict(schema)
    return {"type": "json_schema", "json_schema": {"name": name, "strict": strict, "schema": dict(schema)}}


def can_be_strict(schema: Any) -> bool:
    """Return whether a schema has only known keywords, and specifies everything that servers require of each value.

    An object must require all that it allows, an array must say what its items are, nothing may be left without
    any type, and a `$ref` stands alone.
    """
    if not isinstance(schema, Mapping) or not schema.keys() <= _KEYWORDS:
        return False
    if "$ref" in schema:
        return len(schema) == 1
    types = schema.get("type")
    types = types if isinstance(types, list) else [types]
    if "object" in types or "properties" in schema:
        return _is_closed(schema) and _are_strict(schema)
    if "array" in types and "items" not in schema:
        return False
    return not schema.keys().isdisjoint(_TYPES) and _are_strict(schema)


def _is_closed(schema: Mapping[str, Any]) -> bool:
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        return False
    return schema.get("additionalProperties") is False and sorted(map(str, required)) == sorted(properties)


def _are_strict(schema: Mapping[str, Any]) -> bool:
    """Return whether the parts of a schema can be strict."""
    named, choices = [schema.get(key, {}) for key in ("properties", "$defs")], schema.get("anyOf", [])
    if not all(isinstance(definitions, Mapping) for definitions in named) or not isinstance(choices, list):
        return False
    parts = [*(part for definitions in named for part in definitions.values()), *choices]
    if "items" in schema:
        parts.append(schema["items"])
    return all(can_be_strict(part) for part in parts)
