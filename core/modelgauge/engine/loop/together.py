"""Waiting for several coroutines, all of which finish even if some fail because they may be paid for; waiting in
line.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from modelgauge.engine.bookkeeping.failures import StageError
from modelgauge.errors import RunStoppedError

T = TypeVar("T")


async def all_done(work: Sequence[Coroutine[Any, Any, T]]) -> list[T | BaseException]:
    """Run coroutines at once; return what they returned or raised, in their order."""
    if len(work) == 1:  # nearly always: nothing to gather
        try:
            return [await work[0]]
        except StageError as failure:
            return [failure]
    return await asyncio.gather(*work, return_exceptions=True)


async def wait_for_all(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines at once; return what they returned, in their order.

    Raises:
        RunStoppedError: one of them raised it, so that no call is sent any more.
        BaseException: else the first that was raised, once all have ended.
    """
    results = await all_done(work)
    failures = [result for result in results if isinstance(result, BaseException)]
    if failures:
        raise min(failures, key=lambda failure: not isinstance(failure, RunStoppedError))
    return [result for result in results if not isinstance(result, BaseException)]


def once(work: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], Awaitable[None]]:
    """Return a function that does work once, however many callers wait for it; each gets its error."""
    begun: asyncio.Task[None] | None = None

    async def done() -> None:
        nonlocal begun
        if begun is None:
            begun = asyncio.create_task(work())
        await asyncio.shield(begun)

    return done


async def end_task(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait for its end: the loop may live longer than what the task is for."""
    task.cancel()
    await asyncio.wait([task])


class WaitingLine:
    """A line of tasks that wait for their turn; first come, first served."""

    def __init__(self) -> None:
        self._turns: deque[asyncio.Future[None]] = deque()

    def __bool__(self) -> bool:
        return bool(self._turns)

    async def wait(self, pass_on: Callable[[], object] = lambda: None) -> None:
        """Wait for this task's turn.

        Args:
            pass_on: called where the turn comes to a task that was cancelled meanwhile.
        """
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._turns.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                pass_on()
            raise

    def next(self) -> bool:
        """Give the first task its turn; return whether there was one."""
        while self._turns:
            turn = self._turns.popleft()
            if not turn.done():  # else it was cancelled
                turn.set_result(None)
                return True
        return False

    def all(self) -> None:
        """Give all tasks their turns."""
        while self.next():
            pass


def settle(future: asyncio.Future[Any], result: Any, error: BaseException | None = None) -> None:
    """Set the result of a future, or its error, unless nobody waits for it any more."""
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
