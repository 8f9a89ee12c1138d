"""A run that is joined from its parts. No code of its test runs."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from modelgauge.data.records import SCHEMA_VERSION, TestRecord
from modelgauge.data.results import GIVEN, PYTEST, RunFailure, Sample, TotalUsage, get_range
from modelgauge.engine.bookkeeping.tally import Tally
from modelgauge.engine.description import WorkDescription
from modelgauge.engine.items.scored_items import JournalIndex
from modelgauge.engine.joined_facts import agreed, joined_annotators, union
from modelgauge.engine.parts import JoinedLines, RunPart, RunSize, SessionPart, check_facts, measure_whole
from modelgauge.engine.run_files.folder import MERGED_FROM, RunFolder, merged_note
from modelgauge.engine.run_files.journal import JOURNAL_VERSION, JournalFile, make_line
from modelgauge.engine.run_record import mean_record, write_end
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
    whole, lines = measure_whole(parts), JoinedLines()
    for part in parts:
        lines.add(part)
    kind = _JoinedSession if isinstance(parts[0], SessionPart) else _JoinedRun
    joined = kind(RunFolder.create(runs), parts, lines, whole, identifier)
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

    Attributes:
        unjudged: the number of items that have no line, and cannot get one any more.
    """

    unjudged = 0

    def __init__(
        self,
        folder: RunFolder,
        parts: Sequence[RunPart],
        lines: JoinedLines,
        whole: RunSize,
        identifier: str | None,
    ) -> None:
        self.folder, self.parts, self.lines, self.known = folder, parts, lines, whole.items
        self.run_ids = [part.folder.run_id for part in parts]
        self.description = _joined(parts, lines, identifier)
        self.options = self.description.run_options()
        self.sample: Sample | None = None
        if whole.items is not None and whole.total is not None and whole.items < whole.total:
            self.sample = Sample(size=whole.items, total=whole.total, seed=self.options.seed)

    def write(self, surroundings: Mapping[str, Any]) -> TestRecord:
        """Write the files of the run, and return its record."""
        manifest = self._manifest(surroundings)
        self.folder.write_manifest(manifest, str, is_own=all(part.is_own for part in self.parts))
        ranges = {name: get_range(ends) for name, ends in (self.description.ranges or {}).items()}
        is_asked = self.description.sut_uid != GIVEN
        index = JournalIndex(self.folder.journal, ranges, self.options, is_asked=is_asked)
        tally = Tally(items=len(self.lines.at) + self.unjudged)
        self._write_journal(index, tally)
        tally.before = sum([(read_totals(part.folder) or Totals()).used for part in self.parts], TotalUsage())
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
            **self._ending(tally),
        )
        write_end(self.folder, record, totals, str)
        return record.with_items(self.folder.items, self.folder.path)

    def _manifest(self, surroundings: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "run_id": self.folder.run_id,
            "invocation_id": self.folder.run_id,  # of a command with this run alone
            "run_timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
            **self.description.model_dump(mode="json"),
            **surroundings,
            "plugins": union(part.manifest.get("plugins") or {} for part in self.parts),
            "journal_version": JOURNAL_VERSION,
            MERGED_FROM: self.run_ids,
        }

    def _write_journal(self, index: JournalIndex, tally: Tally) -> None:
        """Copy the lines in the order of the test, and count what they hold."""
        journal = JournalFile(self.folder.journal)
        try:
            for place, line in self.lines.in_order():
                record, offset, text = line.record(), journal.size, line.line
                if record.index != place or record.replaces:  # which are about the part's journal
                    record = record.replaced(index=place, replaces=())
                    _, text = make_line(record, self.description.test_uid, str)
                journal.append(text)
                tally.count(record)
                index.add(record, offset, record.test_item)
        finally:
            journal.close()

    def _ending(self, tally: Tally) -> dict[str, Any]:
        """Return the fields of the record about the end of the run."""
        del tally
        own = self.description.own_methods
        if own is None or "aggregate_measurements" in own:  # an older version did not record it
            why = "The test computes its result by code of its own, which was not run."
            return {"failure": self._unfinished() or _unfinished(why), "result": {}}
        return {"failure": self._unfinished()}

    def _unfinished(self) -> RunFailure | None:
        """Return the failure of a run that lacks items; None if it has all."""
        if self.known is None:
            return _unfinished("The parts do not show how many items the test has.")
        if not (missing := self.known - len(self.lines.at)):
            return None
        have = "has" if missing == 1 else "have"
        return _unfinished(f"{missing:,} of {counted(self.known, 'item')} {have} no record.")

    def _notes(self) -> Iterator[str]:
        """Yield the notes of the parts. A note that some parts lack begins with the id of its run."""
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


class _JoinedSession(_JoinedRun):
    """The session of pytest that is made of sessions. Nobody can be asked for more."""

    def __init__(
        self,
        folder: RunFolder,
        parts: Sequence[RunPart],
        lines: JoinedLines,
        whole: RunSize,
        identifier: str | None,
    ) -> None:
        super().__init__(folder, parts, lines, whole, identifier)
        uid = self.description.options["identifier"] or PYTEST
        made = {**self.description.test_initialization, "uid": uid}
        self.description = self.description.replaced(test_uid=uid, test_initialization=made)
        counts = [part.record.counts for part in parts if part.record is not None]
        self.unjudged = sum(each.items - each.finished for each in counts)
        self.is_cancelled = any(part.record is None or part.record.cancelled for part in parts)
        self.known = None if self.is_cancelled else len(lines.at) + self.unjudged

    def _manifest(self, surroundings: Mapping[str, Any]) -> dict[str, Any]:
        name = {"identifier": self.description.options["identifier"]}
        manifests = [part.manifest for part in self.parts]
        options = manifests[0].get("options")
        return {
            **super()._manifest({**surroundings, "command": None}),
            "options": {**(options if isinstance(options, dict) else {}), **name},
            "repeats": self.options.repeats,
            "hyperparameters": dict(self.options.hyperparameters),
            **name,
            **union({"data_sets": manifest.get("data_sets", [])} for manifest in manifests),
        }

    def _ending(self, tally: Tally) -> dict[str, Any]:
        return {"cancelled": self.is_cancelled, "counts": tally.counts(tally.used())}


def _unfinished(why: str) -> RunFailure:
    return RunFailure(stage="run", error_type="RunUnfinished", message=why)


def _joined(parts: Sequence[RunPart], lines: JoinedLines, identifier: str | None) -> WorkDescription:
    """Return the description of a run that is made of parts.

    A measurement has a threshold, a range or a direction if it has the same in all parts that measured it.
    """
    descriptions = [part.description for part in parts]
    first, names = descriptions[0], {each.options.get("identifier") for each in descriptions}
    common = names.pop() if len(names) == 1 else None
    logged = union({"hyperparameters": each.options.get("hyperparameters") or {}} for each in descriptions)
    measured: list[dict[str, Any]] = [dict.fromkeys(lines.measured[part.folder.run_id]) for part in parts]
    declared = {
        name: agreed(
            own | (getattr(each, name) or {}) for each, own in zip(descriptions, measured, strict=True)
        )
        for name in ("thresholds", "ranges", "directions")
    }
    return first.replaced(
        options={**first.options, "item_range": None, "identifier": identifier or common, **logged},
        dependency_versions=union(each.dependency_versions for each in descriptions),
        **{name: {key: value for key, value in kept.items() if value} for name, kept in declared.items()},
        **joined_annotators(vars(each) for each in descriptions),
    )
