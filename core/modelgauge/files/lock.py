"""Locks on files: they end with the process that holds them, however it ends, and a forked child has none."""

import os
import sys
import threading
from pathlib import Path
from typing import IO
from weakref import WeakSet

from modelgauge.files.regular import opened

if sys.platform == "win32":
    import msvcrt

    _BEYOND = 2**40  # a byte that no journal reaches: a locked region cannot be read by others there

    def _taken(file: IO[bytes]) -> bool:
        file.seek(_BEYOND)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _taken(file: IO[bytes]) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks: processes cannot keep apart there
            return True
        return True


_files: WeakSet[IO[bytes]] = WeakSet()
_opening = threading.RLock()


def lock(path: Path, mode: str = "rb") -> IO[bytes] | None:
    """Lock a file, until what is returned is closed; None where somebody else holds the lock.

    Args:
        path: of the file. It is opened for the lock alone, and read and written through descriptors of their own.
        mode: `a+b` makes it where there is none; some network drives lock only what is open for writing.

    Raises:
        OSError: it cannot be opened, or is no regular file.
    """
    with _opening:
        file = opened(path, mode)
        _files.add(file)
        if _taken(file):
            return file
    file.close()
    return None


def _forked() -> None:
    """Close the copies in a forked child, which would keep the locks after the parent's death."""
    for file in list(_files):
        file.close()
    _opening.release()


if hasattr(os, "register_at_fork"):
    # No fork falls between the opening of a file and its place among those that a child closes.
    os.register_at_fork(before=_opening.acquire, after_in_parent=_opening.release, after_in_child=_forked)
