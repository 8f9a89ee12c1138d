"""Files that are none of goldens, or nearly: each is refused with what is wrong and how it is mended."""

import json

import pytest

from modelgauge.datasets.fields import chosen_columns
from modelgauge.datasets.reading import read_goldens
from modelgauge.errors import InputFileError, InvalidOptionError, UsageError
from modelgauge.evals import EvaluationDataset, Golden
from modelgauge.files.tables import read_table

TEXTS = {
    "csv": "input,name\nq,n\n",
    "json": '[{"input": "q", "name": "n"}]',
    "jsonl": '{"input": "q", "name": "n"}\n',
}


@pytest.fixture
def refused(tmp_path):
    """What is said of a file of this content."""

    def error(content: bytes | str, kind: str = "csv", **how) -> InputFileError:
        file = tmp_path / f"data.{kind}"
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(InputFileError) as caught:
            EvaluationDataset.from_file(file, **how)
        return caught.value

    return error


# --- encodings ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize(
    ("encoding", "hint"),
    [
        ("utf-16", "utf-16"),
        ("utf-16-le", "utf-16-le"),
        ("utf-16-be", "utf-16-"),
        ("utf-32", "utf-32"),
    ],
)
def test_another_unicode_encoding_is_recognized(refused, kind, encoding, hint):
    assert f"encoding_type='{hint}" in refused(TEXTS[kind].encode(encoding), kind).fix


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
def test_the_encoding_that_is_told_reads_the_file(tmp_path, kind, encoding):
    file = tmp_path / f"data.{kind}"
    file.write_bytes(TEXTS[kind].encode(encoding))
    assert EvaluationDataset.from_file(file, encoding_type=encoding).goldens == [Golden("q", name="n")]


@pytest.mark.parametrize("kind", TEXTS)
def test_a_binary_file_is_told_to_be_no_text(refused, kind):
    assert "no text at all" in refused(bytes(range(256)) * 4, kind).fix


@pytest.mark.parametrize("kind", ["json", "jsonl"])
def test_nul_characters_in_json_are_named(refused, kind):
    error = refused(TEXTS[kind].replace("n", "n\0"), kind)
    assert "line 1: there is a NUL character" in error.problem


def test_a_byte_order_mark_may_be_there_twice(tmp_path):
    file = tmp_path / "data.csv"
    file.write_text("\ufeff\ufeffinput\nq\n", encoding="utf-8")
    assert EvaluationDataset.from_file(file).goldens == [Golden("q")]


@pytest.mark.parametrize("encoding", ["undefined", "hex", "rot13", "", "\0", "utf-88"])
def test_what_is_no_encoding_is_refused(refused, encoding):
    assert (
        "encoding"
        in refused(TEXTS["csv"], encoding_type=encoding).fix
        + refused("input\nä\n", encoding_type=encoding).problem
    )


# --- files in the wrong clothes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "content", "fix"),
    [
        ("csv", TEXTS["json"], "name it .json, or .jsonl"),
        ("csv", TEXTS["jsonl"], "name it .json, or .jsonl"),
        ("json", TEXTS["jsonl"] * 2, "one object a line is named .jsonl"),
        ("jsonl", '[\n{"input": "q"}\n]\n', "a list of objects is named .json"),
        ("jsonl", '{\n "input": "q"\n}\n', "one whole object a line"),
        ("csv", '"input";"name"\n"q";"n"\n', "say delimiter=';'"),
        ("csv", '"input"\t"name"\n"q"\t"n"\n', 'on the command line --delimiter "\\t"'),
        ("csv", 'input;name\n"say ""q""";n\n', "say delimiter=';'"),
        ("csv", "Output,Input\na,q\n", "--column input=Input"),
        ("jsonl", TEXTS["json"], "Take each object out of the list"),
        ("json", "[" * 100_000, "Correct it there, or just before."),
        ("json", '[{"input": "q"}, {"scenario": "s"}]', "'scenario' is of the other kind of goldens"),
        ("csv", "input,name\n,n\n", "Fill it in, or leave the row out."),
        ("json", '[{"input": "q", "token_cost": 1e999}]', "Write a number such as 0.02"),
        ("json", '[{"input": "q", "metadata": {"x": 1e999}}]', 'Write {"page": 3}, say'),
        ("json", '[{"input": "q", "context": 3}]', 'Write ["one", "two"]'),
        ("json", '[{"input": "q", "expected_tools": [3]}]', "Write search; lookup"),
        ("json", '[{"scenario": "s", "turns": []}]', 'Write [{"role": "user"'),
        (
            "json",
            '[{"scenario": "s", "turns": [{"role": "user", "text": "t"}]}]',
            "The fields are: role, content",
        ),
        ("json", '[{"input": "\\ud800"}]', "Write a text that UTF-8 can hold."),
        ("xlsx", b"PK\x03\x04", "Save it as CSV"),
    ],
)
def test_each_error_says_how_to_mend_it(refused, kind, content, fix):
    assert fix in refused(content, kind).fix


