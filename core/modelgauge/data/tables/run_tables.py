"""Definition of tables: columns with types, units and meanings, and rows; the tables `runs` and `results`.

The headers of CSV files, Arrow and Parquet schemas and docs/reference/tables.md are generated from these.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic_core import to_json

from modelgauge.data.estimates import Estimate
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
        rows_of_item: returns the rows that an item of a run gives; takes the run's `TestRecord`.
    """

    name: str
    meaning: str
    key: int
    columns: tuple[Column, ...]
    rows_of_run: Callable[[Any], Iterable[Row]] | None = None
    rows_of_item: Callable[[Any, ItemRecord], Iterable[Row]] | None = None

    @property
    def head(self) -> list[str]:
        """The names of its columns."""
        return [column.name for column in self.columns]


def as_text(value: Any) -> str | None:
    """Convert a JSON value to the text of a cell: texts unchanged, null as empty, other values as JSON."""
    return value if value is None or isinstance(value, str) else to_json(value).decode()


# --- runs and results ------------------------------------------------------------------------------------


RUN_ID = Column("run_id", "text", "the run")

_FIELDS: dict[Column, str] = {
    RUN_ID: "run_id",
    Column("invocation_id", "text", "what the runs of one command have in common"): "invocation_id",
    Column("started", "time", "when the run began"): "run_timestamp",
    Column("test_uid", "text", "the test"): "test_uid",
    Column("sut_uid", "text", "the SUT"): "sut_uid",
    Column("sut_label", "text", "what the user called the SUT"): "sut_label",
    Column("identifier", "text", "what the user called the run"): "identifier",
    Column("dataset", "text", "the data set of the items"): "dataset.name",
    Column("dataset_digest", "text", "SHA-256 of the data set"): "dataset.digest",
    Column("hyperparameters", "JSON", "what the measured app was set to"): "hyperparameters",
    Column("sut_options", "JSON", "options of the run that replaced those of the prompts"): "sut_options",
    Column("repeats", "integer", "how often each prompt was asked"): "repeats",
    Column("reduction", "text", "how repeats became one number; null for their mean"): "reduction",
    Column("cluster", "text", "the field by which items form clusters"): "cluster",
    Column("sample_size", "integer", "items that `--max-test-items` chose"): "sample.size",
    Column("sample_total", "integer", "items that it chose from"): "sample.total",
    Column("items", "integer", "items that were taken from the test"): "counts.items",
    Column("not_begun", "integer", "items that a stopped run did not begin"): "counts.not_begun",
    Column("scored", "integer", "items that were scored"): "counts.scored",
    Column("partial", "integer", "scored items with failed repeats"): "counts.partial",
    Column("failed", "integer", "items that failed: the sum of the next three"): "counts.failed",
    Column("sut_errors", "integer", "items that failed in the SUT"): "counts.sut_errors",
    Column("annotator_errors", "integer", "items that failed in an annotator"): "counts.annotator_errors",
    Column("unscored", "integer", "items that failed in `measure_quality`"): "counts.unscored",
    Column("blocked", "integer", "SUT errors that are answers blocked by the service"): "counts.blocked",
    Column("empty", "integer", "answers without text, and items that failed because of one"): "counts.empty",
    Column("failed_repeats", "integer", "failed repeats of scored items"): "counts.failed_repeats",
    Column("sut_calls_paid", "integer", "calls of the SUT that were paid"): "counts.sut_calls.paid",
    Column("sut_calls_cached", "integer", "answers from the cache"): "counts.sut_calls.cached",
    Column("annotator_calls_paid", "integer", "calls of annotators"): "counts.annotator_calls.paid",
    Column(
        "annotator_calls_cached", "integer", "annotations from the cache"
    ): "counts.annotator_calls.cached",
    Column("judge_calls_paid", "integer", "questions to judges that were paid"): "counts.judge_calls.paid",
    Column("judge_calls_cached", "integer", "judges' answers from the cache"): "counts.judge_calls.cached",
    Column("attempts", "integer", "calls that were sent, further attempts included"): "spent.attempts",
    Column("tokens", "integer", "input and output tokens of all calls", "tokens"): "spent.tokens",
    Column("cost_usd", "number", "what all calls cost, as SUTs said", "US dollars"): "spent.cost_usd",
    Column("seconds", "number", "how long the run took, all its sessions together", "seconds"): "seconds",
    Column("cancelled", "boolean", "whether the run was interrupted"): "cancelled",
    Column("stage", "text", "where the run failed: items, aggregate or run"): "failure.stage",
    Column("error_type", "text", "the class of the exception that ended it"): "failure.error_type",
    Column("message", "text", "what the exception says"): "failure.message",
    Column("notes", "JSON", "what a reader should know: a list of texts"): "notes",
}
"""The columns of `runs`, with the path of the record's field."""


def _run_row(record: Any) -> Iterator[Row]:
    row = [_at(record, path) for path in _FIELDS.values()]
    yield [
        parse_time(cell) if column.kind == "time" else cell for column, cell in zip(_FIELDS, row, strict=True)
    ]


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = getattr(value, name, None)  # of a part that the record does not have, nothing
    return value


def parse_time(text: str) -> datetime | None:
    """Parse an ISO 8601 time as UTC; None if a foreign record contains something else."""
    try:
        time = datetime.fromisoformat(text)
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


RUNS = RecordTable("runs", "a run", 1, tuple(_FIELDS), rows_of_run=_run_row)


def _result_rows(record: Any) -> Iterator[Row]:
    for name, value in record.result.items():
        if isinstance(value, Mapping):
            for group, part in value.items():
                yield (record.run_id, name, group, *_estimated(record, name, part))
        else:
            yield (record.run_id, name, None, *_estimated(record, name, value))


def _estimated(record: Any, name: str, value: Any) -> Row:
    if not isinstance(value, Estimate):
        return (float(value), *[None] * 11)
    unknown = None, None
    ends = [*(value.interval or unknown), *(record.worst_to_best(name, value) or unknown)]
    about = value.interval_kind, value.n_clusters, value.reduction
    return (value.value, value.n, value.stderr, *ends, *about, *(value.bounds_interval or unknown))


RESULTS = RecordTable(
    "results",
    "a result of a run, and one for each of its groups",
    3,
    (
        RUN_ID,
        Column("result", "text", "the name of the result"),
        Column("group", "text", "the group that it is of; null for a result without groups"),
        Column("value", "number", "the result"),
        Column("n", "integer", "items that it rests on"),
        Column("stderr", "number", "its standard error"),
        Column("interval_low", "number", "the lower end of its 95 % confidence interval"),
        Column("interval_high", "number", "the upper end"),
        Column("worst", "number", "its value if every missing item were worst"),
        Column("best", "number", "its value if every missing item were best"),
        Column("interval_kind", "text", "the method of the interval, as in [intervals](statistics.md)"),
        Column(
            "n_clusters", "integer", "independent clusters of the items; null where each stands for itself"
        ),
        Column("reduction", "text", "how repeats became one number; null for their mean"),
        Column(
            "with_missing_low",
            "number",
            "the lower end of the 95 % interval whatever the missing items would have scored; null if none is missing",
        ),
        Column("with_missing_high", "number", "the upper end"),
    ),
    rows_of_run=_result_rows,
)
