"""Damage to the files of a cache: no wrong answer is served, nothing crashes, and what is sound is kept."""

import random
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from modelgauge import FunctionSUT, PromptResponseTest, Runner, TestItem, resume
from modelgauge.cache import DiskCache, Entry, KeyMaker, explain, verify
from modelgauge.cache.damage import file_at, is_damage
from modelgauge.discovery import Plugins
from modelgauge.errors import CacheError
from modelgauge.settings import Settings

MAKER = KeyMaker("sut", {"uid": "sut"})
ENTRIES = [
    Entry(MAKER.key({"question": n}), f'"answer {n} {"é漢" * random.Random(n).randrange(200)}"')
    for n in range(60)
]


@pytest.fixture(scope="module")
def states(tmp_path_factory):
    """A cache as a clean end leaves it, and as a kill does: with a write-ahead log, and registered."""
    folder = tmp_path_factory.mktemp("caches")
    cache = DiskCache(folder / "open")
    cache.put_many(ENTRIES[:40])
    cache.put_many(ENTRIES[40:])
    shutil.copytree(folder / "open", folder / "killed")
    with closing(sqlite3.connect(folder / "killed" / "leases.db")) as connection, connection:
        connection.execute("UPDATE processes SET pid = ?", (2**30,))  # of no process
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


def recompute(cache):
    """Ask for every entry, and store anew what is not there; how many those were."""
    missing = []
    for entry in ENTRIES:
        found = cache.get(entry.key.digest)
        assert found in (None, entry.response)
        if found is None:
            missing.append(entry)
    cache.put_many(missing)
    return len(missing)


@pytest.fixture
def all_closed(monkeypatch):
    """Every connection that a test opens is closed when the test is over."""
    opened = []
    connect = sqlite3.connect

    def remembering(*given, **options):
        opened.append(connect(*given, **{**options, "check_same_thread": False}))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", remembering)
    yield
    for one in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
            one.execute("SELECT 1")
    assert opened


@pytest.mark.parametrize("tens", range(20))
def test_two_hundred_damaged_files_and_no_wrong_answer(all_closed, states, tmp_path, tens, caplog):
    refused = []
    for seed in range(10 * tens, 10 * tens + 10):
        folder = tmp_path / str(seed)
        damaged(states, folder, seed)
        try:
            cache = DiskCache(folder)
        except CacheError as error:
            refused.append(str(error))
            continue
        try:
            recompute(cache)
            assert verify(cache).sound <= len(ENTRIES)
            assert verify(cache).structure == "ok"
            recompute(cache)
            assert recompute(cache) == 0
            assert explain(cache, ENTRIES[7].key).hit
            assert explain(cache, MAKER.key({"question": "new"})).nearest is not None
        finally:
            cache.close()
            cache.leave()
    assert all("which modelgauge did not write" in one for one in refused)
    assert len(refused) <= 1


def spoil(path, *, behind=0):
    """Overwrite a file from a place on, as a bad disk would."""
    data = bytearray(path.read_bytes())
    data[behind : behind + 4096] = b"\xa5" * len(data[behind : behind + 4096])
    path.write_bytes(data)


@pytest.fixture
def cache(all_closed, states, tmp_path):
    shutil.copytree(states[0], tmp_path / "cache")
    opened = []

    def open_it():
        opened.append(DiskCache(tmp_path / "cache"))
        return opened[-1]

    yield open_it
    for one in opened:
        one.close()
        one.leave()


def test_a_file_that_is_no_database_is_set_aside_and_begun_anew(cache, tmp_path, caplog):
    spoil(tmp_path / "cache" / "cache.db")
    opened = cache()
    assert opened.get(ENTRIES[0].key.digest) is None
    assert opened.damaged == 1
    [aside] = (tmp_path / "cache" / "quarantine").iterdir()
    assert (aside / "cache.db").read_bytes().startswith(b"\xa5")
    assert str(aside) in caplog.text
    assert recompute(opened) == len(ENTRIES)
    assert recompute(opened) == 0


def test_a_thread_closes_what_it_has_of_a_file_that_another_thread_set_aside(cache):
    opened = cache()
    with ThreadPoolExecutor(1) as other:
        assert other.submit(opened.get, ENTRIES[0].key.digest).result() == ENTRIES[0].response
        opened.set_aside("no bit of it is right")
        assert other.submit(opened.get, ENTRIES[0].key.digest).result() == ENTRIES[0].response
        other.submit(opened.close).result()


def test_sound_answers_of_a_damaged_file_are_kept(cache, tmp_path, caplog):
    file = tmp_path / "cache" / "cache.db"
    with closing(sqlite3.connect(file)) as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        row = connection.execute("SELECT value FROM Cache WHERE rowid = 30").fetchone()[0]
    place = file.read_bytes().index(row.encode("utf-8")) // 4096 * 4096
    assert pages > 5
    spoil(file, behind=place)
    opened = cache()
    lost = recompute(opened)
    assert 0 < lost < len(ENTRIES) // 2
    assert "taken over" in caplog.text
    recompute(opened)  # what was served before the damage was met
    assert recompute(opened) == 0


def test_a_cache_that_another_process_set_aside_is_followed(cache, tmp_path):
    first, second = cache(), cache()
    first.set_aside("seen from here")
    second.put_many([Entry(MAKER.key("late"), '"late"')])
    assert first.get(MAKER.key("late").digest) == '"late"'
    assert recompute(first) == recompute(second) == 0


def test_what_two_threads_find_damaged_is_set_aside_once(cache, tmp_path):
    opened = cache()
    error = sqlite3.DatabaseError("malformed")
    assert is_damage(error)
    seen = opened._store
    opened._begin_anew(error, seen)
    before = file_at(opened.database)
    opened._begin_anew(error, seen)
    assert file_at(opened.database) == before
    assert len(list((tmp_path / "cache" / "quarantine").iterdir())) == 1


def test_a_row_that_was_written_anew_meanwhile_stays(cache):
    opened = cache()
    with closing(sqlite3.connect(opened.database)) as connection, connection:
        connection.execute("UPDATE Cache SET value = 'nonsense' WHERE key = ?", (ENTRIES[3].key.digest,))
    [found] = [row for row in opened.rows() if row.key == ENTRIES[3].key.digest]
    opened.put_many([ENTRIES[3]])
    opened.quarantine_row(found, "no header")
    assert opened.get(ENTRIES[3].key.digest) == ENTRIES[3].response
    assert opened.damaged == 0


@pytest.mark.parametrize("place", [0, 40, 4096, 5000])
def test_damaged_leases_are_begun_anew_also_while_they_are_used(cache, tmp_path, place):
    one, other = cache(), cache()
    one.leases.beat()
    assert one.leases.shared
    spoil(tmp_path / "cache" / "leases.db", behind=place)
    for process in (one, other, one, other):
        process.leases.beat()
    assert one.leases.shared
    assert other.leases.shared
    assert one.leases.take(["a", "b"]) == {"a", "b"}
    assert other.leases.take(["b", "c"]) == {"c"}
    one.put_many([Entry(MAKER.key("new"), '"new"')])
    assert other.get(MAKER.key("new").digest) == '"new"'


def test_a_cache_whose_folder_is_gone_ends_clearly(cache, tmp_path):
    opened = cache()
    opened.get(ENTRIES[0].key.digest)
    shutil.rmtree(tmp_path / "cache")
    with pytest.raises(CacheError, match="cannot be written"):
        opened.put_many([Entry(MAKER.key("new"), '"new"')])
    opened.close()
    opened.leave()


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
