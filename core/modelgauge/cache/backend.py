"""Interface of stores for responses: a folder, a server or a service. `responses.py` turns one into a cache.

A plugin for a store subclasses `CacheBackend`, and announces the class as an entry point of the group
`modelgauge.caches`, under the scheme of its URLs:

    [project.entry-points."modelgauge.caches"]
    postgresql = "my_plugin.cache:PostgresCache"
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias, TypeVar

from modelgauge.errors import CacheError
from modelgauge.wording.visible import without_password

T = TypeVar("T")

Work: TypeAlias = Literal["open", "read", "write", "lease"]
"""The kinds of work that a store can fail at, for messages."""

LARGEST = 2**26  # bytes of a value: what is larger is not written, and was not written here
_GROUP = 500  # what is read or written at once: what an interruption can lose


def in_groups(values: Iterable[T]) -> Iterator[list[T]]:
    """Yield keys or entries in groups, each of which is read or written at once."""
    left = iter(values)
    while group := list(islice(left, _GROUP)):
        yield group


@dataclass(frozen=True)
class CacheStats:
    """The size of a cache, and who uses it.

    Args:
        entries: the number of values.
        bytes: the room that they take.
        quarantined: the number of damaged values that are kept for a person to look at.
        shared: whether another live process has the cache open.
    """

    entries: int
    bytes: int
    quarantined: int
    shared: bool


class CacheBackend(ABC):
    """A store of values under keys, and of leases: which process is paying for which key.

    `ResponseCache` does the rest: it packs responses so that they prove their keys, refuses what is damaged, connects
    again, and remembers its leases. It calls the methods one at a time, from any thread, and only after `connect`. They
    raise what their client raises. Keys are 64 hexadecimal digits, and values are bytes, which a store keeps unread.

    Args:
        url: where the store is, with what the client needs to reach it.

    Attributes:
        url: as it was given.
        place: the URL without its password, for messages.
        quarantine: the place where damaged values go, for messages; each class says it.
        errors: the exceptions that the client raises; by default `OSError`.
        lease_seconds: how long a lease lasts, in a store that cannot tell whether a process lives: the cache renews its
            leases before. None, the default, if leases end with the connection of their process, however it ends.
        is_thread_safe: whether several threads may call methods at once; by default they may not.
        is_read_only: whether nothing can be written, so that damaged values stay where they are.
        folder: the folder that holds the store; None, the default, if it is not on a disk of this machine.
    """

    quarantine: str
    errors: ClassVar[tuple[type[Exception], ...]] = (OSError,)
    lease_seconds: ClassVar[float | None] = None
    is_thread_safe: ClassVar[bool] = False
    is_read_only: ClassVar[bool] = False
    folder: Path | None = None

    def __init__(self, url: str) -> None:
        self.url, self.place = url, without_password(url)

    @property
    def damaged(self) -> int:
        """The number of times that the store was found damaged since it was opened."""
        return 0

    # --- the connection -------------------------------------------------------------------------------------

    @abstractmethod
    def connect(self) -> None:
        """Connect, or connect again, and make what is missing in the store, such as tables.

        Raises:
            CacheError: the store was written by a later version, or can lose what it is given.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the connection, if there is one; raise nothing."""

    def close_thread(self) -> None:  # noqa: B027  most stores have nothing to do here
        """Close what the calling thread has open. By default, all threads share one connection."""

    def is_lost(self, error: Exception) -> bool:
        """Return whether an error means that the server is gone or restarts, so that it is worth connecting again."""
        del error
        return False

    def explain(self, error: Exception, work: Work) -> CacheError:
        """Return the error that users see when the store fails.

        Args:
            error: one of `errors`.
            work: what the store was asked to do; "open" also if its connection was lost for good.
        """
        what, fix = (
            ("cannot be reached", "Start its server or correct --cache")
            if work == "open"
            else ("refuses", "Correct that at its server")
        )
        why = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        return CacheError(
            f"The cache {self.place} {what}: {why}.",
            fix=f"{fix}; then run `modelgauge resume` or the same command again: what was committed is kept.",
        )

    # --- values ---------------------------------------------------------------------------------------------

    @abstractmethod
    def get_many(self, digests: Sequence[str]) -> Mapping[str, bytes]:
        """Return the values of the keys that are there."""

    @abstractmethod
    def put_many(self, values: Mapping[str, bytes]) -> None:
        """Store values, replacing old ones; all or none of them, if the store can do that.

        They must be durable when this returns: they are paid for.
        """

    @abstractmethod
    def page(self, after: str) -> tuple[Mapping[str, bytes], str | None]:
        """Return some of all values, and where the next page begins.

        Args:
            after: `""` for the first page, then what the page before returned; the last page returns None.
        """

    @abstractmethod
    def remove(self, digests: Sequence[str]) -> int:
        """Remove the values of these keys, and return how many there were."""

    def clear(self) -> int:
        """Remove all values, and return how many there were."""
        removed = 0
        while digests := list(self.page("")[0]):
            removed += self.remove(digests)
        return removed

    @abstractmethod
    def set_aside(self, digest: str, value: bytes, why: str) -> bool:
        """Move a damaged value into the quarantine; return False if it was replaced or removed meanwhile."""

    @abstractmethod
    def stats(self) -> CacheStats:
        """Return the size of the store, and whether others use it."""

    def check(self) -> tuple[str, int]:
        """Check the store itself, and mend it.

        Returns:
            What is wrong, "ok" if nothing is; and the number of damaged values found that have no key of ours.
        """
        return "ok", 0

    # --- leases ---------------------------------------------------------------------------------------------

    @abstractmethod
    def lease(self, digests: Sequence[str]) -> Mapping[str, str]:
        """Lease keys to this process. Only one process at a time can hold the lease of a key.

        It is called for keys that this process does not hold. With `lease_seconds` it is also called for keys that it
        holds, to renew their leases.

        Returns:
            The keys that other processes hold, each with a name of the process.
        """

    @abstractmethod
    def release(self, digests: Sequence[str]) -> None:
        """End leases of this process, so that others can take the keys."""
