"""Writing that a kill or a full disk cannot leave half done: files that are replaced, lines that are appended."""

import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from modelgauge.files.lock import lock
from modelgauge.files.regular import opened

_PATIENCE = 10  # seconds
_BLOCK = 65_536


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give the path of a new file, which takes the place of another when the block ends without an error.

    Args:
        path: of the file that is replaced, or made.

    Raises:
        OSError: the disk refuses; what was there stays.
    """
    written = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        yield written
        written.replace(path)
    finally:
        written.unlink(missing_ok=True)


@contextmanager
def creating(path: Path) -> Iterator[Path]:
    """Give the path of a new file, which gets its name, and is on the disk, when the block ends without an error.

    Args:
        path: of a file that is not there yet.

    Raises:
        FileExistsError: it is there; what was there stays.
        OSError: the disk refuses.
    """
    written = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        yield written
        with opened(written, "r+b") as file:
            os.fsync(file.fileno())
        (os.rename if sys.platform == "win32" else os.link)(written, path)  # neither replaces a file there
    finally:
        written.unlink(missing_ok=True)


def append_whole(file: IO[bytes], data: bytes) -> None:
    """Append to an unbuffered file: all of the data, or nothing.

    Raises:
        OSError: the disk refuses.
    """
    size, view = file.seek(0, os.SEEK_END), memoryview(data)
    try:
        while view:
            view = view[file.write(view) :]
    except OSError:
        file.truncate(size)
        raise


def append_line(path: Path, line: bytes, check: Callable[[], object] = lambda: None) -> None:
    """Append a line to a file, which is on the disk when this returns; threads and processes take turns.

    What a killed process left of a line is cut off first.

    Args:
        path: of the file; it is made with its folder where there is none.
        line: without its end.
        check: called when it is this thread's turn. If it raises, nothing is written.

    Raises:
        OSError: the disk refuses, or another process holds the file; the file is as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with turn(path), opened(path, "a+b") as file:
        check()
        cut_torn_line(file)
        append_whole(file, line + b"\n")
        os.fsync(file.fileno())


@contextmanager
def turn(path: Path) -> Iterator[None]:
    """Wait for the lock of a file, and hold it meanwhile; threads and processes take turns.

    Args:
        path: of the file; it is made where there is none.

    Raises:
        OSError: the disk refuses, or another process holds the file.
    """
    held = lock(path, "a+b", _PATIENCE)
    if held is None:
        raise OSError(f"Another process holds {path} and does not go on.")
    with held:
        yield


def cut_torn_line(file: IO[bytes]) -> int:
    """Cut off an unfinished last line of a killed process, and return the size of the file.

    Args:
        file: a file open for reading and appending. Nobody else may be writing to it.

    Raises:
        OSError: the disk refuses.
    """
    size = _end_of_lines(file)
    if size != file.seek(0, os.SEEK_END):
        file.truncate(size)
    return size


def _end_of_lines(file: IO[bytes]) -> int:
    """Return the end of the last complete line of a file."""
    end = file.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - _BLOCK)
        file.seek(start)
        if found := file.read(end - start).rfind(b"\n") + 1:
            return start + found
        end = start
    return 0
