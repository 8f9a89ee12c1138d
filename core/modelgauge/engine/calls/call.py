"""One call, from native request to native response: cache, single flight, limits, attempts, store.

All calls of SUTs, annotators and judges are made here, by `Target.call`.
"""

import inspect
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import cached_property
from typing import Any

from modelgauge.cache.keys import Entry, Key, KeyMaker
from modelgauge.data.annotations import CallTime
from modelgauge.data.responses import Usage
from modelgauge.engine.bookkeeping.app_trace import (
    attach_trace,
    get_report,
    trace_until,
    with_report,
    without_report,
)
from modelgauge.engine.bookkeeping.failures import add_note, describe_error
from modelgauge.engine.bookkeeping.tally import CallTally
from modelgauge.engine.calls.admission import Admission
from modelgauge.engine.calls.afresh import asks_afresh, note_reused
from modelgauge.engine.calls.batches import BatchCollector
from modelgauge.engine.calls.http_errors import note_body, noting_bodies
from modelgauge.engine.calls.limits import Outcome
from modelgauge.engine.calls.local_admission import create_admission
from modelgauge.engine.calls.policy import (
    CallPolicy,
    JudgeSUTs,
    Owner,
    declared_response,
    get_method,
    why_unkept,
)
from modelgauge.engine.calls.retries import Attempts, classify, get_outcome, usage_in
from modelgauge.engine.calls.services import CallResult, Flight, Services
from modelgauge.engine.calls.splitting import Split, Splitting
from modelgauge.engine.loop.deadlines import call_timed_out
from modelgauge.engine.loop.stalls import Paces
from modelgauge.errors import (
    CallTimeoutError,
    InvalidResponseError,
    NotCachedError,
    SingleCompletionError,
)
from modelgauge.interfaces.codec import ResponseCodec
from modelgauge.interfaces.sut import PromptResponseSUT, Retry
from modelgauge.observe.spans import Observation, Use, get_observation

_KEPT = "It was kept by an earlier run. To ask again: `modelgauge resume RUN --retry-failed`."
_FAILED = "'%s': attempt %d failed (%s: %s); the next one comes in %.1f s."

log = logging.getLogger(__name__)


