"""A run of many pairs: what they share is made once, pairs run side by side, and all is closed at the end."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, ExitStack
from dataclasses import replace
from typing import Any, cast

from modelgauge.cache import DiskCache
from modelgauge.config.options import RunOptions
from modelgauge.data.prompts import AnyPrompt
from modelgauge.data.records import TestRecord
from modelgauge.data.responses import SUTResponse
from modelgauge.engine.answers import Answerer, Asking, asking_cases, asking_sut
from modelgauge.engine.bookkeeping.failures import NOT_OF_THE_ITEM, message_of, printable
from modelgauge.engine.bookkeeping.tally import Tally, current_tally
from modelgauge.engine.calls.asking import ask_sut
from modelgauge.engine.calls.budget import Budget
from modelgauge.engine.calls.call import Target
from modelgauge.engine.calls.callee import Asked, Owner, is_cached, learn_secrets
from modelgauge.engine.calls.lookups import Lookups
from modelgauge.engine.calls.services import Services
from modelgauge.engine.files.journal import RunFolder, new_id
from modelgauge.engine.files.writer import Writer
from modelgauge.engine.item import ItemWorker
from modelgauge.engine.loop.deadlines import Deadlines, in_this_task
from modelgauge.engine.loop.gc_pauses import rarer_collections
from modelgauge.engine.loop.threads import CallPool, in_thread
from modelgauge.engine.loop.watchdog import watching_the_loop
from modelgauge.engine.measuring import Measurer
from modelgauge.engine.observers import Observer, Observers
from modelgauge.engine.pair_run import PairRun, Surroundings
from modelgauge.engine.progress import Standing, show_progress
from modelgauge.engine.recorded import Done, RecordedAnswers
from modelgauge.engine.repeats import reducer
from modelgauge.engine.totals import count_spent
from modelgauge.engine.work import Callee, Work
from modelgauge.errors import (
    CallError,
    CallTimeoutError,
    DefinitionError,
    IncompatibleError,
    ModelGaugeError,
    RunStoppedError,
)
from modelgauge.interfaces.annotator import CompletionAnnotator, current_asker
from modelgauge.interfaces.identity import overrides
from modelgauge.interfaces.sut import PromptResponseSUT, capabilities_of, check_sut

log = logging.getLogger(__name__)

_LONG = 5.0  # seconds, after which whoever waits is told what for
_AT_ONCE = 1.0  # seconds that a run which is interrupted twice gets to write its records
_OPENING = "'%s' is still being opened; it is given up after %g s (--call-timeout)."
_STOPPING = "Stopping: %d calls under way get %g s to end; Ctrl-C again stops at once."


def check_work(work: Work) -> None:
    """Refuse a work that cannot be done, before any call.

    Raises:
        DefinitionError: the SUT lacks a step, or an annotator has no name that can be recorded.
        IncompatibleError: the SUT lacks a capability that the test asks for.
    """
    for name in work.annotators:
        if type(name) is not str or not name or printable(name) != name:
            raise DefinitionError(
                f"get_annotators of test '{work.test.uid}' names an annotator {name!r}.",
                fix="Name it with a plain text, which stands in the records.",
            )
    sut = work.respondent.sut
    if sut is None:
        return
    check_sut(sut)
    has = capabilities_of(sut)
    missing = [one.__name__ for one in work.test.requires_sut_capabilities if one not in has]
    if missing:
        raise IncompatibleError(
            f"Test '{work.test.uid}' needs {', '.join(missing)}, which SUT '{sut.uid}' does not have.",
            fix=f"Choose a SUT that has it; '{sut.uid}' has: "
            f"{', '.join(sorted(one.__name__ for one in has))}.",
        )


class Run:
    """All that goes on between opening and closing: one loop, writer and cache, a target for each object.

    Args:
        options: of the run.
    """

    def __init__(self, options: RunOptions) -> None:
        # Absolute, since what runs in this process may change the working directory.
        self.options = replace(
            options, data_dir=options.data_dir.absolute(), runs_dir=options.runs.absolute()
        )
        self.failure: ModelGaugeError | None = None
        self._services: Services
        self._pairs: list[PairRun] = []
        self._targets: dict[int, Target] = {}
        self._asked: dict[tuple[int, str], Target] = {}

    async def works(
        self,
        works: Sequence[Work],
        observers: Sequence[Observer],
        manifest: Callable[[], Coroutine[Any, Any, Mapping[str, Any]]],
    ) -> list[TestRecord]:
        """Do all works, each in a run of its own; the records are in their order.

        Args:
            works: what to do; one alone, where it continues a run.
            observers: who is told.
            manifest: gathers facts about the process, for each run's manifest.

        Raises:
            CancelledError: the run was interrupted; the records are written all the same.
        """
        for work in works:
            check_work(work)
            learn_secrets(work.test, self.options.redactor)
        continues = next((work.continues for work in works if work.continues is not None), None)
        async with AsyncExitStack() as stack:
            stack.callback(current_asker.reset, current_asker.set(self))
            last = stack.enter_context(ExitStack())
            stack.enter_context(watching_the_loop())
            stack.enter_context(rarer_collections())
            gathering = asyncio.create_task(manifest())  # git takes as long as the cache's file
            stack.push_async_callback(_given_up, gathering)
            self._services = await self._open_services(
                stack, [one for work in works for one in work.called()]
            )
            if continues is not None:
                await in_thread(lambda: count_spent(self._services.budget, continues), "totals")
            shared = Surroundings(
                options=self.options,
                writer=self._services.writer,
                observers=Observers(observers),
                invocation_id=await in_thread(lambda: _invocation(continues), "manifest"),
                manifest=await gathering,
                at_end=last.callback,
            )
            for work in works:
                self._pairs.append(await self._pair_run(work, shared))
                stack.push_async_callback(in_thread, self._pairs[-1].folder.forget_if_empty, "folder")
                await self._pairs[-1].prepare()
            await self._open(stack)
            if self.options.progress:
                bar = asyncio.create_task(show_progress(self._standing))
                stack.push_async_callback(_given_up, bar)
            tasks = [asyncio.create_task(one.run()) for one in self._pairs]
            try:
                await self._finished(tasks)
            finally:
                await self._ended(tasks)
            return await asyncio.gather(*tasks)

    async def ask(self, annotator: CompletionAnnotator[Any], name: str, prompt: AnyPrompt) -> SUTResponse:
        """A judge's question: a call like any other."""
        target = self._asked_by(annotator, name)
        if asyncio.get_running_loop() is not self._loop:
            raise DefinitionError(
                f"'{annotator.uid}' asked SUT '{target.owner.uid}' in an event loop of its own.",
                fix="Write an async def, and await self.ask(…) in it, without asyncio.run.",
            )
        with self._services.deadlines.paused():
            try:
                return await ask_sut(target, prompt, current_tally.get(Tally()).judge_calls)
            except (RunStoppedError, DefinitionError):
                raise
            except Exception as error:
                # Not the error itself: its call was retried already, and the annotator's need not be.
                raise CallError(
                    f"SUT '{target.owner.uid}', which '{annotator.uid}' asked, failed: "
                    f"{type(error).__name__}: {message_of(error).rstrip('.')}.",
                    fix="See why it failed in the traceback.",
                ) from error

    def asked_sut(self, annotator: CompletionAnnotator[Any], name: str) -> PromptResponseSUT[Any, Any]:
        """The SUT that a judge asks under a name."""
        sut = self._asked_by(annotator, name).owner
        if not isinstance(sut, PromptResponseSUT):
            raise TypeError(sut)
        return sut

    def keeps_answers(self, annotator: CompletionAnnotator[Any], name: str) -> bool:
        """Whether the answers of a SUT that a judge asks under a name are in the cache."""
        return self._services.caching and is_cached(self._asked_by(annotator, name).owner)

    def waiting(self) -> AbstractContextManager[None]:
        """The time of the call that this is a part of stands still."""
        return self._services.deadlines.paused()

    def _asked_by(self, annotator: CompletionAnnotator[Any], name: str) -> Target:
        target = self._asked.get((id(annotator), name))
        if target is None:
            known = sorted(one for owner, one in self._asked if owner == id(annotator))
            raise DefinitionError(
                f"'{annotator.uid}' asked a SUT '{name}' that it does not name in get_suts.",
                fix=f"It names: {', '.join(known) or 'none'}.",
            )
        return target

    async def _open_services(self, stack: AsyncExitStack, called: Sequence[Callee]) -> Services:
        self._loop, options = asyncio.get_running_loop(), self.options
        cache: DiskCache | None = None
        if options.caching and any(is_cached(*one) for one in called):
            cache = await in_thread(lambda: DiskCache(options.data_dir / "cache"), "cache")
            stack.push_async_callback(in_thread, cache.leave, "cache")
        close = cache.close if cache is not None else lambda: None
        writer = Writer(cache, self._disk_failed, close)
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
        return Services(options, writer, lookups, pool, deadlines, budget)

    async def _pair_run(self, work: Work, shared: Surroundings) -> PairRun:
        options, test, tally = self.options, work.test, Tally()
        annotators = {
            name: self._target(one, work.judge_suts.get(name)) for name, one in work.annotators.items()
        }
        suts = [] if work.respondent.sut is None else [self._target(work.respondent.sut)]
        worker = ItemWorker(
            await self._answerer(work, tally),
            annotators,
            test.choose_annotators if overrides(type(test), "choose_annotators") else None,
            Measurer(test),
            tally,
            self._services.turns,
            options.repeats,
            reducer(options.reduce, options.repeats),
        )
        done = await in_thread(lambda: self._done(work.continues), "run")
        targets = [*suts, *annotators.values(), *self._judges(work)]
        return PairRun(work, done, worker, shared, targets=targets, notes=self._notes(work))

    async def _answerer(self, work: Work, tally: Tally) -> Answerer:
        options, respondent = self.options, work.respondent
        if (run := respondent.journal) is not None:
            redact, test = options.redactor.redact_json_text, work.test.uid
            return await in_thread(lambda: RecordedAnswers(run, test, options.repeats, redact), "journal")
        if respondent.given is not None:
            ask = asking_cases(respondent.given)
        else:
            sut = self._target(cast("Owner", respondent.sut))
            ask = asking_sut(sut, tally.sut_calls, options.sut_options)
        return Asking(respondent.uid, ask, options.repeats, reducer(options.reduce, options.repeats))

    def _done(self, continues: RunFolder | None) -> Done:
        redact = self.options.redactor.redact_json_text
        if continues is not None:
            return Done.of(RunFolder(continues.path.absolute()), redact)
        return Done(RunFolder.create(self.options.runs), redact)

    def _judges(self, work: Work) -> list[Target]:
        """The SUTs that the pair's annotators ask, each once."""
        judges: dict[int, Target] = {}
        for key, suts in work.judge_suts.items():
            for name, judge in suts.items():
                target = judges[id(judge)] = self._target(judge)
                self._asked[id(work.annotators[key]), name] = target
        return list(judges.values())

    def _notes(self, work: Work) -> tuple[str, ...]:
        """What cannot be cached, and why."""
        if not self.options.caching:
            return ()
        reasons = [one.why_uncacheable(asked) for one, asked in work.called() if not one.is_cheap]
        return tuple(f"Not cached: {why}." for why in dict.fromkeys(reasons) if why is not None)

    def _target(self, owner: Owner, asked: Asked | None = None) -> Target:
        if id(owner) not in self._targets:
            learn_secrets(owner, self.options.redactor)
            self._targets[id(owner)] = Target(owner, self._services, asked)
        return self._targets[id(owner)]

    async def _open(self, stack: AsyncExitStack) -> None:
        """Open all objects; where one cannot be opened, the pairs that need it end, and the others go on."""
        for key, target in self._targets.items():
            failure = await self._not_opened(target.owner)
            if failure is None:
                stack.push_async_callback(self._close, target.owner)
                continue
            for one in self._pairs:
                if key in {id(callee.owner) for callee in one.work.called()}:
                    one.stop(failure)

    async def _not_opened(self, owner: Owner) -> RunStoppedError | None:
        """Open an object, in this task, which will close it too; why it cannot be opened."""
        seconds = self.options.call_timeout
        opening = asyncio.get_running_loop().call_later(_LONG, log.warning, _OPENING, owner.uid, seconds)
        try:
            await in_this_task(seconds, owner.open())
        except NOT_OF_THE_ITEM:
            raise
        except Exception as error:  # noqa: BLE001  the author's; it stands in the records of its pairs
            why = f"{type(error).__name__}: {message_of(error).rstrip('.')}"
            fix = "Mend its open(), its key or its options, and run the same command again."
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
        """Close an object. The records are written by now: nothing may undo that, nor keep the run from its end."""
        try:
            await in_this_task(self.options.attempt_timeout, owner.close())
        except NOT_OF_THE_ITEM:
            raise
        except Exception:
            log.exception("'%s' could not be closed.", owner.uid)

    async def _finished(self, tasks: "list[asyncio.Task[TestRecord]]") -> None:
        """Wait for all pairs; an interruption stops new calls, and waits a while for those under way."""
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            self._services.stop(RunStoppedError("The run was interrupted.", fix="Run `modelgauge resume`."))
            for pair in self._pairs:
                pair.stop()
            under_way = self._services.deadlines.under_way + self._services.pool.under_way
            if under_way and self.options.grace:
                log.warning(_STOPPING, under_way, self.options.grace)
            _, late = await asyncio.wait(tasks, timeout=self.options.grace)
            while late:  # again where an author's aggregation hangs too
                for pair in self._pairs:
                    pair.abandon()
                _, late = await asyncio.wait(late, timeout=self.options.grace)
            raise

    async def _ended(self, tasks: "list[asyncio.Task[TestRecord]]") -> None:
        """Leave nothing behind in a loop that goes on, also where the wait for the end was interrupted in its turn."""
        if all(task.done() for task in tasks):
            return
        for pair in self._pairs:
            pair.abandon()
        _, late = await asyncio.wait(tasks, timeout=_AT_ONCE)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=_AT_ONCE)

    def _standing(self) -> Standing:
        tallies = [pair.tally for pair in self._pairs]
        known = [pair.known for pair in self._pairs]
        ages = [
            age for age in (self._services.deadlines.oldest, self._services.pool.oldest) if age is not None
        ]
        errors = sum(one.failed for one in tallies)
        return Standing(
            done=errors + sum(one.outcomes["scored"] for one in tallies),
            known=None if None in known else sum(one or 0 for one in known),
            cached=sum(calls.cached for one in tallies for calls in one.calls),
            errors=errors,
            cost=sum(one.cost for one in tallies),
            oldest=max(ages, default=None),
        )

    def _disk_failed(self, error: ModelGaugeError) -> None:
        if self.failure is None:
            self.failure = error
            self._services.stop(RunStoppedError(error.problem, fix=error.fix))
            for pair in self._pairs:
                pair.stop(error)


async def _given_up(task: "asyncio.Task[Any]") -> None:
    """Cancel a task, and see it end: nothing of a run is left in a loop that goes on."""
    task.cancel()
    await asyncio.wait([task])


def _invocation(continuing: RunFolder | None) -> str:
    return new_id() if continuing is None else str(continuing.read_manifest().get("invocation_id"))
