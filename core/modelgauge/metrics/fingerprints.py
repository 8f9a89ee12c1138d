"""What the score of a judge metric depends on beside its arguments: its declaration, its wording, its code.

Scores are kept under the metric's arguments. An author who changes a word or a formula shall not be shown the
scores of before, so a fingerprint of these is part of what they are kept under. It follows no calls of other
functions: where one of these changes, a metric's `cache_version` says so.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any

from modelgauge.data.json_values import canonical_json, class_name
from modelgauge.metrics.questions import wording

_PLAIN = (str, int, float, bool, type(None))


def fingerprint(*parts: Any) -> str:
    """A short text that is another one where something in the parts is another.

    Args:
        parts: declarations, functions, files of wording, and plain values.
    """
    told = canonical_json([_told(one) for one in parts])
    return hashlib.sha256(told.encode("ascii")).hexdigest()[:12]


def _told(part: Any) -> Any:
    if isinstance(part, Path):
        return wording(part)
    if isinstance(part, FunctionType):
        parts: Iterable[Any] = _parts_of(part)
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
    return [_told(one) for one in parts]


def _named(part: Any) -> Any:
    """A class or a built-in function itself; of any other object, the class."""
    return part if hasattr(part, "__qualname__") else type(part)


def _parts_of(function: FunctionType) -> list[Any]:
    """A function's name and code, with the plain values that stand in it and that it was made with."""
    code = function.__code__
    held = [cell.cell_contents for cell in function.__closure__ or ()]
    plain = [one for one in (*code.co_consts, *held) if isinstance(one, _PLAIN)]
    return [function.__qualname__, code.co_code.hex(), *code.co_names, *plain]
