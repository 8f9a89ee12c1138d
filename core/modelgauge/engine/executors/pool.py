"""The workers of a run, from the driver: each gets as many items as it can use; those of a dead one go to others.

If two workers die while they work on an item, the next worker gets it alone; if that one dies too, the item fails. A
worker that is silent for longer than an attempt may take, or sends an invalid message, is killed and counts as dead.
"""

import asyncio
import logging
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from math import ceil
from typing import Any, Self

from modelgauge.config.run_options import RunOptions
from modelgauge.data.items import TestItem
from modelgauge.engine.bookkeeping.tally import Tally
from modelgauge.engine.calls.call import Target
from modelgauge.engine.calls.limits import AdaptiveLimiter
from modelgauge.engine.calls.services import Services
from modelgauge.engine.executors.base import Executor
from modelgauge.engine.executors.messages import (
    TAB,
    LineBuffer,
    MessageError,
    OutputFilter,
    WorkerMessages,
    packed,
)
from modelgauge.engine.executors.remote_worker import Assignment, Recorded, RemoteWorker
from modelgauge.engine.executors.worker_admission import WorkerAdmission
from modelgauge.engine.items.contexts import context_classes
from modelgauge.errors import ModelGaugeError, RunStoppedError, UsageError, WorkerLostError

MOST_LOST = 3
_VAIN = 3  # workers in a row that die without having done anything
_LAST_WORDS = 5.0  # seconds that workers get to report, and to end by themselves
_GRACE = 5.0  # seconds of silence allowed beyond the longest attempt
_STARTING = 60.0  # seconds for the first heartbeat of a worker that starts
_TICKS = 10  # checks that must find a worker silent before it is given up

log = logging.getLogger(__name__)


