"""What a whole run may spend: calls, tokens, dollars. When a cap is reached no call is sent any more."""

import asyncio
from dataclasses import dataclass, field

from modelgauge.data.responses import Usage
from modelgauge.engine.bookkeeping.tally import Tally, current_tally
from modelgauge.errors import RunStoppedError

_NOISE = 1e-9  # of sums of floats: ten times $0.1 are $0.9999999999999999
_NOBODY = Tally()  # a call outside of any pair: nobody's record says what it took


@dataclass(slots=True)
class Budget:
    """Caps, and what is spent of them.

    What a call takes of tokens and dollars is known only after it. So a call under way counts as one that takes what
    calls took so far, and while those under way may reach a cap the others wait.

    Args:
        max_calls: attempts that are sent, of SUTs and annotators, further attempts included.
        max_tokens: input and output tokens that SUTs report.
        max_cost: US dollars that SUTs report.
        calls: what is spent of them, in earlier sessions too.
        tokens: likewise.
        cost: likewise.
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    _under_way: int = 0
    _answers: int = 0  # of this session, and what they took
    _taken: tuple[int, float] = (0, 0.0)
    _waiting: list[asyncio.Future[None]] = field(default_factory=list)
    _given_up: bool = False

    @property
    def is_metered(self) -> bool:
        """Whether there is a cap of what SUTs report."""
        return self.max_tokens is not None or self.max_cost is not None

    async def room(self) -> None:
        """Wait while a cap may be reached by what is under way; then another call is, until `ended`."""
        while self._under_way and self._may_be_reached() and not (self.is_reached or self._given_up):
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            await waiting

    def begun(self) -> None:
        """Count one more SUT call under way."""
        self._under_way += 1

    def ended(self) -> None:
        """Mark one SUT call as finished and wake the calls that wait for the budget."""
        self._under_way -= 1
        self._wake()

    def give_up(self) -> None:
        """Let all that wait go on: no further call is sent, and nobody shall wait to learn that."""
        self._given_up = True
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.done():
                one.set_result(None)

    def _may_be_reached(self) -> bool:
        if not self._answers:
            return False
        share = self._under_way / self._answers
        tokens, cost = self._taken
        return _is_spent(self.tokens + share * tokens, self.max_tokens) or _is_spent(
            self.cost + share * cost, self.max_cost
        )

    def check(self) -> None:
        """See that another attempt may be sent.

        Raises:
            RunStoppedError: a cap is reached.
        """
        if _is_spent(self.calls, self.max_calls):
            raise _reached(f"{self.max_calls} calls", "--max-calls")
        if _is_spent(self.tokens, self.max_tokens):
            raise _reached(f"{self.max_tokens} tokens", "--max-tokens-total")
        if _is_spent(self.cost, self.max_cost):
            raise _reached(f"${self.max_cost:g}", "--max-cost")

    @property
    def is_reached(self) -> bool:
        """Whether no further attempt may be sent."""
        try:
            self.check()
        except RunStoppedError:
            return True
        return False

    def spend_call(self) -> None:
        """Count an attempt that is about to be sent."""
        self.calls += 1
        current_tally.get(_NOBODY).attempts += 1

    def spend(self, usage: Usage) -> None:
        """Count what a paid call cost."""
        tally = current_tally.get(_NOBODY)
        tally.tokens += tokens_of(usage)
        tally.cost += usage.cost_usd or 0.0
        self._answers += 1
        self._taken = self._taken[0] + tokens_of(usage), self._taken[1] + (usage.cost_usd or 0.0)
        self.tokens += tokens_of(usage)
        self.cost += usage.cost_usd or 0.0


def tokens_of(usage: Usage) -> int:
    """Input and output tokens together."""
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)


def _is_spent(spent: float, cap: float | None) -> bool:
    """Whether a cap is reached; False where there is none."""
    return cap is not None and spent >= cap * (1 - _NOISE)


def _reached(what: str, option: str) -> RunStoppedError:
    return RunStoppedError(
        f"The cap of {what} is reached.", fix=f"Raise {option}, and continue with `modelgauge resume`."
    )
