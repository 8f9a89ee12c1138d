"""What a name of runs means."""

import json

import pytest

from modelgauge.engine.run_files.ids import why_no_run_id
from modelgauge.errors import RecordError
from modelgauge.runs.naming import find_runs, is_file_of_records, recorded_runs


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


@pytest.fixture
def commands(tmp_path):
    """Three commands: one with two runs, and one with a run each before and after it."""
    runs = {
        "20260131-120000-00001a": ("20260131-120000-00000a", "2026-01-31T12:00:00+00:00"),
        "20260131-120500-00001a": ("20260131-120500-00000a", "2026-01-31T12:05:00+00:00"),
        "20260131-120501-00001b": ("20260131-120500-00000a", "2026-01-31T12:05:01+00:00"),
        "20260201-080000-00001a": ("20260201-080000-00000a", "2026-02-01T08:00:00+00:00"),
    }
    for run_id, (invocation, began) in runs.items():
        folder = tmp_path / "runs" / run_id
        folder.mkdir(parents=True)
        said = {"invocation_id": invocation, "run_timestamp": began}
        (folder / "run.json").write_text(json.dumps(said), encoding="utf-8")
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


def test_relative_and_absolute_paths_find_the_same_run(folders, monkeypatch):
    monkeypatch.chdir(folders / "runs" / "a")
    for name in (".", "../a", str(folders / "runs" / "a"), "run.json"):
        assert found(folders, name) == ["a"]
    (folders / "runs" / "a" / "within").mkdir()
    monkeypatch.chdir("within")
    assert found(folders, "..") == found(folders, "../../a/within/..") == ["a"]


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        ("latest", ["20260201-080000-00001a"]),
        ("latest~0", ["20260201-080000-00001a"]),
        ("latest~1", ["20260131-120500-00001a", "20260131-120501-00001b"]),
        ("latest~2", ["20260131-120000-00001a"]),
    ],
)
def test_latest_counts_commands_not_runs(commands, name, runs):
    assert found(commands, name) == runs


def test_the_latest_command_is_the_one_that_began_last(commands):
    renamed = commands / "runs" / "20260131-120000-00001a"
    renamed.rename(renamed.with_name("zzz"))
    assert found(commands, "latest") == ["20260201-080000-00001a"]
    assert found(commands, "latest~2") == ["zzz"]


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        ("20260201", ["20260201-080000-00001a"]),  # the only run of its command
        ("20260131-120000-00001", ["20260131-120000-00001a"]),
        ("20260131-120501", ["20260131-120501-00001b"]),
        ("20260131-1205", ["20260131-120500-00001a", "20260131-120501-00001b"]),  # all of one command
        ("20260131-120500-00001", ["20260131-120500-00001a"]),
    ],
)
def test_the_beginning_of_an_id_is_enough_where_it_is_that_of_one(commands, name, runs):
    assert found(commands, name) == runs


def test_the_beginning_of_several_ids_lists_them(commands):
    with pytest.raises(RecordError) as caught:
        find_runs(commands, "2026")
    assert str(caught.value) == (
        "'2026' is the beginning of 3 ids: 20260201-080000-00001a, 20260131-120500-00000a (2 runs), "
        "20260131-120000-00001a. Give more of the one that you mean: `modelgauge runs` lists them."
    )


def test_an_unknown_name_names_the_nearest(commands):
    with pytest.raises(
        RecordError, match=r"no run '20260201-080000-00001b' in .*Did you mean '20260201-080000-00001a'"
    ):
        find_runs(commands, "20260201-080000-00001b")
    with pytest.raises(RecordError, match=r"no run 'latst' in .*Did you mean 'latest'\?"):
        find_runs(commands, "latst")
    with pytest.raises(RecordError, match=r"no run '' in .*The latest runs are: "):
        find_runs(commands, "")


def test_before_the_first_command_there_is_none(commands, tmp_path):
    with pytest.raises(
        RecordError, match=r"no 'latest~3': 3 invocations are in .*runs\. .*The oldest is latest~2: "
    ):
        find_runs(commands, "latest~3")
    with pytest.raises(RecordError, match=r"no 'latest': 0 invocations are in .*Run a test first"):
        find_runs(tmp_path / "empty", "latest")


def test_a_file_of_records_is_none_of_the_files_of_a_run(folders, record):
    written = folders / "out.json"
    written.write_text(json.dumps({"records": [json.loads(record().model_dump_json())]}), encoding="utf-8")
    assert is_file_of_records(written)
    assert not is_file_of_records(folders / "runs" / "a" / "run.json")
    runs, damaged = recorded_runs(folders, str(written))
    assert ([run.record.test_uid for run in runs], damaged) == (["a_test"], ())


@pytest.mark.parametrize(
    "name",
    [
        "",
        "-rf",
        ".hidden",
        "..",
        "a/b",
        "a\\b",
        "a\x00b",
        "a\nb",
        "\u202eevil",
        "con",
        "NUL.txt",
        "x" * 129,
        "a:b",
        "a|b",
        "end.",
        "end ",
    ],
)
def test_text_that_is_no_safe_folder_name_is_no_id_of_a_run(name):
    assert why_no_run_id(name) is not None


@pytest.mark.parametrize("name", ["20260131-120000-a1b2c3", "my run", "Lauf_ü", "run~1", "x" * 128, "a.b"])
def test_plain_folder_name_is_an_id_of_a_run(name):
    assert why_no_run_id(name) is None


def test_id_that_is_a_path_finds_no_run_below_the_runs(tmp_path):
    outside = tmp_path / "elsewhere" / "run"
    outside.mkdir(parents=True)
    (outside / "run.json").write_text("{}")
    with pytest.raises(RecordError, match="There is no run"):
        find_runs(tmp_path / "data", "../../elsewhere/run")
