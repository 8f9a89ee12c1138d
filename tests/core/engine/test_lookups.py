"""Looking for answers that another process is paying for."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from modelgauge.cache import DiskCache
from modelgauge.engine import lookups as engine_lookups
from modelgauge.engine.lookups import Lookups


def test_who_waits_for_another_process_says_so_once_and_goes_on_when_it_gives_up(
    tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(engine_lookups, "_PAUSE", 0.001)
    monkeypatch.setattr(engine_lookups, "_LONG", 3)

    async def main(thread):
        in_thread = partial(asyncio.get_running_loop().run_in_executor, thread)
        cache = await in_thread(DiskCache, tmp_path)
        other = await in_thread(DiskCache, tmp_path)  # as another process has it
        lookups = Lookups(cache)
        await in_thread(lambda: (cache.leases.beat(), other.leases.take(["a", "b"])))
        waiting = [asyncio.create_task(lookups.get(key)) for key in ("a", "b")]
        async with asyncio.timeout(60):
            while "Another process that shares the cache" not in caplog.text:  # noqa: ASYNC110  a log sets no event
                await asyncio.sleep(0.001)
        await asyncio.sleep(0.02)
        assert not any(task.done() for task in waiting)
        await in_thread(other.leases.give_back, ["a", "b"])
        assert await asyncio.gather(*waiting) == [None, None]
        await lookups.close()
        for one in (cache, other):
            await in_thread(one.close)
            await in_thread(one.leave)

    with ThreadPoolExecutor(1) as thread:  # one, which closes the connections that it opened
        asyncio.run(main(thread))
    assert caplog.text.count("Another process") == 1
    assert str(tmp_path) in caplog.text
