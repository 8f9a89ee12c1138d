"""The identity of an object: uid, class, version and arguments; the part of a cache key that all its calls share.

It is captured when the object is made, so authors declare nothing. `changes.py` finds settings that change afterwards.
"""

import inspect
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from pydantic import Field

from modelgauge.config.import_by_name import describe
from modelgauge.config.secrets import Secret
from modelgauge.data.base import Frozen
from modelgauge.data.json_values import class_name, plain, text_of_plain
from modelgauge.errors import DefinitionError, InvalidDataError, ModelGaugeError
from modelgauge.interfaces.arguments import unbound_arguments, unfit_signature
from modelgauge.interfaces.changes import Changes, written_constructor
from modelgauge.wording.phrases import ends

F = TypeVar("F", bound=Callable[..., Any])


class Initialization(Frozen):
    """Class and arguments of an object, for a run's record; part of its identity.

    Args:
        uid: the name it was made under.
        class_name: `cache_identity`, by default `module:qualname`.
        cache_version: the author's version of its behaviour.
        arguments: those explicitly passed, by name; secrets by their names only, other objects by their
            identity.
        opaque: the arguments, and the settings that changed since, that have no exact JSON, so that calls cannot be
            cached.
        settings: the values of attributes that changed since the constructor ended, by name; for a `FunctionSUT` of a
            `functools.partial`, the arguments of that too.
    """

    uid: str
    class_name: str
    cache_version: int | str = 0
    arguments: dict[str, Any] = Field(default_factory=dict)
    opaque: tuple[str, ...] = ()
    settings: dict[str, Any] = Field(default_factory=dict)


CALLED_BY_THE_ENGINE = (
    *("translate_text_prompt", "translate_chat_prompt", "translate_continuation_prompt"),
    *("translate_request", "translate_response"),
    *("evaluate", "evaluate_batch", "annotate", "get_suts", "get_dependencies", "make_test_items"),
    *("get_annotators", "choose_annotators", "measure_quality", "measure_in_part", "aggregate_measurements"),
)
"""The methods of authors, in the order of their calls."""

_INTERFACES = __name__.rpartition(".")[0]
_HANDED_ON = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True, slots=True)
class _Argument:
    """An argument as it was when the object was made: its JSON, whether that is exact, and the secrets in it."""

    shown: Any
    exact: bool
    secrets: tuple[Secret, ...] = ()


class Identified:
    """Base of tests, SUTs and annotators: knows how it was made.

    Class attributes that authors may set:
        cache_identity: stands in the cache key instead of `module:qualname`, so that a class can move. A
            subclass does not inherit it: two classes must not share answers.
        cache_version: raise it when behaviour changes for the same request (a changed default included).
        cacheable: False if equal requests may not share an answer.
        is_cheap: True if asking again costs next to nothing: then nothing is cached, and a run need not
            remark on it.
        identity_excludes: names of constructor arguments, and of attributes, that do not change any answer (a
            progress callback, say).
    """

    cache_identity: ClassVar[str | None] = None
    cache_version: int | str = 0
    cacheable: bool = True
    is_cheap: bool = False
    identity_excludes: ClassVar[frozenset[str]] = frozenset()
    required_methods: ClassVar[tuple[str, ...]] = ()

    uid: str
    _arguments: Mapping[str, _Argument] | None

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Capture the arguments before any author's code runs, and set `uid`."""
        captured = _capture(cls, cls.default_uid(), args, kwargs)
        made = super().__new__(cls)
        if captured is not None:  # past a frozen dataclass's own __setattr__
            for name, value in zip(("uid", "_arguments"), captured, strict=True):
                object.__setattr__(made, name, value)
        return made

    def __init__(self, uid: str) -> None:
        self.uid = uid

    def __repr__(self) -> str:
        """Return class and name, without arguments, which may be long."""
        return f"<{type(self).__qualname__} {getattr(self, 'uid', '')!r}>"

    @classmethod
    def default_uid(cls) -> str | None:
        """Return the uid of objects created without one; None if a uid is required, as for everything but metrics."""
        return None

    @property
    def initialization(self) -> Initialization:
        """The class and arguments of this object."""
        captured = getattr(self, "_arguments", None) or {}
        changes = self.changed_settings()
        return Initialization(
            uid=_checked_uid(type(self), getattr(self, "uid", None)),
            class_name=identity_name(type(self)),
            cache_version=self.cache_version,
            arguments={name: argument.shown for name, argument in captured.items()},
            opaque=(*_opaque(self), *changes.opaque),
            settings={name: json.loads(text) for name, text in self.further_settings(changes).items()},
        )

    def changed_settings(self) -> Changes:
        """Return the attributes changed since construction; none if no call of the object is cached."""
        return Changes()

    def further_settings(self, changes: Changes) -> Mapping[str, str]:
        """Return the JSON texts of the attributes that count besides the arguments, by name.

        Args:
            changes: the changed settings.
        """
        return changes.settings

    def identity(self, asked: "Mapping[str, Identified] | None" = None) -> dict[str, Any]:
        """Return the part of cache keys that stands for this object: JSON, equal for objects that give equal answers.

        Args:
            asked: the SUTs that a judge asks, by its own names; its answers depend on theirs.
        """
        made, excluded = self.initialization, self.identity_excludes
        arguments = {name: value for name, value in made.arguments.items() if name not in excluded}
        parts = [_without_options(made.uid, excluded), made.class_name, made.cache_version, arguments]
        identity = {"made": parts, "with": {name: sut.identity() for name, sut in (asked or {}).items()}}
        return {**identity, "settings": made.settings} if made.settings else identity

    def why_uncacheable(self, asked: "Mapping[str, Identified] | None" = None) -> str | None:
        """Say why calls of this object cannot be cached; None if they can.

        Args:
            asked: the SUTs that a judge asks, by its own names.
        """
        if not self.cacheable:
            return f"'{self.uid}' says that it is not cacheable"
        if getattr(self, "_arguments", None) is None:
            return f"the arguments of '{self.uid}' are not known, since its class has a __new__ of its own"
        opaque = [name for name in _opaque(self) if name not in self.identity_excludes]
        if opaque:
            return f"'{self.uid}' was made with arguments that have no exact JSON: {', '.join(opaque)}"
        if changed := self.changed_settings().opaque:
            return (
                f"'{self.uid}' has changed since it was made, to what has no exact JSON: {', '.join(changed)}"
            )
        return next((why for sut in (asked or {}).values() if (why := sut.why_uncacheable())), None)


