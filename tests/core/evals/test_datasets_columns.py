"""Which column holds which field: other names of a field, columns without a name, and fields that are named twice."""

import json

import pytest

from modelgauge.data.test_cases import ConversationalGolden, Golden, LLMTestCase
from modelgauge.errors import InputFileError, InvalidOptionError
from modelgauge.evals.csv_text import csv_text
from modelgauge.evals.datasets import EvaluationDataset


def written(folder, kind: str, row: dict) -> str:
    """A file of one row, whose values are JSON in CSV too unless they are texts."""
    cells = [value if isinstance(value, str) else json.dumps(value) for value in row.values()]
    text = {
        "csv": csv_text([list(row), cells]),
        "json": json.dumps([row]),
        "jsonl": json.dumps(row),
    }[kind]
    file = folder / f"data.{kind}"
    file.write_text(text, encoding="utf-8", newline="")
    return str(file)


def read(file: str, members: str = "goldens", **columns):
    dataset = EvaluationDataset()
    getattr(dataset, f"add_{members}_from_{file.rpartition('.')[2]}_file")(file, **columns)
    return getattr(dataset, members)


# --- metadata -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "json", "jsonl"])
@pytest.mark.parametrize("name", ["metadata", "additional_metadata"])
@pytest.mark.parametrize("asked", [("input", Golden), ("scenario", ConversationalGolden)])
def test_metadata_is_another_name_of_additional_metadata(tmp_path, kind, name, asked):
    field, golden = asked
    file = written(tmp_path, kind, {field: "q", name: {"page": 3}})
    assert read(file) == [golden("q", additional_metadata={"page": 3})]


@pytest.mark.parametrize("kind", ["csv", "json", "jsonl"])
@pytest.mark.parametrize("members", ["goldens", "test_cases"])
def test_both_names_of_one_field_are_an_error(tmp_path, kind, members):
    file = written(tmp_path, kind, {"input": "q", "metadata": {}, "additional_metadata": {"page": 3}})
    with pytest.raises(InputFileError) as caught:
        read(file, members)
    assert "the columns 'additional_metadata' and 'metadata' hold the same field" in caught.value.problem
    assert "additional_metadata_col_name='metadata'" in caught.value.fix


@pytest.mark.parametrize("kind", ["csv", "json", "jsonl"])
def test_which_of_both_names_it_is_can_be_said(tmp_path, kind):
    file = written(tmp_path, kind, {"input": "q", "metadata": {"page": 3}, "additional_metadata": "x"})
    said = {"additional_metadata_col_name": "metadata"}
    assert read(file, **said) == [
        Golden("q", additional_metadata={"page": 3}, custom_column_key_values={"additional_metadata": "x"})
    ]
    assert read(file, "test_cases", **said) == [
        LLMTestCase("q", metadata={"page": 3}, custom_column_key_values={"additional_metadata": "x"})
    ]


def test_metadata_that_is_a_text_is_told_how_to_be_kept(tmp_path):
    with pytest.raises(InputFileError, match=r"column 'metadata': 'a note' is not JSON.*a name of its own"):
        read(written(tmp_path, "csv", {"input": "q", "metadata": "a note"}))


@pytest.mark.parametrize(
    "names",
    [("metadata_col_name", "additional_metadata_col_name"), ("input_col_name", "input_key_name")],
)
def test_two_columns_for_one_field_are_refused(tmp_path, names):
    file = written(tmp_path, "csv", {"input": "q", "x": "1", "y": "2"})
    with pytest.raises(InvalidOptionError, match="named twice: 'x' and 'y'"):
        read(file, **dict(zip(names, "xy", strict=True)))
