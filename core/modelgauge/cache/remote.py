"""A cache of responses on a server, which processes on several machines share.

A plugin for a store subclasses `RemoteCache`, and announces the class as an entry point of the group
`modelgauge.caches`, under the scheme of its URLs:

    [project.entry-points."modelgauge.caches"]
    postgresql = "my_plugin.cache:PostgresCache"
"""

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from time import monotonic, sleep
from typing import ClassVar, TypeVar

from modelgauge.cache.base import CacheCheck, in_groups
from modelgauge.cache.database import LARGEST
from modelgauge.cache.keys import DamagedEntryError, Entry, pack, unpack, was_redacted
from modelgauge.errors import CacheError
from modelgauge.wording.visible import without_password

log = logging.getLogger(__name__)
T = TypeVar("T")

_PATIENCE = 30.0  # seconds for a server that is gone, a restart say
_PAUSES = (0.05, 0.1, 0.25, 0.5, 1.0)


class RemoteCache(ABC):
    """A `ResponseCache` on a server. Subclasses define how to read and write the store.

    The methods that subclasses implement are called one at a time, from any thread, and only after `connect`. They
    raise what their client raises. A store keeps bytes unread.

    Args:
        url: where the store is, with what the client needs to reach it.

    Raises:
        CacheError: the store cannot be reached, or does not keep what it is given.
    """

    errors: ClassVar[tuple[type[Exception], ...]]
    """What the client raises."""

    def __init__(self, url: str) -> None:
        self.url, self.place = url, without_password(url)
        self.damaged = 0
        self._turn = threading.RLock()
        self._mine: set[str] = set()
        try:
            self.connect()
            self._connected = True
        except CacheError:
            self.disconnect()
            raise
        except self.errors as error:
            self.disconnect()
            raise self._unreachable(error) from error

    # --- what a store says ----------------------------------------------------------------------------------

    @property
    @abstractmethod
    def quarantine(self) -> str:
        """Where damaged entries go, for messages."""

    @abstractmethod
    def connect(self) -> None:
        """Connect or reconnect, and make what is missing in the store, such as tables.

        Raises:
            CacheError: the store was written by a later version, or does not keep what it is given.
        """

    @abstractmethod
    def disconnect(self) -> None:
        """Close the connection, if there is one; raises nothing."""

    @abstractmethod
    def is_lost(self, error: Exception) -> bool:
        """Whether an error means that the server is gone or restarts, so that another attempt makes sense."""

    @abstractmethod
    def read(self, digests: Sequence[str]) -> Mapping[str, bytes]:
        """The values of the keys that are there."""

    @abstractmethod
    def write(self, values: Mapping[str, bytes], leases: Sequence[str]) -> None:
        """Store values durably, all or none, and then give leases of this process back; old values are replaced."""

    @abstractmethod
    def lease(self, digests: Sequence[str]) -> Collection[str]:
        """Lease keys to this process until it gives them back or ends; returns those that it holds now."""

    @abstractmethod
    def release(self, digests: Sequence[str]) -> None:
        """Give leases of this process back."""

    @abstractmethod
    def holders(self, digests: Sequence[str]) -> Mapping[str, str]:
        """Return the known names of the processes that hold leases."""

    @abstractmethod
    def page(self, after: str) -> tuple[Mapping[str, bytes], str | None]:
        """Some values, and where the next page begins: the first page is after `""`, the last page ends with None."""

    @abstractmethod
    def set_aside(self, digest: str, value: bytes, why: str) -> None:
        """Move a value into the quarantine, unless it was replaced meanwhile."""

    @abstractmethod
    def remove_all(self) -> int:
        """Remove all values; returns how many there were."""

    def remove(self, digests: Sequence[str]) -> int:
        """Remove the values of these keys; returns how many there were. Optional, for `modelgauge cache forget`."""
        del digests
        raise CacheError(
            f"The cache {self.place} cannot remove single responses: its plugin has no `remove`.",
            fix=f"Define {type(self).__name__}.remove, or clear the whole cache.",
        )

    @abstractmethod
    def count(self) -> int:
        """How many values there are."""

    @abstractmethod
    def bytes_of_all(self) -> int:
        """How much room all values take."""

    @abstractmethod
    def count_set_aside(self) -> int:
        """How many values are in the quarantine."""

    @abstractmethod
    def has_other_users(self) -> bool:
        """Whether other processes have the cache open."""

    # --- what the engine uses ---------------------------------------------------------------------------------

    def get(self, digest: str) -> str | None:
        """Return the JSON text of a response; None if it is not stored."""
        return self.get_many([digest]).get(digest)

    def get_many(self, digests: Collection[str]) -> dict[str, str]:
        """Return the JSON texts of stored responses; damaged responses are quarantined, and count as missing."""
        return {digest: entry.response for digest, entry in self.entries_at(digests).items()}

    def entries_at(self, digests: Collection[str]) -> dict[str, Entry]:
        """Return the stored entries of these keys; damaged entries are quarantined, and count as missing."""
        found = {}
        for group in in_groups(digests):
            for entry in self._sound_entries(self._do(partial(self.read, group))):
                found[entry.key.digest] = entry
        return found

    def put_many(self, entries: Sequence[Entry]) -> None:
        """Store entries, all or none of them, and give their leases back."""
        values = {}
        for entry in entries:
            packed = pack(entry).encode("utf-8")
            if len(packed) > LARGEST:
                log.warning("A response of more than %d MB is not kept in the cache.", LARGEST // 2**20)
            else:
                values[entry.key.digest] = packed
        with self._turn:
            held = [entry.key.digest for entry in entries if entry.key.digest in self._mine]
            self._do(lambda: self.write(values, held))
            self._mine.difference_update(held)

    def take(self, digests: Collection[str]) -> dict[str, str]:
        """Lease keys; returns those that are not ours to pay, each with a name of the process that asks it."""
        with self._turn:
            wanted = [digest for digest in dict.fromkeys(digests) if digest not in self._mine]
            free = set(self._do(lambda: self.lease(wanted))) if wanted else set()
            self._mine |= free
            others = [digest for digest in wanted if digest not in free]
            known = self._do(lambda: self.holders(others)) if others else {}
        return {digest: known.get(digest, "of another machine") for digest in others}

    def give_back(self, digests: Collection[str]) -> None:
        """End leases: the answers are committed, or the calls failed."""
        with self._turn:
            held = [digest for digest in digests if digest in self._mine]
            self._mine.difference_update(held)
            if held:
                self._do(lambda: self.release(held))

    def renew_leases(self) -> None:
        """Take the leases of this process again, for a store in which they expire."""
        with self._turn:
            if self._mine:
                self._mine &= set(self._do(lambda: self.lease(list(self._mine))))

    def close(self) -> None:  # noqa: B027  there is nothing to do, in no store
        """Do nothing: the threads share one connection, which `leave` closes."""

    def leave(self) -> None:
        """Close the connection, with which all leases end."""
        with self._turn:
            if self._connected:
                try:
                    self.give_back(list(self._mine))
                except CacheError as error:
                    log.warning("%s", error)
            self.disconnect()

    # --- what people use --------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._do(self.count)

    @property
    def shared(self) -> bool:
        """Whether another live process has the cache open."""
        return self._do(self.has_other_users)

    def volume(self) -> int:
        """Bytes that the responses take."""
        return self._do(self.bytes_of_all)

    def quarantined(self) -> int:
        """How many damaged entries are kept for a person to look at."""
        return self._do(self.count_set_aside)

    def entries(self) -> Iterator[Entry]:
        """All sound entries; damaged entries are quarantined."""
        after: str | None = ""
        while after is not None:
            values, after = self._do(partial(self.page, after))
            yield from self._sound_entries(values)

    def verify(self) -> CacheCheck:
        """Read every entry, check it against its key and checksum, and quarantine what is damaged."""
        before, sound = self.damaged, sum(1 for _ in self.entries())
        return CacheCheck(sound=sound, damaged=self.damaged - before)

    def forget(self, digests: Collection[str]) -> int:
        """Remove the entries of these keys; returns how many there were."""
        return sum(self._do(partial(self.remove, group)) for group in in_groups(digests))

    def clear(self) -> int:
        """Remove all entries; returns how many there were."""
        return self._do(self.remove_all)

    # --- one path for all -------------------------------------------------------------------------------------

    def _do(self, work: Callable[[], T]) -> T:
        """Ask the store. If the connection is lost, connect again and repeat, as long as the patience lasts.

        Raises:
            CacheError: the server stays away, or refuses.
        """
        with self._turn:
            # A server that was given up is tried once more by each call: somebody has to stop the run first.
            patience = monotonic() + (_PATIENCE if self._connected else 0)
            pauses = iter(_PAUSES)
            while True:
                try:
                    if not self._connected:
                        self.connect()
                        self._connected = True
                        self._mine &= set(self.lease(list(self._mine)))
                    return work()
                except self.errors as error:
                    if self._connected and not self.is_lost(error):
                        raise self._error("refuses", error, "Correct that at its server") from error
                    self.disconnect()
                    if self._connected:
                        log.warning("The connection to the cache %s was lost; it is made again.", self.place)
                    self._connected = False
                    if monotonic() > patience:
                        raise self._unreachable(error) from error
                sleep(next(pauses, _PAUSES[-1]))

    def _sound_entries(self, values: Mapping[str, bytes]) -> Iterator[Entry]:
        """The entries that are sound, and hold no text from which a secret was taken; damaged ones are quarantined."""
        for digest, value in values.items():
            try:
                entry = unpack(digest, value.decode("utf-8"))
            except (DamagedEntryError, UnicodeDecodeError) as error:
                self._set_aside(digest, value, str(error))
                continue
            if not was_redacted(entry.key.parts + entry.response):
                yield entry

    def _set_aside(self, digest: str, value: bytes, why: str) -> None:
        self._do(lambda: self.set_aside(digest, value, why))
        self.damaged += 1
        log.warning(
            "A damaged cache entry (%s) was moved to %s; its call is made again.", why, self.quarantine
        )

    def _unreachable(self, error: Exception) -> CacheError:
        return self._error("cannot be reached", error, "Start its server or correct --cache")

    def _error(self, what: str, error: Exception, fix: str) -> CacheError:
        return CacheError(
            f"The cache {self.place} {what}: {_in_one_line(error)}.",
            fix=f"{fix}; then run `modelgauge resume` or the same command again: what was committed is kept.",
        )


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__
