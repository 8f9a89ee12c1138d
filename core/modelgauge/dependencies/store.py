"""The store: gives tests the data that they declare, verified, and says exactly what is missing.

Safe for several processes at once. `layout` knows the folders, `request` how data gets there.
"""

import shlex
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from operator import attrgetter
from pathlib import Path
from threading import Lock

from modelgauge.dependencies.layout import DependencyVersions, StoredVersion, content_digest, read_versions
from modelgauge.dependencies.paths import DependencyPaths
from modelgauge.dependencies.request import Request, ResolvedDependency, take_copy, take_fetched
from modelgauge.dependencies.safety import is_sha256
from modelgauge.dependencies.sources import ExternalData
from modelgauge.dependencies.unpack import UnpackSteps, steps_for
from modelgauge.errors import (
    ChecksumError,
    DependencyError,
    DependencyMissingError,
    DownloadError,
    InputFileError,
    InvalidOptionError,
    UnknownNameError,
)
from modelgauge.files.regular import is_folder
from modelgauge.wording.did_you_mean import did_you_mean


class DependencyStore:
    """Gives tests the data that they declare.

    Args:
        directory: where fetched data is kept, usually `<data-dir>/dependencies`; made when needed.
        offline: never call `ExternalData.fetch`; use what is there, or say which file to put where.
        overrides: local files or folders to use instead of declared sources, by key or by `OWNER:KEY`. Their
            checksum is not enforced; they are decompressed and unpacked only as far as their first bytes show
            that they need it.
        pins: versions that the data must have, by key or by `OWNER:KEY`.
        progress: show a progress bar on stderr for each fetch, where that is a terminal.
        elsewhere: another folder like `directory`, searched too for files of a wanted version.

    Raises:
        InvalidOptionError: a pin is not a version.
    """

    def __init__(
        self,
        directory: Path,
        *,
        offline: bool = False,
        overrides: Mapping[str, Path] | None = None,
        pins: Mapping[str, str] | None = None,
        progress: bool = False,
        elsewhere: Path | None = None,
    ) -> None:
        self.elsewhere = elsewhere
        self.directory = Path(directory).absolute()
        self.offline = offline
        self._overrides = {name: Path(path).absolute() for name, path in (overrides or {}).items()}
        self._pins = {name: version.lower() for name, version in (pins or {}).items()}
        self._progress = progress
        self._locks: dict[tuple[str, str], Lock] = {}
        for name, version in self._pins.items():
            if not is_sha256(version):
                raise InvalidOptionError(
                    f"Dependency {name!r} is pinned to {version!r}, which is not a version.",
                    fix="Give the 64 hexadecimal digits that a run's record shows under dependency_versions.",
                )

    def resolve(self, owner_uid: str, key: str, data: ExternalData) -> ResolvedDependency:
        """Find or fetch one dependency, and verify it.

        Args:
            owner_uid: uid of the test that declares it.
            key: the test's name for it.
            data: the declaration.

        Raises:
            DependencyMissingError: it is not there, and must not or cannot be fetched.
            DownloadError: fetching failed.
            ChecksumError: it is not what was declared or pinned, or was changed since it was stored.
            UnsafeArchiveError: it cannot be unpacked safely.
            InputFileError: the user's override is not what it should be.
        """
        request = self._request(owner_uid, key, data)
        override = self._override(owner_uid, key)
        own = self._locks.setdefault((owner_uid, key), Lock())  # several runs may want it at once
        with own, _disk_errors(request):
            if override is not None:
                return _resolve_override(request, override)
            request.check_pin_against_declaration()
            local = data.local_path()
            return self._resolve_stored(request) if local is None else _resolve_in_place(request, local)

    def resolve_all(
        self, owner_uid: str, declared: Mapping[str, ExternalData]
    ) -> dict[str, ResolvedDependency]:
        """Resolve every dependency of a test; all are tried before one error lists what failed.

        Raises:
            DependencyError: the one error, or one that lists them all, of their common class.
            InputFileError: the one error, or all of them, about overrides.
        """
        resolved: dict[str, ResolvedDependency] = {}
        failures: list[DependencyError | InputFileError] = []
        for key, data in declared.items():
            try:
                resolved[key] = self.resolve(owner_uid, key, data)
            except (DependencyError, InputFileError) as error:
                failures.append(error)
        if failures:
            raise _joint_error(owner_uid, failures)
        return resolved

    def paths(self, owner_uid: str, declared: Mapping[str, ExternalData]) -> DependencyPaths:
        """Resolve the dependencies of a test. Those that it declares `when_used` are resolved when their path is read.

        A file that the user gives for one of these is checked at once.

        Raises:
            DependencyError, InputFileError: see `resolve_all`.
        """
        resolved = self.resolve_all(owner_uid, self.needed_first(owner_uid, declared))
        return DependencyPaths([*declared], resolved, lambda key: self.resolve(owner_uid, key, declared[key]))

    def needed_first(self, owner_uid: str, declared: Mapping[str, ExternalData]) -> dict[str, ExternalData]:
        """Return the dependencies that must be resolved before a test runs."""
        return {
            key: data
            for key, data in declared.items()
            if not getattr(data, "when_used", False) or self._override(owner_uid, key) is not None
        }

    def missing(self, owner_uid: str, declared: Mapping[str, ExternalData]) -> list[str]:
        """List the data missing on this machine: for each, where to get it and where to put it."""
        problems: list[object] = []
        for key, data in declared.items():
            request = self._request(owner_uid, key, data)
            override = self._override(owner_uid, key)
            with _disk_errors(request):
                problem = request.absence() if override is None else _override_problem(request, override)
                problems.append(problem)
        return [str(problem) for problem in problems if problem is not None]

    def add(self, owner_uid: str, key: str, data: ExternalData, file: Path) -> ResolvedDependency:
        """Put a copy of a user's file where the fetched file would be, as if it had been fetched.

        Args:
            owner_uid: uid of the test that declares it.
            key: the test's name for it.
            data: the declaration.
            file: the raw file, as the source would give it.

        Raises:
            InputFileError: it is not a file, or the data is read in place and never stored.
            ChecksumError: it is not what was declared or pinned.
            UnsafeArchiveError: it cannot be unpacked safely.
        """
        request = self._request(owner_uid, key, data)
        request.check_pin_against_declaration()
        override = f"`modelgauge run-test --dependency {shlex.quote(f'{key}={file}')}`"
        if (local := data.local_path()) is not None:
            raise InputFileError(
                f"{request.label} is read from {local} and never stored.", fix=f"Use {override}."
            )
        if not Path(file).is_file():
            fix = f"Give the file as {data.source} has it, or use {override}."
            raise InputFileError(f"{file} is not a file.", fix=fix)
        with _disk_errors(request):
            return request.verify(take_copy(request, Path(file)))

    def stored(self) -> list[StoredVersion]:
        """List all complete versions in the store, by owner, key and version. Their content is not verified."""
        keys = [key for owner in _subfolders(self.directory) for key in _subfolders(owner)]
        found = [version for key in keys for version in read_versions(key)]
        return sorted(found, key=attrgetter("manifest.owner", "manifest.key", "manifest.version", "path"))

    def check_names(self, declared: Mapping[str, Collection[str]]) -> None:
        """Refuse overrides and pins for data that no test of a command declares.

        Args:
            declared: for each test's uid, the keys of its dependencies.

        Raises:
            UnknownNameError: with the keys that there are.
        """
        known = sorted({key for keys in declared.values() for key in keys})
        qualified = {f"{owner}:{key}" for owner, keys in declared.items() for key in keys}
        for name in [*self._overrides, *self._pins]:
            if name in qualified or name in known:
                continue
            listing = f"Declared keys: {', '.join(known)}." if known else "No dependencies are declared."
            tests = " or ".join(map(repr, sorted(declared)))
            raise UnknownNameError(
                f"No dependency of {tests} is called {name!r}.", fix=did_you_mean(name, known) + listing
            )

    def _request(self, owner: str, key: str, data: ExternalData) -> Request:
        pin = self._pins.get(f"{owner}:{key}", self._pins.get(key))
        elsewhere = None if self.elsewhere is None else DependencyVersions(self.elsewhere, owner, key)
        return Request(DependencyVersions(self.directory, owner, key), data, pin, elsewhere)

    def _override(self, owner: str, key: str) -> Path | None:
        return self._overrides.get(f"{owner}:{key}", self._overrides.get(key))

    def _resolve_stored(self, request: Request) -> ResolvedDependency:
        stored: StoredVersion | None = None
        if request.drop.is_file():  # a user put it beside the versions, so it counts before what is stored
            with suppress(FileNotFoundError):  # another process has just taken it in
                stored = take_copy(request, request.drop)
                request.drop.unlink()
        stored = stored or request.find()
        if stored is None and self.offline and (absence := request.absence()) is not None:
            raise absence
        return request.verify(stored or take_fetched(request, show_progress=self._progress))


