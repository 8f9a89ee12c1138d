"""The data that test authors declare: its source, checksum, unpacking, and how long a fetch may take.

The store decides where the file will be.
"""

import importlib
import importlib.resources
import shutil
import urllib.parse
from abc import ABC, abstractmethod
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, Literal, get_args

from modelgauge.dependencies.safety import (
    DownloadLimits,
    Progress,
    UnpackLimits,
    file_name,
    is_sha256,
    unsafe_part,
)
from modelgauge.dependencies.unpack import Archive, Compression, UnpackSteps
from modelgauge.errors import DefinitionError, DependencyMissingError
from modelgauge.wording.did_you_mean import did_you_mean

_PLAIN = (str, int, float, Path)
_ALIASES = {"gz": "gzip", "zst": "zstd", "zstandard": "zstd", "tgz": "tar", "tar.gz": "tar", "targz": "tar"}


class ExternalData(ABC):
    """One file (or, unpacked, one folder) that a test needs and that does not come with its code.

    Subclass it for a source of your own: implement `fetch`, and pass what you know on to `super().__init__`.
    The store does the rest: it calls `fetch` once, verifies, unpacks, keeps and versions the result.

    Args:
        sha256: of the raw bytes as fetched, before any decompression; 64 hexadecimal digits.
        decompress: how the raw file is compressed; before Python 3.14, zstd needs an extra:
            `pip install "modelgauge-framework[zstd]"`.
        unpack: what kind of archive it is, once decompressed; a compressed tar needs no `decompress`.
        limits: bounds on the unpacked data.
        license: the license under which the data may be passed on, such as "MIT" (an SPDX identifier).
            `bundle --with-data` includes only data with a license.
        when_used: fetch the data when `make_test_items` first reads its path, not before the run. Use it for data
            that only some variants of a test need.

    Raises:
        DefinitionError: an argument is not valid.
    """

    sha256: str | None = None
    decompress: Compression | None = None
    unpack: Archive | None = None
    limits: UnpackLimits = UnpackLimits()
    license: str | None = None
    when_used: bool = False

    def __init__(
        self,
        *,
        sha256: str | None = None,
        decompress: Literal["gzip", "zstd"] | None = None,
        unpack: Literal["tar", "zip"] | None = None,
        limits: UnpackLimits | None = None,
        license: str | None = None,  # noqa: A002  the name of the field everywhere
        when_used: bool = False,
    ) -> None:
        self.sha256 = sha256.lower() if isinstance(sha256, str) else sha256
        self.decompress = decompress
        self.unpack = unpack
        self.limits = limits or UnpackLimits()
        if license is not None:
            self.license = license
        if when_used:
            self.when_used = True
        self.validate()

    @abstractmethod
    def fetch(self, target: Path, progress: Progress) -> None:
        """Write the raw bytes to `target`; called only when they are needed.

        Args:
            target: a file that does not exist yet, in an empty folder that does.
            progress: may be called as bytes come: `progress(so_far, in_all_or_None)`.

        Raises:
            Exception: any failure; the store reports it with the names of the test and the dependency.
        """

    @property
    def source(self) -> str:
        """The origin of the data in one line, which is shown and recorded, and separates sources in the store.

        By default the class and its plain arguments; override it where one of these is a secret.
        """
        return repr(self)

    @property
    def file_name(self) -> str:
        """The name of the raw file in the store; compressed files end in `.gz` or `.zst`."""
        return "data"

    def local_path(self) -> Path | None:
        """Return the path of raw data that is on this machine already, to be read in place; None if it must be
        fetched.
        """
        return None

    def steps(self) -> UnpackSteps:
        """Return the steps that unpack the raw file."""
        return UnpackSteps(self.decompress, self.unpack)

    def validate(self) -> None:
        """Check the arguments, also where a class sets them as attributes and never calls `__init__`.

        Raises:
            DefinitionError: an argument is not valid.
        """
        if self.sha256 is not None and not (isinstance(self.sha256, str) and is_sha256(self.sha256)):
            raise DefinitionError(
                f"{type(self).__name__}(sha256={self.sha256!r}) is not a SHA-256 checksum.",
                fix="Give the 64 hexadecimal digits that `sha256sum FILE` prints.",
            )
        for argument, kind in (("decompress", Compression), ("unpack", Archive)):
            value, choices = getattr(self, argument), get_args(kind)
            if value is not None and value not in choices:
                wanted = str(value).lower().lstrip(".")
                hint = did_you_mean(_ALIASES.get(wanted, wanted), choices)
                fix = f"{hint}Use {' or '.join(map(repr, choices))}, or leave it out."
                raise DefinitionError(f"{type(self).__name__}({argument}={value!r}) is not known.", fix=fix)

    def __repr__(self) -> str:
        # Plain values only: a client object's address would make every process see another source.
        plain = {
            name: value
            for name, value in vars(self).items()
            if isinstance(value, _PLAIN) and name not in ("license", "when_used")
        }
        arguments = ", ".join(f"{name}={value!r}" for name, value in plain.items())
        return f"{type(self).__name__}({arguments})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash((type(self), repr(self)))


