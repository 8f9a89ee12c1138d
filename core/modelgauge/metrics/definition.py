"""Validation of metric classes, arguments and names, with the error messages for them.

Nothing here runs while cases are judged.
"""

import inspect
import logging
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from functools import cache, lru_cache, partial, update_wrapper, wraps
from numbers import Real
from typing import Any, TypedDict, TypeVar, cast, get_args

from modelgauge.config.options import YES_NO, Values, one_of
from modelgauge.data.thresholds import PASSED
from modelgauge.errors import (
    ArgumentError,
    DefinitionError,
    InvalidOptionError,
    InvalidResponseError,
    ModelGaugeError,
)
from modelgauge.interfaces.arguments import refused_argument
from modelgauge.metrics.judges import Combine, JudgeLike
from modelgauge.plugins.names import decode
from modelgauge.wording.did_you_mean import known_names
from modelgauge.wording.phrases import beginning

EnumT = TypeVar("EnumT", bound=StrEnum)
F = TypeVar("F", bound=Callable[..., Any])

log = logging.getLogger(__name__)


class MetricSettings(TypedDict, total=False):
    """The arguments that every metric takes by name; see `Metric`."""

    threshold: float | None
    strict_mode: bool
    include_reason: bool
    model: JudgeLike | Sequence[JudgeLike] | None
    combine: Combine
    async_mode: bool
    verbose_mode: bool


def check_names(owner: str, attribute: str, names: object, known: Collection[str], fix: str = "") -> None:
    """Refuse a declaration that names what is not there, so that it would fail for every case.

    Args:
        owner: the class, or the part of it, that has the declaration.
        attribute: what the declaration is called.
        names: what it names; if it is not a text, list or tuple (a property, say), mistakes are found out later.
        known: what there is: fields of its test cases, by default.
        fix: for another name, in which `{name}` stands for it; by default it lists what there is.

    Raises:
        DefinitionError: it is one text, or names something else.
    """
    if isinstance(names, str):
        raise DefinitionError(
            f"{attribute} of {owner} is one text, {names!r}.",
            fix=f"Write a tuple, with its comma: {attribute}=({names!r},).",
        )
    what = "an attribute of the metric" if fix else "a field of its test cases"
    for name in names if isinstance(names, list | tuple) else ():
        if name not in known:
            raise DefinitionError(
                f"{attribute} of {owner} names {name!r}, which is not {what}.",
                fix=fix.format(name=name) or known_names(str(name), known, "The fields are"),
            )


