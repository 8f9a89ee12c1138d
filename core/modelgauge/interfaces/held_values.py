"""Values of attributes as they are now: their JSON, and the objects in them that have none."""

import copyreg
import functools
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, is_dataclass
from types import FunctionType, MappingProxyType, MemberDescriptorType, MethodType, SimpleNamespace
from typing import Any
from weakref import ref

from pydantic import BaseModel

from modelgauge.data.json_values import class_name, has_plain, is_exact, plain, text_of_plain

_LONGEST = 1000
"""Characters of a value's JSON; a longer one is represented by its digest."""

_SCALARS = frozenset({bool, float, int, str, type(None)})
_CAN_CHANGE = object()

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
        code: the classes and functions in it, and the classes of the objects in it.
        source: the object that was read, if it is short and can never change.
    """

    text: str
    objects: tuple[_Object, ...] = ()
    place: tuple[_Object, str] | None = field(default=None, compare=False)
    code: tuple[_Object, ...] = field(default=(), compare=False)
    source: object = field(default=_CAN_CHANGE, compare=False, repr=False)

    def applies_to(self, source: object, place: tuple[object, str] | None) -> bool:
        """Return whether reading an object in a place would give this value."""
        if source is not self.source:
            return False
        if self.place is None or place is None:
            return self.place is None and (place is None or not _can_be_found(place[0]))
        return self.place[0].find() is place[0] and self.place[1] == place[1]


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
        self.code: dict[int, _Object] = {}

    def read(self, value: Any) -> Any:
        return value if is_exact(value) else plain(value, self._other)

    def _other(self, part: Any) -> Any:
        if part is self._walked or type(part) in (list, tuple):  # `plain` reads its parts
            self._walked = None
            return NotImplemented
        known = self._known(part)
        if known is not NotImplemented:
            return known
        if type(part) is dict and any(type(key) is not str for key in part):
            return {"$items": [[self.read(key), self.read(value)] for key, value in part.items()]}
        self._note_code(type(part))
        if has_plain(part):
            is_walked = isinstance(part, BaseModel) or is_dataclass(type(part)) or _further(part)
            return self._once(part, self._walk) if is_walked else NotImplemented
        if _can_enter(part):
            return self._once(part, self._object)
        is_code = isinstance(part, functools.partial) or hasattr(part, "__qualname__")
        return self._callable(part) if is_code else self._once(part, self._built_in)

    def _note_code(self, code: Any) -> None:
        if id(code) not in self.code and (
            isinstance(code, FunctionType) or code.__flags__ & _MADE_AT_RUNTIME
        ):
            self.code[id(code)] = _Object(code)

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
        made = plain(part, self._other)
        further = self.read(_further(part))
        return {**made, "with": further} if further else made

    def _built_in(self, part: Any) -> Any:
        """Read an object without attributes by its buffer, or by what pickle would store; else by itself."""
        try:
            made = _buffered(part) or self.read(_reduced(part))
        except Exception:  # noqa: BLE001  each class has its own way to refuse
            made = None
            self.objects.append(_Object(part))
        return {"$is": class_name(type(part)), **({} if made is None else {"of": made})}

    def _object(self, part: Any) -> Any:
        """Read an object by its attributes if all are JSON; else by itself, and by its public attributes."""
        before, held = len(self.objects), held_by(part)
        if not held:
            return {"with": {}, **self._built_in(part)}
        made = {name: self.read(inner) for name, inner in held.items() if name[:1] != "_"}
        public = len(self.objects)
        private = {name: self.read(inner) for name, inner in held.items() if name[:1] == "_"}
        if len(self.objects) == before:
            made |= private
        else:
            self.objects[public:] = [_Object(part)]
        return {"$is": class_name(type(part)), "with": made}

    def _callable(self, part: Any) -> Any:
        if isinstance(part, functools.partial):
            return {"$partial": [self.read(bound) for bound in (part.func, part.args, part.keywords)]}
        if isinstance(part, MethodType):
            self._note_code(part.__func__)
            return {"$method": part.__func__.__qualname__, "of": self.read(part.__self__)}
        if isinstance(part, type | FunctionType):
            self._note_code(part)
        self.objects.append(_Object(part))
        named = part if hasattr(part, "__qualname__") and hasattr(part, "__module__") else type(part)
        return {"$is": f"{named.__module__}:{named.__qualname__}"}


def _can_enter(part: Any) -> bool:
    """Say whether an object is of classes written in Python alone."""
    return all(
        base.__flags__ & _MADE_AT_RUNTIME or base is SimpleNamespace for base in type(part).__mro__[:-1]
    )


def _further(part: Any) -> dict[str, Any]:
    """Return the public attributes that a dataclass, or an object of a subclass of `dict` or `str`, has besides."""
    if isinstance(part, BaseModel):
        return {}
    cls, held = type(part), getattr(part, "__dict__", {})
    declared = getattr(cls, "__dataclass_fields__", ())
    return {
        name: value
        for name, value in held.items()
        if name[:1] != "_"
        and name not in declared
        and not isinstance(getattr(cls, name, None), functools.cached_property)
    }


def _buffered(part: Any) -> dict[str, Any] | None:
    """Return the digest of an array's memory; None if it has none, or one that points elsewhere."""
    try:
        view = memoryview(part)
        if "O" in view.format:
            return None
        return {
            "$sha256": hashlib.sha256(view).hexdigest(),
            "format": view.format,
            "shape": list(view.shape or ()),
        }
    except (TypeError, ValueError, BufferError):
        return None


