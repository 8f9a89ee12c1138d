"""Values of rows from elsewhere (Hugging Face, pandas, numpy) as JSON, where JSON can say exactly the same.

What it cannot say is left as it is, for the data set to refuse it by row and column.
"""

from datetime import date, time
from typing import Any


def plain_value(value: Any) -> Any:
    """A value as JSON: dates and times as ISO texts, numbers and arrays of numpy as Python's own.

    Args:
        value: of a row; lists and dicts are looked into.
    """
    if value is None or type(value) in (str, int, float, bool):  # nearly always
        return value
    if type(value) is dict:
        return {name: plain_value(part) for name, part in value.items()}
    if type(value) is list:
        return [plain_value(part) for part in value]
    if isinstance(value, date | time):
        return value.isoformat() if value == value else None  # noqa: PLR0124  pandas' NaT equals nothing
    if type(value).__module__.partition(".")[0] == "numpy" and hasattr(value, "tolist"):
        is_date = value.dtype.kind == "M"  # whose tolist is a bare number where Python has no such precision
        return plain_value((value.astype(str) if is_date else value).tolist())
    return value
