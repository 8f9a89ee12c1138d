"""The journal of a run has one writer."""

import subprocess
import sys

import pytest

from modelgauge.engine.run_files.folder import find_run, write_atomically
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


@pytest.fixture
def folders(tmp_path):
    """Three runs: two of one command, and one whose manifest is damaged."""
    for run_id, text in {
        "a": '{"invocation_id": "both"}',
        "b": '{"invocation_id": "both"}',
        "damaged": '{"invocation_id": "bo',
    }.items():
        folder = tmp_path / "runs" / run_id
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(text, encoding="utf-8")
    return tmp_path


def found(data_dir, name):
    return [run.run_id for run in find_run(data_dir, name)]


def test_a_damaged_run_hides_no_other(folders, caplog):
    assert found(folders, "a") == ["a"]
    assert found(folders, "both") == ["a", "b"]
    assert "run.json is not JSON" in caplog.text
    with pytest.raises(RecordError, match=r"no run 'c' in .* 1 of the runs there cannot be read"):
        find_run(folders, "c")
    assert found(folders, "damaged") == ["damaged"]


def test_a_run_has_its_id_from_wherever_its_folder_is_named(folders, monkeypatch):
    monkeypatch.chdir(folders / "runs" / "a")
    for name in (".", "../a", str(folders / "runs" / "a")):
        assert found(folders, name) == ["a"]
    (folders / "runs" / "a" / "within").mkdir()
    monkeypatch.chdir("within")
    assert found(folders, "..") == found(folders, "../../a/within/..") == ["a"]


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
