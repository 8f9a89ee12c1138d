"""All pairs of one command: shared resources are opened once, pairs run side by side, and everything is closed at
the end.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from modelgauge.config.run_options import RunOptions
from modelgauge.data.records import TestRecord
from modelgauge.data.results import TotalUsage
from modelgauge.engine.bookkeeping.tally import Tally
from modelgauge.engine.calls.call import Target
from modelgauge.engine.calls.policy import learn_secrets
from modelgauge.engine.earlier_run import EarlierSessions
from modelgauge.engine.executors.base import Executor, create_executor
from modelgauge.engine.executors.pool import Pool
from modelgauge.engine.executors.remote_work import RemoteWork, briefed
from modelgauge.engine.loop.stalls import rarer_collections
from modelgauge.engine.loop.threads import CallPool, in_thread
from modelgauge.engine.loop.together import end_task
from modelgauge.engine.observers import Observer, Observers, Progress, show_progress
from modelgauge.engine.pair_run import PairRun, Shared
from modelgauge.engine.run_files.folder import RunFolder, new_id
from modelgauge.engine.target_pool import TargetPool
from modelgauge.engine.totals import count_spent
from modelgauge.engine.work import Work, check_code, check_work, numbered_owners
from modelgauge.errors import ModelGaugeError, RunStoppedError
from modelgauge.interfaces.watched import in_use
from modelgauge.wording.phrases import counted

if TYPE_CHECKING:
    from modelgauge.engine.executors.worker_admission import WorkerAdmission
    from modelgauge.engine.loop.deadlines import Deadlines

log = logging.getLogger(__name__)

_AT_ONCE = 1.0  # seconds that a run which is interrupted twice gets to write its records
_LOOK = 2.0  # seconds between two looks at why calls wait
_STOPPING = "Stopping: %s under way, which may end within %g s; Ctrl-C again stops at once."


class Run:
    """The works of one command, done side by side.

    Args:
        options: of the run.
        secrets: the values that its objects were given, by name; workers of this machine are handed them.
    """

    def __init__(self, options: RunOptions, secrets: Mapping[str, str] | None = None) -> None:
        # Absolute, since what runs in this process may change the working directory.
        self.options = replace(
            options, data_dir=options.data_dir.absolute(), runs_dir=options.runs.absolute()
        )
        self.failure: ModelGaugeError | None = None
        self._secrets = secrets or {}
        self._pool: Pool | None = None
        self._target_pool: TargetPool
        self._pairs: list[PairRun] = []

    async def works(
        self,
        works: Sequence[Work],
        observers: Sequence[Observer],
        manifest: Callable[[], Coroutine[Any, Any, Mapping[str, Any]]],
    ) -> list[TestRecord]:
        """Do all works, each in a run of its own; the records are in their order.

        Args:
            works: what to do; one alone, where it continues a run.
            observers: of the runs and items.
            manifest: gathers facts about the process, for each run's manifest.

        Raises:
            CancelledError: the run was interrupted; the records are written all the same.
        """
        for work in works:
            check_work(work)
            check_code(work, self.options)
            learn_secrets(work.test, self.options.redactor)
        continues = next((work.continues for work in works if work.continues is not None), None)
        async with AsyncExitStack() as stack:
            stack.enter_context(in_use(numbered_owners(works)))
            last = stack.enter_context(ExitStack())
            stack.enter_context(rarer_collections())
            gathering = asyncio.create_task(manifest())  # git takes as long as the cache's file
            stack.push_async_callback(end_task, gathering)
            executor = create_executor(self.options.executor, self.options.workers)
            called = [callee for work in works for callee in work.called() if executor is None]
            target_pool = self._target_pool = await stack.enter_async_context(
                TargetPool(self.options, called, self._disk_failed)
            )
            if continues is not None:
                await in_thread(lambda: count_spent(target_pool.services.budget, continues), "totals")
            shared = Shared(
                options=self.options,
                writer=target_pool.services.writer,
                observers=Observers(observers),
                invocation_id=await in_thread(lambda: _invocation(continues), "manifest"),
                manifest=await gathering,
                at_end=last.callback,
            )
            for work in works:
                self._pairs.append(await self._pair_run(work, shared))
                stack.push_async_callback(in_thread, self._pairs[-1].folder.forget_if_empty, "folder")
                await self._pairs[-1].prepare()
            if executor is None:
                await self._open(target_pool)
            else:
                await stack.enter_async_context(self._workers(executor, works))
            if self.options.progress:
                bar = asyncio.create_task(show_progress(self._progress))
                stack.push_async_callback(end_task, bar)
            stack.push_async_callback(end_task, asyncio.create_task(self._keep_totals()))
            tasks = [asyncio.create_task(pair.run()) for pair in self._pairs]
            try:
                await self._finish(tasks)
            finally:
                await self._end_all(tasks)
            return await asyncio.gather(*tasks)

    async def _pair_run(self, work: Work, shared: Shared) -> PairRun:
        worker = await self._target_pool.worker(work, Tally())
        earlier = await in_thread(lambda: self._earlier(work.continues), "run")
        targets, notes = self._target_pool.list_targets(work), self._target_pool.notes(work)
        return PairRun(work, earlier, worker, shared, targets=targets, notes=notes)

    def _earlier(self, continues: RunFolder | None) -> EarlierSessions:
        redact = self.options.redactor.redact_json_text
        if continues is not None:
            retry = self.options.retry_failed
            return EarlierSessions.of(RunFolder(continues.path.absolute()), redact, retry_failed=retry)
        return EarlierSessions(RunFolder.create(self.options.runs), redact)

    @asynccontextmanager
    async def _workers(self, executor: Executor, works: Sequence[Work]) -> AsyncIterator[None]:
        """Have the items worked on by the workers of an executor, which open the objects; here none is opened."""
        pairs, options, services = self._pairs, self.options, self._target_pool.services
        described = [(pair.work, pair.folder, pair.manifest()) for pair in pairs]
        brief = await in_thread(lambda: briefed(described, options, executor, self._secrets), "brief")
        targets = [self._target_pool.target(owner) for owner in numbered_owners(works)]
        tallies = [pair.tally for pair in pairs]
        pool = Pool(
            executor,
            brief,
            targets,
            tallies,
            services=services,
            unopened=self._fail_to_open,
            failed=self._disk_failed,
        )
        async with pool as self._pool:
            for number, pair in enumerate(pairs):
                pair.remote = RemoteWork(pair.work, number, pool, pair.answerer, options)
            yield

    def _fail_to_open(self, target: Target, failure: RunStoppedError) -> None:
        for pair in self._pairs:
            if target in pair.targets:
                pair.stop(failure)

    async def _open(self, target_pool: TargetPool) -> None:
        """Open all objects; where one cannot be opened, the works that need it end, and the others go on."""
        failures: dict[int, RunStoppedError | None] = {}
        for pair in self._pairs:
            for target in pair.targets:
                if id(target) not in failures:
                    failures[id(target)] = await target_pool.open(target)
                if (failure := failures[id(target)]) is not None:
                    pair.stop(failure)

    def _calling(self) -> "list[Deadlines | CallPool | WorkerAdmission]":
        """Return the parts of the run that count calls in flight."""
        services = self._target_pool.services
        return [services.deadlines, services.pool, *([] if self._pool is None else [self._pool.admission])]

    async def _finish(self, tasks: "list[asyncio.Task[TestRecord]]") -> None:
        """Wait for all pairs; after an interruption no call is sent, and calls under way get a few seconds."""
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            self._target_pool.services.stop(
                RunStoppedError("The run was interrupted.", fix="Run `modelgauge resume`.")
            )
            for pair in self._pairs:
                pair.stop()
            under_way = sum(calling.under_way for calling in self._calling())
            if under_way and self.options.grace:
                log.warning(_STOPPING, counted(under_way, "call"), self.options.grace)
            _, late = await asyncio.wait(tasks, timeout=self.options.grace)
            while late:  # again where an author's aggregation hangs too
                for pair in self._pairs:
                    pair.abandon()
                _, late = await asyncio.wait(late, timeout=self.options.grace)
            raise

    async def _end_all(self, tasks: "list[asyncio.Task[TestRecord]]") -> None:
        """End all tasks, also where the wait for them was interrupted: the loop may live longer than the run."""
        if all(task.done() for task in tasks):
            return
        for pair in self._pairs:
            pair.abandon()
        _, late = await asyncio.wait(tasks, timeout=_AT_ONCE)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=_AT_ONCE)

    async def _keep_totals(self) -> None:
        """Write into the files of runs why their calls wait, since nothing else is written while no item finishes."""
        while True:
            await asyncio.sleep(_LOOK)
            for pair in self._pairs:
                await in_thread(pair.keep_totals, "totals")

    def _progress(self) -> Progress:
        tallies = [pair.tally for pair in self._pairs]
        known = [pair.known for pair in self._pairs]
        ages = [calling.oldest for calling in self._calling()]
        failed = sum(tally.failed for tally in tallies)
        return Progress(
            done=failed + sum(tally.outcomes["scored"] for tally in tallies),
            known=None if None in known else sum(number or 0 for number in known),
            failed=failed,
            used=sum((tally.used() for tally in tallies), TotalUsage()),
            oldest=max((age for age in ages if age is not None), default=None),
        )

    def _disk_failed(self, error: ModelGaugeError) -> None:
        if self.failure is None:
            self.failure = error
            self._target_pool.services.stop(error)
            for pair in self._pairs:
                pair.stop(error)


def _invocation(continuing: RunFolder | None) -> str:
    return new_id() if continuing is None else str(continuing.read_manifest().get("invocation_id"))
