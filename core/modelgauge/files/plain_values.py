"""Values of rows in memory as JSON: those of Python, numpy and pandas."""

from datetime import date, time
from decimal import Decimal
from typing import Any


def plain_value(value: Any) -> Any:
    """Return dates and times as ISO texts, values of numpy as Python's own, and None for NaN, NaT and pandas' NA.

    What JSON cannot hold is returned unchanged.
    """
    if value is None or type(value) in (str, int, bool):  # nearly always
        return value
    if _is_missing(value):
        return None
    if isinstance(value, dict | list):
        return _plain_parts(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if type(value).__module__.partition(".")[0] == "numpy" and hasattr(value, "tolist"):
        return _value_of_numpy(value)
    return value


def _plain_parts(value: dict[Any, Any] | list[Any]) -> dict[Any, Any] | list[Any]:
    if isinstance(value, dict):
        return {name: plain_value(part) for name, part in value.items()}
    return [plain_value(part) for part in value]


def _value_of_numpy(value: Any) -> Any:
    if value.dtype.kind != "M":
        return plain_value(value.tolist())
    # `tolist` turns dates into bare numbers if Python lacks their precision.
    return [plain_value(part) for part in value] if value.ndim else str(value)


def _is_missing(value: Any) -> bool:
    """Return whether a value is NaN or NaT, which do not equal themselves, or pandas' NA."""
    if isinstance(value, float | Decimal | date) or type(value).__name__ == "datetime64":
        return bool(value != value)  # noqa: PLR0124  the test for NaN
    return type(value).__name__ == "NAType"
