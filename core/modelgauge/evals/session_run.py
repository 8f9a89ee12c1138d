"""The files of a session's run: its folder is there from the first case on, so that a kill at any moment leaves it,
with all cases that were judged. When the session ends, all of them are written anew, in the order of its tests.
"""

import os
import shutil
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from modelgauge.data.records import ItemRecord, TestRecord
from modelgauge.data.results import normalized_result
from modelgauge.engine.files.journal import JOURNAL, JournalFile, RunFolder, new_id, refused, write_atomically
from modelgauge.engine.files.journal_line import line_of
from modelgauge.engine.scored_items import JournalIndex
from modelgauge.engine.totals import Totals
from modelgauge.errors import RunStoppedError
from modelgauge.files.lock import lock
from modelgauge.files.regular import opened
from modelgauge.stats import mean_of_each
from modelgauge.stats.measured import Range

PARTS = "parts"
"""In the folder of the run: those of the single `assert_test`, until the session ends."""

_RUN = "run-"  # in the folder that all processes of a session know: in whose run a worker leaves its cases

Redact = Callable[[str], str]


class SessionRun:
    """The run of a session, as each of its processes knows it.

    Args:
        where: the session's: `begun` and `mark` name the run; `folder` takes its cases where the run's cannot be made.
        runs: where the folders of runs are.
        manifest: gives what is written first.
    """

    def __init__(self, where: Mapping[str, Any], runs: Path, manifest: Callable[[], dict[str, Any]]) -> None:
        self.began = datetime.fromtimestamp(where["begun"], UTC)
        self.folder = RunFolder(runs / new_id(self.began, where["mark"]))
        self.places = (self.folder.path / PARTS, Path(where["folder"]))
        self._manifest = manifest
        self._journal: IO[bytes] | None = None
        self._held: IO[bytes] | None = None
        self._is_open = False
        self._made_above: list[Path] = []
        self._lock = threading.Lock()

    @property
    def parts(self) -> Path:
        """Where the cases of the session are."""
        return place_of(self.places)

    def open(self, redact: Redact) -> None:
        """Make the folder, unless it is there; where that cannot be, the end of the session tells why.

        Args:
            redact: takes secrets out of a JSON text.
        """
        with self._lock:
            if self._is_open:
                return
            self._is_open = True
            try:
                self._make(redact)
            except (OSError, RunStoppedError):
                self.folder.forget_if_empty()
                self.places[-1].mkdir(mode=0o700, parents=True, exist_ok=True)

    def _make(self, redact: Redact) -> None:
        runs = self.folder.path.parent
        self._made_above = [one for one in (runs, runs.parent) if not one.exists()]
        runs.mkdir(parents=True, exist_ok=True)
        try:
            self.folder.path.mkdir()
        except FileExistsError:  # another process of the session was the first
            pass
        else:
            self.folder.write_manifest(self._manifest(), redact)
        self.places[0].mkdir(mode=0o700, exist_ok=True)
        if self.places[-1].is_dir():
            left = self.places[-1] / f"{_RUN}{os.getpid()}"
            left.write_text(str(self.folder.path.resolve()), encoding="utf-8")
        self._journal = opened(self.folder.journal, "ab")

    def add(self, item: ItemRecord, redact: Redact) -> None:
        """Keep the record of a case for those who look at the run while it goes on, or once it was killed.

        Args:
            item: the record; its index is no other case's.
            redact: takes secrets out of a JSON text.

        Raises:
            RunStoppedError: the disk refuses.
        """
        with self._lock:
            if self._journal is None:
                return
            # One process at a time is known to be at work; where it ends, another takes its place.
            if self._held is None or self._held.closed:  # by a fork
                with suppress(OSError):  # the folder was removed
                    self._held = lock(self.folder.journal, "a+b")
            left = memoryview(_line(item, redact))
            try:
                while left:
                    left = left[self._journal.write(left) :]
            except OSError as error:
                raise refused(self.folder.journal, error) from error

    # --- the end --------------------------------------------------------------------------------------------

    def all_places(self) -> list[Path]:
        """Where any process of the session can have left cases: a fixture may have set the data folder in some."""
        return [self.places[0], *(folder / PARTS for folder in self._elsewhere()), self.places[-1]]

    def _elsewhere(self) -> list[Path]:
        """The folders of the run that other processes made, with settings of their own."""
        said = [file.read_text(encoding="utf-8") for file in sorted(self.places[-1].glob(f"{_RUN}*"))]
        return [folder for folder in map(Path, dict.fromkeys(said)) if folder != self.folder.path.resolve()]

    def write_items(
        self, items: Iterable[ItemRecord], ranges: Mapping[str, Range], known: int | None, redact: Redact
    ) -> dict[str, Any]:
        """Write the records of all cases in the place of what was kept so far, and say what came out.

        Args:
            items: of the cases that were judged.
            ranges: of the scores of their metrics.
            known: how many cases there are, those without a record too; None where nobody knows.
            redact: takes secrets out of a JSON text.

        Raises:
            RunStoppedError: the disk refuses.
        """
        self.close()
        if not self.folder.path.is_dir():
            self.folder = RunFolder.create(self.folder.path.parent)
        written = self.folder.path / f".{JOURNAL}.{os.getpid()}"
        journal, index = JournalFile(written), JournalIndex(self.folder.journal, ranges)
        try:
            for item in items:
                offset = journal.size
                journal.append(_line(item, redact))
                index.add(item, offset, item.test_item)
            journal.close()
            written.replace(self.folder.journal)
        finally:
            written.unlink(missing_ok=True)
        return normalized_result(mean_of_each(index.items(known)))

    def write(self, record: TestRecord, manifest: dict[str, Any], used: Totals, redact: Redact) -> None:
        """Write the other files, and forget the single calls.

        Raises:
            RunStoppedError: the disk refuses.
        """
        self.folder.write_manifest(manifest, redact)
        write_atomically(self.folder.totals, used.model_dump_json() + "\n")
        self.folder.write_record(record, redact)
        self._remove(*self._elsewhere(), *self.places)

    def forget(self) -> None:
        """Leave nothing of a session that has no case."""
        self.close()
        self._remove(*self._elsewhere(), self.folder.path, *self.places)
        with suppress(OSError):  # another run lies there by now
            for above in self._made_above:
                above.rmdir()

    def _remove(self, *folders: Path) -> None:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """This process adds no more cases."""
        for file in (self._journal, self._held):
            if file is not None:
                file.close()
        self._journal = self._held = None


def place_of(places: Sequence[Path]) -> Path:
    """The first that is there; the last where none is."""
    return next((one for one in places if one.is_dir()), places[-1])


def _line(item: ItemRecord, redact: Redact) -> bytes:
    return line_of(item, "assert_test", redact)[1]
