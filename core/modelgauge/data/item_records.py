"""The record that a run writes for each item, scored or failed: a line of the journal."""

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field, ValidationError

from modelgauge.data.annotations import (
    Interactions,
    Measurements,
    PromptInteractionAnnotations,
    completions_of,
)
from modelgauge.data.base import Count, Frozen, added_later
from modelgauge.data.items import Digests, TestItem
from modelgauge.data.json_values import is_exact
from modelgauge.data.responses import SUTCompletion
from modelgauge.data.results import failing
from modelgauge.data.spans import TRACE, Span, Trace
from modelgauge.errors import BlockedError, InvalidDataError, RecordError
from modelgauge.wording.figures import exact
from modelgauge.wording.phrases import beginning

Stage = Literal["sut", "annotator", "measure"]


class RepeatFailure(Frozen):
    """A repeat of an item that failed, where the item was scored by its other repeats.

    Args:
        repeat: its number, from 0.
        stage: where it failed.
        source_uid: the uid of the SUT, annotator or test that failed.
        error_type: the class of the exception.
        message: what it says.
        traceback: where it was raised.
        traces: what an observed app did until it failed.
    """

    repeat: Count
    stage: Stage
    source_uid: str
    error_type: str
    message: str
    traceback: str
    traces: tuple[Trace, ...] = ()


class TestItemRecord(Frozen):
    """An item that was scored.

    Args:
        kind: always "item", to tell the lines of the journal apart.
        index: its place in the test, from 0.
        replaces: indexes whose earlier lines in the journal this record replaces; only in the journal.
        test_item: the item, with its id.
        interactions: prompts with annotated responses.
        measurements: what `measure_quality` returned, reduced over repeats where there were several.
        binary: the names of the measurements that were returned as bool; their range is 0 to 1.
        repeat_measurements: the measurements of each repeat that succeeded, if each prompt was asked several times.
        failed_repeats: the other repeats.
        digests: of the item before secrets were taken out of the record; None if there were none.
        redacted: whether a secret was taken out of the responses, so that they cannot be measured again.
    """

    __test__: ClassVar[bool] = False

    kind: Literal["item"] = "item"
    index: Count
    replaces: tuple[Count, ...] = added_later((), exclude=True, repr=False)
    test_item: TestItem
    interactions: Interactions
    measurements: Measurements
    binary: tuple[str, ...] = ()
    repeat_measurements: tuple[dict[str, float], ...] = ()
    failed_repeats: Annotated[tuple[RepeatFailure, ...], Field(exclude_if=lambda value: not value)] = ()
    digests: Digests | None = None
    redacted: bool = False

    def __repr__(self) -> str:
        """Summarize the item in a line."""
        measured = ", ".join(f"{name} = {exact(value)}" for name, value in self.measurements.items())
        return f"<TestItemRecord {self.index}: {self.test_item.id}, {beginning(measured, 200) or 'nothing measured'}>"

    __str__ = __repr__  # pydantic's has all fields

    @property
    def failures(self) -> tuple[RepeatFailure, ...]:
        """The repeats of the item that failed."""
        return self.failed_repeats

    @property
    def spans(self) -> tuple[Span, ...]:
        """The spans of an observed app while it answered."""
        return _spans(self.interactions)