def _opaque(made: Identified) -> tuple[str, ...]:
    captured = getattr(made, "_arguments", None) or {}
    return tuple([name for name, argument in captured.items() if not argument.exact])


def list_secrets(made: Identified) -> list[Secret]:
    """Return the secrets among an object's constructor arguments, passed by a plugin or in code."""
    captured = getattr(made, "_arguments", None) or {}
    return [secret for argument in captured.values() for secret in argument.secrets]


def declared(owner: Identified, method: str) -> dict[str, Any]:
    """Call an author's `get_dependencies`, `get_annotators` or `get_suts`, and check what it returns.

    Args:
        owner: the object.
        method: which of these.

    Raises:
        DefinitionError: it raised, or returned no mapping with texts as keys.
    """
    fix = "Return a dict with texts as keys; `modelgauge --debug` shows where an error was raised."
    try:
        found = dict(getattr(owner, method)())
    except ModelGaugeError:
        raise
    except Exception as error:
        raise DefinitionError(f"{method} of '{owner.uid}' failed: {describe(error)}.", fix=fix) from error
    for key in found:
        if not isinstance(key, str):
            raise DefinitionError(f"{method} of '{owner.uid}' has the key {key!r}.", fix=fix)
    return found


def _without_options(uid: str, names: frozenset[str]) -> str:
    """Return a uid without those `?key=value` options that do not affect answers."""
    base, mark, options = uid.partition("?")
    kept = [option for option in options.split("&") if option.partition("=")[0] not in names]
    return f"{base}?{'&'.join(kept)}" if mark and kept else base


def identity_name(cls: type) -> str:
    """Return the name of a class in cache keys.

    A class of a script is named by the script's resolved path, one of a notebook or prompt by its working
    directory: two classes that only share a name must not share answers.
    """
    own = cls.__dict__.get("cache_identity")
    if own:
        return str(own)
    module = cls.__module__
    if module in ("__main__", "__mp_main__"):
        file = getattr(sys.modules["__main__"], "__file__", None)
        module = str(Path(file).resolve()) if file else str(Path.cwd() / "<interactive>")
    return f"{module}:{cls.__qualname__}"