def refused_call(
    cls: type, error: TypeError, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> ModelGaugeError | None:
    """Return an error that explains why a metric cannot be created from its arguments; None for any other TypeError.

    Args:
        cls: the metric's class.
        error: what making it raised.
        args: given by position.
        kwargs: given by name.
    """
    first = args[0] if args else None
    takes_uid = "uid" in inspect.signature(cls.__init__).parameters  # type: ignore[misc]  # of the class, whatever it is
    if isinstance(error, DefinitionError) and type(first) in (int, float) and takes_uid:
        return InvalidOptionError(
            f"{cls.__qualname__} got {first!r} as its name.",
            fix=f"Name the argument: {cls.__qualname__}(threshold={first!r}).",
        )
    if takes_uid and "missing" in str(error) and (missing := _missing(cls, kwargs)):
        return ArgumentError(
            f"{cls.__qualname__} needs {' and '.join(missing)}.",
            fix=f"Name the argument: {cls.__qualname__}({missing[0]}={'…' if first is None else repr(first)}).",
        )
    return error if isinstance(error, ArgumentError) else refused_argument(cls, error, kwargs)


def _missing(cls: type, kwargs: Mapping[str, Any]) -> list[str]:
    """Return the required keyword-only arguments that are missing."""
    parameters = inspect.signature(cls.__init__).parameters.values()  # type: ignore[misc]  # as above
    must = [
        parameter.name
        for parameter in parameters
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty
    ]
    return [name for name in must if name not in kwargs]


def check_settings(metric: Any) -> None:
    """Refuse a metric whose settings are wrong.

    Raises:
        InvalidOptionError: a setting is of a wrong type, or lets all cases pass, or none.
    """
    name = type(metric).__name__
    _check_threshold(name, metric.threshold, metric.score_range)
    YES_NO.check(f"{name}.strict_mode", metric.strict_mode)
    YES_NO.check(f"{name}.include_reason", metric.include_reason)
    if metric.strict_mode and metric.best_score is None:
        raise InvalidOptionError(
            f"{name} has no perfect score, so it cannot be strict.", fix="Give a threshold instead."
        )
    one_of(*get_args(Combine)).check(f"{name}.combine", metric.combine)


def _is_finite(number: Any) -> bool:
    try:
        return math.isfinite(number)
    except (OverflowError, ValueError):  # an int beyond all floats; a signaling NaN
        return False


def _check_threshold(name: str, threshold: Any, score_range: tuple[float, float] | None) -> None:
    if threshold is None:
        return
    if isinstance(threshold, bool) or not isinstance(threshold, Real) or not _is_finite(threshold):
        raise InvalidOptionError(
            f"{name} got threshold={beginning(repr(threshold), 60)}.",
            fix="Give a number, such as threshold=0.7, or None for scores without a verdict.",
        )
    lowest, highest = score_range or (-math.inf, math.inf)
    if not lowest <= float(threshold) <= highest:
        are = (
            f"lie between {lowest:g} and {highest:g}" if math.isfinite(highest) else f"are {lowest:g} or more"
        )
        raise InvalidOptionError(
            f"{name} got threshold={threshold!r}, and its scores {are}.",
            fix="Give one that they can reach, such as threshold=0.7: else every case would pass, or none would.",
        )


def without_judge(cls: type) -> DefinitionError:
    """Return the error for a metric that asks a judge although its class does not declare that it needs a judge.

    Args:
        cls: the metric's class.
    """
    return DefinitionError(
        f"{cls.__qualname__} asks a judge, and has none.",
        fix=f"Write needs_judge = True in the class {cls.__qualname__}, so that one is looked for.",
    )


def finite(made: Any, metric: str) -> float:
    """Convert what a `score` returned to a float: a number of Python's or numpy's, bools included.

    Args:
        made: what it returned.
        metric: its name.

    Raises:
        InvalidResponseError: it is not a finite number.
    """
    kind = type(made)
    # A bool of numpy is no `Real`.
    is_numpy_bool = kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_")
    if (is_numpy_bool or isinstance(made, Real | Decimal)) and _is_finite(made):
        return float(made)
    raise InvalidResponseError(
        f"score of {metric} returned {beginning(repr(made), 200)}, which is not a finite number.",
        fix="Return a number or a Score, or raise where the case cannot be judged.",
    )


_RETURNED = {
    "reason": "score.reason",
    "success": "metric.is_successful(score)",
    "score_breakdown": "score.breakdown",
    "evaluation_cost": "score.cost",
}
"""Attributes that other libraries store on a metric, and where to find them here."""


def not_in_a_metric(cls: type, name: str) -> str:
    """Return the message for an attribute that a metric does not have.

    Args:
        cls: the metric's class.
        name: of the attribute.
    """
    if name == "a_measure":
        return (
            "A metric has no 'a_measure'. `metric.measure(case)` works in a running loop too; "
            "for many cases at once: evaluate(cases, [metric])."
        )
    if name in _RETURNED:
        return (
            f"A metric keeps nothing of the cases that it judges, so it has no {name!r}. "
            f"What was found is returned: score = metric.measure(case); {_RETURNED[name]}."
        )
    return f"{cls.__name__!r} object has no attribute {name!r}"


def needs_a_score(method: F) -> F:
    """Let a method that takes a score explain how to get the score when it is called without a score."""

    @wraps(method)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not (args or kwargs):
            raise TypeError(not_in_a_metric(type(self), "success"))
        return method(self, *args, **kwargs)

    return cast("F", checked)


class ScoreMethod:
    """The method `score` of a metric's class; used as a number, `metric.score` says where the score is.

    Args:
        function: what the class defines.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)  # type: ignore[arg-type]  # it takes any object
        self.function = function

    def __get__(self, metric: Any, cls: type) -> Callable[..., Any]:
        return self.function if metric is None else _BoundScore(self.function, metric)


class _BoundScore(partial[Any]):
    def _is_no_number(self, *_: object) -> Any:
        raise TypeError(
            "metric.score is the method that judges a case, and no number. What was found is returned: "
            "score = metric.measure(case); score.value."
        )

    __lt__ = __le__ = __gt__ = __ge__ = __float__ = __int__ = __bool__ = __round__ = __format__ = (
        _is_no_number
    )
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _is_no_number

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Real):
            self._is_no_number()
        return isinstance(other, _BoundScore) and (self.func, self.args) == (other.func, other.args)

    def __hash__(self) -> int:
        return hash((self.func, self.args))


_OF_SCORES = {
    **dict.fromkeys(
        ("reason", "score_breakdown", "evaluation_cost"), "Score(value, reason=…, breakdown=…, cost=…)"
    ),
    **dict.fromkeys(("success", "error"), "the score alone, or raise where there is none"),
}
"""Attributes that `score` or `measure` of other libraries set, and what to return here instead."""


class Unchanging:
    """Base of objects whose public attributes cannot change once they are sealed; methods can."""

    _is_sealed: bool = False

    def __setattr__(self, name: str, value: Any) -> None:
        is_setting = not name.startswith("_") and not callable(getattr(type(self), name, None))
        if self._is_sealed and is_setting:
            own = type(self).__name__
            fix = (
                f"What is found of a case is returned: return {_OF_SCORES[name]}."
                if name in _OF_SCORES
                else f"Make another one: {own}({name}={value!r})."
            )
            raise AttributeError(f"A metric does not change: {own}.{name} cannot be set. {fix}")
        super().__setattr__(name, value)


def parse_members(kinds: type[EnumT], given: Any, metric: str, *, least: int = 0) -> tuple[EnumT, ...]:
    """Return the members of an enum named by a metric's `evaluation_params`.

    Args:
        kinds: the enum, whose values are texts.
        given: its members, or their values.
        metric: the class whose argument it is, for the message.
        least: how many there must be.

    Raises:
        InvalidOptionError: it is not a list, or holds something else or too few.
    """
    known = [str(kind.value) for kind in kinds]
    is_several = isinstance(given, Iterable) and not isinstance(given, str)
    named = [str(name) for name in given] if is_several else given
    example = str(given) if given in known else known[0]
    Values(
        f"a list of: {', '.join(known)}. For example: evaluation_params=[{example!r}]",
        lambda names: isinstance(names, list) and len(names) >= least and set(names) <= {*known},
    ).check(f"{metric}.evaluation_params", named)
    return tuple(map(kinds, named))


@cache
def say_once(note: str) -> None:
    """Log a warning about behaviour that may surprise users, once in a process.

    Args:
        note: in a sentence or more.
    """
    log.warning(note)


@lru_cache(maxsize=1024)  # of metrics that are made for each case
def make_name(cls: type, uid: str, default: str) -> str:
    """Return the name of a metric in reports: its class, or the name in its uid.

    Args:
        cls: the metric's class.
        uid: of the metric.
        default: the uid of those that are given no name.

    Raises:
        InvalidOptionError: results call something else so: whether a metric has passed, or all have.
    """
    given = _name_in_uid(uid) or uid.partition("?")[0]
    if given == PASSED or given.endswith(f".{PASSED}"):
        raise InvalidOptionError(
            f"{cls.__qualname__} got {given!r} as its name, and results call so whether a case has passed.",
            fix=f"Choose a name that is not '{PASSED}' and does not end in '.{PASSED}'.",
        )
    return cls.__name__ if given == default else given


def _name_in_uid(uid: str) -> str | None:
    """Return the option `name` of a uid such as `g_eval?name=Kindness&criteria=…`; None if there is none."""
    for option in uid.partition("?")[2].split("&"):
        key, _, value = option.partition("=")
        if key == "name" and value:
            return decode(value)
    return None
