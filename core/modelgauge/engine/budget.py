"""What a whole run may spend: calls, tokens, dollars. When a cap is reached no call is sent any more."""

from dataclasses import dataclass

from modelgauge.data.responses import Usage
from modelgauge.engine.tally import Tally, current_tally
from modelgauge.errors import RunStoppedError

_NOBODY = Tally()  # a call outside of any pair: nobody's record says what it took


@dataclass(slots=True)
class Budget:
    """Caps, and what is spent of them.

    Args:
        max_calls: attempts that are sent, of SUTs and annotators, further attempts included.
        max_tokens: input and output tokens that SUTs report.
        max_cost: US dollars that SUTs report.
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0

    def check(self) -> None:
        """See that another attempt may be sent.

        Raises:
            RunStoppedError: a cap is reached.
        """
        if self.max_calls is not None and self.calls >= self.max_calls:
            raise _reached(f"{self.max_calls} calls", "--max-calls")
        if self.max_tokens is not None and self.tokens >= self.max_tokens:
            raise _reached(f"{self.max_tokens} tokens", "--max-tokens-total")
        if self.max_cost is not None and self.cost >= self.max_cost:
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
        self.tokens += tokens_of(usage)
        self.cost += usage.cost_usd or 0.0


def tokens_of(usage: Usage) -> int:
    """Input and output tokens together."""
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)


def _reached(what: str, option: str) -> RunStoppedError:
    return RunStoppedError(
        f"The cap of {what} is reached.", fix=f"Raise {option}, and continue with `modelgauge resume`."
    )
