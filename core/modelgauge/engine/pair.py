"""One test on one SUT: items are pulled, worked on, written, aggregated; at the end stands a record."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from modelgauge.data.items import PromptWithContext
from modelgauge.data.records import (
    SCHEMA_VERSION,
    ConcurrencyChange,
    ItemRecord,
    RunFailure,
    RunStage,
    TestRecord,
    normalized_result,
    record_from_json,
)
from modelgauge.data.responses import SUTResponse
from modelgauge.engine.calls import Target
from modelgauge.engine.failures import run_failure
from modelgauge.engine.item import ItemWorker
from modelgauge.engine.journal import JournalFile, RunFolder
from modelgauge.engine.limits import CEILING, AdaptiveLimiter
from modelgauge.engine.measured import JournalIndex
from modelgauge.engine.observers import Observers
from modelgauge.engine.options import RunOptions
from modelgauge.engine.recorded import Continued, Rescorer
from modelgauge.engine.source import Ids, ItemSource, NumberedItem, numbered, sample
from modelgauge.engine.tally import current_tally
from modelgauge.engine.threads import in_thread
from modelgauge.engine.writer import Writer
from modelgauge.errors import ModelGaugeError, RunStoppedError
from modelgauge.interfaces.annotator import CompletionAnnotator
from modelgauge.interfaces.identity import Initialization
from modelgauge.interfaces.sut import PromptResponseSUT
from modelgauge.interfaces.test import PromptResponseTest

_MOST_WORKERS = 1024
_TURN = 0.005  # seconds that a worker may keep the loop, when nothing makes it wait


@dataclass(frozen=True, slots=True)
class RecordedSUT:
    """A SUT that answered before this run; it is named, and not asked.

    Args:
        uid: its name.
        initialization: how it was made.
        answer: gives what it answered to each prompt, where that is not in the journal of an earlier run.
        again: what goes on with a run that stopped, where `modelgauge resume` cannot make its answers again.
    """

    uid: str
    initialization: Initialization
    answer: Callable[[PromptWithContext], SUTResponse] | None = None
    again: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One test and one SUT with all that the test needs: objects, no names.

    Args:
        test: asks and measures.
        sut: answers, or stands for the one whose recorded answers are measured.
        annotators: by the test's own names.
        judge_suts: for each of these names, the SUTs that the annotator asks.
        dependencies: where the test's data is.
        dependency_versions: content hashes of the data.
    """

    test: PromptResponseTest
    sut: PromptResponseSUT[Any, Any] | RecordedSUT
    annotators: Mapping[str, CompletionAnnotator[Any]] = field(default_factory=dict)
    judge_suts: Mapping[str, Mapping[str, PromptResponseSUT[Any, Any]]] = field(default_factory=dict)
    dependencies: Mapping[str, Path] = field(default_factory=dict)
    dependency_versions: Mapping[str, str] = field(default_factory=dict)

    def owners(self) -> frozenset[int]:
        """The `id` of each object that is called for this pair."""
        judges = (judge for asked in self.judge_suts.values() for judge in asked.values())
        return frozenset(id(one) for one in (self.sut, *self.annotators.values(), *judges))


@dataclass(slots=True, kw_only=True)
class Surroundings:
    """What the pairs of one run share."""

    options: RunOptions
    writer: Writer
    observers: Observers
    invocation_id: str
    manifest: Mapping[str, Any]
    at_end: Callable[[Callable[[], None]], object]


