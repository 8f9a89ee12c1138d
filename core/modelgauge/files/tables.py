"""Tables: rows with named columns, each with its place, from CSV, JSON and JSONL files and from rows in memory.

A file's bytes become a text, the text becomes rows. What the columns mean is for those who ask for a table.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import IO, Any

from modelgauge.errors import InputFileError, InvalidOptionError
from modelgauge.files.formulas import ESCAPED, without_escapes
from modelgauge.files.json_lines import DECODER, read_json_lines, text_lines, why_no_json
from modelgauge.files.plain_values import plain_value
from modelgauge.files.regular import decode_text, opened_file
from modelgauge.wording.phrases import beginning, counted, first_few


class OtherContentError(InputFileError):
    """A file is readable, but its content is of another kind."""


@dataclass(frozen=True)
class SourceRow:
    """A row of a table, with where it stands.

    Args:
        place: where it is, for messages.
        values: by column; None if the row has nothing there.
        problem: why it cannot be read, and has no values; or what of it stands in a column without a name.
    """

    place: str
    values: Mapping[str, Any]
    problem: InputFileError | None = None


@dataclass(frozen=True)
class Table:
    """The rows of one file or data set, with their columns.

    Args:
        source: the file as it was given, or what stands for it in messages.
        heading: where the columns are named.
        columns: their names, in order.
        rows: in order.
        cells_are_text: whether values are the cells of a CSV file, which know no types.
        name: what the table can be called.
        is_file: whether the rows stand in a file, which command lines can name.
    """

    source: str
    heading: str
    columns: tuple[str, ...]
    rows: tuple[SourceRow, ...]
    cells_are_text: bool = False
    name: str | None = None
    is_file: bool = True

    def columns_are(self) -> str:
        """Return the sentence that lists the columns, for errors."""
        delimiter = self.likely_delimiter()
        return _columns_are(self.columns) + ("" if delimiter is None else f" {_say_delimiter(delimiter)}")

    def likely_delimiter(self) -> str | None:
        """Return the likely delimiter of a CSV file that seems to have only one column; None if it has more."""
        if not self.cells_are_text or len(self.columns) != 1:
            return None
        return next((delimiter for delimiter in _DELIMITERS if delimiter in self.columns[0]), None)


_DELIMITERS = ";\t|,"
_MOST_LISTED = 30


def _columns_are(columns: Sequence[str]) -> str:
    if not columns:
        return "There are no columns."
    return f"The columns are: {first_few([*map(repr, columns)], _MOST_LISTED)}."


def _say_delimiter(delimiter: str) -> str:
    typed = {"\t": "\\t"}.get(delimiter, delimiter)  # as people write it on a command line
    return (
        f"{delimiter!r} seems to separate the cells of this file: say delimiter={delimiter!r}; "
        f'on the command line --delimiter "{typed}".'
    )


# --- files ------------------------------------------------------------------------------------------------------------


def read_table(
    path: str | PathLike[str], kind: str, *, encoding: str = "utf-8", delimiter: str = ","
) -> Table:
    """Read a file; see `table_of_bytes`."""
    with opened_file(path) as file:
        return _read_table(file, str(path), kind, encoding=encoding, delimiter=delimiter)


def table_of_bytes(
    data: bytes, source: str, kind: str, *, encoding: str = "utf-8", delimiter: str = ","
) -> Table:
    """Read the bytes of a CSV, JSON or JSONL file as a table.

    A row that cannot be read has its problem in the table, so that the others can be used.

    Args:
        data: all of the file.
        source: its path, for messages.
        kind: csv, json (a list of objects) or jsonl (an object a line).
        encoding: of the text; a byte order mark is skipped.
        delimiter: between the cells of a CSV file.

    Raises:
        InputFileError: it cannot be read as what it should be; the message names file and line.
        InvalidOptionError: the delimiter is not a single character that can separate cells, or the encoding no text.
    """
    return _read_table(io.BytesIO(data), source, kind, encoding=encoding, delimiter=delimiter)


def _read_table(file: IO[bytes], source: str, kind: str, *, encoding: str, delimiter: str) -> Table:
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n':
        raise InvalidOptionError(
            f"delimiter={delimiter!r} cannot separate cells.", fix="Use one character: ',', ';' or '\\t'."
        )
    if kind == "jsonl":
        values = _json_lines(source, text_lines(file, source, encoding))
    else:
        text = decode_text(file.read(), source, encoding, may_hold_nul=kind == "csv")
        if kind == "csv":
            return _csv_table(source, text, delimiter)
        text = text.replace("\r\n", "\n").replace("\r", "\n")  # the texts in JSON hold none as it is
        values = _json_list(source, text)
    return _make_table(source, values, Path(source).stem)


# --- CSV --------------------------------------------------------------------------------------------------------------

_QUOTED = r'"(?:[^"]++|"")*+"'
_EMPTY = '"\ud800"'  # stands for "" while csv reads, which takes it for a missing cell; no file holds it


def _csv_records(source: str, text: str, delimiter: str) -> list[tuple[int, list[str | None]]]:
    """Yield the records of a file and the lines on which they begin.

    A missing cell is None, a quoted one ("") an empty text. Where all names of columns are quoted, the writer quotes
    all cells, and both are missing.
    """
    between = re.escape(delimiter)
    if not re.match(rf"[\r\n]*{_QUOTED}(?:{between}{_QUOTED})*+(?![^\r\n])", text):
        marked = re.compile(rf"(?<![^{between}\r\n]){_QUOTED}")
        text = marked.sub(lambda cell: _EMPTY if cell[0] == '""' else cell[0], text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    records, line = [], 1
    limit = csv.field_size_limit(2**31 - 1)  # what fits into a C long everywhere; it is the whole process's
    try:
        for cells in reader:
            if cells:  # none on a blank line
                records.append((line, ["" if cell == _EMPTY[1:-1] else cell or None for cell in cells]))
            line = reader.line_num + 1
    except csv.Error as error:
        if "unexpected end" in str(error):
            problem = f'line {line}: a cell begins with a quote (") that is never closed'
        else:
            problem = (
                f'line {reader.line_num}: text follows a closing quote ("); a quote inside is written ""'
            )
        first = text.lstrip().splitlines()[0]
        marks = [
            mark for mark in _DELIMITERS if f'"{mark}' in first or (delimiter not in first and mark in first)
        ]
        other = next((mark for mark in marks if mark != delimiter), None)
        fix = "Close the quote, or write it twice inside a cell." if other is None else _say_delimiter(other)
        raise InputFileError(f"{source}, {problem}.", fix=fix) from None
    finally:
        csv.field_size_limit(limit)
    return records


def _csv_table(source: str, text: str, delimiter: str) -> Table:
    records = _csv_records(source, text, delimiter)
    if not records:
        raise InputFileError(f"{source} is empty.", fix="Its first line must name the columns.")
    (line, head), *rest = records
    heading, columns = f"{source}, line {line}", [cell or "" for cell in head]
    named = tuple(filter(None, columns))
    repeated = [name for name, times in Counter(named).items() if times > 1]
    if repeated:
        raise InputFileError(
            f"{heading}: the column {repeated[0]!r} is there twice.", fix="Rename one of them."
        )
    rows = [
        _csv_row(f"{source}, line {line}", columns, cells, str(number))
        for number, (line, cells) in enumerate(rest)
    ]
    if ESCAPED in named:
        named = tuple(name for name in named if name != ESCAPED)
        rows = [replace(row, values=without_escapes(row.values)) for row in rows]
    return Table(source, heading, named, tuple(rows), cells_are_text=True, name=Path(source).stem)


def _csv_row(place: str, columns: list[str], cells: list[str | None], number: str) -> SourceRow:
    if len(cells) != len(columns):
        fix = (
            "Write the delimiter for a cell that is empty, too."
            if len(cells) < len(columns)
            else "Put quotes around a cell that holds the delimiter or a quote."
        )
        problem = InputFileError(
            f"{place} has {counted(len(cells), 'cell')}, and the first line names {counted(len(columns), 'column')}.",
            fix=f"{fix} {_columns_are(columns)}",
        )
        return SourceRow(place, {}, problem)
    values = {name: cell for name, cell in zip(columns, cells, strict=True) if name}
    for index, (name, cell) in enumerate(zip(columns, cells, strict=True), 1):
        is_row_number = index == 1 and cell == number  # pandas writes it: no more than the order
        if not name and (cell or "").strip() and not is_row_number:
            problem = InputFileError(
                f"{place}, column {index}: {beginning(repr(cell), 100)} stands in a column without a name.",
                fix=f"Name column {index} where the file names the others, or empty it; the index of a DataFrame is "
                "left out by df.to_csv(…, index=False).",
            )
            return SourceRow(place, values, problem)
    return SourceRow(place, values)


def csv_text(rows: Iterable[Sequence[str | None]]) -> str:
    r"""Write records so that they are read as they are: None as no cell, an empty text as `""`; lines end with `\n`.

    Args:
        rows: of equal length, the names of the columns first.
    """
    return "".join(",".join(map(_csv_cell, row)) + "\n" for row in rows)


_IN_QUOTES = re.compile(r'[,"\r\n]')


def _csv_cell(cell: str | None) -> str:
    if cell is None or (cell and not _IN_QUOTES.search(cell)):
        return cell or ""
    return '"' + cell.replace('"', '""') + '"'


# --- JSON -------------------------------------------------------------------------------------------------------------


_ONE_A_LINE = "Write one whole object a line; a list of objects is named .json, and for the JSON methods."


def _json_lines(source: str, lines: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Yield the position and value of each line; an error for lines that are not JSON."""
    for place, value in read_json_lines(lines, source):
        if isinstance(value, ValueError):
            yield place, InputFileError(f"{place}: this is not JSON: {value}.", fix=_ONE_A_LINE)
        else:
            yield place, value


