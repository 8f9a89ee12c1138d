"""A journal to which several processes append, in turns."""

import threading
from pathlib import Path
from time import monotonic, sleep

from modelgauge.engine.run_files.folder import refused
from modelgauge.errors import RunStoppedError
from modelgauge.files.lock import Turns
from modelgauge.files.regular import opened
from modelgauge.files.whole import append_whole, cut_torn_line

TURN = ".turn"
"""The file that the process locks which appends to the journal."""

_PATIENCE = 60.0  # seconds that a turn at the journal is waited for: a process may be stopped in its own


class SharedJournal:
    """A journal to which several processes append, in turns.

    Args:
        path: of the journal, which is made if it is missing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = opened(path, "a+b")
        self._turns = Turns(path.with_name(TURN))
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
                        f"Another process of the run holds {self.path} and does not go on.",
                        fix="Let it go on, or end it; then do the same again.",
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
