"""The journal of a run has one writer."""

import subprocess
import sys

import pytest

from modelgauge.engine.run_files.folder import write_atomically
from modelgauge.engine.run_files.journal import JournalFile
from modelgauge.errors import RecordError, RunStoppedError


def test_two_writers_of_one_journal_are_refused(tmp_path):
    path = tmp_path / "run" / "items.jsonl"
    path.parent.mkdir()
    first = JournalFile(path)
    with pytest.raises(RecordError, match="Run run is going on in another process"):
        JournalFile(path)
    first.close()
    JournalFile(path).close()


def test_the_lock_ends_with_its_process(tmp_path):
    path = tmp_path / "items.jsonl"
    code = (
        "import os, pathlib, sys\nfrom modelgauge.engine.run_files.journal import JournalFile\n"
        f"journal = JournalFile(pathlib.Path({str(path)!r}))\njournal.append(b'{{}}\\n')\nos._exit(1)"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    journal = JournalFile(path)
    assert journal.size == 3
    journal.close()


def test_a_torn_line_is_cut_off(tmp_path):
    path = tmp_path / "items.jsonl"
    path.write_bytes(b'{"a": 1}\n{"b"')
    journal = JournalFile(path)
    journal.append(b'{"c": 2}\n')
    journal.close()
    assert path.read_bytes() == b'{"a": 1}\n{"c": 2}\n'


def test_a_torn_line_stays_until_something_is_appended(tmp_path):
    path = tmp_path / "items.jsonl"
    path.write_bytes(b'{"a": 1}\n{"b"')
    JournalFile(path).close()
    assert path.read_bytes() == b'{"a": 1}\n{"b"'


# --- looking up ----------------------------------------------------------------------------------------------


def test_a_file_that_cannot_be_written_is_told_with_the_command_that_goes_on(tmp_path):
    run = tmp_path / "runs" / "20260131-120000-a1b2c3"
    (run / "record.json" / "in the way").mkdir(parents=True)
    (run / "items.jsonl").mkdir()
    for write in (
        lambda: write_atomically(run / "record.json", "{}"),
        lambda: JournalFile(run / "items.jsonl"),
    ):
        with pytest.raises(RunStoppedError, match=f"`modelgauge resume {run.name} --data-dir {tmp_path}`"):
            write()
    assert [path.name for path in sorted(run.iterdir())] == ["items.jsonl", "record.json"]


def test_a_run_whose_folder_was_removed_is_not_to_be_resumed(tmp_path):
    with pytest.raises(RunStoppedError, match="removed meanwhile"):
        write_atomically(tmp_path / "runs" / "20260131-120000-a1b2c3" / "record.json", "{}")
