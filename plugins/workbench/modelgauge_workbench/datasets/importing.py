"""What a file would add to a data set: its rows and columns, and what is wrong with it. Nothing is saved."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from starlette.requests import Request

from modelgauge.data.test_cases import ConversationalGolden, Golden
from modelgauge.datasets.dataset_files import file_type_of
from modelgauge.datasets.fields import NamedColumns, chosen_columns, claimed, is_conversation
from modelgauge.datasets.reading import read_goldens, read_members, read_test_cases
from modelgauge.datasets.rows import MARK, TEST_CASE, row_of
from modelgauge.errors import UsageError
from modelgauge.files.tables import Table, table_of_bytes
from modelgauge.wording.phrases import counted
from modelgauge_workbench.safety import form_of

LARGEST_FILE = 64 << 20
"""Bytes of a file that a table in the browser takes."""
_MOST_PROBLEMS = 200
_FORMULA = re.compile(r"=|[+@-]\w+[(|]")  # as spreadsheets take it, and those who attack people by them


def import_json(request: Request) -> Any:
    """What the file in a form would add."""
    form = form_of(request)
    file = form.get("file")
    name = str(getattr(file, "filename", "") or "")
    if not name:
        raise UsageError("No file is chosen.", fix="Choose a CSV, JSON or JSONL file.")
    if file.size > LARGEST_FILE:
        most, alias = LARGEST_FILE >> 20, request.path_params["alias"]
        raise UsageError(
            f"{name} has {file.size >> 20:,} MB, and a table in the browser takes {most} MB.",
            fix=f'Save it from a terminal: modelgauge datasets push "{name}" "{alias}"',
        )
    column, encoding = (str(form.get(field, "")).strip() for field in ("column", "encoding"))
    table = _table_of(file.file.read(), name, encoding or "utf-8")
    return _imported(table, chosen_columns({"input_col_name": column} if column else {}))


def _table_of(data: bytes, name: str, encoding: str) -> Table:
    """The table of a file, whose cells are separated as they seem to be."""
    read = partial(table_of_bytes, data, name, file_type_of(name), encoding=encoding)
    table = read()
    delimiter = table.likely_delimiter()
    return table if delimiter is None else read(delimiter=delimiter)


def _imported(table: Table, chosen: NamedColumns) -> dict[str, Any]:
    readings = [*read_members(table, chosen)]
    problems = [str(problem) for reading in readings for problem in reading.problems]
    more = len(problems) - _MOST_PROBLEMS
    return {
        "rows": [row_of(member) for member in readings[0].members]
        if len(readings) == 1
        else [*_mixed_rows(table, chosen)],
        "columns": [*_columns(table, chosen)],
        "problems": problems[:_MOST_PROBLEMS] + ([f"And {more:,} more like these."] if more > 0 else []),
        "unread": sum(reading.unread for reading in readings),
        "doubts": [*(doubt for reading in readings for doubt in reading.doubts), *_formulas(table)],
    }


def _mixed_rows(table: Table, chosen: NamedColumns) -> Iterator[dict[str, Any]]:
    """The rows of a table in which goldens and test cases are mixed, in its order."""
    for row in table.rows:
        alone = replace(table, rows=(row,))
        if row.values.get(MARK) == TEST_CASE:
            yield from (
                {**row_of(member), MARK: TEST_CASE} for member in read_test_cases(alone, chosen).members
            )
        else:
            yield from map(row_of, read_goldens(alone, chosen).members)


def _columns(table: Table, chosen: NamedColumns) -> Iterator[dict[str, str]]:
    """What becomes of each column."""
    kind = ConversationalGolden if is_conversation(table, chosen.columns) else Golden
    found = claimed(table, chosen.columns, kind.model_fields, kind.__name__)
    fields = {column: field for field, column in found.items()}
    for column in map(str, table.columns):
        own = "marks test cases" if column == MARK else "a column of your own"
        field = fields.get(column)
        yield {"name": column, "becomes": own if field is None else f"the field {field}"}


def _formulas(table: Table) -> Iterator[str]:
    """Say that a spreadsheet would compute what stands in the file as a text."""
    found = [
        f"{row.place}, column {column!r}"
        for row in table.rows
        for column, value in row.values.items()
        if isinstance(value, str) and _FORMULA.match(value)
    ]
    if found:
        yield (
            f"{counted(len(found), 'text looks like a formula', 'texts look like formulas')}, the first in {found[0]}. "
            "They stay texts here; a spreadsheet that opens an export would compute them."
        )
