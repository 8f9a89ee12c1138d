"""The pages of the Python API, one for each module: signatures, arguments and errors of every public name."""

from __future__ import annotations

import enum
import inspect
import math
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any

from docstrings import entries_of, prose, sections_of, table

from modelgauge.data.base import Frozen
from modelgauge.metrics import JudgeMetric, Metric
from modelgauge.metrics.judges import JudgeLike

_WIDTH = 100
_NEEDED: dict[str, dict[str, Any]] = {
    "ContainsMetric": {"texts": ["any"]},
    "GEval": {"criteria": "any"},
    "PatternMatchMetric": {"pattern": "any"},
}
"""What metrics cannot be made without."""
_JUDGES = typing.get_args(JudgeLike)
_SECTIONS = {
    "Args": "argument",
    "Attributes": "attribute",
    "Class attributes": "class attribute",
    "Raises": "error",
}


def page(module: str, about: str, names: dict[str, Any], public: set[Any], told: dict[str, str]) -> str:
    """The page of a module.

    Args:
        module: its name.
        about: what it holds.
        names: its public names, and what they stand for.
        public: the classes of all modules that have an entry somewhere.
        told: of values without a docstring, what they are.
    """
    parts = [f"# {module}", f"Generated from the docstrings of `{module}`. {about}"]
    for name, value in names.items():
        parts += [f"## {name}", *(_of_name(name, value, public) if name not in told else [told[name]])]
    return "\n\n".join(parts) + "\n"


def _of_name(name: str, value: Any, public: set[Any]) -> Iterator[str]:
    if inspect.isclass(value) and value.__name__ != name:
        yield f"Another name of [`{value.__name__}`](#{value.__name__.lower()})."
    elif inspect.isclass(value) and issubclass(value, enum.Enum):
        yield from _told(value)
        yield f"Its members: {', '.join(f'`{one.name}` ({one.value!r})' for one in value)}."
    elif inspect.isclass(value):
        yield from _of_class(name, value, public)
    elif inspect.isfunction(value):
        yield _code(_called(f"{_defined(value)}{name}", _signature(value)))
        yield from _told(value)


def _of_class(name: str, cls: type, public: set[Any]) -> Iterator[str]:
    signature = _constructor(cls)
    if signature is not None:
        yield _code(_called(name, signature))
    yield from _told(cls, inspect.getattr_static(cls, "__init__", None))
    if typing.is_typeddict(cls):
        rows = [(f"`{key}`", f"`{hint(one)}`") for key, one in typing.get_type_hints(cls).items()]
        yield table(("key", "type"), [*rows])
    if issubclass(cls, Metric):
        if "Args" not in sections_of(cls) and cls is not Metric:
            yield "It takes the arguments of [`Metric`](#metric), and those that stand in the signature."
        yield _judged_by(cls)
    for member, value in _members(cls, public):
        if isinstance(value, property):
            yield f"**`{name}.{member}`**"
            yield from _told(value)
        else:
            yield _code(
                _called(
                    f"{_defined(value)}{name}.{member}",
                    _signature(value, bound=not isinstance(value, staticmethod)),
                )
            )
            yield from _told(getattr(value, "__func__", value))


def _told(value: Any, constructor: Any = None) -> Iterator[str]:
    """What a docstring says: prose, then its sections."""
    told = sections_of(value)
    yield from filter(None, [prose(told.pop("", ""))])
    if _inherited(value, "Args"):
        told.setdefault("Args", "")
    more = sections_of(constructor) if inspect.isfunction(constructor) else {}
    for title, text in {**{key: one for key, one in more.items() if key}, **told}.items():
        if title in _SECTIONS and (entries := {**_inherited(value, title), **entries_of(text)}):
            rows = [(f"`{key}`", one) for key, one in entries.items()]
            yield table((_SECTIONS[title], "what it is" if title != "Raises" else "when"), list(rows))
        elif title == "Example":
            yield f"```text\n{text}\n```"
        else:
            yield f"{title}: {' '.join(text.split())}"


def _inherited(value: Any, title: str) -> dict[str, str]:
    """The arguments of a data class that its bases declare, with what their docstrings say of them."""
    if title != "Args" or not (inspect.isclass(value) and issubclass(value, Frozen)):
        return {}
    entries = [entries_of(sections_of(base).get(title, "")) for base in value.__mro__[:0:-1]]
    return {name: text for of_base in entries for name, text in of_base.items() if name in value.model_fields}


def _members(cls: type, public: set[Any]) -> Iterator[tuple[str, Any]]:
    """The methods and properties of a class with a docstring, but for those that a public base tells of."""
    told_elsewhere = {one for base in cls.__mro__[1:] if base in public for one in base.__mro__}
    seen = {name for base in told_elsewhere for name in vars(base)}
    seen.add("model_post_init")  # which pydantic adds
    for base in cls.__mro__:
        if base in told_elsewhere or not base.__module__.startswith("modelgauge"):
            continue
        for name, value in vars(base).items():
            function = getattr(value, "__func__", value)
            told = inspect.isfunction(function) or isinstance(value, property)
            if name.startswith("_") or name in seen or not told or not inspect.getdoc(value):
                continue
            seen.add(name)
            yield name, value


# --- metrics ----------------------------------------------------------------------------------------------


