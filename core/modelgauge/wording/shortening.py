"""Long texts as messages show them, cut between words: half a secret is none that the redactor would know."""

import string

_LETTERS = string.ascii_letters + string.digits + "_+/=.%:~-"
"""Of which secrets are made. Languages without spaces are not, and are cut anywhere."""

_LONGEST_SECRET = 4096
"""Characters; a longer word is none, and is cut."""


def beginning(text: str, most: int) -> str:
    """A text, or its beginning of at most `most` characters and an ellipsis."""
    return text if len(text) <= most else f"{_head(text, most)}…"


def quoted(text: str, most: int) -> str:
    """A text in quotes, or its beginning and an ellipsis."""
    return repr(text) if len(text) <= most else f"{_head(text, most)!r}…"


def ends(text: str, most: int) -> str:
    """A text, or both its ends, and how much is left out between them."""
    if len(text) <= most:
        return text
    head, tail = _head(text, most // 2), _tail(text, most // 2)
    return f"{head} […{len(text) - len(head) - len(tail):,} characters…] {tail}"


def _head(text: str, most: int) -> str:
    head = text[:most]
    whole = head.rstrip(_LETTERS) if text[most] in _LETTERS else head
    return whole if len(head) - len(whole) <= _LONGEST_SECRET else head


def _tail(text: str, most: int) -> str:
    tail = text[len(text) - most :]
    whole = tail.lstrip(_LETTERS) if text[len(text) - most - 1] in _LETTERS else tail
    return whole if len(tail) - len(whole) <= _LONGEST_SECRET else tail
