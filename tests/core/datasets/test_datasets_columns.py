"""Which column holds which field: other names of a field, columns without a name, and fields that are named twice."""

import json

import pytest

from modelgauge.data.test_cases import ConversationalGolden, Golden, LLMTestCase
from modelgauge.datasets.dataset import EvaluationDataset
from modelgauge.errors import InputFileError, InvalidOptionError
from modelgauge.files.tables import csv_text


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


@pytest.mark.parametrize("kind", ["csv", "json", "jsonl"])
def test_a_custom_column_that_is_said_twice_is_an_error(tmp_path, kind):
    file = written(tmp_path, kind, {"input": "q", "lang": "de", "custom_column_key_values": {"lang": "fr"}})
    with pytest.raises(
        InputFileError, match="column 'lang': 'custom_column_key_values' of this row says 'lang'"
    ):
        read(file)
    file = written(tmp_path, kind, {"input": "q", "lang": "de", "custom_column_key_values": {"level": 1}})
    assert read(file) == [Golden("q", custom_column_key_values={"lang": "de", "level": 1})]


# --- columns without a name ---------------------------------------------------------------------------------


@pytest.fixture
def csv(tmp_path):
    """Read goldens from a CSV file of this text."""

    def goldens(text: str):
        file = tmp_path / "data.csv"
        file.write_text(text, encoding="utf-8", newline="")
        return EvaluationDataset.from_file(file).goldens

    return goldens


def test_a_value_under_no_name_is_an_error(csv):
    with pytest.raises(InputFileError) as caught:
        csv("input,,lang\nq,,de\nr,kept where?,de\n")
    assert (
        "data.csv, line 3, column 2: 'kept where?' stands in a column without a name." in caught.value.problem
    )
    assert "Name column 2 where the file names the others, or empty it" in caught.value.fix


@pytest.mark.parametrize("blank", ["", " ", '""', '"\t"'])
def test_a_column_without_a_name_and_values_says_nothing(csv, blank):
    assert csv(f"input,,\nq,{blank},\nr,,{blank}\n") == [Golden("q"), Golden("r")]


def test_the_index_of_a_data_frame_says_no_more_than_the_order(csv):
    assert csv(',input\n0,q\n1,"r\nr"\n2,s\n') == [Golden("q"), Golden("r\nr"), Golden("s")]


@pytest.mark.parametrize(
    "text", [",input\n0,q\n2,r\n", ",input\n1,q\n2,r\n", "input,\nq,0\n", ",input\na,q\n"]
)
def test_any_other_index_is_an_error_that_says_how_to_leave_it_out(csv, text):
    with pytest.raises(InputFileError, match=r"a column without a name.*to_csv\(…, index=False\)"):
        csv(text)


def test_a_row_is_not_refused_twice(tmp_path):
    file = tmp_path / "data.csv"
    file.write_text("input,,token_cost\nq,lost,x\nr,,y\n", encoding="utf-8")
    with pytest.raises(InputFileError, match=r"line 2, column 2: .* 1 more row cannot be read"):
        EvaluationDataset.from_file(file)
