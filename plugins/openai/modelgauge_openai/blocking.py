"""Recognizing answers that a content filter withheld, in whole or in part, in the forms of many services."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from modelgauge_openai.protocol import ChatResponse, Choice, received
from modelgauge_openai.reply import Reply
from modelgauge_openai.streaming import read_stream

_REASONS = frozenset(  # finish reasons, in lower case
    {"content_filter", "content_filtered", "guardrail_intervened"}  # OpenAI, Azure; Bedrock
    | {"safety", "recitation", "blocklist", "prohibited_content", "spii", "image_safety"}  # Google
    | {"sensitive", "error_toxic"}  # Zhipu, Cohere
)
_CODES = frozenset(  # codes of errors, in lower case
    {"content_filter", "content_policy_violation", "responsibleaipolicyviolation"}  # Azure, OpenAI
    | {"moderation_blocked", "guardrail_intervened"}  # OpenAI, Bedrock
    | {"data_inspection_failed", "datainspectionfailed", "hooks_failed"}  # Alibaba; Portkey
)
_WORDS = re.compile(  # messages of errors without such a code; the tests name the services
    "ContentPolicyViolation|ResponsibleAIPolicyViolation|content management policy|GUARDRAIL_INTERVENED"
    "|DataInspectionFailed|may contain inappropriate content|content exists risk|flagged as potentially violating"
    "|violates? (our )?usage guidelines|violat(ed|es|ing|ion of) ([a-z-]+ ){0,4}(guardrail|moderation|safety) polic"
    "|blocked due to (security configurations|DLP)|blocked by (our |the )?content filter(ing)? policy"
    r"""|['"]code\\?['"]: ?\\?['"]content_filter\\?['"]""",
    re.IGNORECASE,
)
_CODE_FIELDS = ("code", "type", "status", "action", "error_type", "provider_code")
_WRAPPINGS = (
    *(
        "error",
        "errors",
        "message",
        "detail",
        "innererror",
        "inner_error",
        "provider_specific_fields",
        "metadata",
    ),
    *("raw", "prompt_feedback", "promptFeedback"),
)
"""Fields of an error or a response in which services wrap details."""

Metadata = dict[str, Any]
"""A service's details of a block: `categories` and a `message`, if given."""


def blocked_reply(reply: Reply) -> ChatResponse | None:
    """Convert a reply that reports a block as an error to a response. Return None for any other reply."""
    body: Any = None
    if reply.is_stream(asked=False):
        body = read_stream(reply.text).response
    else:
        with suppress(ValueError, RecursionError):
            body = json.loads(reply.text, strict=False)
    first = body[0] if isinstance(body, list) and body else body
    with suppress(ValidationError):
        response = received(json.dumps(first), reply.costs)
        return None if block_in(response) is None else response
    return None


def block_in(response: ChatResponse) -> Metadata | None:
    """Return the details of a block of all completions of a response; None if there is none."""
    held = response.model_extra or {}
    return block_in_error(held.get("error") or (None if response.choices else held))


def block_in_choice(choice: Choice) -> Metadata | None:
    """Return the details of a block of a choice; None if there is none."""
    held = choice.model_extra or {}
    found = block_in_error(held.get("error"))
    if found is not None:
        return found
    categories = [*_filtered(held)]
    is_named = _name(str(choice.finish_reason).partition(":")[0]) in _REASONS
    return _metadata(categories) if categories or is_named else None


def block_in_error(error: Any) -> Metadata | None:
    """Return the details of a block that an error reports; None if it reports none."""
    if not error:
        return None
    parts = [*_parts(error)]
    objects = [part for part in parts if isinstance(part, dict)]
    texts = [part for part in parts if isinstance(part, str)]
    categories = [*_filtered(error), *(reason for part in objects for reason in _reasons(part))]
    is_named = any(_name(part.get(field)) in _CODES for part in objects for field in _CODE_FIELDS)
    if categories or is_named or any(map(_WORDS.search, texts)):
        return _metadata(categories, texts)
    return None


def _name(code: Any) -> str:
    return str(code).strip().lower().replace("-", "_")


def _parts(error: Any, depth: int = 4) -> Iterator[Any]:
    """Yield an error and everything that it wraps: objects, and the texts of its messages."""
    if isinstance(error, str | dict):
        yield error
    wrapped = (
        map(error.get, _WRAPPINGS) if isinstance(error, dict) else error if isinstance(error, list) else ()
    )
    for part in wrapped if depth else ():
        yield from _parts(part, depth - 1)


def _reasons(part: dict[str, Any]) -> list[Any]:
    """Return the reasons of a block in OpenRouter's moderation, or in Google's feedback to a prompt."""
    if "flagged_input" in part:
        reasons = part.get("reasons")
        return reasons if isinstance(reasons, list) and reasons else ["flagged"]
    return [part[name] for name in ("block_reason", "blockReason") if isinstance(part.get(name), str)]


def _filtered(held: Any) -> Iterator[str]:
    """Yield the categories that a filter found, by Azure's names."""
    for name, part in (
        held.items() if isinstance(held, dict) else enumerate(held if isinstance(held, list) else ())
    ):
        if isinstance(name, str) and isinstance(part, dict) and part.get("filtered") is True:
            yield name
        yield from _filtered(part)


def _metadata(categories: list[Any], texts: list[str] | None = None) -> Metadata:
    names = sorted(set(map(str, categories)))
    return {**({"categories": names} if names else {}), **({"message": texts[0]} if texts else {})}
