"""Tracking the settings of SUTs and annotators after their constructor, by the rules of `changes.py`."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Self

from modelgauge.interfaces.changes import (
    Changes,
    History,
    code_of,
    constants_of,
    reading,
    state_left,
    watch_constructor,
)
from modelgauge.interfaces.held_values import Value, held_by, value_of
from modelgauge.interfaces.identity import Identified, identified_json


class Watched(Identified):
    """Base of SUTs and annotators that compares current settings with those after the constructor."""

    _modelgauge_constants: ClassVar[Mapping[str, Value]] = {}
    _modelgauge_history: History | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Read the constants of the class. One that is reassigned later has changed for all its objects."""
        super().__init_subclass__(**kwargs)
        own: type = cls
        constants = constants_of(own, identified_json)
        ignored = _of_interfaces(own) | cls.identity_excludes
        cls._modelgauge_constants = {name: constants[name] for name in constants.keys() - ignored}

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Arrange for the settings to be noted when the constructor ends."""
        watch_constructor(cls, Watched, Watched._note_settings)
        return super().__new__(cls, *args, **kwargs)

    def __init__(self, uid: str) -> None:
        super().__init__(uid)

    def changed_settings(self) -> Changes:
        """Return the attributes changed since construction; during a run, those changed when it began."""
        history = self.settings_history()
        return Changes() if history is None else history.changes(self.settings_counted() or history.made)

    def settings_counted(self) -> Mapping[str, Value]:
        """Return the values that count now, by attribute; empty if the object is being read already."""
        history = self.settings_history()
        with reading(self) as is_first:
            return history.counted(self.settings_held) if history is not None and is_first else {}

    def _note_settings(self) -> None:
        """Note the current settings as those that the constructor left."""
        own = {name: state_left(value) for name, value in self._own_settings().items()}
        code = code_of([*self._modelgauge_constants.values(), *own.values()], identified_json)
        first = {name: first for name, (_, first) in code.items()}
        made = {**self._modelgauge_constants, **first, **own}
        self._set_history(History(id(self), made, code=first))

    def _set_history(self, history: History) -> None:
        object.__setattr__(self, "_modelgauge_history", history)  # works for frozen dataclasses too

    def settings_history(self) -> History | None:
        """Return the history of the object. A copy begins with its original's."""
        history = self._modelgauge_history
        if history is not None and history.owner != id(self):
            history = history.copied(self)
            self._set_history(history)
        return history

    def settings_held(self) -> dict[str, Value]:
        """Read the constants of the class and the attributes of the object, and what is set on code that they hold."""
        constants = self._modelgauge_constants
        own = {**constants, **constants_of(type(self), identified_json, constants), **self._own_settings()}
        code = code_of(own.values(), identified_json)
        met = {name: first for name, (_, first) in code.items()}
        if (history := self._modelgauge_history) is not None:
            met = history.code = met | history.code
            history.made = met | history.made
        return {**own, **met, **{name: now for name, (now, _) in code.items()}}

    def _own_settings(self) -> dict[str, Value]:
        cls: type = type(self)
        history, found, ignored = self._modelgauge_history, {}, _of_interfaces(cls)
        before: Mapping[str, Value] = {} if history is None else history.made
        for name, value in self.settings_attributes().items():
            of_class = getattr(cls, name, None)
            is_method = callable(of_class) and hasattr(type(of_class), "__get__")
            if not is_method and name not in ignored:
                place = self.settings_place(name, value)
                found[name] = value_of(value, identified_json, place, before.get(name))
            if name in found and isinstance(of_class, cached_property) and history is not None:
                history.made.setdefault(name, found[name])  # computed since, from other attributes
        return found

    def settings_place(self, name: str, value: Any) -> tuple[Any, str]:
        """Name the place in which other holders find an attribute too: its value, if that is an object."""
        del name
        return value, ""

    def settings_attributes(self) -> dict[str, Any]:
        """Return the attributes that may be settings."""
        excluded = self.identity_excludes
        return {name: value for name, value in held_by(self).items() if name not in excluded}


@lru_cache(maxsize=1024)
def _of_interfaces(cls: type) -> frozenset[str]:
    """Return the names of attributes that the interfaces of a class declare for the engine."""
    own = [base for base in cls.__mro__ if base.__module__.startswith(f"{__package__}.")]
    names = {name for base in own for name in (*vars(base), *vars(base).get("__annotations__", {}))}
    return frozenset(names)


@contextmanager
def in_use(owners: Iterable[Identified]) -> Iterator[None]:
    """Use objects with their current settings. Changes within the block count as state, not as settings.

    Args:
        owners: SUTs and annotators; those that they hold are used with them.
    """
    with ExitStack() as stack:
        for owner in _with_held(owners):
            if (history := owner.settings_history()) is not None:
                history.begin(owner.settings_held)
                stack.callback(history.end, owner.settings_held)
        yield


def _with_held(owners: Iterable[Any]) -> Iterable[Watched]:
    """Return objects, and those that they hold themselves or in a list or dict, each once."""
    found: dict[int, Watched] = {}
    left = [owner for owner in owners if isinstance(owner, Watched)]
    while left:
        owner = left.pop()
        if id(owner) not in found:
            found[id(owner)] = owner
            for value in held_by(owner).values():
                parts = value if type(value) in (list, tuple) else [value]
                parts = value.values() if type(value) is dict else parts
                left += [part for part in parts if isinstance(part, Watched)]
    return found.values()
