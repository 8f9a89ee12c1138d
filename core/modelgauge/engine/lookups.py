"""Reads of the cache in a thread of their own, in groups: a busy disk does not stop the loop.

A miss is answered only when the key is ours to pay; where another process pays for it, its answer is awaited.
"""

import asyncio
import logging
from dataclasses import dataclass

from modelgauge.cache import DiskCache
from modelgauge.engine.threads import BatchThread
from modelgauge.errors import ModelGaugeError, RunStoppedError

_PAUSE = 0.1
_LONG = 50  # pauses
_WAITING = (
    "Another process that shares the cache %s has asked what this one wants to ask; its answers have been awaited for "
    "%.0f s. Each is paid once. If that process is stopped, this one asks itself."
)

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Lookup:
    digest: str
    future: "asyncio.Future[str | None] | None"
    found: str | None = None
    elsewhere: bool = False
    pauses: int = 0


class Lookups:
    """Answers look-ups of keys.

    Args:
        cache: where to look.
    """

    def __init__(self, cache: DiskCache) -> None:
        self._cache = cache
        self._has_told = False
        self._loop = asyncio.get_running_loop()
        self._thread: BatchThread[_Lookup] = BatchThread(
            "reader", self._read, self._answer, closing=cache.close
        )

    async def get(self, digest: str) -> str | None:
        """The stored text under a key; None where there is none: then the caller pays, or gives the key back.

        Raises:
            RunStoppedError: the database cannot be read, or the disk is full.
        """
        lookup = _Lookup(digest, self._loop.create_future())
        self._thread.submit(lookup)
        return await lookup.future if lookup.future is not None else None

    def give_back(self, digest: str) -> None:
        """The call of a key failed: another process may try."""
        self._thread.submit(_Lookup(digest, None))

    async def close(self) -> None:
        """End the thread."""
        await self._thread.close()

    def _read(self, group: list[_Lookup]) -> None:
        leases = self._cache.leases
        returned = [lookup.digest for lookup in group if lookup.future is None]
        if returned:
            leases.give_back(returned)
        wanted = [lookup for lookup in group if lookup.future is not None]
        for lookup in wanted:
            lookup.found = self._cache.get(lookup.digest)
        misses = [lookup for lookup in wanted if lookup.found is None]
        if not misses:
            return
        ours = leases.take([lookup.digest for lookup in misses])
        for lookup in misses:
            lookup.elsewhere = lookup.digest not in ours
            if leases.shared and not lookup.elsewhere:  # it may have been paid between the look and the lease
                lookup.found = self._cache.get(lookup.digest)
        late = [lookup.digest for lookup in misses if lookup.found is not None]
        if late:
            leases.give_back(late)

    def _answer(self, group: list[_Lookup], error: Exception | None) -> None:
        for lookup in group:
            if lookup.future is None or lookup.future.done():
                continue
            if error is not None:
                lookup.future.set_exception(_stopped(error))
            elif lookup.elsewhere:
                lookup.elsewhere = False
                self._tell_of_pause(lookup)
                self._loop.call_later(_PAUSE, self._thread.submit, lookup)
            else:
                lookup.future.set_result(lookup.found)

    def _tell_of_pause(self, lookup: _Lookup) -> None:
        """Say once why nothing happens, where it has been so for a while."""
        lookup.pauses += 1
        if lookup.pauses == _LONG and not self._has_told:
            self._has_told = True
            log.warning(_WAITING, self._cache.directory, _LONG * _PAUSE)


def _stopped(error: Exception) -> RunStoppedError:
    """A cache that fails is no item's own failure: it ends the run."""
    if isinstance(error, ModelGaugeError):
        stopped = RunStoppedError(error.problem, fix=error.fix)
    else:
        stopped = RunStoppedError(
            f"The leases of the cache failed: {error}.", fix="Free the disk, then run `modelgauge resume`."
        )
    stopped.__cause__ = error
    return stopped
