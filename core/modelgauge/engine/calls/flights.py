"""Single flight: an identical call that is under way is awaited, not repeated."""

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType


class Flight:
    """One call that others may wait for. Nothing is made for those that nobody waits for, which are nearly all."""

    __slots__ = ("_error", "_over", "_text", "_traceback", "_waiting")

    def __init__(self) -> None:
        self._over = False
        self._text: str | None = None
        self._error: Exception | None = None
        self._traceback: TracebackType | None = None
        self._waiting: list[asyncio.Future[None]] = []

    def land(self, text: str) -> None:
        """The call was answered."""
        self._text = text
        self._end()

    def fail(self, error: BaseException) -> None:
        """The call failed; where it was only cancelled, those who wait ask themselves."""
        self._error = error if isinstance(error, Exception) else None
        self._traceback = error.__traceback__
        self._end()

    async def landing(self) -> str | None:
        """The answer, as stored; None where nobody is asking any more.

        Raises:
            Exception: what made the call fail.
        """
        if not self._over:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            await waiter
        if self._error is not None:
            # Each raise adds the frames of who waits to the traceback, which the others are not to tell as theirs.
            raise self._error.with_traceback(self._traceback)
        return self._text

    def _end(self) -> None:
        self._over = True
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
        self._waiting.clear()
