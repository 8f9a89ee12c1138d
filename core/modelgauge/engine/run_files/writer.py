"""The one thread that writes: cache rows, commit, journal lines, in that order, in groups.

So an item stands in the journal only after its calls are committed, by construction.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from modelgauge.cache.keys import Entry
from modelgauge.cache.responses import ResponseCache
from modelgauge.engine.loop.threads import BatchThread
from modelgauge.engine.loop.together import WaitingLine
from modelgauge.errors import ModelGaugeError, RunStoppedError
from modelgauge.files.causes import advice_for
from modelgauge.files.reserve import Reserve

_ROOM = 1000  # a group: what a crash can lose beside the calls in flight
_ROOM_BYTES = 4_000_000  # of long texts fewer: they are memory, and a full disk must stop the calls soon
_LINGER = 0.005


class Journal(Protocol):
    """Destination of lines: a `JournalFile`, or the driver of a worker."""

    size: int

    def append(self, data: bytes) -> None:
        """Write whole lines."""


@dataclass(slots=True)
class _Job:
    """A cache row, a journal line, or a mark that tells when all before it are done.

    Args:
        size: in bytes.
        committed: gets the offset of the line; called where the disk took the group, else only if `is_mark`.
    """

    size: int
    committed: Callable[[int], None]
    entry: Entry | None = None
    journal: Journal | None = None
    line: bytes = b""
    offset: int = 0
    is_mark: bool = False


class Writer:
    """The queue of all that is written; callbacks run on the loop once it is committed.

    Args:
        cache: where rows go; None if nothing is cached.
        failed: gets the error when the disk refuses. What comes after that is written as long as the reserve lasts.
        close_cache: is called in the writer's thread, which used the cache, when it ends.
        reserve: room on the disk for what calls return that are under way when it is full.
    """

    def __init__(
        self,
        cache: ResponseCache | None,
        failed: Callable[[ModelGaugeError], object],
        close_cache: Callable[[], None],
        reserve: Reserve,
    ) -> None:
        self._cache = cache
        self._failed = failed
        self._reserve = reserve
        self._written = 0
        self._full: ModelGaugeError | None = None
        self._broken: ModelGaugeError | None = None
        self._closed = False
        self._pending = 0
        self._bytes = 0
        self._room = WaitingLine()
        self._before: list[Callable[[], None]] = []
        self._close_cache = close_cache
        self._thread: BatchThread[_Job] = BatchThread(
            "writer", self._write, self._on_written, closing=self._end, linger=_LINGER
        )

    def before_each_group(self, count: Callable[[], None]) -> None:
        """Call a function in the writer's thread before each group: it writes what the group's calls cost."""
        self._before.append(count)

    def put(self, entry: Entry, committed: Callable[[], None]) -> None:
        """Queue a cache row."""
        size = len(entry.response) + len(entry.key.parts)
        self._submit(_Job(size, lambda _: committed(), entry=entry))

    def append(self, journal: Journal, line: bytes, committed: Callable[[int], None]) -> None:
        """Queue a journal line; `committed` gets the line's offset in the file."""
        self._submit(_Job(len(line), committed, journal=journal, line=line))

    def _submit(self, job: _Job) -> None:
        self._pending += 1
        self._bytes += job.size
        self._thread.submit(job)

    async def room(self) -> None:
        """Wait while too much is queued: memory is bounded, and few calls are repeated after a crash."""
        while self.is_crowded:
            self._thread.hurry()
            await self._room.wait()

    @property
    def is_crowded(self) -> bool:
        """True if too much is queued."""
        return self._pending > _ROOM or self._bytes > _ROOM_BYTES

    @property
    def is_broken(self) -> bool:
        """True if the disk failed even for the reserve, so that nothing more is written."""
        return self._broken is not None

    @property
    def is_busy(self) -> bool:
        """True if anything is queued."""
        return self._pending > 0

    async def drained(self) -> None:
        """Wait until all that is queued now is committed, or the disk has refused it."""
        if self._closed:
            return
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._submit(_Job(0, lambda _: reached.set_result(None), is_mark=True))
        self._thread.hurry()
        await reached

    async def close(self) -> None:
        """Write what is queued, and end the thread."""
        self._closed = True
        await self._thread.close()

    def _end(self) -> None:
        """Free what is held; in the thread, which ends also where nobody waits for it any more."""
        self._reserve.release()
        self._close_cache()

    def _write(self, group: list[_Job]) -> None:
        if self._broken is not None:
            raise self._broken
        self._hold_room(sum([job.size for job in group]))
        try:
            for count in self._before:
                count()
            rows, cache = [job.entry for job in group if job.entry is not None], self._cache
            if rows and cache is not None:
                self._store(lambda: cache.put_many(rows))
            self._append_lines(group)
        except ModelGaugeError as error:
            self._broken = error
            raise

    def _hold_room(self, size: int) -> None:
        """Let the reserve grow with what is written: the more a run has written, the more may be under way."""
        self._written += size
        try:
            self._reserve.grow(4 * self._written)
        except OSError as error:
            self._full = RunStoppedError(
                f"The disk is nearly full: {error}.",
                fix=f"{advice_for(error)}, then run `modelgauge resume`: what was paid is kept.",
            )

    def _store(self, write: Callable[[], None]) -> None:
        """Write all or nothing; once more with the room of the reserve, if the disk refuses."""
        try:
            write()
        except (ModelGaugeError, OSError) as error:
            refusal = _refusal(error)
            if not (isinstance(refusal.__cause__, (OSError, sqlite3.Error)) and self._reserve.release()):
                raise refusal from refusal.__cause__
            self._full = refusal
            self._store(write)

    def _append_lines(self, group: list[_Job]) -> None:
        together: dict[Journal, list[bytes]] = {}
        sizes: dict[Journal, int] = {}
        for job in group:
            if job.journal is not None:
                job.offset = sizes.setdefault(job.journal, job.journal.size)
                sizes[job.journal] += len(job.line)
                together.setdefault(job.journal, []).append(job.line)
        for journal, lines in together.items():
            self._store(partial(journal.append, b"".join(lines)))

    def _on_written(self, group: list[_Job], error: Exception | None) -> None:
        self._pending -= len(group)
        self._bytes -= sum([job.size for job in group])
        for job in group:
            if error is None or job.is_mark:
                job.committed(job.offset)
        if error is not None:
            unforeseen = RunStoppedError(
                f"Writing failed: {error!r}.", fix="Report this as a defect of modelgauge."
            )
            self._failed(error if isinstance(error, ModelGaugeError) else unforeseen)
        elif self._full is not None:
            self._failed(self._full)
        if not self.is_crowded:
            self._room.all()


def _refusal(error: ModelGaugeError | OSError) -> ModelGaugeError:
    if isinstance(error, ModelGaugeError):
        return error
    refusal = RunStoppedError(
        f"The journal cannot be written: {error}.", fix=f"{advice_for(error)}, then run `modelgauge resume`."
    )
    refusal.__cause__ = error
    return refusal
