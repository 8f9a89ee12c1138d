"""`ResponseCache`: keys in, JSON texts out, wherever a `CacheBackend` keeps them."""

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from time import monotonic, sleep
from typing import TypeVar

from modelgauge.cache.backend import LARGEST, CacheBackend, CacheStats, Work, in_groups
from modelgauge.cache.keys import DamagedEntryError, Entry, pack, unpack, was_redacted
from modelgauge.data.base import Frozen
from modelgauge.errors import CacheError

log = logging.getLogger(__name__)
T = TypeVar("T")

_PATIENCE = 30.0  # seconds for a server that is gone, a restart say
_PAUSES = (0.05, 0.1, 0.25, 0.5, 1.0)
_RENEWALS = 3  # in the time of a lease: two may fail


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


class ResponseCache:
    """A cache of responses. It never evicts, never expires and never runs what it reads.

    Each entry proves that it is the answer to its key; what does not is quarantined, and counts as missing. Several
    processes may share a cache. A lease says that a process is asking a key, so that no other pays for it too. All
    methods raise `CacheError` where the store cannot be reached, read or written. Threads may share the object.

    Args:
        backend: keeps the entries.

    Attributes:
        backend: as it was given.
        place: where the entries are, for messages; without a password.
        quarantine: where damaged entries go, for messages.

    Raises:
        CacheError: the store cannot be reached, or does not keep what it is given.
    """

    def __init__(self, backend: CacheBackend) -> None:
        self.backend, self.place, self.quarantine = backend, backend.place, backend.quarantine
        self._set_aside_count = 0
        self._mine: set[str] = set()  # the leases of this process
        self._turn = threading.RLock()
        self._left = threading.Event()
        try:
            backend.connect()
        except CacheError:
            backend.close()
            raise
        except backend.errors as error:
            backend.close()
            raise backend.explain(error, "open") from error
        self._connected = True
        if backend.lease_seconds is not None:
            threading.Thread(target=self._renew, name="modelgauge-leases", daemon=True).start()

    @property
    def damaged(self) -> int:
        """The number of damaged entries found since it was opened."""
        return self._set_aside_count + self.backend.damaged

    # --- entries --------------------------------------------------------------------------------------------

    def get(self, digest: str) -> str | None:
        """Return the JSON text of a response; None if it is not stored."""
        return self.get_many([digest]).get(digest)

    def get_many(self, digests: Collection[str]) -> dict[str, str]:
        """Return the JSON texts of stored responses; damaged responses are quarantined, and count as missing."""
        return {digest: entry.response for digest, entry in self.entries_at(digests).items()}

    def entries_at(self, digests: Collection[str]) -> dict[str, Entry]:
        """Return the stored entries of these keys; damaged entries are quarantined, and count as missing."""
        found: dict[str, Entry] = {}
        for group in in_groups(digests):
            entries, damaged = _proven(self._do(partial(self.backend.get_many, group), "read"))
            self._set_aside(damaged)
            found.update(entries)
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
        if values:
            self._do(partial(self.backend.put_many, values), "write")
        self.give_back([entry.key.digest for entry in entries])

    def entries(self) -> Iterator[Entry]:
        """Yield all valid entries."""
        for values in self._pages():
            yield from _proven(values)[0].values()

    def verify(self) -> CacheCheck:
        """Read every entry, check it against its key and checksum, and quarantine what is damaged."""
        structure, others = self._do(self.backend.check, "read")
        sound, found = 0, others
        for values in self._pages():
            entries, damaged = _proven(values, with_redacted=True)
            self._set_aside(damaged)
            sound, found = sound + len(entries), found + len(damaged)
        return CacheCheck(
            sound=sound, damaged=found, structure=structure, read_only=self.backend.is_read_only
        )

    def forget(self, digests: Collection[str]) -> int:
        """Remove the entries of these keys, and return their number."""
        return sum(self._do(partial(self.backend.remove, group), "write") for group in in_groups(digests))

    def clear(self) -> int:
        """Remove all entries, and return how many there were."""
        return self._do(self.backend.clear, "write")

    def stats(self) -> CacheStats:
        """Return the number of entries, their size, and whether other processes use the cache."""
        return self._do(self.backend.stats, "read")

    def __len__(self) -> int:
        return self.stats().entries

    # --- leases ---------------------------------------------------------------------------------------------

    def take(self, digests: Collection[str]) -> dict[str, str]:
        """Lease keys; returns those that are not ours to pay, each with a name of the process that asks it."""
        with self._turn:
            wanted = [digest for digest in dict.fromkeys(digests) if digest not in self._mine]
            others = self._lease(wanted)
            self._mine.update(digest for digest in wanted if digest not in others)
        return others

    def give_back(self, digests: Collection[str]) -> None:
        """End leases: the answers are committed, or the calls failed."""
        with self._turn:
            held = [digest for digest in digests if digest in self._mine]
            self._mine.difference_update(held)
            if held:
                self._do(partial(self.backend.release, held), "lease")

    def _lease(self, digests: list[str]) -> dict[str, str]:
        return dict(self._do(partial(self.backend.lease, digests), "lease")) if digests else {}

    def _renew(self) -> None:
        """Renew the leases of this process until it leaves."""
        while not self._left.wait((self.backend.lease_seconds or 0) / _RENEWALS):
            try:
                with self._turn:
                    self._mine -= self._lease(list(self._mine)).keys()
            except CacheError as error:  # whoever uses the cache next learns of it too
                log.warning("%s", error)

    # --- the end --------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close what this thread has open."""
        self.backend.close_thread()

    def leave(self) -> None:
        """End all leases, and tell other processes that this one is done; once, after all threads have closed."""
        self._left.set()
        with self._turn:
            if self._connected:  # a server may notice late that a connection has ended
                try:
                    self.give_back(list(self._mine))
                except CacheError as error:
                    log.warning("%s", error)
            self.backend.close()

    # --- one path for all -----------------------------------------------------------------------------------

    def _do(self, call: Callable[[], T], work: Work) -> T:
        """Ask the store. If the connection is lost, connect again and repeat, as long as the patience lasts.

        Raises:
            CacheError: the server stays away, or refuses.
        """
        backend = self.backend
        with nullcontext() if backend.is_thread_safe else self._turn:
            # A server that was given up is tried once more by each call: somebody has to stop the run first.
            patience = monotonic() + (_PATIENCE if self._connected else 0)
            pauses = iter(_PAUSES)
            while True:
                try:
                    if not self._connected:
                        backend.connect()
                        self._connected = True
                        if self._mine:
                            self._mine -= backend.lease(list(self._mine)).keys()
                    return call()
                except backend.errors as error:
                    if self._connected and not backend.is_lost(error):
                        raise backend.explain(error, work) from error
                    backend.close()
                    if self._connected:
                        log.warning("The connection to the cache %s was lost; it is made again.", self.place)
                    self._connected = False
                    if monotonic() > patience:
                        raise backend.explain(error, "open") from error
                sleep(next(pauses, _PAUSES[-1]))

    def _pages(self) -> Iterator[Mapping[str, bytes]]:
        after: str | None = ""
        while after is not None:
            values, after = self._do(partial(self.backend.page, after), "read")
            yield values

    def _set_aside(self, damaged: Iterable[tuple[str, bytes, str]]) -> None:
        for digest, value, why in damaged:
            if self.backend.is_read_only:
                continue
            if self._do(partial(self.backend.set_aside, digest, value, why), "read"):
                self._set_aside_count += 1
                log.warning(
                    "A damaged cache entry (%s) was moved to %s; its call is made again.",
                    why,
                    self.quarantine,
                )


def _proven(
    values: Mapping[str, bytes], *, with_redacted: bool = False
) -> tuple[dict[str, Entry], list[tuple[str, bytes, str]]]:
    """Tell the entries that prove their keys from damaged values, each with the reason.

    Args:
        values: as a backend has them.
        with_redacted: whether entries count from which an earlier version may have taken a secret: they are not read.
    """
    sound: dict[str, Entry] = {}
    damaged: list[tuple[str, bytes, str]] = []
    for digest, value in values.items():
        try:
            entry = unpack(digest, value.decode("utf-8"))
        except (DamagedEntryError, UnicodeDecodeError) as error:
            damaged.append((digest, value, str(error)))
            continue
        if with_redacted or not was_redacted(entry.key.parts + entry.response):
            sound[digest] = entry
    return sound, damaged
