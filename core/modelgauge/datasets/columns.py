"""Which column of a table holds which field: the arguments of the methods that read data sets.

What a cell means is in `dataset_rows.py`.
"""

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypedDict, TypeVar, cast

from modelgauge.datasets.tables import NoDataSetError, Table
from modelgauge.errors import ArgumentError, InputFileError, InvalidOptionError
from modelgauge.wording.did_you_mean import closest, did_you_mean

F = TypeVar("F", bound=Callable[..., Any])


class CsvColumns(TypedDict, total=False):
    """The columns of a CSV file, and what separates the parts of the cells that hold lists.

    Each defaults to the field's own name, where there is such a column. A cell that holds a JSON list is read
    as one, whatever the delimiter.
    """

    actual_output_col_name: str | None
    expected_output_col_name: str | None
    context_col_name: str | None
    context_col_delimiter: str | None
    retrieval_context_col_name: str | None
    retrieval_context_col_delimiter: str | None
    tools_called_col_name: str | None
    tools_called_col_delimiter: str | None
    expected_tools_col_name: str | None
    expected_tools_col_delimiter: str | None
    token_cost_col_name: str | None
    completion_time_col_name: str | None
    name_col_name: str | None
    name_key_name: str | None  # "key" in a CSV file: as other tools call it; so below
    tags_col_name: str | None
    tags_col_delimiter: str | None
    comments_col_name: str | None
    comments_key_name: str | None
    source_file_col_name: str | None
    additional_metadata_col_name: str | None
    custom_column_key_values_col_name: str | None
    scenario_col_name: str | None
    turns_col_name: str | None
    expected_outcome_col_name: str | None
    user_description_col_name: str | None
    chatbot_role_col_name: str | None


class RowColumns(TypedDict, total=False):
    """The columns of rows whose values have types: each defaults to the field's own name."""

    actual_output_col_name: str | None
    expected_output_col_name: str | None
    context_col_name: str | None
    retrieval_context_col_name: str | None
    tools_called_col_name: str | None
    expected_tools_col_name: str | None
    token_cost_col_name: str | None
    completion_time_col_name: str | None
    name_col_name: str | None
    tags_col_name: str | None
    comments_col_name: str | None
    source_file_col_name: str | None
    additional_metadata_col_name: str | None
    custom_column_key_values_col_name: str | None
    scenario_col_name: str | None
    turns_col_name: str | None
    expected_outcome_col_name: str | None
    user_description_col_name: str | None
    chatbot_role_col_name: str | None


class JsonKeys(TypedDict, total=False):
    """The keys of JSON objects: each defaults to the field's own name."""

    actual_output_key_name: str | None
    expected_output_key_name: str | None
    context_key_name: str | None
    retrieval_context_key_name: str | None
    tools_called_key_name: str | None
    expected_tools_key_name: str | None
    token_cost_key_name: str | None
    completion_time_key_name: str | None
    name_key_name: str | None
    tags_key_name: str | None
    comments_key_name: str | None
    source_file_key_name: str | None
    additional_metadata_key_name: str | None
    custom_column_key_values_key_name: str | None
    scenario_key_name: str | None
    turns_key_name: str | None
    expected_outcome_key_name: str | None
    user_description_key_name: str | None
    chatbot_role_key_name: str | None


