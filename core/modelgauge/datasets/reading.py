"""Detection of what a table contains, goldens or test cases, and of their columns.

`rows.py` makes a golden or test case from a row.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from modelgauge.data.case_fields import RUNTIME_FIELDS, prefilled
from modelgauge.data.test_cases import ConversationalGolden, ConversationalTestCase, Golden, LLMTestCase
from modelgauge.datasets.column_doubts import column_doubts, is_question
from modelgauge.datasets.fields import ALIASES, FIELDS, NamedColumns, claimed, is_conversation
from modelgauge.datasets.rows import MARK, NEEDED, TEST_CASE, Member, Reading
from modelgauge.errors import InputFileError
from modelgauge.files.tables import OtherContentError, Table, table_of_rows
from modelgauge.wording.did_you_mean import closest
from modelgauge.wording.phrases import counted


def holds_test_cases(table: Table) -> bool:
    """Return whether some rows are marked as test cases, because goldens and test cases were saved together."""
    return any(row.values.get(MARK) == TEST_CASE for row in table.rows)


# As in the tools that people come from: in CSV files goldens separate contexts by |, test cases by ;. In JSON, where
# lists are lists, they write | for both, and a ; is one of a sentence.
_BETWEEN_CONTEXTS_OF_CASES = {"context": ";", "retrieval_context": ";"}


def read_members(table: Table, chosen: NamedColumns) -> Iterator[Reading]:
    """Read the goldens of a table, then the test cases among them, if any are marked.

    Raises:
        InputFileError, InvalidOptionError: a column is missing, or does not fit.
    """
    yield read_goldens(table, chosen)
    if holds_test_cases(table):
        yield read_test_cases(table, chosen)


def _of_kind(table: Table, *, test_cases: bool) -> Table:
    """Return the rows of one kind if goldens and test cases are mixed; any other table is returned unchanged."""
    if not holds_test_cases(table):
        return table
    rows = tuple(
        replace(row, values={name: value for name, value in row.values.items() if name != MARK})
        for row in table.rows
        # A row that cannot be read is reported once, among the goldens.
        if (row.problem is None and row.values.get(MARK) == TEST_CASE) is test_cases
    )
    return replace(table, columns=tuple(name for name in table.columns if name != MARK), rows=rows)


def read_goldens(table: Table, chosen: NamedColumns) -> Reading:
    """Read the goldens of a table: conversational goldens if it has scenarios or turns, and no inputs.

    Rows that are marked as test cases are left out.

    Raises:
        InputFileError, InvalidOptionError: a column is missing, or does not fit.
    """
    table = _of_kind(table, test_cases=False)
    reading = _read(table, chosen, ConversationalGolden if is_conversation(table, chosen.columns) else Golden)
    found = [names for golden in reading.members if (names := prefilled(golden))]
    if found:
        fields = " and ".join(name for name in RUNTIME_FIELDS if any(name in names for names in found))
        has = counted(len(found), "golden has", "goldens have")
        reading.doubts.append(f"{has} {fields}, which a run of the app must say: that belongs to test cases")
    return reading


def read_test_cases(table: Table, chosen: NamedColumns) -> Reading:
    """Read the test cases of a table: conversational test cases if it has turns, and no inputs.

    Where rows are marked as test cases, the others are left out.

    Raises:
        InputFileError, InvalidOptionError: a column is missing, or does not fit.
    """
    conversation = is_conversation(table, chosen.columns)
    table = _of_kind(table, test_cases=True)
    if table.cells_are_text:
        named = {field: chosen.delimiters[field] for field in chosen.delimited}
        chosen = chosen._replace(delimiters={**chosen.delimiters, **_BETWEEN_CONTEXTS_OF_CASES, **named})
    return _read(table, chosen, ConversationalTestCase if conversation else LLMTestCase)


def _read(table: Table, chosen: NamedColumns, kind: type[Member]) -> Reading:
    unreadable = [row.problem for row in table.rows if row.problem is not None]
    if unreadable and not table.columns:  # nothing here looks like a data set
        raise unreadable[0]
    needed = NEEDED[kind]
    optional = {*FIELDS}.difference(needed, ["actual_output"]) if chosen.is_lenient else ()
    columns = claimed(table, chosen.columns, kind.model_fields, kind.__name__, optional)
    if not any(field in columns for field in needed) and (table.rows or table.columns):
        raise _no_column(table, needed)
    reading = Reading(table, columns, chosen, kind)
    for row in table.rows:
        if row.problem or not table.cells_are_text or any(value is not None for value in row.values.values()):
            reading.read(row)  # others are blank: spreadsheets end in rows of delimiters
    reading.doubts = [*column_doubts(table, chosen.columns, columns, kind), *reading.found_doubts()]
    return reading


def _no_column(table: Table, needed: Sequence[str]) -> InputFileError:
    wanted = " or ".join(map(repr, needed))
    problem = f"{table.heading}: there is no column {wanted}."
    first = str(table.columns[0]) if table.columns else ""
    alone = table.cells_are_text and len(table.columns) == 1
    if alone and first.startswith(("sep=", "#")):  # a line of Excel's own, or a comment
        return OtherContentError(problem, fix="Delete what stands above the line that names the columns.")
    delimiter = table.likely_delimiter()
    if delimiter is not None:
        named = {name for names in NEEDED.values() for name in names}
        ours = not named.isdisjoint(first.split(delimiter))
        return (InputFileError if ours else OtherContentError)(problem, fix=table.columns_are())
    if table.cells_are_text and first.lstrip().startswith(("[", "{")):
        return InputFileError(
            problem, fix="This looks like JSON: name it .json, or .jsonl with an object a line."
        )
    if "\0" in first:
        fix = "The names are UTF-16, it seems: say encoding_type='utf-16-le'; on the command line --encoding utf-16-le."
        return InputFileError(problem, fix=f"{table.columns_are()} {fix}")
    return OtherContentError(problem, fix=f"{table.columns_are()} {_name_it(table, needed[0])}")


def _name_it(table: Table, field: str) -> str:
    """Return advice on naming the column of a field, if no column has been recognized."""
    free = [str(column) for column in table.columns if column not in (*FIELDS, *ALIASES)]
    if table.columns and not free:
        return f"Add a column {field!r}."
    asking = [column for column in free if is_question(column)]
    likely = [*closest(field, free), *asking, *free, "question"][0]
    typed = f"{field}={likely}" if likely.isidentifier() else f'"{field}={likely}"'
    on_command_line = f"; on the command line --column {typed}" if table.is_file else ""
    return f"Say which one it is: {field}_col_name={likely!r}, say{on_command_line}."


def restore_members(rows: Sequence[Mapping[str, Any]], source: str) -> tuple[list[Any], list[Any]]:
    """Read goldens and test cases from the rows of `rows_of`.

    Args:
        rows: that say them.
        source: for messages.

    Raises:
        InputFileError: a row cannot be read.
    """
    found: list[list[Any]] = []
    for reading in read_members(table_of_rows(rows, source), NamedColumns({}, {})):
        if reading.problems:
            raise reading.error()
        found.append(reading.members)
    goldens, cases = found if len(found) > 1 else (*found, [])
    return goldens, cases
