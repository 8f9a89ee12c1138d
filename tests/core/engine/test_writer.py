"""The writer's queue is bounded, by its length and by its bytes."""

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest

from modelgauge.cache.keys import Entry, Key
from modelgauge.engine.run_files.writer import Writer
from modelgauge.errors import CacheError, RunStoppedError
from modelgauge.files.reserve import Reserve

HERE = Path(__file__).parent


class HeldCache:
    """Writes nothing before it is let go."""

    def __init__(self):
        self.free = threading.Event()
        self.rows = 0

    def put_many(self, entries):
        self.free.wait()
        self.rows += len(entries)


@pytest.mark.parametrize(("number", "size"), [(1001, 10), (5, 1_000_000)])
def test_there_is_no_room_while_too_much_waits_to_be_written(number, size):
    assert asyncio.run(crowded(number, size)) == number


async def crowded(number, size):
    cache = HeldCache()
    writer = Writer(cache, failed=pytest.fail, close_cache=lambda: None, reserve=Reserve(HERE))
    for each in range(number - 1):
        writer.put(Entry(Key(str(each), ""), "x" * size), lambda: None)
    await asyncio.wait_for(writer.room(), timeout=10)
    writer.put(Entry(Key("last", ""), "x" * size), lambda: None)
    room = asyncio.ensure_future(writer.room())
    await asyncio.sleep(0.05)
    assert not room.done()
    cache.free.set()
    await asyncio.wait_for(room, timeout=10)
    await writer.close()
    return cache.rows


def test_all_of_a_long_queue_is_written_in_groups():
    async def main():
        cache = HeldCache()
        writer = Writer(cache, failed=pytest.fail, close_cache=lambda: None, reserve=Reserve(HERE))
        for each in range(2500):
            writer.put(Entry(Key(str(each), ""), "x"), lambda: None)
        cache.free.set()
        await asyncio.wait_for(writer.drained(), timeout=60)
        await writer.close()
        return cache.rows

    assert asyncio.run(main()) == 2500


def test_room_comes_back_when_long_texts_are_written():
    assert asyncio.run(long_texts()) == 20


async def long_texts():
    cache = HeldCache()
    cache.free.set()
    writer = Writer(cache, failed=pytest.fail, close_cache=lambda: None, reserve=Reserve(HERE))
    for each in range(20):
        await asyncio.wait_for(writer.room(), timeout=10)
        writer.put(Entry(Key(str(each), ""), "x" * 3_000_000), lambda: None)
    await writer.drained()
    await asyncio.wait_for(writer.room(), timeout=10)
    await writer.close()
    return cache.rows


def test_what_a_group_cost_is_written_before_it():
    written = asyncio.run(counted())
    groups = [place for place, what in enumerate(written) if what in ("a", "b")]
    assert len(groups) == 2
    assert all(written[place - 2 : place] == ["first pair", "second pair"] for place in groups)


async def counted():
    written = []

    class Cache:
        def put_many(self, entries):
            written.extend(entry.key.digest for entry in entries)

    writer = Writer(Cache(), failed=pytest.fail, close_cache=lambda: None, reserve=Reserve(HERE))
    for name in ("first pair", "second pair"):
        writer.before_each_group(lambda name=name: written.append(name))
    for row in ("a", "b"):
        writer.put(Entry(Key(row, ""), "x"), lambda: None)
        await writer.drained()
    await writer.close()
    return written


class Journal:
    """Takes lines, or refuses them."""

    def __init__(self, size=0, error=None):
        self.size, self.error, self.data = size, error, b""

    def append(self, data):
        if self.error is not None:
            raise self.error
        self.data += data
        self.size += len(data)


