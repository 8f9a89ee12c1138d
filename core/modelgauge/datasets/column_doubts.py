"""Columns with other names than fields: guesses at what they hold, and warnings of what is missing or misspelt."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from modelgauge.datasets.fields import ALIASES, FIELDS
from modelgauge.files.tables import Table
from modelgauge.wording.did_you_mean import closest


def guess_columns(table: Table) -> dict[str, str]:
    """Guess which columns hold the question and the reference, by field, if none has the name of the field.

    Args:
        table: the table.
    """
    names = [str(column) for column in table.columns]
    free = [name for name in names if name not in (*FIELDS, *ALIASES)]
    found = {}
    if not {"input", "scenario", "turns"}.intersection(names):
        found["input"] = next((name for name in free if is_question(name)), "")
    if not {"expected_output", "expected_outcome"}.intersection(names):
        found["expected_output"] = next((name for name in free if _REFERENCES.fullmatch(name)), "")
    return {field: name for field, name in found.items() if name}


def is_question(column: str) -> bool:
    """Return whether a column seems to hold questions by its name."""
    return any(word in column.lower() for word in _ASKING)


_ASKING = ("question", "query", "prompt", "instruction")


def column_doubts(
    table: Table, named: Mapping[str, str], found: Mapping[str, str], kind: type[BaseModel]
) -> Iterator[str]:
    """Yield a warning for each column that the file or the caller may have meant differently.

    Args:
        table: the table.
        named: the columns that the caller named, by field.
        found: the column of each field that has one.
        kind: the class of the rows.
    """
    yield from _missing(named, found)
    yield from _kept(table, found, kind.model_fields)


def _missing(named: Mapping[str, str], found: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning for each named column that does not exist."""
    for field, column in named.items():
        if field not in found:
            yield f"there is no column {column!r}, which was named for {field!r}: it is left out"


def _kept(table: Table, columns: Mapping[str, str], fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield a warning for each custom column with a name like that of a field without a column."""
    free = [ALIASES.get(name, name) for name in fields if ALIASES.get(name, name) not in columns]
    for column in table.columns:
        near = closest(str(column), free, cutoff=0.8) if column not in columns.values() else []
        if near:
            yield f"the column {column!r} is kept as a custom one, but may be meant as {near[0]!r}"
        elif column not in columns.values() and _REFERENCES.fullmatch(str(column)):
            if "expected_output" in free:
                typed = f"; on the command line --column expected_output={column}" if table.is_file else ""
                yield (
                    f"the column {column!r} is kept as a custom one, and there is no expected_output; if it is "
                    f"meant as that, pass expected_output_col_name={column!r}{typed}"
                )
            elif "expected_output" in columns:
                yield (
                    f"the column {column!r}, which other tools judge by, is kept as a custom one: metrics read "
                    f"{columns['expected_output']!r}"
                )


_REFERENCES = re.compile(
    r"""_*(the[_ ])?(
        (expected|target|reference|ideal|correct|gold|golden|best|right)
            ([_ ]?(answer|output|response|result|value|label|completion|text|context)s?)?
        | (answer|solution|label|target|reference)s?
        | ground[_ ]?truths?
        | (answer|label)[_ ]?key
        | asserts? | assertions? | rubrics? | criteria
    )_*[0-9]*""",
    re.IGNORECASE | re.VERBOSE,
)
"""Matches the names of columns that other tools judge answers by."""
