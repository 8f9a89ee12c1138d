"""The workers of a run, from the driver: each gets as many items as it can use; those of a dead one go to others.

An item that two workers died with is alone with the next worker; when that dies too, the item has failed.
"""

import asyncio
import logging
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from math import ceil
from typing import Any, Self

from modelgauge.data.items import TestItem
from modelgauge.engine.bookkeeping.tally import Tally
from modelgauge.engine.calls.call import Target
from modelgauge.engine.calls.limits import AdaptiveLimiter
from modelgauge.engine.calls.services import Services
from modelgauge.engine.executors.base import Executor
from modelgauge.engine.executors.gate import Gate
from modelgauge.engine.executors.messages import END, TAB, ShownOnce, packed, unpacked
from modelgauge.engine.executors.remote_worker import Assignment, RemoteWorker
from modelgauge.engine.items.contexts import context_classes
from modelgauge.errors import ModelGaugeError, RunStoppedError, UsageError, WorkerLostError

MOST_LOST = 3
_VAIN = 3  # workers in a row that die without having done anything
_LAST_WORDS = 5.0  # seconds that workers get to report, and to end by themselves

log = logging.getLogger(__name__)


class Pool:
    """Workers, and the items that wait for them. Used as `async with`.

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
        self.gate = Gate(targets, tallies, services, self._halt)
        self._workers: list[RemoteWorker] = []
        self._waiting: deque[Assignment] = deque()
        self._shown = ShownOnce()
        self._closing = False
        self._staff: list[asyncio.Task[None]] = []
        self._heard: dict[str, Callable[[RemoteWorker, list[Any], bytes], None]] = {
            "ready": self._ready,
            "refused": self._on_refused,
            "record": self._record,
            "stopped": self._on_stopped,
            "tally": self._tally,
            "enter": lambda worker, fields, _: worker.visits.enter(*fields),
            "withdraw": lambda worker, fields, _: worker.visits.withdraw(*fields),
            "settle": lambda _worker, fields, _: self.gate.settle(*fields),
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
        self._staff = [loop.create_task(self._keep_one()) for _ in range(self._executor.workers)]
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
        for task in self._staff:
            task.cancel()
        await asyncio.gather(*self._staff, return_exceptions=True)
        await self._executor.close()

    # --- items -------------------------------------------------------------------------------------------------------

    async def line_of(self, work: int, index: int, item: TestItem, answers: bytes) -> bytes:
        """The journal's line of an item, once a worker has done it and its calls are committed.

        Args:
            work: number of the work.
            index: the item's place in the test.
            item: to be worked on.
            answers: to its prompts, where they are recorded; else nothing.

        Raises:
            RunStoppedError: no call may be sent any more; the item is not done.
            WorkerLostError: workers died of it.
        """
        classes = context_classes(item)
        named = classes and [None if cls is None else [cls.__module__, cls.__qualname__] for cls in classes]
        body = item.model_dump_json().encode() + (TAB + answers if answers else b"")
        assigned = Assignment(work, index, packed("item", work, index, named, body=body))
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
            if worker.items.pop((item.work, item.index), None) is not None:
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
            self.gate.sharing = sum(bool(worker.items) for worker in self._workers)

    def _share(self) -> int:
        """Items that a worker has at least: all together, twice as many as there are places for calls."""
        limiters = (target.admission.limiter for target in self._targets)
        places = sum(limiter.limit for limiter in limiters if isinstance(limiter, AdaptiveLimiter))
        return max(2, ceil(2 * places / max(1, len(self._workers))))

    # --- workers -----------------------------------------------------------------------------------------------------

    async def _keep_one(self) -> None:
        """Keep a worker, in whose place another comes when it dies."""
        vain = 0
        try:
            while not self._closing:
                worker = RemoteWorker(await self._executor.start(), self.gate)
                try:
                    await self._listen(worker)
                finally:
                    await self._bury(worker)
                vain = 0 if worker.finished else vain + 1
                if not self._closing and vain >= _VAIN:
                    raise _useless(worker)
        except ModelGaugeError as error:
            if not self._begun.done():
                self._begun.set_exception(error)
            elif not self._closing:
                self._failed(error)

    async def _listen(self, worker: RemoteWorker) -> None:
        """Do what a worker says, until it has ended."""
        self._workers.append(worker)
        worker.send(self._brief)
        if self._closing:
            worker.tell("end")
        rest = b""
        while data := await worker.link.receive():
            *lines, rest = (rest + data).split(END)
            for line in lines:
                kind, fields, body = unpacked(line)
                self._heard[kind](worker, fields, body)
            self._deal()

    async def _bury(self, worker: RemoteWorker) -> None:
        """Take what a worker had; where nobody has ended it, its items go to others."""
        self._workers.remove(worker)
        await worker.end()
        lost = [assignment for assignment in worker.items.values() if not assignment.record.done()]
        if worker.is_ready and not self._closing:
            log.warning("%s ended %s; another takes its place.", worker.link.name, worker.link.why_ended())
        for item in reversed(lost):
            item.lost += 1
            if item.lost < MOST_LOST:
                self._waiting.appendleft(item)
            else:
                item.record.set_exception(_killer(worker))
        self._deal()

    def _halt(self, target: int | None) -> None:
        self._tell_all("halt", target)
        for worker in self._workers:
            worker.visits.give_up(target)

    def _tell_all(self, kind: str, *fields: Any) -> None:
        for worker in self._workers:
            worker.tell(kind, *fields)

    async def report(self, work: int) -> list[str]:
        """What the record of a work shall say, each note once; all that was counted is in the tally then."""
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

    def _ready(self, worker: RemoteWorker, fields: list[Any], _: bytes) -> None:
        worker.is_ready = True
        for target, problem, fix in fields[0]:
            self._unopened(self._targets[target], RunStoppedError(problem, fix=fix))
        if (
            not self._begun.done()
            and sum(worker.is_ready for worker in self._workers) >= self._executor.least
        ):
            self._begun.set_result(None)

    def _on_refused(self, worker: RemoteWorker, fields: list[Any], _: bytes) -> None:
        problem, fix = fields
        raise UsageError(f"{worker.link.name} cannot take part: {problem}", fix=fix)

    def _record(self, worker: RemoteWorker, fields: list[Any], body: bytes) -> None:
        if (item := worker.done(*fields)) is not None:
            item.record.set_result(body + END)

    def _on_stopped(self, worker: RemoteWorker, fields: list[Any], _: bytes) -> None:
        work, index, problem, fix = fields
        if (item := worker.done(work, index)) is not None:
            item.record.set_exception(RunStoppedError(problem, fix=fix))

    def _tally(self, worker: RemoteWorker, fields: list[Any], _: bytes) -> None:
        del worker
        work, counts = fields
        for calls, grown in zip(self._tallies[work].calls, counts, strict=True):
            calls.add(*grown)

    def _of_call(self, kind: str, worker: RemoteWorker, fields: list[Any], _: bytes) -> None:
        number, *rest = fields
        worker.visits.tell(number, kind, rest)

    def _on_report(self, worker: RemoteWorker, fields: list[Any], _: bytes) -> None:
        work, notes = fields
        if not worker.reports[work].done():
            worker.reports[work].set_result(notes)

    def _on_broken(self, worker: RemoteWorker, fields: list[Any], _: bytes) -> None:
        problem, fix, lost = fields
        error = RunStoppedError(f"{worker.link.name}: {problem}", fix=fix)
        self._failed(error)
        while lost and worker.items:
            item = worker.items.popitem()[1]
            if not item.record.done():
                item.record.set_exception(error)

    def _log(self, worker: RemoteWorker, fields: list[Any], _: bytes) -> None:
        logger, level, text = fields
        if not self._shown.is_new(worker, text):
            return
        if logger is None:
            warnings.warn(text, stacklevel=2)
        else:
            logging.getLogger(logger).log(level, "%s", text)


def _useless(worker: RemoteWorker) -> RunStoppedError:
    when = "before it had done anything" if worker.is_ready else "before it was ready"
    return RunStoppedError(
        f"{_VAIN} workers in a row ended {when}, the last one ({worker.link.name}) {worker.link.why_ended()}.",
        fix="See what they wrote above; then run the same command again, or with --executor local.",
    )


def _killer(worker: RemoteWorker) -> WorkerLostError:
    return WorkerLostError(
        f"{MOST_LOST} workers ended while they worked on this item, the last one, alone with it, "
        f"{worker.link.why_ended()}.",
        fix="Find out what the item does to a worker: it may need more memory than there is.",
    )
