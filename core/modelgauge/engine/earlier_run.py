"""Records of an earlier run: the remaining items for `resume`, the answers for `rescore`."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from modelgauge.cache.keys import was_redacted
from modelgauge.data.annotations import Interaction, make_interaction
from modelgauge.data.item_records import ItemRecord, item_from_json
from modelgauge.data.items import TestItem, hex_digest
from modelgauge.data.results import ConcurrencyChange, TotalUsage
from modelgauge.engine.bookkeeping.failures import StageError, explaining
from modelgauge.engine.bookkeeping.tally import Tally
from modelgauge.engine.calls.limits import AdaptiveLimiter, Limiter
from modelgauge.engine.items.answers import Answerer, Failed
from modelgauge.engine.items.source import NumberedItem
from modelgauge.engine.recorded_items import RecordedItems
from modelgauge.engine.run_files.folder import MANIFEST, RECORD, RunFolder, merged_note
from modelgauge.engine.run_files.journal import make_line, without_contexts
from modelgauge.engine.run_files.lines import unreadable
from modelgauge.engine.totals import Totals, read_totals
from modelgauge.errors import RecordError, RedactedAnswerError
from modelgauge.files.regular import check_regular
from modelgauge.wording.phrases import counted

if TYPE_CHECKING:  # it needs numpy, which costs a worker a fifth of its start
    from modelgauge.engine.items.scored_items import JournalIndex


@dataclass(slots=True)
class EarlierSessions:
    """State left by the earlier sessions of a run; empty for a new run.

    Args:
        folder: of the run.
        redact: as the journal was written.
        began: when the first session began.
        manifest: of the run; empty for a new run.
        totals: what the earlier sessions used; None if nobody kept count.
        concurrency: how the limits changed in the earlier sessions, as far as they ended.
        retry_failed: whether failed items are asked again.
        merged_from: the ids of the runs that were joined into the run.

    Attributes:
        retried: the failed items that are asked again and have no new line yet, by index: the place of their line, and
            the indexes that this line has.
    """

    folder: RunFolder
    redact: Callable[[str], str]
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    manifest: Mapping[str, Any] = field(default_factory=dict)
    totals: Totals | None = None
    concurrency: Mapping[str, tuple[ConcurrencyChange, ...]] = field(default_factory=dict)
    retry_failed: bool = False
    merged_from: tuple[str, ...] = ()
    recorded: RecordedItems = field(init=False)
    retried: dict[int, tuple[int, int]] = field(init=False, default_factory=dict)
    _begun: set[int] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        self.recorded = RecordedItems(self.folder.journal, retry_failed=self.retry_failed)

    @classmethod
    def of(
        cls, folder: RunFolder, redact: Callable[[str], str], *, retry_failed: bool = False
    ) -> "EarlierSessions":
        """Read the files of a run, apart from its items.

        Raises:
            RecordError: one of them is damaged, or no file of the run's own.
        """
        for path in (folder.journal, folder.totals):
            try:
                check_regular(path, writes=True)
            except OSError as error:
                raise unreadable(path, error) from None
        has_record = (folder.path / RECORD).exists()
        concurrency = folder.read_record().concurrency if has_record else {}
        manifest = folder.read_manifest()
        return cls(
            folder,
            redact,
            _began(manifest, folder),
            manifest,
            read_totals(folder),
            concurrency,
            retry_failed=retry_failed,
            merged_from=folder.merged_from(),
        )

    def notes(self) -> Iterator[str]:
        """Return notes about the earlier sessions for the reader of the record."""
        if self.merged_from:
            yield merged_note(self.merged_from)
        if self.manifest and self.totals is None:
            yield "The calls and the time of this run's earlier sessions are not known."

    def concurrency_with(
        self, limiters: Mapping[str, Limiter], before: float
    ) -> dict[str, tuple[ConcurrencyChange, ...]]:
        """Return how the limits of concurrent calls changed, in all sessions of the run.

        Args:
            limiters: of this session, by the uid of what they limit.
            before: seconds that earlier sessions took.
        """
        changes = dict(self.concurrency)
        for uid, limiter in limiters.items():
            if isinstance(limiter, AdaptiveLimiter) and limiter.changes:
                later = (
                    change.replaced(seconds=round(before + change.seconds, 3)) for change in limiter.changes
                )
                changes[uid] = (*changes.get(uid, ()), *later)
        return changes

    def load(self, tally: Tally) -> None:
        """Read the journal, and count what it holds.

        Raises:
            RecordError: a line of it is damaged, or stands there twice.
        """
        self.recorded.read(tally.count)
        tally.items += len(self.recorded)
        tally.before = TotalUsage() if self.totals is None else self.totals.used

    def compare(self, make: Callable[[], Iterable[NumberedItem]], index: "JournalIndex") -> int:
        """Compare the items of the journal with those that the test makes now, before anything is asked.

        Args:
            make: gives the items that the test makes now.
            index: gets the records, with the items as they are made: from a record secrets were taken out.

        Returns:
            How many items the test makes.

        Raises:
            RecordError: an item has changed since, or is missing; or the test makes no items any more.
        """
        number = 0
        with _explaining_items(str(self.manifest.get("test_uid")), self.folder.run_id):
            for item, place in self.recorded.matched(make()):
                number += 1
                at = self.recorded.failed_place(item.item) if place is None else place
                if at is None:
                    continue
                record = self.recorded.record(at)
                if not self._matches_record(item.item, record):
                    raise RecordError(
                        f"Item '{item.item.id}' is not what it was when {self.recorded.path} was written.",
                        fix="Use the test and the data of that run, or start a new run: identical calls "
                        "come from the cache.",
                    )
                if place is None:
                    self.retried[item.index] = at, record.index
                    continue
                index.note_context(item.index, item.item)
                index.add(record, place, item.item)
        if self.retried:  # the run is incomplete until its items have their new lines
            self.folder.remove_record()
        return number

    def begin(self, index: int, tally: Tally) -> None:
        """Count an item whose work begins."""
        tally.items += 1
        if index in self.retried:
            self._begun.add(index)

    def superseding(self, record: ItemRecord, line: bytes) -> tuple[ItemRecord, bytes]:
        """Make the new line of an item replace the line of its failure."""
        if record.index not in self.retried:
            return record, line
        _, index = self.retried[record.index]
        return make_line(record.replaced(replaces=(index,)), record.test_item.id or "", self.redact)

    def count_left(self, tally: Tally, index: "JournalIndex") -> None:
        """Count the failed items that should have been asked again but were not reached."""
        for begun, (place, _) in self.retried.items():
            record = self.recorded.record(place)
            tally.items += begun not in self._begun
            tally.count(record)
            index.add(record, place, record.test_item)
        self.retried.clear()

    def _matches_record(self, item: TestItem, record: ItemRecord) -> bool:
        either, recorded = [item], record.test_item
        if not record.is_scored:
            # An author's code may have put something into its contexts that cannot be written.
            either.append(without_contexts(item))
        if record.digests is None:  # nothing was taken out, unless an earlier version wrote it
            return any(
                _plain(recorded) in (_plain(variant), _plain(variant, self.redact)) for variant in either
            )
        digest = record.digests.item
        # Equal JSON may have its names in another order.
        return any(digest == _digest(variant) or _plain(recorded) == _plain(variant) for variant in either)

    def remaining(self, items: Iterator[NumberedItem]) -> Iterator[NumberedItem]:
        """Yield the items that have no record yet.

        Raises:
            RecordError: one is missing, which was there when they were compared.
        """
        if not len(self.recorded):
            return items
        return (item for item, place in self.recorded.matched(items) if place is None)


def _began(manifest: Mapping[str, Any], folder: RunFolder) -> datetime:
    try:
        return datetime.fromisoformat(manifest["run_timestamp"])
    except (KeyError, TypeError, ValueError):
        raise RecordError(
            f"{folder.path / MANIFEST} is damaged: it does not say when the run began.",
            fix="Start a new run: identical calls come from the cache.",
        ) from None


def _explaining_items(test_uid: str, run_id: str) -> AbstractContextManager[None]:
    """Report what `make_test_items` raises as the reason why a run cannot be done again."""
    problem = f"Test '{test_uid}' does not make its items any more"
    return explaining(RecordError, problem, fix=f"Correct it; run {run_id} is as it was.")


class RecordedAnswers(Answerer):
    """The answers in the journal of another run.

    Args:
        run: whose journal it is.
        test_uid: the test that measures them.
        repeats: how often each prompt was asked.
        redact: takes secrets out of a JSON text, as when the journal was written.

    Raises:
        RecordError: the journal is damaged.
    """

    def __init__(self, run: RunFolder, test_uid: str, repeats: int, redact: Callable[[str], str]) -> None:
        self._run_id, self._test_uid, self._repeats, self._redact = run.run_id, test_uid, repeats, redact
        self._complete = run.is_complete()  # else it holds answers to some of the items
        self._recorded = RecordedItems(run.journal)
        self._recorded.read()
        self._number: int | None = None
        self._lines: dict[int, bytes] = {}

    def handed_on(self, index: int) -> bytes:
        """Return the line in the journal with the answers to an item."""
        return self._lines.pop(index)

    def take(self, index: int, handed_on: bytes) -> None:
        """Keep the line of an item, which another process read from the journal."""
        self._lines[index] = handed_on

    def check(self, make: Callable[[], Iterator[NumberedItem]]) -> None:
        """Compare the recorded answers with what the test asks now."""
        with _explaining_items(self._test_uid, self._run_id):
            for item in self._with_answers(make()):
                self._check_prompts(item.item, self._take_record(item.index))

    def answered(
        self, items: Iterator[NumberedItem], number: int | None
    ) -> tuple[Iterator[NumberedItem], int | None]:
        """Yield the items that have answers, which are looked up in the thread that makes the items.

        Raises:
            RecordError: an item has none in a complete run, or the test does not make an item any more.
        """
        self._number = number
        return self._with_answers(items), len(self._recorded)

    def _with_answers(self, items: Iterator[NumberedItem]) -> Iterator[NumberedItem]:
        made = 0
        for item, place in self._recorded.matched(items):
            made += 1
            if place is not None:
                self._lines[item.index] = self._recorded.line(place).text
                yield item
            elif self._complete:
                raise RecordError(
                    f"Item '{item.item.id}' has no recorded answer in {self._recorded.path}.",
                    fix="Rescore with the data of that run, or start a new run: identical calls "
                    "come from the cache.",
                )
        self._number = made

    def number(self, known: int | None) -> int | None:
        """Return the number of items in the test, including those without an answer in an unfinished run."""
        return known if self._complete else self._number

    def notes(self) -> Iterator[str]:
        """Return a note if some items have no answers, unlike in a complete run."""
        held = len(self._recorded)
        if self._complete or held == self._number:
            return
        items = (
            counted(held, "item") if self._number is None else f"{held:,} of {counted(self._number, 'item')}"
        )
        yield f"Run {self._run_id} is not finished: it has answers to {items}, and the others are missing here."

    def manifest(self) -> Mapping[str, Any]:
        """Return the run that the answers come from."""
        return {"rescores": self._run_id}

    async def answer(
        self, index: int, item: TestItem, answers: list[Interaction], failed: Failed
    ) -> ItemRecord | None:
        """Take the answers from the journal; what failed at the SUT stays as it is."""
        old = self._take_record(index)
        self._check_prompts(item, old)
        by_repeat = {
            n: [interaction for interaction in old.interactions if interaction.repeat == n]
            for n in range(self._repeats)
        }
        whole = {n: given for n, given in by_repeat.items() if len(given) == len(item.prompts)}
        if not old.is_scored and len(whole) < self._repeats:
            # The SUT failed, or some answers could not be written.
            return old.replaced(index=index, test_item=item, digests=None)
        answers += [
            make_interaction(  # with the live context
                prompt, recorded.response.unannotated, recorded.repeat, keys=[recorded.key]
            )
            for interactions in whole.values()
            for recorded, prompt in zip(interactions, item.prompts, strict=True)
        ]
        failed |= {
            failure.repeat: failure
            for failure in old.failures
            if failure.repeat is not None and failure.repeat not in whole
        }
        texts = " ".join(answer.response.model_dump_json() for answer in answers if old.digests is None)
        if old.redacted or was_redacted(texts):  # an earlier version did not say that it redacted
            error = RedactedAnswerError(
                f"The recorded answer to item '{item.id}' cannot be measured: a secret was taken out of it when it "
                "was written.",
                fix="Start a new run: it measures what the SUT answers.",
            )
            raise StageError("measure", self._test_uid, error)
        return None

    def _take_record(self, index: int) -> ItemRecord:
        return item_from_json(self._lines.pop(index), str(self._recorded.path))

    def _check_prompts(self, new: TestItem, old: ItemRecord) -> None:
        answered = [prompt.prompt for prompt in old.test_item.prompts]
        if answered == [prompt.prompt for prompt in new.prompts]:
            return
        if old.digests is not None and old.digests.item == _digest(new):
            return
        if answered != [prompt.prompt for prompt in TestItem.load(_plain(new, self._redact)).prompts]:
            raise RecordError(
                f"The prompts of item '{new.id}' are not those that were answered in {self._recorded.path}.",
                fix="Start a new run: recorded answers cannot be scored as answers to other prompts.",
            )


def _digest(item: TestItem) -> str:
    return hex_digest(item.model_dump_json())


def _plain(item: TestItem, redact: Callable[[str], str] = str) -> Any:
    return json.loads(redact(item.model_dump_json()))
