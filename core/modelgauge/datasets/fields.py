"""The fields of goldens and test cases in tables: which column holds which, and what a value of it means."""

import inspect
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from modelgauge.config.options import is_number
from modelgauge.errors import InputFileError, InvalidOptionError
from modelgauge.files.json_lines import DECODER, why_no_json
from modelgauge.files.tables import OtherContentError, Table
from modelgauge.interfaces.arguments import explains_arguments
from modelgauge.wording.did_you_mean import closest, did_you_mean

F = TypeVar("F", bound=Callable[..., Any])


class Kind(NamedTuple):
    """The kind of value that a field holds, and how it is written.

    Args:
        wanted: what a value that does not fit is not.
        fix: how to write it.
        delimiter: between the parts of a list in one text; nothing where the field is not a list.
    """

    wanted: str
    fix: str
    delimiter: str = ""


_QUOTES = '(in a CSV file each " is doubled)'
TEXT = Kind("a text", "Write a text that UTF-8 can hold.")
_NUMBER = Kind("a number", "Write a number such as 0.02, or nothing.")
_OBJECT = Kind(
    "JSON", f'Write {{"page": 3}}, say {_QUOTES}; a column that has a name of its own is kept as it is.'
)
_TURNS = Kind("JSON", f'Write [{{"role": "user", "content": "Hello"}}], say {_QUOTES}.')
_CONTEXTS = Kind(
    "a JSON list of texts",
    f'Write ["one", "two"] {_QUOTES}; a text that only looks like a list goes into one: ["[sic]"].',
    "|",
)
_TOOLS = Kind(
    "a JSON list of tools",
    'Write search; lookup, or ["search", "lookup"], or [{"name": "search", "input_parameters": {"q": "a"}}] '
    f"{_QUOTES}.",
    ";",
)

CUSTOM = "custom_column_key_values"

FIELDS: Mapping[str, Kind] = {
    "input": TEXT,
    "actual_output": TEXT,
    "expected_output": TEXT,
    "context": _CONTEXTS,
    "retrieval_context": _CONTEXTS,
    "tools_called": _TOOLS,
    "expected_tools": _TOOLS,
    "token_cost": _NUMBER,
    "completion_time": _NUMBER,
    "name": TEXT,
    "tags": _CONTEXTS._replace(delimiter=";"),
    "comments": TEXT,
    "source_file": TEXT,
    "additional_metadata": _OBJECT,
    CUSTOM: _OBJECT,
    "scenario": TEXT,
    "turns": _TURNS,
    "expected_outcome": TEXT,
    "user_description": TEXT,
    "chatbot_role": TEXT,
}
"""All that a row can say, in the order in which files are written."""

ALIASES = {"metadata": "additional_metadata"}
"""Other names of fields: test cases call so what goldens, and therefore FIELDS, call otherwise."""


def list_names(field: str) -> list[str]:
    """Return the column names recognized for a field, its own name first."""
    own = ALIASES.get(field, field)
    return [own, *(alias for alias, name in ALIASES.items() if name == own)]


# --- what a value means -----------------------------------------------------------------------------------------------


class UnfitError(ValueError):
    """A value that a field cannot hold; it says what the value is not."""


def is_joined(field: str, value: Any, delimiter: str) -> bool:
    """Return whether a value is a list written as one text; some tools write JSON like that."""
    return bool(FIELDS[field].delimiter and delimiter) and isinstance(value, str) and delimiter in value


def is_split(field: str, text: str, delimiter: str) -> bool:
    """Return whether a text is split at its delimiters: it is not a JSON list, and no part would be blank."""
    if FIELDS[field] is _TOOLS:
        return not text.lstrip().startswith(_JSON_OF_TOOLS)
    return not is_list_meant(text) and len(_texts_in(text, delimiter)) > 1


