"""Locks on files: they end with the process that holds them, however it ends, and a forked child has none."""

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import IO
from weakref import WeakSet

from modelgauge.files.regular import opened

if sys.platform == "win32":
    import msvcrt

    _BEYOND = 2**40  # a byte that no journal reaches: a locked region cannot be read by others there

    def _try_lock(file: IO[bytes]) -> bool:
        file.seek(_BEYOND)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(file: IO[bytes]) -> None:
        file.seek(_BEYOND)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def _try_lock(file: IO[bytes]) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks: processes cannot keep apart there
            return True
        return True

    def _unlock(file: IO[bytes]) -> None:
        with suppress(OSError):  # likewise
            fcntl.flock(file, fcntl.LOCK_UN)


_PAUSE = 0.002  # seconds between two tries
_files: WeakSet[IO[bytes]] = WeakSet()
_opening = threading.RLock()


def lock(path: Path, mode: str = "rb", patience: float = 0.0) -> IO[bytes] | None:
    """Lock a file, until what is returned is closed; None if somebody else holds the lock.

    Args:
        path: of the file. It is opened for the lock alone, and read and written through descriptors of their own.
        mode: `a+b` makes it where there is none; some network drives lock only what is open for writing.
        patience: seconds to wait for somebody else.

    Raises:
        OSError: it cannot be opened, or is not a regular file.
    """
    end = monotonic() + patience
    while True:
        with _opening:
            file = opened(path, mode)
            _files.add(file)
            if _try_lock(file):
                return file
        file.close()
        if monotonic() >= end:
            return None
        sleep(_PAUSE)


class Turns:
    """A lock that processes take in turns; its file stays open, so that a turn costs two system calls.

    Args:
        path: of the file, which is made where there is none.

    Raises:
        OSError: it cannot be opened, or is not a regular file.
    """

    def __init__(self, path: Path) -> None:
        with _opening:
            self._file = opened(path, "a+b")
            _files.add(self._file)

    def begin(self) -> bool:
        """Take the lock; return False if somebody else holds it."""
        return _try_lock(self._file)

    def end(self) -> None:
        """Release the lock, so that others can take it."""
        _unlock(self._file)

    def close(self) -> None:
        """Close the file, which ends a turn too."""
        self._file.close()


def _forked() -> None:
    """Close the copies in a forked child, which would keep the locks after the parent's death."""
    for file in list(_files):
        file.close()
    _opening.release()


if hasattr(os, "register_at_fork"):
    # No fork falls between the opening of a file and its place among those that a child closes.
    os.register_at_fork(before=_opening.acquire, after_in_parent=_opening.release, after_in_child=_forked)
