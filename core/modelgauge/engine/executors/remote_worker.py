"""One worker as the driver knows it: what it works on, how fast it is, and the lines that wait to be sent."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from modelgauge.data.item_records import ItemRecord
from modelgauge.engine.executors.base import Link
from modelgauge.engine.executors.messages import MessageError, packed
from modelgauge.engine.executors.worker_admission import WorkerAdmission, WorkerCalls

Recorded = tuple[ItemRecord, bytes]
"""An item's record, without secrets, and its line in the journal."""

_WINDOW = 0.1  # seconds of which a speed is counted
_AHEAD = 0.25  # seconds of work that a worker has before it
_MOST = 256  # items


@dataclass(slots=True, eq=False)
class Assignment:
    """An item that waits for a worker, or is at a worker.

    Args:
        work: number of the work.
        index: the item's place in the test.
        message: brings it to a worker.
        read: called with the line that a worker sends; raises MessageError if it is not a record of this item.
        record: the record, once it was read.
        lost: how many workers have died while they had it.
    """

    work: int
    index: int
    message: bytes
    read: Callable[[bytes], Recorded]
    record: "asyncio.Future[Recorded]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    lost: int = 0

    @property
    def is_suspect(self) -> bool:
        """True if this item may kill workers; the next worker then gets it alone."""
        return self.lost > 1


class RemoteWorker:
    """A worker process as the driver sees it: the items that it has, its calls, and what is to be sent to it.

    Args:
        link: leads to it.
        admission: lets its calls in.

    Attributes:
        items: that it works on, by work and place.
        calls: its calls.
        is_ready: whether it has made its objects.
        finished: how many items it has done.
        silence: the number of checks by the pool since its last message.
        life: the scope of its lifetime; `give_up` ends it.
        reports: what it was asked to report, by work.
    """

    def __init__(self, link: Link, admission: WorkerAdmission) -> None:
        self.link, self.calls = link, WorkerCalls(admission, self.tell)
        self.items: dict[tuple[int, int], Assignment] = {}
        self.is_ready = False
        self.finished = self.silence = 0
        self.life = asyncio.timeout(None)
        self.reports: dict[int, asyncio.Future[list[str]]] = {}
        self._fault = ""
        self._dropped: set[tuple[int, int]] = set()
        self._lines: list[bytes] = []
        self._has_lines = asyncio.Event()
        self._sender = asyncio.get_running_loop().create_task(self._send())
        self._rate, self._since, self._counted = 0.0, monotonic(), 0

    def tell(self, kind: str, *fields: Any, body: bytes = b"") -> None:
        """Send a message; those of one turn of the loop go together."""
        self.send(packed(kind, *fields, body=body))

    def send(self, line: bytes) -> None:
        """Send a line."""
        self._lines.append(line)
        self._has_lines.set()

    async def _send(self) -> None:
        while True:
            await self._has_lines.wait()
            self._has_lines.clear()
            lines, self._lines = self._lines, []
            await self.link.send(b"".join(lines))

    def give(self, item: Assignment) -> None:
        """Give it an item."""
        self.items[item.work, item.index] = item
        self.send(item.message)

    def drop(self, item: Assignment) -> None:
        """Take an item back, if the worker has it. A message about it may still arrive."""
        if self.items.pop((item.work, item.index), None) is not None:
            self._dropped.add((item.work, item.index))

    def item(self, work: int, index: int) -> Assignment | None:
        """Return an item that the worker has; None if it was taken back.

        Raises:
            MessageError: the worker was not given this item.
        """
        if (work, index) not in self._dropped and (work, index) not in self.items:
            raise MessageError(f"a message about item {index}, which it does not have")
        return self.items.get((work, index))

    def done(self, work: int, index: int) -> Assignment | None:
        """Take an item from it that it is done with; None if nobody waits for that any more."""
        self.finished += 1
        self._counted += 1
        now = monotonic()
        if now - self._since > _WINDOW:
            self._rate = self._counted / (now - self._since)
            self._since, self._counted = now, 0
        self._dropped.discard((work, index))
        item = self.items.pop((work, index), None)
        return None if item is None or item.record.done() else item

    def has_room(self, share: int) -> bool:
        """Return whether the worker can take another item.

        Args:
            share: items that it has at least, so that all places for calls are used.
        """
        first = next(iter(self.items.values()), None)
        if not self.is_ready or (first is not None and first.is_suspect):  # which is alone
            return False
        return len(self.items) < min(_MOST, max(share, int(self._rate * _AHEAD)))

    def give_up(self, fault: str) -> None:
        """Stop listening to the worker.

        Args:
            fault: a phrase that completes "it ended after".
        """
        self._fault = fault
        self.life.reschedule(0)

    def why_ended(self) -> str:
        """Return why the worker ended, as the end of a sentence."""
        return f"after {self._fault}" if self._fault else self.link.why_ended()

    async def end(self) -> None:
        """End it at once."""
        self._sender.cancel()
        await self.link.end()
        await self.calls.lost()
        for report in self.reports.values():
            if not report.done():
                report.set_result([])
