"""What the score of a judge metric depends on beside its arguments: its declaration, its wording, its code.

Scores are kept under the metric's arguments. An author who changes a word or a formula shall not be shown the
scores of before, so a fingerprint of these is part of what they are kept under. It follows no calls of other
functions, but for those that a function was made with: where others change, a metric's `cache_version` says so.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from types import CellType, CodeType, FunctionType
from typing import Any

from modelgauge.data.json_values import canonical_json, class_name
from modelgauge.metrics.questions import wording

_PLAIN = (str, bytes, int, float, complex, bool, type(None))


def fingerprint(*parts: Any) -> str:
    """A short text that is another one where something in the parts is another.

    Args:
        parts: declarations, functions, files of wording, and plain values.
    """
    told = canonical_json([_told(one) for one in parts])
    return hashlib.sha256(told.encode("ascii")).hexdigest()[:12]


def _told(part: Any, inside: frozenset[int] = frozenset()) -> Any:
    """A part as JSON.

    Args:
        part: see `fingerprint`.
        inside: the `id` of each function that it stands in; one of these is told already.
    """
    if isinstance(part, Path):
        return wording(part)
    if isinstance(part, AbstractSet):
        return sorted(canonical_json(_told(one, inside)) for one in part)
    if isinstance(part, FunctionType):
        if id(part) in inside:
            return part.__qualname__
        inside |= {id(part)}
        parts: Iterable[Any] = _parts_of(part)
    elif isinstance(part, CodeType):
        parts = (part.co_code.hex(), part.co_names, part.co_consts)
    elif isinstance(part, partial):
        parts = (part.func, part.args, part.keywords)
    elif isinstance(part, Mapping):
        parts = part.items()
    elif is_dataclass(part) and not isinstance(part, type):
        parts = (getattr(part, field.name) for field in fields(part))
    elif isinstance(part, list | tuple):
        parts = part
    else:
        return repr(part) if isinstance(part, _PLAIN) else class_name(_named(part))
    return [_told(one, inside) for one in parts]


def _named(part: Any) -> Any:
    """A class or a built-in function itself; of any other object, the class."""
    return part if hasattr(part, "__qualname__") else type(part)


def _parts_of(function: FunctionType) -> Iterator[Any]:
    """A function's name and code, what it was made with, and the constants of its module that it names."""
    code = function.__code__
    yield from (function.__qualname__, code, function.__defaults__, function.__kwdefaults__)
    yield from (_held(cell) for cell in function.__closure__ or ())
    named = {name: function.__globals__.get(name) for name in sorted(_names_in(code))}
    yield {name: value for name, value in named.items() if _is_constant(value)}


def _held(cell: CellType) -> Any:
    """What a function was made with; of a path that, and not what lies there."""
    try:
        held = cell.cell_contents
    except ValueError:  # it has none yet
        return None
    return str(held) if isinstance(held, Path) else held


def _is_constant(value: Any) -> bool:
    """Whether a value of a module is one. Lists, mappings, flags and None often change while a program runs."""
    if type(value) is tuple:
        return all(isinstance(one, _PLAIN) for one in value)
    return type(value) in (str, int, float)


def _names_in(code: CodeType) -> set[str]:
    """The names that a code reads, those in the functions and comprehensions in it too."""
    inner = (one for one in code.co_consts if isinstance(one, CodeType))
    return set(code.co_names).union(*map(_names_in, inner))
