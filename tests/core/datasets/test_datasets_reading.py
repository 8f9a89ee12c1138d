"""How goldens and test cases are read: columns, delimiters, what cells mean, and errors that say where."""

import datetime as dt
import inspect
import json
import warnings

import pytest

from modelgauge.data.responses import ToolCall
from modelgauge.data.test_cases import ConversationalGolden, ConversationalTestCase, Golden, LLMTestCase, Turn
from modelgauge.datasets.dataset import EvaluationDataset
from modelgauge.datasets.dataset_files import read_source
from modelgauge.datasets.reading import read_members
from modelgauge.errors import InputFileError, InvalidOptionError


@pytest.fixture
def goldens(tmp_path):
    """Read goldens from a file of this text."""

    def read(text: str | bytes, kind: str = "csv", **columns):
        path = tmp_path / f"data.{kind}"
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        dataset = EvaluationDataset()
        getattr(dataset, f"add_goldens_from_{kind}_file")(str(path), **columns)
        return dataset.goldens

    return read


@pytest.fixture
def refused(goldens):
    """The message about a file of this text, without its folder."""

    def read(text: str | bytes, kind: str = "csv", **columns) -> str:
        with pytest.raises(InputFileError) as caught:
            goldens(text, kind, **columns)
        return str(caught.value)

    return read


# --- columns ------------------------------------------------------------------------------------------------


def test_columns_are_found_by_the_names_of_the_fields(goldens):
    text = "input,expected_output,context,comments,name,source_file,expected_tools,tags,additional_metadata\n"
    text += 'q,a,c1|c2,note,n,f.md,search;lookup,x;y,"{""page"": 3}"\n'
    assert goldens(text, context_col_delimiter="|") == [
        Golden(
            "q",
            expected_output="a",
            context=["c1", "c2"],
            comments="note",
            name="n",
            source_file="f.md",
            expected_tools=[ToolCall(name="search"), ToolCall(name="lookup")],
            tags=["x", "y"],
            additional_metadata={"page": 3},
        )
    ]


def test_columns_and_delimiters_can_be_named(goldens):
    text = "question;answer;facts;helpers;notes;called;meta\n"
    text += 'q;a;"c1 ;c2"; t1 , t2 ;note;n;"{}"\n'
    assert goldens(
        text,
        delimiter=";",
        input_col_name="question",
        expected_output_col_name="answer",
        context_col_name="facts",
        context_col_delimiter=" ;",
        expected_tools_col_name="helpers",
        expected_tools_col_delimiter=",",
        comments_key_name="notes",
        name_key_name="called",
        additional_metadata_col_name="meta",
    ) == [
        Golden(
            "q",
            expected_output="a",
            context=["c1", "c2"],
            expected_tools=[ToolCall(name="t1"), ToolCall(name="t2")],
            comments="note",
            name="n",
            additional_metadata={},
        )
    ]


def test_none_is_not_named(goldens):
    assert goldens("input,context\nq,c\n", context_col_name=None, input_col_name=None) == [
        Golden("q", context=["c"])
    ]


def test_other_columns_are_kept_as_custom_ones(goldens):
    assert goldens("id,input,lang\n007,q,\n8,r,de\n") == [
        Golden("q", custom_column_key_values={"id": "007"}),
        Golden("r", custom_column_key_values={"id": "8", "lang": "de"}),
    ]


@pytest.mark.parametrize("kind", ["csv", "json", "jsonl"])
def test_custom_columns_named_like_fields_come_back(kind, tmp_path):
    custom = {
        "input": "x",
        "metadata": "y",
        "custom_column_key_values": "z",
        "": "n",
        "lang": "de",
        "level": 1,
    }
    dataset = EvaluationDataset([Golden("q", custom_column_key_values=custom), Golden("r")])
    assert EvaluationDataset.from_file(dataset.save_as(kind, tmp_path)).goldens == dataset.goldens


