"""The record that a run writes for each item, scored or failed: a line of the journal."""

import json
from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AliasChoices,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import from_json

from modelgauge.data.annotations import Interactions, Measurements, list_completions
from modelgauge.data.base import Count, Frozen, added_later
from modelgauge.data.items import Digests, TestItem
from modelgauge.data.json_values import class_name, is_exact
from modelgauge.data.responses import SUTCompletion
from modelgauge.data.spans import TRACE, Span, Trace
from modelgauge.data.thresholds import failing
from modelgauge.errors import BlockedError, InvalidDataError, RecordError
from modelgauge.wording.figures import exact
from modelgauge.wording.phrases import beginning

Stage = Literal["sut", "annotator", "measure"]
Outcome = Literal["ok", "wrong", "below threshold", "failed in part", "failed"]


class Failure(Frozen):
    """A failure of an item, or of one of its repeats.

    Args:
        repeat: the number of the repeat, from 0; None if the whole item failed.
        stage: where it failed.
        source_uid: the uid of the SUT, annotator or test that failed.
        error_type: the class of the exception.
        message: the message of the exception.
        traceback: where it was raised.
        traces: what an observed app did until it failed: for a whole item, the trace of the last attempt of each
            failed use.
    """

    repeat: Count | None = None
    stage: Stage
    source_uid: str
    error_type: str
    message: str
    traceback: str
    traces: tuple[Trace, ...] = ()

    @property
    def is_blocked(self) -> bool:
        """True if the service of the SUT blocked the answer."""
        return self.stage == "sut" and self.error_type == BlockedError.__name__

    @property
    def reason(self) -> str:
        """The class and the message of the exception."""
        return f"{self.error_type}: {self.message}"

    def __key_form__(self) -> tuple[str, dict[str, Any]]:
        """Return the names of the class and of the fields in cache keys."""
        return f"{__name__}:RepeatFailure", self.__dict__


class ItemRecord(Frozen):
    """The outcome of an item: a `TestItemRecord` if it was scored, else a `TestItemExceptionRecord`.

    Args:
        kind: "item" if the item was scored, else "exception".
        index: its place in the test, from 0.
        replaces: indexes whose earlier lines in the journal this record replaces; only in the journal.
        test_item: the item, with its id.
        interactions: prompts with annotated responses; of a failed item those that were completed, and paid for.
        measurements: what `measure_quality` returned, reduced over repeats where there were several; of a failed item
            those that succeeded although some annotators failed.
        binary: the names of the measurements that were returned as bool; their range is 0 to 1.
        repeat_measurements: the measurements of each repeat that succeeded, if each prompt was asked several times.
        failures: the failed repeats of a scored item, or the one failure of an item that was not scored.
        digests: of the item before secrets were taken out of the record; None if there were none.
        redacted: whether a secret was taken out of the responses, so that they cannot be measured again.

    Class attributes:
        is_scored: True for an item that was scored, perhaps by some of its repeats.
    """

    model_config = ConfigDict(serialize_by_alias=True)
    __test__: ClassVar[bool] = False

    kind: Literal["item", "exception"]
    index: Count
    replaces: tuple[Count, ...] = added_later((), exclude=True, repr=False)
    test_item: TestItem
    interactions: Interactions = ()
    measurements: Measurements = Field(default_factory=dict)
    binary: tuple[str, ...] = ()
    repeat_measurements: tuple[dict[str, float], ...] = ()
    failures: Annotated[
        tuple[Failure, ...],
        Field(
            validation_alias=AliasChoices("failed_repeats", "failures"),
            serialization_alias="failed_repeats",
            exclude_if=lambda value: not value,
        ),
    ] = ()
    digests: Digests | None = None
    redacted: bool = False

    is_scored: ClassVar[bool]

    @field_validator("failures")
    @classmethod
    def _check_repeats(cls, failures: tuple[Failure, ...], info: ValidationInfo) -> tuple[Failure, ...]:
        of_item = [failure.repeat is None for failure in failures]
        if of_item != ([True] if info.data.get("kind") == "exception" else [False] * len(failures)):
            raise ValueError("a scored item has failures of repeats, any other has one of the whole item")
        return failures

    @property
    def failure(self) -> Failure | None:
        """The failure of the whole item; None if it was scored."""
        return None if self.is_scored else self.failures[0]

    @property
    def outcome(self) -> Outcome:
        """The outcome in a few words."""
        return outcome(self.kind, self.measurements, self.binary, has_failures=bool(self.failures))

    @property
    def spans(self) -> tuple[Span, ...]:
        """The spans of an observed app, those of completed uses first."""
        completions = [each.completion for each in list_completions(self.interactions)]
        traces = [trace for completion in completions if (trace := get_trace(completion))]
        failed = () if self.failure is None else self.failure.traces
        return tuple([span for trace in (*traces, *failed) for span in trace.spans])

    def __key_form__(self) -> tuple[str, dict[str, Any]]:
        """Return the names of the class and of the fields in cache keys."""
        repeats = {"failed_repeats": self.failures} if self.is_scored else {}
        return class_name(type(self)), json_fields(self) | repeats


