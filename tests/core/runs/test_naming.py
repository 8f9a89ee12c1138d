"""What a name of runs means."""

import pytest

from modelgauge.errors import RecordError
from modelgauge.runs.naming import find_runs


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
    return [run.run_id for run in find_runs(data_dir, name)]


def test_a_damaged_run_hides_no_other(folders, caplog):
    assert found(folders, "a") == ["a"]
    assert found(folders, "both") == ["a", "b"]
    assert "run.json is not JSON" in caplog.text
    with pytest.raises(RecordError, match=r"no run 'c' in .* 1 of the runs there cannot be read"):
        find_runs(folders, "c")
    assert found(folders, "damaged") == ["damaged"]


def test_a_run_has_its_id_from_wherever_its_folder_is_named(folders, monkeypatch):
    monkeypatch.chdir(folders / "runs" / "a")
    for name in (".", "../a", str(folders / "runs" / "a")):
        assert found(folders, name) == ["a"]
    (folders / "runs" / "a" / "within").mkdir()
    monkeypatch.chdir("within")
    assert found(folders, "..") == found(folders, "../../a/within/..") == ["a"]