def _resolve_in_place(request: Request, local: Path) -> ResolvedDependency:
    if not local.exists():
        raise request.local_absence(local)
    version = content_digest(local)
    request.check_version(version, str(local))
    steps = request.data.steps()
    if local.is_dir() and steps:
        fix = f"Point {type(request.data).__name__} at the archive, or declare no decompress and no unpack."
        raise DependencyMissingError(f"{request.label} is a folder, not a file to unpack: {local}.", fix=fix)
    return _unpacked(request, local, version, steps)


def _resolve_override(request: Request, file: Path) -> ResolvedDependency:
    problem = _override_problem(request, file)
    if problem is not None:
        raise problem
    version = content_digest(file)
    request.check_version(version, str(file), declared=False)
    steps = UnpackSteps() if file.is_dir() else steps_for(file, request.data.steps())
    return _unpacked(request, file, version, steps)


def _unpacked(request: Request, local: Path, version: str, steps: UnpackSteps) -> ResolvedDependency:
    if not steps:
        return ResolvedDependency(request.place.key, local, version)
    stored = request.place.version(version, steps) or take_copy(request, local, in_place=steps)
    if stored.manifest.version != version:
        raise ChecksumError(
            f"{request.label}: {local} changed while it was read.", fix="Run the command again."
        )
    return request.verify(stored)


