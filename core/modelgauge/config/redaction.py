"""Takes secret values out of texts and JSON before anything is shown or recorded.

It knows the secrets that a `SecretStore` handed out, in the shapes that they take on their way into a log: as
they are, escaped, URL-encoded, in base64, in hex, or cut short. The userinfo of a URL is a secret whoever gave it.
Where secrets come from is in `secrets.py`.
"""

import binascii
import re
from collections.abc import Callable, Iterable
from importlib import import_module
from itertools import takewhile
from threading import Lock
from typing import Any

# Characters: a shorter value is like any word or number, and so is a shorter piece of a value.
SHORTEST_VALUE = 8
LONGEST_WORD = 11  # what local servers get for a key is a word: EMPTY, ollama, dummy
SHORTEST_LINE = 16  # of a value of several lines, a PEM key, say: a log may show them one by one

_WORD = re.compile(r"[A-Za-z]?[a-z]*|[A-Z]+")
_HEADER = r"(?<![^\W_])(?:authorization|(?:api[-_]?)?key|token|secret|cookie|password)"
_IS_HEADER = re.compile(rf"{_HEADER}\Z", re.IGNORECASE)
_IN_HEADER = "key: "
# A password that is misspelt may hold what no URL allows; what begins with a port is none. Bounded, for hostile texts.
_USERINFO = re.compile(
    r"""(?:(?<=://)|(?<=:\\/\\/))(?:[^\s/?#"'<>@:]{0,256}:(?:[^\s/?#"'<>]{0,256}|(?!\d+[/?#])[^\s"'<>@]{0,256})"""
    r"""|[^\s/?#"'<>@:]{8,256})(?=@)"""
)
_MAYBE_USERINFO = re.compile(r":\\*/\\*/[^\s@]{1,600}@")  # also in a JSON text, which may have escapes there
# What follows where a text was cut: dots, a quote, a bracket, a comma or nothing. Also read from right to left.
_CUT = re.compile(r"""\s*[\[\]]?(?:…|\.\.\.)|[\\"'`“”„\u2018\u2019«»()\[\]{}<>,;]|\Z""")
_OF_NAMES = "/:@$!*'();=~"  # what the options of a name hold as it is; outside of lists the comma too


class Redactor:
    """Replaces every known secret value by `[secret SCOPE.KEY]`, in any case and in its usual encodings.

    Where no secret stands in a text, a call costs a substring search for each form; without secrets, next to nothing.
    Values shorter than eight characters, and words of up to eleven letters (`EMPTY`), are replaced only where secrets
    stand: after `Bearer`, `Basic` or `Token`, in a header's value and in the userinfo of a URL. Elsewhere they look
    like ordinary text. Of a longer value a piece is replaced too, where a text was cut within it. Safe to use from
    several threads.
    """

    def __init__(self) -> None:
        self._names: dict[str, str] = {}  # form -> name of the secret
        self._search = _Search({})
        self._adding = Lock()

    def add(self, name: str, value: str) -> None:
        """Learn a secret, which is taken out of all texts from now on.

        Args:
            name: what stands in its place, `SCOPE.KEY`.
            value: the secret; an empty value is ignored.
        """
        with self._adding:
            new = {form: name for form in _forms(value) if form not in self._names}
            if new:
                self._names |= new
                self._search = _Search(self._names)  # replaced whole: readers see the old or the new

    def finds(self, text: str) -> bool:
        """Return whether a text, or the texts in a JSON text, may contain a secret. Fast, with no false negatives."""
        return self._search.finds(text) or ("@" in text and _MAYBE_USERINFO.search(text) is not None)

    def names_in(self, text: str) -> list[str]:
        """Return the names of the known secrets in the texts of a JSON text."""
        search, found = self._search, dict[str, None]()
        if search.finds(text):
            redacted_json(import_module("json").loads(text), lambda part: search.replace(part, found))
        return list(found)

    def redact(self, text: str) -> str:
        """Replace every known secret value and the userinfo of every URL in a text."""
        if not self.finds(text):
            return text
        return _USERINFO.sub(_without_userinfo, self._search.replace(text, {}))

    def redact_json_text(self, text: str) -> str:
        """Redact every text in a JSON text, which keeps its structure."""
        if not self.finds(text):
            return text
        json = import_module("json")
        value = json.loads(text)
        clean = self.redact_json(value)
        return text if clean == value else str(json.dumps(clean, separators=(",", ":")))

    def redact_json(self, value: Any) -> Any:
        """Redact every text in a JSON value, including keys. Its structure stays the same."""
        return redacted_json(value, self.redact)


