"""`modelgauge export`: which files it writes, and what it refuses."""

import json
from pathlib import Path

import pytest
from pyarrow.parquet import read_table

from modelgauge import Runner, run_test
from modelgauge.cli.main import cli
from modelgauge.data.tables.frames import TABLES
from modelgauge.testing import FakeSUT, FakeTest


@pytest.fixture
def runs(tmp_path, monkeypatch, once):
    monkeypatch.chdir(tmp_path)
    return once(
        tmp_path,
        lambda: [run_test(FakeTest(uid, ["a", "b"]), FakeSUT("s")).run_id for uid in ("one", "two")],
    )


def _export(*args):
    return cli.main(["export", *args], standalone_mode=False)


def _lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def test_all_tables_come_into_a_folder_named_after_the_run(runs, tmp_path, capsys):
    assert _export(runs[0], "--to", "csv") == 0
    folder = tmp_path / f"export-{runs[0]}"
    assert sorted(path.name for path in folder.iterdir()) == sorted(f"{name}.csv" for name in TABLES)
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].split() == ["FILE", "ROWS"]
    assert [line.split()[1] for line in shown[1:]] == ["1", "1", "2", "2", "0", "2", "0", "0"]
    assert len(_lines(folder / "items.csv")) == 3


def test_several_runs_come_into_the_same_tables_each_once(runs, tmp_path, capsys):
    assert _export(*runs, runs[0], "--to", "jsonl", "--table", "items", "-o", "out", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    path = tmp_path / "out" / "items.jsonl"
    assert told == {"files": [{"path": "out/items.jsonl", "table": "items", "rows": 4}]}
    assert [json.loads(line)["run_id"] for line in _lines(path)] == [run for run in runs for _ in range(2)]


def test_a_single_table_may_have_a_file_of_its_own(runs, tmp_path):
    assert _export("latest", "--to", "csv", "--table", "runs", "-o", "made/runs.csv") == 0
    assert _lines(tmp_path / "made" / "runs.csv")[1].startswith(runs[1])


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--to", "csv", "--table", "item"], "no table 'item'. Did you mean 'items'"),
        (["--to", "csv", "-o", "all.csv"], "all.csv is a file, and 8 tables are exported. Name a folder, or"),
        (["--to", "csv", "--table", "items", "-o", "i.parquet"], "Say --to parquet"),
        (["--to", "jsonl", "--for-spreadsheets"], "--for-spreadsheets is for --to csv, not for jsonl"),
        (["--to", "jsonl", "--raw"], "--raw is for --to csv, not for jsonl"),
        (["--to", "csv", "--raw", "--for-spreadsheets"], "give one of them"),
        (["--to", "xlsx"], "'xlsx' is not one of"),
        ([], "Missing option '--to'"),
        (["--to", "csv", "-o", "run_data"], None),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(runs, tmp_path, capsys, args, message):
    if message is None:
        args, message = ["--to", "jsonl", "--table", "items", "-o", f"run_data/runs/{runs[0]}"], "data folder"
    before = sorted(tmp_path.rglob("*"))
    assert cli.main(["export", runs[0], *args], standalone_mode=False) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert [path for path in sorted(tmp_path.rglob("*")) if path not in before] == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is always full is Linux's")
@pytest.mark.parametrize("file_type", ["csv", "jsonl", "parquet"])
def test_a_full_disk_is_an_error_that_names_the_file(runs, capsys, file_type):
    options = ["--to", file_type, "--table", "runs", "-o", "/dev/full"]
    assert cli.main(["export", runs[0], *options], standalone_mode=False) == 4
    told = capsys.readouterr().err
    assert "--output /dev/full cannot be written: " in told
    assert "The runs are kept; run the command again." in " ".join(told.split())


@pytest.mark.parametrize("file_type", ["csv", "jsonl", "parquet"])
def test_secrets_are_taken_out(runs, tmp_path, capsys, file_type):
    cli.main(["show", runs[0], "--items", "--json"], standalone_mode=False)
    text = capsys.readouterr().out
    (tmp_path / "r.json").write_text(text.replace("Yes", "https://me:hunter22x@host/"), encoding="utf-8")
    _export("r.json", "--to", file_type, "-o", "out")
    file = tmp_path / "out" / f"completions.{file_type}"
    is_parquet = file_type == "parquet"
    written = str(read_table(file).to_pylist()) if is_parquet else file.read_text(encoding="utf-8")
    assert "hunter22x" in (tmp_path / "r.json").read_text(encoding="utf-8")
    assert "hunter22x" not in written
    assert "https://[secret of a URL]@host/" in written


def test_the_help_names_every_table(capsys):
    cli.main(["export", "--help"], standalone_mode=False)
    help_text = " ".join(capsys.readouterr().out.split()).replace("- ", "-")
    assert all(name in help_text for name in TABLES)


def test_the_folder_and_the_page_of_several_runs_have_the_name_of_their_invocation(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    records = Runner().run([FakeTest("one", ["a"]), FakeTest("two", ["a"])], FakeSUT("s"))
    invocation, first = records[0].invocation_id, records[0].run_id
    for names in (["latest"], [invocation], [record.run_id for record in records]):
        _export(*names, "--to", "csv", "--table", "runs")
        assert cli.main(["report", *names], standalone_mode=False) == 0
    made = {path.name for path in tmp_path.iterdir() if path.name != "run_data"}
    assert made == {
        f"{kind}-{name}{end}"
        for name in (invocation, first)
        for kind, end in (("export", ""), ("report", ".html"))
    }


@pytest.mark.parametrize(
    "command",
    [
        "export latest --to csv -o", "report latest -o", "bundle latest -o", "unbundle run.mgb -o", "sample latest -o",
        "compare latest latest --html", "compare latest latest --junit", "run-test --test t --sut s --output-file",
    ],
)  # fmt: skip
def test_a_dash_is_no_name_of_an_output(runs, tmp_path, capsys, command):
    before = sorted(tmp_path.iterdir())
    assert cli.main([*command.split(), "-"], standalone_mode=False) == 2
    assert "'-' does not stand for stdout here" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


def test_raw_csv_keeps_what_csv_for_people_escapes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_test(FakeTest("one", ["=1+1", "-1.5"]), FakeSUT("s"))
    for options, first in (((), "'=1+1"), (("--raw",), "=1+1")):
        assert _export("latest", "--to", "csv", "--table", "items", "-o", "i.csv", *options) == 0
        text = (tmp_path / "i.csv").read_text(encoding="utf-8")
        assert f",{first}," in text
        assert ",-1.5," in text
