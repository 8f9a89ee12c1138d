"""What the score of a judge metric depends on beside its arguments: its declaration, its wording, its code.

Scores are kept under the metric's arguments. An author who changes a word or a formula shall not be shown the
scores of before, so a fingerprint of these is part of what they are kept under. It follows a function to the
functions and constants that it names, of its module and of the author's other modules (`prompts.WORDING` too), and
to those that it was made with, and tells all that a class of an author's defines. Where an installed package, another
class, or a file that `score` reads changes, a metric's `cache_version` says so.
Of an object that nothing tells from others of its class, the fingerprint says so, and no score is kept.
"""

import asyncio
import hashlib
import json
import logging
import re
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from inspect import getattr_static
from operator import attrgetter, itemgetter, methodcaller
from pathlib import Path, PurePath
from types import (
    BuiltinFunctionType,
    CellType,
    ClassMethodDescriptorType,
    CodeType,
    EllipsisType,
    FunctionType,
    GenericAlias,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    NotImplementedType,
    SimpleNamespace,
    UnionType,
    WrapperDescriptorType,
)
from typing import Any

from pydantic import BaseModel

from modelgauge.config.secrets import Secret
from modelgauge.data.json_values import class_name, is_exact, plain
from modelgauge.errors import DefinitionError, InvalidDataError
from modelgauge.interfaces.identity import Identified
from modelgauge.metrics.definition import ScoreMethod
from modelgauge.metrics.questions import wording

_PLAIN = (str, bytes, int, float, complex, bool, type(None))
_BY_REPR = frozenset(
    {
        *(bytes, bytearray, complex, range, Decimal, Fraction, date, time, datetime, timedelta, timezone),
        *(EllipsisType, NotImplementedType, GenericAlias, UnionType),
    }
)
"""Of these the `repr` says all; of subclasses it need not."""

_CONSTANTS = frozenset({str, int, float, bytes, complex, Decimal, Fraction})
_BY_CLASS = (
    *(type(threading.Lock()), type(threading.RLock()), threading.Condition, threading.Semaphore),
    *(logging.LoggerAdapter, asyncio.Lock, asyncio.Condition, asyncio.Semaphore),
)
"""What these hold decides when something is done and where it is told, and not what comes of it."""