def redacted_json(value: Any, redact: Callable[[str], str]) -> Any:
    """Redact all texts of a JSON value.

    Args:
        value: any JSON value.
        redact: takes secrets out of a text.
    """
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {
            redact(name): redact(_IN_HEADER + inner).removeprefix(_IN_HEADER)
            if isinstance(inner, str) and _IS_HEADER.search(name)
            else redacted_json(inner, redact)
            for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [redacted_json(inner, redact) for inner in value]
    return value


def _without_userinfo(match: re.Match[str]) -> str:
    """Replace the userinfo of a URL by a mark; a user name alone may be an ordinary word, and stays."""
    return match[0] if ":" not in match[0] and _is_ordinary(match[0]) else "[secret of a URL]"


class _Search:
    """The compiled patterns of a redactor; they never change."""

    __slots__ = ("_beginnings", "_endings", "_exact", "_folded", "_guarded", "_names", "_pattern")

    def __init__(self, names: dict[str, str]) -> None:
        listed = sorted(names, key=len, reverse=True)  # the longest first: it may contain others
        forms = [form for form in listed if not _is_ordinary(form)]
        ordinary = [form for form in listed if _is_ordinary(form)]
        pieces = {piece for form in forms for piece in (form[:SHORTEST_VALUE], form[-SHORTEST_VALUE:])}
        looked_for = {written for form in (*pieces, *ordinary) for written in _as_written(form)}
        looked_for |= {form for value in ordinary for form in _in_basic(value)}
        self._folded = tuple({form.lower() for form in looked_for})
        # Lower case depends on the neighbours in some alphabets (the Greek sigma): look for these as is too.
        self._exact = tuple(form for form in looked_for if not form.isascii())
        self._names = [names[form] for form in forms]
        self._pattern = re.compile("|".join(f"({re.escape(form)})" for form in forms), re.IGNORECASE)
        self._guarded = [(_guarded(value), names[value]) for value in ordinary]
        self._beginnings = _Beginnings((form, names[form]) for form in forms)
        self._endings = _Beginnings((form[::-1], names[form]) for form in forms)

    def finds(self, text: str) -> bool:
        if not self._folded:
            return False
        folded = text.lower()
        return any(form in folded for form in self._folded) or any(form in text for form in self._exact)

    def replace(self, text: str, found: dict[str, None]) -> str:
        """Replace the secrets in a text, and add their names to `found`.

        In four passes, here for the secrets openai.key, `sk-0123456789abcdef`, and local.key, `EMPTY`:

        - whole forms: `No key sk-0123456789abcdef` to `No key [secret openai.key]`
        - beginnings, where a text was cut after them: `sk-01234567…` to `[secret openai.key]…`
        - endings, where it was cut before them: `…89abcdef` to `…[secret openai.key]`; from right to left, `fedcba98…`,
          they are beginnings of reversed forms
        - ordinary words in places of secrets: `Bearer EMPTY` to `Bearer [secret local.key]`
        """

        def mark(name: str) -> str:
            found[name] = None
            return f"[secret {name}]"

        if self._names:
            text = self._pattern.sub(lambda match: mark(self._names[(match.lastindex or 1) - 1]), text)
            text = self._beginnings.replaced(text, mark)
            text = self._endings.replaced(text[::-1], lambda name: mark(name)[::-1])[::-1]
        for pattern, name in self._guarded:
            if pattern.search(text):
                text = pattern.sub(rf"\g<header>\g<colon>\g<basic>{mark(name)}", text)
        return text


class _Beginnings:
    """Finds secrets that were cut: the beginning of a form, followed by what `_CUT` matches.

    Args:
        forms: each with the name of its secret.
    """

    def __init__(self, forms: Iterable[tuple[str, str]]) -> None:
        self._forms: dict[str, list[tuple[str, str]]] = {}
        for form, name in forms:
            self._forms.setdefault(form[:SHORTEST_VALUE].lower(), []).append((form, name))
        self._pattern = re.compile("|".join(map(re.escape, self._forms)), re.IGNORECASE)

    def replaced(self, text: str, mark: Callable[[str], str]) -> str:
        """Replace all pieces of secrets that are at least a quarter of their form."""
        parts, done = [], 0
        for match in self._pattern.finditer(text):
            if (start := match.start()) < done:
                continue
            # What looks like a cut in one form may go on in another.
            pieces = [
                (start + _in_common(text[start : start + len(form)], form), -len(form), name)
                for form, name in self._forms.get(match[0].lower(), ())
            ]
            end, length, name = max(pieces, default=(start, 0, ""))
            long_enough = end - start >= max(SHORTEST_VALUE, -length // 4)
            if long_enough and _CUT.match(text, end) and not _is_ordinary(text[start:end]):
                parts += [text[done:start], mark(name)]
                done = end
        return "".join([*parts, text[done:]])


def _in_common(one: str, other: str) -> int:
    """Return the length of the longest common prefix of two texts, ignoring case."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0].lower() == pair[1].lower(), pairs))


def _as_written(form: str) -> set[str]:
    """Return a pattern for a form, plain and JSON-escaped, so that a secret is found before the JSON is parsed."""
    json = import_module("json")
    cases = {form} if form.isascii() else {form, form.lower(), form.upper()}  # whose escapes differ
    return {form, *(json.dumps(case, ensure_ascii=plain)[1:-1] for case in cases for plain in (True, False))}


def _guarded(value: str) -> re.Pattern[str]:
    """Return the pattern of an ordinary word where secrets appear. The matching group is the text before the word."""
    form = re.escape(value)
    encoded = "|".join(map(re.escape, _in_basic(value))) or "(?!)"
    return re.compile(
        rf"""(?P<header>\b(?:bearer|basic|token)\s+|{_HEADER}\\*["']?\s*:\s*\\*["']?){form}(?!\w)"""
        rf"""|(?P<colon>:(?://)?){form}(?=@)|(?P<basic>\bbasic\s+)[\w+/=-]*(?:{encoded})[\w+/=-]*""",
        re.IGNORECASE,
    )


def _in_basic(value: str) -> set[str]:
    """Return the pattern of an ordinary value after `Basic`, within the base64 of `user:VALUE`."""
    return {form for form in _base64_forms(value.encode("utf-8", "surrogatepass")) if len(form) > 4}


def _is_ordinary(value: str) -> bool:
    """Return whether a value is so short or ordinary that other texts contain it too."""
    return len(value) < SHORTEST_VALUE or (len(value) <= LONGEST_WORD and bool(_WORD.fullmatch(value)))


def _forms(value: str) -> set[str]:
    """Return the forms of a value. Matching ignores case, so one case of each is enough."""
    if _is_ordinary(value):
        return {value} - {""}
    # Imported when there is a secret: listing what is installed needs none of them.
    json, html, url = (import_module(name) for name in ("json", "html", "urllib.parse"))
    raw = value.encode("utf-8", errors="surrogatepass")
    return {
        value,
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
        url.quote_plus(raw),
        *(url.quote(raw, safe=safe) for safe in ("", "/", _OF_NAMES, f"{_OF_NAMES},")),
        url.quote(url.quote(raw, safe=""), safe=""),
        *_base64_forms(raw),
        *(line.strip() for line in value.splitlines() if len(line.strip()) >= SHORTEST_LINE),
    }


def _base64_forms(raw: bytes) -> set[str]:
    """Return the forms of a value within base64 of a longer text, where it may begin at any of three byte offsets.

    They consist of the characters that depend on the value alone, so that `user:KEY` of Basic authentication is
    found too.
    """
    forms = set()
    for offset in range(3):
        text = binascii.b2a_base64(b"\0" * offset + raw, newline=False).decode("ascii")
        first = (offset * 8 + 5) // 6
        last = (offset + len(raw)) * 8 // 6
        standard = text[first:last]
        forms |= {standard, standard.replace("+", "-").replace("/", "_")}
    return forms
