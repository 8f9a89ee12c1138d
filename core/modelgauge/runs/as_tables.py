"""Runs as tables in files: CSV, JSONL or Parquet, written row by row, so that runs may be larger than memory."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from modelgauge.data.tables.frames import arrow_schema, arrow_table, frames_module
from modelgauge.data.tables.run_tables import Kind, RecordTable, Row, as_text
from modelgauge.files.formulas import escaped
from modelgauge.files.json_lines import json_lines_writer
from modelgauge.files.tables import csv_text
from modelgauge.runs.recorded_run import RecordedRun

Write = Callable[[Row], object]

_MOST_ROWS, _MOST_CHARACTERS = 50_000, 16_000_000  # of a row group, which is held in memory


def write_tables(
    runs: Iterable[RecordedRun],
    files: Mapping[Path, RecordTable],
    file_type: str,
    *,
    raw: bool = False,
    for_spreadsheets: bool = False,
    redact_json: Callable[[Any], Any] = lambda value: value,
) -> dict[Path, int]:
    """Write tables of runs, items in the order of their test, and return how many rows each has.

    Args:
        runs: their records and where they lie.
        files: the tables that are wanted.
        file_type: csv, jsonl or parquet.
        raw: leave texts in CSV unchanged that a spreadsheet would run. By default they get a leading apostrophe.
        for_spreadsheets: whether CSV begins with the byte order mark by which Excel recognizes UTF-8.
        redact_json: takes secrets out of a row.

    Raises:
        UsageError: pyarrow is not installed, which Parquet needs.
        OSError: a file cannot be written.
    """
    counts = dict.fromkeys(files, 0)
    with ExitStack() as stack:
        writers = {
            path: stack.enter_context(
                _writer(path, table, file_type, raw=raw, for_spreadsheets=for_spreadsheets)
            )
            for path, table in files.items()
        }

        def write(path: Path, rows: Iterable[Row]) -> None:
            for row in rows:
                # Most cells are numbers, or nothing.
                clean = [
                    redact_json(cell) if isinstance(cell, str | dict | list | tuple) else cell for cell in row
                ]
                writers[path](clean)
                counts[path] += 1

        of_runs = [(path, made) for path, table in files.items() if (made := table.rows_of_run)]
        of_items = [(path, rows) for path, table in files.items() if (rows := table.rows_of_item)]
        for run in runs:
            for path, rows_of_run in of_runs:
                write(path, rows_of_run(run.record))
            for item in run.items().records() if of_items else ():
                for path, rows_of_item in of_items:
                    write(path, rows_of_item(run.record, item))
    return counts


def _writer(path: Path, table: RecordTable, file_type: str, **options: bool) -> Any:
    if file_type == "parquet":
        return _parquet(path, table)
    return _csv(path, table, **options) if file_type == "csv" else _jsonl(path, table)


_AS_TEXT: dict[Kind, Callable[[Any], str | None]] = {
    "text": str,
    "JSON": as_text,
    "integer": str,
    "number": repr,
    "boolean": lambda value: "true" if value else "false",
    "time": datetime.isoformat,
}


@contextmanager
def _csv(path: Path, table: RecordTable, *, raw: bool, for_spreadsheets: bool) -> Iterator[Write]:
    as_texts = [_AS_TEXT[column.kind] for column in table.columns]
    texts = [place for place, column in enumerate(table.columns) if column.kind in ("text", "JSON")]

    def line(row: Row) -> str:
        cells = [value if value is None else text(value) for value, text in zip(row, as_texts, strict=True)]
        for place in () if raw else texts:
            cells[place] = escaped(cells[place])
        return csv_text([cells])

    with path.open("w", encoding="utf-8-sig" if for_spreadsheets else "utf-8", newline="") as file:
        file.write(csv_text([table.head]))
        yield lambda row: file.write(line(row))


@contextmanager
def _jsonl(path: Path, table: RecordTable) -> Iterator[Write]:
    head = table.head
    with path.open("wb") as file:
        writer = json_lines_writer(file, to_json)
        yield lambda row: writer.write(dict(zip(head, row, strict=True)))


@contextmanager
def _parquet(path: Path, table: RecordTable) -> Iterator[Write]:
    """Write a row group whenever enough rows have come together."""
    held: list[Row] = []
    characters = 0
    with frames_module("pyarrow.parquet").ParquetWriter(
        path, arrow_schema(table), compression="zstd"
    ) as file:

        def add(row: Row) -> None:
            nonlocal characters
            held.append(row)
            characters += sum(len(cell) for cell in row if isinstance(cell, str))
            if len(held) >= _MOST_ROWS or characters >= _MOST_CHARACTERS:
                flush()

        def flush() -> None:
            nonlocal characters
            file.write_table(arrow_table(table, held))
            held.clear()
            characters = 0

        yield add
        if held:
            flush()