def test_each_line_is_told_where_it_stands_in_its_journal():
    one, other = Journal(100), Journal()
    offsets = []

    async def main():
        writer = Writer(
            None, failed=pytest.fail, close_cache=lambda: offsets.append("closed"), reserve=Reserve(HERE)
        )
        for journal, line in (
            (one, b"abc\n"),
            (other, b"de\n"),
            (one, b"f\n"),
            (other, b"g\n"),
            (one, b"\n"),
        ):
            writer.append(journal, line, offsets.append)
        writer.put(Entry(Key("kept nowhere", ""), "x"), lambda: offsets.append("row"))
        await writer.drained()
        await writer.close()
        await writer.drained()

    asyncio.run(main())
    assert offsets == [100, 0, 104, 3, 106, "row", "closed"]
    assert (one.data, other.data) == (b"abc\nf\n\n", b"de\ng\n")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            OSError(28, "No space left"),
            "The journal cannot be written: [Errno 28] No space left. Free the disk, then",
        ),
        (RunStoppedError("It is full.", fix="Mend it."), "It is full. Mend it."),
        (ValueError(1), "Writing failed: ValueError(1). Report this as a defect"),
    ],
)
def test_when_the_disk_refuses_nothing_is_committed_any_more_and_nobody_waits(error, told):
    failures, committed = [], []

    async def main():
        journal = Journal(error=error)
        writer = Writer(None, failed=failures.append, close_cache=lambda: None, reserve=Reserve(HERE))
        writer.append(journal, b"a\n", committed.append)
        await asyncio.wait_for(writer.drained(), timeout=10)
        if not isinstance(error, ValueError):
            journal.error = None
        writer.append(journal, b"b\n", committed.append)
        await asyncio.wait_for(writer.drained(), timeout=10)
        await asyncio.wait_for(writer.room(), timeout=10)
        await writer.close()

    asyncio.run(main())
    assert committed == []
    assert len(failures) >= 2
    assert all(told in " ".join(str(failure).split()) for failure in failures)
    assert all(isinstance(failure, RunStoppedError) for failure in failures)


def test_a_row_comes_before_the_lines_of_its_group():
    written = []

    class Cache:
        def put_many(self, entries):
            written.append("row")

    class Told(Journal):
        def append(self, data):
            written.append("line")

    async def main():
        writer = Writer(Cache(), failed=pytest.fail, close_cache=lambda: None, reserve=Reserve(HERE))
        writer.append(Told(), b"a\n", lambda offset: None)
        writer.put(Entry(Key("a", ""), "x"), lambda: None)
        await writer.drained()
        await writer.close()

    asyncio.run(main())
    assert written == ["row", "line"]


class FullCache:
    """Refuses its first group, as a full disk does, and the following as often as it is told."""

    def __init__(self, refusals):
        self.refusals, self.rows = refusals, []

    def put_many(self, entries):
        if self.refusals:
            self.refusals -= 1
            raise CacheError("It is full.", fix="Free it.") from sqlite3.OperationalError("full")
        self.rows += [entry.key.digest for entry in entries]


@pytest.mark.parametrize(("refusals", "stored"), [(1, ["a", "b"]), (2, [])])
def test_what_comes_when_the_disk_is_full_is_stored_in_the_reserve(tmp_path, refusals, stored):
    cache, failures, committed = FullCache(refusals), [], []

    async def main():
        writer = Writer(cache, failures.append, lambda: None, Reserve(tmp_path))
        for row in ("a", "b"):
            writer.put(Entry(Key(row, ""), "x"), lambda row=row: committed.append(row))
            await writer.drained()
        await writer.close()
        return writer.is_broken

    assert asyncio.run(main()) is (not stored)
    assert cache.rows == committed == stored
    assert [str(failure) for failure in failures] == ["It is full. Free it."] * 2


def test_the_reserve_is_freed_also_where_the_wait_for_the_end_is_cancelled(tmp_path):
    async def main():
        cache, reserve, ended = HeldCache(), Reserve(tmp_path), threading.Event()
        writer = Writer(cache, failed=pytest.fail, close_cache=ended.set, reserve=reserve)
        writer.put(Entry(Key("a", ""), "x"), lambda: None)
        closing = asyncio.create_task(writer.close())
        await asyncio.sleep(0.05)
        closing.cancel()
        await asyncio.wait([closing])
        cache.free.set()
        await asyncio.to_thread(ended.wait, 60)
        assert cache.rows == 1
        assert not reserve.release()

    asyncio.run(main())
