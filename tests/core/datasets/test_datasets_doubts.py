"""Warnings of readers about split texts and columns of other tools; and values that mean missing."""

import json
import math
from decimal import Decimal

import numpy as np
import pytest

from modelgauge.data.test_cases import ConversationalGolden, Golden
from modelgauge.datasets.dataset import EvaluationDataset
from modelgauge.errors import InputFileError


@pytest.fixture
def read(tmp_path):
    """Read the goldens of a file of this text."""

    def read(text: str, kind: str = "csv", **columns):
        file = tmp_path / f"data.{kind}"
        file.write_text(text, encoding="utf-8")
        return EvaluationDataset.from_file(file, **columns).goldens

    return read


JUDGING = [
    "__expected",
    "__expected2",
    "ideal",
    "target",
    "label",
    "labels",
    "reference",
    "reference_answer",
    "ground_truths",
    "gold",
    "gold_label",
]
OTHERS = [
    "labelled",
    "targets_met",
    "gold_price",
    "my_answer",
    "question",
    "answered_by",
    "criterion_id",
    "reference_id",
    "score",
]


@pytest.mark.parametrize("column", JUDGING)
def test_a_column_by_which_other_tools_judge_is_named_beside_the_expected_output(column, read):
    with pytest.warns(
        UserWarning, match=f"the column '{column}', which other tools judge by, is kept"
    ) as caught:
        (golden,) = read(f"input,wanted,{column}\nq,a,b\n", expected_output_col_name="wanted")
    assert golden == Golden("q", expected_output="a", custom_column_key_values={column: "b"})
    assert "metrics read 'wanted'" in str(caught[0].message)


def test_conversations_with_such_columns_are_read(read):
    assert read("scenario,ideal\ns,a\n") == [
        ConversationalGolden("s", custom_column_key_values={"ideal": "a"})
    ]


@pytest.mark.parametrize("column", OTHERS)
def test_other_custom_columns_do_not_warn(column, read):
    read(f"input,expected_output,{column}\nq,a,b\n")


def test_a_text_is_not_split_where_a_part_would_be_blank(read):
    table = "| Plan | Price |\n| Pro | $20 |"
    for text in (table, "a|b|", "a| |b", "|", "x||y"):
        assert read(f'input,context,tags\nq,"{text}","{text}"\n')[0].context == [text]
        assert read(json.dumps({"input": "q", "context": text}), "jsonl")[0].context == [text]
    assert read("input,tags\nq,a;b;\n")[0].tags == ["a;b;"]


def test_split_cell_warns_unless_its_delimiter_is_named(read):
    with pytest.warns(
        UserWarning, match="'context' are read as lists.* pass context_col_delimiter='|'"
    ) as caught:
        assert read("input,context\nq,cat a.log | grep ERROR\n")[0].context == ["cat a.log ", " grep ERROR"]
    assert len(caught) == 1
    assert read("input,context\nq,a|b\n", context_col_delimiter="|")[0].context == ["a", "b"]
    with pytest.warns(UserWarning, match=r"a text in 'context' is not split at '\|': a part would be blank"):
        assert read("input,context\nq,a||b\n", context_col_delimiter="|")[0].context == ["a||b"]


class NAType:
    """Stands in for pandas.NA, which is neither equal nor unequal to anything."""

    __hash__ = object.__hash__

    def __eq__(self, other):
        return self

    def __bool__(self):
        raise TypeError

    __ne__ = __eq__


MISSING = [
    *(None, math.nan, NAType(), Decimal("nan")),
    *(np.float32("nan"), np.float64("nan"), np.datetime64("NaT"), np.timedelta64("NaT")),
]


@pytest.mark.parametrize("missing", MISSING, ids=lambda value: type(value).__name__)
def test_values_that_mean_missing_are_missing_in_rows(missing):
    dataset = EvaluationDataset()
    row = {"input": "q", "expected_output": missing, "token_cost": missing, "level": missing}
    dataset.add_goldens_from_hf_dataset(
        [row, {"input": "r", "context": missing, "metadata": {"page": [missing, 1]}}]
    )
    assert dataset.goldens == [Golden("q"), Golden("r", additional_metadata={"page": [None, 1]})]
    with pytest.raises(InputFileError, match="row 1, column 'input': there is nothing in it"):
        EvaluationDataset().add_goldens_from_hf_dataset([{"input": missing}])


def test_missing_dates_in_an_array_are_missing_and_others_texts():
    dataset = EvaluationDataset()
    dataset.add_goldens_from_hf_dataset(
        [{"input": "q", "days": np.array(["2020-01-31", "NaT"], dtype="M8[D]")}]
    )
    assert dataset.goldens[0].custom_column_key_values == {"days": ["2020-01-31", None]}


@pytest.mark.parametrize("kind", ["json", "jsonl"])
@pytest.mark.parametrize("field", ["expected_output", "level", "token_cost", "context"])
@pytest.mark.parametrize("value", ["NaN", '["a", NaN]', '{"x": NaN}'])
def test_nan_in_json_file_is_refused_in_favour_of_null(read, kind, field, value):
    row = f'{{"input": "q", "{field}": {value}}}'
    with pytest.raises(
        InputFileError, match=f"line 1, column '{field}': .*is nan, which JSON cannot hold"
    ) as caught:
        read(f"[{row}]" if kind == "json" else row, kind)
    assert caught.value.fix.startswith("Write null for a value that is missing.")


NAMES = {"input": "question", "context": "facts", "retrieval_context": "found", "expected_tools": "tools"}


def table_file(kind, tmp_path):
    rows = {"csv": "question\nq\n", "json": '[{"question": "q"}]', "jsonl": '{"question": "q"}'}
    file = tmp_path / f"data.{kind}"
    file.write_text(rows[kind], encoding="utf-8")
    return file


@pytest.mark.parametrize("kind", ["csv", "json", "jsonl", "hf"])
def test_optional_columns_that_are_named_and_not_there_are_left_out_with_a_warning(kind, tmp_path):
    dataset, word = EvaluationDataset(), "key" if kind.startswith("json") else "col"
    named = {f"{field}_{word}_name": column for field, column in NAMES.items()}
    source = [{"question": "q"}] if kind == "hf" else table_file(kind, tmp_path)
    read = getattr(dataset, f"add_goldens_from_{kind}_{'dataset' if kind == 'hf' else 'file'}")
    with pytest.warns(
        UserWarning, match="no column '(facts|found|tools)', which was named for .*: it is left out"
    ) as caught:
        read(source, **named)
    assert dataset.goldens == [Golden("q")]
    assert len(caught) == 3


def test_needed_and_misspelt_columns_must_be_there(tmp_path):
    dataset, file = EvaluationDataset(), tmp_path / "data.csv"
    file.write_text("question,answer,context\nq,a,c\n", encoding="utf-8")
    asked = {"input_col_name": "question"}
    for named in (
        {"input_col_name": "quest"},
        {**asked, "expected_output_col_name": "anwser"},
        {**asked, "context_col_name": "facts"},  # a column 'context' is there
    ):
        with pytest.raises(InputFileError, match="there is no column"):
            dataset.add_goldens_from_csv_file(file, **named)
    with pytest.raises(
        InputFileError, match="there is no column 'said', which was named for 'actual_output'"
    ):
        dataset.add_test_cases_from_csv_file(file, **asked, actual_output_col_name="said")
    with pytest.raises(InputFileError, match="there is no column 'facts'"):
        EvaluationDataset.from_file(table_file("csv", tmp_path), **asked, retrieval_context_col_name="facts")
    assert len(dataset) == 0
