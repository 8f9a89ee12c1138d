"""The index: it follows the files, whatever happens to them and to it."""

import re
import shutil
import sqlite3
import time
from contextlib import closing

import pytest

from modelgauge import run_test
from modelgauge.testing import FakeSUT, FakeTest
from modelgauge_workbench.index.index import Index
from modelgauge_workbench.index.item_queries import find_items, search_items, wanted_items
from modelgauge_workbench.index.queries import find_runs, run_of
from modelgauge_workbench.index.watch import Watcher


@pytest.fixture
def opened():
    """Indexes, which are closed after the test."""
    found = []

    def of(*data_dirs):
        found.append(Index(data_dirs))
        return found[-1]

    yield of
    for one in found:
        one.close()


def run(data, *questions, test="t"):
    return run_test(
        FakeTest(test, questions), FakeSUT("s", lambda prompt: f"to {prompt.text}"), data_dir=data
    ).run_id


def state(index):
    """The ids of all runs, with the answers of their items."""
    Watcher(index).look()
    with index.reading() as db:
        runs = find_runs(db, {}).rows
        return {
            row["key"]: [one["answer"] for one in find_items(db, wanted_items(row, {}, [], []), {}).rows]
            for row in runs
        }


def test_the_index_follows_the_files(tmp_path, opened):
    index = opened(tmp_path)
    assert state(index) == {}
    first, second = run(tmp_path, "a", "b"), run(tmp_path, "c")
    assert state(index) == {first: ["to a", "to b"], second: ["to c"]}
    journal = tmp_path / "runs" / first / "items.jsonl"
    lines = sorted(journal.read_bytes().splitlines(keepends=True))  # items finish in any order
    more = lines[0].replace(b'"index":0', b'"index":2').replace(b"to a", b"to d")
    journal.write_bytes(b"".join(lines) + more + b'{"kind":"item","index":3,"torn')
    assert state(index)[first] == ["to a", "to b", "to d"]
    journal.write_bytes(lines[1])  # another journal is in its place
    assert state(index)[first] == ["to b"]
    shutil.rmtree(tmp_path / "runs" / second)
    assert state(index) == {first: ["to b"]}
    with index.reading() as db:
        assert [row["answer"] for row in search_items(db, "to", 1)] == ["to b"]


def test_runs_of_one_name_in_two_folders_have_two_addresses(tmp_path, opened):
    first = run(tmp_path / "one", "a")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    index = opened(tmp_path / "one", tmp_path / "two")
    assert state(index) == {first: ["to a"], f"{first}~2": ["to a"]}
    with index.reading() as db:
        assert run_of(db, f"{first}~2")["folder"] == 1


def test_only_new_lines_of_a_journal_are_read(tmp_path, opened):
    index = opened(tmp_path)
    (name,) = [run(tmp_path, "a", "b")]
    state(index)
    with index.reading() as db:
        before = [row["number"] for row in search_items(db, "to", 1)]
    journal = tmp_path / "runs" / name / "items.jsonl"
    line = re.sub(rb'"index":\d', b'"index":7', journal.read_bytes().splitlines(keepends=True)[0])
    journal.write_bytes(journal.read_bytes() + b"no item\n" + line)
    assert len(state(index)[name]) == 3
    with index.reading() as db:
        assert [row["number"] for row in search_items(db, "to", 1)][1:] == before


@pytest.mark.parametrize("damage", ["no database", "another version", "no schema", "damaged tables"])
def test_an_index_that_is_broken_or_old_is_made_again(tmp_path, opened, damage):
    name = run(tmp_path, "a")
    index = opened(tmp_path)
    state(index)
    index.close()
    path = tmp_path / "workbench.sqlite"
    if damage == "no database":
        path.write_bytes(b"no database" * 1000)
    elif damage == "another version":
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA user_version = 99")
    else:
        content = path.read_bytes()
        sound = 4096 if damage == "no schema" else len(content) // 2
        path.write_bytes(content[:sound] + b"\xff" * (len(content) - sound))
    index = opened(tmp_path)
    watcher = Watcher(index)
    watcher.start()
    try:
        found, patience = [], time.monotonic() + 60
        while found != [name] and time.monotonic() < patience:
            try:
                with index.reading() as db:
                    found = [row["key"] for row in find_runs(db, {}).rows]
            except sqlite3.DatabaseError:
                index.broken.set()
    finally:
        watcher.stop()
    assert found == [name]


def test_a_second_workbench_has_an_index_of_its_own(tmp_path, opened):
    name = run(tmp_path, "a")
    indexes = opened(tmp_path), opened(tmp_path)
    assert [state(index) for index in indexes] == [{name: ["to a"]}] * 2


def test_a_folder_that_cannot_be_written_is_shown_all_the_same(tmp_path, opened):
    name = run(tmp_path, "a")
    (tmp_path / "workbench.sqlite.lock").mkdir()
    assert state(opened(tmp_path)) == {name: ["to a"]}