def _json_list(source: str, text: str) -> Iterator[tuple[str, Any]]:
    """Yield the elements of the outermost list one by one, with their lines."""
    at = _after_space(text, 0)
    if at == len(text):
        raise InputFileError(f"{source} is empty.", fix='Write [{"input": …}, …], or [] for no rows.')
    if text[at] != "[":
        of_another_kind = OtherContentError if text[at] == "{" else InputFileError
        raise of_another_kind(
            f"{source}: this is not a JSON list of objects.",
            fix='Write [{"input": …}, …]; a file with one object a line is named .jsonl, and for the JSONL methods.',
        )
    line, counted_until, at = 1, 0, _after_space(text, at + 1)
    more = text[at : at + 1] != "]"
    while more:
        line, counted_until = line + text.count("\n", counted_until, at), at
        try:
            value, at = DECODER.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            line += text.count("\n", at, getattr(error, "pos", at))
            raise InputFileError(
                f"{source}, line {line}: this is not JSON: {why_no_json(error)}.",
                fix="Correct it there, or just before.",
            ) from None
        yield f"{source}, line {line}", value
        at = _after_space(text, at)
        more = text.startswith(",", at)
        at = _after_space(text, at + 1) if more else at
    if text[at : at + 1] != "]":
        line += text.count("\n", counted_until, at)
        raise InputFileError(
            f"{source}, line {line}: ',' or ']' is missing.", fix="Write a comma between two objects."
        )
    if text[at + 1 :].strip():
        raise InputFileError(f"{source}: more follows the list.", fix="Write one list of objects.")


