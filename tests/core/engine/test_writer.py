"""The writer's queue is bounded, by its length and by its bytes."""

import asyncio
import threading

import pytest

from modelgauge.cache import Entry, Key
from modelgauge.engine.writer import Writer


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
    writer = Writer(cache, failed=pytest.fail, close_cache=lambda: None)
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


def test_room_comes_back_when_long_texts_are_written():
    assert asyncio.run(long_texts()) == 20


async def long_texts():
    cache = HeldCache()
    cache.free.set()
    writer = Writer(cache, failed=pytest.fail, close_cache=lambda: None)
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

    writer = Writer(Cache(), failed=pytest.fail, close_cache=lambda: None)
    for name in ("first pair", "second pair"):
        writer.before_each_group(lambda name=name: written.append(name))
    for row in ("a", "b"):
        writer.put(Entry(Key(row, ""), "x"), lambda: None)
        await writer.drained()
    await writer.close()
    return written
