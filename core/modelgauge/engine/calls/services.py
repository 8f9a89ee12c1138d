"""What all calls of a run share, and how they learn that no further one is sent."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from modelgauge.config.run_options import RunOptions
from modelgauge.engine.calls.budget import Budget
from modelgauge.engine.calls.flights import Flight
from modelgauge.engine.calls.lookups import Lookups
from modelgauge.engine.calls.rates import Rate
from modelgauge.engine.calls.retries import Backoff
from modelgauge.engine.calls.scheduling import Turns
from modelgauge.engine.loop.deadlines import Deadlines
from modelgauge.engine.loop.threads import CallPool
from modelgauge.engine.run_files.writer import Writer
from modelgauge.errors import RunStoppedError


@dataclass(slots=True)
class Services:
    """What all calls of a run share."""

    options: RunOptions
    writer: Writer
    lookups: Lookups | None
    pool: CallPool
    deadlines: Deadlines
    budget: Budget
    turns: Turns = field(default_factory=Turns)
    backoff: Backoff = field(default_factory=Backoff)
    flights: dict[str, Flight] = field(default_factory=dict)
    sleep: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep
    clock: Callable[[], float] = monotonic
    stopped: RunStoppedError | None = None
    rates: list[Rate] = field(default_factory=list)
    pauses: set[asyncio.Future[None]] = field(default_factory=set)
    is_given_up: bool = False

    def stop(self, why: RunStoppedError) -> None:
        """Send no further call."""
        self.stopped = why
        self.give_up_waiting()

    def give_up_waiting(self) -> None:
        """Let those go on who wait until a call may be sent: none will be."""
        self.is_given_up = True
        for rate in self.rates:
            rate.give_up()
        self.budget.give_up()
        for pause in self.pauses:
            pause.cancel()

    async def pause(self, seconds: float) -> None:
        """Wait before a call is sent again; not where none will be."""
        if self.is_given_up:
            return
        pause = asyncio.ensure_future(self.sleep(seconds))
        self.pauses.add(pause)
        try:
            await asyncio.wait([pause])
        finally:
            pause.cancel()
            self.pauses.discard(pause)

    @property
    def caching(self) -> bool:
        return self.lookups is not None
