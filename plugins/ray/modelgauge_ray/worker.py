"""Actor with a worker of ModelGauge in a separate thread, and queues for its lines."""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import ray

from modelgauge.workers.serving import serve

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F")

_method = cast("Callable[..., Callable[[F], F]]", ray.method)  # which has no types

_PATIENCE = 5.0  # seconds that the driver's question for lines stays open
_MOST = 4 << 20  # bytes of lines that are sent together, where there are more


class Where(NamedTuple):
    """Location of a worker."""

    address: str
    process: int


class RayWorker:
    """A worker. Ray makes it an actor; `put` and `take` have a thread each, so neither waits for the other."""

    def __init__(self) -> None:
        self._incoming: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    @_method(concurrency_group="incoming")
    def where(self) -> Where:
        """Return the machine and the process. An actor that answers has its place in the cluster."""
        return Where(ray.util.get_node_ip_address(), os.getpid())

    @_method(concurrency_group="incoming")
    def put(self, lines: bytes) -> None:
        """Take lines of the driver."""
        self._incoming.put(lines)

    @_method(concurrency_group="outgoing")
    def take(self) -> bytes | None:
        """Return lines for the driver; `b""` if there were none for a while, None after the last."""
        try:
            lines = self._outgoing.get(timeout=_PATIENCE)
        except queue.Empty:
            return b""
        parts, size = [], 0
        while lines is not None:
            parts.append(lines)
            size += len(lines)
            if size > _MOST or self._outgoing.empty():
                return b"".join(parts)
            lines = self._outgoing.get()
        if parts:
            self._outgoing.put(None)
        return b"".join(parts) or None

    def _work(self) -> None:
        try:
            asyncio.run(self._serve())
        finally:
            self._outgoing.put(None)

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        inbox: asyncio.Queue[bytes] = asyncio.Queue()

        def receive() -> None:
            while True:
                loop.call_soon_threadsafe(inbox.put_nowait, self._incoming.get())

        threading.Thread(target=receive, daemon=True).start()
        await serve(inbox.get, self._outgoing.put)
