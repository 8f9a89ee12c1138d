"""Tables as Arrow tables and pandas data frames; both packages are of the extra `frames`, and imported on use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from modelgauge.data.tables.item_tables import TABLES_OF_ITEMS
from modelgauge.data.tables.run_tables import RESULTS, RUNS, Column, RecordTable, Row, as_text
from modelgauge.errors import InvalidOptionError, UsageError
from modelgauge.wording.did_you_mean import known_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    import pyarrow as pa

TableName = Literal[
    "runs", "results", "items", "completions", "annotations", "measurements", "repeat_measurements", "spans"
]
TABLES: dict[str, RecordTable] = {table.name: table for table in (RUNS, RESULTS, *TABLES_OF_ITEMS)}
"""All tables by their names."""


def table_named(name: str) -> RecordTable:
    """Return the table with this name.

    Raises:
        InvalidOptionError: no table has this name.
    """
    if name not in TABLES:
        raise InvalidOptionError(
            f"There is no table {name!r}.", fix=known_names(name, TABLES, "The tables are")
        )
    return TABLES[name]


def frames_module(name: str) -> Any:
    """Import a module of the extra `frames`.

    Raises:
        UsageError: it is not installed.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"This needs {error.name}, which is not installed.",
            fix='pip install "modelgauge-framework[frames]"',
        ) from error


def arrow_schema(table: RecordTable) -> pa.Schema:
    """Return the schema of a table. The metadata of its fields has meanings and units."""
    arrow = frames_module("pyarrow")
    types = {
        "text": arrow.string(),
        "JSON": arrow.string(),
        "integer": arrow.int64(),
        "number": arrow.float64(),
        "boolean": arrow.bool_(),
        "time": arrow.timestamp("us", tz="UTC"),
    }
    return arrow.schema(
        [arrow.field(column.name, types[column.kind], metadata=_metadata(column)) for column in table.columns]
    )


def _metadata(column: Column) -> dict[str, str]:
    return {"description": column.meaning, **({"unit": column.unit} if column.unit else {})}


def arrow_table(table: RecordTable, rows: Sequence[Row]) -> pa.Table:
    """Convert rows of a table to an Arrow table."""
    arrow, schema = frames_module("pyarrow"), arrow_schema(table)
    columns = zip(*rows, strict=True) if rows else [()] * len(table.columns)
    arrays = [
        arrow.array(map(as_text, cells) if column.kind == "JSON" else cells, field.type)
        for cells, column, field in zip(columns, table.columns, schema, strict=True)
    ]
    return arrow.Table.from_arrays(arrays, schema=schema)


def pandas_frame(table: pa.Table) -> pd.DataFrame:
    """Convert an Arrow table to a data frame. Integer columns with missing values stay integers."""
    arrow, pandas = frames_module("pyarrow"), frames_module("pandas")
    types = {
        arrow.int64(): pandas.Int64Dtype(),
        arrow.bool_(): pandas.BooleanDtype(),
        arrow.string(): pandas.StringDtype(),
    }
    return table.to_pandas(types_mapper=types.get)
