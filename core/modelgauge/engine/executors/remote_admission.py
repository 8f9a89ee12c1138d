"""Admission of calls in a worker: it asks the driver, which enforces the limits of the whole run.

So caps, rates and concurrency are the same for a run in one process and in many. Only the waits before retries are
kept here.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

from modelgauge.data.responses import Usage
from modelgauge.engine.bookkeeping.failures import describe_error
from modelgauge.engine.bookkeeping.tally import Tally, current_tally
from modelgauge.engine.calls.limits import Limiter, Outcome
from modelgauge.engine.calls.services import Services
from modelgauge.engine.calls.waiting import Pauses, Server
from modelgauge.errors import RunStoppedError
from modelgauge.interfaces.sut import ErrorClass, Fatal, Retry

Tell = Callable[..., None]
"""Sends a message to the driver: its kind and fields."""


class Calls:
    """The calls of a worker that the driver has been asked about.

    Args:
        tell: sends a message to the driver.
        work_of: the number of the work that a tally counts.
    """

    def __init__(self, tell: Tell, work_of: Callable[[Tally], int]) -> None:
        self.tell, self._work_of = tell, work_of
        self._numbers = count()
        self._asked: dict[int, asyncio.Future[int]] = {}

    def work(self) -> int:
        """Return the number of the work that the current task belongs to."""
        return self._work_of(current_tally.get())

    async def ask(self, target: int) -> tuple[int, int]:
        """Wait until a call may be sent; return its number, and how many the target has answered by now.

        Raises:
            RunStoppedError: no call may be sent any more.
        """
        number = next(self._numbers)
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        self.tell("enter", number, target, self.work())
        try:
            return number, await answer
        except asyncio.CancelledError:
            self.tell("withdraw", number)
            raise
        finally:
            del self._asked[number]

    def let_in(self, number: int, answers: int) -> None:
        """Admit a call, as the driver said."""
        if (asked := self._asked.get(number)) is not None and not asked.done():
            asked.set_result(answers)

    def refuse(self, number: int, problem: str, fix: str) -> None:
        """Refuse all further calls, as the driver said."""
        if (asked := self._asked.get(number)) is not None and not asked.done():
            asked.set_exception(RunStoppedError(problem, fix=fix))


class RemoteAdmission:
    """The `Admission` of a target in a worker: lets attempts in where the driver does.

    Args:
        uid: of the target.
        target: its number.
        services: what the worker's calls share.
        calls: of the worker.
    """

    def __init__(self, uid: str, target: int, services: Services, calls: Calls) -> None:
        options = services.options
        self._target, self._calls = target, calls
        limits = options.max_cost, options.max_tokens_total, options.tokens_per_minute
        self._is_metered = limits != (None, None, None)
        self._numbers: dict[asyncio.Task[Any] | None, int] = {}
        self._answered: set[int] = set()
        self.limiter: Limiter = _DriverLimiter(self._note)
        self.pauses = Pauses(services.sleep)
        self.server = Server(uid, options.call_timeout, options.first_patience, self.pauses, services.clock)
        self.dead: RunStoppedError | None = None
        services.waits.add(self.pauses)

    def enter_at_once(self, check: Callable[[], None] | None = None) -> bool:
        """Return False: every attempt needs the driver's permission."""
        del check
        return False

    async def enter(self, check: Callable[[], None] | None = None) -> None:
        """Wait until the driver lets an attempt in."""
        number, answers = await self._calls.ask(self._target)
        self.server.answers = max(self.server.answers, answers)
        self._numbers[asyncio.current_task()] = number
        if check is None:
            return
        try:
            check()
        except BaseException:
            self.leave(Outcome.other, 0.0)
            raise

    def leave(self, outcome: Outcome | None, seconds: float) -> None:
        """End an attempt."""
        number = self._numbers.pop(asyncio.current_task())
        answered = number in self._answered
        self._answered.discard(number)
        self._tell("left", number, None if outcome is None else outcome.value, seconds, answered)

    def succeeded(self, begun: float) -> None:
        """Note an attempt that was answered."""
        self.server.answered(begun)
        self._answered.add(self._numbers[asyncio.current_task()])

    def failed(self, verdict: ErrorClass, error: Exception) -> None:
        """Note an attempt that failed."""
        self._tell("failed", self._number(), _plain(verdict), describe_error(error))

    def stop_at_limit(self, verdict: Retry, error: Exception) -> None:
        """Ask to end the use of an object whose rate limit lasts longer than a call may."""
        self._tell("limited", self._number(), _plain(verdict), describe_error(error))

    def settle(self, usage: Usage | None) -> None:
        """Count what a paid call cost."""
        if usage is not None or self._is_metered:
            spent = None if usage is None else usage.model_dump(exclude_none=True)
            self._tell("settle", self._target, self._calls.work(), spent)

    def notes(self) -> Iterator[str]:
        """Return no notes: the driver has them."""
        return iter(())

    def _note(self, outcome: Outcome) -> None:
        self._tell("note", self._number(), outcome.value)

    def _number(self) -> int:
        return self._numbers[asyncio.current_task()]

    def _tell(self, kind: str, *fields: Any) -> None:
        self._calls.tell(kind, *fields)


class _DriverLimiter(Limiter):
    """A limiter whose places the driver has."""

    def __init__(self, note: Callable[[Outcome], None]) -> None:
        super().__init__(1)
        self._tell = note

    def note(self, outcome: Outcome) -> None:
        """Learn how an attempt ended whose place is kept for a while."""
        self._tell(outcome)


def _plain(verdict: ErrorClass) -> list[Any] | None:
    """Convert a verdict to JSON, with infinity as text."""
    if isinstance(verdict, Retry):
        after = None if verdict.after is None else str(verdict.after)
        return [after, verdict.rate_limited, verdict.unreachable]
    return None if verdict is None else []


def parse_verdict(plain: Sequence[Any] | None) -> ErrorClass:
    """Parse the verdict that a worker reported."""
    if not plain:
        return None if plain is None else Fatal()
    after, rate_limited, unreachable = plain
    return Retry(
        after=None if after is None else float(after), rate_limited=rate_limited, unreachable=unreachable
    )
