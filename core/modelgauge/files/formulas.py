"""Cells of CSV files that spreadsheets would run as formulas: escaping them for people, and reading them back."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

ESCAPED = "modelgauge_escaped"
"""The column of a CSV file that names the escaped cells of each row, for reading them back."""

# https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")


def is_formula(text: str | None) -> bool:
    """Return whether a spreadsheet may run a cell. Numbers are safe."""
    return bool(text and _FORMULA.match(text) and not _NUMBER.fullmatch(text))


def escaped(text: str | None) -> str | None:
    """Put an apostrophe before a text that a spreadsheet may run."""
    return f"'{text}" if is_formula(text) else text


def with_escapes(rows: Sequence[Sequence[str | None]]) -> Sequence[Sequence[str | None]]:
    """Escape formulas in the records of a file, in a way that `read_table` undoes.

    Args:
        rows: of equal length, the names of the columns first.
    """
    head, *records = rows
    names = [
        [name for name, cell in zip(head, record, strict=True) if is_formula(cell)] for record in records
    ]
    if not any(names):
        return rows
    marks = [json.dumps(each, ensure_ascii=False) if each else None for each in names]
    return [
        [*head, ESCAPED],
        *([*map(escaped, record), mark] for record, mark in zip(records, marks, strict=True)),
    ]


def without_escapes(cells: Mapping[str, Any]) -> dict[str, Any]:
    """Undo the escapes of a row, and return its cells by column."""
    values = dict(cells)
    try:
        names = json.loads(values.pop(ESCAPED, None) or "[]")
    except ValueError:  # edited by hand
        names = []
    for name in names if isinstance(names, list) else ():
        if isinstance(name, str) and isinstance(cell := values.get(name), str):
            values[name] = cell.removeprefix("'")
    return values