def test_a_column_that_is_almost_a_field_warns(goldens):
    with pytest.warns(
        UserWarning, match="'expected_ouput' is kept as a custom one, but may be meant as 'expected_output'"
    ):
        goldens("input,expected_ouput\nq,a\n")


def test_a_runtime_field_in_goldens_warns_once_where_they_are_read(goldens):
    with pytest.warns(UserWarning, match="2 goldens have actual_output") as caught:
        goldens("input,actual_output\nq,a\nr,b\ns,\n")
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize("column", ["answer", "expected", "target", "ground_truth", "Expected answer"])
def test_a_column_that_may_be_the_expected_output_is_told_of_once(column, tmp_path):
    file = tmp_path / "goldens.csv"
    file.write_text(f"input,{column}\nq,a\nr,b\n", encoding="utf-8")
    with pytest.warns(
        UserWarning, match=f"'{column}' is kept as a custom one.*expected_output_col_name="
    ) as caught:
        assert EvaluationDataset.from_file(file).goldens[0].custom_column_key_values == {column: "a"}
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EvaluationDataset.from_file(file, expected_output_col_name=column)


FOREIGN = [
    {
        "input": "q",
        "context": ["one", "two"],
        "expected_tools": [
            {"name": "search", "type": "FUNCTION", "inputParameters": {"q": "a"}, "mcp": None},
            {"name": "calc", "type": "FUNCTION"},
        ],
        "expectations": None,
    },
    {"input": "p", "expected_tools": [{"name": "calc", "type": "FUNCTION"}]},
]


def test_what_other_tools_write_into_tools_and_turns_is_skipped_with_one_warning(tmp_path):
    file = tmp_path / "goldens.json"
    file.write_text(json.dumps(FOREIGN), encoding="utf-8")
    with pytest.warns(UserWarning, match=r"does not know: 'expected_tools\.type'\.$") as caught:
        first, second = EvaluationDataset.from_file(file).goldens
    assert len(caught) == 1
    assert first.expected_tools == [
        ToolCall(name="search", input_parameters={"q": "a"}),
        ToolCall(name="calc"),
    ]
    assert second == Golden("p", expected_tools=[ToolCall(name="calc")])
    turns = [{"role": "user", "content": "hi", "mcp_tools_called": None}]
    file.write_text(json.dumps([{"scenario": "s", "turns": turns}]), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what is null loses nothing
        (talk,) = EvaluationDataset.from_file(file).goldens
    assert talk.turns == [Turn("user", "hi")]


def test_lists_that_json_holds_as_one_text_are_split_with_a_warning(tmp_path):
    row = {"input": "q", "context": "one|two; three", "expected_tools": "search;calc", "tags": "alone"}
    file = tmp_path / "goldens.jsonl"
    file.write_text(json.dumps(row), encoding="utf-8")
    goldens, cases = EvaluationDataset(), EvaluationDataset()
    with pytest.warns(
        UserWarning, match="in '(context|expected_tools)' are read as lists, split at"
    ) as caught:
        goldens.add_goldens_from_jsonl_file(file)
    assert len(caught) == 2
    tools = [ToolCall(name="search"), ToolCall(name="calc")]
    fields = {"context": ["one", "two; three"], "expected_tools": tools, "tags": ["alone"]}
    assert goldens.goldens == [Golden("q", **fields)]
    with pytest.warns(UserWarning, match="split at"):
        cases.add_test_cases_from_jsonl_file(file)
    assert cases.test_cases == [LLMTestCase("q", **fields)]
    goldens = EvaluationDataset()
    goldens.add_goldens_from_hf_dataset([{"input": "q", "context": "a | b"}, {"input": "q", "context": ""}])
    assert [golden.context for golden in goldens.goldens] == [
        ["a | b"],
        [],
    ]  # rows of other sources have types


@pytest.mark.parametrize(
    "read", [EvaluationDataset.from_file, EvaluationDataset().add_goldens_from_json_file]
)
def test_a_warning_names_the_line_that_reads(read, tmp_path):
    file = tmp_path / "goldens.json"
    file.write_text('[{"input": "q", "actual_output": "a"}]', encoding="utf-8")
    line = inspect.currentframe().f_lineno + 2
    with pytest.warns(UserWarning, match="1 golden has actual_output") as caught:
        read(file)
    assert (caught[0].filename, caught[0].lineno) == (__file__, line)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({}, "data.csv, line 1: there is no column 'input'. The columns are: 'question', 'answer'."),
        (
            {"input_col_name": "questions"},
            "line 1: there is no column 'questions', which was named for 'input'.",
        ),
        ({"input_col_name": "questions"}, "Did you mean 'question'? The columns are: 'question', 'answer'."),
        ({"input_col_name": "question", "context_col_name": "answr"}, "there is no column 'answr'"),
    ],
)
def test_a_missing_column_is_an_error_that_lists_the_columns(refused, columns, message):
    assert message in refused("question,answer\nq,a\n", **columns)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("expected_output,answer", "input_col_name='answer'"),
        (
            "id,metadata,User Query",
            "input_col_name='User Query', say; on the command line --column \"input=User Query\".",
        ),
        ("id,prompt,inputs", "input_col_name='inputs'"),
        ("expected_output,context", "Add a column 'input'."),
    ],
)
def test_the_column_that_is_proposed_holds_no_other_field(refused, head, said):
    assert said in refused(f"{head}\n")


