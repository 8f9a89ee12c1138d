"""Settings that change after the constructor: what an object held then, compared with what it holds as a run begins.

Objects change themselves too: they connect, count calls, keep a history. So the values of attributes are read as a run
begins and again as it ends, and a value that a run leaves behind stands for the one that it began with:

    the attribute           made with   runs begin with     runs leave   counts as
    a setting               0.0         0.0, 0.0            0.0          unchanged
    a setting that was set  0.0         0.7, 0.7            0.7          0.7
    a counter               0           0, 10, 20           10, 20, 30   unchanged
    set, then adapted       0.0         0.7, 0.9            0.9          0.7
    a client that is made   None        None, <Client>      <Client>     unchanged
    a client that was set   <Client>    <another Client>    the same     without JSON: not cached
"""

import functools
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MemberDescriptorType, MethodType, SimpleNamespace
from typing import Any, NamedTuple
from weakref import WeakSet, ref

from modelgauge.data.json_values import class_name, has_plain, plain, text_of_plain

_LONGEST = 1000
"""Characters of a value's JSON; a longer one is represented by its digest."""

_CONFIDENTIAL = re.compile(
    r"api_?key|secret|passw|credential|authori[sz]ation|cookie|(access|auth|bearer|id|refresh|session)_?token|\btoken\b",
    re.IGNORECASE,
)

Known = Callable[[Any], Any]
"""Returns the JSON of an object that has an identity or is a secret, and NotImplemented for others."""

_reading: ContextVar[tuple[int, ...]] = ContextVar("modelgauge_reading", default=())
_watched: WeakSet[Any] = WeakSet()


class _Object:
    """An object without JSON, equal only to itself. Its copies, made with those of its owner, equal any other."""

    __slots__ = ("_find",)

    def __init__(self, *value: Any) -> None:
        self._find: Callable[[], Any] | None = None
        if value:
            try:
                self._find = ref(value[0])
            except TypeError:
                self._find = lambda: value[0]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Object) or self._find is None or other._find is None:
            return isinstance(other, _Object)
        found = self._find()
        return found is not None and found is other._find()

    __hash__ = None  # type: ignore[assignment]  # equality is not transitive

    def __reduce__(self) -> Any:
        return _Object, ()


class Value(NamedTuple):
    """The value of an attribute.

    Args:
        text: its JSON, in which objects without JSON stand by their class.
        objects: these objects.
    """

    text: str
    objects: tuple[_Object, ...] = ()


ABSENT = Value('{"$absent":true}')


class _ValueReader:
    """Reads a value, and collects the objects in it that have no JSON.

    Args:
        known: reads objects with identities, and secrets.
        within: the ids of the objects that are being read.
    """

    def __init__(self, known: Known, within: tuple[int, ...] = ()) -> None:
        self._known, self._within = known, within
        self.objects: list[_Object] = []

    def read(self, value: Any) -> Any:
        return plain(value, self._other)

    def _other(self, part: Any) -> Any:
        known = self._known(part)
        if known is not NotImplemented:
            return known
        if type(part) is dict and any(type(key) is not str for key in part):
            return {"$items": [[self.read(key), self.read(value)] for key, value in part.items()]}
        if has_plain(part):
            return NotImplemented
        if isinstance(part, functools.partial):
            return {"$partial": [self.read(bound) for bound in (part.func, part.args, part.keywords)]}
        if isinstance(part, MethodType):
            return {"$method": part.__func__.__qualname__, "of": self.read(part.__self__)}
        return self._object(part)

    def _object(self, part: Any) -> Any:
        """Read an object by its attributes if all are JSON; else by itself, and by its public attributes in JSON."""
        if not self._can_enter(part):
            return self._without_json(part)
        held = {
            name: value_of(inner, self._known, self._below(part)) for name, inner in held_by(part).items()
        }
        is_json = bool(held) and not any(value.objects for value in held.values())
        if not is_json:
            held = {name: value for name, value in held.items() if not (name[:1] == "_" or value.objects)}
            self.objects.append(_Object(part))
        return {
            "$is": class_name(type(part)),
            "with": {name: json.loads(value.text) for name, value in held.items()},
        }

    def _can_enter(self, part: Any) -> bool:
        """Whether an object is of classes written in Python alone, and not being read already."""
        return id(part) not in self._within and all(
            base.__flags__ & _MADE_AT_RUNTIME or base is SimpleNamespace for base in type(part).__mro__[:-1]
        )

    def _below(self, part: Any) -> tuple[int, ...]:
        return *self._within, id(part)

    def _without_json(self, part: Any) -> Any:
        self.objects.append(_Object(part))
        named = part if hasattr(part, "__qualname__") and hasattr(part, "__module__") else type(part)
        return {"$is": f"{named.__module__}:{named.__qualname__}"}


_OF_ABC = "_abc_impl"  # which a metaclass gives each abstract class, after its constants are read
_MADE_AT_RUNTIME = 1 << 9  # Py_TPFLAGS_HEAPTYPE


def value_of(value: Any, known: Known, within: tuple[int, ...] = ()) -> Value:
    """Read a value as it is now; later changes to it do not reach what is returned.

    Args:
        value: anything.
        known: reads objects with identities, and secrets.
        within: the ids of the objects that are being read.
    """
    reader = _ValueReader(known, within)
    try:
        text = text_of_plain(reader.read(value))
    except Exception:  # noqa: BLE001  NaN, a circle, or whatever an author's object raises when it is read
        return Value(f'{{"$is":"{class_name(type(value))}"}}', (_Object(value),))
    return Value(text if len(text) <= _LONGEST else _digest(text), tuple(reader.objects))


