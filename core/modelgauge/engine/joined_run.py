"""A run that is joined from its parts. No code of its test runs."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from modelgauge.data.records import SCHEMA_VERSION, TestRecord
from modelgauge.data.results import RunFailure, Sample, Used, range_of
from modelgauge.engine.bookkeeping.tally import Tally
from modelgauge.engine.items.scored_items import JournalIndex
from modelgauge.engine.parts import JoinedLines, RunPart, Whole, check_facts, whole_of
from modelgauge.engine.run_files.folder import MERGED_FROM, RunFolder
from modelgauge.engine.run_files.journal import JOURNAL_VERSION, JournalFile
from modelgauge.engine.run_record import mean_record, merged_note, write_end
from modelgauge.engine.totals import Totals, read_totals
from modelgauge.wording.phrases import counted


def join(
    parts: Sequence[RunPart], runs: Path, surroundings: Mapping[str, Any], identifier: str | None = None
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
    check_facts(parts)
    whole, lines = whole_of(parts), JoinedLines()
    for part in parts:
        lines.add_all(part)
    joined = _JoinedRun(RunFolder.create(runs), parts, lines, whole, identifier)
    try:
        return joined.write(surroundings)
    except BaseException:
        shutil.rmtree(joined.folder.path, ignore_errors=True)
        raise


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
        self,
        folder: RunFolder,
        parts: Sequence[RunPart],
        lines: JoinedLines,
        whole: Whole,
        identifier: str | None,
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
        self.folder.write_manifest(manifest, str, is_own=all(part.is_own for part in self.parts))
        ranges = {name: range_of(ends) for name, ends in (self.description.ranges or {}).items()}
        index = JournalIndex(self.folder.journal, ranges, self.options, is_asked=True)
        tally = Tally(items=len(self.lines.at))
        self._write_journal(index, tally)
        tally.before = sum([(read_totals(part.folder) or Totals()).used for part in self.parts], Used())
        totals = Totals(used=tally.used(), ended=True, known=self.known)
        record = mean_record(
            self.description,
            index,
            tally,
            self.known,
            **{name: manifest[name] for name in ("run_id", "invocation_id", "run_timestamp", "plugins")},
            merged_from=tuple(self.run_ids),
            sample=self.sample,
            notes=self._notes(),
            failure=self._failure(),
            **({"result": {}} if self._has_own_result else {}),
        )
        write_end(self.folder, record, totals, str)
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
                record, offset = line.record(), journal.size
                journal.append(line.text())
                tally.count(record)
                index.add(record, offset, record.test_item)
        finally:
            journal.close()

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
