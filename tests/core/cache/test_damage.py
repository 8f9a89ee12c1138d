"""What is damaged in a cache, and what is not: no wrong answer is served, and what is sound is kept."""

import json
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from cache_entries import ENTRIES, MAKER, recompute

from modelgauge.cache.database import file_at, is_damage, is_unreadable
from modelgauge.cache.folder import FolderBackend
from modelgauge.cache.keys import Entry
from modelgauge.cache.responses import ResponseCache
from modelgauge.errors import CacheError

# --- which errors tell of damage ------------------------------------------------------------------------------------


def error(kind, text, name=None):
    made = kind(text)
    if name is not None:
        made.sqlite_errorname = name
    return made


@pytest.mark.parametrize(
    ("told", "is_damaged"),
    [
        (error(sqlite3.DatabaseError, "file is not a database", "SQLITE_NOTADB"), True),
        (error(sqlite3.DatabaseError, "database disk image is malformed", "SQLITE_CORRUPT"), True),
        (error(sqlite3.OperationalError, "a text", "SQLITE_CORRUPT_INDEX"), True),
        (error(sqlite3.IntegrityError, "UNIQUE constraint failed", "SQLITE_CONSTRAINT_UNIQUE"), True),
        (error(sqlite3.IntegrityError, "UNIQUE constraint failed", "SQLITE_CONSTRAINT_PRIMARYKEY"), True),
        (error(sqlite3.OperationalError, "attempt to write", "SQLITE_READONLY_DBMOVED"), True),
        (error(sqlite3.OperationalError, "no such table: Cache", "SQLITE_ERROR"), True),
        (error(sqlite3.OperationalError, "no such column: key", "SQLITE_ERROR"), True),
        (error(sqlite3.OperationalError, "table Cache has no column named key", "SQLITE_ERROR"), True),
        (error(sqlite3.OperationalError, "malformed database schema (Cache)", "SQLITE_ERROR"), True),
        (error(sqlite3.DatabaseError, "said without a code"), True),
        (error(sqlite3.IntegrityError, "no", "SQLITE_CONSTRAINT_TRIGGER"), False),
        (error(sqlite3.OperationalError, "attempt to write", "SQLITE_READONLY"), False),
        (error(sqlite3.OperationalError, "database is locked", "SQLITE_BUSY"), False),
        (error(sqlite3.OperationalError, "database or disk is full", "SQLITE_FULL"), False),
        (error(sqlite3.OperationalError, "disk I/O error", "SQLITE_IOERR"), False),
        (error(sqlite3.OperationalError, "said without a code"), False),
        (error(sqlite3.DataError, "string or blob too big", "SQLITE_TOOBIG"), False),
    ],
    ids=str,
)
def test_damage_is_told_from_a_full_disk_and_a_locked_file(told, is_damaged):
    assert is_damage(told) == is_damaged


def test_text_that_is_no_utf_8_and_huge_value_are_unreadable():
    assert is_unreadable(sqlite3.DataError("string or blob too big"))
    assert is_unreadable(sqlite3.OperationalError("Could not decode to UTF-8 column 'value'"))
    assert not is_unreadable(sqlite3.OperationalError("database is locked"))


def test_a_file_is_told_from_its_successor(tmp_path):
    file = tmp_path / "file"
    assert file_at(file) is None
    file.touch()
    before = file_at(file)
    assert file_at(file) == before is not None
    file.rename(tmp_path / "kept")
    file.touch()
    assert file_at(file) != before


# --- what becomes of a damaged cache --------------------------------------------------------------------------------


def spoil(path, *, behind=0):
    """Overwrite a file from a place on, as a bad disk would."""
    data = bytearray(path.read_bytes())
    data[behind : behind + 4096] = b"\xa5" * len(data[behind : behind + 4096])
    path.write_bytes(data)


@pytest.fixture
def cache(all_closed, tmp_path):
    """`cache()`: an object of its own for the cache of a folder, which has entries."""
    filled = ResponseCache(FolderBackend(tmp_path / "cache"))
    filled.put_many(ENTRIES)
    filled.close()
    filled.leave()
    opened = []

    def open_it():
        opened.append(ResponseCache(FolderBackend(tmp_path / "cache")))
        return opened[-1]

    yield open_it
    for one in opened:
        one.close()
        one.leave()


