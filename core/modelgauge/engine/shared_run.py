"""A run to which several processes add items. Each has a part of it; one process finishes the run from all parts.

A kill at any moment leaves the run with all items that were added until then. All processes append whole lines to one
journal, in turns. Beside it each keeps a log of its own, of what the records of items do not contain.

    run_data/runs/RUN_ID/   the run's folder, made by the process that adds the first item; all know its RUN_ID
        items.jsonl         the journal
        cases/PID.jsonl     the log of each process
        .turn               locked by the process that appends to the journal
    MEETING/                a folder of which all processes know the path; there need not be one
        run-PID             the note of each process: the path of its run's folder
        items.jsonl, cases/ of processes that could not make the run's folder

The notes name several folders if a process has another data folder than the others.
"""

import errno
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from pydantic_core import to_json

from modelgauge.data.item_records import ItemRecord
from modelgauge.engine.items.scored_items import JournalIndex
from modelgauge.engine.run_files.folder import JOURNAL, RunFolder, refused
from modelgauge.engine.run_files.journal import blank_line, make_line
from modelgauge.engine.run_files.lines import JournalLines, whole_lines
from modelgauge.engine.run_files.shared_journal import TURN, SharedJournal
from modelgauge.errors import RunStoppedError
from modelgauge.files.regular import opened
from modelgauge.stats.measured import Range

LOGS = "cases"
"""In the folder of the run, until it is finished: the logs of the processes."""

_NOTE = "run-"


