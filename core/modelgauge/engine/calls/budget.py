"""Budgets: requests and tokens a minute for one SUT; calls, tokens and dollars for a whole run.

Once a cap of the run is reached, no more calls are sent. `limits.py` limits concurrency.
"""

import asyncio
from dataclasses import dataclass, field

from modelgauge.data.responses import Usage
from modelgauge.data.results import Spent
from modelgauge.engine.bookkeeping.tally import Tally, current_tally
from modelgauge.engine.loop.together import WaitingLine
from modelgauge.errors import RunStoppedError
from modelgauge.wording.phrases import counted

_NOISE = 1e-9  # of sums of floats: ten times $0.1 are $0.9999999999999999
_NOBODY = Tally()  # a call outside of any pair: nobody's record says what it took
_ATTEMPT = Spent(attempts=1)


_LATELY = 100  # calls, of which it is known how much a call takes
_LEAST_WAIT = 0.001  # seconds between two looks at what has leaked


@dataclass(slots=True)
class Budget:
    """Caps of a run, and the spending so far.

    The tokens and dollars of a call are known only when it ends. Until then it counts as an average call of this
    session, and other calls wait while those in flight could reach a cap.

    Args:
        max_calls: attempts that are sent, of SUTs and annotators, further attempts included.
        max_tokens: input and output tokens that SUTs report.
        max_cost: US dollars that SUTs report.

    Attributes:
        is_metered: True if tokens or dollars, which SUTs report, are capped.
        is_capped: True if calls, tokens or dollars are capped.
        spent: by all runs of the command, in earlier sessions too; counted only if something is capped.
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    is_metered: bool = field(init=False)
    is_capped: bool = field(init=False)
    spent: Spent = field(default=Spent(), init=False)
    _before: Spent = field(default=Spent(), init=False)  # this session began
    _under_way: int = 0
    _answers: int = 0  # of this session
    _waiting: WaitingLine = field(default_factory=WaitingLine)
    _given_up: bool = False

    def __post_init__(self) -> None:
        self.is_metered = self.max_tokens is not None or self.max_cost is not None
        self.is_capped = self.max_calls is not None or self.is_metered

    def begin(self, spent: Spent) -> None:
        """Begin a session.

        Args:
            spent: by earlier sessions.
        """
        self.spent = self._before = spent

    async def room(self) -> None:
        """Wait while the calls in flight could reach a cap. Then call `begun`, and `ended` after the call."""
        while self._under_way and self._may_be_reached() and not (self.is_reached or self._given_up):
            await self._waiting.wait()

    def begun(self) -> None:
        """Count one more SUT call under way."""
        self._under_way += 1

    def ended(self) -> None:
        """Mark one SUT call as finished and wake the calls that wait for the budget."""
        self._under_way -= 1
        self._waiting.all()

    def give_up(self) -> None:
        """Wake all calls that wait here: no further call is sent."""
        self._given_up = True
        self._waiting.all()

    def _may_be_reached(self) -> bool:
        if not self._answers:
            return False
        spent, share = self.spent, self._under_way / self._answers
        taken = spent - self._before
        return _is_spent(spent.tokens + share * taken.tokens, self.max_tokens) or _is_spent(
            spent.cost_usd + share * taken.cost_usd, self.max_cost
        )

    def check(self) -> None:
        """Raise an error if a cap is reached.

        Raises:
            RunStoppedError: a cap is reached.
        """
        if _is_spent(self.spent.attempts, self.max_calls):
            raise _cap_error(counted(self.max_calls or 0, "call"), "--max-calls")
        if _is_spent(self.spent.tokens, self.max_tokens):
            raise _cap_error(counted(self.max_tokens or 0, "token"), "--max-tokens-total")
        if _is_spent(self.spent.cost_usd, self.max_cost):
            raise _cap_error(f"${self.max_cost:g}", "--max-cost")

    @property
    def is_reached(self) -> bool:
        """True if a cap is reached, so that no more attempts may be sent."""
        try:
            self.check()
        except RunStoppedError:
            return True
        return False

    def spend_call(self) -> None:
        """Count an attempt that is about to be sent."""
        current_tally.get(_NOBODY).attempts += 1
        if self.is_capped:
            self.spent += _ATTEMPT

    def take_back_call(self) -> None:
        """Refund an attempt that never reached a server."""
        current_tally.get(_NOBODY).attempts -= 1
        if self.is_capped:
            self.spent -= _ATTEMPT

    def spend(self, usage: Usage) -> None:
        """Count what a paid call cost."""
        tally, tokens, cost = current_tally.get(_NOBODY), count_tokens(usage), usage.cost_usd or 0.0
        tally.tokens += tokens
        tally.cost += cost
        tally.forward_passes += usage.forward_passes or 0
        if self.is_capped:
            self._answers += 1
            self.spent += Spent(tokens=tokens, cost_usd=cost)


def count_tokens(usage: Usage) -> int:
    """Input and output tokens together."""
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)


def _is_spent(spent: float, cap: float | None) -> bool:
    return cap is not None and spent >= cap * (1 - _NOISE)


def _cap_error(what: str, option: str) -> RunStoppedError:
    return RunStoppedError(
        f"The cap of {what} is reached.", fix=f"Raise {option}, and continue with `modelgauge resume`."
    )


# --- a minute ---------------------------------------------------------------------------------------------------------


class Rate:
    """Requests and tokens a minute, for one SUT.

    Args:
        requests: a minute, 0.5 for one in two minutes; None for no limit.
        tokens: a minute; None for no limit.
    """

    def __init__(self, requests: float | None, tokens: int | None) -> None:
        # One request's worth of burst: a provider counts the first minute too.
        self._requests = _Bucket(1, requests / 60, 1) if requests else None
        self._tokens = _Bucket(tokens, tokens / 60) if tokens else None
        self.limited = bool(requests or tokens)

    async def before(self) -> None:
        """Wait for the rate limit, but not if the run is stopping. Then the call is in flight until `ended`."""
        if self._tokens is not None:
            await self._tokens.turn()
        try:
            if self._requests is not None:
                await self._requests.turn()
                self._requests.spend(1)
                self._requests.ended()
        except BaseException:
            self.ended()
            raise

    def ended(self) -> None:
        """Mark one call as no longer under way."""
        if self._tokens is not None:
            self._tokens.ended()

    def after(self, tokens: int) -> None:
        """Count the tokens of a call: those that come after it wait until they fit into the minute."""
        if self._tokens is not None:
            self._tokens.spend(tokens)

    def give_up(self) -> None:
        """Wake all calls that wait here: no further call is sent."""
        for bucket in (self._requests, self._tokens):
            if bucket is not None:
                bucket.give_up()


class _Bucket:
    """A bucket of tokens or requests, which leaks all the time; first come, first served.

    What a call takes may be known only after it. So a call under way counts with as much as calls took lately; what it
    took beyond that is waited for by the next ones, however much it is.

    Args:
        most: what fits.
        per_second: what leaks in a second.
        usual: what a call takes, as far as is known.
    """

    def __init__(self, most: float, per_second: float, usual: float = 0.0) -> None:
        self._most, self._per_second = most, per_second
        self._loop = asyncio.get_running_loop()
        self._level, self._at = 0.0, self._loop.time()
        self._usual, self._seen_calls, self._under_way = usual, 0, 0
        self._waiting = WaitingLine()
        self._timer: asyncio.TimerHandle | None = None
        self._given_up = False

    async def turn(self) -> None:
        """Wait until another call fits; then it is under way."""
        self._loop.call_soon(self._admit)
        await self._waiting.wait(self.ended)

    def ended(self) -> None:
        """Mark one call as no longer under way."""
        self._under_way -= 1
        self._loop.call_soon(self._admit)  # by then what it took is counted

    def spend(self, taken: float) -> None:
        """Add the requests or tokens of a call to the bucket."""
        self._leak()
        self._level += taken
        self._seen_calls = min(_LATELY, self._seen_calls + 1)
        self._usual += (taken - self._usual) / self._seen_calls

    def give_up(self) -> None:
        """Wake all calls that wait here."""
        self._given_up = True
        self._admit()

    def _admit(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._leak()
        while (self._given_up or self._excess() <= 0) and self._waiting.next():
            self._under_way += 1
        if self._waiting and self._level > 0:  # else it is a call under way that is waited for
            seconds = min(self._level, self._excess()) / self._per_second
            self._timer = self._loop.call_later(max(seconds, _LEAST_WAIT), self._admit)

    def _excess(self) -> float:
        """Return by how much another call would exceed the limit."""
        usual = min(self._usual, self._most)
        return self._level + (self._under_way + 1) * usual - self._most

    def _leak(self) -> None:
        now = self._loop.time()
        self._level = max(0.0, self._level - (now - self._at) * self._per_second)
        self._at = now
