"""The driver's side of calls that workers make: each goes through the one `LocalAdmission` of its target.

So all limits see it as a call of this process.
"""

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import ceil, inf
from typing import Any, NamedTuple

from modelgauge.data.responses import Usage
from modelgauge.engine.bookkeeping.tally import Tally, current_tally
from modelgauge.engine.calls.call import Target
from modelgauge.engine.calls.limits import AdaptiveLimiter, Outcome
from modelgauge.engine.calls.services import Services
from modelgauge.engine.executors.messages import MessageError
from modelgauge.engine.executors.remote_admission import parse_verdict
from modelgauge.errors import RunStoppedError
from modelgauge.interfaces.sut import Retry


class _Call(NamedTuple):
    """A call of a worker: its number there, and the numbers of its target and its work."""

    number: int
    target: int
    work: int


class _ReportedError(Exception):
    """An error of a worker's call, of which the driver has the message."""


class WorkerAdmission:
    """Admission of workers' calls in the driver.

    Args:
        targets: of the run, by their numbers.
        tallies: of the works, by their numbers.
        services: of the run.
        halted: gets the number of a target whose waiting calls must learn that none is sent; None for all of them.

    Attributes:
        sharing: how many workers share the places for calls: those that have items.
        begun: when each call under way began, in seconds.
    """

    sharing = 1

    def __init__(
        self,
        targets: Sequence[Target],
        tallies: Sequence[Tally],
        services: Services,
        halted: Callable[[int | None], None],
    ) -> None:
        self.targets, self.tallies, self.clock, self.halted = targets, tallies, services.clock, halted
        self.begun: dict[object, float] = {}
        services.waits.add(self)

    @property
    def under_way(self) -> int:
        """Calls that workers have sent, and not had an answer to."""
        return len(self.begun)

    @property
    def oldest(self) -> float | None:
        """Seconds since the oldest call under way began; None if there is none."""
        return self.clock() - min(self.begun.values()) if self.begun else None

    def give_up(self) -> None:
        """Let all that wait go on: no further call is sent."""
        self.halted(None)

    def settle(self, target: int, work: int, usage: Usage | None) -> None:
        """Count what an answer took."""
        with self.counting(work):
            self.targets[target].admission.settle(usage)

    @contextmanager
    def counting(self, work: int) -> Iterator[None]:
        """Let what is counted in the block count for a work."""
        before = current_tally.set(self.tallies[work])
        try:
            yield
        finally:
            current_tally.reset(before)

    def compute_share(self, target: int) -> float:
        """Return a worker's share of the concurrency of a target, so that a slow worker leaves room for the others."""
        limiter = self.targets[target].admission.limiter
        return ceil(limiter.limit / self.sharing) if isinstance(limiter, AdaptiveLimiter) else inf


class WorkerCalls:
    """The calls of one worker that wait or are under way.

    Args:
        admission: lets them in.
        tell: sends a message to the worker.
    """

    def __init__(self, admission: WorkerAdmission, tell: Callable[..., None]) -> None:
        self._worker_admission, self._tell = admission, tell
        self._calls: dict[int, _WaitingCall] = {}
        # By target: those beyond the worker's share.
        self._queued: dict[int, deque[_Call]] = defaultdict(deque)
        self._inside: Counter[int] = Counter()

    def enter(self, number: int, target: int, work: int) -> None:
        """Handle a call that asks to be sent.

        Raises:
            MessageError: another call has this number.
        """
        if number in self._calls or any(number == ask.number for ask in self._queued[target]):
            raise MessageError(f"a second call with number {number}")
        self._queued[target].append(_Call(number, target, work))
        self._admit(target)

    def tell(self, number: int, kind: str, fields: Sequence[Any]) -> None:
        """Handle a worker's message about a call."""
        if (waiting := self._calls.get(number)) is not None:
            waiting.hear(kind, fields)

    def withdraw(self, number: int) -> None:
        """Handle a call that is cancelled, or no longer waited for."""
        if (waiting := self._calls.get(number)) is not None:
            waiting.end()
        for queued in self._queued.values():
            for call in [ask for ask in queued if ask.number == number]:
                queued.remove(call)

    def give_up(self, target: int | None) -> None:
        """Let those go on that wait for the worker's share, of a target or of all: they are refused."""
        for key in list(self._queued) if target is None else [target]:
            while self._queued[key]:
                self._begin(self._queued[key].popleft())

    async def lost(self) -> None:
        """End the calls of a worker that died."""
        self._queued.clear()
        tasks = [waiting.task for waiting in self._calls.values() if waiting.task is not None]
        for waiting in list(self._calls.values()):
            waiting.end()
        if tasks:
            await asyncio.wait(tasks)

    def _admit(self, target: int) -> None:
        queued, share = self._queued[target], self._worker_admission.compute_share(target)
        while queued and self._inside[target] < share:
            self._begin(queued.popleft())
        if queued:
            self._worker_admission.targets[target].admission.limiter.wanted()

    def _begin(self, call: _Call) -> None:
        waiting = _WaitingCall(self._worker_admission, call, self._tell, self._ended)
        if waiting.begin():
            self._calls[call.number] = waiting
            self._inside[call.target] += 1

    def _ended(self, call: _Call) -> None:
        del self._calls[call.number]
        self._inside[call.target] -= 1
        self._admit(call.target)


