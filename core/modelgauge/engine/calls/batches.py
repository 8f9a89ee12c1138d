"""Batches for SUTs that answer several requests at once: full batches when requests are available, never a long
wait.
"""

import asyncio
import inspect
from typing import Any

from modelgauge.engine.loop.deadlines import Deadlines
from modelgauge.engine.loop.threads import CallPool
from modelgauge.engine.loop.together import settle
from modelgauge.errors import InvalidResponseError
from modelgauge.interfaces.sut import PromptResponseSUT
from modelgauge.wording.phrases import a_thing, counted

_PATIENCE = 0.02


class BatchCollector:
    """Collector that sends requests together once the batch is full or no more have arrived for a moment.

    Args:
        sut: has `evaluate_batch` and `batch_size`.
        pool: where the batch runs.
        deadlines: for a batch that is awaited.
    """

    def __init__(self, sut: PromptResponseSUT[Any, Any], pool: CallPool, deadlines: Deadlines) -> None:
        self._sut, self._pool, self._deadlines = sut, pool, deadlines
        self._waiting: list[tuple[Any, asyncio.Future[Any]]] = []
        self._seconds = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def send(self, request: Any, seconds: float) -> Any:
        """Return the response to one request, answered as part of a batch with this time limit in seconds."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting.append((request, future))
        self._seconds = max(self._seconds, seconds)
        if self._timer is not None:
            self._timer.cancel()
        if len(self._waiting) >= self._sut.batch_size:
            self._flush()
        else:
            self._timer = loop.call_later(_PATIENCE, self._flush)
        return await future

    def _flush(self) -> None:
        # Without those that nobody waits for any more.
        batch = [call for call in self._waiting if not call[1].done()]
        self._waiting, self._timer = [], None
        if batch:
            task = asyncio.get_running_loop().create_task(self._run(batch))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self, batch: list[tuple[Any, asyncio.Future[Any]]]) -> None:
        requests = [request for request, _ in batch]
        try:
            responses: Any = await self._pool.run(self._sut.evaluate_batch, requests, self._seconds)
            if inspect.isawaitable(responses):  # written as `async def`
                responses = await self._deadlines.within(self._seconds, responses)
            if not isinstance(responses, list) or len(responses) != len(requests):
                got = (
                    counted(len(responses), "response") if isinstance(responses, list) else a_thing(responses)
                )
                raise InvalidResponseError(  # noqa: TRY301  raised for each request of the batch, as any failure is
                    f"evaluate_batch of '{self._sut.uid}' returned {got} for {counted(len(requests), 'request')}.",
                    fix="Return a list with one response for each request, in their order.",
                )
        except Exception as error:  # noqa: BLE001  each request of the batch raises it
            for _, future in batch:
                settle(future, None, error)
            return
        for (_, future), response in zip(batch, responses, strict=True):
            settle(future, response)
