"""Items and calls that nobody waits for any more: workers are told, and their places go to others.

The worker is a script, which sees each message of the driver and says what a worker may say.
"""

import asyncio

import pytest

from modelgauge import Runner
from modelgauge.engine.executors import base
from modelgauge.engine.executors.messages import packed, unpacked

_PATIENCE = 10.0  # seconds for a message that never comes where a place is lost


class ScriptedWorker:
    """A worker that follows a script, as its own link and executor.

    Attributes:
        heard: kind and fields of each message.
        starts: how many times it was started; it is ready at once the first time alone.
    """

    name = "the script"
    hands_secrets = True
    workers = least = 1

    def __init__(self, script):
        self._script, self._said = script, asyncio.Queue()
        self.heard, self._news, self._is_over = [], asyncio.Event(), False
        self.starts = 0

    async def start(self):
        self.starts += 1
        if self.starts == 1:
            self.say("ready", [])
        self._running = asyncio.get_running_loop().create_task(self._follow())
        return self

    async def _follow(self):
        try:
            await self._script(self)
        finally:
            self._said.put_nowait(b"")

    async def send(self, lines):
        for kind, fields, _ in map(unpacked, lines.splitlines()):
            self.heard.append((kind, fields))
            if kind == "report":
                self.say("reported", *fields, [])
            elif kind == "item" and self._is_over:
                self._refuse(*fields)
        self._news.set()

    async def receive(self):
        return await self._said.get()

    async def end(self):
        self._running.cancel()

    async def close(self):
        pass

    def why_ended(self):
        return "with its script"

    def say(self, kind, *fields):
        self._said.put_nowait(packed(kind, *fields))

    def those(self, kind):
        """Return the fields of the messages of a kind, in order."""
        return [fields for heard, fields in self.heard if heard == kind]

    async def until(self, kind, number):
        """Wait for so many messages of a kind."""
        async with asyncio.timeout(_PATIENCE):
            while len(self.those(kind)) < number:
                self._news.clear()
                await self._news.wait()

    def stop(self):
        """Give all items up, those that come later too: the run ends with this as its failure."""
        self._is_over = True
        for fields in self.those("item"):
            self._refuse(*fields)

    def _refuse(self, work, index, *_):
        self.say("stopped", work, index, "The script is over.", "Nothing.")


@pytest.fixture
def scripted(counting, monkeypatch):
    """`scripted(script, **options)`: the runner of a run with a worker that follows the script, and the worker."""

    def made(script, **options):
        worker = ScriptedWorker(script)
        monkeypatch.setattr(base, "Processes", lambda workers: worker)
        return Runner(**{**counting.usual(), "workers": 1, "caching": False, **options}), worker

    return made


async def run(runner, counting, number=40):
    return await runner.run_async([f"words?number={number}"], counting.name())


def abandoned(scripted, counting, script):
    """Cancel a run once the script has set the event that it gets, and return the worker."""

    async def main():
        started = asyncio.Event()
        runner, worker = scripted(lambda worker: script(worker, started), concurrency=1, grace=0.05)
        running = asyncio.get_running_loop().create_task(run(runner, counting))
        await started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return worker

    return asyncio.run(main())


def test_items_of_an_abandoned_run_are_taken_back_from_their_worker(scripted, counting):
    async def script(worker, started):
        await worker.until("item", 2)
        started.set()
        await worker.until("end", 1)

    worker = abandoned(scripted, counting, script)
    assert sorted(worker.those("drop")) == [fields[:2] for fields in worker.those("item")] == [[0, 0], [0, 1]]


def test_items_that_wait_for_a_worker_are_never_given_once_their_run_is_abandoned(scripted, counting):
    async def script(worker, started):
        if worker.starts == 1:  # its items wait for the second, which is not ready
            await worker.until("item", 2)
            return
        started.set()
        await worker.until("end", 1)
        worker.say("ready", [])
        await asyncio.sleep(0.1)

    worker = abandoned(scripted, counting, script)
    assert (worker.starts, len(worker.those("item"))) == (2, 2)


def test_calls_that_are_withdrawn_leave_their_place_to_those_that_wait(scripted, counting):
    async def script(worker):
        await worker.until("item", 1)
        for number in range(4):
            worker.say("enter", number, 0, 0)
        await worker.until("go", 1)
        worker.say("withdraw", 1)  # which waits
        worker.say("withdraw", 0)  # which is under way
        try:
            await worker.until("go", 2)
            worker.say("left", 2, "ok", 0.01, True)
            await worker.until("go", 3)
        finally:
            worker.stop()
            await worker.until("end", 1)

    async def main():
        runner, worker = scripted(script, concurrency=1)
        return await run(runner, counting), worker

    [record], worker = asyncio.run(main())
    assert "The script is over" in record.failure.message
    assert [number for number, _ in worker.those("go")] == [0, 2, 3]


def test_withdrawn_calls_beyond_the_share_of_their_worker_are_never_let_in(scripted, counting):
    async def script(worker):
        await worker.until("item", 1)
        for number in range(100):
            worker.say("enter", number, 0, 0)
        for number in range(50, 99):
            worker.say("withdraw", number)
        try:
            for place in range(51):
                await worker.until("go", place + 1)
                worker.say("left", worker.those("go")[place][0], "ok", 0.01, True)
        finally:
            worker.stop()
            await worker.until("end", 1)

    async def main():
        runner, worker = scripted(script)
        await run(runner, counting)
        return worker

    worker = asyncio.run(main())
    assert [number for number, _ in worker.those("go")] == [*range(50), 99]


def test_withdrawn_call_that_waits_for_the_rate_is_never_let_in(scripted, counting):
    async def script(worker):
        await worker.until("item", 1)
        for number in range(3):
            worker.say("enter", number, 0, 0)
        await worker.until("go", 1)
        worker.say("withdraw", 1)
        try:
            await worker.until("go", 2)
        finally:
            worker.stop()
            await worker.until("end", 1)

    async def main():
        runner, worker = scripted(script, requests_per_minute=120)
        await run(runner, counting)
        return worker

    worker = asyncio.run(main())
    assert [number for number, _ in worker.those("go")] == [0, 2]