def test_an_unknown_argument_is_an_error(goldens):
    with pytest.raises(
        InvalidOptionError, match=r"no argument 'inputt_col_name'\. Did you mean 'input_col_name'"
    ):
        goldens("input\nq\n", inputt_col_name="input")
    with pytest.raises(InvalidOptionError, match="'input_col_delimiter'"):
        goldens("input\nq\n", input_col_delimiter="|")
    with pytest.raises(InvalidOptionError, match="no argument 'delimiter'"):
        goldens("[]", "json", delimiter=";")
    with pytest.raises(InvalidOptionError, match="A Golden has no 'scenario'"):
        goldens("input,topic\nq,t\n", input_col_name="input", scenario_col_name="topic")


@pytest.mark.parametrize("delimiter", ["", "||", '"', "\n"])
def test_what_cannot_separate_cells_is_refused(goldens, delimiter):
    with pytest.raises(InvalidOptionError, match="cannot separate cells"):
        goldens("input\nq\n", delimiter=delimiter)


# --- what cells mean ----------------------------------------------------------------------------------------


def test_an_empty_cell_is_missing_and_a_quoted_one_is_empty(goldens):
    assert goldens('input,expected_output\nq,\nr,""\n') == [Golden("q"), Golden("r", expected_output="")]


def test_where_all_cells_are_quoted_quotes_say_nothing(goldens):
    assert goldens('"input","expected_output","context"\n"q","",""\n') == [Golden("q")]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_and_a_byte_order_mark_do_not_matter(goldens, end, mark):
    text = f'input,context{end}"q{end}r","a{end}b|c"{end}{end}s,NA'
    assert goldens(mark + text.encode(), context_col_delimiter="|") == [
        Golden(f"q{end}r", context=[f"a{end}b", "c"]),
        Golden("s", context=["NA"]),
    ]


def test_numbers_and_missing_values_stay_texts(goldens):
    cells = ["NA", "007", "1.50", "1e5", "null", "True", "nan"]
    read = goldens("input,expected_output\n" + "".join(f"{cell},{cell}\n" for cell in cells))
    assert [golden.input for golden in read] == [golden.expected_output for golden in read] == cells


def test_rows_of_nothing_are_skipped(goldens):
    assert goldens("input,context\nq,\n,\n\nr,\n,\n") == [Golden("q"), Golden("r")]


