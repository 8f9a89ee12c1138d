"""Parts of a run: runs that each measured some items of a test. Checks that they fit, and selection of lines.

A part is a run like any other: a range of items that another machine measured (`item_range`), a stopped run, or its
remaining items, measured elsewhere. `joined_run.py` merges parts into one run.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, ClassVar

from modelgauge.config.run_options import list_options
from modelgauge.data.base import Count, Frozen
from modelgauge.data.item_records import ItemRecord
from modelgauge.data.items import hex_digest
from modelgauge.data.records import TestRecord
from modelgauge.data.spans import TRACE
from modelgauge.engine.description import WorkDescription
from modelgauge.engine.items.source import PART_OF
from modelgauge.engine.run_files.folder import MANIFEST, RunFolder
from modelgauge.engine.run_files.lines import JournalLine, JournalLines
from modelgauge.engine.run_record import part_note
from modelgauge.errors import InvalidDataError, RecordError
from modelgauge.wording.phrases import beginning, counted

_LONGEST = 60  # characters of a value in a message
_SAME_DATA = "Leave one of the runs out, or make it again with the test and the data of the other."
_SAME_FACTS = (
    "Leave one of the runs out, or make it again as the other was made: identical calls come from the cache."
)
_SAME_ANSWERS = "Leave one of the runs out. Machines that share a cache get the same answers."


class RunSize(Frozen):
    """The size of the run that the parts are of, as far as it is known.

    Args:
        items: the number of its items.
        total: the number of items that the test has, of which `max_test_items` may have chosen some.
    """

    items: Count | None = None
    total: Count | None = None


@dataclass(frozen=True, slots=True, eq=False)
class RunPart:
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

    may_lack: ClassVar[tuple[str, ...]] = ("dependency_versions", "plugins")
    """Facts that a part lacks if its items did not need that data or plugin."""

    @property
    def item_range(self) -> tuple[int, int] | None:
        """The places of its items, the second excluded; None for all."""
        return self.description.run_options().item_range

    def facts(self) -> dict[str, Any]:
        """Return what is equal in all parts of a run: values by their paths in `run.json`."""
        recorded = self.description.run_options().recorded()
        same = {name: recorded[name] for name in list_options("sample", "results") if name != "item_range"}
        left_out = {"options", "inputs", "groups", "sut_label"}
        facts = {
            **self.description.model_dump(mode="json", exclude=left_out),
            **{name: self.manifest.get(name) for name in ("modelgauge", "plugins")},
            **{f"options.{name}": value for name, value in same.items()},
            "options.hyperparameters": recorded["hyperparameters"],
        }
        return dict(_leaves(facts))

    def records(self) -> Iterator[tuple[int, ItemRecord]]:
        """Yield the records of the journal, each with the offset of its line.

        Raises:
            RecordError: a line is damaged.
        """
        for line in JournalLines(self.folder.journal):
            yield line.offset, line.record()

    def place(self, record: ItemRecord, following: int) -> int:
        """Return the place of an item in the joined run.

        Args:
            record: of the item.
            following: the place after all items of earlier parts, or the one that another part's record of it has.
        """
        del following
        return record.index

    def whole(self) -> RunSize:
        """Return the size of the whole run, as far as this part shows it."""
        if (part_of := self.manifest.get(PART_OF)) is not None:
            try:
                return RunSize.load(part_of)
            except InvalidDataError as error:
                path = self.folder.path / MANIFEST
                raise RecordError(
                    f"{path} is damaged: {error.problem}", fix="Put it back as it was."
                ) from None
        record, item_range = self.record, self.item_range
        if record is None or record.counts.not_begun is None:
            return RunSize()
        number = record.counts.items + record.counts.not_begun
        if item_range is None:
            return RunSize(items=number, total=number if record.sample is None else record.sample.total)
        start, stop = item_range
        # The items ended before the range did.
        reached_end = not record.ended_early and 0 < number < stop - start
        return RunSize(items=start + number) if reached_end else RunSize()

    def notes(self) -> Iterator[str]:
        """Yield the notes of its record, and why it ended early."""
        if self.record is None:
            yield "It was killed."
            return
        own = () if self.item_range is None else (part_note(self.item_range),)
        yield from (note for note in self.record.notes if note not in own)
        if self.record.failure is not None:
            yield f"It stopped early: {self.record.failure.error_type}: {self.record.failure.message}"


class SessionPart(RunPart):
    """A session of pytest that is joined with others: its tests are some of a project's.

    No part says how many tests there are, and a place in one session is none in another. So items are numbered anew.
    """

    may_lack = ("plugins", "options.hyperparameters")

    def facts(self) -> dict[str, Any]:
        """Return what is equal in all sessions of one run. Tests may have metrics of their own."""
        same = ("sut_uid", "modelgauge", "plugins", "options")
        return {name: value for name, value in super().facts().items() if name.partition(".")[0] in same}

    def records(self) -> Iterator[tuple[int, ItemRecord]]:
        """Yield the records in the order of the tests."""
        yield from sorted(super().records(), key=lambda line: line[1].index)

    def place(self, record: ItemRecord, following: int) -> int:
        """Return the next place."""
        del record
        return following

    def whole(self) -> RunSize:
        """Return an unknown size."""
        return RunSize()


# --- what parts have in common ---------------------------------------------------------------------------------------


def check_facts(parts: Sequence[RunPart]) -> None:
    """Refuse parts that are not of one run.

    Raises:
        RecordError: they differ in a fact; the message names it.
    """
    first, *others = parts
    known = first.facts()
    for part in others:
        facts = part.facts()
        for name in {**known, **facts}:
            if name.startswith(part.may_lack) and not (name in known and name in facts):
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


def measure_whole(parts: Sequence[RunPart]) -> RunSize:
    """Return the size of the whole run, as far as any part shows it.

    Raises:
        RecordError: parts show different sizes.
    """
    found = {part.folder.run_id: part.whole() for part in parts}
    for name in RunSize.model_fields:
        known = {run: size for run, whole in found.items() if (size := getattr(whole, name)) is not None}
        first = next(iter(known), "")
        other = next((run for run, size in known.items() if size != known[first]), None)
        if other is not None:
            raise RecordError(
                f"The test has {counted(known[first], 'item')} in run {first}, and {known[other]:,} in run {other}.",
                fix=_SAME_DATA,
            )
    return RunSize(
        items=next((whole.items for whole in found.values() if whole.items is not None), None),
        total=next((whole.total for whole in found.values() if whole.total is not None), None),
    )


# --- one line for each item ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PartLine:
    """The line of an item in the journal of a part.

    Args:
        part: has the journal.
        offset: of the line.
        item_id: a digest of the item's id.
        rank: is higher for a scored item, and for fewer failed repeats.
    """

    part: RunPart
    offset: int
    item_id: str
    rank: tuple[bool, int]

    def record(self) -> ItemRecord:
        """Return the record in the line."""
        (line,) = JournalLines(self.part.folder.journal).at([self.offset])
        return line.record()


@dataclass(slots=True)
class JoinedLines:
    """One line for each item of all parts.

    Attributes:
        at: the lines by their places in the test.
        measured: the names of the measurements of each part, by its run id.
        mended: the number of items that failed, wholly or in part, where another part has a better record.
    """

    at: dict[int, PartLine] = field(default_factory=dict)
    measured: dict[str, set[str]] = field(default_factory=dict)
    mended: int = 0
    _place_of: dict[str, int] = field(default_factory=dict)

    def in_order(self) -> Iterator[tuple[int, JournalLine]]:
        """Yield the lines in the order of the test, each with its place."""
        in_order = sorted(self.at.items())
        for part, placed in groupby(in_order, key=lambda each: each[1].part):
            places, lines = zip(*placed, strict=True)
            journal = JournalLines(part.folder.journal)
            yield from zip(places, journal.at([line.offset for line in lines]), strict=True)

    def add(self, part: RunPart) -> None:
        """Add the lines of a part.

        Raises:
            RecordError: another part has other items at their places, or other answers or measurements of them.
        """
        measured = self.measured.setdefault(part.folder.run_id, set())
        for offset, record in part.records():
            measured.update(record.measurements)
            item_id = record.digests.id if record.digests else hex_digest(str(record.test_item.id))
            line = PartLine(part, offset, item_id, (record.is_scored, -len(record.failures)))
            place = part.place(record, self._place_of.get(item_id, len(self._place_of)))
            held = self.at.setdefault(place, line)
            if held.item_id != item_id or self._place_of.setdefault(item_id, place) != place:
                self._refuse(record, part, self.at[self._place_of[held.item_id]])
            if held is not line:
                self._check_equal(held, line, record)
                self.mended += held.rank != line.rank
                self.at[place] = max(held, line, key=lambda each: each.rank)

    def _refuse(self, record: ItemRecord, part: RunPart, other: PartLine) -> None:
        raise RecordError(
            f"Item '{record.test_item.id}' is at place {record.index} of run {part.folder.run_id}, and not at that "
            f"place of run {other.part.folder.run_id}: their tests made different items.",
            fix=_SAME_DATA,
        )

    def _check_equal(self, held: PartLine, line: PartLine, record: ItemRecord) -> None:
        """Compare two records of an item. Of two failures any will do, and a score needs no failure to agree."""
        earlier, item = held.record(), f"Item '{record.test_item.id}'"
        runs = f"run {held.part.folder.run_id} and run {line.part.folder.run_id}"
        if earlier.test_item != record.test_item and _item_digest(earlier) != _item_digest(record):
            raise RecordError(
                f"{item} is not the same in {runs}: its prompts or its context differ.", fix=_SAME_DATA
            )
        if held.rank == line.rank and record.is_scored and _outcome(earlier) != _outcome(record):
            raise RecordError(
                f"{item} has different answers, annotations or measurements in {runs}.", fix=_SAME_ANSWERS
            )


def _item_digest(record: ItemRecord) -> str:
    return record.digests.item if record.digests else hex_digest(record.test_item.model_dump_json())


def _outcome(record: ItemRecord) -> dict[str, Any]:
    """Return what equal records of an item have in common. Tracebacks and traces have threads, files and times."""
    outcome = record.model_dump(mode="json", exclude={"index", "digests"})
    for failure in outcome.get("failed_repeats", ()):
        del failure["traceback"], failure["traces"]
    for interaction in outcome["interactions"]:
        for annotated in interaction["response"]["completions"]:
            annotated["completion"]["metadata"].pop(TRACE, None)
    outcome["interactions"].sort(key=lambda interaction: interaction["repeat"])
    return outcome
