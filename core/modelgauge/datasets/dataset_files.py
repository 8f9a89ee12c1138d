"""The files that data sets are kept in: their types by name, how they are written, and where they are found."""

import io
import json
import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from os import PathLike
from pathlib import Path, PureWindowsPath
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from modelgauge.config.options import TEXT, one_of
from modelgauge.config.settings import Settings
from modelgauge.datasets.fields import ALIASES, CUSTOM, FIELDS, NamedColumns, as_arguments, chosen_columns
from modelgauge.datasets.rows import MARK
from modelgauge.errors import InputFileError, InvalidOptionError
from modelgauge.files.formulas import ESCAPED, is_formula, with_escapes
from modelgauge.files.json_lines import dumps_exactly, json_lines_writer
from modelgauge.files.regular import make_path, real_path
from modelgauge.files.tables import Table, csv_text, read_table, table_of_rows
from modelgauge.files.whole import replacing

FilePath: TypeAlias = str | PathLike[str]
FileType: TypeAlias = Literal["csv", "json", "jsonl"]

FILE_TYPES: tuple[str, ...] = get_args(FileType)


def detect_file_type(path: FilePath) -> str:
    """Return the type of a file by its extension: csv, json or jsonl.

    Raises:
        InputFileError: the file has another type.
        InvalidOptionError: it is not a path.
    """
    ending = make_path(path).suffix.lower().lstrip(".")
    if ending not in FILE_TYPES:
        raise InputFileError(
            f"{str(path)!r} is not a data set by its name.",
            fix="Save it as CSV, JSON (a list) or JSONL (an object a line), and name it .csv, .json or .jsonl.",
        )
    return ending


def read_source(source: Any, kind: str, given: Mapping[str, Any]) -> tuple[Table, NamedColumns]:
    """Read the rows of a source, and find out which columns the caller named.

    Args:
        source: the path of a file; for rows, a Hugging Face dataset or any iterable of mappings.
        kind: csv, json, jsonl or rows.
        given: the arguments of a method that reads, by name: `encoding_type`, `delimiter`, and those of
            `chosen_columns`.

    Raises:
        InputFileError: the source cannot be read.
        InvalidOptionError: there is no such argument, or its value does not fit.
    """
    named = dict(given)
    if kind == "rows":
        return table_of_rows(source), chosen_columns(named)
    written = {"encoding": named.pop("encoding_type", "utf-8")}
    if kind == "csv":
        written["delimiter"] = named.pop("delimiter", ",")
    return read_table(source, kind, **written), chosen_columns(named)


class FileForm(NamedTuple):
    """Format of a file that differs from the files that `save_as` writes.

    Args:
        columns: what it calls the fields, by field.
        delimiter: between the cells of a CSV file; None for a comma.
        encoding: of its text; None for UTF-8.
    """

    columns: Mapping[str, str] = MappingProxyType({})
    delimiter: str | None = None
    encoding: str | None = None

    def read(self, file: FilePath) -> tuple[Table, NamedColumns]:
        """Read the rows of a file of this form; see `read_source`."""
        return read_source(file, detect_file_type(file), self.arguments(file))

    def arguments(self, file: FilePath) -> dict[str, Any]:
        """Return the arguments of `EvaluationDataset.from_file` for this format. Only CSV files have a delimiter.

        Args:
            file: to be read.

        Raises:
            InputFileError: its type is unknown.
        """
        delimiter = self.delimiter if detect_file_type(file) == "csv" else None
        written = {"encoding_type": self.encoding, "delimiter": delimiter}
        given = {name: value for name, value in written.items() if value is not None}
        return as_arguments(self.columns) | given

    def over(self, other: "FileForm") -> "FileForm":
        """Return this form, filled up with what another says."""
        delimiter, encoding = self.delimiter or other.delimiter, self.encoding or other.encoding
        return FileForm({**other.columns, **self.columns}, delimiter, encoding)


_HOW_TO_WRITE = {
    "csv": "Write one a row, below the names of the columns.",
    "json": 'Write a list of them: [{"input": "a question", "expected_output": "its answer"}].',
    "jsonl": 'Write one a line: {"input": "a question", "expected_output": "its answer"}',
}


def without_goldens(path: FilePath) -> InputFileError:
    """Return the error for a readable file without goldens."""
    return InputFileError(f"{path} holds no goldens.", fix=_HOW_TO_WRITE[detect_file_type(path)])


