"""Settings that change after the constructor: the attributes then, compared with those at the beginning of a run.

Objects also change themselves: they connect, count calls, keep a history. So attributes are read when a run begins and
again when it ends, and a value that a run leaves behind counts as the one that it began with:

    the attribute           made with   runs begin with     runs leave   counts as
    a setting               0.0         0.0, 0.0            0.0          unchanged
    a setting that was set  0.0         0.7, 0.7            0.7          0.7
    a counter               0           0, 10, 20           10, 20, 30   unchanged
    set, then adapted       0.0         0.7, 0.9            0.9          0.7
    a client that is made   None        None, <Client>      <Client>     unchanged
    a client that was set   <Client>    <another Client>    the same     without JSON: not cached

What several share (a class, an object behind functions, a client) is left for all of them by the run of one.
"""

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import WeakSet, ref

from modelgauge.data.json_values import class_name, has_plain, is_exact
from modelgauge.interfaces.held_values import ABSENT, Known, Value, digest_of, value_of

_CONFIDENTIAL = re.compile(
    r"api_?key|secret|passw|credential|authori[sz]ation|cookie|(access|auth|bearer|id|refresh|session)_?token|\btoken\b",
    re.IGNORECASE,
)

_reading: ContextVar[tuple[int, ...]] = ContextVar("modelgauge_reading", default=())
_watched: WeakSet[Any] = WeakSet()

_OF_ABC = "_abc_impl"  # set by the metaclass of abstract classes, after the constants are read


# --- the history of an object -------------------------------------------------------------------------------


class Changes(NamedTuple):
    """The attributes that changed since the constructor ended.

    Args:
        settings: their JSON texts, by name; a digest of one that may hold a key or a password.
        opaque: the names of attributes with other objects without JSON.
    """

    settings: Mapping[str, str] = {}
    opaque: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class History:
    """The values of an object's attributes when it was made, and before and after its runs.

    Args:
        owner: the id of the object, by which a copied history is recognized.
        made: the values when the constructor ended.
        left: the values after the last run that changed them, and the values that they count as.
        users: the runs that use the object now.
        found: the values when the first of these runs began, and the values that they count as.
        code: what was set on the classes and functions that were held at any time, when they were first read.
    """

    owner: int
    made: dict[str, Value]
    left: dict[str, tuple[Value, Value]] = field(default_factory=dict)
    users: int = 0
    found: tuple[dict[str, Value], dict[str, Value]] | None = None
    code: dict[str, Value] = field(default_factory=dict)

    def copied(self, owner: object) -> "History":
        """Return the history of a copy of the object. No run uses the copy yet."""
        return History(id(owner), dict(self.made), dict(self.left), code=dict(self.code))

    def standing_for(self, held: Mapping[str, Value]) -> dict[str, Value]:
        """Return the values that the current ones count as."""
        return {
            name: self._standing_for(name, held.get(name, ABSENT)) for name in held.keys() | self.left.keys()
        }

    def _standing_for(self, name: str, value: Value) -> Value:
        counted = value
        if name in self.left:
            left, stands_for = self.left[name]
            counted = stands_for if value == left else value
        counted = state_left(value) if counted is value else counted
        made = self.made.get(name, ABSENT)
        if counted is not made and counted == made:
            counted = made  # whose objects may be gone when they are compared again
        return counted

    def counted(self, read: Callable[[], Mapping[str, Value]]) -> dict[str, Value]:
        """Return the values that count now; during a run, those that counted at its beginning."""
        return self.standing_for(read()) if self.found is None else self.found[1]

    def begin(self, read: Callable[[], dict[str, Value]]) -> None:
        """Note the values at the beginning of a run. Overlapping runs share those of the first."""
        if self.found is None:
            held = read()
            self.found = held, self.standing_for(held)
        self.users += 1

    def end(self, read: Callable[[], dict[str, Value]]) -> None:
        """Note the values that runs leave behind, once the last one has ended."""
        self.users -= 1
        if self.users or self.found is None:
            return
        (before, counted), self.found = self.found, None
        after = read()
        before, counted = self.code | before, self.code | counted
        for name in after.keys() | before.keys():
            value = after.get(name, ABSENT)
            began = before.get(name, ABSENT)
            if value is began:  # nearly always
                continue
            is_computed = began == ABSENT and value == self.made.get(name)
            if value != began and not is_computed:
                self.left[name] = value, counted.get(name, ABSENT)
                if began.place == value.place:
                    _leave(*self.left[name])

    def changes(self, counted: Mapping[str, Value]) -> Changes:
        """Compare the values that count with those that the constructor left."""
        settings, opaque = {}, []
        for name in sorted(counted.keys() | self.made.keys()):
            now, made = counted.get(name, ABSENT), self.made.get(name, ABSENT)
            if now is made or now == made:
                continue
            if now.objects and now.objects != made.objects:
                opaque.append(name)
            else:
                settings[name] = (
                    digest_of(now.text) if _CONFIDENTIAL.search(f"{name} {now.text}") else now.text
                )
        return Changes(settings, tuple(opaque))