def parse_value(field: str, value: Any, delimiter: str = "", *, is_cell: bool = False) -> Any:
    """Convert a value for a field; None if it is a blank cell.

    A text means a list with that text, and an empty text an empty list. The name of a tool means the tool, and JSON
    means its value.

    Args:
        field: what it stands for.
        value: of any type.
        delimiter: between the parts of a list that is given as one text; without it, and where a part would be blank,
            the text is one part.
        is_cell: whether it is a cell of a CSV file, a text where other values have types.

    Raises:
        UnfitError: the field cannot hold it.
    """
    kind = FIELDS[field]
    if kind is TEXT or value is None:
        return value
    if isinstance(value, str):
        if is_cell or kind in (_OBJECT, _TURNS) or is_joined(field, value, delimiter):
            value = _of_text(kind, value, delimiter) if value.strip() else None
        elif kind.delimiter:
            value = [value] if value else []  # as DeepEval's JSONL has an empty list
    if kind is _NUMBER and value is not None and not is_number(value):
        raise UnfitError(kind.wanted)
    if kind is _TOOLS and isinstance(value, list | tuple):
        return [{"name": part} if isinstance(part, str) else part for part in value]
    return value


def _of_text(kind: Kind, text: str, delimiter: str) -> Any:
    if kind is _NUMBER:
        return _number(text)
    if kind is _TOOLS and not text.lstrip().startswith(_JSON_OF_TOOLS):
        return [part.strip() for part in text.split(delimiter) if part.strip()]
    if kind.delimiter and kind is not _TOOLS and not is_list_meant(text):
        return _texts_in(text, delimiter)
    try:
        parsed = DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise UnfitError(f"{kind.wanted} ({why_no_json(error)})") from None
    part = str | dict if kind is _TOOLS else str
    if kind.delimiter and not (isinstance(parsed, list) and all(isinstance(value, part) for value in parsed)):
        raise UnfitError(kind.wanted)
    return parsed


_JSON_OF_TOOLS = ("[", "{")  # names of tools never begin with a bracket or brace


def _texts_in(text: str, delimiter: str) -> list[str]:
    """Split a text at a delimiter, unless a part would be blank, as in a Markdown table."""
    parts = text.split(delimiter)
    return parts if all(part.strip() for part in parts) else [text]


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise UnfitError("a number") from None
    if not math.isfinite(number):
        raise UnfitError("a finite number")
    return number


def is_list_meant(cell: str) -> bool:
    """Return whether a cell is written as a JSON list, well-formed or not, and not as a text that begins with [.

    It is one where its first item is in quotes or braces (`["a`, `['a`, `[{`), or where the first bracket closes
    at its very end (`[]`, `[1]`, `[a, b]`). So `[1] Smith et al.`, `[[Paris]] is a city`, `[title](link)` and
    `[0, 1) is half open` are texts.
    """
    text = cell.strip()
    if re.match(r"""\[\s*["'{]""", text):
        return True
    depth = 0
    for bracket in re.finditer(r"[\[\]]", text) if text.startswith("[") else ():
        depth += 1 if bracket[0] == "[" else -1
        if depth == 0:
            return bracket.end() == len(text)
    return False


# --- which column holds a field ---------------------------------------------------------------------------------------


class NamedColumns(NamedTuple):
    """The columns and delimiters that the caller named.

    Args:
        columns: the column of each field that was named, by field.
        delimiters: between the parts of a cell, by field.
        delimited: the fields whose delimiter was named.
        is_lenient: whether a named column may be missing.
    """

    columns: Mapping[str, str]
    delimiters: Mapping[str, str]
    delimited: frozenset[str] = frozenset()
    is_lenient: bool = False


_ARGUMENT = re.compile(r"(\w+?)_(?:(?:col|key|field)_name|(col_delimiter))")


def chosen_columns(given: Mapping[str, Any]) -> NamedColumns:
    """Take the arguments of a method apart; None counts as not given.

    Args:
        given: by name: FIELD_col_name, FIELD_key_name or FIELD_field_name, and FIELD_col_delimiter.

    Raises:
        InvalidOptionError: there is no such argument, it is not a text, or two name different columns for a field.
    """
    columns: dict[str, str] = {}
    delimited: set[str] = set()
    between = {field: kind.delimiter for field, kind in FIELDS.items() if kind.delimiter}
    known = {*between}
    for name, value in given.items():
        match = _ARGUMENT.fullmatch(name)
        field = ALIASES.get(match[1], match[1]) if match else ""
        into = between if match and match[2] else columns
        if field not in (known if into is between else FIELDS):
            raise _no_argument(name)
        if value is None:
            continue
        if not isinstance(value, str) or not value:
            raise InvalidOptionError(
                f"{name}={value!r} is not a text.", fix="Give the name as the file has it."
            )
        if into is columns and columns.get(field, value) != value:
            raise InvalidOptionError(
                f"The column of {field!r} is named twice: {columns[field]!r} and {value!r}.",
                fix=f"Name one of them, {field}_col_name={value!r}, say.",
            )
        into[field] = value
        delimited |= {field} if into is between else set()
    return NamedColumns(columns, between, frozenset(delimited))


