"""Looking for answers that another process is paying for."""

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from modelgauge.cache.folder import FolderBackend
from modelgauge.cache.responses import ResponseCache
from modelgauge.engine.calls import lookups as engine_lookups
from modelgauge.engine.calls.lookups import Lookups
from modelgauge.errors import CacheError, CallTimeoutError, RunStoppedError


def test_who_waits_for_another_process_says_so_once_and_goes_on_when_it_gives_up(
    tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(engine_lookups, "_PAUSE", 0.001)
    monkeypatch.setattr(engine_lookups, "_LONG", 0.01)

    async def main(thread):
        in_thread = partial(asyncio.get_running_loop().run_in_executor, thread)
        cache = await in_thread(lambda: ResponseCache(FolderBackend(tmp_path)))
        other = await in_thread(lambda: ResponseCache(FolderBackend(tmp_path)))  # as another process has it
        lookups = Lookups(cache, 60)
        await in_thread(other.take, ["a", "b"])
        waiting = [asyncio.create_task(lookups.get(key)) for key in ("a", "b")]
        async with asyncio.timeout(60):
            while "which shares the cache" not in caplog.text:  # noqa: ASYNC110  a log sets no event
                await asyncio.sleep(0.001)
        await asyncio.sleep(0.02)
        assert not any(task.done() for task in waiting)
        await in_thread(other.give_back, ["a", "b"])
        assert await asyncio.gather(*waiting) == [None, None]
        await lookups.close()
        for one in (cache, other):
            await in_thread(one.close)
            await in_thread(one.leave)

    with ThreadPoolExecutor(1) as thread:  # one, which closes the connections that it opened
        asyncio.run(main(thread))
    assert caplog.text.count(f"Process {os.getpid()}, which shares the cache") == 1
    assert str(tmp_path) in caplog.text


class FakeLeases:
    """Leases of which the keys in `others` are another process's."""

    def __init__(self, others=(), error=None):
        self.others, self.error, self.returned = dict.fromkeys(others, "4711"), error, []

    def take(self, digests):
        if self.error is not None:
            raise self.error
        return {digest: self.others[digest] for digest in digests if digest in self.others}

    def give_back(self, digests):
        self.returned += digests


class FakeCache:
    """A cache that holds answers, or has them from the second look on."""

    place = "cache"

    def __init__(self, leases, held=(), later=()):
        self.leases, self.held, self.later, self.looks = leases, set(held), set(later), 0
        self.take, self.give_back = leases.take, leases.give_back

    def get_many(self, digests):
        self.looks += len(digests)
        found = {digest: f"answer to {digest}" for digest in digests if digest in self.held}
        self.held |= self.later.intersection(digests)
        return found

    def close(self):
        self.looks += 100


def looked_up(cache, *digests, patience=60.0, give_back=()):
    async def main():
        lookups = Lookups(cache, patience)
        try:
            return await asyncio.gather(*map(lookups.get, digests), return_exceptions=True)
        finally:
            for digest in give_back:
                lookups.give_back(digest)
            await lookups.close()

    return asyncio.run(asyncio.wait_for(main(), timeout=60))


def test_what_is_kept_is_found_and_what_is_not_is_ours_to_pay():
    cache = FakeCache(FakeLeases(), held=["a"])
    assert looked_up(cache, "a", "b", give_back=["b"]) == ["answer to a", None]
    assert cache.leases.returned == ["b"]
    assert cache.looks == 103  # the second look at what was missing, and the end


def test_what_was_paid_between_the_look_and_the_lease_is_found_and_its_lease_given_back():
    cache = FakeCache(FakeLeases(), later=["a"])
    assert looked_up(cache, "a", "b") == ["answer to a", None]
    assert cache.leases.returned == ["a"]


def test_what_another_process_pays_for_is_found_when_it_is_there(monkeypatch):
    monkeypatch.setattr(engine_lookups, "_PAUSE", 0.001)
    assert looked_up(FakeCache(FakeLeases(["a"]), later=["a"]), "a") == ["answer to a"]


def test_a_key_whose_call_was_cancelled_before_the_look_is_not_leased():
    leased, reading, go_on = set(), threading.Event(), threading.Event()

    class SlowLeases(FakeLeases):
        def take(self, digests):
            leased.update(digests)
            reading.set()
            go_on.wait(60)
            return {}

        def give_back(self, digests):
            leased.difference_update(digests)

    async def main():
        lookups = Lookups(FakeCache(SlowLeases()), 60)
        first = asyncio.create_task(lookups.get("a"))
        await asyncio.to_thread(reading.wait, 60)
        cancelled = asyncio.create_task(lookups.get("b"))
        await asyncio.sleep(0)
        cancelled.cancel()
        lookups.give_back("b")  # as a call that was cancelled does
        go_on.set()
        await first
        await lookups.close()

    asyncio.run(asyncio.wait_for(main(), timeout=60))
    assert leased == {"a"}


def test_who_waits_longer_than_a_call_may_take_is_told_of_whom(monkeypatch):
    monkeypatch.setattr(engine_lookups, "_PAUSE", 0.001)
    (error,) = looked_up(FakeCache(FakeLeases(["a"])), "a", patience=0.02)
    assert isinstance(error, CallTimeoutError)
    assert "Process 4711, which shares the cache, is asking it, and had no answer within 0.02 s." in str(
        error
    )
    assert "--call-timeout" in str(error)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RuntimeError("never seen"), ["The cache failed: never seen.", "modelgauge resume"]),
        (CacheError("It is broken.", fix="Mend it."), ["It is broken.", "Mend it."]),
    ],
)
def test_a_cache_that_fails_ends_the_run(error, told):
    (raised,) = looked_up(FakeCache(FakeLeases(error=error)), "a")
    assert isinstance(raised, RunStoppedError)
    assert raised.__cause__ is error
    assert all(one in str(raised) for one in told)
