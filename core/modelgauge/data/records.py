"""Record of a run. The engine writes the files; `item_records.py` has the items."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeVar, cast

from pydantic import Field, PrivateAttr, SerializerFunctionWrapHandler, model_serializer, model_validator

from modelgauge.data.base import Count, Frozen, Seconds, Text, UnknownFields, added_later, typed
from modelgauge.data.estimates import Estimate, value_text
from modelgauge.data.item_records import ItemRecord, TestItemExceptionRecord, TestItemRecord
from modelgauge.data.responses import JsonObject
from modelgauge.data.results import (
    ConcurrencyChange,
    Counts,
    Direction,
    RecordedRange,
    Result,
    Results,
    RunFailure,
    Sample,
    Spent,
    Threshold,
    notebook_results,
    plain_result,
)
from modelgauge.data.tables.frames import TableName, arrow_table, pandas_frame, table_named
from modelgauge.data.thresholds import known_directions
from modelgauge.documents.document import Heading, Sentences
from modelgauge.documents.notebook import as_notebook
from modelgauge.errors import InvalidDataError, RecordError
from modelgauge.wording.phrases import counted

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

SCHEMA_VERSION = 1
T = TypeVar("T")


class DatasetReference(Frozen):
    """The data set that a run measured, by which runs on the same data set are compared.

    Args:
        name: what its author calls it.
        digest: SHA-256 of its content.
        version: the number of the version saved under this name; None if the data set is not a saved version.
    """

    name: Text
    digest: Text
    version: int | None = None

    def __str__(self) -> str:
        version = "" if self.version is None else f", version {self.version}"
        return f"{self.name}{version}, SHA-256 {self.digest[:12]}"


RecordT = TypeVar("RecordT", TestItemRecord, TestItemExceptionRecord)


class RunIdentity(Frozen):
    """Identity of a run: test, SUT, data and judges. Shared by its manifest and its record; see `TestRecord`."""

    test_uid: str
    test_initialization: dict[str, Any]
    sut_uid: str
    sut_initialization: dict[str, Any]
    sut_label: Text | None = None
    groups: dict[str, Count] = Field(default_factory=dict)
    dependency_versions: dict[str, str] = Field(default_factory=dict)
    dataset: DatasetReference | None = None
    annotators: dict[str, JsonObject] = Field(default_factory=dict)
    judges: dict[str, dict[str, JsonObject]] | None = None
    thresholds: dict[str, Threshold] = Field(default_factory=dict)
    ranges: dict[str, RecordedRange] | None = None
    directions: dict[str, Direction] | None = None


_ORDER = (
    "schema_version", "run_id", "invocation_id", "run_timestamp", "test_uid", "test_initialization", "sut_uid",
    "sut_initialization", "sut_label", "groups", "dependency_versions", "repeats", "reduction", "sample", "prompts",
    "distinct_prompts", "dataset", "hyperparameters", "identifier", "annotators", "judges", "sut_options", "cluster",
    "plugins", "ranges", "directions",
)  # fmt: skip
"""The first fields of a record in JSON; the others follow as they are declared."""


class TestRecord(RunIdentity):
    """One test on one SUT: everything about the run. Its items are read from the journal on demand.

    Args:
        schema_version: the version of the JSON format.
        run_id: of this run, and the name of its folder.
        invocation_id: what the runs of one command have in common.
        run_timestamp: when the run began, in ISO 8601.
        test_uid: the test.
        test_initialization: its class, the arguments that it was made with, and its `cache_version`.
        sut_uid: the SUT.
        sut_label: what tables call the SUT; None for its uid.
        groups: the groups of tests that were measured together and have this test: how many members each has, by name.
        sut_initialization: the SUT's class, the arguments that it was made with, and its `cache_version`.
        dependency_versions: content hashes of the test's data, by the author's names.
        cancelled: whether the run was interrupted; what was finished until then is in it.
        counts: the items by outcome, and their calls.
        result: name to number, `Estimate`, or one level of named groups of these.
        seconds: wall time of the run, of all its sessions together.
        spent: calls that were sent, tokens, dollars; None in records of older versions.
        repeats: how often each prompt was asked.
        reduction: how the measurements of repeats are combined, unless by their mean: "pass@2"; names of results end
            with it: `accuracy.pass@2`.
        sample: which items were chosen; None if all were, and in records of older versions.
        prompts: how many prompts the items have; None if no SUT was asked, and in older records.
        distinct_prompts: how many of these differ, options included; equal prompts share an answer of the cache.
        dataset: the data set that the items are of, where the test knows it.
        hyperparameters: the settings of the measured app, as its author logged them.
        identifier: the user's name for the run.
        ranges: for measurements with a known range their lowest and highest possible value, None if there is no end;
            None for all of them in records of older versions.
        directions: which values are better, "higher" or "lower", for measurements with a known direction; None in
            records of older versions.
        annotators: how the annotators were made, by the test's names.
        judges: how the SUTs that an annotator asks were made, by its names.
        sut_options: the options of the run that replaced those of the prompts.
        cluster: the field by whose values items form clusters; None if each item is its own cluster.
        plugins: the versions of the plugins that made an object of the run, by distribution.
        thresholds: the thresholds by measurement; the result `NAME.passed` is the share of items that passed, `passed`
            the share that passed all.
        notes: what a reader should know (an object that cannot be cached, ids that repeat, metrics that judged
            nothing).
        failure: why the run ended early, else None.
        concurrency: for the SUT and each annotator by uid, the changes of its limit.
        merged_from: the ids of the runs that `modelgauge merge` joined into this run.
    """

    __test__: ClassVar[bool] = False

    schema_version: Annotated[int, Field(ge=1, le=SCHEMA_VERSION)] = SCHEMA_VERSION
    run_id: str
    invocation_id: str
    run_timestamp: str
    repeats: Count = 1
    reduction: str | None = None
    sample: Sample | None = None
    prompts: Count | None = None
    distinct_prompts: Count | None = None
    hyperparameters: JsonObject = Field(default_factory=dict)
    identifier: Text | None = None
    sut_options: JsonObject = Field(default_factory=dict)
    cluster: Text | None = None
    plugins: dict[str, str | None] = Field(default_factory=dict)
    cancelled: bool = False
    counts: Counts = Counts()
    result: Result = Field(default_factory=Results)
    seconds: Seconds | None = None
    spent: Spent | None = None
    notes: tuple[str, ...] = ()
    failure: RunFailure | None = None
    concurrency: dict[str, tuple[ConcurrencyChange, ...]] = Field(default_factory=dict)
    merged_from: tuple[str, ...] = added_later(())
    _items: Callable[[], Iterable[ItemRecord]] = PrivateAttr(default=tuple)
    _folder: Path | None = PrivateAttr(default=None)

    def with_items(
        self, items: Callable[[], Iterable[ItemRecord]], folder: Path | None = None
    ) -> "TestRecord":
        """Return a copy of the record that reads its items by this function.

        Args:
            items: reads them.
            folder: the run's.
        """
        bound = self.model_copy()
        bound._items, bound._folder = items, folder  # noqa: SLF001  its own class
        return bound

    @property
    def sut_name(self) -> str:
        """The name of the SUT in tables: its label, or else its uid."""
        return self.sut_label or self.sut_uid

    @property
    def ended_early(self) -> bool:
        """True if the run was interrupted, or stopped by a failure."""
        return self.cancelled or self.failure is not None

    @property
    def folder(self) -> Path | None:
        """The folder of the run's files; None if the record was read from a file of `--output-file`."""
        return self._folder

    def iter_items(self) -> Iterator[TestItemRecord | TestItemExceptionRecord]:
        """Yield the item and exception records one by one, in the order in which they finished."""
        return cast("Iterator[TestItemRecord | TestItemExceptionRecord]", iter(self._items()))

    @property
    def test_item_records(self) -> tuple[TestItemRecord, ...]:
        """The scored items, in the order of the test."""
        return self._in_order(TestItemRecord)

    @property
    def test_item_exceptions(self) -> tuple[TestItemExceptionRecord, ...]:
        """The items that could not be scored, in the order of the test."""
        return self._in_order(TestItemExceptionRecord)

    def to_arrow(self, table: TableName = "items") -> "pa.Table":
        """Return the run as an Arrow table, in the order of the test. Requires `pip install
        "modelgauge-framework[frames]"`.

        Args:
            table: runs, results, items, completions, annotations, measurements, repeat_measurements or spans; their
                columns are described in the [reference](tables.md).

        Raises:
            InvalidOptionError: there is no such table.
            UsageError: pyarrow is not installed.
        """
        record_table = table_named(table)
        rows = list(record_table.rows_of_run(self)) if record_table.rows_of_run else []
        if record_table.rows_of_item:
            of_items = {
                record.index: list(record_table.rows_of_item(self, record)) for record in self.iter_items()
            }
            rows += [row for index in sorted(of_items) for row in of_items[index]]
        return arrow_table(record_table, rows)

    def to_pandas(self, table: TableName = "items") -> "pd.DataFrame":
        """Return the run as a pandas data frame; see `to_arrow`.

        Args:
            table: see `to_arrow`.

        Raises:
            InvalidOptionError: there is no such table.
            UsageError: pandas or pyarrow is not installed.
        """
        return pandas_frame(self.to_arrow(table))

    def _in_order(self, kind: type[RecordT]) -> tuple[RecordT, ...]:
        found = [item for item in self.iter_items() if isinstance(item, kind)]
        return tuple(sorted(found, key=lambda item: item.index))

    def __repr__(self) -> str:
        """Summarize the run in a line."""
        first = next(
            ((name, value) for name, value in self.result.items() if not isinstance(value, Mapping)), None
        )
        result = "" if first is None else f", {first[0]} {value_text(first[1])}"
        return f"<TestRecord {self.run_id}: {self.test_uid} on {self.sut_name}, {self._scored()}{result}>"

    __str__ = __repr__  # pydantic's has all fields

    def _scored(self) -> str:
        counts = self.counts
        failed = f", {counts.failed:,} failed" if counts.failed else ""
        items = counted(counts.items + (counts.not_begun or 0), "item")
        return f"{counts.scored:,} of {items} scored{failed}"

    def _repr_html_(self) -> str:
        """Return the table that a notebook shows."""
        why = self.failure and f"It stopped early: {self.failure.error_type}: {self.failure.message}"
        notes = [f"{self._scored()}.", *([why] if why else []), f"Run {self.run_id}"]
        title = Heading(f"{self.test_uid} on {self.sut_name}")
        return as_notebook([title, *notebook_results(self.result), Sentences(notes)])

    def __eq__(self, other: object) -> bool:
        """Equal content; where the items are read from does not matter."""
        return isinstance(other, TestRecord) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]  # like any value with dicts inside

    @model_serializer(mode="wrap")
    def _in_order_of_files(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = serialize(self)
        return {name: fields.pop(name) for name in _ORDER if name in fields} | fields

    @model_validator(mode="after")
    def _why_results_are_missing(self) -> Self:
        if self.failure is not None and isinstance(self.result, Results):
            self.result.why = f"{self.failure.error_type}: {self.failure.message.rstrip('.')}"
        elif not self.counts.scored and isinstance(self.result, Results):
            where = ", and test_item_exceptions says why" if self.counts.failed else ""
            self.result.why = f"of {counted(self.counts.items, 'item')} none was scored{where}"
        return self

    def get_result(self, cls: type[T]) -> T:
        """Return the result as an object of the class that `aggregate_measurements` returned.

        Raises:
            InvalidDataError: it does not fit.
        """
        plain = {self.measurement_of(name): value for name, value in plain_result(self.result).items()}
        return typed(plain, cls)

    def measurement_of(self, name: str) -> str:
        """Return the measurement behind a result: the result's name without the reduction at its end."""
        return name if self.reduction is None else name.removesuffix(f".{self.reduction}")

    def worst_to_best(self, name: str, result: Estimate) -> tuple[float, float] | None:
        """Return the bounds of a result, the worst first. Earlier versions wrote the lowest first.

        Args:
            name: of the result.
            result: the result.
        """
        directions = known_directions({}, self.thresholds) if self.directions is None else self.directions
        if result.bounds is None or directions.get(self.measurement_of(name)) != "lower":
            return result.bounds
        return max(result.bounds), min(result.bounds)


ITEM_FIELDS: dict[str, type[ItemRecord]] = {
    "test_item_records": TestItemRecord,
    "test_item_exceptions": TestItemExceptionRecord,
}
"""The lists of items in a file that holds them with their record."""


def record_from_json(data: Any, where: str) -> TestRecord:
    """Read a record's JSON data. Fields that this version does not know are skipped, with one warning in all.

    Args:
        data: what `json.loads` gave.
        where: the file, for messages.

    Raises:
        RecordError: it is not a record, or a newer version of modelgauge wrote it.
    """
    if not isinstance(data, dict) or "run_id" not in data:
        raise RecordError(
            f"{where} is not the record of a run.", fix="Give a run's id, its folder or its record.json."
        )
    version = data.get("schema_version")
    if type(version) is not int or not 1 <= version <= SCHEMA_VERSION:
        raise RecordError(
            f"{where} has schema_version {version!r}; this ModelGauge reads up to {SCHEMA_VERSION}.",
            fix="Upgrade ModelGauge: `git pull` and `pip install .` in its checkout.",
        )
    unknown = UnknownFields(where)
    try:
        own = {name: value for name, value in data.items() if name not in ITEM_FIELDS}
        record = TestRecord.load(own, unknown)
    except InvalidDataError as error:
        raise RecordError(
            f"{where}: {error.problem}",
            fix="Remove it; `modelgauge resume` writes it again from the journal.",
        ) from None
    items = _items_from_json(data, where, unknown)
    return record.with_items(lambda: items)


def _items_from_json(data: dict[str, Any], where: str, unknown: UnknownFields) -> list[ItemRecord]:
    """Return the items of a file with record and items, in the order of the test."""
    items: list[ItemRecord] = []
    for field, cls in ITEM_FIELDS.items():
        held = data.get(field) or ()
        if not isinstance(held, list | tuple):
            raise RecordError(f"{where}: {field} is not a list.", fix="Give a file that modelgauge wrote.")
        for place, item in enumerate(held):
            try:
                items.append(cls.load(item, unknown))
            except InvalidDataError as error:
                raise RecordError(
                    f"{where}, {field}[{place}] is not an item record: {error.problem}",
                    fix="Give a file that modelgauge wrote.",
                ) from None
    return sorted(items, key=attrgetter("index"))
