"""Rows with named columns, each with its place: of CSV, JSON and JSONL files and Hugging Face datasets.

What the columns mean is in `dataset_rows.py`.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from modelgauge.datasets.csv_text import CsvError, Record, parse_csv
from modelgauge.datasets.plain_values import plain_value
from modelgauge.datasets.texts import path_of, text_of
from modelgauge.errors import InputFileError, InvalidOptionError
from modelgauge.reports.plain import counted
from modelgauge.wording.shortening import beginning

_DELIMITERS = ";\t|,"


class NoDataSetError(InputFileError):
    """A file that is well, and holds something else than goldens or test cases."""


@dataclass(frozen=True)
class Row:
    """One row.

    Args:
        place: where it is, for messages.
        values: by column; None where the row has nothing there.
        problem: why it cannot be read at all; then it has no values.
    """

    place: str
    values: Mapping[str, Any]
    problem: InputFileError | None = None


@dataclass(frozen=True)
class Table:
    """The rows of one source.

    Args:
        source: the file as it was given, or what stands for it in messages.
        heading: where the columns are named.
        columns: their names, in order.
        rows: in order.
        cells_are_text: whether values are the cells of a CSV file, which know no types.
        name: what the data set can be called.
        is_file: whether the rows stand in a file, which command lines can name.
    """

    source: str
    heading: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    cells_are_text: bool = False
    name: str | None = None
    is_file: bool = True

    def columns_are(self) -> str:
        """The sentence that lists them, for errors."""
        if not self.columns:
            return "There are no columns."
        listed = columns_are(self.columns)
        delimiter = self.likely_delimiter()
        if delimiter is None:
            return listed
        return f"{listed} {say_delimiter(delimiter)}"

    def likely_delimiter(self) -> str | None:
        """What separates the cells where a CSV file seems to have one column only; None where it has more."""
        if not self.cells_are_text or len(self.columns) != 1:
            return None
        return next((one for one in _DELIMITERS if one in self.columns[0]), None)


_MOST_LISTED = 30


def columns_are(columns: Sequence[str]) -> str:
    """The sentence that lists columns, not too many of them."""
    more = f" and {len(columns) - _MOST_LISTED:,} more" if len(columns) > _MOST_LISTED else ""
    return f"The columns are: {', '.join(map(repr, columns[:_MOST_LISTED]))}{more}."


def say_delimiter(delimiter: str) -> str:
    """How to say what separates the cells of a file."""
    typed = {"\t": "\\t"}.get(delimiter, delimiter)  # as people write it on a command line
    return (
        f"{delimiter!r} seems to separate the cells of this file: say delimiter={delimiter!r}; "
        f'on the command line --delimiter "{typed}".'
    )


def shown(value: Any) -> str:
    """A value as messages have it."""
    return beginning(repr(value), 100)


def read_table(
    path: str | PathLike[str], kind: str, *, encoding: str = "utf-8", delimiter: str = ","
) -> Table:
    """Read a file.

    Args:
        path: the file.
        kind: csv, json or jsonl.
        encoding: of the file; a byte order mark is skipped.
        delimiter: between the cells of a CSV file.

    Raises:
        InputFileError: it cannot be read as what it should be; the message names file and line.
        InvalidOptionError: the delimiter is not one character that can be one.
    """
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n':
        raise InvalidOptionError(
            f"delimiter={delimiter!r} cannot separate cells.", fix="Use one character: ',', ';' or '\\t'."
        )
    file, source = path_of(path), str(path)
    text = text_of(file, source, encoding, may_hold_nul=kind == "csv")
    if kind == "csv":
        return _csv_table(source, text, delimiter)
    text = text.replace("\r\n", "\n").replace("\r", "\n")  # the texts in JSON hold none as it is
    lines = _json_rows(source, text) if kind == "json" else _jsonl_rows(source, text)
    return _table_of(source, lines, "object", file.stem)


def table_of_rows(rows: Any, source: str = "the dataset") -> Table:
    """The table of a Hugging Face dataset, or of any other iterable of mappings, its values as JSON.

    Raises:
        InputFileError: it has no rows: a name, or a dataset with its splits not chosen.
    """
    if isinstance(rows, str | bytes):
        raise InputFileError(
            f"{rows!r} is the name of a dataset, not its rows.",
            fix=f"Load it first: datasets.load_dataset({rows!r}, split='test').",
        )
    if isinstance(rows, Mapping):
        splits = ", ".join(map(repr, rows))
        raise InputFileError(
            f"A value of type {type(rows).__name__} is several datasets, not the rows of one.",
            fix=f"Choose one of them: {splits or 'it is empty'}.",
        )
    if not isinstance(rows, Iterable):
        raise InputFileError(
            f"There are no rows in a value of type {type(rows).__name__}.",
            fix="Give a datasets.Dataset or an iterable of dicts.",
        )
    name = getattr(getattr(rows, "info", None), "dataset_name", None)
    places = ((f"{source}, row {number}", row) for number, row in enumerate(rows, 1))
    plain = ((place, _plain_row(place, row)) for place, row in places)
    return _table_of(source, plain, "dict", name, is_file=False)


def _plain_row(place: str, row: Any) -> Any:
    """A row whose values are JSON; for one that has no end, what is wrong with it."""
    try:
        return {name: plain_value(value) for name, value in row.items()} if isinstance(row, Mapping) else row
    except RecursionError:
        return InputFileError(
            f"{place}: a value of it holds itself, or is nested too deep.", fix="Make texts or numbers of it."
        )


# --- CSV ----------------------------------------------------------------------------------------------------


def _csv_table(source: str, text: str, delimiter: str) -> Table:
    try:
        records = parse_csv(text, delimiter)
    except CsvError as error:
        other = error.found in _DELIMITERS and error.line == 1
        raise InputFileError(
            f"{source}, line {error.line}: {error}.",
            fix=say_delimiter(error.found) if other else "Close the quote, or write it twice inside a cell.",
        ) from None
    if not records:
        raise InputFileError(f"{source} is empty.", fix="Its first line must name the columns.")
    head, *rest = records
    columns = tuple(cell or "" for cell in head.cells)
    heading = f"{source}, line {head.line}"
    repeated = next((name for name, times in Counter(columns).items() if name and times > 1), None)
    if repeated is not None:
        raise InputFileError(f"{heading}: the column {repeated!r} is there twice.", fix="Rename one of them.")
    named = tuple(filter(None, columns))
    rows = tuple(_csv_row(source, columns, record, number) for number, record in enumerate(rest))
    return Table(source, heading, named, rows, cells_are_text=True, name=Path(source).stem)


_MEND_TOO_MANY = "Put quotes around a cell that holds the delimiter or a quote."
_MEND_TOO_FEW = "Write the delimiter for a cell that is empty, too."


def _csv_row(source: str, columns: tuple[str, ...], record: Record, number: int) -> Row:
    place = f"{source}, line {record.line}"
    if len(record.cells) != len(columns):
        problem = InputFileError(
            f"{place}: there {'is' if len(record.cells) == 1 else 'are'} {counted(len(record.cells), 'cell')}, and the "
            f"first line names {counted(len(columns), 'column')}.",
            fix=f"{_MEND_TOO_FEW if len(record.cells) < len(columns) else _MEND_TOO_MANY} "
            f"{columns_are(columns)}",
        )
        return Row(place, {}, problem)
    for index, (name, cell) in enumerate(zip(columns, record.cells, strict=True)):
        is_row_number = index == 0 and cell == str(number)  # pandas writes it: no more than the order
        if not name and (cell or "").strip() and not is_row_number:
            return Row(place, {}, _nameless(place, index + 1, cell))
    return Row(place, {name: cell for name, cell in zip(columns, record.cells, strict=True) if name})


def _nameless(place: str, column: int, cell: str | None) -> InputFileError:
    return InputFileError(
        f"{place}, column {column}: {shown(cell)} stands in a column without a name.",
        fix=f"Name column {column} where the file names the others, or empty it; the index of a DataFrame is left "
        "out by df.to_csv(…, index=False).",
    )


# --- JSON ---------------------------------------------------------------------------------------------------


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON, where null stands for nothing")


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} is there twice")
    return made


DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_object_of)
"""JSON as the standard says: no NaN, and no key twice."""
_SPACE = " \t\r\n"


def _jsonl_rows(source: str, text: str) -> Iterator[tuple[str, Any]]:
    """The values of the lines; for a line that is no JSON value, what is wrong with it."""
    for number, line in enumerate(text.split("\n"), 1):  # JSON may hold the other characters that end lines
        if line.strip(_SPACE):
            try:
                yield f"{source}, line {number}", _only_value(source, line, number)
            except InputFileError as problem:
                yield f"{source}, line {number}", problem


_MEND_LINE = "Write one whole object a line; a list of objects is named .json, and for the JSON methods."


def _only_value(source: str, line: str, number: int) -> Any:
    value, end = _decoded(source, line, _skipped(line, 0), number, _MEND_LINE)
    if _skipped(line, end) < len(line):
        raise InputFileError(
            f"{source}, line {number}: more follows the first JSON value.",
            fix=_MEND_LINE,
        )
    return value


def _json_rows(source: str, text: str) -> Iterator[tuple[str, Any]]:
    """The elements of the outermost list one by one, so that each has its line."""
    at = _skipped(text, 0)
    if at == len(text):
        raise InputFileError(f"{source} is empty.", fix='Write [{"input": …}, …], or [] for no rows.')
    if not text.startswith("[", at):
        of_another_kind = NoDataSetError if text.startswith("{", at) else InputFileError
        raise of_another_kind(
            f"{source}: this is not a JSON list of objects.",
            fix='Write [{"input": …}, …]; a file with one object a line is named .jsonl, and for the JSONL methods.',
        )
    at = _skipped(text, at + 1)
    line, counted = 1, 0
    first = True
    while not (first and text.startswith("]", at)):
        first = False
        line, counted = line + text.count("\n", counted, at), at
        value, end = _decoded(source, text, at, line)
        yield f"{source}, line {line}", value
        at = _skipped(text, end)
        if text.startswith("]", at):
            break
        if not text.startswith(",", at):
            here = line + text.count("\n", counted, at)
            raise InputFileError(
                f"{source}, line {here}: ',' or ']' is missing.", fix="Write a comma between two objects."
            )
        at = _skipped(text, at + 1)
    if _skipped(text, at + 1) < len(text):
        raise InputFileError(f"{source}: more follows the list.", fix="Write one list of objects.")


def _skipped(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _decoded(
    source: str, text: str, at: int, line: int, fix: str = "Mend it there, or just before."
) -> tuple[Any, int]:
    try:
        return DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        where = line + text.count("\n", at, error.pos)
        told = error.msg.removesuffix(" at")
        raise InputFileError(f"{source}, line {where}: this is not JSON: {told}.", fix=fix) from None
    except (ValueError, RecursionError) as error:
        # Raised by _refuse_constant or _object_of, for an int of too many digits, or for too deep a nesting.
        raise InputFileError(
            f"{source}, line {line}: {told_of_json(error)}.", fix="Mend the object there."
        ) from None


def told_of_json(error: Exception) -> str:
    """What is wrong with JSON that cannot be read."""
    return "it is nested too deep" if isinstance(error, RecursionError) else str(error)


def _no_row(place: str, row: Any, what: str) -> InputFileError:
    nested = isinstance(row, list) and any(isinstance(one, dict) for one in row)
    problem = f"{place}: this is of type {type(row).__name__}; each row must be one {what}."
    if nested:
        return InputFileError(problem, fix=f"Take each {what} out of the list that it stands in.")
    return NoDataSetError(
        problem,
        fix='Rows are like {"input": "a question", "expected_output": "its answer"}; a DataFrame\'s '
        "are df.to_dict('records').",
    )


def _table_of(
    source: str, rows: Iterable[tuple[str, Any]], what: str, name: str | None, *, is_file: bool = True
) -> Table:
    """The table of rows that are mappings; its columns are all that any row has."""
    columns: dict[str, None] = {}
    made = []
    for place, row in rows:
        if isinstance(row, Mapping):
            columns.update(dict.fromkeys(row))
            made.append(Row(place, row))
        else:
            made.append(Row(place, {}, row if isinstance(row, InputFileError) else _no_row(place, row, what)))
    return Table(source, source, tuple(columns), tuple(made), name=name, is_file=is_file)
