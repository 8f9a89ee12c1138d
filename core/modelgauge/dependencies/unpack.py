"""Decompressing and unpacking a raw file, by its declaration or by its first bytes.

Truncation and damage are errors here, and no more than a few chunks are in memory.
"""

import gzip
import importlib
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from modelgauge.dependencies.archives import CHUNK, Read, is_tar, is_zip, unpack_tar, unpack_zip
from modelgauge.dependencies.safety import Destination, Guard, UnpackLimits
from modelgauge.errors import DependencyError

Compression = Literal["gzip", "zstd"]
Archive = Literal["tar", "zip"]
_SUFFIXES = {"gzip": (".gz", ".gzip"), "zstd": (".zst", ".zstd")}
_MAGIC: dict[bytes, Compression] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


@dataclass(frozen=True, slots=True)
class UnpackSteps:
    """Steps applied to a raw file: none, `decompress`, `unpack`, or both in this order."""

    decompress: Compression | None = None
    unpack: Archive | None = None

    def __bool__(self) -> bool:
        return self.decompress is not None or self.unpack is not None

    @property
    def names(self) -> tuple[str, ...]:
        """The steps in order, as they stand in folder names and manifests."""
        return tuple(step for step in (self.decompress, self.unpack) if step is not None)


def steps_for(path: Path, declared: UnpackSteps) -> UnpackSteps:
    """Return the declared unpacking steps that this file still needs, by its first bytes.

    For a user's own copy, which may be unpacked already, or packed in another way: a file that is not compressed is
    not decompressed, and a file that is no archive is not unpacked.
    """
    head = _first_bytes(path)
    compression = _compression(head) if declared else None
    if declared.unpack is None:
        return UnpackSteps(compression)
    if compression is None:
        return UnpackSteps(unpack="zip" if is_zip(head) else "tar" if is_tar(head) else None)
    return declared if declared == UnpackSteps(compression, "zip") else UnpackSteps(unpack="tar")


def unpacked_name(name: str, steps: UnpackSteps) -> str:
    """Return the name of a decompressed file: without its `.gz` or `.zst`."""
    for suffix in _SUFFIXES.get(steps.decompress or "", ()):
        if name.lower().endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)]
    return name


def apply_steps(raw: Path, folder: Path, steps: UnpackSteps, *, archive: str, limits: UnpackLimits) -> Path:
    """Write what `raw` holds into `folder`: a tree of members, or one file.

    A tar archive that is itself compressed is read through its compression, declared or not.

    Returns:
        The folder of the tree, or the file: without its `.gz` or `.zst`, where it was decompressed.

    Args:
        raw: the file as fetched.
        folder: new and empty. After an error it holds a part, which the caller removes.
        steps: what to do; nothing moves the raw file.
        archive: what errors call it.
        limits: bounds, for each step.

    Raises:
        UnsafeArchiveError: the archive is damaged, hostile, or not what it was declared to be.
        DependencyError: it is compressed by zstd, which this Python cannot read.
        OSError: the disk fails.
    """
    guard = Guard(archive, limits)
    if steps.unpack == "tar":
        with _decompressed(raw, steps.decompress or _compression(_first_bytes(raw)), guard) as read:
            unpack_tar(read, Destination(folder, guard))
    elif steps.unpack == "zip" and steps.decompress is None:
        unpack_zip(raw, Destination(folder, guard))
    elif steps.unpack == "zip":
        inner = folder.with_name("inner.zip")  # a zip is read from its end, so it must be on disk
        _decompress(raw, inner, steps, guard)
        unpack_zip(inner, Destination(folder, Guard(archive, limits)))
        inner.unlink()
    elif steps.decompress is not None:
        _decompress(raw, folder / unpacked_name(raw.name, steps), steps, guard)
        return folder / unpacked_name(raw.name, steps)
    else:
        return raw.rename(folder / raw.name)
    return folder


def zstd_module(what: str) -> Any:
    """Import the standard library's module (from Python 3.14 on) or its backport; `what` describes the data in
    errors.

    Raises:
        DependencyError: neither is installed.
    """
    for name in ("compression.zstd", "backports.zstd"):
        with suppress(ModuleNotFoundError):
            return importlib.import_module(name)
    raise DependencyError(
        f"{what} is compressed by zstd, which this Python cannot read.",
        fix='pip install "modelgauge-framework[zstd]"',
    )


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(512)


def _compression(head: bytes) -> Compression | None:
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)


def _decompress(raw: Path, target: Path, steps: UnpackSteps, guard: Guard) -> None:
    with _decompressed(raw, steps.decompress, guard) as read:
        Destination(target.parent, guard).add_file(target.name, iter(lambda: read(CHUNK), b""))


@contextmanager
def _decompressed(path: Path, compression: Compression | None, guard: Guard) -> Iterator[Read]:
    head = _first_bytes(path)
    if compression is not None and _compression(head) != compression:
        raise guard.refusal(f"is not {compression} data: it begins with {head[:16]!r}")
    with path.open("rb") as packed:
        file, damage = _decompressor(packed, compression, guard)

        def read(size: int) -> bytes:
            try:
                chunk: bytes = file.read(size)
            except EOFError as error:
                raise guard.refusal(
                    f"is truncated: its {compression} data ends before its end mark"
                ) from error
            except damage as error:
                raise guard.refusal(f"is damaged {compression} data ({error})") from error
            guard.count_bytes(len(chunk), consumed=packed.tell())
            return chunk

        yield read


def _decompressor(
    packed: BinaryIO, compression: Compression | None, guard: Guard
) -> tuple[Any, tuple[type[Exception], ...]]:
    """Return a file of decompressed bytes, and the errors by which it reports damage."""
    if compression == "gzip":
        return gzip.GzipFile(fileobj=packed), (gzip.BadGzipFile, zlib.error)
    if compression is None:
        return packed, ()
    zstd = zstd_module(guard.archive)
    return zstd.ZstdFile(packed), (zstd.ZstdError,)