def quarantine(cache, why):
    """Set the database of a cache aside, as `verify` does where its structure is damaged."""
    database = cache.backend.database
    database.replace(sqlite3.DatabaseError(why), database._store)


def test_a_file_that_is_no_database_is_quarantined_and_replaced(cache, tmp_path, caplog):
    spoil(tmp_path / "cache" / "cache.db")
    opened = cache()
    assert opened.get(ENTRIES[0].key.digest) is None
    assert opened.damaged == 1
    [aside] = (tmp_path / "cache" / "quarantine").iterdir()
    assert (aside / "cache.db").read_bytes().startswith(b"\xa5")
    assert str(aside) in caplog.text
    assert recompute(opened) == len(ENTRIES)
    assert recompute(opened) == 0


def test_a_thread_closes_what_it_has_of_a_file_that_another_thread_quarantined(cache):
    opened = cache()
    with ThreadPoolExecutor(1) as other:
        assert other.submit(opened.get, ENTRIES[0].key.digest).result() == ENTRIES[0].response
        quarantine(opened, "no bit of it is right")
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


def test_a_cache_that_another_process_quarantined_is_left(cache, tmp_path):
    first, second = cache(), cache()
    quarantine(first, "seen from here")
    second.put_many([Entry(MAKER.key("late"), '"late"')])
    assert first.get(MAKER.key("late").digest) == '"late"'
    assert recompute(first) == recompute(second) == 0


def test_what_another_process_paid_after_it_quarantined_the_file_is_found_there(cache):
    first, second = cache(), cache()
    assert second.get(ENTRIES[0].key.digest) == ENTRIES[0].response
    quarantine(first, "seen from here")
    first.put_many([Entry(MAKER.key("late"), '"late"')])
    with ThreadPoolExecutor(1) as other:  # each thread has a connection of its own
        assert other.submit(second.get, MAKER.key("late").digest).result() == '"late"'
        other.submit(second.close).result()
    assert second.get(MAKER.key("late").digest) == '"late"'
    assert second.get(MAKER.key("never").digest) is None
    assert recompute(first) == recompute(second) == 0
    assert second.damaged == 0


def test_damage_that_is_first_met_while_writing_loses_neither_the_new_nor_the_sound(cache, tmp_path, caplog):
    opened, new = cache(), [Entry(MAKER.key(f"new {n}"), f'"new {n}"') for n in range(20)]
    file = tmp_path / "cache" / "cache.db"
    with closing(sqlite3.connect(file)) as connection:
        (index,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'Cache_key_raw'"
        ).fetchone()
    spoil(file, behind=4096 * (index - 1))  # rows are found by rowid, and by this
    opened.put_many(new)
    assert opened.damaged == 1
    assert "was moved to" in caplog.text
    assert f"{len(ENTRIES)} sound answers of the damaged cache were taken over" in caplog.text
    for entry in (*ENTRIES, *new):
        assert opened.get(entry.key.digest) == entry.response


def test_what_two_threads_find_damaged_is_quarantined_once(cache, tmp_path):
    opened = cache()
    error = sqlite3.DatabaseError("malformed")
    assert is_damage(error)
    database = opened.backend.database
    seen = database._store
    database.replace(error, seen)
    before = file_at(database.file)
    database.replace(error, seen)
    assert file_at(database.file) == before
    assert len(list((tmp_path / "cache" / "quarantine").iterdir())) == 1


def test_a_row_that_was_written_anew_meanwhile_stays(cache):
    opened = cache()
    with closing(sqlite3.connect(opened.backend.file)) as connection, connection:
        connection.execute("UPDATE Cache SET value = 'nonsense' WHERE key = ?", (ENTRIES[3].key.digest,))
    digest = ENTRIES[3].key.digest
    assert opened.backend.get_many([digest]) == {digest: b"nonsense"}
    opened.put_many([ENTRIES[3]])
    assert not opened.backend.set_aside(digest, b"nonsense", "no header")
    assert opened.get(ENTRIES[3].key.digest) == ENTRIES[3].response
    assert opened.damaged == 0


def test_damaged_leases_stop_nobody(cache, tmp_path):
    one, other = cache(), cache()
    assert one.backend.leases.take(["a", "b"]) == {}
    for file in (tmp_path / "cache").glob("*.leases"):
        spoil(file)
    assert other.backend.leases.take(["b", "c"]) == {}
    assert set(one.backend.leases.take(["c", "d"])) == {"c"}
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


