"""What a terminal can show, and a page that is made for it."""

import io

import pytest

from modelgauge.reports.layout import Page, Style


class Stream(io.TextIOWrapper):
    def __init__(self, terminal, encoding):
        super().__init__(io.BytesIO(), encoding=encoding)
        self._terminal = terminal

    def isatty(self):
        return self._terminal


@pytest.mark.parametrize(
    ("terminal", "encoding", "variables", "width", "color", "symbols"),
    [
        (True, "utf-8", {"COLUMNS": "100"}, 100, True, True),
        (True, "UTF8", {"COLUMNS": "100", "NO_COLOR": ""}, 100, True, True),
        (True, "utf-8", {"COLUMNS": "100", "NO_COLOR": "1"}, 100, False, True),
        (True, "utf-8", {"COLUMNS": "100", "TERM": "dumb"}, 100, False, True),
        (True, "cp1252", {"COLUMNS": "100"}, 100, True, False),
        (True, "utf-8", {"COLUMNS": "39"}, 40, True, True),
        (True, "utf-8", {"COLUMNS": "121"}, 120, True, True),
        (False, "utf-8", {"COLUMNS": "100"}, 100, False, True),
        (False, "ascii", {}, 80, False, False),
    ],
)
def test_a_stream_decides_the_width_the_colours_and_the_symbols(
    monkeypatch, terminal, encoding, variables, width, color, symbols
):
    for name in ("COLUMNS", "NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert Style.of(Stream(terminal, encoding)) == Style(width, color, symbols)
    assert Style.of(Stream(terminal, encoding), most_rows=3).most_rows == 3


def test_what_is_no_stream_of_bytes_gets_ascii(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert Style.of(io.StringIO()) == Style(80, color=False, symbols=False)


def test_a_style_is_of_80_columns_without_colours_and_shows_all_rows():
    assert Style() == Style(width=80, color=False, symbols=True, most_rows=None)


@pytest.mark.parametrize(("look", "code"), [("bold", 1), ("dim", 2), ("red", 31)])
def test_a_look_is_put_around_each_line_of_a_text(look, code):
    page = Page(Style(width=9, color=True), str)
    page.add("one two three\nfour", look)
    assert page.rendered().split("\n") == [
        f"\x1b[{code}m{line}\x1b[0m" for line in ("one two", "three", "four")
    ]


def test_a_fact_has_its_label_before_its_first_line_alone():
    page = Page(Style(width=20, color=True), str)
    page.add_fact("label", "one\n two  three", "red", indent=6)
    page.add_fact("a", "b", indent=6)
    page.add_line("path", "/a/long/way/to/go", indent=6)
    assert page.rendered().split("\n") == [
        "\x1b[2mlabel   \x1b[0m\x1b[31mone two\x1b[0m",
        "        \x1b[31mthree\x1b[0m",
        "\x1b[2ma       \x1b[0mb",
        "\x1b[2mpath    \x1b[0m/a/long/way/to/go",
    ]


def test_a_fact_is_as_wide_as_the_page_allows():
    for width, lines in ((12, ["a  one two x"]), (11, ["a  one two", "   x"])):
        page = Page(Style(width=width), str)
        page.add_fact("a", "one two x", indent=1)
        assert page.rendered().split("\n") == lines


@pytest.mark.parametrize(("symbols", "rule"), [(True, "─"), (False, "-")])
def test_a_table_has_a_bold_head_a_rule_and_an_empty_line_behind_it(symbols, rule):
    page = Page(Style(color=True, symbols=symbols), str)
    page.add_table([("a", "1"), ("b", "22")], ("X", "n"), folds={"X": 4}, right={"n"})
    page.add("after")
    page.add_gap()
    assert page.rendered().split("\n") == [
        "\x1b[1mX       n\x1b[0m",
        rule * 9,
        "a       1",
        "b      22",
        "",
        "after",
    ]


def test_secrets_and_control_characters_are_on_no_line_of_a_page():
    page = Page(Style(), lambda text: text.replace("canary", "[secret]"))
    said = "\x1b[2J canary"
    page.add(said)
    page.add_fact(" a", said, indent=4)
    page.add_line(" b", said, indent=4)
    page.add_table([(said, "1")], (said, "n"), folds={said: 4})
    shown = page.rendered()
    assert "\x1b" not in shown
    assert "canary" not in shown
    assert shown.count("\\x1b[2J [secret]") == 5
