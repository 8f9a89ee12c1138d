"""What a file would add to a data set: its rows and columns, and what is wrong with it. Nothing is saved."""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from starlette.requests import Request

from modelgauge.data.test_cases import ConversationalGolden, Golden
from modelgauge.datasets.column_doubts import guess_columns
from modelgauge.datasets.dataset_files import detect_file_type
from modelgauge.datasets.fields import (
    ALIASES,
    CUSTOM,
    FIELDS,
    NamedColumns,
    as_arguments,
    chosen_columns,
    list_names,
)
from modelgauge.datasets.reading import read_goldens, read_members, read_test_cases
from modelgauge.datasets.rows import MARK, TEST_CASE, make_row
from modelgauge.errors import InputFileError, ModelGaugeError, UsageError
from modelgauge.files.tables import Table, table_of_bytes
from modelgauge.wording.phrases import counted
from modelgauge_workbench.safety import form_of

LARGEST_FILE = 64 << 20
"""Bytes of a file that a table in the browser takes."""
LEFT_OUT = "-"
"""The choice for a column that is not imported."""
_ASKED = {"input", "scenario", "turns"}
_MOST_PROBLEMS = 200
_ENCODING = re.compile(r"--encoding (\S+)\.$")  # which is chosen on the page
_FORMULA = re.compile(r"=|[+@-]\w+[(|]")  # as spreadsheets take it, and those who attack people by them


def import_json(request: Request) -> Any:
    """Return what the file in a form would add, with its columns as the form says, or else as they seem to be."""
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
    table = _table_of(file.file.read(), name, str(form.get("encoding", "")).strip() or "utf-8")
    return _imported(table, _choices(table, str(form.get("columns", ""))))


def _table_of(data: bytes, name: str, encoding: str) -> Table:
    """The table of a file, whose cells are separated as they seem to be."""
    read = partial(table_of_bytes, data, name, detect_file_type(name), encoding=encoding)
    try:
        table = read()
    except InputFileError as error:
        likely = _ENCODING.search(error.fix)
        if likely is None:
            raise
        fix = f"Save the file as UTF-8, or choose its encoding beside it: {likely[1]}, say."
        raise UsageError(error.problem, fix=fix) from None
    delimiter = table.likely_delimiter()
    return table if delimiter is None else read(delimiter=delimiter)


def _choices(table: Table, sent: str) -> dict[str, str]:
    """Return what each column becomes: a field, `LEFT_OUT`, or empty for a column of the user's own.

    Args:
        table: of the file.
        sent: the choices of a person as JSON; empty before there are any.

    Raises:
        UsageError: they are no such choices.
    """
    names = [str(column) for column in table.columns if column != MARK]
    if sent:
        return {name: field for name, field in _sent(sent).items() if name in names}
    guesses = {column: field for field, column in guess_columns(table).items()}
    choices = {name: guesses.get(name) or _field_named(name) for name in names}
    fields = _fields_of(choices)
    return {name: field if field in fields else "" for name, field in choices.items()}


def _sent(text: str) -> dict[str, str]:
    try:
        chosen = dict(json.loads(text))
        if {*chosen.values()} <= {"", LEFT_OUT, *FIELDS}:
            return chosen
    except (ValueError, TypeError, RecursionError):
        pass
    raise UsageError("The form has no valid choice of columns.", fix="Reload the page.")


def _field_named(column: str) -> str:
    """Return the field whose column is found by its name; empty if there is none."""
    return next((field for field in FIELDS if column in list_names(field)), "")


def _fields_of(choices: Mapping[str, str]) -> list[str]:
    """Return the fields that the rows can have: of questions, or of conversations if no column is the input."""
    chosen = {*choices.values()}
    kind = ConversationalGolden if "input" not in chosen and chosen & _ASKED else Golden
    return [field for name in kind.model_fields if (field := ALIASES.get(name, name)) != CUSTOM]


def _imported(table: Table, choices: Mapping[str, str]) -> dict[str, Any]:
    said: dict[str, Any] = {
        "columns": [*_columns(choices)],
        "rows": [],
        "unread": len(table.rows),
        "doubts": [],
    }
    if problem := _wrong_choice(choices):
        return said | {"problems": [problem]}
    table = _without(table, {name for name, field in choices.items() if field == LEFT_OUT})
    fields = {
        field: name for name, field in choices.items() if field not in ("", LEFT_OUT, _field_named(name))
    }
    chosen = chosen_columns(as_arguments(fields))
    try:
        readings = [*read_members(table, chosen)]
    except ModelGaugeError as error:
        return said | {"problems": [f"{error.problem} {error.fix}"]}
    problems = [str(problem) for reading in readings for problem in reading.problems]
    more = len(problems) - _MOST_PROBLEMS
    return said | {
        "rows": [make_row(member) for member in readings[0].members]
        if len(readings) == 1
        else [*_mixed_rows(table, chosen)],
        "problems": problems[:_MOST_PROBLEMS] + ([f"And {more:,} more like these."] if more > 0 else []),
        "unread": sum(reading.unread for reading in readings),
        "doubts": [*(doubt for reading in readings for doubt in reading.doubts), *_formulas(table)],
    }


def _wrong_choice(choices: Mapping[str, str]) -> str:
    """Return why the file cannot be read with these choices; empty if it can."""
    times = Counter(field for field in choices.values() if field not in ("", LEFT_OUT))
    twice = next((field for field, number in times.items() if number > 1), None)
    if twice is not None:
        names = " and ".join(repr(name) for name, field in choices.items() if field == twice)
        return f"The columns {names} cannot all become {twice}: choose one of them."
    if not _ASKED.intersection(times):
        return "Choose the column that becomes input: what your app is asked. Conversations have turns or a scenario."
    return ""


def _without(table: Table, left_out: Collection[str]) -> Table:
    """Return a table without some of its columns."""
    if not left_out:
        return table
    rows = [
        replace(row, values={name: value for name, value in row.values.items() if str(name) not in left_out})
        for row in table.rows
    ]
    columns = tuple(column for column in table.columns if str(column) not in left_out)
    return replace(table, columns=columns, rows=tuple(rows))


def _mixed_rows(table: Table, chosen: NamedColumns) -> Iterator[dict[str, Any]]:
    """The rows of a table in which goldens and test cases are mixed, in its order."""
    for row in table.rows:
        alone = replace(table, rows=(row,))
        if row.values.get(MARK) == TEST_CASE:
            yield from (
                {**make_row(member), MARK: TEST_CASE} for member in read_test_cases(alone, chosen).members
            )
        else:
            yield from map(make_row, read_goldens(alone, chosen).members)


def _columns(choices: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield each column with what it becomes, and what it can become."""
    fields = _fields_of(choices)
    for name, becomes in choices.items():
        own = [] if _field_named(name) in fields else [""]
        yield {"name": name, "becomes": becomes, "can": [*own, LEFT_OUT, *fields]}


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
