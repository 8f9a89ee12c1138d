"""Room on a disk that is held for what must still be written once the disk is full."""

import errno
import os
import sys
from pathlib import Path
from shutil import disk_usage
from tempfile import TemporaryFile
from typing import IO

_LEAST, _MOST = 2**20, 2**24  # bytes
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Reserve:
    """A file without a name, so that a kill frees its room too. It takes up to half of the room that the disk has.

    Where none can be made, as in a folder that is missing, nothing is held.

    Args:
        folder: on the disk.
        sharing: how many processes hold room there for the same run.
    """

    def __init__(self, folder: Path, sharing: int = 1) -> None:
        self._folder, self._sharing = folder, sharing
        self._file: IO[bytes] | None = None
        self._size = 0

    def grow(self, size: int) -> None:
        """Hold as many bytes, between 1 and 16 MiB; nothing any more once the reserve was released.

        Raises:
            OSError: the disk has less than twice as much; half of that is held.
        """
        wanted = min(max(size, _LEAST), _MOST // self._sharing)
        if wanted <= self._size:
            return
        try:
            room = self._size + disk_usage(self._folder).free // (2 * self._sharing)
            self._hold(min(wanted, room))
        except OSError as error:
            if error.errno in _FULL:
                raise
            self.release()
        if self._size < wanted:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _hold(self, size: int) -> None:
        if self._file is None:
            self._file = TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115  open until it is released
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(self._file.fileno(), 0, size)
        else:
            self._file.write(bytes(size - self._size))
        self._size = size

    def release(self) -> bool:
        """Give the room back to the disk; return whether any was held."""
        held = 0 < self._size < sys.maxsize
        self._size = sys.maxsize
        if self._file is not None:
            self._file.close()
            self._file = None
        return held
