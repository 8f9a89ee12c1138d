"""Takes secret values out of texts and JSON before anything is shown or recorded.

It knows the secrets that a `SecretStore` handed out, in the shapes that they take on their way into a log: as
they are, escaped, URL-encoded, in base64, in hex. Where secrets come from is in `secrets.py`.
"""

from __future__ import annotations

import binascii
import re
from importlib import import_module
from typing import Any

SHORTEST_VALUE = 4  # below, a value is like any short word: only an Authorization header tells it apart
LONGEST_WORD = 11  # what local servers get for a key is a word: EMPTY, ollama, dummy
SHORTEST_FORM = 6  # of an encoded form: below, it turns up in ordinary text by chance

SHORTEST_LINE = 16  # of a value of several lines, a PEM key, say: a log may show them one by one

_WORD = re.compile(r"[A-Za-z]?[a-z]*|[A-Z]+")


class Redactor:
    """Replaces every known secret value by `[secret SCOPE.KEY]`, in any case and in its usual encodings.

    Where no secret stands in a text, a call costs a substring search for each form; without secrets, nothing.
    Values shorter than four characters, and words of up to eleven letters (`EMPTY`), are replaced
    after `Bearer`, `Basic` or `Token` only: elsewhere they cannot be told from ordinary text, and an answer that
    holds the word would be scored as another. Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._names: dict[str, str] = {}  # form -> name of the secret
        self._search = _Search({})

    def add(self, name: str, value: str) -> None:
        """Learn one secret.

        Args:
            name: what stands in its place, `SCOPE.KEY`.
            value: what must never be seen; an empty one is ignored.
        """
        names = dict(self._names)
        for form in _forms(value):
            names.setdefault(form, name)
        if names != self._names:
            # Replaced whole: readers see the old or the new.
            self._names, self._search = names, _Search(names)

    def finds(self, text: str) -> bool:
        """Whether a secret may stand in a text or in the texts of a JSON text: quick, never wrongly False."""
        return self._search.finds(text)

    @property
    def knows_secrets(self) -> bool:
        """Whether there is anything to replace."""
        return bool(self._names)

    def redact(self, text: str) -> str:
        """The text with every known secret value replaced."""
        search = self._search
        return search.replace(text) if search.finds(text) else text

    def redact_json_text(self, text: str) -> str:
        """A JSON text with every text in it redacted; it stays JSON of the same structure."""
        if not self.finds(text):
            return text
        json = import_module("json")
        return str(json.dumps(self.redact_json(json.loads(text)), separators=(",", ":")))

    def redact_json(self, value: Any) -> Any:
        """A JSON value with every text in it redacted, keys too; it stays JSON of the same structure."""
        if not self._names:
            return value
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, dict):
            return {self.redact_json(key): self.redact_json(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.redact_json(inner) for inner in value]
        return value


class _Search:
    """What a redactor looks for, compiled once; never changed."""

    __slots__ = ("_exact", "_folded", "_names", "_pattern")

    def __init__(self, names: dict[str, str]) -> None:
        forms = sorted(names, key=len, reverse=True)  # the longest first: it may contain others
        self._names = [names[form] for form in forms]
        looked_for = {written for form in forms for written in _as_written(form)}
        self._folded = tuple({form.lower() for form in looked_for})
        # Lower case depends on the neighbours in some alphabets (the Greek sigma): look for these as is too.
        self._exact = tuple(form for form in looked_for if not form.isascii())
        self._pattern = re.compile("|".join(f"({_pattern_of(form)})" for form in forms), re.IGNORECASE)

    def finds(self, text: str) -> bool:
        if not self._folded:
            return False
        folded = text.lower()
        return any(form in folded for form in self._folded) or any(form in text for form in self._exact)

    def replace(self, text: str) -> str:
        return self._pattern.sub(lambda match: f"[secret {self._names[(match.lastindex or 1) - 1]}]", text)


def _as_written(form: str) -> set[str]:
    """A form as it is, and as it stands in JSON: what is parsed before it is redacted must be found first."""
    json = import_module("json")
    cases = {form} if form.isascii() else {form, form.lower(), form.upper()}  # whose escapes differ
    return {form, *(json.dumps(one, ensure_ascii=plain)[1:-1] for one in cases for plain in (True, False))}


def _pattern_of(form: str) -> str:
    if not _is_ordinary(form):
        return re.escape(form)
    return rf"(?:(?<=bearer )|(?<=basic )|(?<=token )){re.escape(form)}(?!\w)"


def _is_ordinary(value: str) -> bool:
    """Whether a value may well turn up in a text that has nothing to do with it."""
    return len(value) < SHORTEST_VALUE or (len(value) <= LONGEST_WORD and bool(_WORD.fullmatch(value)))


def _forms(value: str) -> set[str]:
    """The shapes of one value; matching ignores case, so one case of each is enough."""
    if _is_ordinary(value):
        return {value} - {""}
    # Imported when there is a secret: listing what is installed needs none of them.
    json, html, url = (import_module(name) for name in ("json", "html", "urllib.parse"))
    raw = value.encode("utf-8", errors="surrogatepass")
    encoded = {
        value[::-1],
        raw.hex(),
        repr(value)[1:-1],
        ascii(value)[1:-1],
        repr(raw)[2:-1],
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        json.dumps(value)[1:-1].replace("/", "\\/"),
        json.dumps(json.dumps(value)[1:-1])[1:-1],
        html.escape(value),
        html.escape(value, quote=False),
        url.quote(raw),
        url.quote(raw, safe=""),
        url.quote_plus(raw),
        url.quote(url.quote(raw, safe=""), safe=""),
        *_base64_forms(raw),
        *(line.strip() for line in value.splitlines() if len(line.strip()) >= SHORTEST_LINE),
    }
    return {value} | {form for form in encoded if len(form) >= SHORTEST_FORM}


def _base64_forms(raw: bytes) -> set[str]:
    """The value within base64 of a longer text, where it may begin at any of three bytes of a group.

    Only the characters that depend on nothing but the value: `user:KEY` of Basic authentication is found too.
    """
    forms = set()
    for offset in range(3):
        text = binascii.b2a_base64(b"\0" * offset + raw, newline=False).decode("ascii")
        first = (offset * 8 + 5) // 6
        last = (offset + len(raw)) * 8 // 6
        standard = text[first:last]
        forms |= {standard, standard.replace("+", "-").replace("/", "_")}
    return forms
