"""Explanations why an answer to a request is in a cache or not.

A request without an answer is compared with the nearest entry. A key is JSON; its differences are named in the words
of users: the argument of a constructor, the prompt's text.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any, Literal, NamedTuple

from modelgauge.cache.keys import FOUND_OUT, Key
from modelgauge.cache.responses import ResponseCache
from modelgauge.data.base import Frozen
from modelgauge.wording.phrases import in_common

_PARTS = ("schema", "role", "identity", "request", "repeat")
_MADE = ("uid", "class", "cache_version")
_CLASS = "$class"
_OBJECT = "$object"  # an argument with an identity of its own
_TAGS = ("$model", "$dataclass", "$enum", "$subclass", "$set", "$text")  # of `plain`: each names a class
_ABSENT = object()
_FIELDS = ("fields", "extra", "private")  # of what has such a tag
_CONTENT = "$content"  # of what has no fields
_OTHER_QUESTION = 3  # differences of another kind: an entry of another prompt says little of this one

Path = tuple[str | int, ...]


class KeyDifference(Frozen):
    """A part of a key that differs.

    Args:
        part: which, in words.
        asked: its value in the request; None also where it is not there.
        cached: its value in the nearest entry; None also where it is not there.
        absent: on which side it is not there; None if it is on both.
    """

    part: str
    asked: Any = None
    cached: Any = None
    absent: Literal["asked", "cached"] | None = None


class Explanation(Frozen):
    """The reason why a request is, or is not, in the cache.

    Args:
        key: of the request.
        hit: whether its answer is there.
        nearest: the key of the entry that differs in the fewest parts, and of several the one whose texts are
            most alike; None in an empty cache.
        differences: where it differs.
    """

    key: str
    hit: bool
    nearest: str | None = None
    differences: tuple[KeyDifference, ...] = ()


def explain(cache: ResponseCache, key: Key, texts: Mapping[str, str] | None = None) -> Explanation:
    """Find the entry nearest to a request, and say which parts differ.

    Args:
        cache: where to look.
        key: of the request.
        texts: what the user wrote, by what it is called ("the prompt's text"), to be found again in the request.

    Raises:
        CacheError: the cache cannot be read.
    """
    if cache.get(key.digest) is not None:
        return Explanation(key=key.digest, hit=True, nearest=key.digest)
    texts = texts or {}
    request_parts = _parts_by_name(key.parts)
    nearest: tuple[tuple[int, int], str, list[_Change]] | None = None
    for entry in cache.entries():
        entry_parts = _parts_by_name(entry.key.parts)
        if entry_parts.get("role") == FOUND_OUT:
            continue
        changes = list(_changes(request_parts, entry_parts))
        distance = sum(_distance(change, texts) for change in changes), -sum(map(_alike, changes))
        if nearest is None or distance < nearest[0]:
            nearest = (distance, entry.key.digest, changes)
    if nearest is None:
        return Explanation(key=key.digest, hit=False)
    differences = tuple(_difference(change, texts) for change in nearest[2])
    return Explanation(key=key.digest, hit=False, nearest=nearest[1], differences=differences)


# --- parts of keys ----------------------------------------------------------------------------------------------------


class _Change(NamedTuple):
    """A part that differs; `_ABSENT` stands for a missing part."""

    path: Path
    asked: Any
    cached: Any


def _parts_by_name(parts: str) -> dict[str, Any]:
    """Return the parts of a key by name; none if a text is not the JSON of one of our keys."""
    try:
        values = json.loads(parts)
    except (ValueError, RecursionError):
        return {}
    return dict(zip(_PARTS, values, strict=False)) if isinstance(values, list) else {}


def _changes(asked: Any, cached: Any, path: Path = ()) -> Iterator[_Change]:
    asked, cached = _without_tag(asked), _without_tag(cached)
    if isinstance(asked, dict) and isinstance(cached, dict):
        for name in {**asked, **cached}:
            yield from _changes(asked.get(name, _ABSENT), cached.get(name, _ABSENT), (*path, name))
    elif isinstance(asked, list) and isinstance(cached, list):
        for place, (one, other) in enumerate(zip_longest(asked, cached, fillvalue=_ABSENT)):
            yield from _changes(one, other, (*path, place))
    elif type(asked) is not type(cached) or asked != cached:
        yield _Change(path, asked, cached)


def _alike(change: _Change) -> int:
    """Count the characters that two different texts have in common at their ends."""
    if not (isinstance(change.asked, str) and isinstance(change.cached, str)):
        return 0
    before = in_common(change.asked, change.cached)
    return before + in_common(change.asked[before:][::-1], change.cached[before:][::-1])


def _without_tag(value: Any) -> Any:
    """Remove the tag that `plain` puts beside a value to name its class."""
    if not isinstance(value, dict):
        return value
    for mark in ("$dict", "$tuple"):
        if mark in value:
            return _without_tag(value[mark])  # an identity was tagged before its key was made, and so has two
    tag = next((tag for tag in _TAGS if tag in value), None)
    if tag is None:
        return value
    content: dict[str, Any] = {_CLASS: value[tag]}
    for name, part in value.items():
        if name in _FIELDS and isinstance(part, dict):
            content.update(part)
        elif name != tag:
            content[_CONTENT] = part
    return content


# --- words ------------------------------------------------------------------------------------------------------------


def _difference(change: _Change, texts: Mapping[str, str]) -> KeyDifference:
    path, asked, cached = change
    written, same = _text_within(change, texts)
    return KeyDifference(
        part=_words(path) + (f" ({written} {'is the same' if same else 'differs'})" if written else ""),
        asked=None if asked is _ABSENT else asked,
        cached=None if cached is _ABSENT else cached,
        absent="asked" if asked is _ABSENT else "cached" if cached is _ABSENT else None,
    )


def _distance(change: _Change, texts: Mapping[str, str]) -> int:
    written, same = _text_within(change, texts)
    return _OTHER_QUESTION if written and not same else 1


def _text_within(change: _Change, texts: Mapping[str, str]) -> tuple[str, bool]:
    """Return the name of the user's text that a part of the request contains, and whether the entry contains it too."""
    path, asked, cached = change
    if path[:1] == ("request",) and isinstance(asked, str):
        for name, text in texts.items():
            if text and text in asked:
                return name, isinstance(cached, str) and text in cached
    return "", False


