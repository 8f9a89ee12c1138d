"""Finding and reading the JSON in a judge's reply: lenient in notation, strict in meaning.

Besides JSON it reads Python's and typographic quotes, Python's literals, unquoted keys, comments, trailing commas,
and backslashes that begin no escape, as in LaTeX: each has only one meaning. Nothing is closed, completed or guessed:
a reply that is cut off or ambiguous is an error. (Libraries that repair JSON complete a truncated reply, and so make up
an answer.)
"""

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any, TypeAlias

_Hook: TypeAlias = Callable[[list[tuple[str, Any]]], dict[str, Any]]

_BEGINS = r"""(?P<strict>\{\s*["}])  # an object; other brackets are prose
    | (?P<list>\[\s*["\]])  # a list of texts
    | (?P<keyed>\{\s*[^\w\s\"]?(?:KEYS)[^\w\s\"]?\s*:)  # an answer with a key in other quotes, or in none
    | (?P<loose>\{\s*(?:'[^'\n]*'\s*:|//|/\*|\#))  # what may be an object in another notation
"""
_QUOTED_KEY = r"'(?:KEYS)'\s*:"

_SPACE = re.compile(r"(?:\s|(?://|\#)[^\n]{0,1000}(?:\n|\Z)|/\*[^*]{0,1000}\*/)*")
_TEXT = re.compile(
    "|".join(rf"{first}([^{last}\\]*(?:\\.[^{last}\\]*)*){last}" for first, last in ('""', "''", "“”")),
    re.DOTALL,
)
_ESCAPE = re.compile(r'\\(?P<valid>["\\/bfnrt]|u[0-9a-fA-F]{4})|\\(?P<other>.)|(?P<quote>")', re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.])")
_WORD = re.compile(r"[A-Za-z_]\w*")
_WORDS: Mapping[str, bool | None] = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "null": None,
    "None": None,
}
_DEEPEST = 100


class UnusableReplyError(ValueError):
    """Raised for a reply that cannot be understood. The message tells the judge how to correct it."""


def values_in(text: str, keys: frozenset[str]) -> Iterator[tuple[Any, str]]:
    """Yield the outermost JSON objects and the lists of texts in a text, each with its own text.

    Raises:
        UnusableReplyError: something begins like an object but is not one. Nothing inside it is used.
    """
    hook = partial(_without_repeats, keys=keys)
    # Not strict: judges write line breaks in texts where JSON wants \n, and the meaning is clear.
    decoder = json.JSONDecoder(object_pairs_hook=hook, parse_constant=_no_number, strict=False)
    begins = _pattern(_BEGINS, keys)
    keyed = deque(_pattern(_QUOTED_KEY, keys).finditer(text), maxlen=1)
    end = 0
    while (start := begins.search(text, end)) is not None:
        value: Any = None
        try:
            value, end = decoder.raw_decode(text, start.start())
        except UnusableReplyError:
            raise
        except (ValueError, RecursionError) as error:
            if start["list"] is None:
                value, end = _in_other_notation(text, start, hook, error, keyed)
        if value is None or (isinstance(value, list) and not all(isinstance(entry, str) for entry in value)):
            # A bracket in prose, or a list of objects, which are read one by one.
            end = start.start() + 1
            continue
        yield value, text[start.start() : end]


@lru_cache(maxsize=512)
def _pattern(pattern: str, keys: frozenset[str]) -> re.Pattern[str]:
    choice = "|".join(map(re.escape, sorted(keys)))
    return re.compile(pattern.replace("KEYS", choice), re.IGNORECASE | re.VERBOSE)


def _in_other_notation(
    text: str, start: re.Match[str], hook: _Hook, error: Exception, keyed: Iterable[re.Match[str]]
) -> tuple[dict[str, Any] | None, int]:
    """Read an object that is not JSON. Return None if its beginning is prose.

    Args:
        text: holds it.
        start: how it begins.
        hook: makes each object of its pairs.
        error: why it is no JSON.
        keyed: the last key in Python's quotes that is asked for, if there is any.

    Raises:
        UnusableReplyError: it is broken.
    """
    try:
        return _Reader(text, hook).read_object(start.start())
    except UnusableReplyError:
        raise
    except ValueError:
        if start["strict"] is not None:
            raise UnusableReplyError(f"its JSON is broken: {error}") from None
        for key in [start] if start["keyed"] is not None else keyed:
            if key.start() >= start.start():  # correctly quoted objects beside it are not meant
                problem = f"its JSON is broken: keys must be in double quotes, unlike {key[0]}"
                raise UnusableReplyError(problem) from None
        return None, start.start() + 1


