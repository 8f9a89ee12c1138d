"""Any value as JSON for people to read, as an app's spans show it. Nothing is changed by being shown.

A value that must come back as it was is the business of `json_values.py`.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from operator import is_
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from modelgauge.data.json_values import is_exact
from modelgauge.wording.phrases import beginning

_LONGEST = 10_000  # characters of what is shown of an object that has no JSON
_ATOMS = frozenset({str, int, float, bool, bytes, type(None)})
_SEVERAL = (list, tuple, set, frozenset, deque)


def shown(value: Any) -> Any:
    """Convert the current value to JSON, or to its repr if it has no JSON form.

    A stream is shown by its repr too: whoever looks into it has read what the app was to read.
    """
    if type(value) in _ATOMS and is_exact(value):
        return value  # most are: this runs for every argument of every span
    try:
        made = to_jsonable_python(_without_streams(value), fallback=_repr)
    except Exception:  # noqa: BLE001  of an author's model, say; what is looked at must not break the app
        return _repr(value)
    return made if is_exact(made) else _repr(value)


def shown_parts(values: Mapping[Any, Any]) -> dict[str, Any]:
    """Convert the values of a mapping separately, so that one without a JSON form does not affect the others."""
    return {_name(key): shown(value) for key, value in values.items()}


def _name(key: Any) -> str:
    return key if type(key) is str and is_exact(key) else _repr(key)


def is_stream(value: Any) -> bool:
    """Return whether a value can be read only once: a generator, an open file, the chunks of an answer."""
    return hasattr(type(value), "__next__")


def error_text(error: BaseException) -> str:
    """Return the class and message of an exception."""
    try:
        text = str(error)
    except Exception as second:  # noqa: BLE001  an author's __str__
        text = f"(no message: its __str__ raised {type(second).__name__})"
    return _printable(f"{type(error).__name__}: {text}")


def _without_streams(value: Any) -> Any:
    """Replace each stream in a value by its repr; return the value itself if there is none."""
    if type(value) in _ATOMS:
        return value
    if is_stream(value):
        return _repr(value)
    if isinstance(value, _SEVERAL):
        listed = [part if type(part) in _ATOMS else _without_streams(part) for part in value]
        return value if all(map(is_, value, listed)) else listed
    parts = _named_parts(value)
    named = {name: _without_streams(part) for name, part in parts.items()}
    return value if all(map(is_, parts.values(), named.values())) else named


def _named_parts(value: Any) -> Mapping[Any, Any]:
    """Return the parts of a mapping or of an object with fields, by name; empty for anything else."""
    if isinstance(value, dict):
        return value
    if isinstance(value, BaseModel):
        return vars(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name, None) for field in fields(value)}
    return {}


def _repr(value: Any) -> str:
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001  an author's __repr__
        text = f"<{type(value).__name__}, whose repr raised {type(error).__name__}>"
    return _printable(text)


def _printable(text: str) -> str:
    """Return a text that UTF-8 can encode, shortened if it is too long for a span."""
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return beginning(text, _LONGEST)
