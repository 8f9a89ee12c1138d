"""Limits of concurrency for each SUT and annotator, adapted to the outcomes of calls.

The limiter only counts, and looks at its counts once per round of calls.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from modelgauge.data.results import ConcurrencyChange
from modelgauge.engine.loop.together import WaitingLine

START = 4
CEILING = 256
_MOST_IN_FLIGHT = 1024  # items
_MOST_CHANGES = 200
_MOST_ACCEPTED = 0.2  # the share of refusals
_LEAST_ACCEPTED = 0.01
_MOST_ERRORS = 0.05  # the share of server errors with which places still grow
_FEW = 5  # refusals, which show a share
_MOST_ATTEMPTS = 100  # that are waited for until then
_TRIED_GROWTH = 1.5  # times the places whose rate is known, from which growth must have shown
_LEAST_GAIN = 0.4  # the share of that growth by which the rate must have grown
_FULL_GAIN = 0.8
_REST = 32  # attempts after growth in vain, or too much; twice as many each time
_WAITING = 1.8  # times the shortest latency, from which calls wait longer than they are worked on


class Outcome(Enum):
    """Outcome of an attempt, for a limiter."""

    ok = "ok"
    rate_limited = "rate_limited"  # the server said 429
    timed_out = "timed_out"  # it is taken to have more to do than it can
    server_error = "server_error"  # a 5xx, a reset
    unreachable = "unreachable"  # no server was found: it says nothing of what one bears
    other = "other"

    @property
    def is_overload(self) -> bool:
        """True if less concurrency may help."""
        return self in (Outcome.rate_limited, Outcome.timed_out)


class Limiter:
    """Limiter of concurrent calls. Each `acquire` is followed by one `release`. This class admits every call.

    Args:
        most: places that there may ever be.
    """

    def __init__(self, most: int) -> None:
        self.most = most

    def take(self) -> bool:
        """Take a place, if one is free now; return whether it was."""
        return True

    async def acquire(self) -> None:
        """Wait for a place."""

    def note(self, outcome: Outcome) -> None:
        """Record the outcome of an attempt that keeps its place for a while."""

    def wanted(self) -> None:
        """Note that a call is waiting elsewhere before it asks for a place."""

    def release(self, outcome: Outcome | None, seconds: float = 0.0) -> None:
        """Give the place back; None if `note` has its outcome already."""


class AdaptiveLimiter(Limiter):
    """Limiter that adapts the number of concurrent attempts to the server; first come, first served.

    It starts at `start`, doubles for each round in which places ran out until the first 429, then grows by a tenth; a
    429 or a time-out cuts it by a third, once for each round, since calls that were sent before the cut say nothing of
    it; a round with server errors does not grow. (Additive increase, multiplicative decrease: Chiu and Jain, 1989; the
    start is TCP's slow start.)

    Growth must pay: where half as many places again bring no higher rate of answers, calls only wait in the server, and
    would time out there in the end. Then the places go back to what they were, and growth is tried again after a rest.
    Where they bring all that was to be hoped for, and at first where no call waits in the server, they grow fourfold.

    Some servers refuse a share of all calls, however few are under way, since others use up their machines. Cuts do
    not help there, and would end at one call at a time. So each cut is on trial: where the share of refusals is not
    clearly smaller after it, the cut is taken back, and as many refusals are accepted from then on, until they get
    fewer. Refusals of more than a fifth of all calls are never accepted: a call would fail too often.

    Args:
        start: places at first.
        ceiling: most places.
        clock: seconds.
        patience: seconds after which an attempt is given up.
    """

    def __init__(
        self, start: int, ceiling: int, clock: Callable[[], float], patience: float = math.inf
    ) -> None:
        super().__init__(ceiling)
        self.limit = min(start, ceiling)
        self.in_use = 0
        self.changes: list[ConcurrencyChange] = []
        self._waiting = WaitingLine()
        self._clock, self._patience = clock, patience
        self._begun = clock()
        self._slow_start = True
        self._accepted = 0.0  # the share of refusals that cuts do not lower
        self._before_cut = _BeforeCut(self.limit, slow_start=True)
        self._paid_fully = False  # whether growth has brought all that was to be hoped for, the last time
        self._shortest = math.inf  # latency
        self._latency = math.inf  # of late, of calls that were answered
        self._known: tuple[int, _Speed] | None = None  # places, and what they bring
        self._rest = 0  # attempts until places may grow again
        self._next_rest = _REST
        self._begin()

    def take(self) -> bool:
        """Take a place, if one is free now; return whether it was."""
        is_free = self.in_use < self.limit and not self._waiting
        self.in_use += is_free
        return is_free

    async def acquire(self) -> None:
        """Wait for a place."""
        if self.take():
            return
        self._round.saturated = True
        await self._waiting.wait(self._pass_on)

    def note(self, outcome: Outcome, seconds: float = 0.0) -> None:
        """Count an attempt, and adapt when a round is over."""
        if outcome is Outcome.unreachable:
            return
        if self._waiting:  # since an earlier round, maybe
            self._round.saturated = True
        if outcome is Outcome.timed_out and self._latency < self._patience / 3:
            outcome = Outcome.server_error  # calls that are answered do not wait: it is this one's own
        self._round.count(outcome, seconds)
        if outcome is Outcome.ok:
            self._shortest = min(self._shortest, seconds)
            self._latency = seconds if self._latency == math.inf else 0.8 * self._latency + 0.2 * seconds
        if self._round.over:
            self._adapt(self._round)

    def wanted(self) -> None:
        """Learn that there are fewer places than calls."""
        self._round.saturated = True

    def release(self, outcome: Outcome | None, seconds: float = 0.0) -> None:
        """Give a place back, and let waiting calls in."""
        self.in_use -= 1
        if outcome is not None:
            self.note(outcome, seconds)
        self._admit()

    def _pass_on(self) -> None:
        self.in_use -= 1
        self._admit()

    def _admit(self) -> None:
        while self.in_use < self.limit and self._waiting.next():
            self.in_use += 1

    # --- rounds ------------------------------------------------------------------------------------------------------

    def _adapt(self, ended: "_Round") -> None:
        if ended.stage is _Stage.settling:
            self._try_cut(ended)
        elif ended.stage is _Stage.free and not ended.refused and not self._has_paid(ended):
            self._measure_again_or_shrink(ended)
        elif ended.stage is _Stage.trial and self._was_in_vain(ended):
            self._take_back(ended)
        elif ended.refused > ended.allowed_refusals:
            self._cut(ended)
        else:
            self._go_on(ended)

    def _cut(self, ended: "_Round") -> None:
        self._before_cut = _BeforeCut(self.limit, self._slow_start)
        self._slow_start, self._known = False, None
        self._change(max(1, self.limit * 2 // 3), "timed out" if ended.timed_out else "rate limited")
        # What is under way was sent before the cut: it shows how things were then.
        if ended.timed_out:
            self._take_rest()
        settling = _Round(ended.seen + self.in_use, _Stage.settling, seen=ended.seen, refused=ended.refused)
        self._round = settling
        if settling.over:
            self._try_cut(settling)

    def _try_cut(self, settled: "_Round") -> None:
        """Begin the trial of a cut: enough attempts that were sent after it."""
        self._before_cut.share = settled.share
        attempts = self._enough(settled.share)
        self._round = _Round(attempts, _Stage.trial, allowed_refusals=int(attempts * _MOST_ACCEPTED))

    def _was_in_vain(self, trial: "_Round") -> bool:
        before = self._before_cut
        still_refused = trial.share >= (before.share + self._accepted) / 2
        return trial.complete and still_refused and max(trial.share, before.share) <= _MOST_ACCEPTED

    def _take_back(self, trial: "_Round") -> None:
        before = self._before_cut
        self._accepted, self._slow_start = trial.share, before.slow_start
        self._change(before.limit, "cut in vain")
        self._begin()

    def _go_on(self, ended: "_Round") -> None:
        grows = ended.stage is _Stage.free and ended.saturated and ended.share <= self._accepted
        if self._rest > 0:
            self._rest -= ended.seen
        elif grows and not self._would_time_out(ended) and ended.errors <= ended.seen * _MOST_ERRORS:
            self._change(min(self.most, self._larger_limit(ended)), "saturated")
        # Never upwards: the places that it grows by would be taken for the server's way.
        self._accepted -= max(0.0, self._accepted - ended.share) / 10
        if self._accepted < _LEAST_ACCEPTED:
            self._accepted = 0.0
        self._begin()

    def _would_time_out(self, ended: "_Round") -> bool:
        """Return whether calls queue in the server, and more of them would time out."""
        return self._waits(ended) and ended.latency * self._larger_limit(ended) / self.limit > self._patience

    def _waits(self, ended: "_Round") -> bool:
        """Return whether calls queue in the server."""
        return ended.latency > _WAITING * self._shortest

    def _larger_limit(self, ended: "_Round") -> int:
        if not self._slow_start:
            return self.limit + max(1, self.limit // 10)
        # In time even for a server that works on one call at a time, for all that the first calls show.
        in_time = 0 < 4 * self.limit * self._shortest <= self._patience / 2
        return self.limit * (4 if self._paid_fully or (in_time and not self._waits(ended)) else 2)

    def _has_paid(self, ended: "_Round") -> bool:
        """Return whether the new places are known to bring their share of answers, or are too few to tell."""
        speed = ended.speed(self.limit, self._clock())
        if self._known is None or speed is None:
            self._known = None if speed is None else (self.limit, speed)
            return True
        places, known = self._known
        if self.limit < places * _TRIED_GROWTH:
            if self.limit == places:
                self._known = places, known.mean(speed)
            return True
        gain = speed.gain(known, self.limit / places)
        if gain >= _LEAST_GAIN:
            self._known, self._next_rest = (self.limit, speed), _REST
            self._paid_fully = gain >= _FULL_GAIN
        return gain >= _LEAST_GAIN

    def _measure_again_or_shrink(self, ended: "_Round") -> None:
        """Take growth back that brought nothing, once a second round has shown the same."""
        if not ended.again:
            ended.again, ended.attempts = True, ended.attempts + self.limit
            return
        if self._known is not None:
            self._change(self._known[0], "no faster")
        self._slow_start, self._paid_fully = True, False
        self._take_rest()
        self._begin()

    def _take_rest(self) -> None:
        self._rest, self._next_rest = self._next_rest, 2 * self._next_rest

    def _begin(self) -> None:
        # While places grow fast, the slowest calls of a round are not waited for: they would cost as long as it took.
        attempts, allowed = max(1, self.limit * 3 // 4 if self._slow_start else self.limit), 0
        if self._accepted:
            attempts = self._enough(self._accepted)
            allowed = int(attempts * min(2 * self._accepted, _MOST_ACCEPTED))
        self._round = _Round(attempts, allowed_refusals=allowed, begun=self._clock())

    def _enough(self, share: float) -> int:
        """Return the number of attempts needed to estimate a share of refusals."""
        return max(self.limit, min(_MOST_ATTEMPTS, round(_FEW / share)))

    def _change(self, limit: int, why: str) -> None:
        if limit == self.limit:
            return
        self.limit = limit
        if len(self.changes) < _MOST_CHANGES:
            seconds = round(self._clock() - self._begun, 3)
            self.changes.append(ConcurrencyChange(seconds=seconds, limit=limit, why=why))


class _Speed(NamedTuple):
    """Throughput in answers a second: as counted, and as implied by latencies (Little's law). Either can be off."""

    counted: float
    by_latency: float

    def mean(self, other: "_Speed") -> "_Speed":
        return _Speed((self.counted + other.counted) / 2, (self.by_latency + other.by_latency) / 2)

    def gain(self, before: "_Speed", growth: float) -> float:
        """Return the smaller of the two relative gains in speed, as a share of the growth in places."""
        return min((new / old - 1) / (growth - 1) for new, old in zip(self, before, strict=True))


class _Stage(Enum):
    """Kind of attempts in a round."""

    free = "free"
    settling = "settling"  # sent before a cut: their 429s are no news
    trial = "trial"  # sent after it


@dataclass(slots=True)
class _BeforeCut:
    """State before a cut, for the case that it is undone."""

    limit: int
    slow_start: bool
    share: float = 0.0  # of refusals


@dataclass(slots=True)
class _Round:
    """A series of attempts that is judged as one: a place's worth each, or as many as show a share of refusals.

    Args:
        attempts: that it is to have.
        stage: what they are of.
        allowed_refusals: refusals that call for no cut; one more does, and the rest of the round is not waited for.
        seen: attempts that have ended.
        refused: those that ended in a 429.
        errors: those that ended in a server error.
        timed_out: those among `refused` that ended in a time-out.
        saturated: places ran out.
        begun: when it began, in seconds.
        again: whether it goes on a second time, since its rate is in doubt.
    """

    attempts: int
    stage: _Stage = _Stage.free
    allowed_refusals: int = 0
    seen: int = 0
    refused: int = 0
    errors: int = 0
    timed_out: int = 0
    saturated: bool = False
    begun: float = 0.0
    again: bool = False
    answered: int = 0
    seconds: float = 0.0

    def count(self, outcome: Outcome, seconds: float) -> None:
        """Count an attempt."""
        self.seen += 1
        if outcome is Outcome.ok:
            self.answered, self.seconds = self.answered + 1, self.seconds + seconds
        self.refused += outcome.is_overload
        self.timed_out += outcome is Outcome.timed_out
        self.errors += outcome is Outcome.server_error

    @property
    def latency(self) -> float:
        """Seconds of an answer, on average; 0 without answers."""
        return self.seconds / self.answered if self.answered else 0.0

    @property
    def share(self) -> float:
        """The share of refusals among the attempts that have ended."""
        return self.refused / self.seen if self.seen else 0.0

    def speed(self, places: int, now: float) -> "_Speed | None":
        """Return the throughput of the round; None if no time passed."""
        if now <= self.begun or not self.seconds:
            return None
        return _Speed(self.seen / (now - self.begun), places * self.answered / self.seconds)

    @property
    def complete(self) -> bool:
        return self.seen >= self.attempts

    @property
    def over(self) -> bool:
        return self.complete or (self.stage is not _Stage.settling and self.refused > self.allowed_refusals)


def choose_window(limiters: Iterable[Limiter]) -> int:
    """Return the number of items to keep in flight so that every stage of a pair is busy.

    Args:
        limiters: of its SUT, its annotators, and the SUTs that they ask.
    """
    return min(_MOST_IN_FLIGHT, 2 * sum(limiter.most for limiter in limiters))
