"""Names that are safe on every system: members of archives, and folders named after uids; how a version is written.

The rules are Windows's, macOS's and Linux's together, so that an archive unpacks alike everywhere or nowhere.
"""

import hashlib
import re
import unicodedata
from collections.abc import Callable

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
    """Splits an archive member's name into safe path components; `.` components and a final slash are
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
    """Why one path component is unsafe, as a predicate; None when it is safe."""
    return next((reason for is_unsafe, reason in _UNSAFE if is_unsafe(part)), None)


def fold(name: str) -> str:
    """One form for all names that some file system takes for the same (canonical caseless matching, Unicode
    3.13 D145)."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())


def folder_name(uid: str) -> str:
    """A folder name for a uid or a dependency key: readable, safe on every system, different for different
    uids.

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
    """The nearest safe file name, for the last part of a URL or a path; `data` when nothing of it is safe."""
    kept = re.sub(r"[^\w.+=@-]+", "_", name).strip(".")[-100:].lstrip(".")
    return kept if kept and unsafe_part(kept) is None else "data"


def is_sha256(text: str) -> bool:
    """Whether it is written as a version is: 64 hexadecimal digits in lower case."""
    return _SHA256.fullmatch(text) is not None
