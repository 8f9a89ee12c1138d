"""Values of attributes as they are now: their JSON, and the objects in them that have none."""

import functools
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, is_dataclass, replace
from types import MemberDescriptorType, MethodType, SimpleNamespace
from typing import Any
from weakref import ref

from pydantic import BaseModel

from modelgauge.data.json_values import class_name, has_plain, is_exact, plain, text_of_plain

_LONGEST = 1000
"""Characters of a value's JSON; a longer one is represented by its digest."""

_MADE_AT_RUNTIME = 1 << 9  # Py_TPFLAGS_HEAPTYPE

Known = Callable[[Any], Any]
"""Returns the JSON of an object that has an identity or is a secret, and NotImplemented for others."""


class _Object:
    """An object without JSON, equal only to itself. Its copies, made with its owner's, are equal to any other."""

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

    def find(self) -> Any:
        """Return the object; None if it is gone."""
        return None if self._find is None else self._find()

    def __reduce__(self) -> Any:
        return _Object, ()


@dataclass(frozen=True, slots=True)
class Value:
    """The value of an attribute.

    Args:
        text: its JSON, in which objects without JSON are represented by their class.
        objects: these objects.
        place: the object that holds it for all who share that object, and its name there.
    """

    text: str
    objects: tuple[_Object, ...] = ()
    place: tuple[_Object, str] | None = field(default=None, compare=False)

    def at(self, holder: Any, name: str = "") -> "Value":
        """Return the value with its place."""
        return replace(self, place=(_Object(holder), name))


ABSENT = Value('{"$absent":true}')


class _ValueReader:
    """Reads a value, and collects the objects in it that have no JSON.

    An object that is met again stands by its JSON or by the digest of that, and within itself by a number: so reading
    takes no longer than there are objects.

    Args:
        known: reads objects with identities, and secrets.
    """

    def __init__(self, known: Known) -> None:
        self._known = known
        self._met: dict[int, tuple[Any, list[_Object], Any]] = {}
        self._walked: Any = None
        self.objects: list[_Object] = []

    def read(self, value: Any) -> Any:
        return value if is_exact(value) else plain(value, self._other)

    def _other(self, part: Any) -> Any:
        if part is self._walked:
            self._walked = None
            return NotImplemented
        known = self._known(part)
        if known is not NotImplemented:
            return known
        if type(part) is dict and any(type(key) is not str for key in part):
            return {"$items": [[self.read(key), self.read(value)] for key, value in part.items()]}
        if has_plain(part):
            is_walked = isinstance(part, BaseModel) or is_dataclass(type(part))
            return self._once(part, self._walk) if is_walked else NotImplemented
        return self._once(part, self._object) if _can_enter(part) else self._callable(part)

    def _once(self, part: Any, read: Callable[[Any], Any]) -> Any:
        if id(part) in self._met:
            made, objects, _ = self._met[id(part)]
            self.objects += [found for found in objects if found not in self.objects]
            return made
        self._met[id(part)] = {"$again": len(self._met)}, [], part
        before = len(self.objects)
        made = read(part)
        text = _written(made)
        again = made if len(text) <= _LONGEST else json.loads(digest_of(text))
        self._met[id(part)] = again, self.objects[before:], part
        return made

    def _walk(self, part: Any) -> Any:
        self._walked = part
        return plain(part, self._other)

    def _object(self, part: Any) -> Any:
        """Read an object by its attributes if all are JSON; else by itself, and by its public attributes."""
        before, held = len(self.objects), held_by(part)
        made = {name: self.read(inner) for name, inner in held.items() if name[:1] != "_"}
        public = len(self.objects)
        private = {name: self.read(inner) for name, inner in held.items() if name[:1] == "_"}
        if held and len(self.objects) == before:
            made |= private
        else:
            self.objects[public:] = [_Object(part)]
        return {"$is": class_name(type(part)), "with": made}

    def _callable(self, part: Any) -> Any:
        if isinstance(part, functools.partial):
            return {"$partial": [self.read(bound) for bound in (part.func, part.args, part.keywords)]}
        if isinstance(part, MethodType):
            return {"$method": part.__func__.__qualname__, "of": self.read(part.__self__)}
        self.objects.append(_Object(part))
        named = part if hasattr(part, "__qualname__") and hasattr(part, "__module__") else type(part)
        return {"$is": f"{named.__module__}:{named.__qualname__}"}


def _can_enter(part: Any) -> bool:
    """Say whether an object is of classes written in Python alone."""
    return all(
        base.__flags__ & _MADE_AT_RUNTIME or base is SimpleNamespace for base in type(part).__mro__[:-1]
    )


def value_of(value: Any, known: Known) -> Value:
    """Read a value as it is now. Later changes to it do not affect the result.

    Args:
        value: anything.
        known: reads objects with identities, and secrets.
    """
    reader = _ValueReader(known)
    read = None
    try:
        read = reader.read(value)
        text, objects = text_of_plain(read), reader.objects
    except Exception:  # noqa: BLE001  NaN, a circle, or whatever an author's object raises when it is read
        text, objects = digest_of(_written(read)), [_Object(value)]
    return Value(text if len(text) <= _LONGEST else digest_of(text), tuple(objects))


def _written(read: Any) -> str:
    return json.dumps(read, sort_keys=True)


def digest_of(text: str) -> str:
    """Return JSON that stands for a text."""
    return f'{{"$sha256":"{hashlib.sha256(text.encode("ascii")).hexdigest()}"}}'


def held_by(owner: Any) -> dict[str, Any]:
    """Return the attributes of an object itself, those in slots too, and not Python's own (`__orig_class__`)."""
    held = dict(getattr(owner, "__dict__", {}))
    for base in type(owner).__mro__:
        for name, member in vars(base).items():
            if isinstance(member, MemberDescriptorType) and hasattr(owner, name):
                held[name] = getattr(owner, name)
    return {name: value for name, value in held.items() if name[:2] != "__"}