class SharedRun:
    """A run, as one of the processes that add items to it.

    Args:
        folder: of the run; it need not exist.
        meeting: the folder in which the processes find each other.
        begin: called by the process that makes the run's folder; writes the manifest.
        redact: takes secrets out of a JSON text.
    """

    def __init__(
        self, folder: RunFolder, meeting: Path, begin: Callable[[], object], redact: Callable[[str], str]
    ) -> None:
        self.folder = folder
        self._meeting, self._begin, self._redact = meeting, begin, redact
        self._journal: SharedJournal | None = None
        self._log: IO[bytes] | None = None
        self._made_above: list[Path] = []
        self._lock = threading.RLock()

    # --- the part of this process ------------------------------------------------------------------------------------

    @property
    def own_folder(self) -> Path:
        """The folder of this process's part."""
        return self.folder.path if self.folder.path.is_dir() else self._meeting

    def add(self, line: bytes) -> None:
        """Append the line of an item to the journal.

        Raises:
            RunStoppedError: the disk refuses, or another process holds the journal.
        """
        self._open().append(line)

    def log(self, **event: Any) -> None:
        """Add an event to the log of this process: JSON values and models."""
        with self._lock:
            if self._log is None:
                self._open()
            if self._log is not None:
                self._log.write(self._redact(to_json(event).decode()).encode("utf-8") + b"\n")

    def _open(self) -> SharedJournal:
        """Open the files of this process. If the run's folder cannot be made, the end of the run reports why."""
        with self._lock:
            if self._journal is None:
                try:
                    self._make()
                except (OSError, RunStoppedError):
                    self.folder.forget_if_empty()
                (self.own_folder / LOGS).mkdir(mode=0o700, parents=True, exist_ok=True)
                self._log = opened(self.own_folder / LOGS / f"{os.getpid()}.jsonl", "ab")
                self._journal = SharedJournal(self.own_folder / JOURNAL)
            return self._journal

    def _make(self) -> None:
        runs = self.folder.path.parent
        self._made_above = [path for path in (runs, runs.parent) if not path.exists()]
        runs.mkdir(parents=True, exist_ok=True)
        try:
            self.folder.path.mkdir()
        except FileExistsError:  # another process was the first
            pass
        else:
            self._begin()
        if self._meeting.is_dir():
            note = self._meeting / f"{_NOTE}{os.getpid()}"
            note.write_text(str(self.folder.path.resolve()), encoding="utf-8")

    def close(self) -> None:
        """Close the files of this process, which adds no more items."""
        for file in (self._journal, self._log):
            if file is not None:
                file.close()
        self._journal = self._log = None

    # --- all parts ---------------------------------------------------------------------------------------------------

    def check_kept(self) -> None:
        """Refuse to end as a run without items if a folder in which items were left is gone.

        Raises:
            RunStoppedError: it is.
        """
        own = [] if self._journal is None else [self._journal.path]
        for journal in [*own, *(folder / JOURNAL for folder in self._noted_folders())]:
            if not journal.parent.is_dir():
                raise refused(journal, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))

    def _noted_folders(self) -> list[Path]:
        """Return the folders of the run that the notes of the processes name."""
        notes = sorted(self._meeting.glob(f"{_NOTE}*"))
        return [Path(note.read_text(encoding="utf-8")) for note in notes]

    def _folders(self) -> list[Path]:
        """Return the folders in which any process can have left items."""
        return list(dict.fromkeys([self.folder.path.resolve(), *self._noted_folders(), self._meeting]))

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield the events of all processes, those of each in their order. A torn last line is dropped."""
        for folder in self._folders():
            for file in sorted((folder / LOGS).glob("*.jsonl")):
                yield from map(json.loads, whole_lines(file))

    def items(self) -> Iterator[ItemRecord]:
        """Yield the records that all processes have added."""
        for folder in self._folders():
            yield from RunFolder(folder).items()

    # --- the end -----------------------------------------------------------------------------------------------------

    @contextmanager
    def finishing(
        self, items: Sequence[ItemRecord], source_uid: str, ranges: Mapping[str, Range]
    ) -> Iterator[JournalIndex]:
        """Finish the run: yield the index of its journal, of which the caller makes the record, then remove all parts.

        Lines are appended for the items that differ from those in the journal. They replace the lines that the items
        name. An item takes over the index of a later one only after that one has a new index: each always counts once.

        Args:
            items: all items of the run, in order.
            source_uid: the test.
            ranges: those that the test declares.

        Raises:
            RunStoppedError: the disk refuses.
        """
        self.close()
        if not self.folder.path.is_dir():
            self.folder = RunFolder.create(self.folder.path.parent)
        with closing(SharedJournal(self.folder.journal)) as journal:
            lines = JournalLines(journal.path)
            there = {line.index: line.line for line in lines.after(0)}
            end = journal.path.stat().st_size
            for item in reversed(items):
                line = make_line(item.replaced(replaces=()), source_uid, self._redact)[1]
                if line != there.get(item.index) or {*item.replaces} - {item.index}:
                    journal.append(make_line(item, source_uid, self._redact)[1])
            self._blank_secrets(journal.path, end)
            index = JournalIndex(journal.path, ranges)
            offsets = {line.index: line.offset for line in lines}
            for item in items:
                index.add(item, offsets[item.index], item.test_item)
            yield index
        self._remove_parts()

    def _blank_secrets(self, journal: Path, end: int) -> None:
        """Overwrite replaced lines that contain a secret unknown to their process. No line moves.

        Args:
            journal: its path.
            end: the offset at which the replacing lines begin.
        """
        with opened(journal, "r+b") as file:
            for line in JournalLines(journal).after(0):
                if line.offset < end and self._redact(text := line.line.decode("utf-8")) != text:
                    file.seek(line.offset)
                    file.write(blank_line(line.record().index, len(line.line)))

    def _remove_parts(self) -> None:
        own = self.folder.path.resolve()
        for folder in self._folders():
            shutil.rmtree(folder / LOGS if folder.resolve() == own else folder, ignore_errors=True)
        (own / TURN).unlink(missing_ok=True)

    def forget(self) -> None:
        """Leave nothing of a run that has no item."""
        self.close()
        for folder in self._folders():
            shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # another run lies there by now
            for above in self._made_above:
                above.rmdir()
