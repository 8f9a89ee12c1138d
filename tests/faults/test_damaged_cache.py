"""Damage to the files of a cache: no wrong answer is served, nothing crashes, and what is sound is kept."""

import random
import shutil
import sqlite3
from contextlib import closing

import pytest
from cache_entries import ENTRIES, MAKER, recompute
from tiers import sample

from modelgauge import FunctionSUT, PromptResponseTest, Runner, TestItem, resume
from modelgauge.cache.explaining import explain
from modelgauge.cache.folder import FolderBackend
from modelgauge.cache.responses import ResponseCache
from modelgauge.config.settings import Settings
from modelgauge.errors import CacheError
from modelgauge.plugins.discovery import Plugins


@pytest.fixture(scope="module")
def states(tmp_path_factory):
    """A cache as a clean end leaves it, and as a kill does: with a write-ahead log, and leases."""
    folder = tmp_path_factory.mktemp("caches")
    cache = ResponseCache(FolderBackend(folder / "open"))
    cache.put_many(ENTRIES[:40])
    cache.put_many(ENTRIES[40:])
    cache.take([ENTRIES[0].key.digest])
    shutil.copytree(folder / "open", folder / "killed")
    cache.close()
    cache.leave()
    (folder / "open").rename(folder / "clean")
    assert (folder / "killed" / "cache.db-wal").stat().st_size
    return [folder / "clean", folder / "killed"]


def flip_bits(data, source):
    for _ in range(source.choice([1, 1, 20])):
        data[source.randrange(len(data))] ^= 1 << source.randrange(8)


def overwrite(data, source):
    start = source.randrange(len(data))
    end = min(len(data), start + source.randrange(1, 5000))
    data[start:end] = source.randbytes(end - start)


def cut(data, source):
    del data[source.randrange(len(data)) :]


def damaged(states, folder, seed):
    """A copy of a cache with one of its files damaged."""
    source = random.Random(seed)
    shutil.copytree(source.choice(states), folder)
    file = source.choice([one for one in sorted(folder.glob("*.db*")) if one.stat().st_size])
    data = bytearray(file.read_bytes())
    source.choice([flip_bits, flip_bits, overwrite, cut])(data, source)
    file.write_bytes(data)


@pytest.mark.parametrize("tens", sample(range(20), 2))
def test_two_hundred_damaged_files_and_no_wrong_answer(all_closed, states, tmp_path, tens, caplog):
    refused = []
    for seed in range(10 * tens, 10 * tens + 10):
        folder = tmp_path / str(seed)
        damaged(states, folder, seed)
        try:
            cache = ResponseCache(FolderBackend(folder))
        except CacheError as error:
            refused.append(str(error))
            continue
        try:
            recompute(cache)
            assert cache.verify().sound <= len(ENTRIES)
            assert cache.verify().structure == "ok"
            recompute(cache)
            assert recompute(cache) == 0
            assert explain(cache, ENTRIES[7].key).hit
            assert explain(cache, MAKER.key({"question": "new"})).nearest is not None
        finally:
            cache.close()
            cache.leave()
    assert [one for one in refused if "which modelgauge did not write" not in one] == []
    assert len(refused) <= 1


# --- a whole run --------------------------------------------------------------------------------------------


class Numbered(PromptResponseTest):
    def make_test_items(self, dependencies):
        return [TestItem([f"question {n}"]) for n in range(200)]

    def measure_quality(self, item):
        return {"answered": True}


def test_a_run_whose_cache_vanishes_stops_clearly_and_resumes(tmp_path):
    asked = []

    def answer(text):
        asked.append(text)
        if len(asked) == 50:  # moved, not removed file by file: the writer could begin a new one meanwhile
            (tmp_path / "cache").rename(tmp_path / "elsewhere")
        return "yes"

    test, sut = Numbered("numbered"), FunctionSUT("sut", answer, version=1)
    runner = Runner(tmp_path, plugins=Plugins(), settings=Settings(), concurrency=2)
    [stopped] = runner.run([test], [sut])
    assert stopped.failure is not None
    assert "cache" in stopped.failure.message
    assert stopped.counts.failed == 0  # a broken cache is no item's own failure
    assert len(asked) < 200
    [record] = resume(stopped.run_id, tmp_path, test=test, sut=sut, plugins=Plugins())
    assert record.counts.scored == 200


def test_a_run_recomputes_what_is_damaged_and_tells(tmp_path, caplog):
    test = Numbered("numbered")
    asked = []

    def answer(text):
        asked.append(text)
        return f"answer to {text}"

    def run():
        sut = FunctionSUT("sut", answer, version=1)
        return Runner(tmp_path, plugins=Plugins(), settings=Settings()).run([test], [sut])[0]

    first = run()
    with closing(sqlite3.connect(tmp_path / "cache" / "cache.db")) as connection, connection:
        connection.execute("UPDATE Cache SET value = replace(value, 'answer', 'insult') WHERE rowid % 10 = 0")
    second = run()
    assert second.result == first.result
    assert second.counts.sut_calls.paid == 20
    assert len(asked) == 220
    texts = [
        item.interactions[0].response.completions[0].completion.text for item in second.test_item_records
    ]
    assert texts == [f"answer to question {n}" for n in range(200)]
    assert "A damaged cache entry (a wrong checksum) was moved to" in caplog.text
    assert len((tmp_path / "cache" / "quarantine" / "rows.jsonl").read_text().splitlines()) == 20
