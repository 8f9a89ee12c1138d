"""Targets for all SUTs and annotators, each opened once.

Each run, session of pytest, and judgement outside a run has its own.
"""

import asyncio
import inspect
import logging
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager, AsyncExitStack
from functools import partial
from itertools import islice
from typing import Any, Self, cast

from modelgauge.cache.opening import open_cache
from modelgauge.config.run_options import RunOptions
from modelgauge.data.items import PromptWithContext
from modelgauge.data.prompts import AnyPrompt
from modelgauge.data.responses import SUTResponse
from modelgauge.engine.bookkeeping.failures import NOT_OF_THE_ITEM, AtStage, describe_error
from modelgauge.engine.bookkeeping.tally import Tally, current_tally, judge_keys
from modelgauge.engine.calls.admission import Admission
from modelgauge.engine.calls.ask_sut import ask_sut
from modelgauge.engine.calls.budget import Budget
from modelgauge.engine.calls.call import Target
from modelgauge.engine.calls.lookups import Lookups
from modelgauge.engine.calls.policy import CallPolicy, JudgeSUTs, Owner, learn_secrets
from modelgauge.engine.calls.services import Services
from modelgauge.engine.earlier_run import RecordedAnswers
from modelgauge.engine.items.answers import Answerer, PromptAnswerer, asking_cases, asking_sut
from modelgauge.engine.items.item import ItemWorker
from modelgauge.engine.items.measurer import Measurer, reducer
from modelgauge.engine.loop.deadlines import Deadlines, in_this_task
from modelgauge.engine.loop.stalls import watching_the_loop
from modelgauge.engine.loop.threads import CallPool, in_thread
from modelgauge.engine.loop.together import once
from modelgauge.engine.run_files.writer import Writer
from modelgauge.engine.work import Callee, Work
from modelgauge.errors import (
    BlockedError,
    CallError,
    CallTimeoutError,
    DefinitionError,
    ModelGaugeError,
    NotCachedError,
    RunStoppedError,
)
from modelgauge.files.reserve import Reserve
from modelgauge.interfaces.annotator import CompletionAnnotator, current_asker
from modelgauge.interfaces.identity import overrides
from modelgauge.interfaces.sut import PromptResponseSUT
from modelgauge.interfaces.watched import in_use
from modelgauge.wording.phrases import beginning

log = logging.getLogger(__name__)

_LONG = 5.0  # seconds, after which a warning says what is waited for
_OPENING = "'%s' is still being opened; it is given up after %g s (--call-timeout)."


_CHANGED = "'%s' has changed since it was made: %s."
_LONGEST = 60
_OBJECT = '"$object":'


