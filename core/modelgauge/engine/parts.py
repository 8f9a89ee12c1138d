"""Parts of a run: runs that each measured some items of one test. `join` makes one run of them.

A part is a run like any other: a range of items that another machine measured (`item_range`), a stopped run, or the
rest of it that was measured elsewhere.
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from modelgauge.config.run_options import options_of
from modelgauge.data.base import Count, Frozen
from modelgauge.data.item_records import ItemRecord, item_from_json
from modelgauge.data.items import hex_digest
from modelgauge.data.records import SCHEMA_VERSION, TestRecord
from modelgauge.data.results import RunFailure, Sample, normalized_result, range_of
from modelgauge.engine.bookkeeping.tally import Tally
from modelgauge.engine.description import WorkDescription
from modelgauge.engine.items.scored_items import JournalIndex
from modelgauge.engine.run_files.folder import MANIFEST, MERGED_FROM, RunFolder, write_atomically
from modelgauge.engine.run_files.journal import JOURNAL_VERSION, JournalFile
from modelgauge.engine.run_files.lines import counted_lines
from modelgauge.engine.run_record import (
    PART_OF,
    merged_note,
    notes_on_items,
    part_note,
    population_of,
    run_record,
)
from modelgauge.engine.totals import Totals, read_totals
from modelgauge.errors import InvalidDataError, RecordError
from modelgauge.files.regular import opened
from modelgauge.stats.aggregations import mean_of_each
from modelgauge.wording.phrases import beginning, counted

_MAY_BE_MISSING = ("dependency_versions", "plugins")  # data and plugins that only some items need
_LONGEST = 60  # characters of a value in a message
_SAME_DATA = "Leave one of the runs out, or make it again with the test and the data of the other."
_SAME_FACTS = (
    "Leave one of the runs out, or make it again as the other was made: the cache pays for what is equal."
)
_SAME_ANSWERS = "Leave one of the runs out. Machines that share a cache get the same answers."


class Whole(Frozen):
    """The size of the run that the parts are of, as far as it is known.

    Args:
        items: the number of its items.
        total: the number of items that the test has, of which `max_test_items` may have chosen some.
    """

    items: Count | None = None
    total: Count | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A run that is joined with others.

    Args:
        folder: its files.
        manifest: its `run.json`.
        description: the work, as the manifest describes it.
        record: of the run; None if its last session was killed.
        is_own: False if somebody else may have made the run. The joined run counts as theirs, too.
    """

    folder: RunFolder
    manifest: Mapping[str, Any]
    description: WorkDescription
    record: TestRecord | None
    is_own: bool

    @property
    def item_range(self) -> tuple[int, int] | None:
        """The places of its items, the second excluded; None for all."""
        return self.description.run_options().item_range

    def facts(self) -> dict[str, Any]:
        """Return what is equal in all parts of a run: values by their paths in `run.json`."""
        recorded = self.description.run_options().recorded()
        same = {name: recorded[name] for name in options_of("sample", "results") if name != "item_range"}
        left_out = {"options", "inputs", "groups", "sut_label"}
        facts = {
            **self.description.model_dump(mode="json", exclude=left_out),
            **{name: self.manifest.get(name) for name in ("modelgauge", "plugins")},
            **{f"options.{name}": value for name, value in same.items()},
            "options.hyperparameters": recorded["hyperparameters"],
        }
        return dict(_leaves(facts))

    def whole(self) -> Whole:
        """Return the size of the whole run, as far as this part shows it."""
        if (part_of := self.manifest.get(PART_OF)) is not None:
            try:
                return Whole.load(part_of)
            except InvalidDataError as error:
                path = self.folder.path / MANIFEST
                raise RecordError(
                    f"{path} is damaged: {error.problem}", fix="Put it back as it was."
                ) from None
        record, item_range = self.record, self.item_range
        if record is None or record.counts.not_begun is None:
            return Whole()
        number = record.counts.items + record.counts.not_begun
        if item_range is None:
            return Whole(items=number, total=number if record.sample is None else record.sample.total)
        start, stop = item_range
        has_ended = (
            not record.ended_early and 0 < number < stop - start
        )  # the items ended before the range did
        return Whole(items=start + number) if has_ended else Whole()

    def notes(self) -> Iterator[str]:
        """Yield the notes of its record, and why it ended early."""
        if self.record is None:
            yield "It was killed."
            return
        own = () if self.item_range is None else (part_note(self.item_range),)
        yield from (note for note in self.record.notes if note not in own)
        if self.record.failure is not None:
            yield f"It stopped early: {self.record.failure.error_type}: {self.record.failure.message}"


