"""Cells that spreadsheets would run: escaped for people, and read back unchanged."""

import csv
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.evals import EvaluationDataset, Golden
from modelgauge.files.formulas import ESCAPED, is_formula, with_escapes
from modelgauge.files.tables import csv_text, read_table

CELLS = st.none() | st.text(alphabet="=+-@'\t\r\n\"a,;1.", max_size=6)


@pytest.mark.parametrize("text", ["=1+1", "+SUM(A1)", "-2+3", "@x", "\t=1", "\r=1", "-", "--1", "=", "-1,5"])
def test_text_that_begins_as_a_formula_is_one(text):
    assert is_formula(text)


@pytest.mark.parametrize("text", ["-1.5", "+3", "-1e-5", "-.5", "", "a=1", "'=1", " x", None, "0"])
def test_numbers_and_other_texts_are_no_formulas(text):
    assert not is_formula(text)


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=5))
def test_escaped_records_are_read_as_they_were(rows):
    text = csv_text(with_escapes([["input", "other"], *rows]))
    file = Path(tempfile.mkdtemp()) / "x.csv"
    file.write_text(text, encoding="utf-8", newline="")
    table = read_table(file, "csv")
    assert [(row.values["input"], row.values["other"]) for row in table.rows] == rows
    assert ESCAPED not in table.columns
    for line in list(csv.reader(text.splitlines(keepends=True)))[1:]:
        assert not any(map(is_formula, line))


def test_saved_data_set_is_safe_to_open_and_equal_when_loaded(tmp_path):
    goldens = [
        Golden(input="=cmd|' /C calc'!A0", expected_output="-1.5", context=["@a", "b"]),
        Golden(input="'=quoted", expected_output="+a", additional_metadata={"k": 1}),
        Golden(input="plain", custom_column_key_values={"=head": "=1", "note": "-x"}),
    ]
    dataset = EvaluationDataset(goldens=goldens)
    file = dataset.save_as("csv", tmp_path, "people")
    with file.open(encoding="utf-8", newline="") as lines:
        records = list(csv.reader(lines))
    assert not any(map(is_formula, (cell for record in records for cell in record)))
    loaded = EvaluationDataset.from_file(file)
    assert loaded.goldens == dataset.goldens
    assert loaded.content_hash == dataset.content_hash
    raw = dataset.save_as("csv", tmp_path, "programs", raw=True)
    assert "'=cmd" not in raw.read_text(encoding="utf-8")
    assert EvaluationDataset.from_file(raw).goldens == dataset.goldens


def test_data_set_without_formulas_is_written_as_before(tmp_path):
    file = EvaluationDataset(goldens=[Golden(input="a", expected_output="-1")]).save_as("csv", tmp_path, "x")
    assert file.read_text(encoding="utf-8") == "input,expected_output\na,-1\n"