def _no_argument(name: str) -> InvalidOptionError:
    known = ["encoding_type", *_arguments("csv"), *_arguments("json"), "input_col_name", "input_key_name"]
    return InvalidOptionError(
        f"There is no argument {name!r}.",
        fix=did_you_mean(name, known)
        + f"Say FIELD_col_name or FIELD_key_name; the fields are: {', '.join(FIELDS)}.",
    )


def as_arguments(columns: Mapping[str, str]) -> dict[str, str]:
    """Convert columns by field to the keyword arguments of reading methods: FIELD_col_name."""
    return {f"{field}_col_name": column for field, column in columns.items()}


def is_conversation(table: Table, columns: Mapping[str, str]) -> bool:
    """Return whether the rows are conversations: they have a scenario or turns, and no input."""
    conversational = {"scenario", "turns"}
    if "input" in columns:
        return False
    return bool(conversational & columns.keys()) or (
        "input" not in table.columns and bool(conversational & set(table.columns))
    )


def claimed(
    table: Table,
    columns: Mapping[str, str],
    fields: Mapping[str, Any],
    what: str,
    optional: Collection[str] = (),
) -> dict[str, str]:
    """Map each field to its column.

    Args:
        table: with its columns.
        columns: what the caller named.
        fields: the fields of the class to be made, by name.
        what: the class, for messages.
        optional: fields whose named column may be missing, unless a column has a similar name, or the field's name.

    Raises:
        InvalidOptionError: a column was named for a field that the class does not have.
        InputFileError: there is no column of a name that was given, or two that hold one field.
    """
    own = [ALIASES.get(name, name) for name in fields]
    for field, column in columns.items():
        if field not in own:
            raise InvalidOptionError(
                f"A {what} has no {field!r}, for which the column {column!r} was named.",
                fix=f"The fields are: {', '.join(own)}.",
            )
        similar = {*map(str, table.columns)}.intersection(list_names(field)) or closest(
            column, map(str, table.columns), cutoff=0.8
        )
        if column not in table.columns and (similar or field not in optional):
            raise OtherContentError(
                f"{table.heading}: there is no column {column!r}, which was named for {field!r}.",
                fix=did_you_mean(column, map(str, table.columns)) + table.columns_are(),
            )
    found = {field: column for field, column in columns.items() if column in table.columns}
    free = set(table.columns) - set(columns.values())
    for field in own:
        there = [name for name in list_names(field) if name in free and field not in columns]
        if len(there) > 1:
            raise InputFileError(
                f"{table.heading}: the columns {' and '.join(map(repr, there))} hold the same field.",
                fix=f"Keep one of them, or say which it is: {field}_col_name={there[-1]!r}; on the command line "
                f"--column {field}={there[-1]}.",
            )
        if there:
            found[field] = there[0]
    return found


# --- the arguments of the methods that read ---------------------------------------------------------------------------


def _arguments(kind: str) -> Iterator[str]:
    """Return the arguments for column names and delimiters that readers of this kind of source take."""
    for field in FIELDS:
        if field != "input":
            yield f"{field}_{'key' if kind == 'json' else 'col'}_name"
        if kind == "csv" and FIELDS[field].delimiter:
            yield f"{field}_col_delimiter"
        if kind == "csv" and field in ("name", "comments"):
            yield f"{field}_key_name"  # "key" in a CSV file: as other tools call it


def names_columns(kind: str) -> Callable[[F], F]:
    """Let the signature of a method that reads list what it takes by name, for `help` and editors.

    Args:
        kind: csv, json or rows.
    """
    defaults = {"encoding_type": "utf-8"} if kind != "rows" else {}
    defaults |= {"delimiter": ","} if kind == "csv" else {}

    def decorated(method: F) -> F:
        called = explains_arguments(method)
        signature = inspect.signature(method)
        *own, _ = signature.parameters.values()  # without `**columns`
        more = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=defaults.get(name),
                annotation=str if name in defaults else str | None,
            )
            for name in (*defaults, *_arguments(kind))
        ]
        vars(called)["__signature__"] = signature.replace(parameters=[*own, *more])
        return called

    return decorated
