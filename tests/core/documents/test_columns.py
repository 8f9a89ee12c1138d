"""Plain text for terminals."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.documents.columns import TextColumn, aligned, cells, folded
from modelgauge.wording.phrases import indented, keep_ends, one_line


def columns(rows, head=(), *, folds=None, right=(), **layout):
    names = head or [""] * len(rows[0])
    texts = [
        TextColumn(name, held, (folds or {}).get(name), right=name in right)
        for name, *held in zip(names, *rows, strict=True)
    ]
    return "\n".join(aligned(texts, has_head=bool(head), **layout))


def test_columns_are_aligned_and_end_without_white_space():
    rows = [("a", "one"), ("longer", "two lines")]
    assert columns(rows, ("X", "Y")) == "X       Y\na       one\nlonger  two lines"
    assert aligned([]) == aligned([TextColumn("X", [])]) == []


def test_a_long_message_loses_its_middle_and_keeps_its_end():
    assert keep_ends(" a \n\n b ", 20) == "a b"
    assert keep_ends("a" * 20, 20) == "a" * 20
    assert keep_ends("a" * 100 + "b" * 10, 20) == "aaaaa ... bbbbbbbbbb"
    message = "It broke. " + "noise " * 100_000 + "Mend it: export ACME_URL=https://acme.example"
    shown = keep_ends(message, 300)
    assert len(shown) <= 300
    assert shown.startswith("It broke. noise")
    assert shown.endswith("noise Mend it: export ACME_URL=https://acme.example")


def test_one_line_folds_and_cuts():
    assert one_line(" a \n\n b ", 20) == "a b"
    assert one_line("x" * 30, 10) == "xxxxxxx..."
    assert one_line("x" * 10, 10) == "x" * 10


@pytest.mark.parametrize(
    ("text", "wide"),
    [
        ("", 0),
        ("abc", 3),
        ("漢字", 4),
        ("\uff46", 2),
        ("é", 1),
        ("e\u0301", 1),
        ("a\u20dd", 1),
        ("\u200da", 1),
    ],
)
def test_how_many_characters_of_a_terminal_a_text_takes(text, wide):
    assert cells(text) == wide


def test_each_line_of_a_text_is_indented_but_for_empty_ones():
    assert indented("a\n\n b ") == "  a\n\n   b"
    assert indented("a", "> ") == "> a"


@pytest.mark.parametrize("most", [20, 60, 300])
def test_of_a_text_that_is_mostly_white_space_enough_is_read(most):
    word = "abcd" + " " * 11
    line = one_line(word * 1000, most)
    assert len(line) == most
    assert line.endswith("...")
    ends = keep_ends(word * 1000, most)
    assert most - 10 <= len(ends) <= most
    assert keep_ends("x" * most, most) == "x" * most
    assert len(keep_ends("x" * (most + 1), most)) == most


def test_what_is_left_out_begins_after_a_third():
    assert keep_ends("a" * 500 + "b" * 500, 305) == f"{'a' * 100} ... {'b' * 200}"


def test_columns_without_a_head_and_without_folds():
    rows = [("a", "bb"), ("ccc", "d")]
    assert columns(rows) == "a    bb\nccc  d"
    assert columns(rows, ("", "n"), right={"n"}) == "      n\na    bb\nccc   d"
    assert columns(rows, ("X", "Y"), rule="-") == "X     Y\n--------\na     bb\nccc   d"


def test_an_indent_takes_room():
    rows = [("  inner", "bbb")]
    assert columns(rows, ("X", "Y"), width=12) == "X        Y\n  inner  bbb"
    for width, below in ((11, ["Y: bbb"]), (10, ["Y: bbb"]), (9, ["Y:", "bbb"])):
        lines = columns(rows, ("X", "Y"), width=width).split("\n")
        assert lines == ["X", "  inner", *(f"    {line}" for line in below)]


def test_what_stands_below_a_row_shares_lines_where_it_can():
    rows = [("a" * 8, "1", "2", "3" * 9)]
    assert columns(rows, ("name", "xxxxxxxx", "yyyyyyyy", "z"), width=20) == "\n".join(
        ("name      xxxxxxxx", "aaaaaaaa  1", "    yyyyyyyy: 2", "    z: 333333333")
    )
    short = [("a" * 8, "1", "2", "3")]
    assert columns(short, ("name", "xxxxxxxxx", "yyyyyyyyy", "zzzzzzzzzzzzz"), width=19) == "\n".join(
        ("name      xxxxxxxxx", "aaaaaaaa  1", "    yyyyyyyyy: 2", "    zzzzzzzzzzzzz:", "    3")
    )
    assert columns(short, ("name", "x" * 20, "y" * 20, "z"), width=31).split("\n") == [
        "name      " + "x" * 20,
        "aaaaaaaa  1",
        "    " + "y" * 20 + ": 2",
        "    z: 3",
    ]
    assert (
        columns([("a" * 8, "1", "2")], ("name", "", "xxxx"), width=9)
        == "name\naaaaaaaa\n    1\n    xxxx:\n    2"
    )


def test_a_column_without_room_stands_below_its_row_with_its_name():
    rows = [
        ("a_rather_long_name", "0.43 ± 0.02", "43,276", "why it is so, in a few words"),
        ("b", "1", "", ""),
    ]
    head = ("Result", "value", "n", "Reason")
    told = {"folds": {"Result": 6, "Reason": 12}, "right": {"n"}}
    assert columns(rows, head, width=40, **told).split("\n") == [
        "Result              value             n",
        "a_rather_long_name  0.43 ± 0.02  43,276",
        "    Reason: why it is so, in a few words",
        "b                   1",
    ]
    assert columns(rows, head, width=24, rule="-", **told).split("\n") == [
        "Result       value",
        "------------------------",
        "a_rather_    0.43 ± 0.02",
        "long_name",
        "    n: 43,276",
        "    Reason: why it is",
        "    so, in a few words",
        "b            1",
    ]


def test_where_room_is_short_the_columns_that_need_most_give_most():
    rows = [("a" * 8 + " b", "c " * 20, "d " * 30)]
    head = ("X", "Y", "Z")
    shown = columns(rows, head, width=50, folds=dict.fromkeys(head, 4)).split("\n")
    assert [shown[0].index(name) for name in head] == [0, 12, 32]
    assert shown[1] == f"aaaaaaaa b  {'c ' * 9}  {'d ' * 9}".rstrip()


def test_a_text_is_folded_between_words_and_a_long_word_between_its_parts():
    assert folded("  provider/some-long-model-name of 0.43 ± 0.02 points", 16) == [
        "  provider/some-",
        "  long-model-",
        "  name of",
        "  0.43 ± 0.02",
        "  points",
    ]
    assert folded("漢字漢字", 5) == ["漢字", "漢字"]
    assert folded("", 5) == [""]


def _numbers(text):
    return Counter(re.findall(r"\d(?:[\d.,]*\d)?", text))


numbers = st.builds(format, st.integers(0, 10**9), st.sampled_from([",", "", ".4e"]))
figures = st.builds(
    lambda parts, glue: glue.join(parts),
    st.lists(numbers, max_size=2),
    st.sampled_from([" ± ", " to ", " of ", " +/- "]),
)
words = st.text("ab_/-é漢", max_size=30)
texts = st.builds(" ".join, st.lists(words | numbers, max_size=6))


@st.composite
def tables(draw):
    kinds = draw(st.lists(st.booleans(), min_size=1, max_size=8))
    rows = draw(st.lists(st.tuples(*(texts if kind else figures for kind in kinds)), min_size=1, max_size=4))
    head = [f"{draw(st.text('xy ', max_size=20))}_" + "ab"[kind] * at for at, kind in enumerate(kinds)]
    folds = {name: 12 for name, kind in zip(head, kinds, strict=True) if kind}
    return rows, head, folds, {name for name, kind in zip(head, kinds, strict=True) if not kind}


@given(tables(), st.integers(40, 200), st.sampled_from(["", "-"]))
def test_a_table_of_any_width_shows_every_number_whole_and_no_line_is_longer(table, width, rule):
    rows, head, folds, right = table
    shown = columns(rows, head, width=width, folds=folds, right=right, rule=rule)
    assert _numbers(shown) == _numbers(" ".join(cell for row in rows for cell in row))
    assert max(map(cells, shown.split("\n"))) <= width