_OF_PYTHON = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib"))
_OF_C = (BuiltinFunctionType, MethodWrapperType)
_REMEMBERING = type(lru_cache(len))
_FUNCTIONS = (FunctionType, staticmethod, classmethod, property, _REMEMBERING)
_DESCRIPTORS = (
    *(MethodDescriptorType, WrapperDescriptorType, ClassMethodDescriptorType),
    *(GetSetDescriptorType, MemberDescriptorType),
)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A short text, and what it does not tell.

    Args:
        text: another one where something in the parts is another.
        untold: the classes of objects that hold what nothing tells, and the uids of SUTs and annotators whose
            answers cannot be kept; where there are any, the text can be the same although the parts differ.
    """

    text: str
    untold: tuple[str, ...] = ()

    def why_uncacheable(self, uid: str) -> str | None:
        """Why scores under this fingerprint cannot be kept; None where they can.

        Args:
            uid: the metric's.
        """
        if not self.untold:
            return None
        return f"the code of '{uid}' was made with objects that have no exact JSON: {', '.join(self.untold)}"


def fingerprint(*parts: Any) -> Fingerprint:
    """The fingerprint of what a metric consists of.

    Args:
        parts: declarations, functions, files of wording, and plain values.
    """
    teller = _Teller()
    try:
        told = json.dumps([teller.tell(one) for one in parts], sort_keys=True)  # NaN and lone surrogates too
    except RecursionError:
        return Fingerprint("", ("one that is nested too deep",))
    return Fingerprint(hashlib.sha256(told.encode("ascii")).hexdigest()[:12], tuple(sorted(teller.untold)))


def defined_in(cls: type) -> dict[str, Any]:
    """The functions and constants that an author's class and its bases define, by name; nothing of this library's."""
    found: dict[str, Any] = {}
    for one in cls.__mro__:
        if one.__module__.partition(".")[0] == __name__.partition(".")[0]:
            continue
        for name, held in vars(one).items():
            value = held.function if isinstance(held, ScoreMethod) else held
            own = name == "__init__" or not (name.startswith("__") and name.endswith("__"))
            if own and name not in found and (isinstance(value, _FUNCTIONS) or _is_constant_of_class(value)):
                found[name] = value
    return found


class _Teller:
    """Makes JSON of anything, and notes of what that does not tell all."""

    def __init__(self) -> None:
        self.untold: set[str] = set()
        self._inside: list[int] = []
        self._told: dict[int, tuple[int, Any]] = {}  # functions by their ids, since several may name one
        self._functions = 0

    def tell(self, part: Any) -> Any:
        """A part as JSON; one that stands in itself by how far out it began."""
        if type(part) in (str, int, float, bool, type(None)):
            return part
        if id(part) in self._inside:
            return {"$again": self._inside.index(id(part))}
        if id(part) in self._told:
            return {"$told": self._told[id(part)][0]}
        if isinstance(part, FunctionType):
            self._told[id(part)] = len(self._told), part
        self._inside.append(id(part))
        self._functions += isinstance(part, FunctionType)
        try:
            return self._tell(part)
        finally:
            self._functions -= isinstance(part, FunctionType)
            self._inside.pop()

    def _tell(self, part: Any) -> Any:
        if type(part) in _BY_REPR or type(part).__module__ == "typing":
            return {"$repr": class_name(type(part)), "text": repr(part)}
        for kinds, name in _NAMES:
            if isinstance(part, kinds):
                return {"$name": name(part), "of": class_name(type(part))}
        if isinstance(part, PurePath):
            return self._path(part)
        for kinds, parts_of in _PARTS:
            if isinstance(part, kinds):
                return {"$parts": class_name(type(part)), "of": [self.tell(one) for one in parts_of(part)]}
        if isinstance(part, Identified):
            return self._identified(part)
        return self._object(part)

    def _path(self, path: PurePath) -> Any:
        """What a declared file says; of a path in a function its name too, since there may be no such file."""
        if not isinstance(path, Path):
            return {"$path": str(path)}
        if not self._functions:
            return {"$wording": wording(path)}
        try:
            return {"$path": str(path), "wording": wording(path)}
        except DefinitionError:
            return {"$path": str(path)}

    def _identified(self, part: Identified) -> Any:
        """Another test, SUT or annotator, as it stands in cache keys."""
        if part.why_uncacheable() is not None:
            self.untold.add(part.uid)
        return {"$object": part.identity()}

    def _object(self, part: Any) -> Any:
        """Anything else: its content, if it is known what that is, and what was noted in it beside that."""
        named = _by_its_name(part)
        if named is not None:
            return {"$name": named}
        try:
            content = plain(part, lambda one: NotImplemented if one is part else self.tell(one))
        except (InvalidDataError, AttributeError):  # some fields may not be set yet
            if _has_state(part):
                self.untold.add(class_name(type(part)))
            return {"$class": class_name(type(part))}
        beside = _beside_content(part)
        return {"$held": [content, self.tell(beside)]} if beside else content


def _by_its_name(part: Any) -> str | None:
    """The name of what is written in C and can be called (numpy's functions, say), if its module knows it by that."""
    if not callable(part) or isinstance(getattr_static(type(part), "__call__"), FunctionType):
        return None
    module, name = getattr(part, "__module__", None), getattr(part, "__name__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module not in sys.modules:
        return None
    return f"{module}:{name}" if vars(sys.modules[module]).get(name) is part else None


def _beside_content(part: Any) -> dict[str, Any]:
    """What an object holds beside its fields or elements, and beside what is worked out from these."""
    if isinstance(part, BaseModel):
        return {}
    known = {field.name for field in fields(part)} if is_dataclass(part) else set()
    return {
        name: value
        for name, value in getattr(part, "__dict__", {}).items()
        if name not in known and not isinstance(getattr(type(part), name, None), cached_property)
    }


def _has_state(part: Any) -> bool:
    """Whether an object holds anything that pickle would have to write; it does where it has its own say in that."""
    kind = type(part)
    if any(getattr(kind, name) is not getattr(object, name) for name in _PICKLING):
        return True
    try:
        reduced = object.__reduce_ex__(part, 2)
    except TypeError:  # it holds what only its C code knows
        return True
    made_with, state = reduced[1], reduced[2:]
    return len(made_with) > 1 or any(one is not None for one in state)


_PICKLING = ("__reduce__", "__reduce_ex__", "__getstate__")


# --- the parts of a thing -------------------------------------------------------------------------------


def _parts_of(function: FunctionType) -> Iterator[Any]:
    """A function's name and code, what it was made with, and what it names of its module's constants and functions."""
    code = function.__code__
    yield from (function.__qualname__, code, function.__defaults__, function.__kwdefaults__)
    yield [_held(cell) for cell in function.__closure__ or ()]
    yield _seen(function.__globals__, sorted(_names_in(code)), [function.__globals__])


def _seen(module: Mapping[str, Any], names: Sequence[str], known: list[Mapping[str, Any]]) -> dict[str, Any]:
    """The constants and functions behind some names in a module, and behind the same names in modules among them.

    Args:
        module: its names and values.
        names: all that a function reads, attributes included.
        known: the modules that were looked at, that of the function first; each is looked at once.
    """
    seen: dict[str, Any] = {}
    for name in names:
        value = module.get(name)
        if _is_constant(value) or _is_function_of(value, known[0]):
            seen[name] = value
        elif (
            isinstance(value, ModuleType)
            and not any(vars(value) is one for one in known)
            and _is_beside(vars(value), known[0])
        ):
            known.append(vars(value))
            seen[name] = _seen(vars(value), names, known)
    return seen


def _is_beside(module: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two modules are one author's: of one package or in one folder, and neither is installed."""
    packages = [str(one.get("__name__")).partition(".")[0] for one in (module, other)]
    folders = [_own_folder(one.get("__file__")) for one in (module, other)]
    if None in folders or __name__.partition(".")[0] in packages:
        return False
    return packages[0] == packages[1] or folders[0] == folders[1]


@lru_cache(maxsize=512)
def _own_folder(file: str | None) -> Path | None:
    """The folder of a module's file; None where there is none, or it belongs to Python or to an installed package."""
    folder = Path(file).resolve().parent if file else None
    if folder is None or not {"site-packages", "dist-packages"}.isdisjoint(folder.parts):
        return None
    return None if any(folder.is_relative_to(one) for one in _OF_PYTHON) else folder


def _held(cell: CellType) -> Any:
    """What a function was made with; of a path that, and not what lies there."""
    try:
        held = cell.cell_contents
    except ValueError:  # it has none yet
        return CellType
    return PurePath(held) if isinstance(held, Path) else held


def _is_constant(value: Any) -> bool:
    """Whether a value of a module is one. Lists, mappings, flags and None often change while a program runs."""
    if type(value) is tuple:
        return all(isinstance(one, _PLAIN) or _is_constant(one) for one in value)
    return type(value) in _CONSTANTS or isinstance(value, re.Pattern | Enum)


def _is_function_of(value: Any, names: Mapping[str, Any]) -> bool:
    """Whether a value is a function that a module of these names defines, or another module of its author's."""
    function = value.__wrapped__ if type(value) is _REMEMBERING else value
    if type(function) is not FunctionType:
        return False
    return function.__globals__ is names or _is_beside(function.__globals__, names)


def _is_constant_of_class(value: Any) -> bool:
    return _is_constant(value) or (type(value) in (bool, list, dict) and is_exact(value))


def _names_in(code: CodeType) -> set[str]:
    """The names that a code reads, those in the functions and comprehensions in it too."""
    inner = (one for one in code.co_consts if isinstance(one, CodeType))
    return set(code.co_names).union(*map(_names_in, inner))


def _parts_of_code(code: CodeType) -> tuple[Any, ...]:
    """What a code does, for which exceptions, and how it is called."""
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    does = (code.co_code.hex(), code.co_exceptiontable.hex(), code.co_flags)
    return (*does, *counts, parameters, code.co_names, code.co_consts)


def _parts_of_mapping(mapping: Mapping[Any, Any]) -> Iterator[Any]:
    """Its items, in their order, which is seen by who walks it."""
    for key, value in mapping.items():
        yield from (key, value)
    yield getattr(mapping, "default_factory", None)
    yield _beside_content(mapping) or None


_NAMES: tuple[tuple[Any, Callable[[Any], str]], ...] = (
    (type, class_name),
    (ModuleType, lambda module: str(module.__name__)),
    (logging.Logger, lambda logger: str(logger.name)),
    (Secret, lambda secret: str(secret.description().name)),
    (_BY_CLASS, lambda one: class_name(type(one))),
)
"""What is told by a name, and that."""

_PARTS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (FunctionType, _parts_of),
    (CodeType, _parts_of_code),
    (MethodType, lambda method: (method.__func__, method.__self__)),
    (_OF_C, lambda one: (one.__qualname__, one.__self__)),
    (_DESCRIPTORS, lambda one: (one.__objclass__, one.__name__)),
    (staticmethod | classmethod, lambda one: (one.__func__,)),
    (property, lambda one: (one.fget,)),
    (_REMEMBERING, lambda one: (one.__wrapped__,)),
    (partial, lambda one: (one.func, one.args, one.keywords)),
    (attrgetter | itemgetter | methodcaller, lambda one: one.__reduce__()),
    (re.Pattern, lambda pattern: (pattern.pattern, pattern.flags)),
    (Enum, lambda member: (member.name, member.value)),
    (SimpleNamespace, lambda namespace: (vars(namespace),)),
    (Mapping, _parts_of_mapping),
)
"""What is told by its parts, and those."""
