"""Runs that are deleted and come back."""

import pytest

from modelgauge import load_record, run_test
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.errors import RecordError
from modelgauge.runs.trash import move_to_trash, restore_from_trash
from modelgauge.testing import FakeSUT, FakeTest


def test_a_run_comes_back_as_it_was(tmp_path):
    record = run_test(FakeTest("t", ["one"]), FakeSUT("s"), data_dir=tmp_path)
    folder = RunFolder(tmp_path / "runs" / record.run_id)
    (tmp_path / "trash" / record.run_id).mkdir(parents=True)  # of a run that had this name before
    moved = move_to_trash(folder, tmp_path)
    assert moved.name == f"{record.run_id}~2"
    assert not folder.path.exists()
    assert restore_from_trash(moved.name, tmp_path).path == folder.path
    assert load_record(folder.path) == record


def test_what_cannot_come_back_is_refused(tmp_path):
    record = run_test(FakeTest("t", ["one"]), FakeSUT("s"), data_dir=tmp_path)
    run = RunFolder(tmp_path / "runs" / record.run_id)
    (tmp_path / "run.json").write_text("{}")
    for name in ("", ".", "..", "nothing", f"../runs/{record.run_id}", "a\0b", record.run_id):
        with pytest.raises(RecordError, match="in the trash"):
            restore_from_trash(name, tmp_path)
    moved = move_to_trash(run, tmp_path)
    run.path.mkdir()
    with pytest.raises(RecordError, match="already"):
        restore_from_trash(moved.name, tmp_path)