class PairRun:
    """A pair while it runs.

    Args:
        pair: what to run.
        folder: of the run; empty, unless the run is continued.
        worker: takes items through their stages.
        shared: what the pairs of the run share.
        notes: what the record shall say.
        continued: what the folder's journal holds already.
    """

    def __init__(
        self,
        pair: Pair,
        folder: RunFolder,
        worker: ItemWorker,
        shared: Surroundings,
        *,
        notes: tuple[str, ...] = (),
        continued: Continued | None = None,
    ) -> None:
        self.pair, self.folder, self.shared = pair, folder, shared
        self.tally = worker.tally
        self.cancelled = False
        self._notes = notes
        self._continued = continued
        self._failure: RunFailure | None = None
        self._worker = worker
        self._targets = [*([worker.sut] if worker.sut is not None else []), *worker.annotators.values()]
        self._index = JournalIndex(folder.journal, pair.test.measurement_ranges)
        self._ids = Ids(pair.test.uid)
        self._source: ItemSource | None = None
        self._workers: set[asyncio.Task[None]] = set()
        self._all_ended = asyncio.Event()
        self._author: asyncio.Task[Any] | None = None
        self._abandoned = False
        self._error: BaseException | None = None
        self._idle = 0
        self._last: asyncio.Task[None] | None = None  # the worker that did the last item
        self._window = _window(self._targets)
        self._started = datetime.now(UTC)

    async def run(self) -> TestRecord:
        """Run the pair to its end; what fails on the way stands in the record."""
        clock = asyncio.get_running_loop().time
        begun = clock()
        current_tally.set(self.tally)
        manifest = self._manifest()
        if self._continued is None:
            await in_thread(
                lambda: self.folder.write_manifest(manifest, self.shared.options.redact), "manifest"
            )
        self.shared.observers.run_started(manifest)
        journal = await in_thread(lambda: JournalFile(self.folder.journal), "journal")
        self.shared.at_end(journal.close)  # where this task is cancelled, the writer still has lines for it
        await self._stage("items", lambda: self._work_through(journal))
        self._ids.forget()
        await self.shared.writer.drained()
        for dead in (target.dead for target in self._targets if target.dead is not None):
            self._fail("run", dead)  # also where no item was left to be stopped
        result = await self._stage("aggregate", self._aggregated) or {}
        journal.close()
        record = self._record(result, clock() - begun)
        await in_thread(lambda: self._finish(record, manifest), "record")
        self.shared.observers.run_finished(record)
        return record

    @property
    def known(self) -> int | None:
        """How many items there are; None while the test still makes some."""
        if self._source is None or not self._source.exhausted:
            return None
        return self.tally.items + self._source.waiting

    def stop(self, failure: ModelGaugeError | None = None) -> None:
        """Start no more items: the run was interrupted, or cannot go on (then the failure says why)."""
        if failure is None:
            self.cancelled = True
        else:
            self._fail("run", failure)
        if self._source is not None:
            self._source.stop()

    def _stopped(self) -> bool:
        return self.cancelled or self._failure is not None

    def abandon(self) -> None:
        """Wait no longer for the items under way, nor for the test to make items or a result."""
        self._abandoned = True
        for task in self._workers:
            task.cancel()
        if self._author is not None and not self._workers:
            self._author.cancel()

    # --- items -------------------------------------------------------------------------------------------------------

    async def _work_through(self, journal: JournalFile) -> None:
        if self._stopped():
            return
        self._source = ItemSource(await self._of_author(self._items, "items"))
        if self._stopped():
            self._source.stop()
        self._spawn(journal)
        await self._all_ended.wait()
        if self._error is not None:
            raise self._error

    async def _of_author(self, work: Callable[[], Any], name: str) -> Any:
        """Do an author's work in a thread; it is not waited for any more when the run is abandoned."""
        self._author = asyncio.get_running_loop().create_task(in_thread(work, name))
        return await self._author

    def _items(self) -> Iterator[NumberedItem]:
        test, options = self.pair.test, self.shared.options
        if self._continued is not None:
            self._continued.load(self._index, self.tally)
        items = numbered(test.make_test_items(self.pair.dependencies), self._ids, test.uid)
        if options.max_test_items is not None:
            items = iter(sample(items, options.max_test_items, options.seed))
        if isinstance(self._worker, Rescorer):
            self._worker.recorded.read()
            return self._worker.remaining(items)
        return items if self._continued is None else self._continued.remaining(items, self._index)

    def _spawn(self, journal: JournalFile) -> None:
        self._idle += 1
        worker = asyncio.get_running_loop().create_task(self._work(journal))
        self._workers.add(worker)
        worker.add_done_callback(self._worker_ended)

    def _worker_ended(self, worker: "asyncio.Task[None]") -> None:
        """All workers end before the pair goes on, since each may hold an item that is paid."""
        self._workers.discard(worker)
        error = None if worker.cancelled() else worker.exception()
        if worker.cancelled() and not self._abandoned:
            error = RuntimeError("The work on an item was cancelled from within.")
        if error is not None:
            self._error = self._error or error
            if self._source is not None:
                self._source.stop()
        if not self._workers:
            self._all_ended.set()

    async def _work(self, journal: JournalFile) -> None:
        """Take items until there are no more. Workers are added while all are busy, up to the window."""
        source, writer, me = self._source, self.shared.writer, asyncio.current_task()
        turn_ends = 0.0
        while source is not None:
            if writer.is_crowded:
                await writer.room()
            item = source.take() or await source.next()
            if item is None:
                return
            self._idle -= 1
            if not self._idle and len(self._workers) < self._window:
                self._spawn(journal)
            try:
                await self._do(item, journal)
            except RunStoppedError as error:
                self.stop(None if self.cancelled else error)
                return
            self._idle += 1
            now = monotonic()
            if self._last is not me:  # the loop was free since, for others to have a turn
                self._last, turn_ends = me, now + _TURN
            elif now > turn_ends:
                self._last = None
                await asyncio.sleep(0)

    async def _do(self, numbered_item: NumberedItem, journal: JournalFile) -> None:
        index, item = numbered_item.index, numbered_item.item
        self.tally.items += 1
        self._index.note_context(index, item)
        record = await self._worker.process(index, item)
        if self.shared.writer.is_crowded:  # many long answers that come at once are not made lines of at once
            await self.shared.writer.room()
        line = self.shared.options.redact(record.model_dump_json()).encode("utf-8") + b"\n"
        self.shared.writer.append(journal, line, lambda offset: self._done(record, offset))

    def _done(self, record: ItemRecord, offset: int) -> None:
        """An item's record is committed."""
        self.tally.count(record)
        self._index.add(record, offset)
        self.shared.observers.item_finished(self.folder.run_id, record)

    # --- the end -----------------------------------------------------------------------------------------------------

    async def _aggregated(self) -> dict[str, Any]:
        items = self._index.items()
        if not len(items):
            return {}
        result: dict[str, Any] = await self._of_author(
            lambda: normalized_result(self.pair.test.aggregate_measurements(items)), "aggregation"
        )
        return result

    async def _stage(self, stage: RunStage, work: Callable[[], Awaitable[Any]]) -> Any:
        """Do a part of the run; what it raises ends this pair only, and stands in its record."""
        try:
            return await work()
        except asyncio.CancelledError:
            if not self._abandoned:
                raise
            self.cancelled = True
        except Exception as error:  # noqa: BLE001  whatever an author's code raises is data
            self._fail(stage, error)
        return None

    def _fail(self, stage: RunStage, error: Exception) -> None:
        if self._failure is None:
            self._failure = run_failure(stage, error, getattr(self.pair.sut, "again", None))

    def _finish(self, record: TestRecord, manifest: dict[str, Any]) -> None:
        redact = self.shared.options.redact
        if self._ids.repeated and self._continued is None:
            self.folder.write_manifest({**manifest, "repeated_ids": self._ids.repeated}, redact)
        self.folder.write_record(record, redact)

    def _record(self, result: dict[str, Any], seconds: float) -> TestRecord:
        notes = self._notes
        if self._ids.repeated:
            notes += (
                f"{self._ids.repeated} items repeat the prompts of an earlier one; their ids end in ~2, ~3, …",
            )
        notes += self.tally.sut_calls.unjudged()
        record = TestRecord(
            run_id=self.folder.run_id,
            invocation_id=self.shared.invocation_id,
            run_timestamp=self._started.isoformat(timespec="seconds"),
            test_uid=self.pair.test.uid,
            test_initialization=_initialization(self.pair.test),
            sut_uid=self.pair.sut.uid,
            sut_initialization=_initialization(self.pair.sut),
            dependency_versions=dict(self.pair.dependency_versions),
            dataset=self.pair.test.dataset,
            hyperparameters=dict(self.shared.options.hyperparameters),
            identifier=self.shared.options.identifier,
            thresholds=dict(self.pair.test.thresholds),
            cancelled=self.cancelled,
            counts=self.tally.frozen(),
            result=result,
            seconds=round(seconds, 3),
            notes=notes,
            failure=self._failure,
            concurrency=_changes(self._targets),
        )
        written = record.model_dump_json()
        clean = self.shared.options.redact(written)  # what the caller gets holds no secret either
        if clean != written:
            record = record_from_json(json.loads(clean), "The record")
        return record.with_items(self.folder.items)

    def _manifest(self) -> dict[str, Any]:
        options, dataset = self.shared.options, self.pair.test.dataset
        return {
            "schema_version": SCHEMA_VERSION,
            "run_id": self.folder.run_id,
            "invocation_id": self.shared.invocation_id,
            "run_timestamp": self._started.isoformat(timespec="seconds"),
            "test_uid": self.pair.test.uid,
            "test_initialization": _initialization(self.pair.test),
            "sut_uid": self.pair.sut.uid,
            "sut_initialization": _initialization(self.pair.sut),
            "dataset": None if dataset is None else dataset.model_dump(mode="json"),
            "annotators": {name: _initialization(one) for name, one in self.pair.annotators.items()},
            "judges": {
                name: {key: _initialization(judge) for key, judge in judges.items()}
                for name, judges in self.pair.judge_suts.items()
                if judges
            },
            "dependency_versions": dict(self.pair.dependency_versions),
            "options": options.recorded(),
            **self.shared.manifest,
        }


def _initialization(owner: Any) -> dict[str, Any]:
    made: dict[str, Any] = owner.initialization.model_dump(mode="json")
    return made


def _window(targets: Sequence[Target]) -> int:
    """How many items may be in flight: enough to keep every stage of the pair busy."""
    places = sum(target.limiter.most or CEILING for target in targets)
    return min(_MOST_WORKERS, 2 * places)


def _changes(targets: Sequence[Target]) -> dict[str, tuple[ConcurrencyChange, ...]]:
    limiters = {target.owner.uid: target.limiter for target in targets}
    return {
        uid: tuple(one.changes)
        for uid, one in limiters.items()
        if isinstance(one, AdaptiveLimiter) and one.changes
    }
