"""Who may call now. Limiters stand before each SUT and annotator; they know nothing of calls but how they ended.

Concurrency adapts apart from the calls: a limiter counts, and looks at its counts once for each round of calls.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

from modelgauge.data.results import ConcurrencyChange

START = 20
CEILING = 256
_MOST_IN_FLIGHT = 1024  # items
_MOST_CHANGES = 200
_MOST_ACCEPTED = 0.2  # the share of refusals
_LEAST_ACCEPTED = 0.01
_MOST_ERRORS = 0.05  # the share of server errors with which places still grow
_FEW = 5  # refusals, which show a share
_MOST_ATTEMPTS = 100  # that are waited for until then


class Outcome(Enum):
    """How an attempt ended, for a limiter."""

    ok = "ok"
    rate_limited = "rate_limited"  # the server said 429
    server_error = "server_error"  # a 5xx, a reset, a time-out
    other = "other"


class Limiter:
    """Gives out places; each `acquire` is followed by one `release`. This one lets everybody call.

    Args:
        most: places that there may ever be.
    """

    def __init__(self, most: int) -> None:
        self.most = most

    async def acquire(self) -> None:
        """Wait for a place."""

    def note(self, outcome: Outcome) -> None:
        """Learn how an attempt ended whose place is kept for a while."""

    def release(self, outcome: Outcome | None) -> None:
        """Give the place back; None where `note` has its outcome already."""


class AdaptiveLimiter(Limiter):
    """Places for concurrent attempts, as many as the server takes; first come, first served.

    It starts at `start`, doubles for each round in which places ran out until the first 429, then grows by a tenth; a
    429 cuts it by a third, once for each round, since calls that were sent before the cut say nothing of it; a round
    with server errors does not grow. (Additive increase, multiplicative decrease: Chiu and Jain, 1989; the start is
    TCP's slow start.)

    Some servers refuse a share of all calls, however few are under way, since others use up their machines. Cuts do
    not help there, and would end at one call at a time. So each cut is on trial: where the share of refusals is not
    clearly smaller after it, the cut is taken back, and as many refusals are accepted from then on, until they get
    fewer. Refusals of more than a fifth of all calls are never accepted: a call would fail too often.

    Args:
        start: places at first.
        ceiling: most places.
        clock: seconds, for the log of changes.
    """

    def __init__(self, start: int, ceiling: int, clock: Callable[[], float]) -> None:
        super().__init__(ceiling)
        self.limit = min(start, ceiling)
        self.in_use = 0
        self.changes: list[ConcurrencyChange] = []
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._clock = clock
        self._begun = clock()
        self._slow_start = True
        self._accepted = 0.0  # the share of refusals that cuts do not lower
        self._before_cut = _BeforeCut(self.limit, slow_start=True)
        self._round = _Round(self.limit)

    async def acquire(self) -> None:
        """Wait for a place."""
        if self.in_use < self.limit and not self._waiting:
            self.in_use += 1
            return
        self._round.saturated = True
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.in_use -= 1  # it was ours already: pass it on
                self._admit()
            raise

    def note(self, outcome: Outcome) -> None:
        """Count an attempt, and adapt when a round is over."""
        if self._waiting:  # since an earlier round, maybe
            self._round.saturated = True
        self._round.count(outcome)
        if self._round.over:
            self._adapt(self._round)

    def release(self, outcome: Outcome | None) -> None:
        """Give a place back."""
        self.in_use -= 1
        if outcome is not None:
            self.note(outcome)
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self.in_use < self.limit:
            place = self._waiting.popleft()
            if not place.done():
                self.in_use += 1
                place.set_result(None)

    # --- rounds ------------------------------------------------------------------------------------------------------

    def _adapt(self, ended: "_Round") -> None:
        if ended.stage is _Stage.settling:
            self._try_cut(ended)
        elif ended.stage is _Stage.trial and self._was_in_vain(ended):
            self._take_back(ended)
        elif ended.refused > ended.allowed_refusals:
            self._cut(ended)
        else:
            self._go_on(ended)

    def _cut(self, ended: "_Round") -> None:
        self._before_cut = _BeforeCut(self.limit, self._slow_start)
        self._slow_start = False
        self._change(max(1, self.limit * 2 // 3), "rate limited")
        # What is under way was sent before the cut: it shows how things were then.
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
        if grows and ended.errors <= ended.seen * _MOST_ERRORS:
            growth = self.limit if self._slow_start else max(1, self.limit // 10)
            self._change(min(self.most, self.limit + growth), "saturated")
        # Never upwards: the places that it grows by would be taken for the server's way.
        self._accepted -= max(0.0, self._accepted - ended.share) / 10
        if self._accepted < _LEAST_ACCEPTED:
            self._accepted = 0.0
        self._begin()

    def _begin(self) -> None:
        if not self._accepted:
            self._round = _Round(self.limit)
            return
        attempts = self._enough(self._accepted)
        self._round = _Round(
            attempts, allowed_refusals=int(attempts * min(2 * self._accepted, _MOST_ACCEPTED))
        )

    def _enough(self, share: float) -> int:
        """Attempts that show a share of refusals: as many as hold a few."""
        return max(self.limit, min(_MOST_ATTEMPTS, round(_FEW / share)))

    def _change(self, limit: int, why: str) -> None:
        if limit == self.limit:
            return
        self.limit = limit
        if len(self.changes) < _MOST_CHANGES:
            seconds = round(self._clock() - self._begun, 3)
            self.changes.append(ConcurrencyChange(seconds=seconds, limit=limit, why=why))


class _Stage(Enum):
    """What the attempts of a round are of."""

    free = "free"
    settling = "settling"  # sent before a cut: their 429s are no news
    trial = "trial"  # sent after it


@dataclass(slots=True)
class _BeforeCut:
    """How things were before a cut, for the case that it is taken back."""

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
        saturated: places ran out.
    """

    attempts: int
    stage: _Stage = _Stage.free
    allowed_refusals: int = 0
    seen: int = 0
    refused: int = 0
    errors: int = 0
    saturated: bool = False

    def count(self, outcome: Outcome) -> None:
        """Count an attempt."""
        self.seen += 1
        self.refused += outcome is Outcome.rate_limited
        self.errors += outcome is Outcome.server_error

    @property
    def share(self) -> float:
        """Of refusals, among what has ended."""
        return self.refused / self.seen if self.seen else 0.0

    @property
    def complete(self) -> bool:
        return self.seen >= self.attempts

    @property
    def over(self) -> bool:
        return self.complete or (self.stage is not _Stage.settling and self.refused > self.allowed_refusals)


def window_of(limiters: Iterable[Limiter]) -> int:
    """How many items may be in flight: enough to keep every stage of a pair busy.

    Args:
        limiters: of its SUT, its annotators, and the SUTs that they ask.
    """
    return min(_MOST_IN_FLIGHT, 2 * sum(limiter.most for limiter in limiters))