def test_another_encoding_can_be_named(goldens, refused):
    text = "input,lang\nq,de\nGrüße,de\n".encode("cp1252")
    assert "data.csv, line 3: this is not utf-8" in refused(text)
    assert goldens(text, encoding_type="cp1252")[1].input == "Grüße"
    assert "no encoding 'utf-88'" in refused(text, encoding_type="utf-88")


def test_a_scenario_or_turns_make_conversational_goldens(goldens):
    text = (
        'scenario,expected_outcome,turns\nbuy,bought,"[{""role"": ""user"", ""content"": ""hi""}]"\nsell,,\n'
    )
    assert goldens(text) == [
        ConversationalGolden("buy", expected_outcome="bought", turns=[Turn("user", "hi")]),
        ConversationalGolden("sell"),
    ]
    assert goldens("topic,input\nbuy,1\n", scenario_col_name="topic") == [
        ConversationalGolden("buy", custom_column_key_values={"input": "1"})
    ]


# --- errors of CSV files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "data.csv is empty."),
        (
            "input,context\nq,c\nr,c,d\n",
            "data.csv, line 3 has 3 cells, and the first line names 2 columns.",
        ),
        ("input,context\nq\n", "data.csv, line 2 has 1 cell, and the first line names 2 columns"),
        ('input\nq\n"r\ns\n', 'data.csv, line 3: a cell begins with a quote (") that is never closed.'),
        ('input\n"two\nlines"\n"r"s\n', 'data.csv, line 4: text follows a closing quote (")'),
        ("input,input\nq,r\n", "data.csv, line 1: the column 'input' is there twice."),
        ("input,context\n,c\n", "data.csv, line 2, column 'input': there is nothing in it."),
        ("input,token_cost\nq,cheap\n", "data.csv, line 2, column 'token_cost': 'cheap' is not a number."),
        ("input,completion_time\nq,-1\n", "data.csv, line 2, column 'completion_time': "),
        (
            "input,completion_time\nq,inf\n",
            "data.csv, line 2, column 'completion_time': 'inf' is not a finite number",
        ),
        (
            "input,additional_metadata\nq,{\n",
            "data.csv, line 2, column 'additional_metadata': '{' is not JSON (",
        ),
        ("input,additional_metadata\nq,3\n", "data.csv, line 2, column 'additional_metadata': "),
        ('input,expected_tools\nq,"[{""nam"": 1}]"\n', "data.csv, line 2, column 'expected_tools': "),
        (
            'scenario,turns\ns,"[{""role"": ""robot"", ""content"": """"}]"\n',
            "data.csv, line 2, column 'turns': ",
        ),
        (
            'scenario,turns\ns,"[{""input"": ""q""}]"\n',
            "data.csv, line 2, column 'turns': turns[0] is a test case",
        ),
        ("scenario,turns\ns,t\n", "data.csv, line 2, column 'turns': 't' is not JSON ("),
        ("scenario,turns,name\n,,n\n", "data.csv, line 2, column 'scenario': there is nothing in it."),
    ],
)
def test_errors_name_file_line_and_column(refused, text, message):
    assert message in refused(text)


def test_errors_in_a_cell_list_the_columns(refused):
    assert "The columns are: 'input', 'token_cost'." in refused("input,token_cost\nq,cheap\n")
    assert "The columns are: 'input', 'context'." in refused("input,context\nq,c,d\n")


def test_the_line_is_that_where_the_row_begins(refused):
    assert "line 4, column" in refused('input,token_cost\n"a\nb",1\n"c\r\nd",x\n')


def test_one_row_that_cannot_be_read_keeps_all_out(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("input,token_cost\nq,1\nr,x\ns,y\n", encoding="utf-8")
    dataset = EvaluationDataset()
    with pytest.raises(InputFileError, match=r"line 3.*1 more row cannot be read"):
        dataset.add_goldens_from_csv_file(path)
    assert dataset.goldens == []
    assert dataset.name is None


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputFileError, match=r"nowhere.csv cannot be read: No such file"):
        EvaluationDataset().add_goldens_from_csv_file(tmp_path / "nowhere.csv")