def _words(path: Path) -> str:
    first, *rest = path
    match first:
        case "identity":
            return _whose(rest)
        case "request":
            place = _place(rest)  # none where it is the whole of an enum, say
            return f"request: {place}" if place else "request"
        case "repeat":
            return "which repeat it is"
        case "role":
            return "SUT or annotator"
    return "the form of keys"


def _whose(steps: "list[str | int]") -> str:
    """Describe a part of an identity, which is {"made": [uid, class, version, arguments], "with": {...}, …}."""
    match steps:
        case ["made", int(place)] if place < len(_MADE):
            return _MADE[place]
        case ["made", int(_)]:
            return "arguments"
        case ["made", int(_), str(name), *within]:
            return f"argument {_within(name, within)}"
        case ["with", str(name), *within]:
            return (
                f"the SUT that it asks as '{name}', its {_whose(within)}" if within else f"the SUT '{name}'"
            )
        case ["with"]:
            return "the SUTs that it asks"
    return _place(["identity", *steps])


def _within(name: str, steps: "list[str | int]") -> str:
    """Yield the parts of an argument, which may be an object with its own identity."""
    if _OBJECT not in steps:
        return _place([name, *steps])
    place = steps.index(_OBJECT)
    return f"{_place([name, *steps[:place]])}, its {_whose(steps[place + 1 :])}"


def _place(steps: "list[str | int]") -> str:
    text = ""
    for step in steps:
        if step == _CLASS:
            text += " (its class)" if text else "its class"
        elif isinstance(step, int):
            text += f"[{step}]"
        elif not step.startswith("$"):
            text += f".{step}" if text else step
    return text
