"""The work of a worker: make the objects of a brief, process items as they arrive, and send their records.

Executors of plugins call `serve` in their workers, with their own way to carry lines.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import chain
from threading import RLock, get_ident
from typing import TYPE_CHECKING, Any

from modelgauge.data.items import TestItem
from modelgauge.engine.bookkeeping.tally import Tally, current_tally
from modelgauge.engine.calls.call import Target
from modelgauge.engine.calls.services import Services
from modelgauge.engine.executors.messages import TAB, Brief, LineBuffer, packed, unpacked
from modelgauge.engine.executors.remote_admission import Calls, RemoteAdmission
from modelgauge.engine.items.contexts import with_contexts
from modelgauge.engine.run_files.journal import make_line
from modelgauge.engine.target_pool import TargetPool
from modelgauge.engine.work import numbered_owners
from modelgauge.errors import DefinitionError, ModelGaugeError, RecordError
from modelgauge.interfaces.watched import in_use
from modelgauge.workers.briefed_run import BriefedRun, briefed_run
from modelgauge.workers.outgoing import SignsOfLife, WorkerCounts, log_to, quiet

if TYPE_CHECKING:
    from modelgauge.engine.items.item import ItemWorker

_SAME = "Put the same files under the same paths everywhere."

Send = Callable[[bytes], object]
"""Sends whole lines to the driver; called in any thread, and never waits."""


async def serve(receive: Callable[[], Awaitable[bytes]], send: Send) -> None:
    """Work for a driver, until it says that there is no more work, or is gone.

    Args:
        receive: waits for lines of the driver; `b""` once it is gone.
        send: sends lines to it.
    """

    inbox, outbox = _Inbox(receive), _Outbox(send)
    try:
        if (first := await inbox.next()) is not None:
            await _serve(Brief.model_validate_json(unpacked(first)[2]), inbox, outbox)
    finally:
        outbox.empty()


async def _serve(brief: Brief, inbox: "_Inbox", outbox: "_Outbox") -> None:
    with SignsOfLife(outbox.post) as signs:
        try:
            with quiet():
                run = briefed_run(brief)
        except ModelGaugeError as error:
            is_other = isinstance(error, RecordError)  # its fix is for people who resume a run
            outbox.post("refused", error.problem, _SAME if is_other else error.fix)
            return
        log_to(outbox.post, brief.log_level)
        await _Serving(run, outbox, signs).work(inbox)


class _Inbox:
    """Lines of the driver, one by one."""

    def __init__(self, receive: Callable[[], Awaitable[bytes]]) -> None:
        self._receive = receive
        self._lines: list[bytes] = []
        self._buffer = LineBuffer(longest=None)

    async def next(self) -> bytes | None:
        """Return the next line; None once the driver is gone."""
        while not self._lines:
            data = await self._receive()
            if not data:
                return None
            self._lines = self._buffer.split(data)[::-1]
        return self._lines.pop()


class _Outbox:
    """Sends lines to the driver, in the order in which they come from any thread; those of a turn of the loop together.

    To the writer it is a journal: lines are appended once the calls of their items are committed.
    """

    size = 0

    def __init__(self, send: Send) -> None:
        self._send, self._loop = send, asyncio.get_running_loop()
        self._lines: list[bytes] = []
        self._lock = RLock()  # a signal's handler may log
        self._of_loop = get_ident()

    def post(self, kind: str, *fields: Any) -> None:
        """Send a message."""
        self.append(packed(kind, *fields))

    def append(self, data: bytes) -> None:
        """Send whole lines."""
        with self._lock:
            self._lines.append(data)
            if get_ident() != self._of_loop:
                self.empty()
            elif len(self._lines) == 1:
                self._loop.call_soon(self.empty)

    def empty(self) -> None:
        """Send all lines now."""
        with self._lock:
            if self._lines:
                lines, self._lines = self._lines, []
                self._send(b"".join(lines))


class _Serving:
    """The works of a worker, while it works.

    Args:
        run: the works, and their options.
        outbox: the messages to the driver.
        signs: the heartbeats.
    """

    def __init__(self, run: BriefedRun, outbox: _Outbox, signs: SignsOfLife) -> None:
        self._run, self._outbox, self._post, self._signs = run, outbox, outbox.post, signs
        self._tallies = [Tally() for _ in run.works]
        self._calls = Calls(self._post, lambda tally: [id(tally) for tally in self._tallies].index(id(tally)))
        self._numbers = {id(owner): number for number, owner in enumerate(numbered_owners(run.works))}
        self._workers: list[ItemWorker] = []
        self._targets: list[list[Target]] = []
        self._tasks: dict[tuple[int, int], asyncio.Task[None]] = {}
        self._target_pool: TargetPool

    async def work(self, inbox: _Inbox) -> None:
        """Work until there is no more."""
        works, options = self._run
        called = [callee for work in works for callee in work.called()]
        async with AsyncExitStack() as stack:
            stack.enter_context(in_use(numbered_owners(works)))
            target_pool = await stack.enter_async_context(
                TargetPool(options, called, self._on_broken, self._entrance)
            )
            self._target_pool = target_pool
            for work, tally in zip(works, self._tallies, strict=True):
                self._workers.append(await target_pool.worker(work, tally))
                self._targets.append(target_pool.list_targets(work))
            target_pool.services.writer.before_each_group(WorkerCounts(self._tallies, self._post).send_growth)
            self._post("ready", await self._open_failures())
            turning = asyncio.get_running_loop().create_task(self._signs.keep_turning())
            try:
                while (line := await inbox.next()) is not None:
                    kind, fields, body = unpacked(line)
                    if kind == "end":
                        break
                    self._hear(kind, fields, body)
            finally:
                turning.cancel()
                await self._end_tasks()

    async def _open_failures(self) -> list[tuple[int, str, str]]:
        """Open all objects; the numbers of those that cannot be opened, and why."""
        opened = [
            (target, await self._target_pool.open(target)) for target in dict.fromkeys(self._all_targets())
        ]
        return [(self._number(target), why.problem, why.fix) for target, why in opened if why is not None]

    def _all_targets(self) -> list[Target]:
        return list(chain.from_iterable(self._targets))

    def _number(self, target: Target) -> int:
        return self._numbers[id(target.owner)]

    def _entrance(self, owner: Any, services: Services) -> RemoteAdmission:
        return RemoteAdmission(owner.uid, self._numbers[id(owner)], services, self._calls)

    def _on_broken(self, error: ModelGaugeError) -> None:
        self._post("broken", error.problem, error.fix, self._target_pool.services.writer.is_broken)

    def _hear(self, kind: str, fields: list[Any], body: bytes) -> None:
        if kind == "item":
            self._begin((fields[0], fields[1]), self._item(*fields, body=body))
        elif kind == "go":
            self._calls.let_in(*fields)
        elif kind == "refuse":
            self._calls.refuse(*fields)
        elif kind == "drop" and (dropped := self._tasks.get((fields[0], fields[1]))) is not None:
            dropped.cancel()
        elif kind == "halt":
            self._halt(*fields)
        elif kind == "report":
            self._begin((fields[0], -1), self._report(*fields))

    def _begin(self, key: tuple[int, int], work: Any) -> None:
        task = self._tasks[key] = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(lambda _: self._tasks.pop(key, None))

    async def _item(self, work: int, index: int, classes: Any, *, body: bytes) -> None:
        """Work on an item, and send its record once its calls are committed."""
        writer, uid = self._target_pool.services.writer, self._run.works[work].test.uid
        current_tally.set(self._tallies[work])
        try:
            written, _, answers = body.partition(TAB)
            item = with_contexts(TestItem.model_validate_json(written), _classes_named(classes))
            self._workers[work].answerer.take(index, answers)
            record = await self._workers[work].process(index, item)
        except ModelGaugeError as error:
            self._post("stopped", work, index, error.problem, error.fix)
            return
        if writer.is_crowded:
            await writer.room()
        _, line = make_line(record, uid, self._run.options.redactor.redact_json_text)
        writer.append(self._outbox, packed("record", work, index, body=line[:-1]), lambda _: None)

    def _halt(self, target: int | None) -> None:
        """Let the calls of a target go on that wait to be sent again, or all: the driver refuses them."""
        if target is None:
            self._target_pool.services.give_up_waiting()
        for owner in self._all_targets():
            if self._number(owner) == target:
                owner.admission.pauses.give_up()

    async def _report(self, work: int) -> None:
        """Report a work to the driver; its counts are sent with the last group that is written."""
        await self._target_pool.services.writer.drained()
        notes = dict.fromkeys(note for target in self._targets[work] for note in target.notes())
        self._post("reported", work, list(notes))

    async def _end_tasks(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=self._run.options.grace)


def _classes_named(classes: Any) -> Any:
    """Return the classes of contexts, by module and name."""
    return classes and tuple([None if cls is None else _import_class(*cls) for cls in classes])


def _import_class(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None:
        raise DefinitionError(
            f"The context of an item is a {name} of {module}, which workers do not find.",
            fix="Define the class at the top of the module of its test, or use --executor local.",
        )
    return found