class Target:
    """A SUT or an annotator as the engine sees it: something that can be called.

    Args:
        owner: the object.
        services: what the run's calls share.
        judge_suts: the SUTs that a judge asks, by its own names: its answers depend on theirs.

    Attributes:
        policy: how its calls are made.
        is_cached: whether its answers are kept.
        splitting: whether several completions of a prompt take a call each.
        open_first: opens the object before the first call that is sent; None if there is nothing to open then.
    """

    _keys: KeyMaker | None = None
    open_first: Callable[[], Awaitable[None]] | None = None

    def __init__(self, owner: Owner, services: Services, judge_suts: JudgeSUTs | None = None) -> None:
        self.owner, self.services = owner, services
        self.policy = CallPolicy.of(owner, judge_suts)
        self.codec = ResponseCodec(f"'{owner.uid}'", declared_response(owner))
        self.paces = Paces(owner)
        self._set_keys()
        # A judge's steps hold those of the SUTs that it asks, which are timed by themselves.
        self._timed: Callable[[Any], Any] = (
            self.paces.call.of_steps if not judge_suts else lambda awaitable: awaitable
        )
        self._method = get_method(owner)
        if not self.policy.is_immediate:
            _ = self.admission  # now, since it refuses a limit that is none

    def renew_keys(self) -> None:
        """Renew the keys with the current settings of the object."""
        self.policy = CallPolicy.of(self.owner, self.policy.judge_suts)
        self._set_keys()

    def _set_keys(self) -> None:
        keys = self.policy.make_keys() if self.services.caching else None
        if "splitting" not in vars(self) or keys != self._keys:
            self.is_cached, self._keys = keys is not None, keys
            self.splitting = Splitting(
                self.owner, self.services.lookups if keys else None, self.services.writer
            )

    @cached_property
    def admission(self) -> Admission:
        """The admission of attempts: limits, rates, caps."""
        return create_admission(self.policy, self.services)

    def notes(self) -> Iterator[str]:
        """Yield the notes of the record about the calls."""
        if "admission" in vars(self):
            yield from self.admission.notes()
        yield from self.splitting.notes()

    @cached_property
    def _observation(self) -> Observation | None:
        return get_observation(self.owner) or get_observation(self._method)

    @cached_property
    def _send(self) -> Callable[[Any, float], Awaitable[Any]]:
        """Sends a request, and gives up after some seconds."""
        services, owner, method = self.services, self.owner, self._method
        if self.policy.is_batched and isinstance(owner, PromptResponseSUT):
            return BatchCollector(owner, services.pool, services.deadlines).send
        if not self.policy.waits:
            at_once = services.deadlines.at_once
            return lambda request, _: at_once(self._timed(method(request)))
        if inspect.iscoroutinefunction(method):
            within = services.deadlines.within
            return lambda request, seconds: within(seconds, self._timed(method(request)))
        in_thread = noting_bodies(method)
        return lambda request, seconds: self._in_thread(in_thread, request, seconds)

    async def _in_thread(self, method: Callable[[Any], Any], request: Any, seconds: float) -> Any:
        response = await self.services.pool.run(method, request, seconds)
        if inspect.isawaitable(response):
            return await self.services.deadlines.within(seconds, self._timed(response))
        return response

    async def call(
        self, request: Any, tally: CallTally, number: int | None = None, split: Split | None = None
    ) -> CallResult:
        """Answer a native request, from the cache where it is there.

        Args:
            request: a JSON value or pydantic model.
            tally: where the call is counted.
            number: of the call among the repeats of the same request; by default the run's first.
            split: what is asked instead where a call gives one completion only.

        Raises:
            RunStoppedError: no call may be sent any more; this one was not.
            SingleCompletionError: `split` is to be asked; the cache has no answer to the whole request.
            Exception: what the last attempt raised; nothing is cached then.
        """
        if self._keys is None:
            called = await (
                self._unless_split(request, tally, split)
                if not self.policy.is_immediate
                else self._at_once(request, tally)
            )
            tally.paid += 1
            try:
                called.response = self._revived(called.response)
                self._lacks_completions(split, request, called.response)
            except Exception as error:
                attach_trace(error, called.report)
                raise
            return called
        key = self._keys.key(request, self.services.options.first_repeat if number is None else number)
        while (flight := self.services.flights.get(key.digest)) is not None:
            text = await flight.landing()
            if text is not None and not (flight.is_reused and asks_afresh()):
                tally.cached += 1
                return self._reread(text, key, flight)
        return await self._first(key, request, tally, split)

    async def _at_once(self, request: Any, tally: CallTally) -> CallResult:
        """Call a purely computing method directly. After a retryable error, use the normal path."""
        try:
            return CallResult(await self.services.deadlines.at_once(self._timed(self._method(request))))
        except Exception as error:
            if not self.services.options.max_retries or classify(self.owner, error) is None:
                raise
        return await self._pay(request, tally, 1)

    async def _first(self, key: Key, request: Any, tally: CallTally, split: Split | None) -> CallResult:
        """Answer a request that nobody else is asking; others who ask the same wait for this."""
        services = self.services
        flight = services.flights[key.digest] = Flight()
        called: CallResult | None = None
        leased: Key | None = None
        try:
            keeps = services.lookups if not asks_afresh() else None
            text = await keeps.get(key.digest) if keeps else None
            if text is None:
                # The key of the first completion, where each takes a call of its own.
                first = self._keys.key(split.request, split.number) if split and self._keys else None
                leased = first and await self.splitting.lease(first)
                called = await self._unless_split(request, tally, split)
                tally.paid += 1
                text, called.response = self._text_to_store(called.response)
                text = with_report(text, called.report)
                if first is not None and self._lacks_completions(split, request, called.response):
                    self._give_back(key)
                    flight.fail(self.splitting.error)
                    key, leased = first, None
                    flight = services.flights[key.digest] = Flight()
                called.key = self._keep(key, text, tally)
            else:
                flight.is_reused = True
                called = self._reread(text, key, flight)
                tally.cached += 1
                self._end_flight(key)
        except BaseException as error:
            self._give_back(key)
            if called is not None:
                attach_trace(error, called.report)
            flight.fail(error)
            del flight  # the error that it holds holds this frame: what both hold is freed now, not some time
            raise
        finally:
            if leased is not None and services.lookups is not None:
                services.lookups.give_back(leased.digest)
        flight.land(text)
        return called

    async def _unless_split(self, request: Any, tally: CallTally, split: Split | None) -> CallResult:
        """Pay for a response, unless a call is known to give one completion only, or turns out to.

        Raises:
            SingleCompletionError: `split` is to be asked.
        """
        if split is None:
            return await self._pay(request, tally)
        self.splitting.check()
        try:
            return await self._pay(request, tally, check=self.splitting.check)
        except SingleCompletionError:
            self.splitting.learn()
            raise

    def _lacks_completions(self, split: Split | None, request: Any, response: Any) -> bool:
        """Return whether a response has only the first of several requested completions."""
        is_first = split is not None and split.is_single(request, response)
        if is_first:
            self.splitting.learn()
        return is_first

    def _keep(self, key: Key, text: str, tally: CallTally) -> str | None:
        """Store a response, unless there is a secret in the call; return its key, None if it is not stored."""
        services, keys = self.services, self._keys
        why = keys and why_unkept(self.owner, keys, key, text, services.options.redactor)
        if why:
            tally.unkept[f"'{self.owner.uid}' with {why}"] += 1
            self._give_back(key)
            return None
        # The flight stays until the row is committed: an identical call finds one or the other.
        services.writer.put(Entry(key, text), lambda: self._end_flight(key))
        return key.digest

    def _give_back(self, key: Key) -> None:
        self._end_flight(key)
        if self.services.lookups is not None:
            self.services.lookups.give_back(key.digest)

    def _end_flight(self, key: Key) -> None:
        self.services.flights.pop(key.digest, None)

    def _reread(self, text: str, key: Key, flight: Flight) -> CallResult:
        """Parse a stored response. If its class no longer accepts it, raise an error that explains how to ask again."""
        if flight.is_reused:
            note_reused(key.digest)
        plain, report = without_report(text)
        try:
            return CallResult(self.codec.load(plain), report, paid=False, key=key.digest)
        except InvalidResponseError as error:
            add_note(error, _KEPT)
            raise

    def _text_to_store(self, response: Any) -> tuple[str, Any]:
        """Return the text of a response for the cache, and the response as revived from that text."""
        try:
            text = self.codec.dump(response)
        except InvalidResponseError:
            self.settle(None)
            raise
        return text, response if self.codec.comes_back(response) else self.codec.load(text)

    def _revived(self, response: Any) -> Any:
        """Return an uncached response in the form that the cache would return."""
        return response if self.codec.comes_back(response) else self._text_to_store(response)[1]

    async def _get_ready(self) -> None:
        """Open the object, if that waits for the first call that is sent.

        Raises:
            NotCachedError: no call is sent in this run.
            RunStoppedError: the object cannot be opened.
        """
        if self.services.options.only_cached and self.policy.is_sent:
            problem = f"The cache has no answer of '{self.owner.uid}' to this, and nothing is sent."
            raise NotCachedError(problem, fix="Leave only_cached out to ask for it.")
        if self.open_first is not None:
            await self.open_first()

    async def _pay(
        self, request: Any, tally: CallTally, attempt: int = 0, check: Callable[[], None] | None = None
    ) -> CallResult:
        """Send the request until it is answered, or no further attempt is worth it.

        What an observed app did in the last attempt comes with the answer, or with the error.

        Args:
            request: the native request.
            tally: where answers are counted that the SUT refuses.
            attempt: how many have failed already.
            check: raises where the request is to be sent no more; it is called right before.
        """
        services, admission, policy = self.services, self.admission, self.policy
        await self._get_ready()
        queued = services.clock()
        attempts = Attempts(services.options, services.backoff, admission.server, queued, attempt)
        while True:
            if not admission.enter_at_once(check):
                await admission.enter(check)
            begun = services.clock()
            left = attempts.begin(queued, begun)
            outcome: Outcome | None = Outcome.other
            observes = policy.leaves_spans and Observation.exists
            use = Use(self.owner.uid, {"request": request}, self._observation) if observes else None
            try:
                response = await self._attempt(request, left, use)
                outcome = Outcome.ok
            except Exception as error:
                verdict = classify(self.owner, error)
                outcome = failed = get_outcome(verdict, error)
                if usage_in(error) is not None:
                    tally.paid += 1
                    self.settle(usage_in(error))
                admission.failed(verdict, error)
                wait = attempts.pause_after(verdict, error, services.clock())
                if attempts.is_shut_out and isinstance(verdict, Retry):
                    wait = 0.0
                    admission.stop_at_limit(verdict, error)
                if wait is None:
                    attach_trace(error, None if use is None else trace_until(use, error))
                    raise
                attempt += 1
                why = services.options.redactor.redact(describe_error(error))
                log.info(_FAILED, self.owner.uid, attempt, failed.value, why, wait)
                if failed.is_overload:  # the place is kept: no other call is sent in its stead
                    admission.limiter.note(failed)
                    outcome = None
                    await admission.pauses.pause(wait)
            else:
                seconds = services.clock() - begun
                services.turns.note(seconds)
                admission.succeeded(begun)
                took = CallTime(round(time.time() - seconds, 3), round(seconds, 4)) if policy.waits else None
                return CallResult(response, None if use is None else get_report(use, response), took)
            finally:
                admission.leave(outcome, services.clock() - begun)
            if not failed.is_overload:
                await admission.pauses.pause(wait)
            queued = services.clock()

    def settle(self, usage: Usage | None) -> None:
        """Count what an answer of a SUT took; None if nobody can say it."""
        if isinstance(self.owner, PromptResponseSUT):
            self.admission.settle(usage)

    async def _attempt(self, request: Any, left: float, use: Use | None) -> Any:
        """Send the request once, under the deadlines of the attempt and of the call.

        Args:
            request: the native request.
            left: seconds of the call's deadline.
            use: records what is observed meanwhile.
        """
        options = self.services.options
        if left <= 0:
            raise call_timed_out(options.call_timeout)
        seconds = min(options.attempt_timeout, left) if self.owner.has_deadline else math.inf
        try:
            if use is None:
                return await self._send(request, seconds)
            with use:
                return await self._send(request, seconds)
        except CallTimeoutError as error:
            if left >= options.attempt_timeout:
                raise
            raise call_timed_out(options.call_timeout) from error
        except Exception as error:
            note_body(error)
            raise
