"""The driver's side of calls that workers make: each goes through the one `Admission` of its target.

A task stands for a call while it waits and while it is under way, so that all limits see it as one of this process.
"""

import asyncio
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, NamedTuple

from modelgauge.data.responses import Usage
from modelgauge.engine.bookkeeping.tally import Tally, current_tally
from modelgauge.engine.calls.call import Target
from modelgauge.engine.calls.entrance import Entrance
from modelgauge.engine.calls.limits import Outcome
from modelgauge.engine.calls.services import Services
from modelgauge.engine.executors.remote_admission import verdict_of
from modelgauge.errors import RunStoppedError
from modelgauge.interfaces.sut import Retry

Tell = Callable[..., None]


class _ReportedError(Exception):
    """An error of a worker's call, of which the driver has the message."""


class _Visit(NamedTuple):
    """A call of a worker: the task that stands for it, and what the worker says of it."""

    task: "asyncio.Task[None]"
    events: "asyncio.Queue[tuple[str, list[Any]]]"


class Gate:
    """Lets the calls of workers in, and out again.

    Args:
        targets: of the run, by their numbers.
        tallies: of the works, by their numbers.
        services: of the run.
        halted: gets the number of a target whose waiting calls must learn that none is sent; None for all of them.
    """

    def __init__(
        self,
        targets: Sequence[Target],
        tallies: Sequence[Tally],
        services: Services,
        halted: Callable[[int | None], None],
    ) -> None:
        self._targets, self._tallies, self._services, self._halted = targets, tallies, services, halted
        self._begun: dict[asyncio.Task[Any] | None, float] = {}
        services.waits.add(self)

    @property
    def under_way(self) -> int:
        """Calls that workers have sent, and not had an answer to."""
        return len(self._begun)

    @property
    def oldest(self) -> float | None:
        """Seconds since the oldest call under way began; None where there is none."""
        return monotonic() - min(self._begun.values()) if self._begun else None

    def give_up(self) -> None:
        """Let all that wait go on: no further call is sent."""
        self._halted(None)

    def settle(self, target: int, work: int, usage: dict[str, Any] | None) -> None:
        """Count what an answer took."""
        before = current_tally.set(self._tallies[work])
        try:
            self._targets[target].admission.settle(None if usage is None else Usage.load(usage))
        finally:
            current_tally.reset(before)

    async def visit(
        self, number: int, target: int, work: int, tell: Tell, events: "asyncio.Queue[tuple[str, list[Any]]]"
    ) -> None:
        """Stand for a call of a worker.

        Args:
            number: the worker's own of the call.
            target: the number of what is called.
            work: the number of the work that the call is of.
            tell: sends a message to the worker.
            events: what the worker says of the call.
        """
        current_tally.set(self._tallies[work])
        admission = self._targets[target].admission
        try:
            await admission.enter()
        except RunStoppedError as error:
            tell("refuse", number, error.problem, error.fix)
            return
        me, begun, answers = asyncio.current_task(), self._services.clock(), admission.server.answers
        self._begun[me] = monotonic()
        outcome: Outcome | None = None
        seconds = 0.0
        tell("go", number, answers)
        try:
            while True:
                kind, fields = await events.get()
                if kind == "left":
                    ended, seconds, answered = fields
                    outcome = None if ended is None else Outcome(ended)
                    if answered:
                        admission.succeeded(begun)
                    return
                self._note(admission, kind, fields, answers)
                if admission.dead is not None:
                    self._halted(target)
        finally:
            del self._begun[me]
            admission.leave(outcome, seconds)

    def _note(self, admission: Entrance, kind: str, fields: list[Any], answers: int) -> None:
        """Note what a worker says of a call before it has left."""
        if kind == "note":
            admission.limiter.note(Outcome(fields[0]))
            return
        verdict, error = verdict_of(fields[0]), _ReportedError(fields[1])
        if kind == "failed":
            admission.failed(verdict, error)
        elif isinstance(verdict, Retry) and admission.server.answers == answers:
            admission.stop_at_limit(verdict, error)  # unless calls of other workers were answered meanwhile


class Visits:
    """The calls of one worker that wait or are under way.

    Args:
        gate: lets them in.
    """

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._visits: dict[int, _Visit] = {}

    def enter(self, number: int, target: int, work: int, tell: Tell) -> None:
        """A call wants to be sent."""
        events: asyncio.Queue[tuple[str, list[Any]]] = asyncio.Queue()
        task = asyncio.get_running_loop().create_task(self._gate.visit(number, target, work, tell, events))
        self._visits[number] = _Visit(task, events)
        task.add_done_callback(lambda _: self._visits.pop(number, None))

    def tell(self, number: int, kind: str, fields: list[Any]) -> None:
        """The worker says something of a call."""
        if (visit := self._visits.get(number)) is not None:
            visit.events.put_nowait((kind, fields))

    def withdraw(self, number: int) -> None:
        """A call does not want to be sent any more, or is not waited for."""
        if (visit := self._visits.get(number)) is not None:
            visit.task.cancel()

    async def lost(self) -> None:
        """The worker has died: its calls are under way no more."""
        tasks = [visit.task for visit in self._visits.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
