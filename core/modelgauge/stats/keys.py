"""Keys of items: a key of their context, or a function of the item."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, TypeAlias

from modelgauge.data.annotations import MeasuredTestItem
from modelgauge.data.base import list_names
from modelgauge.data.items import TestItem
from modelgauge.errors import InvalidDataError
from modelgauge.wording.did_you_mean import did_you_mean
from modelgauge.wording.phrases import a_thing

Key: TypeAlias = str | Callable[[MeasuredTestItem], Hashable]
"""A key of items: a key (or attribute) of their context, or a function of the item."""

_ABSENT = object()


class _NoMeasurements(Mapping[str, float]):
    """The measurements of a failed item: none, and a note whether somebody read one."""

    def __init__(self) -> None:
        self.was_read = False

    def __getitem__(self, name: str) -> float:
        self.was_read = True
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        self.was_read = True
        return iter(())

    def __len__(self) -> int:
        self.was_read = True
        return 0


def key_function(key: Key) -> Callable[[MeasuredTestItem], Hashable]:
    """Return the function for a key: see `MeasuredItems.group_by`."""
    if not isinstance(key, str):
        return lambda item: _hashable(key(item), item)

    def of_context(item: MeasuredTestItem) -> Hashable:
        context = item.context
        is_model = hasattr(type(context), "model_fields")
        value: Any = getattr(context, key, _ABSENT) if is_model else _ABSENT
        if isinstance(context, Mapping):
            value = context.get(key, _ABSENT)
        if value is _ABSENT or callable(value):  # a method of the model is not what was meant
            raise _no_key(key, item, type(context).model_fields if is_model else context)
        return _hashable(value, item)

    return of_context


def _no_key(key: str, item: MeasuredTestItem, context: Any) -> InvalidDataError:
    known = context if isinstance(context, Mapping) else {}
    near = did_you_mean(key, map(str, known)).strip()
    return InvalidDataError(
        f"The context of item '{item.test_item.id}' has no '{key}'; it has: {list_names(known)}.",
        fix=near or "Give a function of the item instead of a key.",
    )


def _hashable(group: Hashable, item: MeasuredTestItem) -> Hashable:
    try:
        hash(group)
    except TypeError:
        raise InvalidDataError(
            f"The key of item '{item.test_item.id}' is {a_thing(group)}, which cannot name a group.",
            fix="Give a function that returns a string, a number or a tuple of these.",
        ) from None
    return group


def group_of_failed(of_item: Callable[[MeasuredTestItem], Hashable], test_item: TestItem) -> Hashable:
    """Return the group of an item that has no measurements.

    Args:
        of_item: see `key_function`.
        test_item: the item.

    Raises:
        LookupError: its group depends on measurements.
        Exception: what the author's function raises for an item without them.
    """
    measurements: Any = _NoMeasurements()
    # Not validated, because that would copy the measurements into a dict, which cannot tell that it was read.
    item = MeasuredTestItem.model_construct(test_item=test_item, measurements=measurements)
    group = of_item(item)
    if measurements.was_read:
        raise LookupError(group)
    return group
