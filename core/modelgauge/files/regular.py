"""Opening files that anybody may have put there: regular ones only, so that nothing hangs and nothing else is written.

A pipe waits for its other end for ever, a device has no end, and a link leads to a file that somebody else chose.
"""

import errno
import os
import stat
from pathlib import Path
from typing import IO

_FLAGS = getattr(os, "O_NONBLOCK", 0)  # a pipe that came into the file's place since is not waited for
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


class NotRegularError(OSError):
    """At a path there is a link, a pipe or a device, where only a file of one's own is opened."""


def opened(path: Path, mode: str = "rb", *, links: bool = False) -> IO[bytes]:
    """Open a regular file for bytes; writing is unbuffered.

    Args:
        path: of the file.
        mode: of `open`, without `w`: that would empty a file before it is looked at.
        links: whether a link to it will do, as for a file that the user named. A file that is written has no
            second name either, as a hard link in an unpacked archive gives it.

    Raises:
        NotRegularError: it is no regular file.
        OSError: it is missing, or cannot be opened.
    """
    writes = mode != "rb"

    def opener(name: str, flags: int) -> int:
        _check(_looked_at(path, links=links), name, writes=writes)
        descriptor = os.open(name, flags | _FLAGS | (0 if links else _NO_LINK), 0o666)
        try:
            _check(os.fstat(descriptor), name, writes=writes)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    return open(path, mode, buffering=0 if writes else -1, opener=opener)


def bytes_of(path: Path, *, links: bool = True) -> bytes:
    """What a regular file holds; see `opened`."""
    with opened(path, links=links) as file:
        return file.read()


def real_path(path: str | Path) -> Path:
    """The absolute path without links; one whose links lead in a circle stays as it is.

    `Path.resolve` raises a RuntimeError for that before Python 3.13.
    """
    return Path(os.path.realpath(path))


def check_regular(path: Path, *, writes: bool = False) -> None:
    """Refuse a path at which there is a link, or something else than a regular file or nothing; see `opened`.

    Raises:
        NotRegularError: there is.
    """
    _check(_looked_at(path, links=False), str(path), writes=writes)


def _looked_at(path: Path, *, links: bool) -> os.stat_result | None:
    try:
        return path.stat() if links else path.lstat()
    except FileNotFoundError:
        return None  # it is made, or `os.open` says so


def _check(found: os.stat_result | None, name: str, *, writes: bool) -> None:
    if found is None:
        return
    if stat.S_ISLNK(found.st_mode):
        raise NotRegularError(errno.EINVAL, "it is a link to another file", name)
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):  # `open` refuses folders itself
        raise NotRegularError(errno.EINVAL, "it is no regular file", name)
    if writes and found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode):
        raise NotRegularError(errno.EINVAL, "it is a hard link to another file", name)
