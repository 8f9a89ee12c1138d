"""One dependency of one test: its declaration, its versions on disk, its errors, and the way of its raw file to a
stored version: copied into a new folder, verified, unpacked, then renamed into place.

A failure on the way leaves nothing behind.
"""

import importlib
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from modelgauge.dependencies.layout import (
    DATA,
    DependencyVersions,
    Manifest,
    StoredVersion,
    content_digest,
    content_size,
)
from modelgauge.dependencies.safety import Progress, file_name
from modelgauge.dependencies.sources import ExternalData
from modelgauge.dependencies.unpack import UnpackSteps, apply_steps, zstd_module
from modelgauge.errors import (
    ChecksumError,
    DefinitionError,
    DependencyError,
    DependencyMissingError,
    DownloadError,
    ModelGaugeError,
)


@dataclass(frozen=True, slots=True)
class ResolvedDependency:
    """Data that is there, verified and ready to read.

    Args:
        key: the test's name for it.
        path: the file, or the folder of an unpacked archive.
        version: SHA-256 of the raw file, or the digest of a local folder; 64 hexadecimal digits.
    """

    key: str
    path: Path
    version: str


@dataclass(frozen=True, slots=True)
class Request:
    """A declaration, who made it, the version that the user pinned, and where else versions lie.

    Raises:
        DefinitionError: what is declared is no `ExternalData`.
        ChecksumError: declared and pinned version differ, so that nothing can be both.
    """

    place: DependencyVersions
    data: ExternalData
    pin: str | None
    elsewhere: DependencyVersions | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.data, ExternalData):
            raise DefinitionError(
                f"{self.label} is declared as {self.data!r}.",
                fix="Declare a WebData, a LocalData, a PackageData, or another subclass of ExternalData.",
            )
        self.data.validate()

    @property
    def label(self) -> str:
        """The subject of every message."""
        return f"Dependency {self.place.key!r} of {self.place.owner!r}"

    @property
    def file_name(self) -> str:
        """The name of the raw file: as declared, but made safe, because an author's class may return anything."""
        return file_name(self.data.file_name)

    @property
    def drop(self) -> Path:
        """The path at which a user may place the raw file by hand."""
        return self.place.folder / self.file_name

    def find(self) -> StoredVersion | None:
        """Return the stored version for this request. Its content is not verified yet."""
        steps = self.data.steps()
        wanted = self.data.sha256 or self.pin
        if not wanted:
            return self.place.newest(self.data.source, steps)
        found = self.place.version(wanted, steps)
        if found is None and self.elsewhere is not None and not steps:
            found = self.elsewhere.version(wanted, steps)
            if found is not None and found.manifest.content != wanted:
                return None  # its manifest was written by somebody else
        return found

    def check_pin_against_declaration(self) -> None:
        """Refuse a pin that no data could meet together with the declared checksum."""
        if self.pin and self.data.sha256 and self.pin != self.data.sha256:
            raise ChecksumError(
                f"{self.label} is declared with SHA-256 {self.data.sha256} and pinned to {self.pin}.",
                fix="Remove the pin, or give the file that you want with --dependency.",
            )

    def check_version(self, version: str, what: str, *, declared: bool = True) -> None:
        """Refuse data of another version than declared (if that counts) or pinned; `what` names the data."""
        if declared and self.data.sha256 not in {None, version}:
            raise ChecksumError(
                f"{self.label}: {what} has SHA-256 {version}, but the test declares {self.data.sha256}.",
                fix=f"Get the right file from {self.data.source}, or give another one with --dependency.",
            )
        if self.pin not in {None, version}:
            raise ChecksumError(
                f"{self.label}: {what} has version {version}, but is pinned to {self.pin}.",
                fix="Remove the pin, or give the file of that version with --dependency.",
            )

    def verify(self, stored: StoredVersion) -> ResolvedDependency:
        """Compare the content on disk with the manifest, and return the data for the test.

        Raises:
            ChecksumError: it was changed since it was stored.
        """
        if content_digest(stored.path) != stored.manifest.content:
            raise ChecksumError(
                f"{self.label}: {stored.path} was changed since it was stored.",
                fix=f"Delete the folder {stored.folder} and run the command again.",
            )
        return ResolvedDependency(self.place.key, stored.path, stored.manifest.version)

    def absence(self) -> DependencyMissingError | None:
        """Return the error for data that is missing on this machine; None if it is present."""
        try:
            local = self.data.local_path()
        except DependencyMissingError as error:
            return DependencyMissingError(f"{self.label}: {error.problem}", fix=error.fix)
        if local is not None:
            return None if local.exists() else self.local_absence(local)
        if self.drop.is_file() or self.find() is not None:
            return None
        version = self.data.sha256 or self.pin
        expected = f" (SHA-256 {version})" if version else ""
        return DependencyMissingError(f"{self.label} is not on this machine{expected}.", fix=self.hand_over())

    def local_absence(self, local: Path) -> DependencyMissingError:
        """Return the error for a missing file that would be read in place."""
        override = shlex.quote(f"{self.place.key}=FILE")
        return DependencyMissingError(
            f"{self.label} is not there: {local}.",
            fix=f"Put it there, or run the test with `--dependency {override}`.",
        )

    def hand_over(self) -> str:
        """Explain how to supply the raw file by hand."""
        test, key = shlex.quote(self.place.owner), shlex.quote(self.place.key)
        return (
            f"Get it from {self.data.source} and put it at {self.drop}, "
            f"or run `modelgauge dependencies add --test {test} {key} FILE`, "
            f"or give it for this command alone: `--dependency {shlex.quote(f'{self.place.key}=FILE')}`."
        )


