"""Runs as files of tables, read back by what others wrote."""

import csv
import io
import json
import sqlite3
from contextlib import closing

import pandas as pd
import pyarrow.parquet as pq
import pytest

from modelgauge import SUTCompletion, TestItem, run_test
from modelgauge.data.tables.frames import TABLES, arrow_schema
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.runs import as_tables
from modelgauge.runs.as_tables import write_tables
from modelgauge.runs.recorded_run import RecordedRun, recorded_run
from modelgauge.testing import FakeAnnotator, FakeSUT, FakeTest

TEXTS = ["", "plain", '=1+"2"', "a,b\r\nc\n", "-5", "  ü\u2028\u202e", "@SUM(A1)", "null", "007", "\t=1"]


def _answer(prompt):
    if prompt.text == "null":
        raise ValueError("=cmd|' /C calc'!A0")
    return SUTCompletion(prompt.text, finish_reason="")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    data_dir = tmp_path_factory.mktemp("data")
    items = [TestItem(text or "empty", id=f"-{place}") for place, text in enumerate(TEXTS)]
    judge = FakeAnnotator("judge", lambda prompt, completion: [completion.text, None])
    test = FakeTest("t", items, lambda item: {"short": len(item.text) < 4, "size": -0.1}, {"judge": judge})
    record = run_test(test, FakeSUT("s", _answer), data_dir=data_dir)
    return recorded_run(RunFolder(data_dir / "runs" / record.run_id))


def _written(run, folder, file_type, **options):
    folder.mkdir(exist_ok=True)
    files = {folder / f"{name}.{file_type}": table for name, table in TABLES.items()}
    counts = write_tables([run], files, file_type, **options)
    assert counts == {file: run.record.to_arrow(table.name).num_rows for file, table in files.items()}
    return {table.name: file for file, table in files.items()}


@pytest.mark.parametrize("table", TABLES)
def test_parquet_is_what_the_frame_is(run, tmp_path, table):
    file = _written(run, tmp_path / "out", "parquet")[table]
    assert pq.read_schema(file).equals(arrow_schema(TABLES[table]), check_metadata=True)
    assert pq.read_table(file).to_pylist() == run.record.to_arrow(table).to_pylist()
    assert len(pd.read_parquet(file)) == run.record.to_arrow(table).num_rows


def test_parquet_has_a_row_group_for_each_part(run, tmp_path, monkeypatch):
    monkeypatch.setattr(as_tables, "_MOST_ROWS", 4)
    file = _written(run, tmp_path / "out", "parquet")["items"]
    assert pq.ParquetFile(file).num_row_groups == 3
    assert pq.read_table(file).equals(run.record.to_arrow())
    monkeypatch.setattr(as_tables, "_MOST_CHARACTERS", 1)
    file = _written(run, tmp_path / "out", "parquet")["items"]
    assert pq.ParquetFile(file).num_row_groups == len(TEXTS)


@pytest.mark.parametrize("table", TABLES)
def test_pandas_reads_from_csv_what_the_frame_holds(run, tmp_path, table):
    file = _written(run, tmp_path / "out", "csv", raw=True)[table]
    frame = run.record.to_pandas(table)
    types = {name: str(kind) for name, kind in frame.dtypes.items() if not str(kind).startswith("datetime")}
    times = [name for name in frame if name not in types]
    read = pd.read_csv(file, dtype=types, parse_dates=times, keep_default_na=False, na_values=[""])
    text = [name for name in frame if types.get(name) == "string"]
    frame[text] = frame[text].replace("", pd.NA)  # pandas takes "" for missing too
    assert list(read) == TABLES[table].head
    pd.testing.assert_frame_equal(read, frame, check_dtype=False)


def test_csv_tells_a_missing_value_from_an_empty_text(run, tmp_path):
    text = _written(run, tmp_path / "out", "csv")["completions"].read_text(encoding="utf-8")
    assert text.splitlines()[1].split(",")[9:12] == ["", "false", '""']  # raw_text, …, finish_reason


def test_jsonl_holds_json_itself(run, tmp_path):
    files = _written(run, tmp_path / "out", "jsonl")
    lines = files["annotations"].read_text(encoding="utf-8").split("\n")[:-1]
    assert [json.loads(line)["annotation"] for line in lines][:2] == [["empty", None], ["plain", None]]
    (row,) = [json.loads(line) for line in files["runs"].read_text(encoding="utf-8").split("\n")[:-1]]
    assert row["started"].startswith(run.record.run_timestamp[:19])
    assert row["hyperparameters"] == {}


def test_the_keys_join_in_a_database(run, tmp_path):
    with closing(sqlite3.connect(":memory:")) as database:
        for name, file in _written(run, tmp_path / "out", "csv").items():
            head, *rows = csv.reader(io.StringIO(file.read_bytes().decode(), newline=""))
            columns = ", ".join(f'"{column}"' for column in head)
            database.execute(f"create table {name} ({columns})")
            database.executemany(f"insert into {name} values ({', '.join('?' * len(head))})", rows)
        joined = database.execute(
            "select outcome, count(*), avg(value) from items join measurements using (run_id, item_id) "
            "join completions using (run_id, item_id) "
            "join annotations using (run_id, item_id, prompt_index, repeat, completion) "
            "where measurement = 'size' group by outcome order by outcome"
        ).fetchall()
        assert joined == [("ok", 3, pytest.approx(-0.1)), ("wrong", 6, pytest.approx(-0.1))]
        (failed,) = database.execute(
            "select stage, error_type from items where outcome = 'failed'"
        ).fetchall()
        assert failed == ("sut", "ValueError")


def test_a_spreadsheet_runs_no_cell_and_numbers_stay_numbers(run, tmp_path):
    file = _written(run, tmp_path / "out", "csv", for_spreadsheets=True)["items"]
    assert file.read_bytes().startswith("\ufeffrun_id,".encode())
    rows = list(csv.DictReader(io.StringIO(file.read_bytes().decode("utf-8-sig"), newline="")))
    prompts = [
        "empty",
        "plain",
        '\'=1+"2"',
        "a,b\r\nc\n",
        "-5",
        TEXTS[5],
        "'@SUM(A1)",
        "null",
        "007",
        "'\t=1",
    ]
    assert [row["prompt"] for row in rows] == prompts
    assert rows[7]["message"] == "'=cmd|' /C calc'!A0"
    assert rows[1]["item_id"] == "-1"
    for_people = _written(run, tmp_path / "people", "csv")["items"]
    assert for_people.read_bytes() == file.read_bytes()[3:]
    plain = _written(run, tmp_path / "out", "csv", raw=True)["items"].read_text(encoding="utf-8")
    assert "'=" not in plain


def test_secrets_are_taken_out_of_every_cell(run, tmp_path):
    def redact(value):
        return json.loads(json.dumps(value, default=str).replace("plain", "[secret]"))

    files = _written(run, tmp_path / "out", "jsonl", redact_json=redact)
    assert not any("plain" in file.read_text(encoding="utf-8") for file in files.values())


def test_a_file_of_whole_records_gives_the_same_tables(run, tmp_path):
    held = RecordedRun(run.record.with_items(lambda: list(run.items().records())))
    one, other = _written(run, tmp_path / "one", "csv"), _written(held, tmp_path / "other", "csv")
    assert all(one[name].read_bytes() == other[name].read_bytes() for name in TABLES)