# --- JSON and JSONL -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["json", "jsonl"])
def test_json_rows_have_typed_values(goldens, kind):
    rows = [
        '{"q": "a|b", "context": ["c"], "expected_tools": ["t", {"name": "u", "input": {"n": 1}}]}',
        '{"q": "r", "context": "one text", "level": 3, "expected_output": null}',
    ]
    text = "[" + ",\n".join(rows) + "]\n" if kind == "json" else "\r\n".join(rows) + "\n\n"
    assert goldens("\ufeff" + text, kind, input_key_name="q") == [
        Golden(
            "a|b",
            context=["c"],
            expected_tools=[ToolCall(name="t"), ToolCall(name="u", input_parameters={"n": 1})],
        ),
        Golden("r", context=["one text"], custom_column_key_values={"level": 3}),
    ]


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("json", '[\n{"input": "q"},\n{"input": 42}\n]', "line 3, column 'input': 42 is not a text"),
        (
            "json",
            '[\n{"input": "q"},\n\n {"inpt": "q"}\n]',
            "line 4, column 'input': there is nothing in it.",
        ),
        ("json", '[{"inpt": "q"}]', "data.json: there is no column 'input'. The columns are: 'inpt'."),
        ("json", '{"input": "q"}', "data.json: this is not a JSON list of objects."),
        ("json", '[{"input": "q"},\n{"input": "r",}]', "data.json, line 2: this is not JSON"),
        ("json", '[{"input": "q"}\n{"input": "r"}]', "data.json, line 2: ',' or ']' is missing."),
        ("json", '[{"input": "q"},]', "data.json, line 1: this is not JSON"),
        ("json", '[{"input": "q"}', "',' or ']' is missing."),
        ("json", '[{"input": "q"}] x', "data.json: more follows the list."),
        ("json", "[[1]]", "data.json, line 1: this is of type list; each row must be one object."),
        (
            "json",
            '[[{"input": "q"}]]',
            "each row must be one object. Take each object out of the list that it",
        ),
        (
            "json",
            '[{"input": "q", "level": NaN}]',
            "data.json, line 1, column 'level': the value is nan, which JSON cannot hold",
        ),
        ("json", '[{"input": "q", "input": "r"}]', "the key 'input' is there twice."),
        ("json", '[{"input": "q", "additional_metadata": {"a": ' + "9" * 5000 + "}}]", "data.json, line 1: "),
        ("json", "", "data.json is empty."),
        ("jsonl", '{"input": "q"}\n\n{"input": }\n', "data.jsonl, line 3: this is not JSON"),
        (
            "jsonl",
            '{"input": "q"} {"input": "r"}\n',
            "data.jsonl, line 1: this is not JSON: Extra data.",
        ),
        ("jsonl", '[{"input": "q"}]\n', "data.jsonl, line 1: this is of type list"),
        (
            "jsonl",
            '{"input": "q", "token_cost": true}',
            "data.jsonl, line 1, column 'token_cost': True is not a number",
        ),
        ("jsonl", '{"input": "\\ud800"}', "data.jsonl, line 1, column 'input': "),
    ],
)
def test_errors_of_json_files_name_the_line(refused, kind, text, message):
    assert message in refused(text, kind)


def test_an_empty_list_is_an_empty_dataset(goldens):
    assert goldens("[]", "json") == goldens("", "jsonl") == goldens("input\n") == []


# --- Hugging Face datasets ----------------------------------------------------------------------------------


class Info:
    dataset_name = "squad"


class HuggingFaceDataset:
    """As much of `datasets.Dataset` as there is to it for a reader."""

    info = Info()
    column_names = ("question", "context")

    def __iter__(self):
        yield {"question": "q", "context": "c", "answer": None}
        yield {"question": "r", "context": ["c", "d"], "answer": "a"}


