"""Tables: every cell comes back as it was, and each row knows its place."""

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.errors import InputFileError
from modelgauge.files.tables import OtherContentError, csv_text, table_of_bytes

cells = (
    st.none()
    | st.sampled_from(["", '"', ",", "\r", "\r\n", " ", '""', "\0"])
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
)


def read(text: str, kind: str = "csv", **how: str):
    return table_of_bytes(text.encode(), f"data.{kind}", kind, **how)


@given(st.lists(st.tuples(cells, cells), max_size=4))
def test_missing_and_empty_cells_come_back_apart(rows):
    table = read(csv_text([("a", "b"), *rows]))
    assert [tuple(row.values.values()) for row in table.rows] == rows
    assert not any(row.problem for row in table.rows)


@pytest.mark.parametrize("delimiter", ["^", "]", "-", "\\", "|", "\t", " "])
def test_any_character_can_separate_cells(delimiter):
    table = read(
        f'a{delimiter}b\n""{delimiter}\n"{delimiter}""{delimiter}"{delimiter}""\n', delimiter=delimiter
    )
    assert [[*row.values.values()] for row in table.rows] == [["", None], [f'{delimiter}"{delimiter}', ""]]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_row_stands_where_it_begins(end):
    table = read(end.join(["", "a,b", '"1', '2",x', "", "3,y", ""]))
    assert table.heading == "data.csv, line 2"
    assert [row.place for row in table.rows] == ["data.csv, line 3", "data.csv, line 6"]


def test_a_cell_may_be_larger_than_the_limit_of_the_process():
    limit = csv.field_size_limit()
    huge = "x" * (limit + 1)
    assert read(f"a\n{huge}\n").rows[0].values == {"a": huge}
    with pytest.raises(InputFileError):
        read('a\n"')
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize("text", ["{}", "[1]", '["a"]'])
def test_json_that_holds_something_else_is_told_apart_from_broken_json(text):
    with pytest.raises(OtherContentError):
        raise next((row.problem for row in read(text, "json").rows), None) or AssertionError


def test_the_rows_around_one_that_cannot_be_read_are_kept():
    table = read('{"a": 1}\n{\n{"b": 2}\n', "jsonl")
    assert table.columns == ("a", "b")
    assert [row.values for row in table.rows] == [{"a": 1}, {}, {"b": 2}]
    assert [bool(row.problem) for row in table.rows] == [False, True, False]
