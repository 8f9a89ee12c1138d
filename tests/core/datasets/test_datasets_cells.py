"""What the cells of CSV files mean where lists are wanted: JSON lists, parts between delimiters, or neither."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.data.responses import ToolCall
from modelgauge.data.test_cases import ConversationalGolden, Golden
from modelgauge.datasets.dataset import EvaluationDataset
from modelgauge.datasets.fields import is_list_meant
from modelgauge.errors import InputFileError
from modelgauge.files.tables import csv_text


@pytest.fixture
def read(tmp_path):
    """The golden of a file with one cell besides its input."""

    def golden(field: str, cell: str) -> Golden:
        file = tmp_path / "data.csv"
        file.write_text(csv_text([["input", field], ["q", cell]]), encoding="utf-8", newline="")
        return EvaluationDataset.from_file(file).goldens[0]

    return golden


MALFORMED = [
    '["a", "b"',
    '["a", "b"] c',
    "['a', 'b']",
    '["a",]',
    '["a" "b"]',
    "[a, b]",
    "[“a”, “b”]",
    '["a"]|["b"]',
]


LISTS = {
    "texts": (
        ("context", "retrieval_context", "tags"),
        (*MALFORMED, "[1]", "[null]", '["a", 2]', '[["a"]]', '[{"text": "a"}]', "[sic]"),
        'Write ["one", "two"]',
    ),
    "tools": (
        ("expected_tools", "tools_called"),
        (*MALFORMED, "[1]", "[null]", '[["a"]]', "[1] one", '{"name": "search"}', '{"name"'),
        '[{"name": "search"',
    ),
}


@pytest.mark.parametrize(
    ("kind", "field", "cell"),
    [(kind, field, cell) for kind, (fields, cells, _) in LISTS.items() for field in fields for cell in cells],
)
@pytest.mark.filterwarnings("ignore:.*1 golden has")
def test_what_begins_like_a_list_and_is_none_is_an_error(read, kind, field, cell):
    with pytest.raises(InputFileError) as caught:
        read(field, cell)
    assert (
        f"data.csv, line 2, column '{field}': {cell!r} is not a JSON list of {kind}" in caught.value.problem
    )
    assert LISTS[kind][2] in caught.value.fix
    assert "The columns are: 'input'" in caught.value.fix


def test_a_misspelt_field_of_a_tool_is_told_with_the_right_one(read):
    with pytest.raises(InputFileError, match=r"expected_tools\.0\.nam.*Did you mean 'name'"):
        read("expected_tools", '[{"nam": "search"}]')


def test_why_a_list_does_not_parse_is_told(read):
    with pytest.raises(InputFileError, match=r"JSON list of texts \(Expecting ',' delimiter"):
        read("context", '["a" "b"]')
    with pytest.raises(InputFileError, match=r"JSON list of tools \(the key 'name' is there twice\)"):
        read("expected_tools", '[{"name": "a", "name": "b"}]')


HONEST = [
    "[1] Smith et al.",
    "[1, 2] showed it",
    "[1] see [2]",
    "[[Paris]] is the capital of France",
    "[0, 1) is half open",
    "[title](https://example.org)",
    "[a] and ['b']",
    "a [1]",
    '"quoted" [sic]',
]


@pytest.mark.parametrize("text", HONEST)
def test_a_text_that_begins_with_a_bracket_is_a_text(read, text):
    assert read("context", text).context == [text]
    with pytest.warns(UserWarning, match="split at"):
        assert read("context", f"{text}|{text}").context == [text, text]


def test_lists_of_both_kinds_are_read(read):
    assert read("context", ' ["a|b", "[1]"] ').context == ["a|b", "[1]"]
    assert read("context", "[]").context == []
    assert read("tags", "[1] x;y").tags == ["[1] x", "y"]
    assert read("expected_tools", '["a", {"name": "b"}]').expected_tools == [
        ToolCall(name="a"),
        ToolCall(name="b"),
    ]


@given(st.text() | st.sampled_from(HONEST) | st.from_regex(r"[\[\]\"'{}a, ]{1,12}", fullmatch=True))
def test_a_json_list_is_always_taken_for_one(text):
    assert is_list_meant(json.dumps([text]))
    assert is_list_meant(json.dumps([text, "a"], ensure_ascii=False))


TURNS = [
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi", "retrieval_context": ["a|b"]},
]


@pytest.mark.parametrize("suffix", ["csv", "json", "jsonl"])
def test_turns_and_metadata_may_be_one_text_in_every_kind_of_file(suffix, tmp_path):
    row = {"scenario": "greeting", "turns": json.dumps(TURNS), "additional_metadata": '{"page": 3}'}
    file = tmp_path / f"data.{suffix}"
    text = {
        "csv": csv_text([[*row], [*row.values()]]),
        "json": json.dumps([row]),
        "jsonl": json.dumps(row),
    }[suffix]
    file.write_text(text, encoding="utf-8", newline="")
    (golden,) = EvaluationDataset.from_file(file).goldens
    assert golden == ConversationalGolden("greeting", turns=TURNS, metadata={"page": 3})


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_turns_that_are_no_json_are_named_in_every_kind_of_file(suffix, tmp_path):
    row = {"scenario": "greeting", "turns": "user: Hello"}
    file = tmp_path / f"data.{suffix}"
    text = csv_text([[*row], [*row.values()]]) if suffix == "csv" else json.dumps(row)
    file.write_text(text, encoding="utf-8", newline="")
    with pytest.raises(InputFileError, match=r"column 'turns': 'user: Hello' is not JSON"):
        EvaluationDataset.from_file(file)