class Pool:
    """Pool of workers with a queue of items. Used as `async with`.

    Args:
        executor: starts them.
        brief: the message that says what they work on.
        targets: of the run, by their numbers.
        tallies: of the works, by their numbers.
        services: of the run.
        unopened: gets each target that a worker cannot open, and why.
        failed: gets the error after which no item can be worked on.
    """

    def __init__(
        self,
        executor: Executor,
        brief: bytes,
        targets: Sequence[Target],
        tallies: Sequence[Tally],
        *,
        services: Services,
        unopened: Callable[[Target, RunStoppedError], None],
        failed: Callable[[ModelGaugeError], None],
    ) -> None:
        self._executor, self._brief = executor, brief
        self._targets, self._tallies = targets, tallies
        self._unopened, self._failed = unopened, failed
        self.admission = WorkerAdmission(targets, tallies, services, self._halt)
        self._patience = _patience(services.options)
        self._messages = WorkerMessages(len(tallies), len(targets))
        self._places = executor.workers  # places with a worker, or waiting for one
        self._lost: RunStoppedError | None = None  # why all places were given up
        self._workers: list[RemoteWorker] = []
        self._waiting: deque[Assignment] = deque()
        self._shown = OutputFilter()
        self._closing = False
        self._staff: list[asyncio.Task[None]] = []
        self._heard: dict[str, Callable[[RemoteWorker, Any, bytes], None]] = {
            "alive": lambda _worker, _fields, _body: None,
            "ready": self._ready,
            "refused": self._on_refused,
            "record": self._record,
            "stopped": self._on_stopped,
            "tally": self._tally,
            "enter": lambda worker, fields, _: worker.calls.enter(*fields),
            "withdraw": lambda worker, fields, _: worker.calls.withdraw(*fields),
            "settle": lambda _worker, fields, _: self.admission.settle(*fields),
            "reported": self._on_report,
            "broken": self._on_broken,
            "log": self._log,
            **{kind: partial(self._of_call, kind) for kind in ("note", "failed", "limited", "left")},
        }
        self._begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def __aenter__(self) -> Self:
        """Start the workers, and wait until enough of them are ready.

        Raises:
            ModelGaugeError: one cannot be started, or is not as the driver is.
        """
        loop = asyncio.get_running_loop()
        self._staff = [loop.create_task(self._hold_place()) for _ in range(self._executor.workers)]
        self._watching = loop.create_task(self._watch())
        try:
            await self._begun
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        """End all workers: they commit what is paid, and close their objects."""
        self._closing = True
        self._tell_all("end")
        if self._staff:
            await asyncio.wait(self._staff, timeout=_LAST_WORDS)
        for task in (*self._staff, self._watching):
            task.cancel()
        await asyncio.gather(*self._staff, self._watching, return_exceptions=True)
        await self._executor.close()

    # --- items -------------------------------------------------------------------------------------------------------

    async def recorded(
        self, work: int, index: int, item: TestItem, answers: bytes, read: Callable[[bytes], Recorded]
    ) -> Recorded:
        """Return the record of an item once a worker has finished it and its calls are committed.

        Args:
            work: number of the work.
            index: the item's place in the test.
            item: to be worked on.
            answers: to its prompts, where they are recorded; else nothing.
            read: reads the line that a worker sends; raises MessageError if it is no record of this item.

        Raises:
            RunStoppedError: no call may be sent any more, or no worker is left; the item is not done.
            WorkerLostError: workers died of it.
        """
        if self._lost is not None:
            raise self._lost
        classes = context_classes(item)
        named = classes and [None if cls is None else [cls.__module__, cls.__qualname__] for cls in classes]
        body = item.model_dump_json().encode() + (TAB + answers if answers else b"")
        assigned = Assignment(work, index, packed("item", work, index, named, body=body), read)
        self._waiting.append(assigned)
        if len(self._waiting) == 1:  # nobody had room for those that wait longer
            self._deal()
        try:
            return await assigned.record
        except asyncio.CancelledError:
            self._withdraw(assigned)
            raise

    def _withdraw(self, item: Assignment) -> None:
        if item in self._waiting:
            self._waiting.remove(item)
        for worker in self._workers:
            if worker.items.get((item.work, item.index)) is item:
                worker.drop(item)
                worker.tell("drop", item.work, item.index)

    def _deal(self) -> None:
        """Give the items that wait to the workers that have the fewest."""
        share = self._share() if self._waiting else 0
        while self._waiting:
            item = self._waiting[0]
            free = [worker for worker in self._workers if worker.has_room(share)]
            if item.is_suspect:  # the others are not given anything either, until one has nothing to do
                free = [worker for worker in free if not worker.items]
            if not free:
                return
            min(free, key=lambda worker: len(worker.items)).give(self._waiting.popleft())
            self.admission.sharing = sum(bool(worker.items) for worker in self._workers)

    def _share(self) -> int:
        """Return the minimum number of items per worker: together, twice the number of places for calls."""
        limiters = (target.admission.limiter for target in self._targets)
        places = sum(limiter.limit for limiter in limiters if isinstance(limiter, AdaptiveLimiter))
        return max(2, ceil(2 * places / max(1, len(self._workers))))

    # --- workers -----------------------------------------------------------------------------------------------------

    async def _hold_place(self) -> None:
        """Keep a worker in a place. If that becomes impossible, go on with the other places."""
        try:
            await self._keep_one()
        except ModelGaugeError as error:
            self._places -= 1
            is_refused = isinstance(error, UsageError) and not self._begun.done()
            if self._closing:
                return
            if self._places and not is_refused:
                log.warning("%s The run goes on with fewer workers.", error.problem)
                self._begin(least=min(self._executor.least, self._places))
            elif not self._begun.done():
                self._begun.set_exception(error)
            else:
                self._give_up(error)

    async def _keep_one(self) -> None:
        """Keep a worker running, and replace it when it dies.

        Raises:
            ModelGaugeError: none can be started, or they end before they have done anything.
        """
        vain = 0
        while not self._closing:
            worker = RemoteWorker(await self._executor.start(), self.admission)
            try:
                await self._listen(worker)
            finally:
                await self._bury(worker)
            vain = 0 if worker.finished else vain + 1
            if not self._closing and vain >= _VAIN:
                raise _useless(worker)

    async def _listen(self, worker: RemoteWorker) -> None:
        """Handle the messages of a worker until it exits or is given up."""
        self._workers.append(worker)
        worker.send(self._brief)
        if self._closing:
            worker.tell("end")
        buffer = LineBuffer()
        with suppress(TimeoutError):  # of its life
            async with worker.life:
                while data := await worker.link.receive():
                    try:
                        for line in buffer.split(data):
                            self._hear(worker, line)
                    except MessageError as error:
                        worker.give_up(f"it sent {error}")
                        return
                    self._deal()

    def _hear(self, worker: RemoteWorker, line: bytes) -> None:
        kind, fields, body = self._messages.read(line)
        if kind != "log":  # sent by any thread
            worker.silence = 0
        self._heard[kind](worker, fields, body)

    async def _watch(self) -> None:
        """Give up workers that are silent for too long, and begin the run without those that are slow to start.

        This counts checks, not seconds, since the driver itself may be suspended.
        """
        looks = 0
        while True:
            await asyncio.sleep(self._patience / _TICKS)
            looks += any(worker.is_ready for worker in self._workers)
            if looks > _TICKS:
                self._begin(least=1)
            for worker in list(self._workers):
                worker.silence += 1
                seconds = self._patience if worker.is_ready else max(_STARTING, self._patience)
                if worker.silence * self._patience > seconds * _TICKS:
                    worker.give_up(f"{seconds:g} s without a sign of life")

    async def _bury(self, worker: RemoteWorker) -> None:
        """Take what a worker had; where nobody has ended it, its items go to others."""
        self._workers.remove(worker)
        await worker.end()
        lost = [assignment for assignment in worker.items.values() if not assignment.record.done()]
        if worker.is_ready and not self._closing:
            log.warning("%s ended %s; another takes its place.", worker.link.name, worker.why_ended())
        for item in reversed(lost):
            item.lost += 1
            if item.lost < MOST_LOST:
                self._waiting.appendleft(item)
            else:
                item.record.set_exception(_killer(worker))
        self._deal()

    def _give_up(self, error: ModelGaugeError) -> None:
        """Stop the run, since no place is left. Waiting items are not done."""
        self._lost = RunStoppedError(error.problem, fix=error.fix)
        self._failed(error)
        while self._waiting:
            if not (item := self._waiting.popleft()).record.done():
                item.record.set_exception(self._lost)

    def _halt(self, target: int | None) -> None:
        self._tell_all("halt", target)
        for worker in self._workers:
            worker.calls.give_up(target)

    def _tell_all(self, kind: str, *fields: Any) -> None:
        for worker in self._workers:
            worker.tell(kind, *fields)

    async def report(self, work: int) -> list[str]:
        """Return the notes for the record of a work, without duplicates. All counts are in the tally by then."""
        loop = asyncio.get_running_loop()
        ready = [worker for worker in self._workers if worker.is_ready]
        for worker in ready:
            worker.reports[work] = loop.create_future()
            worker.tell("report", work)
        reports = [worker.reports[work] for worker in ready]
        if reports:
            await asyncio.wait(reports, timeout=_LAST_WORDS)
        return list(
            dict.fromkeys(chain.from_iterable(report.result() for report in reports if report.done()))
        )

    # --- what workers say --------------------------------------------------------------------------------------------

    def _ready(self, worker: RemoteWorker, fields: Any, _: bytes) -> None:
        worker.is_ready = True
        for target, problem, fix in fields[0]:
            self._unopened(self._targets[target], RunStoppedError(problem, fix=fix))
        self._begin(least=min(self._executor.least, self._places))

    def _begin(self, least: int) -> None:
        """Start on the items once enough workers are ready."""
        if not self._begun.done() and sum(worker.is_ready for worker in self._workers) >= least:
            self._begun.set_result(None)

    def _on_refused(self, worker: RemoteWorker, fields: Any, _: bytes) -> None:
        problem, fix = fields
        raise UsageError(f"{worker.link.name} cannot take part: {problem}", fix=fix)

    def _record(self, worker: RemoteWorker, fields: Any, body: bytes) -> None:
        item = worker.item(*fields)
        recorded = None if item is None else item.read(body)
        if worker.done(*fields) is not None and recorded is not None and item is not None:
            item.record.set_result(recorded)

    def _on_stopped(self, worker: RemoteWorker, fields: Any, _: bytes) -> None:
        work, index, problem, fix = fields
        worker.item(work, index)
        if (item := worker.done(work, index)) is not None:
            item.record.set_exception(RunStoppedError(problem, fix=fix))

    def _tally(self, worker: RemoteWorker, fields: Any, _: bytes) -> None:
        del worker
        work, counts = fields
        for calls, grown in zip(self._tallies[work].calls, counts, strict=True):
            calls.add(*grown)

    def _of_call(self, kind: str, worker: RemoteWorker, fields: Any, _: bytes) -> None:
        number, *rest = fields
        worker.calls.tell(number, kind, rest)

    def _on_report(self, worker: RemoteWorker, fields: Any, _: bytes) -> None:
        work, notes = fields
        if work not in worker.reports:
            raise MessageError("a report that nobody asked for")
        if not worker.reports[work].done():
            worker.reports[work].set_result(notes)

    def _on_broken(self, worker: RemoteWorker, fields: Any, _: bytes) -> None:
        problem, fix, lost = fields
        error = RunStoppedError(f"{worker.link.name}: {problem}", fix=fix)
        self._failed(error)
        for item in list(worker.items.values()) if lost else ():
            worker.drop(item)
            if not item.record.done():
                item.record.set_exception(error)

    def _log(self, worker: RemoteWorker, fields: Any, _: bytes) -> None:
        logger, level, text = fields
        if not self._shown.is_new(worker, text):
            return
        if logger is None:
            warnings.warn(text, stacklevel=2)
        else:
            logging.getLogger(logger).log(level, "%s", text)


def _patience(options: RunOptions) -> float:
    """Return how many seconds a worker may be silent before it is given up."""
    return min(options.attempt_timeout, options.call_timeout) + _GRACE


def _useless(worker: RemoteWorker) -> RunStoppedError:
    when = "before it had done anything" if worker.is_ready else "before it was ready"
    return RunStoppedError(
        f"{_VAIN} workers in a row ended {when}, the last one ({worker.link.name}) {worker.why_ended()}.",
        fix="See what they wrote above; then run the same command again, or with --executor local.",
    )


def _killer(worker: RemoteWorker) -> WorkerLostError:
    return WorkerLostError(
        f"{MOST_LOST} workers ended while they worked on this item, the last one, alone with it, "
        f"{worker.why_ended()}.",
        fix="Find out what the item does to a worker: it may need more memory than there is, or block its event loop "
        "for longer than --timeout.",
    )
