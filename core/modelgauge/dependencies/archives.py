"""Reads tar and zip archives member by member, by the standard library's parsers, with the checks that these leave out.

`extract` and `extractall` are never called: a parser says what comes next, and the destination writes it, every name
checked and every byte counted. An entry that is damaged, truncated, or no plain file or folder ends the reading with
an error.
"""

import io
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

from modelgauge.dependencies.safety import Destination, Guard
from modelgauge.wording.phrases import counted

Read: TypeAlias = Callable[[int], bytes]
"""Gives the next bytes of a stream: as many as it is asked for, fewer only at the end."""

CHUNK = 1 << 16

_PAX = {tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE}
_GNU_NAMES = {tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK}
_MAX_METADATA_BYTES = 1 << 20
_MAX_METADATA_HEADERS = 16
_RECORD_LENGTH = re.compile(rb"\d{1,8} ")
# Before Python 3.13, a search of the parser takes the square of the digits in a row (CVE-2024-6232).
_LONG_NUMBER = re.compile(rb"\d{100}")
_BAD_HEADER = (
    "is damaged, or not a tar archive: a number in a header is malformed, or the header's checksum is wrong"
)
_TOO_MUCH_METADATA = "has metadata out of all proportion"
_SPARSE = "is or has a sparse file; only plain files and folders are unpacked"
_TAR_KINDS = {
    tarfile.LNKTYPE: "a hard link",
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.CHRTYPE: "a character device",
    tarfile.BLKTYPE: "a block device",
    tarfile.FIFOTYPE: "a named pipe",
}

_LOCAL_HEADER_BYTES = 30
_ENCRYPTED = 0x1
# Deflate grows at most a thousandfold and is handed out in pieces; the parser expands bzip2 and LZMA input whole.
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
# The parser reads the whole directory at once and makes an object of each entry. A usual entry takes 60 to 150 bytes.
_DIRECTORY_BYTES_PER_MEMBER = 512
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, OverflowError, OSError, NotImplementedError,
    RuntimeError,
)  # fmt: skip