def _reduced(part: Any) -> Any:
    """Return what `copy` and `pickle` make an object of again. Methods written in Python are not called.

    Raises:
        TypeError: it cannot be pickled, or only by such methods, or nothing would be stored.
    """
    cls: Any = type(part)
    if cls is MappingProxyType:
        return dict(part)
    if reduce := copyreg.dispatch_table.get(cls):
        made: Any = reduce(part)
    elif any(isinstance(getattr(cls, name, None), FunctionType) for name in _OF_PICKLE):
        raise TypeError(f"{cls} is pickled in its own way")
    else:
        made = part.__reduce_ex__(2)
    _, args, *more = made
    args = [argument for argument in args if argument is not cls]
    if not args and all(each is None for each in more):
        raise TypeError(f"{cls} holds nothing that pickle stores")
    return [args, *[list(each) if hasattr(each, "__next__") else each for each in more]]


_OF_PICKLE = (
    "__reduce_ex__",
    "__reduce__",
    "__getstate__",
    "__getnewargs__",
    "__getnewargs_ex__",
    "__iter__",
)


def value_of(
    value: Any, known: Known, place: tuple[Any, str] | None = None, before: Value | None = None
) -> Value:
    """Read a value as it is now. Later changes to it do not affect the result.

    Args:
        value: anything.
        known: reads objects with identities, and secrets.
        place: the object that holds it for all who share that object, and its name there.
        before: what was read there earlier. It is returned if it was read from the same object, which cannot change.
    """
    if before is not None and before.applies_to(value, place):
        return before
    if place is not None:
        place = (_Object(place[0]), place[1]) if _can_be_found(place[0]) else None
    reader = _ValueReader(known)
    read = None
    try:
        read = reader.read(value)
        text, objects = text_of_plain(read), reader.objects
    except Exception:  # noqa: BLE001  NaN, a circle, or whatever an author's object raises when it is read
        text, objects = digest_of(_written(read)), [_Object(value)]
    if len(text) > _LONGEST:
        return Value(digest_of(text), tuple(objects), place, tuple(reader.code.values()))
    source = value if not objects and _is_constant(value) else _CAN_CHANGE
    return Value(text, tuple(objects), place, tuple(reader.code.values()), source)


def _is_constant(value: Any) -> bool:
    if type(value) is tuple:
        return all(type(part) in _SCALARS for part in value)
    return type(value) in _SCALARS


def _can_be_found(holder: object) -> bool:
    """Return whether there can be a weak reference to an object."""
    return type(holder).__weakrefoffset__ != 0


def _written(read: Any) -> str:
    return json.dumps(read, sort_keys=True)


def digest_of(text: str) -> str:
    """Return JSON that stands for a text."""
    return f'{{"$sha256":"{hashlib.sha256(text.encode("ascii")).hexdigest()}"}}'


def held_by(owner: Any) -> dict[str, Any]:
    """Return the attributes of an object itself, those in slots too, and not Python's own (`__orig_class__`)."""
    cls: type = type(owner)
    held = dict(getattr(owner, "__dict__", {}))
    for name in _slots(cls):
        if hasattr(owner, name):
            held[name] = getattr(owner, name)
    return {name: value for name, value in held.items() if name[:2] != "__"}


@functools.lru_cache(maxsize=1024)
def _slots(cls: type) -> tuple[str, ...]:
    members = (member for base in cls.__mro__ for member in vars(base).items())
    return tuple(name for name, member in members if isinstance(member, MemberDescriptorType))
