"""Whether a target may be called now: places, first calls, a rate a minute, caps of the run, and what stopped it."""

import asyncio
import logging
from collections.abc import Callable, Iterator

from modelgauge.config.run_options import RunOptions
from modelgauge.data.responses import Usage
from modelgauge.engine.bookkeeping.failures import message_of
from modelgauge.engine.calls.budget import Rate, tokens_of
from modelgauge.engine.calls.limits import AdaptiveLimiter, Limiter, Outcome
from modelgauge.engine.calls.services import Services
from modelgauge.engine.calls.traits import JudgeSUTs, Owner, limiter_of
from modelgauge.errors import RunStoppedError
from modelgauge.interfaces.sut import ErrorClass, Fatal, PromptResponseSUT

_FATAL_CALLS = 3
_PATIENCE = 0.5  # seconds; longer than a server takes to refuse a key, and slow answers are not waited for
_TIMED_OUT = (
    "'%s' left calls unanswered until they timed out, so fewer were sent at once, %d in the end: give "
    "--concurrency to begin with as many as it can answer, or a longer --timeout."
)
_UNKNOWN = "%s does not hold for '%s': its responses tell no %s."

log = logging.getLogger(__name__)


class Admission:
    """Lets attempts of one target in, and out again: each `enter` is followed by one `leave`.

    Args:
        owner: is called.
        services: what the run's calls share.
        judge_suts: the SUTs that a judge asks, by its own names.
        batched: whether requests are sent in batches.

    Attributes:
        limiter: its places.
        dead: why it is not called any more; None while it is.
    """

    def __init__(
        self,
        owner: Owner,
        services: Services,
        judge_suts: JudgeSUTs | None,
        *,
        batched: bool,
    ) -> None:
        options, is_sut = services.options, isinstance(owner, PromptResponseSUT)
        self._uid, self._services = owner.uid, services
        self.limiter: Limiter = limiter_of(owner, options, batched=batched)
        self.dead: RunStoppedError | None = None
        self._rate = (
            Rate(options.requests_per_minute, options.tokens_per_minute) if is_sut else Rate(None, None)
        )
        if self._rate.limited:
            services.rates.append(self._rate)
        # Judges and cheap metrics send nothing themselves: what they ask is capped where it is asked.
        self._is_sent = is_sut or not (owner.is_cheap or judge_suts)
        self._is_metered = is_sut and services.budget.is_metered
        # Who says how many calls there shall be at once is heeded from the first.
        chosen = options.concurrency is not None or owner.max_concurrency is not None
        self._first_calls = FirstCalls(_FATAL_CALLS) if is_sut and not (batched or chosen) else None
        self._fatal_calls = 0
        self._succeeded = False
        self._unreported = Unreported(owner.uid, options)

    async def enter(self, check: Callable[[], None] | None = None) -> None:
        """Wait until an attempt may be sent. Whether the run is stopped is checked after the wait.

        Args:
            check: of this attempt, after the wait.

        Raises:
            RunStoppedError: no attempt may be sent any more.
            Exception: what `check` raised.
        """
        await self.limiter.acquire()
        entered = False
        try:
            if self._first_calls is not None:
                await self._first_calls.turn()
            if self._rate.limited:
                self._check_allowed()  # nobody waits for a minute to learn that
                await self._rate.before()
            entered = True
            if self._is_metered:
                await self._services.budget.room()
            self._check_allowed()
            if check is not None:
                check()
        except BaseException:
            if entered:
                self._rate.ended()
            self.limiter.release(Outcome.other)
            raise
        if self._is_sent:
            self._services.budget.spend_call()
        if self._is_metered:
            self._services.budget.begun()

    def leave(self, outcome: Outcome | None, seconds: float) -> None:
        """End an attempt.

        Args:
            outcome: how it ended; None where the limiter knows that already, since the place was kept for a while.
            seconds: it took.
        """
        self._rate.ended()
        if self._is_metered:
            self._services.budget.ended()
        self.limiter.release(outcome, seconds)

    def succeeded(self) -> None:
        """Note an attempt that was answered: the object can be used."""
        self._succeeded, self._fatal_calls = True, 0
        self._let_others_begin()

    def failed(self, verdict: ErrorClass, error: Exception) -> None:
        """Note an attempt that failed; three in a row that can never succeed end the use of the object.

        Args:
            verdict: the class of the error.
            error: what was raised.
        """
        if not isinstance(verdict, Fatal):
            self._let_others_begin()
            return
        self._fatal_calls += 1
        if self._fatal_calls >= _FATAL_CALLS and not self._succeeded and self.dead is None:
            self.dead = RunStoppedError(
                f"'{self._uid}' was stopped after {_FATAL_CALLS} calls that cannot succeed: "
                f"{message_of(error).rstrip('.')}.",
                fix="Correct its key, its name or its options, and run the same command again. `modelgauge resume` "
                "goes on too, but leaves the items that failed as they are.",
            )
            self._let_others_begin()
            self._rate.give_up()

    def settle(self, usage: Usage | None) -> None:
        """Count what a paid call cost; None where its response does not say, or cannot be read."""
        self._unreported.look(usage)
        if usage is not None:
            self._services.budget.spend(usage)
            self._rate.after(tokens_of(usage))
            if self._services.budget.is_reached:
                self._services.give_up_waiting()

    def notes(self) -> Iterator[str]:
        """The limits that did not hold, and what the server could not bear, for the record."""
        yield from self._unreported.notes()
        changes = self.limiter.changes if isinstance(self.limiter, AdaptiveLimiter) else []
        if any(change.why == "timed out" for change in changes):
            yield _TIMED_OUT % (self._uid, changes[-1].limit)

    def _check_allowed(self) -> None:
        stopped = self.dead or self._services.stopped
        if stopped is not None:
            raise stopped
        if self._is_sent:
            try:
                self._services.budget.check()
            except RunStoppedError:
                self._services.give_up_waiting()  # a cap is everybody's
                raise

    def _let_others_begin(self) -> None:
        if self._first_calls is not None:
            self._first_calls.end()
            self._first_calls = None