def explains_call(method: F) -> F:
    """Let a method say, in our words, which arguments it does not take, and by position."""

    @functools.wraps(method)
    def called(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True  # pytest shows whose line it is
        try:
            return method(*args, **kwargs)
        except TypeError:
            try:
                inspect.signature(method).bind(*args, **kwargs)
            except TypeError as unbound:
                raise _unbound(method, str(unbound), len(args) - 1, kwargs) from None
            raise

    return cast("F", called)


def _unbound(method: Callable[..., Any], told: str, by_position: int, named: Iterable[str]) -> ArgumentError:
    parameters = list(inspect.signature(method).parameters.values())[1:]
    names = [one.name for one in parameters]
    places = [one.name for one in parameters if one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    fix = f"The arguments are: {', '.join(names)}."
    if by_position > len(places):
        likely = next((one for one in names if one.startswith("expected_output")), "")
        return ArgumentError(
            f"{method.__name__} takes {', '.join(places)} by position, and got {by_position} arguments so.",
            fix=f"Name the others: {likely}=…, say. {fix}" if likely else fix,
        )
    unknown = next((name for name in named if name not in names), None)
    if unknown is None:
        return ArgumentError(f"{method.__name__}: {told}.", fix=fix)
    return ArgumentError(
        f"{method.__name__}: there is no argument {unknown!r}.", fix=did_you_mean(unknown, names) + fix
    )


def spelled_out(names: type) -> Callable[[F], F]:
    """Let a method's signature list the arguments that it takes by a TypedDict, for `help` and editors."""

    def decorated(method: F) -> F:
        signature = inspect.signature(method)
        own = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
            for name, annotation in names.__annotations__.items()
        ]
        vars(method)["__signature__"] = signature.replace(parameters=[*own, *more])
        return explains_call(method)

    return decorated


FIELDS = ("input", *(name.removesuffix("_col_name") for name in RowColumns.__annotations__))
"""All that a row can say, in the order in which files are written."""

ALIASES = {"metadata": "additional_metadata"}
"""Other names of fields: test cases call so what goldens, and therefore FIELDS, call otherwise."""


def names_of(field: str) -> list[str]:
    """The names under which a column is found for a field without being named, its own first."""
    own = ALIASES.get(field, field)
    return [own, *(alias for alias, name in ALIASES.items() if name == own)]


_DELIMITERS = {
    "context": "|",
    "retrieval_context": "|",
    "tools_called": ";",
    "expected_tools": ";",
    "tags": ";",
}
_NAME_ENDS = ("_col_name", "_key_name", "_field_name")
_DELIMITER_END = "_col_delimiter"


class Chosen(NamedTuple):
    """What the caller said.

    Args:
        columns: the column of each field that was named, by field.
        delimiters: between the parts of a cell, by field.
    """

    columns: Mapping[str, str]
    delimiters: Mapping[str, str]


def chosen_columns(given: Mapping[str, Any], delimiters: Mapping[str, str] | None = None) -> Chosen:
    """Take the arguments of a method apart; None counts as not given.

    Args:
        given: by name: FIELD_col_name, FIELD_key_name or FIELD_field_name, and FIELD_col_delimiter.
        delimiters: of fields, where none is given and it is not the usual one.

    Raises:
        InvalidOptionError: there is no such argument, it is no text, or two name different columns for a field.
    """
    columns: dict[str, str] = {}
    between = {**_DELIMITERS, **(delimiters or {})}
    for name, value in given.items():
        field, into = _place_of(name, columns, between)
        if value is None:
            continue
        if not isinstance(value, str) or not value:
            raise InvalidOptionError(f"{name}={value!r} is no text.", fix="Give the name as the file has it.")
        if into is columns and columns.get(field, value) != value:
            raise InvalidOptionError(
                f"The column of {field!r} is named twice: {columns[field]!r} and {value!r}.",
                fix=f"Name one of them, {field}_col_name={value!r}, say.",
            )
        into[field] = value
    return Chosen(columns, between)


def as_arguments(columns: Mapping[str, str]) -> dict[str, str]:
    """Columns by field, as the methods that read take them: FIELD_col_name."""
    return {f"{field}_col_name": column for field, column in columns.items()}


def _place_of(name: str, columns: dict[str, str], delimiters: dict[str, str]) -> tuple[str, dict[str, str]]:
    for end in _NAME_ENDS:
        field = name.removesuffix(end)
        field = ALIASES.get(field, field)
        if name.endswith(end) and field in FIELDS:
            return field, columns
    field = name.removesuffix(_DELIMITER_END)
    if name.endswith(_DELIMITER_END) and field in _DELIMITERS:
        return field, delimiters
    known = [
        "encoding_type",
        "input_col_name",
        *CsvColumns.__annotations__,
        "input_key_name",
        *JsonKeys.__annotations__,
    ]
    raise InvalidOptionError(
        f"There is no argument {name!r}.",
        fix=did_you_mean(name, known)
        + f"Say FIELD_col_name or FIELD_key_name; the fields are: {', '.join(FIELDS)}.",
    )


def is_conversation(table: Table, columns: Mapping[str, str]) -> bool:
    """Whether the rows are conversations: they have a scenario or turns, and no input."""
    said = {"scenario", "turns"}
    if "input" in columns:
        return False
    return bool(said & columns.keys()) or ("input" not in table.columns and bool(said & set(table.columns)))


def claimed(table: Table, columns: Mapping[str, str], fields: Mapping[str, Any], what: str) -> dict[str, str]:
    """The column of each field that has one.

    Args:
        table: with its columns.
        columns: what the caller named.
        fields: the fields of the class to be made, by name.
        what: the class, for messages.

    Raises:
        InvalidOptionError: a column was named for a field that the class does not have.
        InputFileError: there is no column of a name that was given, or two that hold one field.
    """
    free = {ALIASES.get(name, name): names_of(name) for name in fields}
    for field, column in columns.items():
        if field not in free:
            raise InvalidOptionError(
                f"A {what} has no {field!r}, for which the column {column!r} was named.",
                fix=f"The fields are: {', '.join(free)}.",
            )
        if column not in table.columns:
            raise NoDataSetError(
                f"{table.heading}: there is no column {column!r}, which was named for {field!r}.",
                fix=did_you_mean(column, map(str, table.columns)) + table.columns_are(),
            )
    taken = set(columns.values())
    found = dict(columns)
    for field, names in free.items():
        there = [name for name in names if name in table.columns and name not in taken]
        if field in found or not there:
            continue
        if len(there) > 1:
            raise InputFileError(
                f"{table.heading}: the columns {' and '.join(map(repr, there))} hold the same field.",
                fix=f"Keep one of them, or say which it is: {field}_col_name={there[-1]!r}; on the command line "
                f"--column {field}={there[-1]}.",
            )
        found[field] = there[0]
    return found


def misspelt(table: Table, columns: Mapping[str, str], fields: Mapping[str, Any]) -> list[str]:
    """Say of each column that is kept as a custom one, but is named like a field that has no column."""
    free = [ALIASES.get(name, name) for name in fields if ALIASES.get(name, name) not in columns]
    found = []
    for column in table.columns:
        near = closest(str(column), free, cutoff=0.8) if column not in columns.values() else []
        if near:
            found.append(f"the column {column!r} is kept as a custom one, where {near[0]!r} may be meant")
        elif "expected_output" in free and _REFERENCES.fullmatch(str(column)):
            say = f"expected_output_col_name={column!r}"
            on_command_line = (
                f"; on the command line --column expected_output={column}" if table.is_file else ""
            )
            found.append(
                f"the column {column!r} is kept as a custom one, and there is no expected_output; if it is that, "
                f"say {say}{on_command_line}"
            )
    return found


_REFERENCES = re.compile(
    r"(the_)?(answer|expected|target|reference|ideal|ground[_ ]?truth|expected[_ ]?answer)s?", re.IGNORECASE
)
"""What others call the column of expected outputs."""