class TestItemRecord(ItemRecord):
    """The record of an item that was scored, as plugins get it.

    Class attributes:
        is_scored: True.
    """

    is_scored = True
    kind: Literal["item"] = "item"
    interactions: Interactions
    measurements: Measurements

    @property
    def failed_repeats(self) -> tuple[Failure, ...]:
        """The repeats that failed."""
        return self.failures

    def __repr__(self) -> str:
        """Summarize the item in a line."""
        measured = ", ".join(f"{name} = {exact(value)}" for name, value in self.measurements.items())
        return f"<TestItemRecord {self.index}: {self.test_item.id}, {beginning(measured, 200) or 'nothing measured'}>"

    __str__ = __repr__  # pydantic's has all fields


class TestItemExceptionRecord(ItemRecord):
    """The record of an item that could not be scored, as plugins get it.

    Its JSON has the fields of the failure beside those of the item.

    Class attributes:
        is_scored: False.
    """

    is_scored = False
    kind: Literal["exception"] = "exception"

    @model_validator(mode="before")
    @classmethod
    def _from_json(cls, data: Any) -> Any:
        if type(data) is not dict or "failures" in data:
            return data
        fields = dict(data)
        fields["failures"] = [{name: fields.pop(name) for name in _OF_FAILURE if name in data}]
        return fields

    @model_serializer(mode="wrap")
    def _to_json(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = handler(self)
        for failure in fields.get("failed_repeats", ()):
            fields |= failure
        return _flat(fields)

    @property
    def stage(self) -> Stage:
        """The stage that failed."""
        return self.failures[0].stage

    @property
    def source_uid(self) -> str:
        """The uid of the SUT, annotator or test that failed."""
        return self.failures[0].source_uid

    @property
    def error_type(self) -> str:
        """The class of the exception."""
        return self.failures[0].error_type

    @property
    def message(self) -> str:
        """The message of the exception."""
        return self.failures[0].message

    @property
    def traceback(self) -> str:
        """The traceback of the exception."""
        return self.failures[0].traceback

    @property
    def traces(self) -> tuple[Trace, ...]:
        """The traces of an observed app, until it failed."""
        return self.failures[0].traces

    @property
    def is_blocked(self) -> bool:
        """True if the service of the SUT blocked the answer."""
        return self.failures[0].is_blocked

    def __repr__(self) -> str:
        """Summarize the item in a line."""
        why = beginning(self.failures[0].reason, 200)
        return f"<TestItemExceptionRecord {self.index}: {self.test_item.id}, failed at {self.stage}: {why}>"

    __str__ = __repr__  # pydantic's has all fields


_OF_FAILURE = [name for name in Failure.model_fields if name != "repeat"]
_FLAT = (
    *("kind", "index", "replaces", "test_item", "interactions"),
    *_OF_FAILURE,
    *("measurements", "binary", "digests", "redacted"),
)
"""The fields of a failed item in JSON, in their order."""


def json_fields(record: ItemRecord) -> dict[str, Any]:
    """Return the fields of a record under the names and in the order of a line of the journal."""
    fields = dict(record.__dict__)
    if not record.replaces:
        del fields["replaces"]
    if not record.failures:  # nearly always: nothing to rename
        del fields["failures"]
    elif record.is_scored:
        fields = {("failed_repeats" if name == "failures" else name): fields[name] for name in fields}
    else:
        fields = _flat(fields | record.failures[0].__dict__)
    return fields


def _flat(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a failed item and of its failure as JSON has them."""
    return {name: fields[name] for name in _FLAT if name in fields}


def get_trace(completion: SUTCompletion) -> Trace | None:
    """Return the trace of the observed app behind a completion; None if its metadata has none."""
    if TRACE not in completion.metadata:
        return None
    try:
        return Trace.load(completion.metadata[TRACE])
    except InvalidDataError:  # a SUT's own use of the word
        return None


def outcome(
    kind: str, measurements: Mapping[str, float], binary: Collection[str], *, has_failures: bool
) -> Outcome:
    """Return the outcome of an item: "wrong" if its first measurement is right-or-wrong, and wrong.

    Args:
        kind: "item" where it was scored.
        measurements: of the item.
        binary: the measurements that are right or wrong.
        has_failures: whether a repeat of it failed.
    """
    if kind != "item":
        return "failed"
    if failing(measurements):
        return "below threshold"
    first = next(iter(measurements), "")
    if first in binary and measurements[first] == 0:
        return "wrong"
    return "failed in part" if has_failures else "ok"


_VIEWS: dict[str, type[TestItemRecord | TestItemExceptionRecord]] = {
    "item": TestItemRecord,
    "exception": TestItemExceptionRecord,
}


def item_from_json(line: bytes, where: str) -> ItemRecord:
    """Read a line of a journal.

    Args:
        line: JSON.
        where: file and line, for messages.

    Raises:
        RecordError: the JSON is not an item record; the message names file and line.
    """
    try:  # the quick way, for all but damaged lines and those of other versions
        data = from_json(line, allow_inf_nan=False)
        return _VIEWS[data["kind"]].model_validate(data)
    except (ValueError, KeyError, TypeError):
        pass
    try:
        data = json.loads(line)
        if not is_exact(data):
            raise ValueError("it holds what no JSON can")  # noqa: TRY301  described like what cannot be read
        return _VIEWS[data["kind"]].load(data)
    except InvalidDataError as error:
        why = error.problem.rstrip(".")
    except (ValueError, RecursionError) as error:
        why = str(error)
    except (KeyError, TypeError):
        why = "it says of no item that it was scored or failed"
    raise RecordError(
        f"{where} is not an item record: {why}.", fix="Remove the line, then run `modelgauge resume`."
    )