class _WaitingCall:
    """A call of a worker that wants to be sent, or is under way.

    Most are let in at once. A task stands for one that has to wait, since admission knows those by their tasks.
    """

    def __init__(
        self,
        admission: WorkerAdmission,
        call: _Call,
        tell: Callable[..., None],
        ended: Callable[[_Call], None],
    ) -> None:
        self._worker_admission, self._call, self._tell, self._ended = admission, call, tell, ended
        self._admission = admission.targets[call.target].admission
        self._begun, self._answers = 0.0, 0
        self._events: asyncio.Queue[tuple[str, Sequence[Any]]]  # where there is a task
        self.task: asyncio.Task[None] | None = None

    def begin(self) -> bool:
        """Let it in, or let it wait; return whether it is not refused."""
        try:
            with self._worker_admission.counting(self._call.work):
                if self._admission.enter_at_once():
                    self._on_sent()
                else:
                    self._events = asyncio.Queue()
                    self.task = asyncio.get_running_loop().create_task(self._stand())
                    self.task.add_done_callback(lambda _: self._ended(self._call))
        except RunStoppedError as error:
            self._refuse(error)
            return False
        return True

    def hear(self, kind: str, fields: Sequence[Any]) -> None:
        """Handle a message of the worker about this call."""
        if self.task is not None:
            self._events.put_nowait((kind, fields))
            return
        with self._worker_admission.counting(self._call.work):
            if kind == "left":
                self._leave(*fields)
                self._ended(self._call)
            else:
                self._note(kind, fields)

    def end(self) -> None:
        """Stop waiting for a place, or give the place back, where the worker has ended or stops."""
        if self.task is not None:
            self.task.cancel()
        else:
            self._leave(None, 0.0, answered=False)
            self._ended(self._call)

    async def _stand(self) -> None:
        try:
            await self._admission.enter()
        except RunStoppedError as error:
            self._refuse(error)
            return
        self._on_sent()
        left: Sequence[Any] = (None, 0.0, False)
        try:
            while (event := await self._events.get())[0] != "left":
                self._note(*event)
            left = event[1]
        finally:
            self._leave(*left)

    def _refuse(self, error: RunStoppedError) -> None:
        self._tell("refuse", self._call.number, error.problem, error.fix)

    def _on_sent(self) -> None:
        self._begun, self._answers = self._worker_admission.clock(), self._admission.server.answers
        self._worker_admission.begun[self] = self._begun
        self._tell("go", self._call.number, self._answers)

    def _leave(self, outcome: Outcome | None, seconds: float, answered: bool) -> None:
        del self._worker_admission.begun[self]
        if answered:
            self._admission.succeeded(self._begun)
        self._admission.leave(outcome, seconds)

    def _note(self, kind: str, fields: Sequence[Any]) -> None:
        """Note what the worker says of the call before that has left."""
        admission = self._admission
        if kind == "note":
            admission.limiter.note(fields[0])
            return
        verdict, error = parse_verdict(fields[0]), _ReportedError(fields[1])
        if kind == "failed":
            admission.failed(verdict, error)
        elif isinstance(verdict, Retry) and admission.server.answers == self._answers:
            admission.stop_at_limit(verdict, error)  # unless calls of other workers were answered meanwhile
        if admission.dead is not None:
            self._worker_admission.halted(self._call.target)
