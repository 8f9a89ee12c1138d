"""A cache folder that somebody else has written: nothing runs, nothing is followed, no lie is served."""

import os
import pickle
import sqlite3
import threading
import tracemalloc
from contextlib import closing
from pathlib import Path
from time import monotonic

import diskcache
import pytest

from modelgauge.cache import responses
from modelgauge.cache.folder import FolderBackend
from modelgauge.cache.keys import Entry, KeyMaker
from modelgauge.cache.responses import CacheCheck, ResponseCache
from modelgauge.errors import CacheError

ENTRIES = [Entry(KeyMaker("sut", {"uid": "x"}).key(str(number)), f'"answer {number}"') for number in range(3)]


class Payload:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A cache with entries, closed."""
    cache = ResponseCache(FolderBackend(tmp_path / "cache"))
    cache.put_many(ENTRIES)
    closed(cache)
    return tmp_path / "cache"


def closed(cache: ResponseCache) -> None:
    cache.close()
    cache.leave()


def execute(folder: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(folder / "cache.db")) as connection, connection:
        connection.execute(statement, values)


def answers(folder: Path) -> list[str | None]:
    cache = ResponseCache(FolderBackend(folder))
    try:
        return [cache.get(entry.key.digest) for entry in ENTRIES]
    finally:
        closed(cache)


def test_the_payload_works(tmp_path):
    pickle.loads(pickle.dumps(Payload(tmp_path / "ran")))
    assert (tmp_path / "ran").exists()


def test_entries_are_served(folder):
    assert answers(folder) == [entry.response for entry in ENTRIES]


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_the_folder_is_its_owners(folder):
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0, 1, 2, 3, 4, "x", None])
def test_a_pickled_value_is_not_loaded(folder, tmp_path, mode):
    payload = pickle.dumps(Payload(tmp_path / "ran"))
    execute(
        folder, "UPDATE Cache SET mode = ?, value = ? WHERE key = ?", mode, payload, ENTRIES[0].key.digest
    )
    assert answers(folder) == [None, *(entry.response for entry in ENTRIES[1:])]
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("mode", [1, 2, 3, 4])
def test_a_file_name_is_not_followed(folder, tmp_path, mode):
    other = tmp_path / "other"
    other.write_bytes(pickle.dumps(Payload(tmp_path / "ran")))
    for name in (str(other), "../other"):
        execute(folder, "UPDATE Cache SET mode = ?, filename = ?, value = NULL", mode, name)
        assert answers(folder) == [None] * 3
    assert other.exists()  # neither run nor removed
    assert not (tmp_path / "ran").exists()


def test_a_file_named_in_a_row_is_not_removed_when_the_row_is_written_anew(folder, tmp_path):
    other = tmp_path / "other"
    other.write_text("mine", encoding="utf-8")
    execute(folder, "UPDATE Cache SET filename = ?", str(other))
    cache = ResponseCache(FolderBackend(folder))
    cache.put_many(ENTRIES)
    cache.clear()
    closed(cache)
    assert other.read_text(encoding="utf-8") == "mine"


def test_a_pickled_key_is_not_loaded(folder, tmp_path):
    payload = pickle.dumps(Payload(tmp_path / "ran"))
    execute(folder, "INSERT INTO Cache (key, raw, mode, value) VALUES (?, 0, 1, 'x')", payload)
    cache = ResponseCache(FolderBackend(folder))
    assert len(list(cache.entries())) == len(ENTRIES)
    assert len(cache) >= len(ENTRIES)
    closed(cache)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("value", "other"), ("value", b"\xff\xfe"), ("value", 5), ("value", None), ("value", "mg1 a 1\n"),
        ("value", "CAST"), ("raw", 0), ("expire_time", 0.0),
    ],
)  # fmt: skip
def test_a_changed_row_is_not_served_and_can_be_written_anew(folder, column, value):
    digest = ENTRIES[0].key.digest
    if value == "CAST":  # a text that is no UTF-8
        execute(folder, "UPDATE Cache SET value = CAST(x'ff' AS TEXT) || value WHERE key = ?", digest)
    else:
        execute(folder, f"UPDATE Cache SET {column} = ? WHERE key = ?", value, digest)
    assert answers(folder) == [None, *(entry.response for entry in ENTRIES[1:])]
    cache = ResponseCache(FolderBackend(folder))
    cache.put_many(ENTRIES[:1])
    closed(cache)
    assert answers(folder) == [entry.response for entry in ENTRIES]


def test_the_value_of_another_row_is_not_served(folder):
    execute(
        folder,
        "UPDATE Cache SET value = (SELECT value FROM Cache WHERE key = ?) WHERE key = ?",
        ENTRIES[1].key.digest,
        ENTRIES[0].key.digest,
    )
    assert answers(folder)[0] is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("unknown", 1),
        ("_disk", 1),
        ("get", 1),
        ("sqlite_unknown", 1),
        ("sqlite_synchronous", "0; ATTACH 'x' AS y"),
        ("sqlite_journal_mode", "delete"),
        ("eviction_policy", "least-recently-used"),
        ("disk_pickle_protocol", "x"),
        ("disk_unknown", 1),
        ("count", "many"),
        ("size_limit", None),
        ("tag_index", b"1"),
        (5, 1),
    ],
)
def test_unknown_settings_are_refused(folder, key, value):
    execute(folder, "INSERT OR REPLACE INTO Settings VALUES (?, ?)", key, value)
    with pytest.raises(CacheError, match="setting"):
        ResponseCache(FolderBackend(folder))


AFTER = "AFTER INSERT ON Cache BEGIN INSERT INTO Settings"
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT "


@pytest.mark.parametrize(
    ("statements", "told"),
    [
        (["CREATE TABLE more (x)"], "table 'more'"),
        (["CREATE INDEX more ON Cache (value)"], "index 'more'"),
        ([f"CREATE TRIGGER more {AFTER} {ENDLESS} i, i FROM n; END"], "trigger 'more'"),
        (["DROP TABLE Cache", f"CREATE VIEW Cache AS {ENDLESS} i AS rowid, i AS key FROM n"], "view 'Cache'"),
        (["DROP TABLE Settings", f"CREATE VIEW Settings AS {ENDLESS} i AS key, i AS value FROM n"], "view 'Settings'"),
        (["DROP TABLE Settings", "CREATE TABLE Settings (key, value)"], "table 'Settings'"),
        (
            ["DROP TRIGGER Settings_count_insert", f"CREATE TRIGGER Settings_count_insert {AFTER} SELECT 1, 1; END"],
            "trigger 'Settings_count_insert'",
        ),
    ],
)  # fmt: skip
def test_only_the_tables_indexes_and_triggers_of_diskcache_are_accepted(folder, statements, told):
    for statement in statements:
        execute(folder, statement)
    with pytest.raises(CacheError, match=f"{told}, which modelgauge did not write"):
        ResponseCache(FolderBackend(folder))


@pytest.mark.parametrize("value", ["zeroblob(70000000)", "CAST(zeroblob(70000000) AS TEXT)"])
def test_a_value_larger_than_any_that_is_written_is_not_read(folder, value):
    execute(folder, f"UPDATE Cache SET value = {value} WHERE rowid = 2")
    assert answers(folder) == [entry.response if at != 1 else None for at, entry in enumerate(ENTRIES)]
    execute(folder, f"UPDATE Cache SET value = {value} WHERE rowid = 3")
    tracemalloc.start()
    cache = ResponseCache(FolderBackend(folder))
    assert [entry.response for entry in cache.entries()] == ['"answer 0"']
    assert cache.verify() == CacheCheck(sound=1, damaged=1, structure="ok")
    closed(cache)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000
    assert (folder / "quarantine" / "rows.jsonl").stat().st_size < 2000


def test_huge_values_are_taken_out_quickly_and_their_room_is_given_back(folder):
    for entry in ENTRIES:
        execute(folder, "UPDATE Cache SET value = zeroblob(70000000) WHERE key = ?", entry.key.digest)
    cache = ResponseCache(FolderBackend(folder))
    began = monotonic()
    assert [cache.get(entry.key.digest) for entry in ENTRIES] == [None] * 3
    assert monotonic() - began < 1.5
    closed(cache)
    closed(ResponseCache(FolderBackend(folder)))
    assert (folder / "cache.db").stat().st_size < 100_000


def test_a_response_that_is_too_large_to_be_read_is_not_stored(folder, monkeypatch, caplog):
    monkeypatch.setattr(responses, "LARGEST", 1000)
    large = Entry(ENTRIES[0].key, f'"{"é" * 500}"')
    cache = ResponseCache(FolderBackend(folder))
    cache.put_many([large, *ENTRIES[1:]])
    assert cache.get(large.key.digest) == ENTRIES[0].response
    assert "is not kept in the cache" in caplog.text
    closed(cache)


@pytest.mark.skipif(os.name != "posix", reason="pipes are POSIX")
@pytest.mark.parametrize("name", ["cache.db", "cache.db-wal", "write.lock", "quarantine"])
def test_a_link_or_a_pipe_in_the_folder_is_refused_at_once(folder, tmp_path, name):
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(tmp_path)
    with pytest.raises(CacheError, match=f"link to another file.*{name}"):
        ResponseCache(FolderBackend(folder))
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(CacheError, match=f"not a regular file.*{name}"):
        ResponseCache(FolderBackend(folder))


def test_the_cache_of_another_program_is_refused(tmp_path):
    with diskcache.Cache(str(tmp_path / "cache")) as other:
        other["key"] = Payload(tmp_path / "ran")
    with pytest.raises(CacheError, match="did not write"):
        ResponseCache(FolderBackend(tmp_path / "cache"))
    assert not (tmp_path / "ran").exists()


def test_nothing_of_a_group_is_stored_where_a_part_of_it_cannot_be(folder):
    cache = ResponseCache(FolderBackend(folder))
    cache.clear()
    execute(
        folder,
        "CREATE TRIGGER refuse BEFORE INSERT ON Cache WHEN NEW.key = '" + ENTRIES[2].key.digest + "'"
        " BEGIN SELECT RAISE(ABORT, 'no'); END",
    )
    with pytest.raises(CacheError, match="cannot be written"):
        cache.put_many(ENTRIES)
    assert [cache.get(entry.key.digest) for entry in ENTRIES] == [None] * 3
    execute(folder, "DROP TRIGGER refuse")
    cache.put_many(ENTRIES)
    closed(cache)
    assert answers(folder) == [entry.response for entry in ENTRIES]


def test_a_folder_that_is_a_file_is_explained(tmp_path):
    (tmp_path / "cache").write_text("x", encoding="utf-8")
    with pytest.raises(CacheError, match="cannot be opened"):
        ResponseCache(FolderBackend(tmp_path / "cache"))


@pytest.mark.skipif(os.name != "posix", reason="$NAME is a variable on POSIX")
def test_a_folder_is_the_one_that_was_named(tmp_path, monkeypatch):
    monkeypatch.setenv("MG_ELSEWHERE", "elsewhere")
    with pytest.raises(CacheError, match="variable in its name"):  # diskcache would resolve it
        ResponseCache(FolderBackend(tmp_path / "$MG_ELSEWHERE" / "cache"))
    home = tmp_path / "$NOT_SET" / "~" / "cache"
    cache = ResponseCache(FolderBackend(home))
    cache.put_many(ENTRIES)
    closed(cache)
    assert (home / "cache.db").exists()
    assert not (tmp_path / "elsewhere").exists()


def test_a_cache_that_is_refused_leaves_no_thread_behind(folder):
    execute(folder, "INSERT INTO Settings VALUES ('unknown', 1)")
    before = set(threading.enumerate())
    with pytest.raises(CacheError):
        ResponseCache(FolderBackend(folder))
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=10)
        assert not thread.is_alive()


def test_verify_finds_what_is_damaged(folder):
    execute(
        folder, "UPDATE Cache SET value = CAST(x'ff' AS TEXT) || value WHERE key = ?", ENTRIES[0].key.digest
    )
    cache = ResponseCache(FolderBackend(folder))
    assert (cache.verify().sound, cache.verify().damaged) == (
        2,
        0,
    )  # the first call has put it into quarantine
    assert cache.damaged == 1
    closed(cache)
