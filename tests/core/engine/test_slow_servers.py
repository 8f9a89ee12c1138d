"""How many calls at once a slow server gets: as many as it can work on. Time is counted, not waited for.

The server here works on so many calls at once, lets the others wait, and works on those that were given up as well, as
model servers do.
"""

import asyncio
import heapq
import random
from dataclasses import dataclass, field
from functools import partial

import pytest

from modelgauge.engine.calls.limits import CEILING, START, AdaptiveLimiter, Outcome


@dataclass
class Simulation:
    """A run of items against such a server.

    Args:
        slots: calls that the server works on at once.
        service: seconds that it works on one, on average.
        timeout: seconds after which an attempt is given up.
        seed: of all chance.
    """

    slots: int
    service: float
    timeout: float
    seed: int = 0
    now: float = 0.0
    requests: int = 0
    scored: int = 0
    _events: list = field(default_factory=list)
    _queue: list = field(default_factory=list)
    _busy: int = 0

    def __post_init__(self):
        self.chance = random.Random(self.seed)

    def run(self, items, limiter):
        async def main():
            work = asyncio.gather(*(self._item(limiter) for _ in range(items)))
            while not work.done():
                for _ in range(6):  # so that every caller whose call has ended has gone on
                    await asyncio.sleep(0)
                if not work.done():
                    self.now, _, event = heapq.heappop(self._events)
                    event()

        asyncio.run(main())
        return self

    async def _item(self, limiter, retries=4):
        for attempt in range(retries + 1):
            await limiter.acquire()
            begun = self.now
            if await self._answered():
                limiter.release(Outcome.ok, self.now - begun)
                self.scored += 1
                return
            limiter.note(Outcome.timed_out, self.now - begun)
            await self._later(self.chance.uniform(0, 0.5 * 2**attempt), True)
            limiter.release(None)

    async def _answered(self):
        self.requests += 1
        call = self._later(self.timeout, False)
        self._queue.append(call)
        self._work()
        return await call

    def _work(self):
        while self._queue and self._busy < self.slots:
            self._busy += 1
            seconds = self.service * self.chance.lognormvariate(-0.045, 0.3)
            self._at(self.now + seconds, partial(self._end, self._queue.pop(0)))

    def _end(self, call):
        self._busy -= 1
        if not call.done():
            call.set_result(True)
        self._work()

    def _later(self, seconds, result):
        future = asyncio.get_running_loop().create_future()
        self._at(self.now + seconds, lambda: future.done() or future.set_result(result))
        return future

    def _at(self, when, event):
        heapq.heappush(self._events, (when, len(self._events) + self.chance.random(), event))


def simulated(server, items, limit=None, seed=0):
    simulation = Simulation(*server, seed=seed)
    begin, most = (START, CEILING) if limit is None else (limit, limit)
    limiter = AdaptiveLimiter(begin, most, lambda: simulation.now, simulation.timeout)
    return simulation.run(items, limiter), limiter


SERIAL, FOUR_SLOTS, SIXTEEN_SLOTS, ROOMY = (1, 0.42, 6.0), (4, 1.0, 6.0), (16, 1.0, 6.0), (1000, 1.0, 30.0)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("server", "items", "best"),
    [(SERIAL, 60, 1), (FOUR_SLOTS, 120, 4), (SIXTEEN_SLOTS, 300, 16), (ROOMY, 3_000, 256)],
)
def test_no_server_is_asked_much_worse_than_with_the_best_number_of_calls_at_once(server, items, best, seed):
    fixed, _ = simulated(server, items, best, seed)
    adaptive, _ = simulated(server, items, None, seed)
    assert adaptive.scored == fixed.scored == items
    assert adaptive.now <= 1.3 * fixed.now
    assert adaptive.requests <= 1.1 * fixed.requests


def test_growth_that_brings_nothing_is_taken_back_and_tried_again_later():
    _, limiter = simulated(FOUR_SLOTS, 400)
    reasons = [change.why for change in limiter.changes]
    assert {"saturated", "no faster"} == set(reasons)
    assert max(change.limit for change in limiter.changes) <= 16
    assert reasons.count("no faster") <= 4  # each rest is twice as long as that before


def test_calls_that_time_out_whatever_the_concurrency_cut_nothing():
    """A third of the items take too long by themselves: one call at a time would take hours for them."""

    async def main():
        limiter = AdaptiveLimiter(START, CEILING, lambda: 0.0, 120.0)
        for number in range(3000):
            await limiter.acquire()
            limiter.release(*((Outcome.timed_out, 120.0) if number % 3 == 2 else (Outcome.ok, 1.0)))
        return limiter

    assert {change.why for change in asyncio.run(main()).changes} <= {"saturated"}


def test_time_outs_cut_and_everything_is_answered_in_the_end():
    """A server that cannot even answer what is sent at first."""
    simulation, limiter = simulated((1, 2.5, 6.0), 60)
    assert simulation.scored == 60
    assert simulation.requests < 80
    assert "timed out" in {change.why for change in limiter.changes}
    assert limiter.limit <= 2