class FirstCalls:
    """Holds back all calls but the first few until one of these has an outcome, or has taken a while.

    So a bad key is not sent twenty times at once.

    Args:
        calls: that are sent at once.
        patience: seconds that the others wait at most.
    """

    def __init__(self, calls: int, patience: float = _PATIENCE) -> None:
        self._left, self._patience = calls, patience
        self._ended = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    async def turn(self) -> None:
        """Wait until a call may be sent, or is known to be in vain."""
        if self._left > 0:
            self._left -= 1
            return
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._patience, self.end)
        await self._ended.wait()

    def end(self) -> None:
        """Let the other calls start: the first calls have shown whether the object works."""
        self._ended.set()
        if self._timer is not None:
            self._timer.cancel()


class Unreported:
    """Looks at each usage, and warns once of each limit that cannot hold, since responses do not say what they took.

    Args:
        uid: of the SUT.
        options: of the run, with its limits.
    """

    def __init__(self, uid: str, options: RunOptions) -> None:
        self._uid, self._options = uid, options
        self._found: dict[str, str] = {}

    def look(self, usage: Usage | None) -> None:
        """Find out which limits do not hold.

        Args:
            usage: of a call; None where its response has none, or could not be read.
        """
        options = self._options
        limits: list[tuple[str, str, float | None]] = []
        if usage is None or usage.cost_usd is None:
            limits += [("--max-cost", "cost (some SUTs take prices as options)", options.max_cost)]
        if usage is None or not tokens_of(usage):
            limits += [("--max-tokens-total", "tokens", options.max_tokens_total)]
            limits += [("--tokens-per-minute", "tokens", options.tokens_per_minute)]
        for option, what, limit in limits:
            if limit is not None and option not in self._found:
                self._found[option] = what
                log.warning(_UNKNOWN, option, self._uid, what)

    def notes(self) -> Iterator[str]:
        """What the record shall say."""
        for option, what in sorted(self._found.items()):
            yield _UNKNOWN % (option, self._uid, what)