def _digest(text: str) -> str:
    return f'{{"$sha256":"{hashlib.sha256(text.encode("ascii")).hexdigest()}"}}'


def held_by(owner: Any) -> dict[str, Any]:
    """Return the attributes of an object itself, those in slots too."""
    held = dict(getattr(owner, "__dict__", {}))
    for base in type(owner).__mro__:
        for name, member in vars(base).items():
            if isinstance(member, MemberDescriptorType) and hasattr(owner, name):
                held[name] = getattr(owner, name)
    return held


# --- the history of an object -------------------------------------------------------------------------------


class Changes(NamedTuple):
    """Attributes that are not what the constructor left.

    Args:
        settings: their JSON texts, by name; a digest of one that may hold a key or a password.
        opaque: the names of those that hold other objects without JSON.
    """

    settings: Mapping[str, str] = {}
    opaque: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class History:
    """The values of an object's attributes when it was made, and before and after its runs.

    Args:
        owner: its id: a copied history is that of another object.
        made: when its constructor ended.
        left: after the last run that changed it, and what that stands for.
        users: the runs that use it now.
        found: when the first of these began, and what these values stand for.
    """

    owner: int
    made: dict[str, Value]
    left: dict[str, tuple[Value, Value]] = field(default_factory=dict)
    users: int = 0
    found: tuple[dict[str, Value], dict[str, Value]] | None = None

    def copied(self, owner: object) -> "History":
        """Return the history of a copy of the object, which no run uses."""
        return History(id(owner), dict(self.made), dict(self.left))

    def standing_for(self, held: Mapping[str, Value]) -> dict[str, Value]:
        """Return the values that count for those that are held."""
        found = {}
        for name in held.keys() | self.left.keys():
            value = held.get(name, ABSENT)
            left, stands_for = self.left.get(name, (value, value))
            found[name] = stands_for if value == left else value
        return found

    def counted(self, read: Callable[[], Mapping[str, Value]]) -> dict[str, Value]:
        """Return the values that count now: during a run, those that counted when it began."""
        return self.standing_for(read()) if self.found is None else self.found[1]

    def begin(self, read: Callable[[], dict[str, Value]]) -> None:
        """Note what a run begins with; further runs that begin before it ends take that over."""
        if self.found is None:
            held = read()
            self.found = held, self.standing_for(held)
        self.users += 1

    def end(self, read: Callable[[], dict[str, Value]]) -> None:
        """Note what a run leaves behind, once the last run has ended."""
        self.users -= 1
        if self.users or self.found is None:
            return
        (before, counted), self.found = self.found, None
        after = read()
        for name in after.keys() | before.keys():
            if after.get(name, ABSENT) != before.get(name, ABSENT):
                self.left[name] = after.get(name, ABSENT), counted.get(name, ABSENT)

    def changes(self, counted: Mapping[str, Value]) -> Changes:
        """Compare the values that count with those that the constructor left."""
        settings, opaque = {}, []
        for name in sorted(counted.keys() | self.made.keys()):
            now, made = counted.get(name, ABSENT), self.made.get(name, ABSENT)
            if now == made:
                continue
            if now.objects and now.objects != made.objects:
                opaque.append(name)
            else:
                settings[name] = _digest(now.text) if _CONFIDENTIAL.search(f"{name} {now.text}") else now.text
        return Changes(settings, tuple(opaque))


@contextmanager
def reading(owner: object) -> Iterator[bool]:
    """Say whether an object is not being read already, as one is that holds itself."""
    within = _reading.get()
    token = _reading.set((*within, id(owner)))
    try:
        yield id(owner) not in within
    finally:
        _reading.reset(token)


# --- the end of a constructor -------------------------------------------------------------------------------


def watch_constructor(cls: Any, of: type, note: Callable[[Any], object]) -> None:
    """Have a function called with each object of a class as its constructor ends.

    Decorators like `dataclass` replace the constructor of a class that exists already, so this is done as its first
    object is made.

    Args:
        cls: of the object.
        of: the class whose subclasses may get another constructor; to one that inherits its constructor from elsewhere
            (a model of pydantic) one of its own is added.
        note: is called.
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
        if type(self).__init__ is watched:  # else it was called by the constructor of a subclass
            note(self)

    _watched.add(watched)
    (owner if is_own else cls).__init__ = watched


def written_constructor(cls: Any) -> Any:
    """Return the constructor of a class as its author wrote it."""
    init = cls.__init__
    while init in _watched:
        init = init.__wrapped__
    return init


def constants_of(cls: type, known: Known, names: Iterable[str] | None = None) -> dict[str, Value]:
    """Read the constants of a class and its bases: attributes without methods, properties and other descriptors.

    Args:
        cls: the class.
        known: reads objects with identities, and secrets.
        names: of those to read; by default all. Fields that are only declared yet, as for a dataclass, are none.
    """
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__[:-1]):
        annotated = vars(base).get("__annotations__", {}) if names is None else {}
        for name, part in list(vars(base).items()):
            if (
                name[:2] == "__"
                or name == _OF_ABC
                or (names is not None and name not in names)
                or hasattr(type(part), "__get__")
            ):
                continue
            value = value_of(part, known)
            if not (value.objects and name in annotated):
                found[name] = value
    return found
