"""What goes first when many answers come at once: calls that can be sent, before answers that can be scored."""

import asyncio
from collections import deque

_AT_ONCE = 0.002  # seconds; a call that takes longer waits for something else than this process
_TOGETHER = 8  # items that go on in one turn of the loop: a few milliseconds of work


class Turns:
    """Lets answered items go on a few at a time, so that the loop can send calls and read answers in between.

    A hundred answers that come at once take 20 ms and more to be scored and written; their places would be empty
    meanwhile. The places are given to others when an answer comes, and these send first.

    Attributes:
        needed: whether the last call waited for anything; where calls do not, there is nothing to go before.
    """

    def __init__(self) -> None:
        self.needed = False
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_going = False

    def note(self, seconds: float) -> None:
        """Learn from a call how long calls take."""
        self.needed = seconds > _AT_ONCE

    async def turn(self) -> None:
        """Wait until it is this item's turn."""
        loop = asyncio.get_running_loop()
        mine = loop.create_future()
        self._waiting.append(mine)
        if not self._is_going:
            self._is_going = True
            loop.call_soon(self._next)
        await mine

    def _next(self) -> None:
        for _ in range(min(_TOGETHER, len(self._waiting))):
            turn = self._waiting.popleft()
            if not turn.done():  # cancelled meanwhile
                turn.set_result(None)
        self._is_going = bool(self._waiting)
        if self._is_going:
            asyncio.get_running_loop().call_soon(self._next)
