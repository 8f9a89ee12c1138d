"""JSON Lines come back exactly as they were written, and what is wrong with a line is told with its place."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.errors import InputFileError
from modelgauge.files.json_lines import json_lines_writer, read_json_lines, text_lines

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["\u2028", "\x85", "\ufeff", "\r"]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)


def read(data: bytes, encoding: str = "utf-8"):
    return [*read_json_lines(text_lines(io.BytesIO(data), "data.jsonl", encoding), "data.jsonl")]


@given(
    st.lists(values, max_size=4),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_values_come_back_exactly(rows, end, encoding):
    text = io.StringIO()
    json_lines_writer(text).write_all(rows)
    found = [value for _, value in read(text.getvalue().replace("\n", end).encode(encoding), encoding)]
    assert json.dumps(found) == json.dumps(rows)  # which tells 1, 1.0 and true apart


def test_bytes_are_read_and_written_as_texts_are():
    file = io.BytesIO()
    json_lines_writer(file).write({"a": "ä\u2028b", "n": 10**30})
    assert file.getvalue() == '{"a": "ä\u2028b", "n": 1000000000000000000000000000000}\n'.encode()
    assert [*read_json_lines(file.getvalue().splitlines(), "f")] == [
        ("f, line 1", {"a": "ä\u2028b", "n": 10**30})
    ]


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_json_lacks_are_not_written(number):
    with pytest.raises(ValueError, match="JSON"):
        json_lines_writer(io.StringIO()).write([number])


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"a": 1, "a": 2}', "the key 'a' is there twice"),
        (b'{"a": "b', "Unterminated string starting"),
        (b"{} {}", "Extra data"),
        (b"[" * 100_000, "it is nested too deep"),
    ],
)
def test_lines_around_a_broken_one_are_read(line, why):
    first, broken, last = read(b"null\n\n" + line + b"\n1\n")
    assert (first, last) == (("data.jsonl, line 1", None), ("data.jsonl, line 4", 1))
    assert broken[0] == "data.jsonl, line 3"
    assert isinstance(broken[1], ValueError)
    assert str(broken[1]) == why


@pytest.mark.parametrize(
    ("part", "problem"), [(b'"\xff"\n', "this is not utf-8"), (b"\0\n", "there is a NUL character")]
)
def test_line_that_is_no_text_is_named_far_into_a_file(part, problem):
    with pytest.raises(InputFileError, match=rf"data\.jsonl, line 5001: {problem}"):
        read(b'"a text"\n' * 5000 + part)


@pytest.mark.parametrize("encoding", ["no-such", "rot13", "undefined", "utf-8\0"])
def test_unknown_encoding_is_refused(encoding):
    with pytest.raises(InputFileError, match="There is no encoding"):
        read(b"1\n", encoding)


def test_file_is_read_as_its_lines_are_asked_for():
    file = io.BytesIO(b'"a text"\n' * 100_000)
    lines = text_lines(file, "data.jsonl", "utf-8")
    next(lines)
    assert file.tell() < 100_000
    lines.close()
    assert not file.closed
