"""What can be known of an observed app before it is used: which metrics judge it, and whether they can.

An app is followed through the functions that its code names. What it picks at run time stays unknown; then nothing
is refused here that it might still say.
"""

import functools
import inspect
from collections.abc import Iterator, Sequence
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from modelgauge.data.test_cases import Golden
from modelgauge.errors import InvalidDataError
from modelgauge.evals.dataset_test import check_references, keyed
from modelgauge.evals.tracing import update_current_span, update_current_trace
from modelgauge.metrics.base import Metric
from modelgauge.spans import is_observed, metrics_of_observed

_TELLING = (update_current_span, update_current_trace)
_MOST_FUNCTIONS = 2_000


class Outlook:
    """What the code of an app tells of it.

    Args:
        app: an observed function, or an object that is called.
    """

    def __init__(self, app: Any) -> None:
        self.of_whole: tuple[Any, ...] = metrics_of_observed(app)
        reached = list(_reached(app))
        self.is_whole = 0 < len(reached) < _MOST_FUNCTIONS
        """Whether all of it could be followed."""
        self.says_more = not self.is_whole or any(one in _TELLING for one in reached)
        """Whether it may say more of its test cases when it runs, references too."""
        self.names_metrics = not self.is_whole or update_current_span in reached
        """Whether it may name further metrics when it runs."""
        self.judges_parts = any(metrics_of_observed(one) for one in reached if is_observed(one))
        """Whether a function that it reaches, itself included, has metrics of its own."""


def check_goldens(goldens: Sequence[Golden]) -> None:
    """Refuse what no app can be asked.

    Raises:
        InvalidDataError: something is no single-turn golden, or was edited into none.
    """
    for golden in goldens:
        if not isinstance(golden, Golden):
            raise InvalidDataError(
                f"observed_callback answers a Golden, and got a {type(golden).__name__}.",
                fix="Give single-turn goldens; make test cases of conversations: golden.to_test_case(turns).",
            )
        golden.check()


def check_metrics(
    goldens: Sequence[Golden], metrics: Sequence[Metric], outlook: Outlook, *, skip: bool
) -> None:
    """Refuse metrics that could not judge whatever the app answers.

    Args:
        goldens: what the app will be asked.
        metrics: of each answer as a whole.
        outlook: of the app.
        skip: whether metrics that lack a parameter are left out.

    Raises:
        InvalidDataError: something among them is no metric.
        MissingParameterError: a golden lacks a reference that a metric needs.
    """
    if metrics:
        keyed(metrics)
    if goldens and not skip and not outlook.says_more:
        check_references(goldens, metrics)


def _reached(app: Any) -> Iterator[Any]:
    """The functions that an app's code names, and those that theirs names, the app's own first."""
    waiting, seen = [app], set[int]()
    while waiting and len(seen) < _MOST_FUNCTIONS:
        function = waiting.pop()
        if id(function) in seen:
            continue
        seen.add(id(function))
        yield function
        if function in _TELLING:
            continue
        plain, owner = _plain(function)
        if isinstance(plain, FunctionType):
            waiting += _named_by(plain, owner)


def _plain(called: Any) -> tuple[Any, Any]:
    """The function that an author wrote, and the object whose method it is."""
    owner: Any = None
    while isinstance(called, functools.partial):
        called = called.func
    if isinstance(called, MethodType):
        called, owner = called.__func__, called.__self__
    elif not isinstance(called, FunctionType):
        called, owner = vars(type(called)).get("__call__", called), called
    return inspect.unwrap(called), owner


def _named_by(function: FunctionType, owner: Any) -> list[Any]:
    """The functions among what a function's code names, in modules and objects that it names, too."""
    names = _names_in(function.__code__)
    held = [function.__globals__.get(name) for name in names]
    held += [owner, *map(_content, function.__closure__ or ())]
    for _ in range(2):  # `self.agent.run`: an object, its part, the function of that
        places = [one for one in held if one is not None and not isinstance(one, FunctionType)]
        held += [inspect.getattr_static(one, name, None) for one in places for name in names]
    for _ in range(2):  # a tool in a list, and its methods
        held += [part for one in held for part in _parts(one)]
    opened = [one.__func__ if isinstance(one, staticmethod | classmethod) else one for one in held]
    return [one for one in opened if isinstance(one, FunctionType | MethodType | functools.partial)]


def _parts(one: Any) -> list[Any]:
    """What a list or mapping holds, such as the tools of an agent; of a class, the methods that are observed."""
    if isinstance(one, dict):
        return list(one.values())
    if isinstance(one, list | tuple):
        return list(one)
    if isinstance(one, FunctionType | ModuleType):
        return []
    return [part for part in vars(one if isinstance(one, type) else type(one)).values() if is_observed(part)]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it has none yet
        return None


def _names_in(code: CodeType) -> set[str]:
    inner = (one for one in code.co_consts if isinstance(one, CodeType))
    return set(code.co_names).union(*map(_names_in, inner))
