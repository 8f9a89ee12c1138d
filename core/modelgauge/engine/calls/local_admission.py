"""Admission of calls to a target: concurrency, first calls, rate limits, caps of the run, and stopped SUTs."""

import asyncio
import logging
import math
from collections.abc import Callable, Iterator

from modelgauge.config.run_options import RunOptions
from modelgauge.data.responses import Usage
from modelgauge.engine.bookkeeping.failures import describe_error
from modelgauge.engine.calls.admission import Admission
from modelgauge.engine.calls.budget import Rate, count_tokens
from modelgauge.engine.calls.limits import AdaptiveLimiter, Limiter, Outcome
from modelgauge.engine.calls.policy import CallPolicy
from modelgauge.engine.calls.services import Services
from modelgauge.engine.calls.waiting import Pauses, Server
from modelgauge.errors import RunStoppedError
from modelgauge.interfaces.sut import ErrorClass, Fatal, Retry
from modelgauge.wording.phrases import time_in

_FATAL_CALLS = 3
_A_YEAR = 366 * 86400.0  # seconds; what is later is not a time at all
_PATIENCE = 0.5  # seconds; longer than a server takes to refuse a key, and slow answers are not waited for
_TIMED_OUT = (
    "'%s' left calls unanswered until they timed out, so fewer were sent at once, %d in the end: give "
    "--concurrency to begin with as many as it can answer, or a longer --timeout."
)
_CORRECT = (
    "Correct its key, its name or its options, and run the same command again. `modelgauge resume` goes on too, but "
    "leaves the items that failed as they are."
)
_ADDRESS = "Correct its address and run the command again; or start the server, and continue with `modelgauge resume`."
_START = "To wait longer, raise --call-timeout. Start the server, and continue with `modelgauge resume`."
_SLOWER = "Send fewer (--requests-per-minute) or wait longer (--call-timeout), and continue with `modelgauge resume`."
_LATER = "Wait until then, and continue with `modelgauge resume`."
_WAS_DOWN = "'%s' could not be reached for %.0f s; its calls waited for it."
_UNKNOWN = "%s does not hold for '%s': its responses tell no %s."

log = logging.getLogger(__name__)