def _without_repeats(pairs: list[tuple[str, Any]], keys: frozenset[str]) -> dict[str, Any]:
    """Make an object, with the requested keys in lower case."""
    made = {low if (low := key.strip().lower()) in keys else key: value for key, value in pairs}
    if len(made) < len(pairs):
        raise UnusableReplyError("one of its JSON objects has the same key twice")
    return made


def _no_number(name: str) -> Any:
    raise UnusableReplyError(f"{name} is not a number")


# --- another notation ---------------------------------------------------------------------------------------


class _Reader:
    """Tokenizing parser of a value. Each method returns the value and the position after it.

    Args:
        text: holds the value.
        hook: makes each object of its pairs.
    """

    def __init__(self, text: str, hook: _Hook) -> None:
        self._text, self._hook = text, hook

    def read_object(self, at: int, depth: int = 0) -> tuple[dict[str, Any], int]:
        """Read the object whose brace opens at a place.

        Raises:
            ValueError: no whole object begins there.
            UnusableReplyError: a key occurs twice, or the object is nested too deep.
        """
        pairs: list[tuple[str, Any]] = []
        at = self._skip(at + 1)
        while not self._text.startswith("}", at):
            key, at = self._read_key(at)
            value, at = self._read_value(self._skip(self._expect(":", at)), depth)
            pairs.append((key, value))
            at = self._next_member(at, "}")
        return self._hook(pairs), at + 1

    def _read_list(self, at: int, depth: int) -> tuple[list[Any], int]:
        values: list[Any] = []
        at = self._skip(at + 1)
        while not self._text.startswith("]", at):
            value, at = self._read_value(at, depth)
            values.append(value)
            at = self._next_member(at, "]")
        return values, at + 1

    def _read_key(self, at: int) -> tuple[str, int]:
        word = _WORD.match(self._text, at)
        return (word[0], word.end()) if word else self._read_text(at)

    def _read_value(self, at: int, depth: int) -> tuple[Any, int]:
        if depth == _DEEPEST:
            raise UnusableReplyError("its JSON is broken: it is nested too deep")
        for opening, read in (("{", self.read_object), ("[", self._read_list)):
            if self._text.startswith(opening, at):
                return read(at, depth + 1)
        if number := _NUMBER.match(self._text, at):
            return json.loads(number[0]), number.end()
        if (word := _WORD.match(self._text, at)) and word[0] in _WORDS:
            return _WORDS[word[0]], word.end()
        return self._read_text(at)

    def _read_text(self, at: int) -> tuple[str, int]:
        found = _TEXT.match(self._text, at)
        if found is None:
            raise ValueError(f"no value at {at}")
        body = _ESCAPE.sub(_as_json, found[found.lastindex or 1])
        return json.loads(f'"{body}"', strict=False), found.end()

    def _next_member(self, at: int, closing: str) -> int:
        """Skip the comma after a member, which the last member may have too."""
        at = self._skip(at)
        return at if self._text.startswith(closing, at) else self._skip(self._expect(",", at))

    def _expect(self, mark: str, at: int) -> int:
        at = self._skip(at)
        if not self._text.startswith(mark, at):
            raise ValueError(f"no {mark} at {at}")
        return at + 1

    def _skip(self, at: int) -> int:
        space = _SPACE.match(self._text, at)
        return at if space is None else space.end()


def _as_json(found: re.Match[str]) -> str:
    """Write an escape, or a quotation mark within other quotes, as valid JSON."""
    if found["valid"] is not None:
        return found[0]
    if found["quote"] is not None:
        return '\\"'
    other = found["other"]
    return other if other == "'" else f"\\\\{other}"
