"""Several processes and threads with one cache."""

import threading

import children

from modelgauge.cache.folder import FolderBackend
from modelgauge.cache.keys import Entry, KeyMaker
from modelgauge.cache.responses import ResponseCache

WRITER = """
import sys
from pathlib import Path
from modelgauge.cache.keys import Entry, KeyMaker
from modelgauge.cache.folder import FolderBackend
from modelgauge.cache.responses import ResponseCache

cache = ResponseCache(FolderBackend(Path(sys.argv[1])))
maker = KeyMaker("sut", {})
for group in range(10):
    cache.put_many([Entry(maker.key(f"{sys.argv[2]} {group} {n}"), f'"{n}"') for n in range(5)])
cache.close()
cache.leave()
"""


def test_processes_write_and_read_one_cache(tmp_path):
    writers = [children.start("-c", WRITER, tmp_path / "cache", name) for name in ("one", "two")]
    cache = ResponseCache(FolderBackend(tmp_path / "cache"))
    maker = KeyMaker("sut", {})
    cache.put_many([Entry(maker.key("own"), '"own"')])
    assert [children.finish(writer).stderr for writer in writers] == ["", ""]
    for name in ("one", "two"):
        for group in range(10):
            assert cache.get(maker.key(f"{name} {group} 4").digest) == '"4"'
    assert len(cache) == 101
    cache.close()
    cache.leave()


def test_threads_have_their_own_connections(tmp_path):
    cache = ResponseCache(FolderBackend(tmp_path / "cache"))
    maker = KeyMaker("sut", {})
    found: list[str | None] = []

    def write_and_read(name: str) -> None:
        cache.put_many([Entry(maker.key(name), f'"{name}"')])
        found.append(cache.get(maker.key(name).digest))
        cache.close()

    threads = [threading.Thread(target=write_and_read, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert sorted(map(str, found)) == ['"a"', '"b"', '"c"', '"d"']
    cache.close()
    cache.leave()


def test_rows_are_found_by_their_keys_however_many_others_there_are(tmp_path):
    cache = ResponseCache(FolderBackend(tmp_path / "cache"))
    statements: list[str] = []
    cache.backend.database._store._con.set_trace_callback(statements.append)
    cache.get_many(["a" * 64, "b" * 64])
    [select] = [statement for statement in statements if statement.startswith("SELECT rowid")]
    plan = cache.backend.database._store._con.execute(f"EXPLAIN QUERY PLAN {select}").fetchall()
    assert [row[3] for row in plan] == ["SEARCH Cache USING INDEX Cache_key_raw (key=? AND raw=?)"]
    cache.close()
    cache.leave()
