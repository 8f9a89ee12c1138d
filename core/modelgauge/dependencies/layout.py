"""The folders of the store on disk, the manifest that marks a whole folder, and the hashes of contents.

    DIRECTORY/OWNER/KEY/        a user may put the raw file here, under the name that errors give
        VERSION[-STEP…]/        one version: the first 16 digits of its hash, and what was done to it
            manifest.json       written last; a folder without a sound one counts for nothing
            data/               the file, or the unpacked tree
        .tmp-…/                 being made, or left behind by a process that was killed

A version's folder appears whole, by one rename; the first process to rename wins.
"""

import errno
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from modelgauge.data.base import Frozen
from modelgauge.dependencies.safety import file_name, folder_name
from modelgauge.dependencies.unpack import UnpackSteps
from modelgauge.errors import DependencyError
from modelgauge.files.regular import opened, real_path

_MANIFEST = "manifest.json"
DATA = "data"
_STAGING_PREFIX = ".tmp-"
_STAGING_LIFETIME_SECONDS = 24 * 3600


class Manifest(Frozen):
    """Contents of one version's folder.

    Args:
        schema_version: of this form.
        owner: uid of the test.
        key: the test's name for the dependency.
        version: content hash of the raw file.
        sources: where this same content came from, as declarations word it; the latest last.
        steps: what was done to the raw file.
        content: content hash of what came out.
        size: bytes of what came out.
        name: of the file in `data/`; None for a tree.
        license: the license under which the data may be passed on; None if the declaration gives none.
    """

    schema_version: Literal[1] = 1
    owner: str
    key: str
    version: str
    sources: tuple[str, ...]
    steps: tuple[str, ...]
    content: str
    size: int
    name: str | None
    license: Annotated[str | None, Field(exclude_if=lambda value: value is None)] = None

    def write(self, path: Path) -> None:
        """Write the manifest to disk before anything else happens."""
        with path.open("wb") as file:
            file.write(self.model_dump_json(indent=2).encode("utf-8") + b"\n")
            file.flush()
            os.fsync(file.fileno())


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A whole version on disk."""

    folder: Path
    manifest: Manifest

    @property
    def path(self) -> Path:
        """The path that a test gets: the file, or the folder of the unpacked tree."""
        return self.folder / DATA / (self.manifest.name or "")


@dataclass(frozen=True, slots=True)
class DependencyVersions:
    """Stored versions of one dependency of one test."""

    directory: Path
    owner: str
    key: str

    @property
    def folder(self) -> Path:
        """The folder that holds the versions of the dependency."""
        return self.directory / folder_name(self.owner) / folder_name(self.key)

    def version(self, version: str, steps: UnpackSteps) -> StoredVersion | None:
        """Return the stored version after these steps; None if it is not complete."""
        stored = read_version(self._version_folder(version, steps))
        is_it = stored is not None and stored.manifest.version == version and self._owns(stored, steps)
        return stored if is_it else None

    def newest(self, source: str, steps: UnpackSteps) -> StoredVersion | None:
        """Return the version from this source, after these steps, that was stored last."""
        own = [stored for stored in read_versions(self.folder) if self._owns(stored, steps)]
        found = [stored for stored in own if source in stored.manifest.sources]
        return max(found, key=lambda stored: (stored.folder / _MANIFEST).stat().st_mtime_ns, default=None)

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """Yield a new folder beside the versions, removed at the end in any case."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._remove_stale_staging()
        staging = Path(tempfile.mkdtemp(prefix=_STAGING_PREFIX, dir=self.folder))
        try:
            yield staging
        finally:
            shutil.rmtree(staging, ignore_errors=True)  # what stays counts for nothing and is removed later

    def publish(self, whole: Path, manifest: Manifest, steps: UnpackSteps) -> StoredVersion:
        """Rename a folder that holds `data/` into its place.

        If another process was first, its version is used, and becomes the newest of these sources too.

        Raises:
            DependencyError: something that is no whole version is in the way.
        """
        target = self._version_folder(manifest.version, steps)
        manifest.write(whole / _MANIFEST)
        try:
            whole.rename(target)
        except OSError as error:
            winner = self.version(manifest.version, steps)
            if winner is None:
                raise DependencyError(
                    f"{target}, for dependency {self.key!r} of {self.owner!r}, is not whole ({error}).",
                    fix="Delete that folder and run the command again.",
                ) from error
            earlier = [source for source in winner.manifest.sources if source not in manifest.sources]
            sources = (*earlier, *manifest.sources)
            manifest = winner.manifest.replaced(sources=sources, license=manifest.license)
            manifest.write(whole / _MANIFEST)
            (whole / _MANIFEST).replace(target / _MANIFEST)
        _sync_folder(self.folder)
        return StoredVersion(target, manifest)

    def _owns(self, stored: StoredVersion, steps: UnpackSteps) -> bool:
        manifest = stored.manifest
        return (manifest.owner, manifest.key, manifest.steps) == (self.owner, self.key, steps.names)

    def _version_folder(self, version: str, steps: UnpackSteps) -> Path:
        return self.folder / "-".join([version[:16], *steps.names])

    def _remove_stale_staging(self) -> None:
        oldest = time.time() - _STAGING_LIFETIME_SECONDS
        for folder in self.folder.glob(f"{_STAGING_PREFIX}*"):
            try:
                stale = folder.stat().st_mtime < oldest
            except FileNotFoundError:  # its process has just finished
                continue
            if stale:
                shutil.rmtree(folder, ignore_errors=True)


