"""Opening files that anybody may have put there: only regular files, so that nothing hangs and nothing else is written;
and the bytes and texts of files that users name.

A pipe waits for its other end for ever, a device has no end, and a link leads to a file that somebody else chose.
"""

import codecs
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import IO

from modelgauge.errors import InputFileError, InvalidOptionError

_FLAGS = getattr(os, "O_NONBLOCK", 0)  # a pipe that came into the file's place since is not waited for
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)

_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EINVAL)  # the last: a name that Windows refuses


class NotRegularError(OSError):
    """A path is a link, a pipe or a device, and not a regular file."""


def opened(path: Path, mode: str = "rb", *, links: bool = False) -> IO[bytes]:
    """Open a regular file for bytes; writing is unbuffered.

    Args:
        path: of the file.
        mode: of `open`, without `w`: that would empty a file before it is looked at.
        links: whether a link to it will do, as for a file that the user named. A file that is written has no
            second name either, as a hard link in an unpacked archive gives it.

    Raises:
        NotRegularError: it is not a regular file.
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


def read_bytes(path: Path, *, links: bool = True) -> bytes:
    """Return the bytes of a regular file; see `opened`."""
    with opened(path, links=links) as file:
        return file.read()


def real_path(path: str | Path) -> Path:
    """Return the absolute path without links. A path with circular links is returned unchanged.

    `Path.resolve` raises a RuntimeError for that before Python 3.13.
    """
    return Path(os.path.realpath(path))


def exists(path: Path) -> bool:
    """Return whether a path, or the target of a link, exists.

    Raises:
        OSError: this cannot be known: the path may not be looked at, say, or is too long. From Python 3.14 on,
            `Path.exists`, `is_file` and `is_dir` would say no.
    """
    return _looked_at(path, links=True) is not None


def is_file(path: Path) -> bool:
    """Return whether a path is a regular file; see `exists`."""
    found = _looked_at(path, links=True)
    return found is not None and stat.S_ISREG(found.st_mode)


def is_folder(path: Path) -> bool:
    """Return whether a path is a folder; see `exists`."""
    found = _looked_at(path, links=True)
    return found is not None and stat.S_ISDIR(found.st_mode)


def check_regular(path: Path, *, writes: bool = False) -> None:
    """Refuse a path at which there is a link, or something else than a regular file or nothing; see `opened`.

    Raises:
        NotRegularError: there is.
    """
    _check(_looked_at(path, links=False), str(path), writes=writes)


def _looked_at(path: Path, *, links: bool) -> os.stat_result | None:
    try:
        return path.stat() if links else path.lstat()
    except (OSError, ValueError) as error:  # a ValueError for a NUL in the path
        if isinstance(error, OSError) and error.errno not in _ABSENT:
            raise
        return None  # it is made, or `os.open` says so


def _check(found: os.stat_result | None, name: str, *, writes: bool) -> None:
    if found is None:
        return
    if stat.S_ISLNK(found.st_mode):
        raise NotRegularError(errno.EINVAL, "it is a link to another file", name)
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):  # `open` refuses folders itself
        raise NotRegularError(errno.EINVAL, "it is not a regular file", name)
    if writes and found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode):
        raise NotRegularError(errno.EINVAL, "it is a hard link to another file", name)


# --- files that users name ------------------------------------------------------------------------------------------


def make_path(file_path: str | PathLike[str]) -> Path:
    """Convert a caller's argument to a path.

    Raises:
        InvalidOptionError: it is none.
    """
    try:
        return Path(file_path)
    except TypeError:
        raise InvalidOptionError(
            f"A value of type {type(file_path).__name__} is not a path of a file.",
            fix="Give the path as a text or a pathlib.Path.",
        ) from None


@contextmanager
def opened_file(path: str | PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a regular file that a user names, for as long as the block runs.

    Raises:
        InputFileError: it cannot be read.
        InvalidOptionError: the path is none.
    """
    named = make_path(path)
    try:
        file = opened(named, links=True)
    except (OSError, ValueError) as error:  # a ValueError for a NUL in the path
        raise _unreadable(path, error) from error
    with file:
        try:
            yield file
        except OSError as error:
            raise _unreadable(path, error) from error


def bytes_of_file(path: str | PathLike[str]) -> bytes:
    """Return the bytes of a regular file that a user names; see `opened_file`."""
    with opened_file(path) as file:
        return file.read()


def _unreadable(path: str | PathLike[str], error: OSError | ValueError) -> InputFileError:
    why = getattr(error, "strerror", None) or str(error)
    return InputFileError(f"{path} cannot be read: {why}.", fix="Give the path of a file that is there.")


_BYTE_ORDER_MARKS = {  # UTF-32 first: its mark begins like that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def decode_text(data: bytes, source: str, encoding: str, *, may_hold_nul: bool) -> str:
    """Decode what a file holds; a byte order mark is skipped.

    Args:
        data: all of the file.
        source: its path, for messages.
        encoding: by name.
        may_hold_nul: False refuses NUL characters, which what is no text is full of.

    Raises:
        InputFileError: it is not a text of this encoding; the message names the line, and what it may be.
        InvalidOptionError: the encoding is not a text.
    """
    if not isinstance(encoding, str):
        raise InvalidOptionError(f"The encoding {encoding!r} is not a text.", fix="Use 'utf-8', say.")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        at, problem = error.start, f"this is not {encoding}"
    except (LookupError, ValueError):  # no such encoding, or one that names nothing that is decoded
        raise InputFileError(f"There is no encoding {encoding!r}.", fix="Use 'utf-8', say.") from None
    else:
        if may_hold_nul or "\0" not in text:
            return text.lstrip("\ufeff")  # some programs write two byte order marks
        at, problem = data.find(b"\0"), "there is a NUL character, which JSON does not allow"
    line = data.count(b"\n", 0, at) + 1
    raise InputFileError(f"{source}, line {line}: {problem}.", fix=_encoding_hint(data[:1000]))


def _encoding_hint(head: bytes) -> str:
    likely = next((name for mark, name in _BYTE_ORDER_MARKS.items() if head.startswith(mark)), None)
    if likely is None and b"\0" in head:
        first, second = head[::2].count(0), head[1::2].count(0)  # of each two bytes
        if min(first, second) or 4 * max(first, second) < len(head):
            return "This seems to be no text at all: save it as CSV, JSON or JSONL, in UTF-8."
        likely = "utf-16-be" if first else "utf-16-le"
    is_likely = f"seems to be: encoding_type={likely!r}" if likely else "is: encoding_type='cp1252', say"
    return f"Save the file as UTF-8, or say what it {is_likely}; on the command line --encoding {likely or 'cp1252'}."
