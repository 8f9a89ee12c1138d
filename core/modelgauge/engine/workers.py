"""The workers of one pair: tasks that take items from its source, as many at once as limits leave room for."""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic

from modelgauge.engine.items.source import ItemSource, NumberedItem
from modelgauge.engine.run_files.writer import Writer
from modelgauge.errors import RunStoppedError

_TURN = 0.005  # seconds that a worker may keep the loop, when nothing makes it wait


class Workers:
    """Tasks that process the items of a source until it is exhausted.

    Args:
        source: hands out the items.
        process: works on an item until its record is queued for the journal.
        writer: is waited for while too much is queued.
        window: most workers at once.
        stop: stops the source; gets the error after which no call may be sent, None if the run is interrupted.
    """

    def __init__(
        self,
        source: ItemSource,
        process: Callable[[NumberedItem], Awaitable[None]],
        writer: Writer,
        window: int,
        stop: Callable[[RunStoppedError | None], None],
    ) -> None:
        self._source, self._process, self._writer = source, process, writer
        self._window, self._stop = window, stop
        self._tasks: set[asyncio.Task[None]] = set()
        self._all_ended = asyncio.Event()
        self._abandoned = False
        self._error: BaseException | None = None
        self._idle = 0
        self._last: asyncio.Task[None] | None = None  # the worker that did the last item

    async def work(self) -> None:
        """Work on all items.

        Raises:
            Exception: what the author's iterable raised, or a defect of ours; all other workers have ended.
        """
        self._spawn()
        await self._all_ended.wait()
        if self._error is not None:
            raise self._error

    def abandon(self) -> bool:
        """Cancel the workers; return whether there were any.

        Returns:
            Whether any was at work.
        """
        self._abandoned = True
        for task in self._tasks:
            task.cancel()
        return bool(self._tasks)

    def _spawn(self) -> None:
        self._idle += 1
        worker = asyncio.get_running_loop().create_task(self._work())
        self._tasks.add(worker)
        worker.add_done_callback(self._on_end)

    def _on_end(self, worker: "asyncio.Task[None]") -> None:
        """Note the end of a worker; the pair waits for all of them, since each may have an item that is paid."""
        self._tasks.discard(worker)
        error = None if worker.cancelled() else worker.exception()
        if worker.cancelled() and not self._abandoned:
            error = RuntimeError("The work on an item was cancelled from within.")
        if isinstance(error, KeyboardInterrupt):  # it ends the loop too: whoever runs that cancels the run
            self._stop(None)
        elif error is not None:
            self._error = self._error or error
            self._source.stop()
        if not self._tasks:
            self._all_ended.set()

    async def _work(self) -> None:
        """Take items until there are no more. Workers are added while all are busy, up to the window."""
        source, writer, me = self._source, self._writer, asyncio.current_task()
        turn_ends = 0.0
        while True:
            if writer.is_crowded:
                await writer.room()
            item = source.take() or await source.next()
            if item is None:
                return
            self._idle -= 1
            if not self._idle and len(self._tasks) < self._window:
                self._spawn()
            try:
                await self._process(item)
            except RunStoppedError as error:
                self._stop(error)
                return
            self._idle += 1
            now = monotonic()
            if self._last is not me:  # the loop was free since, for others to have a turn
                self._last, turn_ends = me, now + _TURN
            elif now > turn_ends:
                self._last = None
                await asyncio.sleep(0)
