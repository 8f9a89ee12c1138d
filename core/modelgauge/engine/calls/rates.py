"""How many requests and tokens a minute may go to one target; how many calls at once is the limiters' to say."""

import asyncio
from collections import deque

from aiolimiter import AsyncLimiter

_LATELY = 100  # calls, of which it is known how many tokens a call takes
_LEAST_WAIT = 0.001  # seconds between two looks at what has leaked


class Rate:
    """Requests and tokens a minute, for one target.

    Args:
        requests: a minute, 0.5 for one in two minutes; None for no limit.
        tokens: a minute; None for no limit.
    """

    def __init__(self, requests: float | None, tokens: int | None) -> None:
        # One request's worth of burst: a provider counts the first minute too.
        self._requests = AsyncLimiter(1, 60 / requests) if requests else None
        self._tokens = _Tokens(tokens) if tokens else None
        self._given_up = asyncio.Event()

    @property
    def limited(self) -> bool:
        """Whether there is anything to wait for."""
        return self._requests is not None or self._tokens is not None

    async def before(self) -> None:
        """Wait until a call may be sent, or none will be any more; then it is under way, until `ended`."""
        if self._tokens is not None:
            await self._tokens.turn()
        try:
            if self._requests is not None:
                await self._acquired(self._requests, 1)
        except BaseException:
            self.ended()
            raise

    def ended(self) -> None:
        """A call is no longer under way, or was not sent after all."""
        if self._tokens is not None:
            self._tokens.ended()

    def after(self, tokens: int) -> None:
        """Count the tokens of a call: those that come after it wait until they fit into the minute."""
        if self._tokens is not None:
            self._tokens.spend(tokens)

    def give_up(self) -> None:
        """Let all that wait go on: no further call is sent, and nobody shall wait to learn that."""
        self._given_up.set()
        if self._tokens is not None:
            self._tokens.give_up()

    async def _acquired(self, limiter: AsyncLimiter, amount: int) -> None:
        if self._given_up.is_set():
            return
        if limiter.has_capacity(amount):
            await limiter.acquire(amount)
            return
        waits = [asyncio.ensure_future(one) for one in (limiter.acquire(amount), self._given_up.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()


class _Tokens:
    """A bucket of a minute's tokens, which leaks all the time; first come, first served.

    What a call takes is known only after it. So a call under way counts with as many tokens as calls took lately; what
    it took beyond that is waited for by the next ones, however much it is.

    Args:
        a_minute: tokens that fit.
    """

    def __init__(self, a_minute: int) -> None:
        self._most, self._per_second = float(a_minute), a_minute / 60
        self._loop = asyncio.get_running_loop()
        self._level, self._seen = 0.0, self._loop.time()
        self._usual, self._told, self._under_way = 0.0, 0, 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._given_up = False

    async def turn(self) -> None:
        """Wait until the tokens of another call fit; then it is under way."""
        mine: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(mine)
        self._admit()
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self.ended()  # it was ours already: pass it on
            raise

    def ended(self) -> None:
        """A call is no longer under way."""
        self._under_way -= 1
        self._loop.call_soon(self._admit)  # by then its tokens are counted

    def spend(self, tokens: int) -> None:
        """Count the tokens of a call that has ended."""
        self._leak()
        self._level += tokens
        self._told = min(_LATELY, self._told + 1)
        self._usual += (tokens - self._usual) / self._told

    def give_up(self) -> None:
        """Let all go on."""
        self._given_up = True
        self._admit()

    def _admit(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._leak()
        while self._waiting and (self._given_up or self._beyond() <= 0):
            first = self._waiting.popleft()
            if not first.done():
                self._under_way += 1
                first.set_result(None)
        if self._waiting and self._level > 0:  # else it is a call under way that is waited for
            seconds = min(self._level, self._beyond()) / self._per_second
            self._timer = self._loop.call_later(max(seconds, _LEAST_WAIT), self._admit)

    def _beyond(self) -> float:
        """Tokens by which another call would be too much."""
        usual = min(self._usual, self._most)
        return self._level + (self._under_way + 1) * usual - self._most

    def _leak(self) -> None:
        now = self._loop.time()
        self._level = max(0.0, self._level - (now - self._seen) * self._per_second)
        self._seen = now
