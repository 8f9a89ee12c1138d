"""What a value of a row means for the field that it stands for, and what a cell of a CSV file does, a text.

Which column is which field is in `dataset_columns.py`.
"""

import math
import re
from typing import Any

from modelgauge.datasets.tables import DECODER, told_of_json

CUSTOM = "custom_column_key_values"
_TEXTS = ("context", "retrieval_context", "tags")
_TOOLS = ("tools_called", "expected_tools")
_NUMBERS = ("token_cost", "completion_time")
_JSON = ("additional_metadata", CUSTOM, "turns")
_TYPED = (*_TEXTS, *_TOOLS, *_NUMBERS, *_JSON)

_QUOTES = '(in a CSV file each " is doubled)'
_MEND_TEXTS = f'Write ["one", "two"] {_QUOTES}; a text that only looks like a list goes into one: ["[sic]"].'
_MEND_TOOLS = (
    'Write search; lookup, or ["search", "lookup"], or [{"name": "search", "input_parameters": {"q": "a"}}] '
    f"{_QUOTES}."
)
_MEND_NUMBER = "Write a number such as 0.02, or nothing."
_MEND_OBJECT = f'Write {{"page": 3}}, say {_QUOTES}; a column that has a name of its own is kept as it is.'
_MEND_TURNS = f'Write [{{"role": "user", "content": "Hello"}}], say {_QUOTES}.'


_MENDS = {
    **dict.fromkeys(_TEXTS, _MEND_TEXTS),
    **dict.fromkeys(_TOOLS, _MEND_TOOLS),
    **dict.fromkeys(_NUMBERS, _MEND_NUMBER),
    **dict.fromkeys(_JSON, _MEND_OBJECT),
    "turns": _MEND_TURNS,
}


class UnfitError(ValueError):
    """A value that a field cannot hold.

    Args:
        wanted: what it is not.
        fix: how to mend it.
    """

    def __init__(self, wanted: str, fix: str) -> None:
        super().__init__(wanted)
        self.fix = fix


def value_of_cell(field: str, cell: str, delimiter: str) -> Any:
    """The value of a cell of a CSV file; None where it is blank.

    Args:
        field: what it stands for.
        cell: its text.
        delimiter: between the parts of a list.

    Raises:
        UnfitError: the field cannot hold it.
    """
    if field not in _TYPED:
        return cell
    if not cell.strip():
        return None
    if field in _NUMBERS:
        return _number(cell)
    if field in _JSON:
        return _json(cell, "JSON", mend(field))
    return _texts(cell, delimiter) if field in _TEXTS else _tools(cell, delimiter)


def is_joined(field: str, value: Any, delimiter: str) -> bool:
    """Whether a typed value is a list as one text: some tools write JSON so. Ours are lists, whatever they hold."""
    return field in (*_TEXTS, *_TOOLS) and isinstance(value, str) and bool(delimiter) and delimiter in value


def value_of(field: str, value: Any, delimiter: str = "") -> Any:
    """A typed value: one text stands for a list of one, the name of a tool for the tool, and JSON for what it says.

    Args:
        field: what it stands for.
        value: of any type.
        delimiter: between the parts of a list that is given as one text; with none it is one part.

    Raises:
        UnfitError: the field cannot hold it.
    """
    if is_joined(field, value, delimiter) or (field in _JSON and isinstance(value, str)):
        return value_of_cell(field, value, delimiter)
    if field in (*_TEXTS, *_TOOLS) and isinstance(value, str):
        value = [value]
    if field in _TOOLS and isinstance(value, list | tuple):
        return [{"name": one} if isinstance(one, str) else one for one in value]
    if field in _NUMBERS and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise UnfitError("a number", _MEND_NUMBER)
    return value


def mend(field: str) -> str:
    """How to write the value of a field, as the end of an error."""
    return _MENDS.get(field, "Write a text that UTF-8 can hold.")


def is_list_meant(cell: str) -> bool:
    """Whether a cell of texts is written as a JSON list, well or not, and not as a text that begins with [.

    It is one where its first item is in quotes or braces (`["a`, `['a`, `[{`), or where the first bracket closes
    at its very end (`[]`, `[1]`, `[a, b]`). So `[1] Smith et al.`, `[[Paris]] is a city`, `[title](link)` and
    `[0, 1) is half open` are texts.
    """
    text = cell.strip()
    if _FIRST_IN_QUOTES.match(text):
        return True
    depth = 0
    for bracket in _BRACKETS.finditer(text) if text.startswith("[") else ():
        depth += 1 if bracket[0] == "[" else -1
        if depth == 0:
            return bracket.end() == len(text)
    return False


_FIRST_IN_QUOTES = re.compile(r"""\[\s*["'{]""")
_BRACKETS = re.compile(r"[\[\]]")


def _texts(cell: str, delimiter: str) -> list[str]:
    if not is_list_meant(cell):
        return cell.split(delimiter)
    wanted = "a JSON list of texts"
    listed = _json(cell, wanted, _MEND_TEXTS)
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise UnfitError(wanted, _MEND_TEXTS)
    return listed


def _tools(cell: str, delimiter: str) -> Any:
    """Tools by name between delimiters, or a JSON list: no name begins with a bracket or a brace."""
    if not cell.lstrip().startswith(("[", "{")):
        return value_of("tools_called", [part.strip() for part in cell.split(delimiter) if part.strip()])
    wanted = "a JSON list of tools"
    listed = _json(cell, wanted, _MEND_TOOLS)
    if not isinstance(listed, list) or not all(isinstance(one, str | dict) for one in listed):
        raise UnfitError(wanted, _MEND_TOOLS)
    return value_of("tools_called", listed)


def _json(cell: str, wanted: str, fix: str) -> Any:
    try:
        return DECODER.decode(cell)
    except (ValueError, RecursionError) as error:
        raise UnfitError(f"{wanted} ({told_of_json(error)})", fix) from None


def _number(cell: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        raise UnfitError("a number", _MEND_NUMBER) from None
    if not math.isfinite(number):
        raise UnfitError("a finite number", _MEND_NUMBER)
    return number
