"""Writing that a kill or a full disk cannot leave half done: files that are replaced, lines that are appended."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


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
