"""The read-only lists and dicts of test cases, which are equal to ordinary ones."""

from typing import Any, NoReturn

from modelgauge.errors import InvalidDataError


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise InvalidDataError(
        "The lists and mappings of a test case cannot be changed.",
        fix="Make a copy with other values: changed = case.replaced(context=[*case.context, 'more']).",
    )


class ReadOnlyList(list[Any]):
    """A list that refuses changes. Slices, sums and copies of it are ordinary lists."""

    append = extend = insert = remove = pop = clear = sort = reverse = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (list(self),)


class ReadOnlyDict(dict[str, Any]):
    """A dict that refuses changes. Copies of it are ordinary dicts."""

    update = setdefault = pop = popitem = clear = _refuse
    __setitem__ = __delitem__ = __ior__ = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)


LISTS, DICTS = (list, ReadOnlyList), (dict, ReadOnlyDict)
"""The types of JSON's lists and objects; other subclasses are not exact."""