def join(
    parts: Sequence[Part], runs: Path, surroundings: Mapping[str, Any], identifier: str | None = None
) -> TestRecord:
    """Make one run of its parts. Each item counts once; a score replaces a failure of the same item.

    Args:
        parts: at least one.
        runs: the folder in which the run gets its folder.
        surroundings: facts about this process, for the manifest.
        identifier: a name for the run; by default that of the parts, if all have the same.

    Raises:
        RecordError: the parts are not of one run, or a file of theirs is damaged. Nothing is written.
        RunStoppedError: the disk refuses.
    """
    _check_facts(parts)
    whole, lines = _whole(parts), _Lines()
    for part in parts:
        for number, offset, line in counted_lines(part.folder.journal):
            lines.add(part, offset, item_from_json(line, f"{part.folder.journal}, line {number}"))
    joined = _JoinedRun(RunFolder.create(runs), parts, lines, whole, identifier)
    try:
        return joined.write(surroundings)
    except BaseException:
        shutil.rmtree(joined.folder.path, ignore_errors=True)
        raise


# --- what parts have in common ---------------------------------------------------------------------------------------


def _check_facts(parts: Sequence[Part]) -> None:
    """Refuse parts that are not of one run.

    Raises:
        RecordError: they differ in a fact; the message names it.
    """
    first, *others = parts
    known = first.facts()
    for part in others:
        facts = part.facts()
        for name in {**known, **facts}:
            if name.startswith(_MAY_BE_MISSING) and not (name in known and name in facts):
                known.setdefault(name, facts.get(name))
            elif known.get(name) != facts.get(name):
                raise RecordError(
                    f"Runs {first.folder.run_id} and {part.folder.run_id} are not parts of one run: {name} is "
                    f"{_text(known.get(name))} in the first, and {_text(facts.get(name))} in the second.",
                    fix=_SAME_FACTS,
                )


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values in JSON data, with their paths."""
    if not isinstance(value, dict):
        yield path, value
        return
    for name, part in value.items():
        yield from _leaves(part, f"{path}.{name}" if path else name)


def _text(value: Any) -> str:
    return "not set" if value is None else beginning(json.dumps(value, ensure_ascii=False), _LONGEST)


def _whole(parts: Sequence[Part]) -> Whole:
    """Return the size of the whole run, as far as any part shows it.

    Raises:
        RecordError: parts show different sizes.
    """
    found = {part.folder.run_id: part.whole() for part in parts}
    for name in Whole.model_fields:
        known = {run: size for run, whole in found.items() if (size := getattr(whole, name)) is not None}
        first = next(iter(known), "")
        other = next((run for run, size in known.items() if size != known[first]), None)
        if other is not None:
            raise RecordError(
                f"The test has {counted(known[first], 'item')} in run {first}, and {known[other]:,} in run {other}.",
                fix=_SAME_DATA,
            )
    return Whole(
        items=next((whole.items for whole in found.values() if whole.items is not None), None),
        total=next((whole.total for whole in found.values() if whole.total is not None), None),
    )


# --- one line for each item ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Line:
    """The line of an item in the journal of a part.

    Args:
        part: has the journal.
        offset: of the line.
        item_id: a digest of the item's id.
        rank: is higher for a scored item, and for fewer failed repeats.
    """

    part: Part
    offset: int
    item_id: str
    rank: tuple[bool, int]

    def text(self) -> bytes:
        """Read the line."""
        with opened(self.part.folder.journal) as file:
            file.seek(self.offset)
            return file.readline()

    def record(self) -> ItemRecord:
        """Return the record in the line."""
        return item_from_json(self.text(), str(self.part.folder.journal))


@dataclass(slots=True)
class _Lines:
    """One line for each item of all parts.

    Attributes:
        at: the lines by their places in the test.
        mended: the number of items that failed, wholly or in part, where another part has a better record.
    """

    at: dict[int, _Line] = field(default_factory=dict)
    mended: int = 0
    _place_of: dict[str, int] = field(default_factory=dict)

    def add(self, part: Part, offset: int, record: ItemRecord) -> None:
        """Add a line of a part.

        Raises:
            RecordError: another part has another item at this place, or other answers or measurements of this item.
        """
        item_id = record.digests.id if record.digests else hex_digest(str(record.test_item.id))
        line = _Line(part, offset, item_id, (record.kind == "item", -len(record.failures)))
        held = self.at.setdefault(record.index, line)
        if held.item_id != item_id or self._place_of.setdefault(item_id, record.index) != record.index:
            self._refuse(record, part, self.at[self._place_of[held.item_id]])
        if held is not line:
            self._check_equal(held, line, record)
            self.mended += held.rank != line.rank
            self.at[record.index] = max(held, line, key=lambda each: each.rank)

    def _refuse(self, record: ItemRecord, part: Part, other: _Line) -> None:
        raise RecordError(
            f"Item '{record.test_item.id}' is at place {record.index} of run {part.folder.run_id}, and not at that "
            f"place of run {other.part.folder.run_id}: their tests made different items.",
            fix=_SAME_DATA,
        )

    def _check_equal(self, held: _Line, line: _Line, record: ItemRecord) -> None:
        """Compare two records of an item. Of two failures any will do, and a score needs no failure to agree."""
        earlier, item = held.record(), f"Item '{record.test_item.id}'"
        runs = f"run {held.part.folder.run_id} and run {line.part.folder.run_id}"
        if earlier.test_item != record.test_item and _item_digest(earlier) != _item_digest(record):
            raise RecordError(
                f"{item} is not the same in {runs}: its prompts or its context differ.", fix=_SAME_DATA
            )
        if held.rank == line.rank and record.kind == "item" and _outcome(earlier) != _outcome(record):
            raise RecordError(
                f"{item} has different answers, annotations or measurements in {runs}.", fix=_SAME_ANSWERS
            )


def _item_digest(record: ItemRecord) -> str:
    return record.digests.item if record.digests else hex_digest(record.test_item.model_dump_json())


def _outcome(record: ItemRecord) -> dict[str, Any]:
    """Return what two equal records of an item share. Tracebacks name threads and files of a machine."""
    outcome = record.model_dump(
        mode="json", exclude={"digests": True, "failed_repeats": {"__all__": {"traceback"}}}
    )
    outcome["interactions"].sort(key=lambda interaction: interaction["repeat"])
    return outcome


# --- the joined run --------------------------------------------------------------------------------------------------


class _JoinedRun:
    """The run that is made of parts.

    Args:
        folder: is empty.
        parts: at least one.
        lines: those that the journal gets.
        whole: the size of the run.
        identifier: see `join`.
    """

    def __init__(
        self, folder: RunFolder, parts: Sequence[Part], lines: _Lines, whole: Whole, identifier: str | None
    ) -> None:
        self.folder, self.parts, self.lines, self.known = folder, parts, lines, whole.items
        names = {part.description.options.get("identifier") for part in parts}
        options = {
            **parts[0].description.options,
            "item_range": None,
            "identifier": identifier or (names.pop() if len(names) == 1 else None),
        }
        versions = [part.description.dependency_versions for part in reversed(parts)]
        self.description = parts[0].description.replaced(
            options=options,
            dependency_versions={key: version for each in versions for key, version in each.items()},
        )
        self.options = self.description.run_options()
        self.sample: Sample | None = None
        if whole.items is not None and whole.total is not None and whole.items < whole.total:
            self.sample = Sample(size=whole.items, total=whole.total, seed=self.options.seed)
        self.run_ids = [part.folder.run_id for part in parts]

    def write(self, surroundings: Mapping[str, Any]) -> TestRecord:
        """Write the files of the run, and return its record."""
        manifest = self._manifest(surroundings)
        is_own = all(part.is_own for part in self.parts)
        self.folder.write_manifest(manifest, str, is_own=is_own)
        ranges = {name: range_of(ends) for name, ends in (self.description.ranges or {}).items()}
        index = JournalIndex(self.folder.journal, ranges, self.options, is_asked=True)
        tally = Tally(items=len(self.lines.at))
        self._write_journal(index, tally)
        totals = self._totals(tally)
        write_atomically(self.folder.totals, totals.model_dump_json() + "\n")
        record = self._record(index, tally, totals, manifest)
        self.folder.write_record(record, str)
        return record.with_items(self.folder.items, self.folder.path)

    def _manifest(self, surroundings: Mapping[str, Any]) -> dict[str, Any]:
        versions = [part.manifest.get("plugins") or {} for part in self.parts]
        return {
            "schema_version": SCHEMA_VERSION,
            "run_id": self.folder.run_id,
            "invocation_id": self.folder.run_id,  # of a command with this run alone
            "run_timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
            **self.description.model_dump(mode="json"),
            **surroundings,
            "plugins": {name: version for each in versions for name, version in each.items()},
            "journal_version": JOURNAL_VERSION,
            MERGED_FROM: self.run_ids,
        }

    def _write_journal(self, index: JournalIndex, tally: Tally) -> None:
        """Copy the lines in the order of the test, and count what they hold."""
        journal = JournalFile(self.folder.journal)
        try:
            for _, line in sorted(self.lines.at.items()):
                text, offset = line.text(), journal.size
                record = item_from_json(text, str(line.part.folder.journal))
                journal.append(text)
                tally.count(record)
                index.add(record, offset, record.test_item)
        finally:
            journal.close()

    def _totals(self, tally: Tally) -> Totals:
        """Add what the parts used to a tally."""
        used = [totals for part in self.parts if (totals := read_totals(part.folder)) is not None]
        for totals in used:
            totals.add_to(tally)
        return Totals.of(tally, sum(totals.seconds for totals in used), ended=True, known=self.known)

    def _record(
        self, index: JournalIndex, tally: Tally, totals: Totals, manifest: Mapping[str, Any]
    ) -> TestRecord:
        options, population = self.options, population_of(self.options, self.known, self.sample)
        items = index.items(self.known, population, self.description.directions)
        result = {} if self._has_own_result else normalized_result(mean_of_each(items), options.reduction)
        ids = {name: manifest[name] for name in ("run_id", "invocation_id", "run_timestamp", "plugins")}
        return run_record(
            self.description,
            index,
            tally,
            self.known,
            **ids,
            merged_from=tuple(self.run_ids),
            sample=self.sample,
            result=result,
            seconds=totals.seconds,
            notes=tuple(dict.fromkeys([*self._notes(), *notes_on_items(index, population)])),
            failure=self._failure(),
        )

    @property
    def _has_own_result(self) -> bool:
        """True if only the test's own code can compute the result, or an older version wrote the parts."""
        own = self.description.own_methods
        return own is None or "aggregate_measurements" in own

    def _failure(self) -> RunFailure | None:
        """Return why the run is not complete; None if it is."""
        if self.known is None:
            why = "The parts do not show how many items the test has."
        elif missing := self.known - len(self.lines.at):
            first = next(place for place in range(self.known) if place not in self.lines.at)
            of_all = f"{missing:,} of {counted(self.known, 'item')}"
            why = f"{of_all} {'has' if missing == 1 else 'have'} no record, the first of them at place {first:,}."
        elif self._has_own_result:
            why = "The test computes its result by code of its own, which was not run."
        else:
            return None
        return RunFailure(stage="run", error_type="RunUnfinished", message=why)

    def _notes(self) -> Iterator[str]:
        """Yield the notes of the parts; a note that not all have with the part that has it."""
        yield merged_note(self.run_ids)
        if self.lines.mended:
            items = counted(
                self.lines.mended, "item that failed in a part is", "items that failed in a part are"
            )
            yield f"{items} here as another part recorded {'it' if self.lines.mended == 1 else 'them'}."
        notes = {part.folder.run_id: list(part.notes()) for part in self.parts}
        for run_id, own in notes.items():
            for note in own:
                yield note if all(note in of_part for of_part in notes.values()) else f"Run {run_id}: {note}"
        for part in self.parts:
            if read_totals(part.folder) is None:
                yield f"The calls and the time of run {part.folder.run_id} are not known."
