"""Deep copies of lists and mappings, ordinary or read-only. Other values are shared."""

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from modelgauge.data.base import Frozen, FrozenT, with_values
from modelgauge.data.read_only import DICTS, LISTS, ReadOnlyDict, ReadOnlyList


def unshared(value: Any) -> Any:
    """Copy the lists and mappings of a value at all depths. Immutable values are shared.

    Read-only lists and mappings of a test case become ordinary ones.
    """
    kind = type(value)
    if kind is str or value is None:
        return value
    if kind in LISTS:
        return [unshared(part) for part in value]
    if kind in DICTS:
        return {name: unshared(part) for name, part in value.items()}
    if isinstance(value, Frozen):
        return _with_parts(value, unshared)
    return value.model_copy(deep=True) if isinstance(value, BaseModel) else value


def read_only(value: Any) -> Any:
    """Copy the lists and mappings of a value at all depths, as read-only ones."""
    kind = type(value)
    if kind is list:
        return ReadOnlyList(map(read_only, value))
    if kind is dict:
        return ReadOnlyDict({name: read_only(part) for name, part in value.items()})
    return _with_parts(value, read_only) if isinstance(value, Frozen) else value


def _with_parts(value: FrozenT, made: Callable[[Any], Any]) -> FrozenT:
    """Return a value with each part converted; the value itself if no part changes."""
    own = {name: new for name, part in value.__dict__.items() if (new := made(part)) is not part}
    return with_values(value, own, value.__pydantic_fields_set__) if own else value
