"""Plain text for terminals."""

from hypothesis import given
from hypothesis import strategies as st

from modelgauge.report.plain import columns, counted, ends_of, one_line, visible


def test_control_characters_become_escapes():
    assert visible("a\x1b[31mb\r\x9b\u202ec\ud800") == "a\\x1b[31mb\\r\\x9b\\u202ec\\ud800"
    assert visible("tab\tline\nümlaut 漢") == "tab\tline\nümlaut 漢"


@given(st.text(st.characters()))
def test_what_is_visible_is_printable_and_can_be_encoded(text):
    shown = visible(text)
    assert not any(ord(each) < 32 and each not in "\t\n" for each in shown)
    shown.encode("utf-8")
    assert visible(shown) == shown


def test_columns_are_aligned_and_end_without_white_space():
    rows = [("a", "one"), ("longer", "two\nlines")]
    assert columns(rows, ("X", "Y"), indent="  ") == "  X       Y\n  a       one\n  longer  two lines"
    assert columns([]) == ""


def test_a_long_message_loses_its_middle_and_keeps_its_end():
    assert ends_of(" a \n\n b ", 20) == "a b"
    assert ends_of("a" * 20, 20) == "a" * 20
    assert ends_of("a" * 100 + "b" * 10, 20) == "aaaaa ... bbbbbbbbbb"
    message = "It broke. " + "noise " * 100_000 + "Mend it: export ACME_URL=https://acme.example"
    shown = ends_of(message, 300)
    assert len(shown) <= 300
    assert shown.startswith("It broke. noise")
    assert shown.endswith("noise Mend it: export ACME_URL=https://acme.example")


def test_one_line_folds_and_cuts():
    assert one_line(" a \n\n b ", 20) == "a b"
    assert one_line("x" * 30, 10) == "xxxxxxx..."


def test_counted():
    assert [counted(0, "item"), counted(1, "item"), counted(1200, "item")] == [
        "0 items",
        "1 item",
        "1,200 items",
    ]