def is_tar(first_block: bytes) -> bool:
    """Return whether a file that begins with these 512 bytes is a tar archive with at least one member."""
    try:
        tarfile.TarInfo.frombuf(first_block, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def is_zip(head: bytes) -> bool:
    """Return whether a file that begins with these bytes is a zip archive, even an empty one."""
    return head.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def unpack_tar(read: Read, destination: Destination) -> None:
    """Write all members of the tar archive (POSIX ustar and pax, GNU, V7) whose bytes `read` gives.

    Raises:
        UnsafeArchiveError: with what has been written so far left in the destination, for the caller to remove.
    """
    guard = destination.guard
    source = _TarSource(read, guard)
    for member in source.members():
        name, size = member.name, member.size
        if member.type in _TAR_KINDS or not (member.isreg() or member.isdir()):
            kind = _TAR_KINDS.get(member.type, f"of the unknown kind {member.type!r}")
            raise guard.refusal(f"is {kind}; only plain files and folders are unpacked", member=name)
        if member.isdir() or name.endswith("/"):
            if size:
                raise guard.refusal("is a folder that claims to have content", member=name)
            destination.add_folder(name)
            continue
        if size < 0:
            raise guard.refusal(_BAD_HEADER)
        guard.check_member_bytes(size, name)
        destination.add_file(name, source.pieces(size, name))
        source.exactly(-size % tarfile.BLOCKSIZE)
    if any(source.exactly(tarfile.BLOCKSIZE)):
        raise guard.refusal("is damaged: data follows half an end mark")
    while chunk := read(CHUNK):  # to the end, so that the checksum of a compressed stream is verified too
        if chunk.strip(b"\0"):
            raise guard.refusal("has data after its end mark")


class _TarSource:
    """The file from which `tarfile` reads headers and metadata: forwards only, and bounded for each member.

    The parser takes a damaged header for the end, reads metadata of any size into memory, and passes over what it
    does not understand. So each header and each record is looked at before the parser gets it.

    For a member with a long name (kind L), the parser calls:

        read(512)    the header that announces a name; `read` takes the name from the stream too, and keeps it
        tell()       where the parser believes to be: before the name that it has not got yet
        read(512)    the name
        read(512)    the header of the member itself
        tell()       where its content begins

    Then `pieces` takes the content from the stream. Before the next header the parser calls `tell()` again. It calls
    `seek` only if that is not where the content should end by its header.
    """

    def __init__(self, read: Read, guard: Guard) -> None:
        self._read = read
        self._refusal = guard.refusal
        self._position = 0
        self._header = self._kind = b""
        self._headers = self._metadata_bytes = 0  # since the last member
        self._metadata = b""  # is read and checked whole, before the parser takes it in one piece or several

    def members(self) -> Iterator[tarfile.TarInfo]:
        """Yield the archive's members. Read the content of each with `pieces` before asking for the next."""
        reason = _BAD_HEADER
        try:
            archive = tarfile.TarFile(fileobj=self, encoding="utf-8")  # type: ignore[arg-type]  # it asks for more than it uses
            for member in archive:
                yield member
                archive.members.clear()  # type: ignore[attr-defined]  # else it keeps them all
                archive.pax_headers = {}
                self._headers = self._metadata_bytes = 0
        except (tarfile.TarError, ValueError) as error:
            if not any(self._header):
                reason = "is damaged: it ends after a header that describes a member to follow"
            raise self._refusal(reason) from error
        if any(self._header):
            raise self._refusal(reason)

    def tell(self) -> int:
        return self._position - len(self._metadata)

    def seek(self, _position: int) -> None:
        """Refuse to seek: `pieces` takes all content, so only a false size in the archive leads elsewhere."""
        raise self._refusal(_BAD_HEADER)

    def read(self, size: int) -> bytes:
        """Return the next header, or the metadata announced by the previous header."""
        if self._metadata or not size:
            taken, self._metadata = self._metadata[:size], self._metadata[size:]
            return taken
        self._headers += 1
        if self._headers > _MAX_METADATA_HEADERS + 1:
            raise self._refusal(_TOO_MUCH_METADATA)
        self._header = header = self.exactly(tarfile.BLOCKSIZE)
        self._kind = header[156:157]
        if self._kind == tarfile.GNUTYPE_SPARSE:  # its map may go on in blocks without end
            raise self._refusal(_SPARSE, member=header[:100].rstrip(b"\0").decode(errors="replace"))
        name, magic, prefix = header[:100], header[257:263], header[345:500]
        if magic != b"ustar\0" and any(prefix):  # the parser takes for a prefix what is none
            raise self._refusal("is damaged, not a tar archive, or an incremental backup")
        self._check_names(name, prefix)
        if self._kind in _PAX | _GNU_NAMES:
            announced = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape")
            self._metadata = self._checked_metadata(announced.size)
        return header

    def _checked_metadata(self, size: int) -> bytes:
        size += -size % tarfile.BLOCKSIZE
        self._metadata_bytes += size
        if size < 0 or self._metadata_bytes > _MAX_METADATA_BYTES:
            raise self._refusal(_TOO_MUCH_METADATA)
        body = self.exactly(size)
        if self._kind in _PAX:
            self._check_records(body)
        else:
            self._check_names(body)
        return body

    def _check_names(self, *names: bytes) -> None:
        for name in names:
            if name.partition(b"\0")[2].strip(b"\0"):
                raise self._refusal(f"is damaged, or not a tar archive: {name[:60]!r} continues after a NUL")

    def _check_records(self, body: bytes) -> None:
        if _LONG_NUMBER.search(body):
            raise self._refusal(_TOO_MUCH_METADATA)
        is_global = self._kind == tarfile.XGLTYPE
        start, length = 0, len(body.rstrip(b"\0"))
        while start < length:
            digits = _RECORD_LENGTH.match(body, start)
            end = start + int(digits[0]) if digits else start
            head, equals, value = body[start : end - 1].partition(b"=")
            keyword = head.partition(b" ")[2]
            if not keyword or not equals or body[end - 1 : end] != b"\n":
                raise self._refusal(f"has metadata whose record at byte {start:,} is malformed")
            if keyword.startswith(b"GNU.sparse."):
                raise self._refusal(_SPARSE)
            if is_global and keyword in {b"path", b"size"}:
                raise self._refusal(f"has metadata with a {keyword.decode()} for all members at once")
            if keyword == b"size" and not (value.isdigit() and len(value) < 20):
                raise self._refusal(f"has metadata whose size {value[:40]!r} is not a number")
            start = end

    def exactly(self, size: int) -> bytes:
        """Return the next `size` bytes at once, for bounded sizes."""
        return b"".join(self.pieces(size))

    def pieces(self, size: int, member: str | None = None) -> Iterator[bytes]:
        """Yield the next `size` bytes, in pieces."""
        while size > 0:
            piece = self._read(min(size, CHUNK))
            if not piece:
                raise self._refusal("is truncated", member=member)
            size -= len(piece)
            self._position += len(piece)
            yield piece


def unpack_zip(path: Path, destination: Destination) -> None:
    """Write all members of the zip archive.

    Raises:
        UnsafeArchiveError: with what has been written so far left in the destination, for the caller to remove.
    """
    guard = destination.guard
    with _BoundedReads(path, guard) as file:
        try:
            archive = zipfile.ZipFile(file)
        except _DAMAGE as error:
            raise guard.refusal(f"is truncated, damaged or not a zip archive ({error})") from error
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
    """A file that refuses reads larger than any sound directory of an archive."""

    def __init__(self, path: Path, guard: Guard) -> None:
        super().__init__(io.FileIO(path))
        self._guard = guard
        self._limit = max(1 << 20, guard.limits.max_members * _DIRECTORY_BYTES_PER_MEMBER)

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > self._limit:
            raise self._guard.over_limit("max_members", f"has a directory of {size:,} bytes")
        return super().read(size)


def _check_entry(entry: zipfile.ZipInfo, guard: Guard) -> None:
    name = entry.orig_filename
    mode = entry.external_attr >> 16
    method = entry.compress_type
    if entry.flag_bits & _ENCRYPTED:
        raise guard.refusal("is encrypted", member=name)
    if stat.S_IFMT(mode) and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        kind = "a symbolic link" if stat.S_ISLNK(mode) else "a device, pipe or socket"
        raise guard.refusal(f"is {kind}; only plain files and folders are unpacked", member=name)
    if method not in _METHODS:
        reason = f"is compressed by method {method}; only stored and deflated members are unpacked"
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
                raise guard.refusal(f"is {counted(left, 'byte')} shorter than it says", member=name)
    except _DAMAGE as error:
        raise guard.refusal(f"is damaged ({error})", member=name) from error