def test_verify_sets_a_damaged_structure_aside_and_keeps_what_is_sound(cache, tmp_path, caplog):
    opened = cache()
    with closing(sqlite3.connect(opened.backend.file)) as connection:
        (index,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'Cache_key_raw'"
        ).fetchone()
    spoil(opened.backend.file, behind=4096 * (index - 1))
    found = opened.verify()
    assert (found.sound, found.damaged) == (len(ENTRIES), 0)
    assert "malformed" in found.structure or "btree" in found.structure.lower()
    assert opened.verify().structure == "ok"
    assert opened.damaged == 1
    assert recompute(opened) == 0


def test_verify_of_a_file_that_became_no_database_says_so(cache, tmp_path, caplog):
    opened = cache()
    spoil(opened.backend.file)
    assert opened.verify().structure == "file is not a database"
    assert opened.verify().structure == "ok"


def test_the_damage_is_told_in_the_quarantine(cache, tmp_path):
    opened = cache()
    with closing(sqlite3.connect(opened.backend.file)) as connection, connection:
        connection.execute("UPDATE Cache SET value = 'mg1 é' WHERE key = ?", (ENTRIES[3].key.digest,))
    assert opened.get(ENTRIES[3].key.digest) is None
    assert opened.damaged == 1
    [line] = (tmp_path / "cache" / "quarantine" / "rows.jsonl").read_text(encoding="ascii").splitlines()
    told = json.loads(line)
    assert told.pop("time").endswith("+00:00")
    assert told == {"key": ENTRIES[3].key.digest, "why": "no header", "value": "'mg1 é'"}


def test_the_volume_is_that_of_the_database_files(cache, tmp_path):
    opened = cache()
    files = [path for path in (tmp_path / "cache").iterdir() if path.name.startswith("cache.db")]
    assert opened.stats().bytes == sum(path.stat().st_size for path in files) > 1000


def test_clearing_tells_how_many_there_were(cache):
    opened = cache()
    assert opened.clear() == len(ENTRIES)
    assert (len(opened), opened.clear()) == (0, 0)


@pytest.mark.parametrize("what", ["put_many", "clear"])
def test_a_database_that_another_program_holds_is_told_and_not_waited_for_without_end(
    cache, tmp_path, monkeypatch, what
):
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *given, **options: connect(*given, **{**options, "timeout": 0.1})
    )
    opened = cache()
    with closing(connect(opened.backend.file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(CacheError, match="database is locked"):
            opened.put_many([Entry(MAKER.key("new"), '"new"')]) if what == "put_many" else opened.clear()
        assert opened.get(ENTRIES[0].key.digest) == ENTRIES[0].response
    opened.put_many([Entry(MAKER.key("new"), '"new"')])
    assert opened.damaged == 0


@pytest.mark.parametrize(
    "change", ["mode = 4", "mode = NULL", "filename = 'x'", "raw = 0", "key = x'00'", "key = 5"]
)
def test_a_row_that_the_cache_does_not_write_is_no_entry_though_its_value_is_whole(cache, change):
    opened = cache()
    with closing(sqlite3.connect(opened.backend.file)) as connection, connection:
        connection.execute(f"UPDATE Cache SET {change} WHERE rowid = 3")
    assert len(list(opened.entries())) == len(ENTRIES) - 1
    found = opened.verify()
    assert (found.sound, found.damaged, found.structure) == (len(ENTRIES) - 1, 1, "ok")
    assert (opened.verify().damaged, len(opened)) == (0, len(ENTRIES) - 1)


def test_an_entry_with_the_mark_of_a_secret_is_neither_served_nor_listed(cache):
    opened = cache()
    marked = Entry(MAKER.key("say [secret acme.api-key_1]"), '"x"'), Entry(MAKER.key("new"), '"[secret a]"')
    plain = Entry(MAKER.key("plain"), '"[secret ] [secret a b] [secret é]"')
    opened.put_many([*marked, plain])
    assert [opened.get(one.key.digest) for one in (*marked, plain)] == [None, None, plain.response]
    assert {entry.key for entry in opened.entries()} == {one.key for one in (*ENTRIES, plain)}
    assert opened.damaged == 0