def _override_problem(request: Request, file: Path) -> InputFileError | None:
    if file.is_dir():
        try:
            local = request.data.local_path()
        except DependencyMissingError:  # the source cannot tell, and the override is there because it cannot
            return None
        if request.data.unpack is not None or (local is not None and not local.is_file()):
            return None
        return InputFileError(f"{request.label} is one file; {file} is a folder.", fix="Give the file.")
    if not file.is_file():
        return InputFileError(
            f"{request.label} is to be {file}, which is not there.", fix="Give a file that exists."
        )
    declared = request.data.steps()
    if declared.unpack is not None and steps_for(file, declared).unpack is None:
        fix = f"Give the {declared.unpack} archive, or the folder that it unpacks to."
        return InputFileError(
            f"{request.label} unpacks to a folder; {file} is neither an archive nor a folder.", fix=fix
        )
    return None


def _joint_error(
    owner: str, failures: list[DependencyError | InputFileError]
) -> DependencyError | InputFileError:
    if len(failures) == 1:
        return failures[0]
    kinds = {type(failure) for failure in failures}
    kind = kinds.pop() if len(kinds) == 1 else DependencyError
    listing = "".join(f"\n{number}. {failure}" for number, failure in enumerate(failures, 1))
    return kind(
        f"{len(failures)} dependencies of {owner!r} cannot be had:{listing}",
        fix="\nCorrect these and run it again.",
    )


@contextmanager
def _disk_errors(request: Request) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DownloadError(
            f"{request.label} cannot be read or written: {error}.",
            fix=f"Check the disk, and the rights on {request.place.folder}.",
        ) from error


def _subfolders(folder: Path) -> list[Path]:
    return sorted(child for child in folder.iterdir() if child.is_dir()) if is_folder(folder) else []