_SPACE = re.compile(r"[ \t\n]*")


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


# --- rows in memory ---------------------------------------------------------------------------------------------------


def table_of_rows(rows: Any, source: str = "the dataset") -> Table:
    """Convert a Hugging Face dataset, or any other iterable of mappings, to a table with values as JSON.

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
    return _make_table(
        source, ((place, _plain_row(place, row)) for place, row in places), name, is_file=False
    )


def _plain_row(place: str, row: Any) -> Any:
    try:
        return {name: plain_value(value) for name, value in row.items()} if isinstance(row, Mapping) else row
    except RecursionError:
        return InputFileError(
            f"{place}: a value of it holds itself, or is nested too deep.", fix="Make texts or numbers of it."
        )


def _make_table(
    source: str, values: Iterable[tuple[str, Any]], name: str | None, *, is_file: bool = True
) -> Table:
    """Create a table from rows that are mappings. Its columns are those of any row."""
    columns: dict[str, None] = {}
    rows = []
    for place, value in values:
        if isinstance(value, Mapping):
            columns.update(dict.fromkeys(value))
            rows.append(SourceRow(place, value))
        else:
            problem = value if isinstance(value, InputFileError) else _no_row(place, value, is_file=is_file)
            rows.append(SourceRow(place, {}, problem))
    return Table(source, source, tuple(columns), tuple(rows), name=name, is_file=is_file)


def _no_row(place: str, value: Any, *, is_file: bool) -> InputFileError:
    what = "object" if is_file else "dict"
    problem = f"{place}: this is of type {type(value).__name__}; each row must be one {what}."
    if isinstance(value, list) and any(isinstance(row, dict) for row in value):
        return InputFileError(problem, fix=f"Take each {what} out of the list that it stands in.")
    return OtherContentError(
        problem,
        fix='Rows are like {"input": "a question", "expected_output": "its answer"}; a DataFrame\'s '
        "are df.to_dict('records').",
    )
