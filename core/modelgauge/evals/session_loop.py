"""The loop in which the cases of a session of pytest are judged, in a thread of its own, from the first to the last.

So what is opened for one case (the cache, the writer, judges with their limits) is there for the next.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

from modelgauge.config.run_options import RunOptions
from modelgauge.data.item_records import ItemRecord
from modelgauge.data.items import TestItem
from modelgauge.engine.bookkeeping.tally import Tally, current_tally
from modelgauge.engine.calls.call import Target
from modelgauge.engine.calls.policy import CallPolicy
from modelgauge.engine.loop.stalls import rarer_collections
from modelgauge.engine.run_files.journal import make_line
from modelgauge.engine.target_pool import TargetPool
from modelgauge.engine.work import Work
from modelgauge.errors import ModelGaugeError, RunStoppedError
from modelgauge.interfaces.annotator import current_asker
from modelgauge.interfaces.watched import in_use

_MOST_OPEN = 100
"""Objects that stay open for further cases: metrics that a test makes for each case are not kept for ever."""

_LOOKS = 1.0
"""Seconds between two looks at whether the loop still runs, while a case is waited for."""

_ENDING = 10.0
"""Seconds that the loop gets to close everything when the session ends."""


@dataclass(slots=True, kw_only=True, eq=False)
class Job:
    """A test case that is to be judged, and where its outcome goes.

    Args:
        work: its test, with the metrics.
        item: the case.
        options: of the calls.
        named: gives its record the name and the place that it has in the session.
        ended: gets what becomes of it.
        context: of the test: what its fixtures set holds for its metrics too.
        targets: all that is called for it.
        task: judges it.
        ending: is closed when it ends: what it calls is in use until then.
        is_given_up: its caller no longer waits.
    """

    work: Work
    item: TestItem
    options: RunOptions
    named: Callable[[ItemRecord], ItemRecord]
    ended: "SimpleQueue[JudgedCase | BaseException]" = field(default_factory=SimpleQueue)
    context: Context = field(default_factory=copy_context)
    targets: Sequence[Target] = ()
    task: asyncio.Task[None] | None = None
    ending: ExitStack = field(default_factory=ExitStack)
    is_given_up: bool = False

    def end_use(self, _: object = None) -> None:
        """Release the targets that it calls."""
        self.ending.close()

    def give_up(self) -> None:
        """Stop judging it; called in the loop."""
        self.is_given_up = True
        if self.task is not None:
            self.task.cancel()


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """The record of a judged case, and its line in the journal.

    Args:
        record: as it was judged.
        written: the record without secrets.
        line: of the journal, which may be written now: all calls are committed.
        notes: what a reader of the session's record should know.
    """

    record: ItemRecord
    written: ItemRecord
    line: bytes
    notes: tuple[str, ...]


class SessionLoop:
    """Judges cases until it is closed.

    Args:
        tally: counts the calls of all cases.
        count: writes down what was counted; called before anything is committed.
    """

    def __init__(self, tally: Tally, count: Callable[[], None]) -> None:
        self._tally, self._count = tally, count
        self._target_pools: dict[tuple[object, ...], TargetPool] = {}
        self._failure: ModelGaugeError | None = None
        self._under_way: set[Job] = set()
        self._jobs: asyncio.Queue[Job | None] = asyncio.Queue()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="modelgauge session", daemon=True)
        self._thread.start()

    @property
    def is_here(self) -> bool:
        """True if this code runs in the loop's own thread, which cannot wait for itself."""
        return threading.current_thread() is self._thread

    def judge(self, job: Job) -> JudgedCase:
        """Judge a case, and wait until it may be written.

        Raises:
            RunStoppedError: no call can be sent any more, or nothing can be written.
            KeyboardInterrupt: Ctrl-C; the case is given up.
        """
        self._loop.call_soon_threadsafe(self._jobs.put_nowait, job)
        try:
            ended = self._wait(job)
        except BaseException:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(job.give_up)
            raise
        if isinstance(ended, JudgedCase):
            return ended
        try:
            raise ended
        finally:
            del ended  # its traceback holds this frame

    def _wait(self, job: Job) -> JudgedCase | BaseException:
        while True:
            try:
                return job.ended.get(timeout=_LOOKS)
            except Empty:
                if not self._thread.is_alive() and job.ended.empty():
                    fix = "Run the test again."
                    raise RunStoppedError("The loop of the session has ended.", fix=fix) from None

    def close(self) -> None:
        """Give up what is under way, and close all that was opened."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._jobs.put_nowait, None)
            self._thread.join(_ENDING)

    # --- in the thread -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        serving = self._loop.create_task(self._serve())
        while not serving.done():
            try:
                self._loop.run_until_complete(serving)
            # Of a metric: its case learns of it, and the others go on.
            except (KeyboardInterrupt, SystemExit):
                continue
        self._loop.close()

    async def _serve(self) -> None:
        async with AsyncExitStack() as stack:
            stack.enter_context(rarer_collections())
            while (job := await self._jobs.get()) is not None:
                try:
                    target_pool = await self._target_pool(job, stack)
                except BaseException as error:  # noqa: BLE001  whoever waits for the case is told
                    self._under_way.discard(job)
                    job.end_use()
                    _tell(job, error)
                    continue
                job.task = self._loop.create_task(self._judge(job, target_pool), context=job.context)
                job.task.add_done_callback(job.end_use)
                if job.is_given_up:
                    job.task.cancel()
            tasks = [job.task for job in self._under_way if job.task is not None]
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)

    async def _target_pool(self, job: Job, stack: AsyncExitStack) -> TargetPool:
        """Return the target pool for a job's options, with everything that the job calls opened, in the task that
        closes it.
        """
        options, called = job.options, job.work.called()
        job.ending.enter_context(in_use(callee.owner for callee in called))
        is_cached = any(CallPolicy.of(*callee).is_cached for callee in called)
        key = (options.concurrency, options.first_repeat, is_cached)
        if key not in self._target_pools:
            target_pool = await stack.enter_async_context(TargetPool(options, called, self._disk_failed))
            target_pool.services.writer.before_each_group(self._count)
            self._target_pools[key] = target_pool
        target_pool = self._target_pools[key]
        job.targets = target_pool.list_targets(job.work)
        self._under_way.add(job)
        open_now = {id(target.owner) for job in self._under_way for target in job.targets}
        await target_pool.close_idle(open_now, _MOST_OPEN)
        for target in job.targets:
            if (failure := await target_pool.open(target)) is not None:
                raise failure
        return target_pool

    async def _judge(self, job: Job, target_pool: TargetPool) -> None:
        current_asker.set(target_pool)
        current_tally.set(self._tally)
        try:
            worker = await target_pool.worker(job.work, self._tally)
            record = await worker.process(0, job.item)
            redact = job.options.redactor.redact_json_text
            written, line = make_line(job.named(record), job.work.test.uid, redact)
            if target_pool.services.writer.is_busy:
                await target_pool.services.writer.drained()
            self._check_disk()
            unreported = (note for target in job.targets for note in target.notes())
            notes = (*target_pool.notes(job.work), *unreported)
            job.end_use()  # first: its test may change the settings of what it called from here on
            job.ended.put(JudgedCase(record, written, line, notes))
        except BaseException as error:  # noqa: BLE001  likewise
            job.end_use()
            _tell(job, error)
        finally:
            self._under_way.discard(job)

    def _check_disk(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _disk_failed(self, error: ModelGaugeError) -> None:
        self._failure = error
        for target_pool in self._target_pools.values():
            target_pool.services.stop(error)


def _tell(job: Job, error: BaseException) -> None:
    given_up = RunStoppedError("The case was given up.", fix="Run the test again.")
    job.ended.put(given_up if isinstance(error, asyncio.CancelledError) else error)
