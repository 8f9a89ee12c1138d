"""What a table is: its columns with types, units and meanings, and the rows that a record and its items give.

The heads of CSV files, the schemas of Arrow and Parquet and docs/reference/tables.md are made of these.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic_core import to_json

from modelgauge.data.item_records import ItemRecord

Kind = Literal["text", "integer", "number", "boolean", "time", "JSON"]
"""The type of a column. A cell of JSON may hold any value; where there is no JSON type, as in CSV, see `as_text`."""

Row = Sequence[Any]
"""The values of a table's columns, in their order; None if there is none."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its name, type, unit and meaning.

    Args:
        name: the same in all versions.
        kind: the type of its values.
        meaning: what a value says, as part of a sentence.
        unit: of its numbers; empty if they count things that the meaning names.
    """

    name: str
    kind: Kind
    meaning: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class RecordTable:
    """A table with a row for each thing of one sort.

    Args:
        name: the same in all versions.
        meaning: what has a row.
        key: how many of its first columns identify a row.
        columns: in order.
        rows_of_run: returns the rows that a `TestRecord` gives; None if only its items give rows.
        rows_of_item: returns the rows that an item of a run, of this id, gives.
    """

    name: str
    meaning: str
    key: int
    columns: tuple[Column, ...]
    rows_of_run: Callable[[Any], Iterable[Row]] | None = None
    rows_of_item: Callable[[str, ItemRecord], Iterable[Row]] | None = None

    @property
    def head(self) -> list[str]:
        """The names of its columns."""
        return [column.name for column in self.columns]


def as_text(value: Any) -> str | None:
    """A JSON value as the text of a cell: a text as it is, any other value as JSON, nothing for null."""
    return value if value is None or isinstance(value, str) else to_json(value).decode()
