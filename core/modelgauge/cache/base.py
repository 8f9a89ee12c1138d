"""What a cache of responses does, wherever it keeps them."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Protocol, TypeVar

from modelgauge.cache.keys import Entry
from modelgauge.data.base import Frozen

T = TypeVar("T")

_GROUP = 500  # what is read or written at once: what an interruption can lose


def in_groups(values: Iterable[T]) -> Iterator[list[T]]:
    """Keys or entries in groups, each of which is read or written at once."""
    left = iter(values)
    while group := list(islice(left, _GROUP)):
        yield group


class CacheCheck(Frozen):
    """The result of a check of all entries.

    Args:
        sound: entries that are as they were written.
        damaged: entries that were changed or broken; they are in the quarantine now.
        structure: what is wrong with the store itself; "ok" where nothing is.
        read_only: whether nothing can be written there, so that damaged entries stay where they are.
    """

    sound: int
    damaged: int
    structure: str = "ok"
    read_only: bool = False


class ResponseCache(Protocol):
    """A cache of responses: keys in, JSON texts out. It never evicts, never expires and never runs what it reads.

    Several processes may share it. A lease says that a process is asking a key, so that no other pays for it too.
    All methods raise `CacheError` where the store cannot be reached, read or written. Threads may share the object.

    Args:
        place: where the responses are, for messages; without a password.
        quarantine: where damaged entries go, for messages.
        damaged: how many damaged entries were found since it was opened.
    """

    damaged: int

    @property
    def place(self) -> str: ...
    @property
    def quarantine(self) -> str: ...

    # what the engine uses

    def get(self, digest: str) -> str | None:
        """Return the JSON text of a response; None if it is not stored."""

    def get_many(self, digests: Collection[str]) -> dict[str, str]:
        """Return the JSON texts of stored responses; damaged responses are quarantined, and count as missing."""
        ...

    def put_many(self, entries: Sequence[Entry]) -> None:
        """Store entries, all or none of them, and give their leases back."""

    def take(self, digests: Collection[str]) -> dict[str, str]:
        """Lease keys; returns those that are not ours to pay, each with a name of the process that asks it."""
        ...

    def give_back(self, digests: Collection[str]) -> None:
        """End leases: the answers are committed, or the calls failed."""

    def close(self) -> None:
        """Close what this thread has open."""

    def leave(self) -> None:
        """End all leases, and tell other processes that this process is done; once, after all threads have closed."""

    # what people use

    def __len__(self) -> int: ...

    @property
    def shared(self) -> bool:
        """Whether another live process has the cache open."""
        ...

    def volume(self) -> int:
        """Bytes that the responses take."""
        ...

    def quarantined(self) -> int:
        """How many damaged entries are kept for a person to look at."""
        ...

    def entries(self) -> Iterator[Entry]:
        """All sound entries."""
        ...

    def entries_at(self, digests: Collection[str]) -> dict[str, Entry]:
        """The entries of these keys that are there; as for `get_many`."""
        ...

    def verify(self) -> CacheCheck:
        """Read every entry, check it against its key and checksum, and quarantine what is damaged."""
        ...

    def forget(self, digests: Collection[str]) -> int:
        """Remove the entries of these keys, and return their number."""
        ...

    def clear(self) -> int:
        """Remove all entries; returns how many there were."""
        ...
