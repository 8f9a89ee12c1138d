"""`log_hyperparameters`: what an app was set to (model, prompt template, chunk size), kept with its results.

A test file calls it once; every later run of this process records the values.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

from modelgauge.data.json_values import check_exact
from modelgauge.errors import DefinitionError, InvalidDataError
from modelgauge.wording.phrases import a_thing

F = TypeVar("F", bound=Callable[[], Mapping[str, Any]])

_logged: dict[str, Any] = {}


@overload
def log_hyperparameters(function: F) -> F: ...
@overload
def log_hyperparameters(**hyperparameters: Any) -> Callable[[F], F]: ...
def log_hyperparameters(function: Callable[[], Any] | None = None, **hyperparameters: Any) -> Any:
    """Record hyperparameters: those that a function returns, and those that are given to the decorator.

        @log_hyperparameters(model="gpt-4", prompt_template="…")
        def hyperparameters():
            return {"temperature": 1, "chunk size": 500}

    The function is called once, at its definition, so that a mistake in it shows there.

    Args:
        function: returns a dict, which may be empty; the decorated function, if there are no parentheses.
        hyperparameters: more of them by name (model, prompt_template); the function's values replace them.

    Raises:
        DefinitionError: what is decorated is not a function.
        InvalidDataError: the function returned no dict, or something that JSON would change.
    """

    def decorated(target: Callable[[], Any]) -> Callable[[], Any]:
        if not callable(target):
            raise DefinitionError(
                f"@log_hyperparameters got {a_thing(target)}, not a function.",
                fix="Decorate a function that returns a dict, or {} where there is nothing to add.",
            )
        if inspect.iscoroutinefunction(target):
            raise DefinitionError(
                "@log_hyperparameters got an async function, and nothing waits for it.",
                fix="Write def, without async.",
            )
        _logged.update({**_checked(hyperparameters), **_checked(target())})
        return target

    return decorated if function is None else decorated(function)


def _checked(hyperparameters: Any) -> dict[str, Any]:
    """Hyperparameters as a record keeps them.

    Raises:
        InvalidDataError: they are no mapping, or JSON would change them.
    """
    if not isinstance(hyperparameters, Mapping):
        raise InvalidDataError(
            f"Hyperparameters are {a_thing(hyperparameters)}, not a dict.",
            fix='Return a dict: {"temperature": 0.2}, or {} where there is nothing to add.',
        )
    made: dict[str, Any] = check_exact(dict(hyperparameters), "hyperparameters")
    return made


def logged_hyperparameters(others: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The hyperparameters that were logged in this process, with others laid over them."""
    return {**_logged, **_checked(others or {})}


def forget_hyperparameters() -> None:
    """Forget what was logged: for several experiments in one process, and between tests."""
    _logged.clear()
