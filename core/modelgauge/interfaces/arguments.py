"""The errors of wrong arguments of constructors and methods. Right arguments cost nothing here."""

import functools
import inspect
from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeAlias, TypeVar, cast

from modelgauge.errors import ArgumentError
from modelgauge.wording.did_you_mean import did_you_mean

T = TypeVar("T", bound=Callable[..., Any])

Callee: TypeAlias = type | Callable[..., Any]

BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def unbound_arguments(callee: Callee, error: TypeError, named: Collection[str]) -> ArgumentError:
    """Make our error of arguments that do not fit the signature of a constructor or method.

    Args:
        callee: the class that was to be made, or the method.
        error: that `inspect.Signature.bind` raised.
        named: the names of the arguments that were passed by name.
    """
    known, takes_any = _parameter_names(callee)
    unknown = [] if takes_any else [name for name in named if name not in known]
    if unknown:
        return _unknown_argument(callee, unknown[0], known)
    suggestion = ""
    if "too many positional" in str(error):
        written: Any = callee.__init__ if isinstance(callee, type) else callee  # type: ignore[misc]  # as it is there
        parameters = inspect.signature(written).parameters
        by_position = [name for name in known if name in parameters and parameters[name].kind is BY_NAME[0]]
        if by_position and len(by_position) < len(known):
            suggestion = f"Name all but {', '.join(by_position)}. "
    return _error(callee, str(error), suggestion, known)


def refused_argument(cls: type, error: TypeError, named: Collection[str]) -> ArgumentError | None:
    """Turn the TypeError of an argument that no constructor takes into our error; None for any other TypeError.

    Args:
        cls: what was to be made.
        error: what the constructor raised.
        named: the names of the arguments that were passed by name.
    """
    known, takes_any = _parameter_names(cls)
    for name in () if takes_any else named:
        if name not in known and f"unexpected keyword argument '{name}'" in str(error):
            return _unknown_argument(cls, name, known)
    return None


def explains_arguments(target: T) -> T:
    """Decorate a method or a class, so that wrong arguments raise our error.

    The error is an ArgumentError; other TypeErrors pass as they are.
    """
    written: Any = target.__init__ if isinstance(target, type) else target  # type: ignore[misc]  # as it is there

    @functools.wraps(written)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True  # pytest shows whose line it is
        try:
            return written(self, *args, **kwargs)
        except TypeError:
            try:
                inspect.signature(written).bind(self, *args, **kwargs)
            except TypeError as unbound:
                callee = type(self) if isinstance(target, type) else called
                raise unbound_arguments(callee, unbound, kwargs) from None
            raise

    if not isinstance(target, type):
        return cast("T", called)
    target.__init__ = called  # type: ignore[misc]  # as its signature says, it takes all
    return target


def unfit_signature(cls: type, name: str, declared: Callable[..., Any]) -> tuple[str, str] | None:
    """Compare the signature of a method with that of its interface.

    Args:
        cls: the class that defines the method.
        name: of the method.
        declared: the method of the interface, by whose parameters it is called.

    Returns:
        A problem and its fix; None if the method takes what it is called with.
    """
    parameters = list(inspect.signature(declared).parameters)
    is_bound = isinstance(inspect.getattr_static(cls, name), staticmethod | classmethod)
    try:
        # A decorator may pass arguments of its own, so what it wraps does not count.
        inspect.signature(getattr(cls, name), follow_wrapped=False).bind(*parameters[is_bound:])
    except ValueError:  # it has no signature
        return None
    except TypeError:
        problem = f"{name} cannot be called with ({', '.join(parameters[1:])})."
        return problem, f"Write {signature_line(declared)}."
    return None


def signature_line(function: Callable[..., Any]) -> str:
    """Return the first line of a method's definition, without types."""
    return f"def {function.__name__}({', '.join(inspect.signature(function).parameters)})"


def _unknown_argument(cls: Callee, name: str, known: list[str]) -> ArgumentError:
    return _error(cls, f"there is no argument '{name}'", did_you_mean(name, known), known)


def _error(cls: Callee, problem: str, suggestion: str, known: list[str]) -> ArgumentError:
    return ArgumentError(
        f"{cls.__qualname__}: {problem}.", fix=f"{suggestion}The arguments are: {', '.join(known)}."
    )


def _parameter_names(cls: Callee) -> tuple[list[str], bool]:
    """Return the names that a constructor takes, including those passed on by `**kwargs`, and whether it takes any
    other.

    Of a method those of its signature.
    """
    if not isinstance(cls, type):
        return [name for name in inspect.signature(cls).parameters if name != "self"], False
    names: dict[str, None] = {}
    takes_any = False
    for _, parameters, takes_any in constructors(cls):  # noqa: B007  the last one says
        names.update((parameter.name, None) for parameter in parameters if parameter.kind in BY_NAME)
    return list(names), takes_any


def constructors(
    target: Callee,
) -> Iterator[tuple[Callable[..., Any], list[inspect.Parameter], bool]]:
    """Yield the constructor of a class and those that its `**kwargs` are passed on to, or another callable.

    Each with its parameters without `self`, and whether it takes any other name.
    """
    inits: list[Any] = [target]
    if isinstance(target, type):
        inits = [vars(base)["__init__"] for base in target.__mro__[:-1] if "__init__" in vars(base)]
    for function in inits:
        parameters = list(inspect.signature(function).parameters.values())[isinstance(target, type) :]
        takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
        yield function, parameters, takes_any
        if not takes_any:
            return