def read_versions(folder: Path) -> list[StoredVersion]:
    """Return the complete versions among a folder's children, by name."""
    if not folder.is_dir():
        return []
    children = sorted(child for child in folder.iterdir() if not child.name.startswith(_STAGING_PREFIX))
    return [stored for child in children if (stored := read_version(child)) is not None]


def read_version(folder: Path) -> StoredVersion | None:
    """Return a version if its folder has a valid manifest and data; None for anything else."""
    try:
        manifest = Manifest.model_validate_json((folder / _MANIFEST).read_bytes(), strict=True)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None  # half-written, or not ours
    stored = StoredVersion(folder, manifest)
    is_safe = manifest.name is None or file_name(manifest.name) == manifest.name
    return stored if is_safe and stored.path.exists() else None


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":  # Windows cannot open a folder, and orders renames itself
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def content_digest(path: Path) -> str:
    """SHA-256 of a file's bytes; of a folder, of the sorted relative names and contents of all files in it.

    Links are read as what they point to; names are taken with `/`, so that a folder has one digest on every
    system.

    Raises:
        OSError: something in it cannot be read.
    """
    if not path.is_dir():
        with opened(path, links=True) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # its protocol asks for more
    total = hashlib.sha256()
    for name, inner in sorted((inner.relative_to(path).as_posix(), inner) for inner in _files(path)):
        # A name ends at its NUL, and a file's digest has a fixed length: no two folders give the same bytes.
        total.update(os.fsencode(name) + b"\0" + bytes.fromhex(content_digest(inner)))
    return total.hexdigest()


def content_size(path: Path) -> int:
    """Return the number of bytes in a file, or in all files of a folder."""
    return sum(file.stat().st_size for file in (_files(path) if path.is_dir() else [path]))


def _files(folder: Path) -> Iterator[Path]:
    above = {str(folder): {real_path(folder)}}
    for parent, inside, names in os.walk(folder, followlinks=True, onerror=_raise):
        for name in inside:
            path = os.path.join(parent, name)  # noqa: PTH118  as `os.walk` writes it
            real = real_path(path)
            if real in above[parent]:
                raise OSError(errno.ELOOP, "its links lead in a circle", path)
            above[path] = {*above[parent], real}
        yield from (Path(parent, name) for name in names)


def _raise(error: OSError) -> None:
    raise error
