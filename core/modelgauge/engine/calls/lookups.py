"""Reads of the cache, in groups and in a separate thread, so that a busy disk does not stop the loop.

A miss is reported only once we hold the lease; if another process is paying for the key, we wait for its answer.
"""

import asyncio
import logging
from dataclasses import dataclass

from modelgauge.cache.responses import ResponseCache
from modelgauge.engine.loop.threads import BatchThread
from modelgauge.errors import CallTimeoutError, ModelGaugeError, RunStoppedError

_PAUSE = 0.1
_LONG = 5.0
_WAITING = (
    "Process %s, which shares the cache %s, is asking what this one wants to ask; its answers have been awaited for "
    "%.0f s. Each is paid once. If that process ends, this one asks itself."
)

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Lookup:
    digest: str
    future: "asyncio.Future[str | None] | None"
    begun: float = 0.0
    leases: bool = True
    found: str | None = None
    asked_by: str | None = None


class Lookups:
    """Lookups of keys in the cache, in groups, in a separate thread.

    Args:
        cache: where to look.
        patience: seconds to wait for the answer to a call that another process makes.
    """

    def __init__(self, cache: ResponseCache, patience: float) -> None:
        self._cache, self._patience = cache, patience
        self._has_warned = False
        self._loop = asyncio.get_running_loop()
        self._thread: BatchThread[_Lookup] = BatchThread(
            "reader", self._read, self._answer, closing=cache.close
        )

    async def get(self, digest: str) -> str | None:
        """Return the stored text under a key. On None, the caller pays, or gives the key back.

        Raises:
            CallTimeoutError: another process pays, and the patience has ended.
            RunStoppedError: the database cannot be read, or the disk is full.
        """
        return await self._find(digest, leases=True)

    async def peek(self, digest: str) -> str | None:
        """Return the stored text under a key; None if there is none, even if another process is paying for it.

        Raises:
            RunStoppedError: the database cannot be read.
        """
        return await self._find(digest, leases=False)

    async def _find(self, digest: str, *, leases: bool) -> str | None:
        future: asyncio.Future[str | None] = self._loop.create_future()
        self._thread.submit(_Lookup(digest, future, self._loop.time(), leases))
        return await future

    def give_back(self, digest: str) -> None:
        """Release a key after a failed call, so that another process may try."""
        self._thread.submit(_Lookup(digest, None))

    async def close(self) -> None:
        """End the thread that reads the cache."""
        await self._thread.close()

    def _read(self, group: list[_Lookup]) -> None:
        cache = self._cache
        returned = [lookup.digest for lookup in group if lookup.future is None]
        if returned:
            cache.give_back(returned)
        # A call that was cancelled meanwhile gives no lease back: it has done that before.
        wanted = [lookup for lookup in group if lookup.future is not None and not lookup.future.done()]
        self._look(wanted)
        misses = [lookup for lookup in wanted if lookup.found is None and lookup.leases]
        if not misses:
            return
        others = cache.take([lookup.digest for lookup in misses])
        for lookup in misses:
            lookup.asked_by = others.get(lookup.digest)
        ours = [lookup for lookup in misses if lookup.asked_by is None]
        self._look(ours)  # it may have been paid between the look and the lease
        late = [lookup.digest for lookup in ours if lookup.found is not None]
        if late:
            cache.give_back(late)

    def _look(self, lookups: list[_Lookup]) -> None:
        found = self._cache.get_many([lookup.digest for lookup in lookups])
        for lookup in lookups:
            lookup.found = found.get(lookup.digest)

    def _answer(self, group: list[_Lookup], error: Exception | None) -> None:
        for lookup in group:
            if lookup.future is None or lookup.future.done():
                continue
            if error is not None:
                lookup.future.set_exception(_stop_error(error))
            elif lookup.asked_by is None or lookup.found is not None:
                lookup.future.set_result(lookup.found)
            else:
                self._wait(lookup, lookup.asked_by, lookup.future)

    def _wait(self, lookup: _Lookup, process: str, future: "asyncio.Future[str | None]") -> None:
        """Look again in a while, as long as the patience lasts; say once why nothing happens."""
        waited = self._loop.time() - lookup.begun
        if waited > self._patience:
            future.set_exception(_timeout_error(process, self._patience))
            return
        if waited > _LONG and not self._has_warned:
            self._has_warned = True
            log.warning(_WAITING, process, self._cache.place, waited)
        self._loop.call_later(_PAUSE, self._thread.submit, lookup)


def _timeout_error(process: str, seconds: float) -> CallTimeoutError:
    return CallTimeoutError(
        f"Process {process}, which shares the cache, is asking it, and had no answer within {seconds:g} s.",
        fix="Let that process go on, or end it; then run the same command again. To wait longer, raise --call-timeout "
        "(in Python call_timeout).",
    )


def _stop_error(error: Exception) -> RunStoppedError:
    """Return the error that stops the run when the cache fails, which no single item can be blamed for."""
    if isinstance(error, ModelGaugeError):
        stopped = RunStoppedError(error.problem, fix=error.fix)
    else:
        stopped = RunStoppedError(f"The cache failed: {error}.", fix="Run `modelgauge resume`.")
    stopped.__cause__ = error
    return stopped
