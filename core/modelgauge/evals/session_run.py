"""The run of a session: its folder is there from the first case on, so that a kill at any moment leaves it, with all
cases that were judged.

All processes of the session append whole lines to one journal, in turns; beside it each keeps a log of its own, in
`cases/`, of what the records do not say. At the end, the process that began the session appends the lines that count,
which replace those of the cases, and makes the run's record of them.

    run_data/runs/RUN_ID/       the run's folder, made by the first process that has a case; all know its RUN_ID
        items.jsonl             the journal
        cases/PID.jsonl         the log of each process
        .turn                   locked by the process that appends to the journal
    TEMP/modelgauge-PID-HEX/    the session's folder, of which all know the path; workers of pytest-xdist make it
        run-PID                 the note of each process: the path of its run's folder
        items.jsonl, cases/     of processes that could not make the run's folder
        unrepeated.txt          the pytest plugin's

The notes name several folders where a fixture has set another data folder in one of the processes.
"""

import errno
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, sleep
from typing import IO, Any

from pydantic_core import to_json

from modelgauge.data.item_records import ItemRecord, item_from_json
from modelgauge.data.records import SCHEMA_VERSION, TestRecord
from modelgauge.data.results import GIVEN, PYTEST, Threshold, normalized_result, recorded_ranges
from modelgauge.data.thresholds import known_directions
from modelgauge.engine.items.scored_items import JournalIndex
from modelgauge.engine.run_files.folder import (
    JOURNAL,
    RunFolder,
    new_id,
    refused,
    write_atomically,
)
from modelgauge.engine.run_files.journal import JOURNAL_VERSION, blank_line, line_of
from modelgauge.engine.run_files.lines import counted_lines, index_in, whole_lines
from modelgauge.engine.run_files.manifest import surroundings
from modelgauge.errors import RunStoppedError
from modelgauge.evals.display import rendered, with_distinct_titles
from modelgauge.evals.session_cases import OUTSIDE, Cases
from modelgauge.evals.session_options import TestRunOptions
from modelgauge.files.lock import Turns
from modelgauge.files.regular import opened
from modelgauge.files.whole import append_whole, cut_torn_line
from modelgauge.stats import mean_of_each
from modelgauge.stats.measured import Range
from modelgauge.wording.phrases import counted

LOGS = "cases"
"""In the folder of the run, until the session ends: what each process says of its cases."""

_PATIENCE = 60.0  # seconds that a turn at the journal is waited for: a process may be stopped in its own
_TURN = ".turn"
_NOTE = "run-"


