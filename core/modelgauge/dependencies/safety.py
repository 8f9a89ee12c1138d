"""Safety of foreign data: names that are safe on every system, limits of a download and of what an archive may unpack
to, and the folder that is written.

The rules for names are Windows's, macOS's and Linux's together, so that an archive unpacks alike everywhere or nowhere.
Only new plain files and folders are ever made here, by exclusive creation: no links, no modes, no overwriting.
"""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeAlias

from modelgauge.errors import DefinitionError, UnsafeArchiveError

# https://learn.microsoft.com/windows/win32/fileio/naming-a-file: devices, with any extension.
_DEVICE = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])\s*(\..*)?", re.IGNORECASE | re.DOTALL
)
_PLAIN_FOLDER = re.compile(r"[a-z0-9_][a-z0-9_.-]{0,62}[a-z0-9_]|[a-z0-9_]")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MAX_PART_BYTES = 255
_MAX_PATH_CHARS = 1024
_MAX_DEPTH = 64
_UNSAFE: tuple[tuple[Callable[[str], object], str], ...] = (
    ("..".__eq__, "climbs out of its folder with '..'"),
    (
        lambda part: any(unicodedata.category(char) in {"Cc", "Cs"} for char in part),
        "has a control character or broken Unicode (not UTF-8) in its name",
    ),
    (lambda part: ":" in part, "has a colon in its name, which Windows reads as a drive or a stream"),
    (lambda part: part.endswith((".", " ")), "has a name that ends in a dot or a space, which Windows drops"),
    (_DEVICE.fullmatch, "has a name that Windows reserves for a device"),
    (
        lambda part: len(part.encode("utf-8")) > _MAX_PART_BYTES,
        f"has a name of more than {_MAX_PART_BYTES} bytes",
    ),
)


def member_parts(name: str) -> tuple[str, ...]:
    """Split an archive member's name into safe path components; `.` components and a final slash are
    dropped.

    Raises:
        ValueError: the name could leave its folder, or means something else on some system; the message is a
            predicate ("is an absolute path").
    """
    if len(name) > _MAX_PATH_CHARS:
        raise ValueError(f"has a path of more than {_MAX_PATH_CHARS:,} characters")
    if "\\" in name:
        raise ValueError("has a backslash in its name")
    if name.startswith("/"):
        raise ValueError("is an absolute path")
    parts = tuple(part for part in name.split("/") if part not in {"", "."})
    if len(parts) > _MAX_DEPTH:
        raise ValueError(f"lies more than {_MAX_DEPTH} folders deep")
    for part in parts:
        reason = unsafe_part(part)
        if reason:
            raise ValueError(reason)
    return parts


def unsafe_part(part: str) -> str | None:
    """Return why a path component is unsafe, as a predicate for a message; None if it is safe."""
    return next((reason for is_unsafe, reason in _UNSAFE if is_unsafe(part)), None)