def _capture(
    cls: type, default_uid: str | None, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[str, dict[str, _Argument]] | None:
    """Return the uid and the other arguments; None for copy and pickle, which pass none, and for a wrong signature.

    The first parameter takes the uid, whatever its name. In a class with a default uid (a metric) it does so only if it
    is called `uid` or `name`, or hands on what it gets:

        `__init__(self, …)`       called with      uid       arguments
        `name, size=1`            "a", 2           "a"       {"size": 2}
        `**more`                  uid="a", size=2  "a"       {"size": 2}
        `*args, **more`           uid="a", size=2  "a"       {"size": 2}
        `*args, **more`           "a", 2           "a"       {"args": [2]}
        `uid=None, size=1`        size=2           default   {"size": 2}
        `size=1`                  2                default   {"size": 2}

    Raises:
        ArgumentError: the constructor does not take them.
    """
    _check_methods(cls)
    signature, parameter = _constructor(cls, needs_uid=default_uid is None)
    try:
        bound = signature.bind(None, *args, **kwargs)
    except TypeError as error:
        is_wrapped = hasattr(written_constructor(cls), "__wrapped__")
        if is_wrapped or not (args or kwargs):
            return None
        raise unbound_arguments(cls, error, kwargs) from None
    passed = _flattened(bound)
    uid = _take_uid(parameter, passed) if parameter is not None else None
    if uid is None:
        uid = default_uid
    return _checked_uid(cls, uid), {name: _frozen(value) for name, value in sorted(passed.items())}


def _take_uid(parameter: inspect.Parameter, passed: dict[str, Any]) -> Any:
    """Take the uid out of the arguments that were passed; None if it is not among them."""
    if parameter.kind not in _HANDED_ON:
        return passed.pop(parameter.name, parameter.default)
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL and (args := passed.pop(parameter.name, [])):
        uid, *others = args
        if others:
            passed[parameter.name] = others
        return uid
    return passed.pop("uid", None)


def _checked_uid(cls: type, uid: object) -> str:
    if isinstance(uid, str) and uid:
        return uid
    raise DefinitionError(
        f"{cls.__qualname__} was made with uid {ends(repr(uid), 200)}.",
        fix=f'The first argument of a constructor is the uid, a name: {cls.__qualname__}("my_name").',
    )


@lru_cache(maxsize=1024)
def _constructor(cls: type, *, needs_uid: bool) -> tuple[inspect.Signature, inspect.Parameter | None]:
    """Return the signature of a class's `__init__`, and the parameter that takes the uid; see `_capture`."""
    signature = inspect.signature(cls.__init__)  # type: ignore[misc]  # of the class, whatever it is
    parameters = list(signature.parameters.values())
    if not needs_uid:
        takes_uid = len(parameters) > 1 and (
            parameters[1].name in ("uid", "name") or parameters[1].kind in _HANDED_ON
        )
        return signature, parameters[1] if takes_uid else None
    if len(parameters) < 2:
        raise DefinitionError(
            f"The constructor of {cls.__qualname__} takes no uid.",
            fix=f"Give {cls.__qualname__}.__init__ a first parameter uid: def __init__(self, uid: str, …).",
        )
    return signature, parameters[1]


def _flattened(bound: inspect.BoundArguments) -> dict[str, Any]:
    """Return arguments by name, however they were passed; `*args` under its own name, `**kwargs` one by one.

    One of `**kwargs` whose name another parameter has, which takes none by name, gets two stars.
    """
    passed: dict[str, Any] = {}
    for name, value in list(bound.arguments.items())[1:]:  # without self
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            passed |= {f"**{key}" if key in passed else key: part for key, part in value.items()}
        else:
            passed[name] = list(value) if kind is inspect.Parameter.VAR_POSITIONAL else value
    return passed


def _frozen(value: Any) -> _Argument:
    """Return the current JSON of an argument, unaffected by later changes to the argument."""
    if value is None or type(value) is bool:  # nearly always
        return _Argument(value, exact=True)
    opaque: list[str] = []
    secrets: list[Secret] = []

    def other(part: Any) -> Any:
        if isinstance(part, Secret):
            secrets.append(part)
        elif isinstance(part, Identified):
            secrets.extend(list_secrets(part))
            if part.why_uncacheable() is not None:
                opaque.append(part.uid)
        return identified_json(part)

    try:
        shown = plain(value, other)
        text_of_plain(shown)
    except (InvalidDataError, RecursionError):
        named = value if hasattr(value, "__qualname__") and hasattr(value, "__module__") else type(value)
        return _Argument({"$opaque": class_name(named)}, exact=False, secrets=tuple(secrets))
    return _Argument(shown, exact=not opaque, secrets=tuple(secrets))


def identified_json(part: Any) -> Any:
    """Return the JSON of a secret (its name) or of an object with an identity; NotImplemented for others."""
    if isinstance(part, Secret):
        return {"$secret": part.description().name}
    return {"$object": part.identity()} if isinstance(part, Identified) else NotImplemented


@lru_cache(maxsize=1024)
def _check_methods(cls: type) -> None:
    missing = [name for name in getattr(cls, "required_methods", ()) if not overrides(cls, name)]
    if missing:
        raise DefinitionError(
            f"{cls.__qualname__} does not define {', '.join(missing)}.",
            fix=f"Add to the class: {'; '.join(f'def {name}(self, …)' for name in missing)}.",
        )
    for name in CALLED_BY_THE_ENGINE:
        own = (base for base in cls.__mro__ if name in vars(base) and base.__module__.startswith(_INTERFACES))
        interface = next(own, None)
        unfit = None if interface is None else unfit_signature(cls, name, vars(interface)[name])
        if unfit is not None:
            raise DefinitionError(f"In {cls.__qualname__}, {unfit[0]}", fix=unfit[1])


def interface_method(function: F) -> F:
    """Mark a method of an interface, so that `overrides` can tell it from a method that an author defines."""
    function.__modelgauge_interface__ = True  # type: ignore[attr-defined]  # a mark that `overrides` reads
    return function


def overrides(cls: type, name: str) -> bool:
    """Return whether an author's class overrides a method of its interface."""
    return _overrides(cls, name)  # whose cache type checkers take for one of instances only


@lru_cache(maxsize=4096)
def _overrides(cls: type, name: str) -> bool:
    for base in cls.__mro__:
        if name in base.__dict__:
            return not getattr(base.__dict__[name], "__modelgauge_interface__", False)
    return False