class TargetPool:
    """The objects that are called, and the services that their calls share. Used as `async with`.

    Args:
        options: of the run.
        called: the objects that are going to be called; a cache is opened only where the calls of one can be cached.
        disk_failed: gets the error, once, when the disk refuses.
        make_admission: makes what stands before the calls, where the limits are those of another process.

    Attributes:
        services: what the calls share.
    """

    services: Services

    def __init__(
        self,
        options: RunOptions,
        called: Iterable[Callee],
        disk_failed: Callable[[ModelGaugeError], object] = log.error,
        make_admission: Callable[[object, Services], Admission] | None = None,
    ) -> None:
        self.options = options
        self._caches = options.caching and any(CallPolicy.of(*callee).is_cached for callee in called)
        self._disk_failed, self._entrances = disk_failed, make_admission
        self._targets: dict[int, Target] = {}
        self._asked: dict[tuple[int, str], Target] = {}
        self._opened: dict[int, Owner] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        try:
            await self._open_services(self._stack)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        try:
            for owner in reversed(self._opened.values()):
                await self._close(owner)
        finally:
            await self._stack.aclose()

    # --- questions of judges -----------------------------------------------------------------------------------------

    async def ask(self, annotator: CompletionAnnotator[Any], name: str, prompt: AnyPrompt) -> SUTResponse:
        """Answer a judge's question by a call like any other."""
        target = self._asked_by(annotator, name)
        if asyncio.get_running_loop() is not self._loop:
            raise DefinitionError(
                f"'{annotator.uid}' asked SUT '{target.owner.uid}' in an event loop of its own.",
                fix="Write an async def, and await self.ask(…) in it, without asyncio.run.",
            )
        with self.services.deadlines.paused():
            try:
                asked = await ask_sut(
                    target, PromptWithContext(prompt), current_tally.get(Tally()).judge_calls
                )
            except (RunStoppedError, DefinitionError, NotCachedError):
                raise
            except Exception as error:
                # Not the error itself: its call was retried already, and the annotator's need not be.
                raise CallError(
                    f"SUT '{target.owner.uid}', which '{annotator.uid}' asked, failed: "
                    f"{type(error).__name__}: {describe_error(error).rstrip('.')}.",
                    fix="See why it failed in the traceback.",
                ) from error
        judge_keys.get([]).extend(asked.keys)
        if asked.response.is_blocked:
            raise BlockedError(
                f"The service of SUT '{target.owner.uid}', which '{annotator.uid}' asked, blocked its answer.",
                fix="Choose another judge, or change the content filter of the service.",
            )
        return asked.response.unannotated

    def asked_sut(self, annotator: CompletionAnnotator[Any], name: str) -> PromptResponseSUT[Any, Any]:
        """Return the SUT that a judge asks under a name."""
        sut = self._asked_by(annotator, name).owner
        if not isinstance(sut, PromptResponseSUT):
            raise TypeError(sut)
        return sut

    def keeps_answers(self, annotator: CompletionAnnotator[Any], name: str) -> bool:
        """Return whether the answers of a judge's SUT are in the cache."""
        return self.services.caching and self._asked_by(annotator, name).is_cached

    def waiting(self) -> AbstractContextManager[None]:
        """Stop the clock of the call's deadline as long as the block runs."""
        return self.services.deadlines.paused()

    def _asked_by(self, annotator: CompletionAnnotator[Any], name: str) -> Target:
        target = self._asked.get((id(annotator), name))
        if target is None:
            known = sorted(asked for owner, asked in self._asked if owner == id(annotator))
            raise DefinitionError(
                f"'{annotator.uid}' asked a SUT '{name}' that it does not name in get_suts.",
                fix=f"It names: {', '.join(known) or 'none'}.",
            )
        return target

    async def _open_services(self, stack: AsyncExitStack) -> None:
        self._loop, options = asyncio.get_running_loop(), self.options
        stack.callback(current_asker.reset, current_asker.set(self))
        stack.enter_context(watching_the_loop())
        cache = None
        if self._caches:
            cache = await in_thread(lambda: open_cache(options.cache, options.data_dir), "cache")
            stack.push_async_callback(in_thread, cache.leave, "cache")
        close = cache.close if cache is not None else lambda: None
        folder = (cache.backend.folder if cache is not None else None) or options.runs
        writer = Writer(cache, self._disk_failed, close, Reserve(folder, options.workers or 1))
        stack.push_async_callback(writer.close)
        lookups: Lookups | None = None
        if cache is not None:
            lookups = Lookups(cache, options.call_timeout)
            stack.push_async_callback(lookups.close)
        pool = CallPool()
        stack.callback(pool.close)
        deadlines = Deadlines()
        stack.callback(deadlines.close)
        budget = Budget(options.max_calls, options.max_tokens_total, options.max_cost)
        self.services = Services(options, writer, lookups, pool, deadlines, budget, self._entrances)

    # --- targets -----------------------------------------------------------------------------------------------------

    async def worker(self, work: Work, tally: Tally) -> ItemWorker:
        """Make the worker for the items of a work.

        Args:
            work: what to do; where recorded answers are measured, their journal is read here.
            tally: counts.

        Raises:
            RecordError: the journal of the recorded answers is damaged.
        """
        options, test = self.options, work.test
        return ItemWorker(
            await self._answerer(work, tally),
            {
                name: self.target(annotator, work.judge_suts.get(name))
                for name, annotator in work.annotators.items()
            },
            test.choose_annotators if overrides(type(test), "choose_annotators") else None,
            Measurer(test),
            work.answer_source.uid,
            tally,
            self.services.turns,
            reducer(options.reduce, options.repeats),
        )

    async def _answerer(self, work: Work, tally: Tally) -> Answerer:
        options, answer_source = self.options, work.answer_source
        if (run := answer_source.journal) is not None:
            redact, uid = options.redactor.redact_json_text, work.test.uid
            return await in_thread(lambda: RecordedAnswers(run, uid, options.repeats, redact), "journal")
        if answer_source.given is not None:
            ask = asking_cases(answer_source.given)
        else:
            sut = self.target(cast("Owner", answer_source.sut))
            ask = asking_sut(sut, tally.sut_calls, options.sut_options)
        return PromptAnswerer(
            AtStage("sut", answer_source.uid), ask, reducer(options.reduce, options.repeats)
        )

    def list_targets(self, work: Work) -> list[Target]:
        """Return the targets of all objects that a work calls, without duplicates."""
        suts = [] if work.answer_source.sut is None else [self.target(work.answer_source.sut)]
        found = [
            self.connect(annotator, work.judge_suts.get(name)) for name, annotator in work.annotators.items()
        ]
        targets = list(dict.fromkeys([*suts, *(target for several in found for target in several)]))
        for target in targets:
            target.renew_keys()
        return targets

    def connect(self, annotator: CompletionAnnotator[Any], suts: JudgeSUTs | None) -> list[Target]:
        """Connect an annotator and the SUTs that it asks to their targets."""
        for name, sut in (suts or {}).items():
            self._asked[id(annotator), name] = self.target(sut)
        return [self.target(annotator, suts), *(self.target(sut) for sut in (suts or {}).values())]

    def target(self, owner: Owner, judge_suts: JudgeSUTs | None = None) -> Target:
        """Return the target of an object, creating it on first use.

        Args:
            owner: is called.
            judge_suts: the SUTs that it asks, by its own names.
        """
        if id(owner) not in self._targets:
            learn_secrets(owner, self.options.redactor)
            self._targets[id(owner)] = Target(owner, self.services, judge_suts)
        return self._targets[id(owner)]

    def notes(self, work: Work) -> tuple[str, ...]:
        """Return notes for the record on objects of a work that are uncacheable, or changed since they were made."""
        reasons = [
            owner.why_uncacheable(judge_suts)
            for owner, judge_suts in work.called()
            if self.options.caching and not owner.is_cheap
        ]
        uncached = [f"Not cached: {why}." for why in reasons if why is not None]
        changes = {callee.owner.uid: callee.owner.changed_settings().settings for callee in work.called()}
        changed = [_CHANGED % (uid, _values(settings)) for uid, settings in changes.items() if settings]
        return tuple(dict.fromkeys([*uncached, *changed]))

    async def open(self, target: Target) -> RunStoppedError | None:
        """Open a target's object, unless it is open; the same task must close it.

        A plain `def open` waits for the first call that is sent: it may load a model, which cached answers do not need.

        Returns:
            Why it cannot be opened; None if it could.
        """
        owner = target.owner
        if id(owner) in self._opened:
            self._opened[id(owner)] = self._opened.pop(id(owner))  # the last that was used
            return None
        if overrides(type(owner), "open") and not inspect.iscoroutinefunction(owner.open):
            target.open_first = once(partial(self._open_late, owner))
            return None
        if (failure := await self._failure_of_opening(owner)) is None:
            self._opened[id(owner)] = owner
        return failure

    async def _open_late(self, owner: Owner) -> None:
        """Open an object while the run goes on.

        Raises:
            RunStoppedError: it cannot be opened, or the run is stopping.
        """
        if self.services.stopped is not None:
            raise self.services.stopped
        if (failure := await self._failure_of_opening(owner)) is not None:
            raise failure
        self._opened[id(owner)] = owner

    async def close_idle(self, in_use: Collection[int], most: int) -> None:
        """Close objects in the order in which they were last used, until few are open; in the task that opened them.

        Args:
            in_use: the ids of objects that stay.
            most: how many stay open.
        """
        idle = (opened for opened in self._opened if opened not in in_use)
        for key in list(islice(idle, max(0, len(self._opened) - most))):
            await self._close(self._opened.pop(key))
            del self._targets[key]
            self._asked = {asked: target for asked, target in self._asked.items() if asked[0] != key}

    async def _failure_of_opening(self, owner: Owner) -> RunStoppedError | None:
        if not overrides(type(owner), "open"):  # nearly always
            return None
        seconds = self.options.call_timeout if owner.has_deadline else math.inf
        opening = asyncio.get_running_loop().call_later(
            _LONG if owner.has_deadline else seconds, log.warning, _OPENING, owner.uid, seconds
        )
        try:
            if inspect.iscoroutinefunction(owner.open):
                await in_this_task(seconds, owner.open())
            else:
                await in_this_task(seconds, in_thread(owner.open, "open"))
        except NOT_OF_THE_ITEM:
            raise
        except Exception as error:  # noqa: BLE001  the author's; it stands in the records
            why = f"{type(error).__name__}: {describe_error(error).rstrip('.')}"
            fix = "Correct its open(), its key or its options, and run the same command again."
            if isinstance(error, CallTimeoutError):
                why = f"it took more than {seconds:g} s"
                fix = "Find out what its open() waits for, or raise --call-timeout; then run the same command again."
            failure = RunStoppedError(f"'{owner.uid}' could not be opened: {why}.", fix=fix)
            failure.__cause__ = error
            return failure
        finally:
            opening.cancel()
        return None

    async def _close(self, owner: Owner) -> None:
        """Close an object, and log what that raises: the records are written, and the run must end."""
        if not overrides(type(owner), "close"):
            return
        try:
            await in_this_task(self.options.attempt_timeout, owner.close())
        except NOT_OF_THE_ITEM:
            raise
        except Exception:
            log.exception("'%s' could not be closed.", owner.uid)


def _values(settings: Mapping[str, str]) -> str:
    """Describe the current values of attributes."""
    return ", ".join(
        f"{name} contains an object that has changed"
        if _OBJECT in text
        else f"{name} is now {beginning(text, _LONGEST)}"
        for name, text in settings.items()
    )


async def call_once(
    options: RunOptions, annotator: CompletionAnnotator[Any], suts: JudgeSUTs, request: Any
) -> Any:
    """Return an annotator's native response to one request outside a run: cached, limited and retried as usual.

    Args:
        options: of the call.
        annotator: judges.
        suts: those that it asks, by its own names.
        request: the native request.

    Raises:
        Exception: what `annotate` raised at last, or what kept one of the objects from being opened.
    """
    called = [Callee(annotator, suts), *map(Callee, suts.values())]
    with in_use(callee.owner for callee in called):
        async with TargetPool(options, called) as board:
            current_tally.set(Tally())
            for target in board.connect(annotator, suts):
                if (failure := await board.open(target)) is not None:
                    raise failure
            return (await board.target(annotator).call(request, Tally().annotator_calls)).response