def test_a_lone_carriage_return_ends_a_line(tmp_path, refused):
    file = tmp_path / "lines.jsonl"
    file.write_bytes(b'{"input": "q"}\r{"input": "r"}\r')
    assert EvaluationDataset.from_file(file).goldens == [Golden("q"), Golden("r")]
    assert "line 3, column 'input'" in refused('[\r{"input": "q"},\r{"input": 3}\r]', "json").problem


def test_of_many_columns_the_first_are_listed(refused):
    fix = refused(",".join(f"c{number}" for number in range(2_000)) + "\n").fix
    assert "'c29' and 1,970 more" in fix
    assert "c30" not in fix


def test_a_huge_cell_is_read_and_not_shown(tmp_path, refused):
    assert len(str(refused('input,context\nq,"[""' + "x" * 1_000_000 + '"\n'))) < 1_000
    file = tmp_path / "data.csv"
    file.write_text(f"input,context\nq,{'[' * 200_000}\n", encoding="utf-8")
    assert EvaluationDataset.from_file(file).goldens[0].context == ["[" * 200_000]


# --- arguments ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [None, 3, b"data.csv", ["data.csv"]])
def test_what_is_no_path_is_refused(path):
    for read in (EvaluationDataset.from_file, EvaluationDataset().add_goldens_from_csv_file):
        with pytest.raises(InvalidOptionError, match="is not a path of a file"):
            read(path)


@pytest.mark.parametrize("path", ["", "a\0.csv", "x" * 5_000 + ".csv", "https://example.org/goldens.csv"])
def test_a_path_of_no_file_is_refused(path):
    with pytest.raises(InputFileError):
        EvaluationDataset.from_file(path)


@pytest.mark.parametrize(
    "how",
    [
        {"delimiter": None},
        {"delimiter": 3},
        {"encoding_type": None},
        {"encoding_type": 3},
        {"encoding": "utf-8"},
    ],
)
def test_arguments_of_other_types_are_refused(tmp_path, how):
    file = tmp_path / "data.csv"
    file.write_text("input\nq\n", encoding="utf-8")
    with pytest.raises(UsageError):
        EvaluationDataset.from_file(file, **how)


def test_a_row_that_holds_itself_is_refused():
    row = {"input": "q"}
    row["x"] = row
    with pytest.raises(InputFileError, match="row 1: a value of it holds itself"):
        EvaluationDataset().add_goldens_from_hf_dataset([row])


def test_goldens_of_other_types_are_refused():
    with pytest.raises(TypeError, match="Give a list, where a value of type NoneType was given"):
        EvaluationDataset(None)


# --- chance -------------------------------------------------------------------------------------------------


def problems_of(file, kind):
    try:
        return read_goldens(read_table(file, kind), chosen_columns({})).problems
    except InputFileError as error:
        return [error]


@pytest.mark.parametrize("seed", range(20))
def test_a_file_with_a_byte_changed_is_read_or_refused(tmp_path, seed):
    """Nothing but our own errors comes of a damaged file, whatever was damaged."""
    rows = [
        {"input": "q", "context": ["a|b", "[1]"], "additional_metadata": {"a": [1, None]}},
        {"input": "r", "expected_tools": [{"name": "t"}], "tags": ["x"]},
    ]
    dataset = EvaluationDataset()
    dataset.add_goldens_from_hf_dataset(rows)
    for kind in TEXTS:
        file = dataset.save_as(kind, tmp_path, "data")
        content = file.read_bytes()
        assert [json.loads(golden.model_dump_json()) for golden in EvaluationDataset.from_file(file).goldens]
        with file.open("r+b", buffering=0) as damaged:  # in place: emptying a file may wait for the disk
            for at in range(seed, len(content), 20):
                for byte in b'\0\xff\r\n"[,;':
                    damaged.seek(at)
                    damaged.write(bytes([byte]))
                    for problem in problems_of(file, kind):
                        assert problem.problem
                        assert problem.fix
                damaged.seek(at)
                damaged.write(content[at : at + 1])
