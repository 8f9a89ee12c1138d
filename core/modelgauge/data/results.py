"""The result of a run: numbers, `Estimate`s, or one level of named groups of these. `stats` makes them."""

import math
import numbers
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel

from modelgauge.articles import a_thing
from modelgauge.data.estimates import Estimate
from modelgauge.errors import InvalidDataError

PASSED = "passed"
"""The measurement that says whether an item passed all its thresholds; `NAME.passed`, that of one of them."""

GIVEN = "given_outputs"
"""How records call the SUT whose answers were there before the run."""

_ESTIMATE_FIELDS = frozenset(Estimate.model_fields)


def normalized_result(raw: Any) -> dict[str, Any]:
    """What `aggregate_measurements` returned, as a record keeps it.

    Args:
        raw: a mapping or model of numbers, Estimates, or one level of named groups of these.

    Raises:
        InvalidDataError: anything else; the message names the part.
    """
    named = None if isinstance(raw, Estimate) else _fields(raw)
    if named is None:
        raise InvalidDataError(
            f"aggregate_measurements returned {a_thing(raw)}.",
            fix="Return a mapping from names to numbers, Estimates or one level of groups of these "
            '({"accuracy": 0.5}), or a pydantic model of these.',
        )
    return {str(name): _result_value(str(name), value, depth=1) for name, value in named.items()}


def _fields(raw: Any) -> dict[Any, Any] | None:
    if isinstance(raw, BaseModel):
        return {name: getattr(raw, name) for name in [*type(raw).model_fields, *(raw.model_extra or {})]}
    return dict(raw) if isinstance(raw, Mapping) else None


def _result_value(name: str, value: Any, depth: int) -> Any:
    if isinstance(value, Estimate):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)  # a bool too: a result is a number
    group = _fields(value)
    if group is not None and depth:
        return {str(key): _result_value(f"{name}.{key}", part, depth - 1) for key, part in group.items()}
    if group is not None or not hasattr(value, "__float__"):
        raise InvalidDataError(
            f"Result '{name}' is {a_thing(value)}.",
            fix="A result is a number, an Estimate, or one level of named groups of these.",
        )
    return _finite(name, value)


def _finite(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError) as error:  # an array of several numbers
        raise InvalidDataError(
            f"Result '{name}' is {a_thing(value)} that is no number: {error}.",
            fix="Return one number.",
        ) from None
    if not math.isfinite(number):
        raise InvalidDataError(
            f"Result '{name}' is {number}.", fix="Return a finite number, or leave it out."
        )
    return number


def plain_result(result: Mapping[str, Any]) -> dict[str, Any]:
    """A result as JSON data."""
    return {name: _plain(value) for name, value in result.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Estimate):
        return value.model_dump(mode="json")
    return plain_result(value) if isinstance(value, Mapping) else value


def revived_result(result: Mapping[str, Any]) -> dict[str, Any]:
    """A result's JSON data with its Estimates as objects."""
    return {name: _revived(value) for name, value in result.items()}


def _revived(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    # No group is like this: what it holds are numbers and Estimates, never None or a list.
    if value.keys() == _ESTIMATE_FIELDS and isinstance(value["interval"], list | tuple | None):
        return Estimate.model_validate(value)
    return revived_result(value)


Result = Annotated[dict[str, Any], AfterValidator(revived_result)]
"""Names to numbers, `Estimate`s, or one level of named groups of these."""
