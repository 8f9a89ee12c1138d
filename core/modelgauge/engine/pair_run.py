"""One test on one SUT: items are made, worked on, written and aggregated; the record is made at the end."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from modelgauge.config.run_options import RunOptions
from modelgauge.data.item_records import ItemRecord
from modelgauge.data.items import TestItem
from modelgauge.data.records import SCHEMA_VERSION, TestRecord, record_from_json
from modelgauge.data.results import RunFailure, RunStage, Sample, TotalUsage, normalized_result
from modelgauge.data.thresholds import known_directions
from modelgauge.engine.bookkeeping.failures import run_failure
from modelgauge.engine.bookkeeping.tally import current_tally
from modelgauge.engine.calls.call import Target
from modelgauge.engine.calls.limits import choose_window
from modelgauge.engine.description import WorkDescription
from modelgauge.engine.earlier_run import EarlierSessions
from modelgauge.engine.items.answers import Answerer
from modelgauge.engine.items.item import ItemWorker
from modelgauge.engine.items.item_ids import Ids
from modelgauge.engine.items.scored_items import JournalIndex
from modelgauge.engine.items.source import (
    ItemRange,
    ItemSource,
    NumberedItem,
    check_cluster,
    chosen,
    without_items,
)
from modelgauge.engine.loop.threads import OneThread, in_thread
from modelgauge.engine.observers import Observers
from modelgauge.engine.run_files.journal import JOURNAL_VERSION, JournalFile, make_line
from modelgauge.engine.run_files.writer import Writer
from modelgauge.engine.run_record import (
    get_population,
    notes_on_items,
    part_note,
    run_record,
)
from modelgauge.engine.totals import TotalsFile
from modelgauge.engine.work import Work
from modelgauge.engine.workers import Workers
from modelgauge.errors import ModelGaugeError, RunStoppedError
from modelgauge.wording.phrases import counted

if TYPE_CHECKING:
    from modelgauge.engine.executors.remote_work import RemoteWork


@dataclass(slots=True, kw_only=True)
class Shared:
    """Resources shared by the pairs of one run."""

    options: RunOptions
    writer: Writer
    observers: Observers
    invocation_id: str
    manifest: Mapping[str, Any]
    at_end: Callable[[Callable[[], None]], object]


class PairRun:
    """One test on one answer_source, while it runs.

    Args:
        work: what to do.
        earlier: what earlier sessions recorded; empty for a new run.
        worker: takes items through their stages.
        shared: what the pairs of the run share.
        targets: all that is called.
        notes: for the record.
    """

    def __init__(
        self,
        work: Work,
        earlier: EarlierSessions,
        worker: ItemWorker,
        shared: Shared,
        *,
        targets: Sequence[Target] = (),
        notes: tuple[str, ...] = (),
    ) -> None:
        self.work, self.folder, self.shared = work, earlier.folder, shared
        self.tally = worker.tally
        self.cancelled = self._abandoned = False
        self.remote: RemoteWork | None = None  # where workers work on the items
        self._notes = notes
        self._earlier = earlier
        self._failure: RunFailure | None = None
        self._worker = worker
        self.targets = targets
        self._index = JournalIndex(
            self.folder.journal,
            work.test.measurement_ranges,
            shared.options,
            is_asked=work.answer_source.given is None,
        )
        self._description = WorkDescription.of(work, shared.options)
        self._sample: Sample | None = None
        self._range: ItemRange | None = None
        self._ids = Ids(work.test.uid)
        self._source: ItemSource | None = None
        self._workers: Workers | None = None
        self._authors_task: asyncio.Task[Any] | None = None
        self._number: int | None = None  # of the test's items, once those of earlier sessions are compared
        self._journal: JournalFile | None = None
        self._manifest = earlier.manifest  # as it is written
        self._totals = TotalsFile(self.folder, self.tally, self._standing)

    async def prepare(self) -> None:
        """Read what earlier sessions did, and check that the test still makes the same items.

        Raises:
            RecordError: it does not, or a file of the run is damaged; neither journal nor record is changed.
            InvalidOptionError: the items of a new run lack the field that says which cluster each belongs to.
        """
        if self.work.continues is None:
            await in_thread(self._check, "items")
            return
        earlier = self._earlier
        await self._open_journal()
        await in_thread(lambda: earlier.load(self.tally), "journal")
        self._number = await in_thread(lambda: earlier.compare(self._chosen_again, self._index), "items")

    def _check(self) -> None:
        check_cluster(self.work.test, self.work.dependencies, self.shared.options)
        self._worker.answerer.check(self._chosen_again)

    async def run(self) -> TestRecord:
        """Run the pair to its end; what fails on the way stands in the record."""
        current_tally.set(self.tally)
        self.shared.observers.run_started(await self._keep_manifest())
        journal = await self._open_journal()
        await in_thread(self._totals.open, "totals")
        self.shared.at_end(self._totals.close)
        self.shared.writer.before_each_group(self._totals.write)
        await self._stage("items", lambda: self._work_through(journal))
        self._ids.forget()
        if self.remote is not None:
            self._notes += await self.remote.notes()
        await self.shared.writer.drained()
        await in_thread(lambda: self._earlier.count_left(self.tally, self._index), "journal")
        for dead in (target.admission.dead for target in self.targets if target.admission.dead is not None):
            self._fail("run", dead)  # also where no item was left to be stopped
        result = await self._stage("aggregate", self._aggregated) or {}
        manifest = await self._keep_manifest()
        record = await in_thread(lambda: self._finish(result, manifest), "record")
        journal.close()
        await in_thread(lambda: self.shared.observers.run_finished(record), "observers")
        return record

    @property
    def answerer(self) -> Answerer:
        """The source of the answers to the prompts of this pair."""
        return self._worker.answerer

    @property
    def known(self) -> int | None:
        """The number of items, including earlier sessions; None until it is known."""
        if self._source is None or self._source.total is None:
            return self._number
        return self._source.total + len(self._earlier.recorded)

    def keep_totals(self) -> None:
        """Write how far the run is, for who looks at its files while it goes on."""
        self._totals.write()

    def _standing(self) -> tuple[int | None, str]:
        troubles = (target.admission.server.trouble for target in self.targets)
        return self.known, next(filter(None, troubles), "")

    @property
    def _expected_number(self) -> int | None:
        """The number of items that the result covers; an unfinished run that is rescored has answers to fewer."""
        return self._worker.answerer.number(self.known)

    @property
    def _population(self) -> int | None:
        """The number of items in the test, if intervals are about this finite set."""
        return get_population(self.shared.options, self._expected_number, self._sample)

    async def _open_journal(self) -> JournalFile:
        if self._journal is None:
            journal = await in_thread(lambda: JournalFile(self.folder.journal), "journal")
            # Not sooner: where this task is cancelled, the writer still has lines for it.
            self.shared.at_end(journal.close)
            self._journal = journal
        return self._journal

    def stop(self, failure: ModelGaugeError | None = None) -> None:
        """Start no more items: the run was interrupted, or cannot continue (then the failure says why)."""
        if failure is None:
            self.cancelled = True
        else:
            self._fail("run", failure)
        if self._source is not None:
            self._source.stop()

    def _stopped(self) -> bool:
        return self.cancelled or self._failure is not None

    def abandon(self) -> None:
        """Stop waiting for the items under way, and for the test to make items or a result."""
        self.stop()  # a second Ctrl-C can come before the first one did that
        self._abandoned = True
        if (self._workers is None or not self._workers.abandon()) and self._authors_task is not None:
            self._authors_task.cancel()

    # --- items -------------------------------------------------------------------------------------------------------

    async def _work_through(self, journal: JournalFile) -> None:
        if self._stopped():
            return
        thread = OneThread("items")
        try:
            source = self._source = await self._of_author(lambda: self._items(thread), "items", thread)
            if self._stopped():
                source.stop()
            self._workers = Workers(
                source,
                lambda item: self._process(item, journal),
                self.shared.writer,
                choose_window([target.admission.limiter for target in self.targets]),
                lambda error: self.stop(None if self.cancelled else error),
            )
            await self._workers.work()
            if self.known == 0 and not len(self._ids):
                raise without_items(self.work.test.uid)
        finally:
            if self._source is not None:
                self._source.close()
            thread.close()

    async def _of_author(self, work: Callable[[], Any], name: str, thread: OneThread | None = None) -> Any:
        """Run an author's code in a thread, until it ends or the run is abandoned."""
        self._authors_task = asyncio.get_running_loop().create_task(in_thread(work, name, thread))
        return await self._authors_task

    def _items(self, thread: OneThread) -> ItemSource:
        options = self.shared.options
        choice = chosen(self.work.test, self.work.dependencies, options, self._ids)
        items, number, total, self._range = choice
        if number is not None and total is not None and self._range is None:
            total += self.work.answer_source.left_out
            if number < total:
                self._sample = Sample(size=number, total=total, seed=options.seed)
        items, number = self._worker.answerer.answered(items, number)
        left = number if self._number is None else self._number - len(self._earlier.recorded)
        return ItemSource(self._earlier.remaining(items), left, thread)

    def _chosen_again(self) -> Iterator[NumberedItem]:
        return chosen(self.work.test, self.work.dependencies, self.shared.options).items

    async def _process(self, numbered_item: NumberedItem, journal: JournalFile) -> None:
        index, item = numbered_item.index, numbered_item.item
        if len(self._manifest["dependency_versions"]) < len(self.work.dependency_versions):
            await self._keep_manifest()
        self._earlier.begin(index, self.tally)
        self._index.note_context(index, item)
        if self.remote is not None:
            clean, line = await self.remote.recorded(index, item)
        else:
            record = await self._worker.process(index, item)
            # Many long answers that come at once are not made lines of at once.
            if self.shared.writer.is_crowded:
                await self.shared.writer.room()
            clean, line = make_line(record, self.work.test.uid, self.shared.options.redactor.redact_json_text)
        clean, line = self._earlier.superseding(clean, line)
        self.shared.writer.append(journal, line, lambda offset: self._on_commit(clean, offset, item))

    async def _keep_manifest(self) -> dict[str, Any]:
        """Rewrite the manifest if it has changed, for example by the versions of data that was fetched when used."""
        manifest, redact = self.manifest(), self.shared.options.redactor.redact_json_text
        if manifest != self._manifest:
            self._manifest = manifest
            await in_thread(lambda: self.folder.write_manifest(manifest, redact), "manifest")
        return manifest

    def _on_commit(self, record: ItemRecord, offset: int, item: TestItem) -> None:
        self._earlier.retried.pop(record.index, None)
        self.tally.count(record)
        self._index.add(record, offset, item)
        self.shared.observers.item_finished(self.folder.run_id, record)

    async def _aggregated(self) -> dict[str, Any]:
        test = self.work.test
        directions = known_directions(test.measurement_directions, test.thresholds)
        items = self._index.items(self._expected_number, self._population, directions)
        if not len(items) and not self._index.is_measured_in_part:
            return {}
        raw = await self._of_author(lambda: test.aggregate_measurements(items), "aggregation")
        return normalized_result(raw, self.shared.options.reduction)

    async def _stage(self, stage: RunStage, work: Callable[[], Awaitable[Any]]) -> Any:
        """Do a part of the run; an exception ends this pair only, and is recorded."""
        try:
            return await work()
        except asyncio.CancelledError:
            if not self._abandoned:
                raise
        except Exception as error:  # noqa: BLE001  whatever an author's code raises is data
            self._fail(stage, error)
        return None

    def _fail(self, stage: RunStage, error: Exception) -> None:
        if self._failure is None:
            self._failure = run_failure(stage, error, self.work.answer_source.again)

    def _finish(self, result: dict[str, Any], manifest: dict[str, Any]) -> TestRecord:
        """Write the record; where the disk refuses it, the caller gets it all the same."""
        redact, used = self.shared.options.redactor.redact_json_text, self._totals.used
        record = self._record(result, used, manifest)
        try:
            if (repeated := self._ids.repeated) and repeated != manifest.get("repeated_ids"):
                self.folder.write_manifest({**manifest, "repeated_ids": repeated}, redact)
            self.folder.write_record(record, redact)
        except RunStoppedError as error:
            self._fail("run", error)
            self._notes += (error.problem,)
            self._totals.write()
            return self._record(result, used, manifest)
        self._totals.write(ended=True)
        return record

    def _record(self, result: dict[str, Any], used: TotalUsage, manifest: Mapping[str, Any]) -> TestRecord:
        """Build the record of the run, redacting secrets that an error may have named."""
        limiters = {target.owner.uid: target.admission.limiter for target in self.targets}
        record = run_record(
            self._description,
            self._index,
            self.tally,
            used,
            self.known,
            **self._ids_of_run(),
            dependency_versions=manifest["dependency_versions"],
            plugins=manifest.get("plugins", {}),
            merged_from=self._earlier.merged_from,
            sample=self._sample,
            cancelled=self.cancelled,
            result=result,
            notes=tuple(self._all_notes()),
            failure=self._failure,
            concurrency=self._earlier.concurrency_with(limiters, self.tally.before.seconds),
        )
        written = record.model_dump_json()
        clean = self.shared.options.redactor.redact_json_text(written)
        if clean != written:
            record = record_from_json(json.loads(clean), "The record")
        return record.with_items(self.folder.items, self.folder.path)

    def _all_notes(self) -> Iterator[str]:
        yield from (*self.work.test.record_notes, *self.work.notes_on_data())
        yield from self._notes
        yield from dict.fromkeys(note for target in self.targets for note in target.notes())
        if self._ids.repeated:
            repeat = counted(self._ids.repeated, "item repeats", "items repeat")
            yield f"{repeat} the prompts of an earlier item, with ids that end in ~2, ~3, …"
        yield from notes_on_items(self._index, self._population)
        if self.shared.options.item_range is not None:
            yield part_note(self.shared.options.item_range)
        yield from self._worker.answerer.notes()
        yield from self._earlier.notes()
        yield from self.tally.notes()

    def manifest(self) -> dict[str, Any]:
        """Build the contents of `run.json`."""
        made = self._earlier.manifest or {
            "schema_version": SCHEMA_VERSION,
            **self._ids_of_run(),
            **self._description.model_dump(mode="json", exclude={"inputs"}),
            **self.shared.manifest,
            **self._worker.answerer.manifest(),
        }
        # A run's folder may have been renamed; what is given to `resume` holds from then on; and the lines that it adds
        # are of this version, whatever stands before them.
        now = {
            "run_id": self.folder.run_id,
            "journal_version": JOURNAL_VERSION,
            "options": self._description.options,
            "dependency_versions": {**made["dependency_versions"], **self.work.dependency_versions},
        }
        return {**made, **now, **({} if self._range is None else self._range.for_manifest())}

    def _ids_of_run(self) -> dict[str, Any]:
        return {
            "run_id": self.folder.run_id,
            "invocation_id": self.shared.invocation_id,
            "run_timestamp": self._earlier.began.isoformat(timespec="seconds"),
        }
