"""Content hashes: what a version is."""

import errno
import hashlib
import os
import re
from pathlib import Path

from modelgauge.files.regular import opened, real_path

_SHA256 = re.compile(r"[0-9a-f]{64}")


def content_digest(path: Path) -> str:
    """SHA-256 of a file's bytes; of a folder, of the sorted relative names and contents of all files in it.

    Links are read as what they point to; names are taken with `/`, so that a folder has one digest on every
    system.

    Raises:
        OSError: something in it cannot be read.
    """
    return _folder_digest(path) if path.is_dir() else _file_digest(path)


def is_sha256(text: str) -> bool:
    """Whether it is written as a version is: 64 hexadecimal digits in lower case."""
    return _SHA256.fullmatch(text) is not None


def content_size(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    if path.is_dir():
        return sum(file.stat().st_size for file in _files(path).values())
    return path.stat().st_size


def _file_digest(path: Path) -> str:
    with opened(path, links=True) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # its protocol asks for more


def _folder_digest(folder: Path) -> str:
    total = hashlib.sha256()
    for name, file in sorted(_files(folder).items()):
        # A name ends at its NUL, and a file's digest has a fixed length: no two folders give the same bytes.
        total.update(os.fsencode(name) + b"\0" + bytes.fromhex(_file_digest(file)))
    return total.hexdigest()


def _files(folder: Path) -> dict[str, Path]:
    found = {}
    above = {str(folder): {real_path(folder)}}
    for parent, inside, names in os.walk(folder, followlinks=True, onerror=_raise):
        for name in inside:
            path = os.path.join(parent, name)  # noqa: PTH118  as `os.walk` writes it
            real = real_path(path)
            if real in above[parent]:
                raise OSError(errno.ELOOP, "its links lead in a circle", path)
            above[path] = {*above[parent], real}
        for name in names:
            file = Path(parent, name)
            found[file.relative_to(folder).as_posix()] = file
    return found


def _raise(error: OSError) -> None:
    raise error
