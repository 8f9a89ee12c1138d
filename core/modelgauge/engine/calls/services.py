"""State shared by all calls of a run: identical calls in flight, turns, pauses, and the stop signal."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

from modelgauge.config.run_options import RunOptions
from modelgauge.data.annotations import CallTime
from modelgauge.engine.bookkeeping.app_trace import AppReport
from modelgauge.engine.calls.admission import Admission
from modelgauge.engine.calls.budget import Budget
from modelgauge.engine.calls.lookups import Lookups
from modelgauge.engine.calls.retries import Backoff
from modelgauge.engine.loop.deadlines import Deadlines
from modelgauge.engine.loop.threads import CallPool
from modelgauge.engine.loop.together import WaitingLine
from modelgauge.engine.run_files.writer import Writer
from modelgauge.errors import ModelGaugeError, RunStoppedError

if TYPE_CHECKING:
    from types import TracebackType

_AT_ONCE = 0.002  # seconds; a call that takes longer waits for something else than this process
_TOGETHER = 8  # items that go on in one turn of the loop: a few milliseconds of work


class Flight:
    """One call that others may wait for. Nothing is made for those that nobody waits for, which are nearly all."""

    __slots__ = ("_error", "_over", "_text", "_traceback", "_waiting", "is_reused")

    def __init__(self) -> None:
        self.is_reused = False  # whether the answer came from the cache
        self._over = False
        self._text: str | None = None
        self._error: Exception | None = None
        self._traceback: TracebackType | None = None
        self._waiting: list[asyncio.Future[None]] = []

    def land(self, text: str) -> None:
        """End the flight with the answer."""
        self._text = text
        self._end()

    def fail(self, error: BaseException) -> None:
        """End the flight with an error; where the call was only cancelled, those who wait ask themselves."""
        self._error = error if isinstance(error, Exception) else None
        self._traceback = error.__traceback__
        self._end()

    async def landing(self) -> str | None:
        """Wait for the answer, as stored; None if nobody is asking any more.

        Raises:
            Exception: what made the call fail.
        """
        if not self._over:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            await waiter
        if self._error is not None:
            # Each raise adds the frames of who waits to the traceback, which are not those of the others.
            raise self._error.with_traceback(self._traceback)
        return self._text

    def _end(self) -> None:
        self._over = True
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
        self._waiting.clear()


@dataclass(slots=True)
class CallResult:
    """The response of a call, and where it came from.

    Args:
        response: the native response.
        report: what an observed app reported meanwhile.
        time: that the call took; None if nothing was sent.
        paid: whether this run paid for it.
        key: the key of the response in the cache; None if it is not stored.
    """

    response: Any
    report: AppReport | None = None
    time: CallTime | None = None
    paid: bool = True
    key: str | None = None


class AnswerTurns:
    """Queue that releases answered items a few at a time, so that the loop can send calls and read answers in
    between.

    A hundred answers that come at once take 20 ms and more to be scored and written; their places would be empty
    meanwhile. The places are given to others when an answer comes, and these send first.

    Attributes:
        needed: whether the last call waited for anything; where calls do not, there is nothing to go before.
    """

    def __init__(self) -> None:
        self.needed = False
        self._waiting = WaitingLine()
        self._is_going = False

    def note(self, seconds: float) -> None:
        """Learn from a call how long calls take."""
        self.needed = seconds > _AT_ONCE

    async def turn(self) -> None:
        """Wait until it is this item's turn."""
        if not self._is_going:
            self._is_going = True
            asyncio.get_running_loop().call_soon(self._next)
        await self._waiting.wait()

    def _next(self) -> None:
        for _ in range(_TOGETHER):
            self._waiting.next()
        self._is_going = bool(self._waiting)
        if self._is_going:
            asyncio.get_running_loop().call_soon(self._next)


class Waiting(Protocol):
    """Component in which calls wait before they are sent."""

    def give_up(self) -> None:
        """Wake all calls that wait here: no further call is sent."""


@dataclass(slots=True)
class Services:
    """Services shared by all calls of a run. In a worker, `make_admission` creates a remote admission."""

    options: RunOptions
    writer: Writer
    lookups: Lookups | None
    pool: CallPool
    deadlines: Deadlines
    budget: Budget
    make_admission: Callable[[object, "Services"], Admission] | None = None
    turns: AnswerTurns = field(default_factory=AnswerTurns)
    backoff: Backoff = field(default_factory=Backoff)
    flights: dict[str, Flight] = field(default_factory=dict)
    sleep: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep
    clock: Callable[[], float] = monotonic
    stopped: RunStoppedError | None = None
    waits: WeakSet[Waiting] = field(default_factory=WeakSet)

    def stop(self, why: ModelGaugeError) -> None:
        """Send no further call: each of those that wait or come ends with this error."""
        self.stopped = RunStoppedError(why.problem, fix=why.fix)
        self.give_up_waiting()

    def give_up_waiting(self) -> None:
        """Wake all calls that wait to be sent: none will be."""
        for wait in (self.budget, *self.waits):
            wait.give_up()

    @property
    def caching(self) -> bool:
        return self.lookups is not None
