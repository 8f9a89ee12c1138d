"""The record and the manifest of a session of pytest. To readers it is a run of one test, whose items are the cases."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from modelgauge.config.run_options import RunOptions
from modelgauge.data.item_records import ItemRecord
from modelgauge.data.records import TestRecord
from modelgauge.data.results import GIVEN, PYTEST, Threshold
from modelgauge.data.thresholds import known_directions
from modelgauge.engine.description import WorkDescription
from modelgauge.engine.items.scored_items import JournalIndex
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.engine.run_files.journal import JOURNAL_VERSION
from modelgauge.engine.run_files.manifest import surroundings
from modelgauge.engine.run_record import mean_record, write_end
from modelgauge.engine.totals import Totals
from modelgauge.evals.session_cases import OUTSIDE, Cases
from modelgauge.evals.session_options import TestRunOptions
from modelgauge.wording.phrases import counted

_NOT_IN_MANIFEST = {"counts", "result", "seconds", "spent"}


class SessionRecord:
    """Writes the manifest of a session at its begin, and manifest, totals and record at its end.

    Args:
        began: when the session began.
        options: of `modelgauge test run`.
        command: the command line.
        redact: takes secrets out of a JSON text.
    """

    def __init__(
        self,
        began: datetime,
        options: TestRunOptions,
        command: Sequence[str],
        redact: Callable[[str], str],
    ) -> None:
        self._began = began.isoformat(timespec="seconds")
        self._options, self._command, self._redact = options, command, redact

    def begin(self, folder: RunFolder) -> None:
        """Write the manifest of a session that has no case yet."""
        cases = Cases.of((), ())
        record = self._record(folder, cases, [], JournalIndex(folder.journal, {}), known=None)
        folder.write_manifest(self._manifest(record), self._redact)

    def write(
        self,
        folder: RunFolder,
        cases: Cases,
        items: Sequence[ItemRecord],
        index: JournalIndex,
        *,
        notes: Iterable[str],
        collected: int | None,
    ) -> None:
        """Write the files of a session that has ended.

        Args:
            folder: of its run.
            cases: of all processes.
            items: those of the cases.
            index: of the journal, with these items.
            notes: further facts for the reader.
            collected: the number of tests of a session that was interrupted, 0 if it is not known; None for others.

        Raises:
            RunStoppedError: the disk refuses.
        """
        record = self._record(
            folder,
            cases,
            items,
            index,
            known=len(cases.by_id()) if collected is None else None,
            cancelled=collected is not None,
            notes=[*cases.notes, *notes, *_interrupted(cases, collected)],
        )
        folder.write_manifest({**self._manifest(record), **cases.manifest()}, self._redact)
        write_end(folder, record, Totals(used=cases.used, ended=True), self._redact)

    def _record(
        self,
        folder: RunFolder,
        cases: Cases,
        items: Iterable[ItemRecord],
        index: JournalIndex,
        *,
        known: int | None,
        **facts: Any,
    ) -> TestRecord:
        tally = cases.tally(items)
        return mean_record(
            self._description(cases),
            index,
            tally,
            known,
            run_id=folder.run_id,
            invocation_id=folder.run_id,  # of a command with this run alone
            run_timestamp=self._began,
            plugins=cases.manifest()["plugins"],
            counts=tally.counts(cases.used),  # nobody knows how many cases are in tests that were not begun
            **facts,
        )

    def _description(self, cases: Cases) -> WorkDescription:
        uid = self._options.identifier or PYTEST
        made = {"uid": uid, "class_name": PYTEST, "cache_version": 0, "arguments": {}, "opaque": []}
        declared, judged_by = cases.declared("thresholds"), cases.manifest()
        thresholds = {name: Threshold.load(threshold) for name, threshold in declared.items()}
        options = RunOptions(
            identifier=self._options.identifier,
            hyperparameters=cases.hyperparameters,
            repeats=self._options.repeat,
        )
        return WorkDescription(
            test_uid=uid,
            test_initialization=made,
            sut_uid=GIVEN,
            sut_initialization={**made, "uid": GIVEN, "class_name": GIVEN},
            dependency_versions={},
            annotators=judged_by["annotators"],
            judges=judged_by["judges"],
            thresholds=thresholds,
            directions=known_directions(cases.declared("directions"), thresholds),
            options=options.recorded(),
        )

    def _manifest(self, record: TestRecord) -> dict[str, Any]:
        """Return the manifest of a session: the fields of its record that are known, and facts about the process."""
        fields = record.model_dump(mode="json", exclude=_NOT_IN_MANIFEST)
        known = {"journal_version": JOURNAL_VERSION, "options": self._options.recorded()}
        return {**fields, **surroundings(self._command, []), **known}


def _interrupted(cases: Cases, collected: int | None) -> list[str]:
    """Return the note on a session that was interrupted."""
    if collected is None:
        return []
    tests = counted(collected, "test") if collected else "tests, nobody knows how many"
    judged = len({case.test for case in cases.listed} - {OUTSIDE})
    return [f"The session was interrupted: pytest had collected {tests}. There are cases of {judged:,} here."]
