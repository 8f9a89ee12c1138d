"""`Numeric`: what lets a data class with a `value` be calculated with like that value."""

import math
from numbers import Real
from typing import Any


class Numeric(Real):
    """A real number to Python and to all that asks for one: `statistics`, `math`, `round`, `pytest.approx`.

    Whoever inherits it has a `value`. What is calculated with it is a plain number. Equality and hash are its own.
    """

    __slots__ = ()

    value: float

    def __float__(self) -> float:
        return self.value

    def __int__(self) -> int:
        return int(self.value)

    def __trunc__(self) -> int:
        return math.trunc(self.value)

    def __floor__(self) -> int:
        return math.floor(self.value)

    def __ceil__(self) -> int:
        return math.ceil(self.value)

    def __round__(self, ndigits: int | None = None) -> Any:
        return round(self.value, ndigits)

    def __abs__(self) -> float:
        return abs(self.value)

    def __neg__(self) -> float:
        return -self.value

    def __pos__(self) -> float:
        return self.value

    def as_integer_ratio(self) -> tuple[int, int]:
        """As that of a float, which `statistics` asks for."""
        return self.value.as_integer_ratio()

    # With another `Numeric` on the right, Python asks that one for its share of the work.

    def __lt__(self, other: Any) -> bool:
        return bool(self.value < other)

    def __le__(self, other: Any) -> bool:
        return bool(self.value <= other)

    def __gt__(self, other: Any) -> bool:
        return bool(self.value > other)

    def __ge__(self, other: Any) -> bool:
        return bool(self.value >= other)

    def __add__(self, other: Any) -> Any:
        return self.value + other

    def __radd__(self, other: Any) -> Any:
        return other + self.value

    def __sub__(self, other: Any) -> Any:
        return self.value - other

    def __rsub__(self, other: Any) -> Any:
        return other - self.value

    def __mul__(self, other: Any) -> Any:
        return self.value * other

    def __rmul__(self, other: Any) -> Any:
        return other * self.value

    def __truediv__(self, other: Any) -> Any:
        return self.value / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.value

    def __floordiv__(self, other: Any) -> Any:
        return self.value // other

    def __rfloordiv__(self, other: Any) -> Any:
        return other // self.value

    def __mod__(self, other: Any) -> Any:
        return self.value % other

    def __rmod__(self, other: Any) -> Any:
        return other % self.value

    def __pow__(self, other: Any) -> Any:
        return self.value**other

    def __rpow__(self, other: Any) -> Any:
        return other**self.value