def test_hugging_face_datasets_are_rows():
    dataset = EvaluationDataset()
    dataset.add_goldens_from_hf_dataset(
        HuggingFaceDataset(), input_col_name="question", expected_output_col_name="answer"
    )
    assert dataset.goldens == [
        Golden("q", context=["c"]),
        Golden("r", expected_output="a", context=["c", "d"]),
    ]
    assert dataset.name == "squad"
    dataset.add_test_cases_from_hf_dataset([{"input": "q", "actual_output": "a"}])
    assert dataset.test_cases == [LLMTestCase("q", "a")]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("squad", "'squad' is the name of a dataset"),
        ({"train": [], "test": []}, "Choose one of them: 'train', 'test'."),
        (3, "There are no rows in a value of type int."),
        ([{"input": "q"}, {"input": 3}], "the dataset, row 2, column 'input': 3 is not a text"),
        (["input", "context"], "row 1: this is of type str; each row must be one dict."),
    ],
)
def test_what_is_no_dataset_is_refused(rows, message):
    with pytest.raises(InputFileError) as caught:
        EvaluationDataset().add_goldens_from_hf_dataset(rows)
    assert message in str(caught.value)


@pytest.mark.parametrize("above", ["sep=;", "# what people ask"])
def test_a_line_above_the_names_of_the_columns_is_to_be_deleted(refused, above):
    told = refused(f"{above}\ninput;expected_output\nq;a\n", delimiter=";")
    assert "there is no column 'input'. Delete what stands above the line that names the columns." in told


def test_errors_about_rows_that_stand_in_no_file_name_neither_files_nor_command_lines():
    rows = [
        {"input": "q", "answers": {"text": ["a"]}},
        {"input": "q", "answers": 3},
        {"input": "q", "answers": 4},
    ]
    for columns, told in (
        (
            {"input_col_name": None, "expected_output_col_name": "answers"},
            "is not a text, which this field must be",
        ),
        ({"input_col_name": "answers"}, "is not a text, which this field must be. 2 more rows"),
    ):
        with pytest.raises(InputFileError) as caught:
            EvaluationDataset().add_goldens_from_hf_dataset(rows, **columns)
        assert told in str(caught.value)
        assert "FILE" not in str(caught.value)
    with pytest.raises(InputFileError, match="3 is not a text: make texts of what stands in the column"):
        EvaluationDataset().add_goldens_from_hf_dataset(rows[1:], expected_output_col_name="answers")
    with pytest.raises(InputFileError, match="input_col_name='question', say") as caught:
        EvaluationDataset().add_goldens_from_hf_dataset([{"question": "q"}])
    assert "command line" not in str(caught.value)


# --- test cases ---------------------------------------------------------------------------------------------


def test_test_cases_are_read_from_csv_with_semicolons_between_contexts(tmp_path):
    path = tmp_path / "cases.csv"
    text = "query,actual_output,context,retrieval_context,tools_called,metadata,completion_time\n"
    path.write_text(text + 'q,a,c|d;e,r;s,t;u,"{""m"": 1}",1.5\n', encoding="utf-8")
    dataset = EvaluationDataset()
    with pytest.warns(
        UserWarning, match="in '(retrieval_)?context' are read as lists, split at ';'"
    ) as caught:
        dataset.add_test_cases_from_csv_file(path, input_col_name="query")
    assert len(caught) == 2
    assert dataset.test_cases == [
        LLMTestCase(
            "q",
            "a",
            context=["c|d", "e"],
            retrieval_context=["r", "s"],
            tools_called=[ToolCall(name="t"), ToolCall(name="u")],
            metadata={"m": 1},
            completion_time=1.5,
        )
    ]


@pytest.mark.parametrize("kind", ["json", "jsonl"])
def test_test_cases_are_read_from_json(kind, tmp_path):
    path = tmp_path / f"cases.{kind}"
    row = '{"turns": [{"input": "q", "actual_output": "a"}], "chatbot_role": "clerk"}'
    path.write_text(f"[{row}]" if kind == "json" else row, encoding="utf-8")
    dataset = EvaluationDataset()
    getattr(dataset, f"add_test_cases_from_{kind}_file")(path)
    assert dataset.test_cases == [ConversationalTestCase([LLMTestCase("q", "a")], chatbot_role="clerk")]