class TestItemExceptionRecord(Frozen):
    """An item that could not be scored, and why.

    Args:
        kind: always "exception", to tell the lines of the journal apart.
        index: its place in the test, from 0.
        replaces: indexes whose earlier lines in the journal this record replaces; only in the journal.
        test_item: the item, with its id.
        interactions: those that were completed before the failure; they are kept, since they are paid.
        stage: where it failed.
        source_uid: the uid of the SUT, annotator or test that failed.
        error_type: the class of the exception.
        message: what it says.
        traceback: where it was raised.
        traces: what an observed app did until it failed: the trace of the last attempt of each failed use.
        measurements: the measurements that succeeded although some annotators failed.
        binary: the names of the measurements that were returned as bool.
        digests: of the item before secrets were taken out of the record; None if there were none.
        redacted: whether a secret was taken out of the responses, so that they cannot be measured again.
    """

    __test__: ClassVar[bool] = False

    kind: Literal["exception"] = "exception"
    index: Count
    replaces: tuple[Count, ...] = added_later((), exclude=True, repr=False)
    test_item: TestItem
    interactions: Interactions = ()
    stage: Stage
    source_uid: str
    error_type: str
    message: str
    traceback: str
    traces: tuple[Trace, ...] = ()
    measurements: Measurements = Field(default_factory=dict)
    binary: tuple[str, ...] = ()
    digests: Digests | None = None
    redacted: bool = False

    def __repr__(self) -> str:
        """Summarize the item in a line."""
        why = beginning(f"{self.error_type}: {self.message}", 200)
        return f"<TestItemExceptionRecord {self.index}: {self.test_item.id}, failed at {self.stage}: {why}>"

    __str__ = __repr__  # pydantic's has all fields

    @property
    def is_blocked(self) -> bool:
        """True if the service of the SUT blocked the answer."""
        return self.stage == "sut" and self.error_type == BlockedError.__name__

    @property
    def failures(self) -> tuple["TestItemExceptionRecord"]:
        """The one failure, of the whole item."""
        return (self,)

    @property
    def spans(self) -> tuple[Span, ...]:
        """The spans of an observed app, those of completed uses first."""
        failed = (span for trace in self.traces for span in trace.spans)
        return (*_spans(self.interactions), *failed)


def _spans(interactions: Iterable[PromptInteractionAnnotations]) -> tuple[Span, ...]:
    """The spans of the traces that the completions hold."""
    traces = [trace for each in completions_of(interactions) if (trace := trace_of(each.completion))]
    return tuple([span for trace in traces for span in trace.spans])


def trace_of(completion: SUTCompletion) -> Trace | None:
    """The trace of an observed app that gave a completion; None if its metadata holds none."""
    if TRACE not in completion.metadata:
        return None
    try:
        return Trace.load(completion.metadata[TRACE])
    except InvalidDataError:  # a SUT's own use of the word
        return None


ItemRecord = TestItemRecord | TestItemExceptionRecord
Outcome = Literal["ok", "wrong", "below threshold", "failed in part", "failed"]


def outcome_of(record: ItemRecord) -> Outcome:
    """The outcome of an item, by its record."""
    return outcome(record.kind, record.measurements, record.binary, has_failures=bool(record.failures))


def outcome(
    kind: str, measurements: Mapping[str, float], binary: Collection[str], *, has_failures: bool
) -> Outcome:
    """The outcome of an item, by its record: "wrong" if its first measurement is a right-or-wrong that is wrong.

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


_SCORED = b'{"kind":"item",'  # the beginning of a line of a scored item
_KINDS: dict[str, type[ItemRecord]] = {"item": TestItemRecord, "exception": TestItemExceptionRecord}


def item_from_json(line: bytes, where: str) -> ItemRecord:
    """Read a line of a journal.

    Args:
        line: JSON.
        where: file and line, for messages.

    Raises:
        RecordError: the JSON is not an item record; the message names file and line.
    """
    try:  # the quick way, for all but damaged lines and those of other versions
        cls = TestItemRecord if line.startswith(_SCORED) else TestItemExceptionRecord
        return cls.model_validate_json(line)
    except ValidationError:
        pass
    try:
        data = json.loads(line)
        if not is_exact(data):
            raise ValueError("it holds what no JSON can")  # noqa: TRY301  described like what cannot be read
        return _KINDS[data["kind"]].load(data)
    except InvalidDataError as error:
        why = error.problem.rstrip(".")
    except (ValueError, RecursionError) as error:
        why = str(error)
    except (KeyError, TypeError):
        why = "it says of no item that it was scored or failed"
    raise RecordError(
        f"{where} is not an item record: {why}.", fix="Remove the line, then run `modelgauge resume`."
    )
