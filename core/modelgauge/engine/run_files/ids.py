"""The ids of runs that come from outside: from bundles, records, manifests, addresses and command lines.

An id is the name of a folder, a part of addresses, and an argument of commands.
"""

from modelgauge.dependencies.safety import unsafe_part

_LONGEST = 128  # characters; files beside the folder have longer names
_RESERVED = '<>"|?*'


def why_no_run_id(text: str) -> str | None:
    """Return why a text is not a valid run id, as the predicate of a sentence; None if it is valid."""
    reasons = (
        (not text, "is empty"),
        (text.startswith(("-", ".")), f"begins with '{text[:1]}'"),
        ("/" in text or "\\" in text, "contains a slash or a backslash"),
        (not text.isprintable(), "contains a control character, or another invisible one"),
        (any(char in text for char in _RESERVED), f"contains one of {_RESERVED}, which Windows reserves"),
        (len(text) > _LONGEST, f"has more than {_LONGEST} characters"),
    )
    return next((why for is_so, why in reasons if is_so), None) or unsafe_part(text)
