"""`modelgauge runs`: which runs are listed, and the trash."""

import io
import json

import pytest

from modelgauge import run_test
from modelgauge.cli.main import cli
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.testing import FakeSUT, FakeTest


@pytest.fixture
def runs(tmp_path, once):
    pairs = [("qa_a", "small"), ("qa_b", "small"), ("other", "large")]

    def make():
        made = (run_test(FakeTest(test, ["?"]), FakeSUT(sut, "!"), data_dir=tmp_path) for test, sut in pairs)
        return [record.run_id for record in made]

    return once(tmp_path, make)


@pytest.fixture
def command(tmp_path, capsys):
    def run(*arguments):
        code = cli.main([*arguments, "--data-dir", str(tmp_path)], standalone_mode=False)
        return code, capsys.readouterr().out

    return run


def _listed(command, *options):
    return [row["run_id"] for row in json.loads(command("runs", "--json", *options)[1])["runs"]]


@pytest.mark.parametrize(
    ("options", "places"),
    [
        ([], [0, 1, 2]),
        (["--test", "qa_*"], [0, 1]),
        (["--test", "qa"], []),
        (["--sut", "large"], [2]),
        (["--test", "qa_*", "--last", "1"], [1]),
        (["--since", "1h"], [0, 1, 2]),
        (["--since", "2000-01-31"], [0, 1, 2]),
        (["--since", "2999-01-31T12:00"], []),
    ],
)
def test_runs_are_filtered(runs, command, options, places):
    assert _listed(command, *options) == [runs[place] for place in places]


def test_a_time_that_is_none_is_refused(runs, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["runs", "--since", "yesterday", "--data-dir", str(tmp_path)])
    assert ended.value.code == 2
    assert "'yesterday' is not a time. Give 7d, 12h, 2026-01-31" in capsys.readouterr().err


def test_a_damaged_run_is_listed_whatever_the_time(runs, command, tmp_path):
    (tmp_path / "runs" / runs[1] / "run.json").write_text("{")
    assert runs[1] in _listed(command, "--since", "1h")
    assert _listed(command, "--test", "qa_*") == [runs[0]]


def test_deleted_runs_are_in_the_trash_with_all_their_files(runs, command, tmp_path):
    before = {path.name for path in (tmp_path / "runs" / runs[0]).iterdir()}
    code, out = command("runs", "delete", runs[0], "--yes")
    assert (code, out.strip()) == (0, str(tmp_path / "trash" / runs[0]))
    assert {path.name for path in (tmp_path / "trash" / runs[0]).iterdir()} == before
    assert _listed(command) == runs[1:]
    (tmp_path / "runs" / runs[1]).rename(tmp_path / "runs" / runs[0])
    assert command("runs", "delete", runs[0], "--yes")[1].strip() == str(tmp_path / "trash" / f"{runs[0]}~2")


@pytest.mark.parametrize("answer", ["", "n\n"])
def test_nothing_is_deleted_without_a_yes(answer, runs, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    with pytest.raises(SystemExit) as ended:
        cli.main(["runs", "delete", runs[0], "--data-dir", str(tmp_path)])
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert "Nothing was removed.\nGive --yes" in err
    assert "Usage: " not in err
    assert (tmp_path / "runs" / runs[0]).is_dir()


def test_a_run_that_goes_on_stays(runs, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(RunFolder, "is_going_on", lambda run: True)
    with pytest.raises(SystemExit) as ended:
        cli.main(["runs", "delete", runs[0], "--yes", "--data-dir", str(tmp_path)])
    assert ended.value.code == 2
    assert "is still in progress.\nStop it by Ctrl-C" in capsys.readouterr().err
    assert (tmp_path / "runs" / runs[0]).is_dir()