def fold(name: str) -> str:
    """Fold a name to the form that it shares with all names that some file system takes for the same (canonical
    caseless matching, Unicode 3.13 D145)."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())


def folder_name(uid: str) -> str:
    """Return a folder name for a uid or a dependency key: readable, safe on every system, and unique.

    Short lower-case names stand for themselves; any other becomes a readable stem, `~` and a hash of the
    exact name. No plain name contains `~`, and case never tells two apart, so they cannot collide on Windows
    or macOS either.
    """
    if _PLAIN_FOLDER.fullmatch(uid) and not _DEVICE.fullmatch(uid):
        return uid
    stem = re.sub(r"[^a-z0-9_]+", "-", uid.lower()).strip("-")[:40]
    digest = hashlib.sha256(uid.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{stem}~{digest}"


def file_name(name: str) -> str:
    """Return the closest safe file name to the last part of a URL or a path; `data` if nothing of it is safe."""
    kept = re.sub(r"[^\w.+=@-]+", "_", name).strip(".")[-100:].lstrip(".")
    return kept if kept and unsafe_part(kept) is None else "data"


def is_sha256(text: str) -> bool:
    """Return whether a text has the form of a version: 64 hexadecimal digits in lower case."""
    return _SHA256.fullmatch(text) is not None


# --- downloads -------------------------------------------------------------------------------------------------------

Progress: TypeAlias = Callable[[int, int | None], None]
"""Called as a fetch goes on, with the bytes so far and the bytes in all (None while unknown)."""


@dataclass(frozen=True, slots=True)
class DownloadLimits:
    """Time limits for a download.

    Args:
        timeout: seconds to connect, seconds until all headers are there, and seconds without a single byte.
        stall_seconds: a window of time, in seconds, in which at least `stall_bytes` must come.
        stall_bytes: see `stall_seconds`.
        tries: attempts in all; only failures that can pass are tried again.
        backoff: seconds before the second try, doubled before each further try; may be 0.

    Raises:
        DefinitionError: a value is negative, or is 0 where 0 is not allowed.
    """

    timeout: float = 30.0
    stall_seconds: float = 60.0
    stall_bytes: int = 1 << 14
    tries: int = 3
    backoff: float = 1.0

    def __post_init__(self) -> None:
        at_least = {"timeout": 1e-3, "stall_seconds": 1e-3, "stall_bytes": 0, "tries": 1, "backoff": 0}
        for name, least in at_least.items():
            value = getattr(self, name)
            if not _is_number(value) or not value >= least:
                what = "too small" if _is_number(value) else "no number"
                fix = f"Give at least {least:g}."
                raise DefinitionError(f"DownloadLimits({name}={value!r}) is {what}.", fix=fix)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# --- archives ---------------------------------------------------------------------------------------------------------

_GIB = 1 << 30
# Text of few distinct lines can shrink a thousandfold and harm nobody while it is small, so that the ratio is
# judged only beyond this many bytes.
_RATIO_GRACE_BYTES = 64 << 20
_FETCH_AGAIN = (
    "Fetch it again from its source; if that is what the source holds, ask its owner for a sound archive."
)


@dataclass(frozen=True, slots=True)
class UnpackLimits:
    """Bounds on the unpacked form of one declared file; a file beyond them is refused, not truncated.

    Args:
        max_members: files and folders in the archive.
        max_member_bytes: unpacked size of the largest member, in bytes.
        max_bytes: unpacked size in all, the archive's own headers included, in bytes; also the size of a download.
        max_ratio: unpacked bytes for each packed byte; judged beyond the first 64 MiB.

    Raises:
        DefinitionError: a limit is not positive.
    """

    max_members: int = 50_000
    max_member_bytes: int = 8 * _GIB
    max_bytes: int = 16 * _GIB
    max_ratio: float = 200

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not _is_number(value) or not value > 0:
                raise DefinitionError(
                    f"UnpackLimits({field.name}={value!r}) is not a positive number.",
                    fix=f"Give a number above 0, or leave {field.name} out for {field.default!r}.",
                )


class Guard:
    """Counts what comes out of one archive and words why it is refused.

    Args:
        archive: the name that the reader of an error knows it by: its source and file.
        limits: the bounds that the data's author declared.
    """

    def __init__(self, archive: str, limits: UnpackLimits) -> None:
        self.archive = archive
        self.limits = limits
        self._members = 0
        self._bytes = 0

    def refusal(
        self, reason: str, *, member: str | None = None, fix: str = _FETCH_AGAIN
    ) -> UnsafeArchiveError:
        """Return the error to raise; `reason` continues "the archive …" or "its member NAME …"."""
        subject = "the archive"
        if member is not None:
            shown = member if len(member) <= 120 else f"{member[:100]}…({len(member):,} characters)"
            subject = f"member {shown!r}"
        return UnsafeArchiveError(f"{self.archive}: {subject} {reason}.", fix=fix)

    def count_member(self, member: str) -> None:
        """Count one more file or folder."""
        self._members += 1
        if self._members > self.limits.max_members:
            raise self.over_limit("max_members", f"is number {self._members:,}", member=member)

    def check_member_bytes(self, size: int, member: str) -> None:
        """Check the size of a member, real or declared."""
        if size > self.limits.max_member_bytes:
            raise self.over_limit(
                "max_member_bytes", f"is larger than {self.limits.max_member_bytes:,} bytes", member=member
            )

    def count_bytes(self, size: int, *, consumed: int) -> None:
        """Count unpacked bytes against the limits, after `consumed` packed bytes in all."""
        self._bytes += size
        if self._bytes > self.limits.max_bytes:
            raise self.over_limit("max_bytes", f"unpacks to more than {self.limits.max_bytes:,} bytes")
        if self._bytes > _RATIO_GRACE_BYTES and self._bytes > self.limits.max_ratio * max(consumed, 1):
            reason = (
                f"unpacks to more than {self.limits.max_ratio:g} times its size, as decompression bombs do"
            )
            raise self.over_limit("max_ratio", reason)

    def over_limit(self, limit: str, reason: str, *, member: str | None = None) -> UnsafeArchiveError:
        """Return the error to raise if `limit`, a field of `UnpackLimits`, is exceeded."""
        allowed = getattr(self.limits, limit)
        fix = (
            f"If the archive is to be trusted, declare it with limits=UnpackLimits({limit}=…), now {allowed}."
        )
        return self.refusal(reason, member=member, fix=fix)


class Destination:
    """Writes members under `folder`, which must be new and empty.

    Args:
        folder: where members go; nothing is written outside.
        guard: counts and refuses.
    """

    def __init__(self, folder: Path, guard: Guard) -> None:
        self.folder = folder
        self.guard = guard
        # By the folded path: the path, and whether it is a folder.
        self._claimed: dict[tuple[str, ...], tuple[tuple[str, ...], bool]] = {}

    def add_folder(self, name: str) -> None:
        """Make a folder; a folder that is there already under the same spelling stays.

        Raises:
            UnsafeArchiveError: the name is unsafe or taken, or there are too many members.
        """
        parts = self._parts(name)
        if not self._claim_folders(parts, name):
            self.guard.count_member(name)  # so that one folder repeated without end meets the limit too
        self.folder.joinpath(*parts).mkdir(parents=True, exist_ok=True)

    def add_file(self, name: str, pieces: Iterable[bytes]) -> None:
        """Write a file from pieces that are counted as they come.

        Raises:
            UnsafeArchiveError: the name is unsafe or taken, or the content exceeds a limit.
            OSError: the disk fails.
        """
        parts = self._parts(name)
        if not parts:
            raise self.guard.refusal("is a file without a name", member=name)
        self._claim_folders(parts[:-1], name)
        self._claim(parts, name, is_folder=False)
        path = self.folder.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        written = 0
        with path.open("xb") as file:
            for piece in pieces:
                written += len(piece)
                self.guard.check_member_bytes(written, name)
                file.write(piece)

    def _parts(self, name: str) -> tuple[str, ...]:
        try:
            return member_parts(name)
        except ValueError as error:
            raise self.guard.refusal(str(error), member=name) from None

    def _claim_folders(self, parts: tuple[str, ...], name: str) -> bool:
        """Claim a folder and those above it; return whether any of them is new."""
        fresh = [self._claim(parts[:depth], name, is_folder=True) for depth in range(1, len(parts) + 1)]
        return any(fresh)

    def _claim(self, parts: tuple[str, ...], name: str, *, is_folder: bool) -> bool:
        key = tuple(map(fold, parts))
        if key not in self._claimed:
            self.guard.count_member(name)  # folders that only a longer name implies count too
            self._claimed[key] = (parts, is_folder)
            return True
        if is_folder and self._claimed[key] == (parts, True):
            return False
        other = "/".join(self._claimed[key][0])
        reason = f"takes the place of {other!r} (on systems where case or the form of accents does not count)"
        raise self.guard.refusal(reason, member=name)
