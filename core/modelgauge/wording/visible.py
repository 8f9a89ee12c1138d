"""Texts as people may see them: invisible characters as escapes, URLs without passwords."""

import re
from collections.abc import Callable
from importlib import import_module
from unicodedata import category
from urllib.parse import urlsplit

_JOINERS = re.compile("[\u200c\u200d]")


def visible(text: str) -> str:
    r"""Escape control and invisible characters in a text (`\x1b`), like `repr` does.

    A model's answer must not be able to move the cursor, change colours, turn the direction of writing or hide
    text. Tab, newline and all spaces stay; the two joiners where they join, as in emoji and in Persian or Hindi.
    """
    return _with_escapes(_JOINERS.sub(_joiner, text), _escape, but="\n\t\u200c\u200d")


def visible_json(text: str) -> str:
    r"""JSON text that says the same, with control and invisible characters as JSON's own escapes (`\u001b`)."""
    dumps = import_module("json").dumps  # which `modelgauge list` does not need
    return _with_escapes(text, lambda character: dumps(character)[1:-1], but="\n")


def _with_escapes(text: str, escape: Callable[[str], str], *, but: str) -> str:
    hidden = {
        ord(character): escape(character)
        for character in set(text)
        if not character.isprintable() and character not in but and category(character) != "Zs"
    }
    return text.translate(hidden) if hidden else text


def _escape(character: str) -> str:
    return repr(character)[1:-1]


def _joiner(found: re.Match[str]) -> str:
    """Keep a joiner between letters, marks or symbols beyond Latin; elsewhere it only hides, and is escaped."""
    text, start, end = found.string, found.start(), found.end()
    around = text[max(0, start - 1) : start] + text[end : end + 1]
    joins = (character > "\u02ff" and category(character)[0] in "LMS" for character in around)
    return found[0] if len(around) == 2 and all(joins) else _escape(found[0])


def without_password(url: str) -> str:
    """Return a URL without the password in its userinfo or query."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    query = "&".join(field for field in parts.query.split("&") if not field.startswith("password="))
    return parts._replace(netloc=user.partition(":")[0] + at + host, query=query).geturl()
