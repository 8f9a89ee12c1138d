"""What is said of constructor arguments that do not exist. Nothing is looked at while the arguments are right."""

import functools
import inspect
from collections.abc import Collection
from typing import Any, TypeVar

from modelgauge.errors import ArgumentError
from modelgauge.wording.did_you_mean import did_you_mean

T = TypeVar("T")

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def unbound_arguments(cls: type, error: TypeError, named: Collection[str]) -> ArgumentError:
    """Our error where arguments do not fit a constructor's signature.

    Args:
        cls: what was to be made.
        error: what `inspect.Signature.bind` says.
        named: the names of the arguments that were passed by name.
    """
    known, takes_any = _known(cls)
    unknown = [] if takes_any else [name for name in named if name not in known]
    return _unknown(cls, unknown[0], known) if unknown else _error(cls, str(error), "", known)


def refused_argument(cls: type, error: TypeError, named: Collection[str]) -> ArgumentError | None:
    """Our error where a constructor handed on an argument that nobody takes; None for any other TypeError.

    Args:
        cls: what was to be made.
        error: what the constructor raised.
        named: as above.
    """
    known, takes_any = _known(cls)
    for name in () if takes_any else named:
        if name not in known and f"unexpected keyword argument '{name}'" in str(error):
            return _unknown(cls, name, known)
    return None


def explains_arguments(cls: type[T]) -> type[T]:
    """Decorate a class whose constructor is to say, in our words, what it does not take.

    It raises ArgumentError then; its other TypeErrors stay as they are.
    """
    written = cls.__init__

    @functools.wraps(written)
    def __init__(self: T, *args: Any, **kwargs: Any) -> None:  # noqa: N807  # it becomes one
        __tracebackhide__ = True  # pytest shows whose line it is
        try:
            written(self, *args, **kwargs)
        except TypeError:
            try:
                inspect.signature(written).bind(self, *args, **kwargs)
            except TypeError as unbound:
                raise unbound_arguments(type(self), unbound, kwargs) from None
            raise

    cls.__init__ = __init__  # type: ignore[assignment]  # as its signature says, it takes all
    return cls


def _unknown(cls: type, name: str, known: list[str]) -> ArgumentError:
    return _error(cls, f"there is no argument '{name}'", did_you_mean(name, known), known)


def _error(cls: type, problem: str, suggestion: str, known: list[str]) -> ArgumentError:
    return ArgumentError(
        f"{cls.__qualname__}: {problem}.", fix=f"{suggestion}The arguments are: {', '.join(known)}."
    )


def _known(cls: type) -> tuple[list[str], bool]:
    """The names that a constructor takes, those that `**kwargs` hands on included; whether it takes any other."""
    names: dict[str, None] = {}
    takes_any = False
    for base in cls.__mro__[:-1]:
        if "__init__" not in vars(base):
            continue
        parameters = list(inspect.signature(vars(base)["__init__"]).parameters.values())[1:]
        names.update((one.name, None) for one in parameters if one.kind in _BY_NAME)
        takes_any = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters)
        if not takes_any:
            break
    return list(names), takes_any
