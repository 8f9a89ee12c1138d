"""The index: it follows the files, whatever happens to them and to it."""

import json
import os
import re
import shutil
import signal
import sqlite3
import sys
import time
from contextlib import closing, contextmanager

import children
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge import run_test
from modelgauge.data.items import TestItem
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.engine.run_files.journal import make_line
from modelgauge.files.whole import replacing
from modelgauge.runs.recorded_run import recorded_run
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


def places(index):
    """Return place and question of all items of the only run, in the order of the pages."""
    Watcher(index).look()
    with index.reading() as db:
        (row,) = find_runs(db, {}).rows
        found = find_items(db, wanted_items(row, {}, [], []), {})
        return [(item["place"], item["question"]) for item in found.rows]


STEPS = st.lists(st.tuples(st.integers(0, 5), st.sets(st.integers(0, 5)), st.booleans()), max_size=12)


@given(steps=STEPS)
def test_items_are_those_of_the_journal_whenever_it_is_read(tmp_path_factory, steps):
    """Lines are appended, some in the place of others, and the index looks now and then."""
    data = tmp_path_factory.mktemp("data")
    name = run(data, "question 0")
    journal = data / "runs" / name / "items.jsonl"
    (first,) = RunFolder(journal.parent).items()
    index = Index([data])
    for number, (place, replaces, looks) in enumerate(steps):
        item = first.test_item.replaced(prompts=TestItem([f"question {number}"]).prompts)
        line = first.replaced(index=place, replaces=tuple(replaces), test_item=item)
        with journal.open("ab") as file:
            file.write(make_line(line, "t", str)[1])
        if looks:
            places(index)
    items = recorded_run(RunFolder(journal.parent)).items().records()
    assert places(index) == [(item.index, item.test_item.prompts[0].prompt.text) for item in items]
    index.close()


def test_journal_that_was_written_again_in_another_order_is_read_again(tmp_path, opened):
    index = opened(tmp_path)
    name = run(tmp_path, "a", "bb", "ccc")
    journal = tmp_path / "runs" / name / "items.jsonl"
    lines = sorted(journal.read_bytes().splitlines(keepends=True), reverse=True)
    journal.write_bytes(b"".join(lines[:2]))
    assert places(index) == [(1, "bb"), (2, "ccc")]
    with replacing(journal) as written:  # as sessions of earlier versions did
        written.write_bytes(b"".join(reversed(lines)))
    assert places(index) == [(0, "a"), (1, "bb"), (2, "ccc")]
    with index.reading() as db:
        (row,) = find_runs(db, {}).rows
        items = find_items(db, wanted_items(row, {}, [], []), {}).rows
    whole = journal.read_bytes()
    stored = [json.loads(whole[item["start"] :][: item["length"]])["index"] for item in items]
    assert stored == [0, 1, 2]


SESSION = """
import os, signal, time
from pathlib import Path
import pytest
from modelgauge.evals import LLMTestCase, assert_test
from modelgauge.metrics import ContainsMetric

def judge(name):
    assert_test(LLMTestCase(name, f"answer {name}", expected_output="answer"), [ContainsMetric()])

@pytest.mark.parametrize("number", range(6))
def test_live(number):
    time.sleep(0.1)
    judge(f"{number} first " + "x" * 10 * (6 - number))
    judge(f"{number} second")

def test_end():
    if "END" in os.environ:
        Path("ended").touch()
        time.sleep(60)
"""


@pytest.mark.parametrize("options", [(), ("-n", "2"), ("--repeat", "2")], ids=["alone", "xdist", "repeats"])
def test_session_of_pytest_that_is_watched_keeps_all_its_items(tmp_path, opened, monkeypatch, options):
    with session_of(tmp_path, monkeypatch, *options) as process:
        index = opened(tmp_path / "run_data")
        seen = []
        while process.poll() is None:
            seen.append(look_at(index))
        assert process.returncode == 0
    assert any(0 < len(found) < 12 for found in seen)
    expected = [f"test_session.py::test_live[{n}]{call}" for n in range(6) for call in ("", "~2")]
    assert look_at(index) == expected
    fresh = opened(tmp_path / "run_data")  # a second one has a file of its own
    assert look_at(fresh) == expected


@pytest.mark.skipif(sys.platform == "win32", reason="there are no process groups to end")
@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_killed_session_that_is_watched_keeps_all_its_items(tmp_path, opened, monkeypatch, options):
    with session_of(tmp_path, monkeypatch, *options, END="1") as process:
        index = opened(tmp_path / "run_data")
        while not (tmp_path / "ended").exists() or len(look_at(index)) < 12:
            assert process.poll() is None
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
    assert len(look_at(index)) == 12
    with index.reading() as db:
        assert [row["state"] for row in find_runs(db, {}).rows] == ["killed"]


@contextmanager
def session_of(folder, monkeypatch, *options, **variables):
    """A session of pytest in a process of its own."""
    monkeypatch.chdir(folder)
    (folder / "test_session.py").write_text(SESSION, encoding="utf-8")
    command = ("-m", "modelgauge", "test", "run", "test_session.py", "-q", *options)
    env = children.environment("PYTEST", "MODELGAUGE", PYTEST_ADDOPTS="-p no:hypothesispytest", **variables)
    process = children.start(*command, kind=children.Nesting, env=env, start_new_session=True)
    try:
        yield process
    finally:
        process.communicate(timeout=children.PATIENCE)


def look_at(index):
    """Return the ids of the items of the only run, in the order of the pages; empty before it exists."""
    Watcher(index).look()
    with index.reading() as db:
        rows = find_runs(db, {}).rows
        return [item["id"] for row in rows for item in find_items(db, wanted_items(row, {}, [], []), {}).rows]