class LocalAdmission:
    """The `Admission` of a target in the process of the run.

    Args:
        policy: how its calls are made.
        services: what the run's calls share.
    """

    def __init__(self, policy: CallPolicy, services: Services) -> None:
        options, is_sut, owner = services.options, policy.is_sut, policy.owner
        self._uid, self._services = owner.uid, services
        self.limiter: Limiter = policy.make_limiter(options)
        self.pauses = Pauses(services.sleep)
        self.server = Server(
            owner.uid, options.call_timeout, options.first_patience, self.pauses, services.clock
        )
        self.dead: RunStoppedError | None = None
        self._rate = (
            Rate(options.requests_per_minute, options.tokens_per_minute) if is_sut else Rate(None, None)
        )
        services.waits |= {self.pauses, self._rate}
        self._is_sent = policy.is_sent
        self._is_capped = self._is_sent and services.budget.is_capped
        self._is_metered = is_sut and services.budget.is_metered
        # Who says how many calls there shall be at once is heeded from the first.
        chosen = options.concurrency is not None or owner.max_concurrency is not None
        self._first_calls = FirstCalls(_FATAL_CALLS) if is_sut and not (policy.is_batched or chosen) else None
        self._may_wait = self._rate.limited or self._is_metered  # for more than a place and a server
        self._fatal_calls = 0
        self._unreported = UsageMonitor(owner.uid, options)

    async def enter(self, check: Callable[[], None] | None = None) -> None:
        """Wait for a place, the first calls, the server, the rate and the caps, in this order."""
        await self.limiter.acquire()
        entered = False
        try:
            if self._first_calls is not None:
                await self._first_calls.turn()
            await self.server.turn()
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
            self.server.leave()
            self.limiter.release(Outcome.other)
            raise
        if self._is_sent:
            self._services.budget.spend_call()
        if self._is_metered:
            self._services.budget.begun()

    def enter_at_once(self, check: Callable[[], None] | None = None) -> bool:
        """Let an attempt in that has nothing to wait for; return whether it is in. See `Admission`."""
        if self._may_wait or self._first_calls or self.server.is_down() or not self.limiter.take():
            return False
        try:
            self._check_allowed()
            if check is not None:
                check()
        except BaseException:
            self.limiter.release(Outcome.other)
            raise
        if self._is_sent:
            self._services.budget.spend_call()
        return True

    def leave(self, outcome: Outcome | None, seconds: float) -> None:
        """Give back what an attempt holds: its place, its share of the rate, its turn at the server."""
        self._rate.ended()
        if self._is_metered:
            self._services.budget.ended()
        self.server.leave()
        self.limiter.release(outcome, seconds)

    def succeeded(self, begun: float) -> None:
        """Note an attempt that was answered, and when it began: the object can be used."""
        self._fatal_calls = 0
        self.server.answered(begun)
        self._let_others_begin()

    def failed(self, verdict: ErrorClass, error: Exception) -> None:
        """Note an attempt that failed; some failures end the use of the object.

        These are three in a row that can never succeed, and nothing but calls that find no server for a while.
        """
        options, message = self._services.options, describe_error(error)
        is_lost = isinstance(verdict, Retry) and verdict.unreachable
        if is_lost and self._is_sent:
            self._services.budget.take_back_call()
        if is_lost and options.max_retries:
            if self.server.found_nobody(options.redactor.redact(message)):
                fix = _START if self.server.answers else _ADDRESS
                self._stop(f"could not be reached for {self.server.patience:g} s", message, fix)
        elif is_lost or isinstance(verdict, Fatal):
            self._fatal_calls += 1
            if self._fatal_calls >= _FATAL_CALLS and not self.server.answers:
                self._stop(f"was stopped after {_FATAL_CALLS} calls that cannot succeed", message, _CORRECT)
        if not isinstance(verdict, Fatal):
            self._let_others_begin()
        if not is_lost:
            self.server.found()

    def stop_at_limit(self, verdict: Retry, error: Exception) -> None:
        """End the use of an object whose rate limit lasts longer than a call may."""
        seconds, after = self._services.options.call_timeout, verdict.after or 0.0
        until = f", until {time_in(after)}" if seconds < after < _A_YEAR else ""
        why = f"is rate limited for longer than --call-timeout ({seconds:g} s){until}"
        self._stop(why, describe_error(error), _LATER if after == math.inf else _SLOWER)

    def _stop(self, why: str, message: str, fix: str) -> None:
        """Send no further call to this object."""
        if self.dead is None:
            self.dead = RunStoppedError(f"'{self._uid}' {why}: {message.rstrip('.')}.", fix=fix)
            self._let_others_begin()
            for wait in (self.server, self.pauses, self._rate):
                wait.give_up()

    def settle(self, usage: Usage | None) -> None:
        """Count what a paid call cost; None if its response does not say, or cannot be read."""
        self._unreported.look(usage)
        if usage is not None:
            self._services.budget.spend(usage)
            self._rate.after(count_tokens(usage))
            if self._services.budget.is_reached:
                self._services.give_up_waiting()

    def notes(self) -> Iterator[str]:
        """Return notes for the record about limits that could not be enforced, and about overload of the server."""
        yield from self._unreported.notes()
        if self.server.seconds:
            yield _WAS_DOWN % (self._uid, self.server.seconds)
        changes = self.limiter.changes if isinstance(self.limiter, AdaptiveLimiter) else []
        if any(change.why == "timed out" for change in changes):
            yield _TIMED_OUT % (self._uid, changes[-1].limit)

    def _check_allowed(self) -> None:
        stopped = self.dead or self._services.stopped
        if stopped is not None:
            raise stopped
        if self._is_capped:
            try:
                self._services.budget.check()
            except RunStoppedError:
                self._services.give_up_waiting()  # a cap is everybody's
                raise

    def _let_others_begin(self) -> None:
        if self._first_calls is not None:
            self._first_calls.end()
            self._first_calls = None


def create_admission(policy: CallPolicy, services: Services) -> Admission:
    """Return the admission of an object's calls, local or remote. Arguments are those of `LocalAdmission`."""
    if services.make_admission is not None:
        return services.make_admission(policy.owner, services)
    return LocalAdmission(policy, services)


class FirstCalls:
    """Barrier that holds back all but the first few calls until one of them has an outcome, or `patience` has
    passed.

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


class UsageMonitor:
    """Monitor of usage that warns once about each limit that cannot be enforced because responses report no usage.

    Args:
        uid: of the SUT.
        options: of the run, with its limits.
    """

    def __init__(self, uid: str, options: RunOptions) -> None:
        limits = {
            "--max-cost": ("cost (some SUTs take prices as options)", options.max_cost),
            "--max-tokens-total": ("tokens", options.max_tokens_total),
            "--tokens-per-minute": ("tokens", options.tokens_per_minute),
        }
        self._uid = uid
        self._limited = {option: what for option, (what, limit) in limits.items() if limit is not None}
        self._found: dict[str, str] = {}

    def look(self, usage: Usage | None) -> None:
        """Find out which limits do not hold.

        Args:
            usage: of a call; None if its response has none, or could not be read.
        """
        for option, what in self._limited.items():
            taken = usage and (usage.cost_usd if option == "--max-cost" else count_tokens(usage) or None)
            if taken is None and option not in self._found:
                self._found[option] = what
                log.warning(_UNKNOWN, option, self._uid, what)

    def notes(self) -> Iterator[str]:
        """Return the notes for the record."""
        for option, what in sorted(self._found.items()):
            yield _UNKNOWN % (option, self._uid, what)
