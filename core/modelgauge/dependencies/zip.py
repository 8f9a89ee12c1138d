"""Reads zip archives member by member, on the standard library's parser, with the checks that it leaves out:
overlaps, links, encryption, directory size, and decompressors that hand out without bound.
"""

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from modelgauge.dependencies.destination import Destination
from modelgauge.dependencies.limits import Guard
from modelgauge.dependencies.streams import CHUNK

_LOCAL_HEADER_BYTES = 30
_ENCRYPTED = 0x1
# Deflate grows at most a thousandfold and is handed out in pieces; the parser expands bzip2 and LZMA input
# whole.
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
# The parser reads the whole directory at once and makes an object of each entry. A usual entry takes 60 to
# 150 bytes.
_DIRECTORY_BYTES_PER_MEMBER = 512
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, OverflowError, OSError)


def is_zip(head: bytes) -> bool:
    """Whether a file that begins with these bytes is a zip archive (an empty one included)."""
    return head.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def unpack_zip(path: Path, destination: Destination) -> None:
    """Writes all members of the archive.

    Raises:
        UnsafeArchiveError: with what has been written so far left in the destination, for the caller to
            remove.
    """
    guard = destination.guard
    with _BoundedReads(path, guard) as file, _open(file, guard) as archive:
        entries = archive.infolist()
        for entry in entries:
            _check_entry(entry, guard)
        _check_overlaps(entries, archive.start_dir, guard)
        size = path.stat().st_size
        for entry in entries:
            # As stored: `filename` is cut at a NUL, and its backslashes depend on the system.
            name = entry.orig_filename
            if name.endswith("/"):
                destination.add_folder(name)
            else:
                destination.add_file(name, _content(archive, entry, guard, packed=size))


class _BoundedReads(io.BufferedReader):
    """A file that refuses to be read in bites larger than any sound directory."""

    def __init__(self, path: Path, guard: Guard) -> None:
        super().__init__(io.FileIO(path))
        self._guard = guard
        self._limit = max(1 << 20, guard.limits.max_members * _DIRECTORY_BYTES_PER_MEMBER)

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > self._limit:
            raise self._guard.over_limit("max_members", f"has a directory of {size:,} bytes")
        return super().read(size)


def _open(file: _BoundedReads, guard: Guard) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file)
    except (*_DAMAGE, NotImplementedError) as error:
        raise guard.refusal(f"is truncated, damaged or not a zip archive ({error})") from error


def _check_entry(entry: zipfile.ZipInfo, guard: Guard) -> None:
    name = entry.orig_filename
    mode = entry.external_attr >> 16
    if entry.flag_bits & _ENCRYPTED:
        raise guard.refusal("is encrypted", member=name)
    if stat.S_IFMT(mode) and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        kind = "a symbolic link" if stat.S_ISLNK(mode) else "a device, pipe or socket"
        raise guard.refusal(f"is {kind}; only plain files and folders are unpacked", member=name)
    if entry.compress_type not in _METHODS:
        reason = (
            f"is compressed by method {entry.compress_type}; only stored and deflated members are unpacked"
        )
        raise guard.refusal(reason, member=name)
    if name.endswith("/") and entry.file_size:
        raise guard.refusal("is a folder that claims to have content", member=name)
    guard.check_member_bytes(entry.file_size, name)


def _check_overlaps(entries: list[zipfile.ZipInfo], directory_start: int, guard: Guard) -> None:
    ordered = sorted(entries, key=lambda entry: entry.header_offset)
    starts = [*(entry.header_offset for entry in ordered), directory_start]
    for entry, (start, following) in zip(ordered, pairwise(starts), strict=True):
        if start < 0 or start + _LOCAL_HEADER_BYTES + entry.compress_size > following:
            raise guard.refusal("overlaps another, as zip bombs do", member=entry.orig_filename)


def _content(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, guard: Guard, *, packed: int
) -> Iterator[bytes]:
    name = entry.orig_filename
    try:
        with archive.open(entry) as file:
            left = entry.file_size
            while chunk := file.read(CHUNK):
                left -= len(chunk)
                guard.count_bytes(len(chunk), consumed=packed)
                yield chunk
            if left:  # the parser checks that it is not more, and the CRC, but not that it is all
                raise guard.refusal(f"is {left:,} bytes shorter than it says", member=name)
    except (*_DAMAGE, NotImplementedError, RuntimeError) as error:
        raise guard.refusal(f"is damaged ({error})", member=name) from error