def _judged_by(cls: type[Metric]) -> str:
    """What a metric needs, and when a case passes."""
    needs = cls.required_params if isinstance(cls.required_params, list | tuple) else ()
    rows = [
        ("needs", ", ".join(f"`{one}`" for one in needs) or "what its arguments say"),
        ("judges", f"`{cls.test_case_type.__name__}`" + (", by a judge" if cls.needs_judge else "")),
        ("passes", f"at a score of {'at least' if cls.higher_is_better else 'at most'} `threshold`"),
        ("default threshold", _threshold(cls)),
    ]
    if cls.score_range is not None:
        rows.append(("scores", f"{cls.score_range[0]:g} to {cls.score_range[1]:g}"))
    return table(("of a case", ""), [*rows])


def _threshold(cls: type[Metric]) -> str:
    """Of an object that is made without one, since constructors may have a default of their own."""
    if cls.threshold is not None and math.isnan(cls.threshold):
        return "none: it must be given"
    is_whole = cls not in (Metric, JudgeMetric)  # which are for subclasses
    made = cls("any", **_NEEDED.get(cls.__name__, {})) if is_whole else cls
    return f"{made.threshold:g}"


# --- signatures -------------------------------------------------------------------------------------------


def _constructor(cls: type) -> inspect.Signature | None:
    """How a class is called; None where nobody but the library does."""
    own: Any = inspect.getattr_static(cls, "__init__", None)
    try:
        if "__signature__" in vars(cls) or not inspect.isfunction(own):  # pydantic writes the first
            return inspect.signature(cls)
        return _with_given_types(_signature(own), cls)
    except (TypeError, ValueError):
        return None


def _with_given_types(signature: inspect.Signature, cls: type) -> inspect.Signature:
    """Return a constructor's signature with the types that a class gives to its generic base."""
    given = {
        variable: kind
        for base in cls.__dict__.get("__orig_bases__", ())
        for variable, kind in zip(
            getattr(typing.get_origin(base), "__parameters__", ()), typing.get_args(base), strict=False
        )
    }

    def filled(parameter: inspect.Parameter) -> inspect.Parameter:
        variables = getattr(parameter.annotation, "__parameters__", ())
        if not any(variable in given for variable in variables):
            return parameter
        kinds = tuple(given.get(variable, variable) for variable in variables)
        return parameter.replace(annotation=parameter.annotation[kinds])

    return signature.replace(parameters=[filled(parameter) for parameter in signature.parameters.values()])


def _signature(function: Any, *, bound: bool = True) -> inspect.Signature:
    """The signature of a function, without the first parameter of a method."""
    function = getattr(function, "__func__", function)
    made = inspect.signature(function)
    first = next(iter(made.parameters), "")
    if bound and first in ("self", "cls"):
        made = made.replace(parameters=list(made.parameters.values())[1:])
    return made


def _defined(function: Any) -> str:
    """What stands before a function whose call must be awaited."""
    function = getattr(function, "__func__", function)
    awaited = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    return "async def " if awaited else ""


def _called(name: str, signature: inspect.Signature) -> str:
    """A signature on one line, or with a line for each parameter."""
    parts, by_name = [], False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not by_name:
            by_name = True
            parts.append("*")
        by_name = by_name or parameter.kind is parameter.VAR_POSITIONAL
        parts.append(_parameter(parameter))
    returned = (
        "" if signature.return_annotation in (inspect.Signature.empty, None) else signature.return_annotation
    )
    arrow = f" -> {hint(returned)}" if returned else ""
    line = f"{name}({', '.join(parts)}){arrow}"
    if len(line) <= _WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {part}," for part in parts), f"){arrow}"])


def _parameter(one: inspect.Parameter) -> str:
    stars = "*" if one.kind is one.VAR_POSITIONAL else "**" if one.kind is one.VAR_KEYWORD else ""
    typed = "" if one.annotation is one.empty else f": {hint(one.annotation)}"
    if one.default is one.empty:
        return f"{stars}{one.name}{typed}"
    return f"{stars}{one.name}{typed}{' = ' if typed else '='}{_default(one.default)}"


def _default(value: Any) -> str:
    text = repr(value)
    return "…" if value is ... or text.startswith("<") or len(text) > _WIDTH // 2 else text


def hint(annotation: Any) -> str:
    """A type as its author would write it."""
    if isinstance(annotation, str):
        return annotation.strip('"')
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is not None:
        return _generic(origin, parts)
    named = {type(None): "None", None: "None", Ellipsis: "..."}
    return (
        named.get(annotation) or getattr(annotation, "__name__", None) or str(annotation).rpartition(".")[2]
    )


def _generic(origin: Any, parts: tuple[Any, ...]) -> str:
    if origin is typing.Annotated or origin is typing.Unpack:
        return hint(parts[0])
    if origin in (typing.Union, types.UnionType):
        rest = [part for part in parts if part not in _JUDGES]
        is_judge = len(parts) - len(rest) == len(_JUDGES)  # as they are called in the signatures
        return " | ".join(["JudgeLike", *map(hint, rest)] if is_judge else map(hint, parts))
    if origin is typing.Literal:
        return " | ".join(map(repr, parts))
    if origin is Callable:
        taken = "..." if parts[0] is Ellipsis else f"[{', '.join(map(hint, parts[0]))}]"
        return f"Callable[{taken}, {hint(parts[1])}]"
    return f"{hint(origin)}[{', '.join(map(hint, parts))}]"


def _code(text: str) -> str:
    return f"```text\n{text}\n```"
