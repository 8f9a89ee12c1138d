"""The lists of a data set: each refuses what does not fit, and knows its data set."""

from collections.abc import Callable, Iterable
from typing import Any, Self, SupportsIndex

from pydantic import BaseModel


class CheckedList(list[Any]):
    """A list of goldens or test cases that checks what is put in; a copy of it is a plain list.

    Args:
        dataset: whose list it is; so a run can name the data set of `dataset.test_cases`.
        check: raises TypeError where something does not belong here.
    """

    def __init__(self, dataset: Any, check: Callable[[Any], None]) -> None:
        super().__init__()
        self.dataset, self.check = dataset, check

    def append(self, member: Any, /) -> None:
        """Add a member at the end."""
        self.check(member)
        super().append(member)

    def extend(self, members: Iterable[Any], /) -> None:
        """Add several members at the end: all, or none if a member does not fit.

        Raises:
            TypeError: the argument is a single member, or a member does not belong here.
        """
        given: object = members
        if isinstance(given, BaseModel):  # whose fields would be the members
            kind = type(given).__name__
            raise TypeError(f"Give a list, such as [{kind}(…)], where one {kind} was given.")
        if not isinstance(given, Iterable):
            raise TypeError(f"Give a list, where a value of type {type(given).__name__} was given.")
        before = len(self)
        try:
            for member in members:
                self.append(member)
        except BaseException:
            del self[before:]
            raise

    def insert(self, index: SupportsIndex, member: Any, /) -> None:
        """Add a member before a place."""
        self.check(member)
        super().insert(index, member)

    def __iadd__(self, members: Iterable[Any], /) -> Self:  # type: ignore[misc]  # as of list
        self.extend(members)
        return self

    def __setitem__(self, index: Any, value: Any, /) -> None:
        if isinstance(index, slice):
            value = list(value)
        for member in value if isinstance(index, slice) else [value]:
            self.check(member)
        super().__setitem__(index, value)

    def __reduce_ex__(self, _: SupportsIndex, /) -> tuple[Any, ...]:
        return list, (list(self),)