_shared: dict[int, tuple[ref[Any], dict[str, tuple[Value, Value]]]] = {}


def _leave(value: Value, counted: Value) -> None:
    """Note the value that a run left in a place, and what it stands for, for all who share the place."""
    holder, name = value.place or (None, "")
    found = holder.find() if holder is not None else None
    if found is None:
        return
    key = id(found)
    if key not in _shared:
        try:
            _shared[key] = ref(found, lambda _: _shared.pop(key, None)), {}
        except TypeError:  # which nobody can know to be gone
            return
    _shared[key][1][name] = value, counted


def state_left(value: Value) -> Value:
    """Return what a value stands for that a run of another object left in its place; itself if none did."""
    if value.place is None or not _shared:
        return value
    holder, name = value.place
    _, left = _shared.get(id(holder.find()), (None, {}))
    after, counted = left.get(name, (value, value))
    return counted if after == value else value


@contextmanager
def reading(owner: object) -> Iterator[bool]:
    """Yield whether to read an object: False while it is being read, as for one that contains itself."""
    within = _reading.get()
    token = _reading.set((*within, id(owner)))
    try:
        yield id(owner) not in within
    finally:
        _reading.reset(token)


# --- the end of a constructor -------------------------------------------------------------------------------


def watch_constructor(cls: Any, of: type, note: Callable[[Any], object]) -> None:
    """Call a function with each object of a class when its constructor ends.

    Decorators like `dataclass` replace the constructor of an existing class, so this must be called when its first
    object is made.

    Args:
        cls: of the object.
        of: the class whose subclasses may get another constructor. A subclass that inherits its constructor from
            elsewhere (a pydantic model) gets one of its own.
        note: the function to call.
    """
    written = cls.__init__
    if written in _watched:
        return
    owner = next(base for base in cls.__mro__ if "__init__" in vars(base))
    is_own = issubclass(owner, of)

    @functools.wraps(written)
    def watched(self: Any, *args: Any, **kwargs: Any) -> None:
        __tracebackhide__ = True
        if is_own:
            written(self, *args, **kwargs)
        else:
            super(cls, self).__init__(*args, **kwargs)
        if type(self).__init__ is watched:  # otherwise, the constructor of a subclass called it
            note(self)

    _watched.add(watched)
    (owner if is_own else cls).__init__ = watched


def written_constructor(cls: Any) -> Any:
    """Return the constructor of a class as its author wrote it."""
    init = cls.__init__
    while init in _watched:
        init = init.__wrapped__
    return init


_first_read: dict[int, tuple[ref[Any], dict[str, Value]]] = {}


def code_of(values: Iterable[Value], known: Known) -> dict[str, tuple[Value, Value]]:
    """Read what can be set on the classes and functions in values: public constants, defaults, attributes.

    Only what is JSON counts, since libraries keep much else there.

    Returns:
        The current values, and those when the class or function was first read, by name.
    """
    found: dict[str, tuple[Value, Value]] = {}
    met = [code for value in values for held in value.code if (code := held.find()) is not None]
    for key, held in {id(code): code for code in met}.items():
        now = {
            name: value
            for holder, name, part in _set_on(held)
            if (has_plain(part) or is_exact(part))
            and not (value := value_of(part, known, (holder, name))).objects
        }
        if key not in _first_read:
            gone = ref(held, functools.partial(_first_read.pop, key))
            _first_read[key] = gone, {name: state_left(value) for name, value in now.items()}
        _, first = _first_read[key]
        for name in now.keys() | first.keys():
            label = f"{class_name(held)}.{name}"
            while label in found:
                label += "'"
            found[label] = now.get(name, ABSENT), first.get(name, ABSENT)
    return found


def _set_on(code: Any) -> Iterator[tuple[Any, str, Any]]:
    holders = code.__mro__[-2::-1] if isinstance(code, type) else [code]
    for holder in holders:
        yield from [(holder, name, part) for name, part in list(vars(holder).items()) if name[:1] != "_"]
    if not isinstance(code, type):
        yield from [(code, name, getattr(code, name)) for name in ("__defaults__", "__kwdefaults__")]


def constants_of(cls: type, known: Known, before: Mapping[str, Value] | None = None) -> dict[str, Value]:
    """Read the constants of a class and its bases: attributes without methods, properties and other descriptors.

    Args:
        cls: the class.
        known: reads objects with identities, and secrets.
        before: the constants to read again, as they were; by default all are read. Fields that are only declared, as
            for a dataclass, do not count.
    """
    found: dict[str, Value] = {}
    for base in cls.__mro__[:-1]:
        held = vars(base).copy()
        names, annotated = (held, held.get("__annotations__", {})) if before is None else (before, {})
        for name in names.keys() & held.keys() - found.keys():
            part = held[name]
            if name[:2] == "__" or name == _OF_ABC or hasattr(type(part), "__get__"):
                continue
            value = value_of(part, known, (base, name), None if before is None else before[name])
            if not (value.objects and name in annotated):
                found[name] = value
    return found
