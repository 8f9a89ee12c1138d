"""`Estimate` for a set of items, `Score` for one answer: their uncertainty, their texts, the thresholds they pass."""

import math
import operator
from collections.abc import Callable
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import FiniteFloat

from modelgauge.data.base import Count, Frozen, Text
from modelgauge.data.responses import JsonObject
from modelgauge.wording.figures import between, ever_longer, exact, figure, width


class Estimate(Frozen):
    """A value with its error bar and bounds.

    Args:
        value: the estimate.
        n: how many items it rests on.
        stderr: its standard error; None if it cannot be known (one item, say, or values that are all equal).
        interval: its 95 % confidence interval, (low, high).
        bounds: (worst, best): the value if every missing item (it could not be scored, or a stopped run did not reach
            it) were worst, or best; None if the test declares no range for the measurement, or the number of missing
            items is unknown. Where lower values are better, the worst is the higher one.
        bounds_interval: (low, high): the 95 % confidence interval whatever the missing items would have scored; None
            if none is missing, or the bounds are unknown.
        reduction: how the repeats of an item became one number, where that is not their mean: "pass@2".
        interval_kind: the method of the interval, such as "wilson"; None if there is no interval.
        n_clusters: how many independent clusters the items form; None if every item is its own cluster.
    """

    positional_fields: ClassVar[tuple[str, ...]] = ("value", "n", "stderr", "interval", "bounds")

    value: FiniteFloat
    n: Count
    stderr: FiniteFloat | None = None
    interval: tuple[FiniteFloat, FiniteFloat] | None = None
    bounds: tuple[FiniteFloat, FiniteFloat] | None = None
    reduction: Text | None = None
    interval_kind: Text | None = None
    n_clusters: Count | None = None
    bounds_interval: tuple[FiniteFloat, FiniteFloat] | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            value: float,
            n: int,
            stderr: float | None = None,
            interval: tuple[float, float] | None = None,
            bounds: tuple[float, float] | None = None,
            *,
            reduction: str | None = None,
            interval_kind: str | None = None,
            n_clusters: int | None = None,
            bounds_interval: tuple[float, float] | None = None,
        ) -> None: ...

    def __float__(self) -> float:
        return self.value


def _of_value(operation: Callable[..., Any], *, turned: bool = False) -> Any:
    """Create a method that applies an operation to the value; with `turned`, the value is the right operand."""
    if turned:
        return lambda self, other: operation(other, self.value)
    return lambda self, *others: operation(self.value, *others)


def _comparison(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], bool]:
    return lambda self, other: bool(operation(self.value, other))


class _Numeric(Real):
    """A real number to Python and to all that asks for one: `statistics`, `math`, `round`, `pytest.approx`.

    Whoever inherits it has a `value`. What is calculated with it is a plain number. Equality and hash are its own.
    """

    __slots__ = ()

    value: float

    def __float__(self) -> float:
        return self.value

    def as_integer_ratio(self) -> tuple[int, int]:
        """Return the value as a fraction, as a float does: `statistics` needs it."""
        return self.value.as_integer_ratio()

    __trunc__, __floor__, __ceil__ = _of_value(math.trunc), _of_value(math.floor), _of_value(math.ceil)
    __int__, __round__, __abs__ = _of_value(int), _of_value(round), _of_value(abs)
    __neg__, __pos__ = _of_value(operator.neg), _of_value(operator.pos)

    __lt__, __le__ = _comparison(operator.lt), _comparison(operator.le)
    __gt__, __ge__ = _comparison(operator.gt), _comparison(operator.ge)

    # With another `_Numeric` on the right, Python asks that one for its share of the work.
    __add__, __radd__ = _of_value(operator.add), _of_value(operator.add, turned=True)
    __sub__, __rsub__ = _of_value(operator.sub), _of_value(operator.sub, turned=True)
    __mul__, __rmul__ = _of_value(operator.mul), _of_value(operator.mul, turned=True)
    __truediv__, __rtruediv__ = _of_value(operator.truediv), _of_value(operator.truediv, turned=True)
    __floordiv__, __rfloordiv__ = _of_value(operator.floordiv), _of_value(operator.floordiv, turned=True)
    __mod__, __rmod__ = _of_value(operator.mod), _of_value(operator.mod, turned=True)
    __pow__, __rpow__ = _of_value(operator.pow), _of_value(operator.pow, turned=True)


class Score(Frozen, _Numeric):
    """A metric's judgement of one answer: a number and its reason.

    It compares and calculates like its value: `score == 0.5`, `score + 1`, `max(scores)`; what is calculated is a
    plain number. Two scores are equal only where all their fields are.

    Args:
        value: usually 0 to 1.
        reason: why, for people.
        breakdown: named parts of the value.
        cost: US dollars paid for it, where known.
    """

    positional_fields: ClassVar[tuple[str, ...]] = ("value", "reason", "breakdown", "cost")
    comes_back: ClassVar[bool] = True

    value: FiniteFloat
    reason: Text | None = None
    breakdown: JsonObject | None = None
    cost: FiniteFloat | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            value: float,
            reason: str | None = None,
            breakdown: dict[str, Any] | None = None,
            cost: float | None = None,
        ) -> None: ...

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) if isinstance(other, Score) else self.value == other

    def __hash__(self) -> int:  # type: ignore[override]  # typeshed has none for `numbers`, whose numbers have one
        return hash(self.value)  # as that of the numbers that it equals

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else str(self)


_TOLERANCE = 1e-9
"""Far above the noise of floats, and far below a difference that a score could mean."""


def reaches(value: float, threshold: float, *, higher_is_better: bool) -> bool:
    """Return whether a value passes a threshold. All such comparisons use this function.

    Args:
        value: a score, or another measurement.
        threshold: the least that passes, or the most; a value within 1e-9 of it passes.
        higher_is_better: the direction.
    """
    beyond = value - threshold if higher_is_better else threshold - value
    return beyond >= -_TOLERANCE


# --- their texts ---------------------------------------------------------------------------------

_EXACT = "exact, no interval"  # all items were measured that it is about


def value_text(value: Any) -> str:
    """Return a result as text, with its standard error if that is known; empty for None."""
    if isinstance(value, Estimate):
        if not value.stderr:  # an error of 0 says that it is not known, or that there is none
            return figure(value.value, uncertainty(value))
        return f"{figure(value.value, value.stderr)} ± {figure(value.stderr, value.stderr)}"
    return "" if value is None else figure(value)


def interval_text(value: Any) -> str:
    """Format the 95 % interval of a result; empty if it has none."""
    if not isinstance(value, Estimate):
        return ""
    return _EXACT if value.interval_kind == "exact" else between(value.interval, uncertainty(value))


def uncertainty(value: Estimate) -> float:
    """Return the uncertainty that determines the number of digits: the standard error, or else the width of the
    interval.
    """
    return value.stderr or width(value.interval)


def figure_beside(value: float, threshold: float | None) -> str:
    """Return a number with as many digits as keep it on its side of a threshold, if there is one."""
    if threshold is None:
        return figure(value)
    own = _sides(value, threshold)
    longer = (text for text in ever_longer(value) if _sides(float(text.replace(",", "")), threshold) == own)
    return next(longer, exact(value))


def _sides(value: float, threshold: float) -> list[bool]:
    """Return whether a value passes a threshold, in both directions."""
    return [reaches(value, threshold, higher_is_better=up) for up in (True, False)]