class SharedJournal:
    """A journal to which several processes append, in turns.

    Args:
        path: of the journal, which is made if it is missing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = opened(path, "a+b")
        self._turns = Turns(path.with_name(_TURN))
        self._at_work = Turns(path)  # held by one of the processes, so that the run is known to be going on
        self._at_work.begin()
        self._lock = threading.Lock()

    def append(self, data: bytes) -> int:
        """Append whole lines, all or none. An unfinished line of a killed process is cut off first.

        Returns:
            The offset of the first line.

        Raises:
            RunStoppedError: the disk refuses.
        """
        with self._lock:
            patience = monotonic() + _PATIENCE
            while not self._turns.begin():
                if monotonic() > patience:
                    raise RunStoppedError(
                        f"Another process of the session holds {self.path} and does not go on.",
                        fix="Let it go on, or end it; then run the tests again.",
                    )
                sleep(0.0005)
            try:
                self._at_work.begin()  # the process that held it may have ended
                start = cut_torn_line(self._file)
                append_whole(self._file, data)
            except OSError as error:
                raise refused(self.path, error) from error
            finally:
                self._turns.end()
        return start

    def close(self) -> None:
        for file in (self._file, self._turns, self._at_work):
            file.close()


class SessionRun:
    """The run of a session, as each of its processes knows it.

    Args:
        where: of the session: `begun` and `mark` name the run, and `folder` is the session's folder.
        runs: where the folders of runs are.
        options: of `modelgauge test run`.
        command: the command line.
        redact: takes secrets out of a JSON text.
    """

    def __init__(
        self,
        where: Mapping[str, Any],
        runs: Path,
        options: TestRunOptions,
        command: Sequence[str],
        redact: Callable[[str], str],
    ) -> None:
        began = datetime.fromtimestamp(where["begun"], UTC)
        self._began = began.isoformat(timespec="seconds")
        self.run_folder = RunFolder(runs / new_id(began, where["mark"]))
        self._session_folder = Path(where["folder"])
        self._options, self._command, self._redact = options, command, redact
        self._journal: SharedJournal | None = None
        self._log: IO[bytes] | None = None
        self._made_above: list[Path] = []
        self._lock = threading.RLock()

    @property
    def own_folder(self) -> Path:
        """Where this process leaves its cases."""
        return self.run_folder.path if self.run_folder.path.is_dir() else self._session_folder

    def journal(self) -> SharedJournal:
        """The journal in the folder of the run, which is made here; if that fails, the end of the session says why."""
        with self._lock:
            if self._journal is None:
                try:
                    self._make()
                except (OSError, RunStoppedError):
                    self.run_folder.forget_if_empty()
                (self.own_folder / LOGS).mkdir(mode=0o700, parents=True, exist_ok=True)
                self._log = opened(self.own_folder / LOGS / f"{os.getpid()}.jsonl", "ab")
                self._journal = SharedJournal(self.own_folder / JOURNAL)
            return self._journal

    def _make(self) -> None:
        runs = self.run_folder.path.parent
        self._made_above = [path for path in (runs, runs.parent) if not path.exists()]
        runs.mkdir(parents=True, exist_ok=True)
        try:
            self.run_folder.path.mkdir()
        except FileExistsError:  # another process of the session was the first
            pass
        else:
            record = self._record(Cases.of((), ()), ranges={})
            self.run_folder.write_manifest(self._manifest(record), self._redact)
        if self._session_folder.is_dir():
            note = self._session_folder / f"{_NOTE}{os.getpid()}"
            note.write_text(str(self.run_folder.path.resolve()), encoding="utf-8")

    def log(self, **event: Any) -> None:
        """Add an event to the log of this process: JSON values and models."""
        with self._lock:
            if self._log is None:
                self.journal()
            if self._log is not None:
                self._log.write(self._redact(to_json(event).decode()).encode("utf-8") + b"\n")

    # --- the end --------------------------------------------------------------------------------------------

    def check_kept(self) -> None:
        """Refuse to end as a session without cases where the folder in which they were left is gone.

        Raises:
            RunStoppedError: it is.
        """
        own = [] if self._journal is None else [self._journal.path]
        for journal in [*own, *(folder / JOURNAL for folder in self._noted_folders())]:
            if not journal.parent.is_dir():
                raise refused(journal, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))

    def _noted_folders(self) -> list[Path]:
        """The folders of the run that the notes of the processes name."""
        notes = sorted(self._session_folder.glob(f"{_NOTE}*"))
        return [Path(note.read_text(encoding="utf-8")) for note in notes]

    def folders_with_cases(self) -> list[Path]:
        """Where any process of the session can have left cases."""
        own = self.run_folder.path.resolve()
        return list(dict.fromkeys([own, *self._noted_folders(), self._session_folder]))

    def events(self) -> Iterator[dict[str, Any]]:
        """All events of all processes, those of each in their order; a torn last line is dropped."""
        for folder in self.folders_with_cases():
            for file in sorted((folder / LOGS).glob("*.jsonl")):
                yield from map(json.loads, whole_lines(file))

    def items(self) -> Iterator[ItemRecord]:
        """The records of the cases of all processes."""
        for folder in self.folders_with_cases():
            yield from RunFolder(folder).items()

    def finish(self, cases: Cases, notes: Iterable[str], collected: int | None) -> str:
        """Make one run of all cases.

        Args:
            cases: at least one.
            notes: further facts that a reader should know.
            collected: where the session was interrupted, the number of tests that it had, 0 where it is not known;
                None if it came to its end.

        Returns:
            What is shown at the end of the session.

        Raises:
            RunStoppedError: the disk refuses.
        """
        if not self.run_folder.path.is_dir():
            self.run_folder = RunFolder.create(self.run_folder.path.parent)
        self.close()
        with closing(SharedJournal(self.run_folder.journal)) as journal:
            number = self._write_files(journal, cases, notes, collected)
        self._remove_logs()
        shown = with_distinct_titles([(case.test, case.shown(self._redact)) for case in cases.listed])
        written = self.run_folder.read_record().notes  # without secrets
        return rendered(shown, self.run_folder.path, self._options.display, written, cases=number)

    def _write_files(
        self, journal: SharedJournal, cases: Cases, notes: Iterable[str], collected: int | None
    ) -> int:
        """Write the files of the run, and return how many cases it has."""
        items, number = list(cases.items()), len(cases.by_id())
        ranges = {name: (low, high) for name, (low, high) in cases.declared("ranges").items()}
        index = self._append_items(journal, items, ranges)
        known = number if collected is None else None  # of those that were not begun, nobody knows
        directions = cases.declared("directions")
        record = self._record(
            cases,
            cancelled=collected is not None,
            counts=cases.counts(items),
            result=normalized_result(mean_of_each(index.items(known, directions=directions))),
            ranges=recorded_ranges(index.columns.ranges()),
            notes=tuple(dict.fromkeys([*cases.notes, *notes, *_interrupted(cases, collected)])),
        )
        self.run_folder.write_manifest({**self._manifest(record), **cases.manifest()}, self._redact)
        write_atomically(self.run_folder.totals, cases.used.model_dump_json() + "\n")
        self.run_folder.write_record(record, self._redact)
        return number

    def _record(self, cases: Cases, **facts: Any) -> TestRecord:
        """The record of the session.

        Args:
            cases: that were judged until now.
            facts: further fields, of what came out; ranges at least.
        """
        uid = self._options.identifier or PYTEST
        made = {"uid": uid, "class_name": PYTEST, "cache_version": 0, "arguments": {}, "opaque": []}
        declared = cases.declared("thresholds")
        thresholds = {name: Threshold.load(threshold) for name, threshold in declared.items()}
        judged_by = cases.manifest()
        return TestRecord(
            schema_version=SCHEMA_VERSION,
            run_id=self.run_folder.run_id,
            invocation_id=self.run_folder.run_id,  # of a command with this run alone
            run_timestamp=self._began,
            test_uid=uid,
            test_initialization=made,
            sut_uid=GIVEN,
            sut_initialization={**made, "uid": GIVEN, "class_name": GIVEN},
            hyperparameters=cases.hyperparameters,
            identifier=self._options.identifier,
            repeats=self._options.repeat,
            **{name: judged_by[name] for name in ("annotators", "judges", "plugins")},
            thresholds=thresholds,
            directions=known_directions(cases.declared("directions"), thresholds),
            seconds=cases.used.seconds,
            spent=cases.used.spent,
            **facts,
        )

    def _manifest(self, record: TestRecord) -> dict[str, Any]:
        """The manifest of the session, by its record as far as that is known."""
        fields = record.model_dump(mode="json", exclude={"counts", "result", "seconds", "spent"})
        known = {"journal_version": JOURNAL_VERSION, "options": self._options.recorded()}
        return {**fields, **surroundings(self._command, []), **known}

    def _append_items(
        self, journal: SharedJournal, items: Sequence[ItemRecord], ranges: Mapping[str, Range]
    ) -> JournalIndex:
        """Append the lines that differ from those in the journal. They replace the lines of their cases.

        An item takes over the index of a later one only after that one has a new index: each case always counts once.
        """
        there = {index_in(line): line for line in whole_lines(journal.path)}
        end = journal.path.stat().st_size
        for item in reversed(items):
            if line_of(item.replaced(replaces=()), "assert_test", self._redact)[1] != there.get(item.index):
                journal.append(line_of(item, "assert_test", self._redact)[1])
        self._blank_secrets(journal.path, end)
        index = JournalIndex(journal.path, ranges)
        offsets = {index_in(line): offset for _, offset, line in counted_lines(journal.path)}
        for item in items:
            index.add(item, offsets[item.index], item.test_item)
        return index

    def _blank_secrets(self, journal: Path, end: int) -> None:
        """Overwrite replaced lines that contain a secret unknown to their process. No line moves.

        Args:
            journal: its path.
            end: the offset at which the replacing lines begin.
        """
        offset = 0
        with opened(journal, "r+b") as file:
            for line in whole_lines(journal):
                if offset < end and self._redact(text := line.decode("utf-8")) != text:
                    file.seek(offset)
                    file.write(blank_line(item_from_json(line, str(journal)).index, len(line)))
                offset += len(line)

    def _remove_logs(self) -> None:
        own = self.run_folder.path.resolve()
        for folder in self.folders_with_cases():
            shutil.rmtree(folder / LOGS if folder.resolve() == own else folder, ignore_errors=True)
        (own / _TURN).unlink(missing_ok=True)

    def forget(self) -> None:
        """Leave nothing of a session that has no case."""
        self.close()
        for folder in self.folders_with_cases():
            shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # another run lies there by now
            for above in self._made_above:
                above.rmdir()

    def close(self) -> None:
        """Close the files of this process, which adds no more cases."""
        for file in (self._journal, self._log):
            if file is not None:
                file.close()
        self._journal = self._log = None


def _interrupted(cases: Cases, collected: int | None) -> list[str]:
    """What a reader should know of a session that was interrupted."""
    if collected is None:
        return []
    tests = counted(collected, "test") if collected else "tests, nobody knows how many"
    judged = len({case.test for case in cases.listed} - {OUTSIDE})
    return [f"The session was interrupted: pytest had collected {tests}. There are cases of {judged:,} here."]