def find_files(folder: Path, *, recursive: bool, data_dir: Path) -> tuple[list[Path], list[OSError]]:
    """Find the files in a folder that may be data sets by name, and report unreadable folders.

    Leaves out hidden files, and folders without goldens: data folders of runs, virtual environments, `node_modules`.
    The folder itself may be any of these.

    Args:
        folder: where to look.
        recursive: whether to look into the folders inside too.
        data_dir: where runs are written.
    """
    found: list[Path] = []
    unreadable: list[OSError] = []
    written = real_path(data_dir)
    for place, inside, names in os.walk(folder, onerror=unreadable.append):
        here = Path(place)
        inside[:] = [name for name in inside if recursive and _holds_goldens(here / name, written)]
        found.extend(here / name for name in names if _is_one_by_name(here / name))
    return sorted(found), unreadable


_SKIPPED = ("node_modules", "__pycache__", Settings.data_dir.name)
_MARKS_OF_ENVIRONMENTS = ("pyvenv.cfg", "conda-meta")


def _holds_goldens(folder: Path, data_dir: Path) -> bool:
    if folder.name.startswith(".") or folder.name in _SKIPPED or real_path(folder) == data_dir:
        return False
    return not any((folder / mark).exists() for mark in _MARKS_OF_ENVIRONMENTS)


def _is_one_by_name(path: Path) -> bool:
    if path.name.startswith(".") or path.suffix.lower().lstrip(".") not in FILE_TYPES:
        return False
    return path.is_file() or not path.exists()  # a link to nothing is a broken one; pipes are none


def path_to_save(file_type: str, directory: FilePath, file_name: str | None) -> Path:
    """Return the path at which to save a data set.

    Args:
        file_type: csv, json or jsonl.
        directory: the folder.
        file_name: with or without its ending; by default the date and time.

    Raises:
        InvalidOptionError: there is no such type, or the name is a path.
    """
    one_of(*FILE_TYPES).check("file_type", file_type)
    name = TEXT.check("file_name", file_name or f"{datetime.now().astimezone():%Y%m%d_%H%M%S_%f}")
    if PureWindowsPath(name).name != name:  # which knows the separators of all systems
        raise InvalidOptionError(
            f"file_name={name!r} is a path, and not the name of a file.",
            fix='Name the folder apart: save_as(…, directory="folder", file_name="goldens").',
        )
    return make_path(directory) / f"{name.removesuffix(f'.{file_type}')}.{file_type}"


def write_rows(path: Path, kind: str, rows: Sequence[Mapping[str, Any]], *, raw: bool = False) -> None:
    """Write a whole file, or leave an existing file unchanged.

    Args:
        path: the file; missing folders are made.
        kind: csv, json or jsonl.
        rows: of `row_of`.
        raw: see `file_text`.

    Raises:
        OSError: the disk refuses.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as written:
        written.write_text(file_text(kind, rows, raw=raw), encoding="utf-8", newline="")


def file_text(kind: str, rows: Sequence[Mapping[str, Any]], *, raw: bool = False) -> str:
    """Return the text of a data set file of this type.

    Args:
        kind: csv, json or jsonl.
        rows: of `row_of`.
        raw: leave cells of CSV as they are that spreadsheets run as formulas.
    """
    if kind == "csv":
        records = csv_rows(rows)
        return csv_text(records if raw else with_escapes(records))
    if kind == "json":
        return json.dumps(rows, ensure_ascii=False, allow_nan=False, indent=2) + "\n"
    text = io.StringIO()
    json_lines_writer(text).write_all(rows)
    return text.getvalue()


def csv_rows(rows: Sequence[Mapping[str, Any]]) -> list[list[str | None]]:
    """Return the records of a CSV file, with its header. Lists and objects are JSON, which may contain any delimiter.

    Args:
        rows: of `row_of`, and marks.
    """
    customs = [row.get(CUSTOM, {}) for row in rows]
    # Custom columns are columns of the file where they hold texts only, under a name that is not a field's.
    known = {*FIELDS, *ALIASES, MARK, ""}
    known |= {
        name
        for values in customs
        for name, value in values.items()
        if not isinstance(value, str) or name == ESCAPED or is_formula(name)
    }
    own = dict.fromkeys(name for values in customs for name in values if name not in known)
    records = []
    for row, custom in zip(rows, customs, strict=True):
        rest = {name: value for name, value in custom.items() if name not in own}
        apart = {name: value for name, value in custom.items() if name in own}
        record = {**row, **apart, CUSTOM: rest if rest or row.get(CUSTOM) == {} else None}
        records.append({name: _cell(value) for name, value in record.items() if value is not None})
    used = {name for record in records for name in record}
    head = [*(name for name in (*FIELDS, MARK) if name in used), *own]
    return [[*head], *([record.get(name) for name in head] for record in records)]


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else dumps_exactly(value)
