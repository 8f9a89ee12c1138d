"""How metrics are defined, made and named: what is said where a class or a call of one is wrong.

Nothing here runs while cases are judged.
"""

import inspect
import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

from modelgauge.data.results import PASSED
from modelgauge.did_you_mean import did_you_mean
from modelgauge.errors import ArgumentError, DefinitionError, InvalidOptionError, ModelGaugeError
from modelgauge.interfaces.arguments import refused_argument
from modelgauge.names import decode
from modelgauge.shortening import beginning

if TYPE_CHECKING:
    from modelgauge.metrics.base import Metric


def check_required_params(cls: type, names: object, fields: Sequence[str]) -> None:
    """Refuse a class whose `required_params` no case could have.

    Args:
        cls: the class that is defined.
        names: its `required_params`; what is no text, list or tuple (a property, say) is found out later.
        fields: those of the test cases that it judges.

    Raises:
        DefinitionError: it is one text, or names what is no field.
    """
    if isinstance(names, str):
        raise DefinitionError(
            f"{cls.__qualname__}.required_params is one text, {names!r}.",
            fix=f"Write a tuple, with its comma: required_params = ({names!r},).",
        )
    for name in names if isinstance(names, list | tuple) else ():
        if name not in fields:
            raise DefinitionError(
                f"{cls.__qualname__}.required_params names {name!r}, which is no field of its test cases.",
                fix=f"{did_you_mean(str(name), fields)}The fields are: {', '.join(fields)}.",
            )


def refused_call(
    cls: type, error: TypeError, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> ModelGaugeError | None:
    """Our error where a metric cannot be made of such arguments; None for any other TypeError.

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
    return error if isinstance(error, ArgumentError) else refused_argument(cls, error, kwargs)


def check_settings(metric: "Metric") -> None:
    """Refuse a metric that was made with what cannot be.

    Raises:
        InvalidOptionError: a setting is of a wrong type, or lets all cases pass, or none.
    """
    name = type(metric).__name__
    _check_threshold(name, metric.threshold, metric.score_range)
    for setting in ("strict_mode", "include_reason"):
        value = getattr(metric, setting)
        if not isinstance(value, bool):
            raise InvalidOptionError(f"{name} got {setting}={value!r}.", fix="Give True or False.")
    if metric.strict_mode and metric.best_score is None:
        raise InvalidOptionError(
            f"{name} has no perfect score, so it cannot be strict.", fix="Give a threshold instead."
        )
    if metric.combine not in ("mean", "majority"):
        raise InvalidOptionError(f"{name} got combine={metric.combine!r}.", fix="Give 'mean' or 'majority'.")


def _is_finite(number: Any) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # an int beyond all floats
        return False


def _check_threshold(name: str, threshold: Any, score_range: tuple[float, float] | None) -> None:
    if isinstance(threshold, bool) or not isinstance(threshold, Real) or not _is_finite(threshold):
        raise InvalidOptionError(
            f"{name} got threshold={beginning(repr(threshold), 60)}.",
            fix="Give a number, such as threshold=0.7.",
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
    """The error of a metric that asks a judge, and of which nobody can know that it needs one.

    Args:
        cls: the metric's class.
    """
    return DefinitionError(
        f"{cls.__qualname__} asks a judge, and has none.",
        fix=f"Write needs_judge = True in the class {cls.__qualname__}, so that one is looked for.",
    )


_RETURNED = {
    "reason": "score.reason",
    "success": "metric.is_successful(score)",
    "score_breakdown": "score.breakdown",
    "evaluation_cost": "score.cost",
}
"""What other libraries leave in a metric, and where it is here."""


def not_in_a_metric(cls: type, name: str) -> str:
    """What to say of an attribute that is looked for in a metric, and is not there.

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


def name_of(cls: type, uid: str, default: str) -> str:
    """What reports call a metric: the class, or the name that its uid gives.

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
    """The name that options give to a metric, `g_eval?name=Kindness&criteria=…`; None where they give none."""
    for option in uid.partition("?")[2].split("&"):
        key, _, value = option.partition("=")
        if key == "name" and value:
            return decode(value)
    return None