class WebData(ExternalData):
    """A file on a web server.

    Args:
        url: http or https, without user name or password.
        sha256: of the bytes as the server sends them. Without it, the first fetched file is used from then on.
        decompress: how the file is compressed.
        unpack: what kind of archive it is.
        limits: bounds on the unpacked data; `max_bytes` bounds the download too.
        download_limits: time-outs and retries.
        license: see `ExternalData`.
        when_used: see `ExternalData`.

    Raises:
        DefinitionError: the URL or another argument is not valid.
    """

    def __init__(
        self,
        url: str,
        sha256: str | None = None,
        decompress: Literal["gzip", "zstd"] | None = None,
        unpack: Literal["tar", "zip"] | None = None,
        *,
        limits: UnpackLimits | None = None,
        download_limits: DownloadLimits | None = None,
        license: str | None = None,  # noqa: A002  as above
        when_used: bool = False,
    ) -> None:
        super().__init__(
            sha256=sha256,
            decompress=decompress,
            unpack=unpack,
            limits=limits,
            license=license,
            when_used=when_used,
        )
        self.url = _checked_url(url)
        self.download_limits = download_limits or DownloadLimits()

    @property
    def source(self) -> str:
        return self.url

    @property
    def file_name(self) -> str:
        return file_name(PurePosixPath(urllib.parse.unquote(urllib.parse.urlsplit(self.url).path)).name)

    def fetch(self, target: Path, progress: Progress) -> None:
        # Imported here: the HTTP stack takes longer to import than all the rest, and most runs fetch nothing.
        download = importlib.import_module("modelgauge.dependencies.download").download
        download(
            self.url, target, max_bytes=self.limits.max_bytes, progress=progress, limits=self.download_limits
        )


class _InPlace(ExternalData):
    """Data that is on this machine already, and read where it lies."""

    path: Any  # a Path, or a text inside a package

    @property
    def file_name(self) -> str:
        return file_name(PurePath(self.path).name)

    @abstractmethod
    def local_path(self) -> Path: ...

    def fetch(self, target: Path, progress: Progress) -> None:  # noqa: ARG002 - a copy is done at once
        shutil.copyfile(self.local_path(), target)


class LocalData(_InPlace):
    """A file or a folder on this machine, read in place.

    Args:
        path: a relative path starts at the working directory; `Path(__file__).parent` is safer.
        sha256: of the file; of a folder, its digest as a run records it.
        decompress: how the file is compressed.
        unpack: what kind of archive it is.
        limits: bounds on the unpacked data.
        when_used: see `ExternalData`.

    Raises:
        DefinitionError: `path` is no path.
    """

    def __init__(
        self,
        path: str | Path,
        sha256: str | None = None,
        decompress: Literal["gzip", "zstd"] | None = None,
        unpack: Literal["tar", "zip"] | None = None,
        *,
        limits: UnpackLimits | None = None,
        when_used: bool = False,
    ) -> None:
        super().__init__(
            sha256=sha256, decompress=decompress, unpack=unpack, limits=limits, when_used=when_used
        )
        if not isinstance(path, str | Path):
            raise DefinitionError(f"LocalData(path={path!r}) is no path.", fix="Give a str or a Path.")
        self.path = Path(path)

    @property
    def source(self) -> str:
        return str(self.path.absolute())

    def local_path(self) -> Path:
        return Path(self.path).absolute()


class PackageData(_InPlace):
    """A file or a folder in an installed package, read in place.

    Args:
        package: import name of the package, such as `my_plugin.data`.
        path: inside the package, with `/`.
        sha256: of the file; of a folder, its digest as a run records it.
        decompress: how the file is compressed.
        unpack: what kind of archive it is.
        limits: bounds on the unpacked data.
        when_used: see `ExternalData`.

    Raises:
        DefinitionError: the path leaves the package.
    """

    def __init__(
        self,
        package: str,
        path: str,
        sha256: str | None = None,
        decompress: Literal["gzip", "zstd"] | None = None,
        unpack: Literal["tar", "zip"] | None = None,
        *,
        limits: UnpackLimits | None = None,
        when_used: bool = False,
    ) -> None:
        super().__init__(
            sha256=sha256, decompress=decompress, unpack=unpack, limits=limits, when_used=when_used
        )
        parts = path.split("/") if isinstance(path, str) else [""]
        if "" in parts or "\\" in path or any(map(unsafe_part, parts)):
            raise DefinitionError(
                f"PackageData(path={path!r}) is not a path inside a package.",
                fix="Give it relative to the package, with forward slashes: 'data/questions.jsonl'.",
            )
        self.package = package
        self.path = path

    @property
    def source(self) -> str:
        return f"package {self.package}: {self.path}"

    def local_path(self) -> Path:
        try:
            found = importlib.resources.files(self.package).joinpath(*self.path.split("/"))
        except ModuleNotFoundError as error:
            raise DependencyMissingError(
                f"{self.source!r} cannot be read: {error}.",
                fix=f"Install the distribution that holds {self.package!r}.",
            ) from error
        if not isinstance(found, Path):
            raise DependencyMissingError(
                f"{self.source!r} cannot be read: the package is inside an archive.",
                fix=f"Install the distribution that holds {self.package!r} unpacked, as pip does.",
            )
        return found


def _checked_url(url: str) -> str:
    fix = "Give an http:// or https:// address; for a file on this machine use LocalData(path)."
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname, parts.port
    except (ValueError, AttributeError, TypeError) as error:
        raise DefinitionError(f"WebData(url={url!r}) is not a web address ({error}).", fix=fix) from error
    if parts.scheme not in {"http", "https"} or not host or port == 0:
        raise DefinitionError(f"WebData(url={url!r}) is not a web address.", fix=fix)
    if not url.isascii() or not url.isprintable() or " " in url:
        raise DefinitionError(
            f"WebData(url={url!r}) holds characters that a web address cannot hold.",
            fix="Percent-encode them, as urllib.parse.quote does.",
        )
    if parts.username is not None:
        raise DefinitionError(
            f"WebData(url=…) for {host!r} holds a user name or password, which would be shown and recorded.",
            fix="Subclass ExternalData and read the secret in `fetch`.",
        )
    return url