def take_copy(request: Request, file: Path, *, in_place: UnpackSteps | None = None) -> StoredVersion:
    """Store a copy of a user's raw file as if it had been fetched.

    Args:
        request: what it is for.
        file: the raw file.
        in_place: how it is unpacked where it is otherwise read in place; its checksum is the caller's to check then.
    """
    return _take_in(request, partial(shutil.copyfile, file), what=str(file), in_place=in_place)


def take_fetched(request: Request, *, show_progress: bool) -> StoredVersion:
    """Store what the source gives; a progress bar is shown on a terminal only."""
    return _take_in(request, partial(_fetch, request, show_progress), what=f"what {request.data.source} gave")


def _take_in(
    request: Request, bring: Callable[[Path], object], *, what: str, in_place: UnpackSteps | None = None
) -> StoredVersion:
    steps, source = (request.data.steps(), request.data.source) if in_place is None else (in_place, what)
    if steps.decompress == "zstd":
        zstd_module(request.label)  # whoever lacks it learns it before hours of fetching
    with request.place.staging() as staging:
        raw, whole = staging / "raw" / request.file_name, staging / "whole"
        raw.parent.mkdir()
        (whole / DATA).mkdir(parents=True)
        bring(raw)
        with raw.open("rb+") as file:
            os.fsync(file.fileno())
        version = content_digest(raw)
        request.check_version(version, what, declared=in_place is None)
        archive = f"{request.label} ({source})"
        path = apply_steps(raw, whole / DATA, steps, archive=archive, limits=request.data.limits)
        manifest = Manifest(
            owner=request.place.owner,
            key=request.place.key,
            version=version,
            sources=(source,),
            steps=steps.names,
            content=content_digest(path) if steps else version,
            size=content_size(path),
            name=None if steps.unpack else path.name,
            license=request.data.license,
        )
        return request.place.publish(whole, manifest, steps)


def _fetch(request: Request, show_progress: bool, target: Path) -> None:
    try:
        with _progress(request.label, show_progress) as progress:
            request.data.fetch(target, progress)
    except DownloadError as error:
        raise DownloadError(f"{request.label}: {error.problem}", fix=request.hand_over()) from error
    except ModelGaugeError:
        raise
    except Exception as error:  # an author's code may raise anything; it becomes an error that names the data
        problem = f"{request.label} could not be fetched: {type(error).__name__}: {error}."
        raise DownloadError(problem, fix=request.hand_over()) from error
    if not target.is_file():
        raise DependencyError(
            f"{request.label}: `{type(request.data).__name__}.fetch` wrote no file to its target.",
            fix="Correct that method: it writes the raw bytes to the path that it is given.",
        )


@contextmanager
def _progress(title: str, wanted: bool) -> Iterator[Progress]:
    if not wanted or sys.stderr is None or not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    tqdm: Any = importlib.import_module("tqdm").tqdm  # lazily: most runs fetch nothing
    with tqdm(desc=title, unit="B", unit_scale=True, unit_divisor=1024) as bar:

        def report(done: int, total: int | None) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield report
