"""How much an archive may unpack to, and the one place that words a refusal.

Nothing here reads or writes: the readers and the destination report what they meet, and the guard says stop.
"""

from dataclasses import dataclass, fields

from modelgauge.errors import DefinitionError, UnsafeArchiveError

_GIB = 1 << 30
# Text of few distinct lines can shrink a thousandfold and harm nobody while it is small, so that the ratio is
# judged only beyond this many bytes.
_RATIO_GRACE_BYTES = 64 << 20
_FETCH_AGAIN = (
    "Fetch it again from its source; if that is what the source holds, ask its owner for a sound archive."
)


@dataclass(frozen=True, slots=True)
class UnpackLimits:
    """Bounds on what one declared file may turn into; beyond them it is refused, not cut off.

    Args:
        max_members: files and folders in the archive.
        max_member_bytes: unpacked size of the largest member, in bytes.
        max_bytes: size of all that comes out, the archive's own headers included, in bytes; also of a
            download.
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
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
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
        """The error to raise; `reason` continues "the archive …" or "its member NAME …"."""
        subject = (
            f"{self.archive}: the archive" if member is None else f"{self.archive}: member {_short(member)}"
        )
        return UnsafeArchiveError(f"{subject} {reason}.", fix=fix)

    def count_member(self, member: str) -> None:
        """One more file or folder was met."""
        self._members += 1
        if self._members > self.limits.max_members:
            raise self.over_limit("max_members", f"is number {self._members:,}", member=member)

    def check_member_bytes(self, size: int, member: str) -> None:
        """A member is, or claims to be, this large."""
        if size > self.limits.max_member_bytes:
            raise self.over_limit(
                "max_member_bytes", f"is larger than {self.limits.max_member_bytes:,} bytes", member=member
            )

    def count_bytes(self, size: int, *, consumed: int) -> None:
        """So many bytes more came out, after `consumed` packed bytes in all."""
        self._bytes += size
        if self._bytes > self.limits.max_bytes:
            raise self.over_limit("max_bytes", f"unpacks to more than {self.limits.max_bytes:,} bytes")
        if self._bytes > _RATIO_GRACE_BYTES and self._bytes > self.limits.max_ratio * max(consumed, 1):
            reason = (
                f"unpacks to more than {self.limits.max_ratio:g} times its size, as decompression bombs do"
            )
            raise self.over_limit("max_ratio", reason)

    def over_limit(self, limit: str, reason: str, *, member: str | None = None) -> UnsafeArchiveError:
        """The error to raise where `limit`, a field of `UnpackLimits`, is exceeded."""
        allowed = getattr(self.limits, limit)
        fix = (
            f"If the archive is to be trusted, declare it with limits=UnpackLimits({limit}=…), now {allowed}."
        )
        return self.refusal(reason, member=member, fix=fix)


def _short(member: str) -> str:
    return repr(member if len(member) <= 120 else f"{member[:100]}…({len(member):,} characters)")
