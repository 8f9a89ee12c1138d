"""A run to which several processes add items, of which one is killed."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from modelgauge.data.item_records import TestItemRecord
from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.data.prompts import TextPrompt
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.engine.run_files.journal import make_line
from modelgauge.engine.run_files.shared_journal import SharedJournal
from modelgauge.engine.shared_run import SharedRun
from modelgauge.errors import RunStoppedError
from modelgauge.files.lock import lock

ADDING = """
import os, sys
from pathlib import Path
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.engine.shared_run import SharedRun
from tests.core.engine.test_shared_run import line

first, folder, meeting = int(sys.argv[1]), RunFolder(Path(sys.argv[2])), Path(sys.argv[3])
run = SharedRun(folder, meeting, lambda: (folder.path / "begun").write_text(str(os.getpid())), str)
for index in range(first, first + 20):
    run.log(added=index)
    run.add(line(index))
    print(index, flush=True)
    if index == first + 10:
        sys.stdin.readline()
"""


def item(index, **fields):
    asked = TestItem(PromptWithContext(TextPrompt(f"question {index}")), id=f"item {index}")
    return TestItemRecord(index=index, test_item=asked, interactions=(), measurements={"n": index}, **fields)


def line(index):
    return make_line(item(index), "test", str)[1]


@pytest.fixture
def started(tmp_path):
    """Start a process that adds twenty items, and waits after the eleventh."""
    (tmp_path / "meeting").mkdir()
    processes = []

    def start(first):
        command = [sys.executable, "-c", ADDING, str(first), str(tmp_path / "run"), str(tmp_path / "meeting")]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        process = subprocess.Popen(command, cwd=Path(__file__).parents[3], **pipes)
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def finished(tmp_path, items):
    """Finish the run, and return its folder and the number of items in the index of its journal."""
    run = SharedRun(RunFolder(tmp_path / "run"), tmp_path / "meeting", lambda: None, str)
    with run.finishing(items, "test", {}) as index:
        number = len(index.items(None))
    return run.folder, number


def test_items_of_all_processes_are_kept_also_of_a_killed_one(started, tmp_path):
    ended, killed = started(0), started(100)
    for process, last in ((ended, "10"), (killed, "110")):
        while process.stdout.readline().strip() != last:
            pass
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    ended.communicate("\n")
    run = SharedRun(RunFolder(tmp_path / "run"), tmp_path / "meeting", lambda: None, str)
    indexes = [*range(20), *range(100, 111)]
    assert sorted(record.index for record in run.items()) == indexes
    assert {event["added"] for event in run.events()} >= {*range(20)}
    assert (tmp_path / "run" / "begun").exists()
    folder, number = finished(tmp_path, [item(index) for index in indexes])
    assert number == len(indexes)
    assert sorted(path.name for path in folder.path.iterdir()) == ["begun", "items.jsonl"]
    assert not (tmp_path / "meeting").exists()


def test_item_replaces_the_lines_that_it_names(tmp_path):
    run = SharedRun(RunFolder(tmp_path / "run"), tmp_path / "meeting", lambda: None, str)
    for index in (0, 1, 700, 800):
        run.add(line(index))
    before = run.folder.journal.read_bytes()
    run.close()
    items = [item(0, replaces=(0,)), item(1, replaces=(1, 800)), item(2, replaces=(700,))]
    folder, number = finished(tmp_path, items)
    assert folder.journal.read_bytes().startswith(before)
    assert sorted(record.index for record in folder.items()) == [0, 1, 2]
    assert number == 3


def test_run_without_its_folder_is_refused_and_not_forgotten(tmp_path):
    run = SharedRun(RunFolder(tmp_path / "run"), tmp_path / "meeting", lambda: None, str)
    run.add(line(0))
    run.check_kept()
    shutil.rmtree(run.folder.path)
    with pytest.raises(RunStoppedError, match="Its folder was removed meanwhile"):
        run.check_kept()
    run.close()


def test_run_without_items_leaves_nothing(tmp_path):
    run = SharedRun(RunFolder(tmp_path / "data" / "runs" / "run"), tmp_path / "meeting", lambda: None, str)
    run.log(skipped=1)
    assert (tmp_path / "data" / "runs" / "run" / "cases").is_dir()
    run.forget()
    assert not (tmp_path / "data").exists()


def test_stopped_process_that_holds_the_journal_is_not_waited_for_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr("modelgauge.engine.run_files.shared_journal._PATIENCE", 0.05)
    journal = SharedJournal(tmp_path / "items.jsonl")
    held = lock(tmp_path / ".turn", "a+b")
    with pytest.raises(RunStoppedError, match="does not go on"):
        journal.append(b"lost\n")
    held.close()
    journal.append(b"kept\n")
    journal.close()
    assert (tmp_path / "items.jsonl").read_bytes() == b"kept\n"