# --- values of rows that are no JSON ----------------------------------------------------------------------


def test_dates_and_numpy_values_of_rows_become_json():
    numpy = pytest.importorskip("numpy")
    row = {
        "input": numpy.str_("Why?"),
        "day": dt.date(2020, 1, 31),
        "at": dt.datetime(2020, 1, 31, 3, tzinfo=dt.UTC),
        "moment": numpy.datetime64("2020-01-01T00:00:00.123456789"),
        "share": numpy.float32(0.5),
        "vector": numpy.arange(3),
        "nested": {"flags": [numpy.bool_(True)]},
    }
    dataset = EvaluationDataset()
    dataset.add_goldens_from_hf_dataset([row])
    assert dataset.goldens[0].input == "Why?"
    assert dataset.goldens[0].custom_column_key_values == {
        "day": "2020-01-31",
        "at": "2020-01-31T03:00:00+00:00",
        "moment": "2020-01-01T00:00:00.123456789",
        "share": 0.5,
        "vector": [0, 1, 2],
        "nested": {"flags": [True]},
    }


def test_what_json_cannot_hold_is_refused_by_row_and_column():
    rows = [{"input": "a"}, {"input": "b", "picture": object()}]
    dataset = EvaluationDataset()
    with pytest.raises(
        InputFileError, match=r"row 2, column 'picture': .*an object.*remove_columns\('picture'\)"
    ):
        dataset.add_goldens_from_hf_dataset(rows)
    assert not dataset.goldens


def test_rows_without_any_column_are_told_so(refused):
    told = refused("{}\n{}\n", "jsonl")
    assert "data.jsonl: there is no column 'input'. There are no columns." in told


@pytest.mark.parametrize("name", [3, "", ["input"]])
def test_a_column_is_named_by_a_text(goldens, name):
    with pytest.raises(
        InvalidOptionError, match=r"input_col_name=.* is not a text\. Give the name as the file"
    ):
        goldens("input\nq\n", input_col_name=name)


def test_blank_cells_of_what_is_no_text_are_missing(goldens):
    assert goldens("input,token_cost,context,additional_metadata,expected_tools\nq, ,  ,\t, \n") == [
        Golden("q")
    ]


def test_test_cases_among_turns_need_an_answer(tmp_path):
    file = tmp_path / "data.json"
    file.write_text('[{"turns": [{"input": "q"}]}]', encoding="utf-8")
    with pytest.raises(InputFileError, match=r"line 1, column 'turns': .*actual_output"):
        EvaluationDataset().add_test_cases_from_json_file(file)


def test_a_file_of_the_other_kind_is_refused_in_the_words_of_the_data_set(tmp_path):
    file = tmp_path / "data.csv"
    file.write_text("input\nq\n", encoding="utf-8")
    dataset = EvaluationDataset([ConversationalGolden("greeting")])
    with pytest.raises(TypeError, match=r"^You cannot add 'Golden' to a multi-turn dataset\.$"):
        dataset.add_goldens_from_csv_file(file)


def test_contexts_of_marked_test_cases_are_separated_by_semicolons(tmp_path):
    file = tmp_path / "both.csv"
    file.write_text("input,context,modelgauge_member\nq,a|b;c,\nr,a|b;c,test_case\n", encoding="utf-8")
    goldens, cases = read_members(*read_source(file, "csv", {}))
    assert [golden.context for golden in goldens.members] == [["a", "b;c"]]
    assert [case.context for case in cases.members] == [["a|b", "c"]]
    _, named = read_members(*read_source(file, "csv", {"context_col_delimiter": "|"}))
    assert [case.context for case in named.members] == [["a", "b;c"]]
