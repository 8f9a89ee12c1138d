"""What a terminal can show, and documents that are made for it."""

import io

import pytest

from modelgauge.documents.axis import Axis
from modelgauge.documents.document import (
    Charts,
    Conclusion,
    Fact,
    FactList,
    Heading,
    Histogram,
    Interval,
    Quotes,
    RoomyTable,
    Section,
    Sentences,
    TableBlock,
    TableColumn,
    Text,
    Troubles,
)
from modelgauge.documents.terminal import Style, as_list, as_text


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
    unbroken = not terminal and "COLUMNS" not in variables
    assert Style.of(Stream(terminal, encoding)) == Style(width, color, symbols, unbroken)


def test_what_is_no_stream_of_bytes_gets_ascii(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert Style.of(io.StringIO()) == Style(80, color=False, symbols=False, unbroken=True)


def test_a_style_is_of_80_columns_without_colours():
    assert Style() == Style(width=80, color=False, symbols=True)


def test_pipes_and_logs_get_a_line_for_each_row_however_long():
    name, reason = "bbh_navigate_" * 9, "it says so " * 20
    columns = [
        TableColumn("Test", [name, "b"], fold=8),
        TableColumn("Reason", [reason, ""], fold=24),
        TableColumn("n", ["1", "2"], right=True),
    ]
    for shown in (
        as_text([TableBlock(columns)], Style(unbroken=True)).split("\n"),
        as_text([RoomyTable(TableBlock(columns))], Style(unbroken=True)).split("\n"),
        ["", *as_list(columns, Style(unbroken=True)).split("\n")],
    ):
        assert len(shown) == 4
        assert shown[2].split() == [name, *reason.split(), "1"]
        assert shown[3].split() == ["b", "2"]
    assert len(as_text([Sentences([reason])], Style(unbroken=True)).split("\n")) > 1


@pytest.mark.parametrize(("look", "code"), [("strong", 1), ("dim", 2), ("alarm", 31)])
def test_a_look_is_put_around_each_line_of_a_text(look, code):
    shown = as_text([Sentences(["one two three\nfour"], look)], Style(width=9, color=True))
    assert shown.split("\n") == [f"\x1b[{code}m{line}\x1b[0m" for line in ("one two", "three", "four")]


def test_a_fact_has_its_label_before_its_first_line_alone():
    facts = [
        Fact("label", "one\n two  three", "alarm"),
        Fact("a", "b"),
        Fact("path", "/a/long/way/to/go", is_whole=True),
    ]
    assert as_text([FactList(facts, indent=6)], Style(width=20, color=True)).split("\n") == [
        "\x1b[2mlabel   \x1b[0m\x1b[31mone two\x1b[0m",
        "        \x1b[31mthree\x1b[0m",
        "\x1b[2ma       \x1b[0mb",
        "\x1b[2mpath    \x1b[0m/a/long/way/to/go",
    ]


def test_a_fact_is_as_wide_as_the_terminal_allows():
    for width, lines in ((12, ["a  one two x"]), (11, ["a  one two", "   x"])):
        assert as_text([FactList([Fact("a", "one two x")])], Style(width=width)).split("\n") == lines


def test_long_fact_keeps_its_ends_on_so_many_lines():
    text = f"first {'middle ' * 100} last"
    shown = as_text([FactList([Fact("a", text, most_lines=3)])], Style(width=43)).split("\n")
    assert len(shown) == 3
    assert shown[0].startswith("a  first")
    assert shown[-1].endswith("last")


@pytest.mark.parametrize(("symbols", "rule"), [(True, "─"), (False, "-")])
def test_a_table_has_a_bold_head_a_rule_and_an_empty_line_behind_it(symbols, rule):
    table = TableBlock([TableColumn("X", ["a", "b"], fold=4), TableColumn("n", ["1", "22"], right=True)])
    assert as_text([table, Sentences(["after"])], Style(color=True, symbols=symbols)).split("\n") == [
        "\x1b[1mX       n\x1b[0m",
        rule * 9,
        "a       1",
        "b      22",
        "",
        "after",
    ]


def test_headings_hug_what_follows_unless_that_is_a_heading():
    blocks = [Heading("all"), Heading("part"), Sentences(["one", "two"]), Conclusion("it is met", "met")]
    assert as_text(blocks, Style()).split("\n") == ["all", "", "part", "one", "two", "", "it is met"]


def test_secrets_and_control_characters_are_in_no_line_of_a_document():
    said = "\x1b[2J canary"
    blocks = [
        Heading(said),
        Conclusion(said),
        Sentences([said, (said, Text(said, "#address"))]),
        FactList([Fact(" a", said), Fact(" b", said, is_whole=True)]),
        Troubles("", [Fact(("1", Text(said)), said)]),
        TableBlock([TableColumn(said, [said], fold=4), TableColumn("n", ["1"])], caption=said, note=said),
        Quotes([(said, said)], remarks=[said]),
        Section(said, said, [Sentences([said])]),
    ]
    shown = as_text(blocks, Style(), lambda text: text.replace("canary", "[secret]"))
    assert "\x1b" not in shown
    assert "canary" not in shown
    assert shown.count("\\x1b[2J [secret]") == 19


def test_texts_of_others_stand_behind_a_bar_on_every_line():
    said = "::error::x\nnext     rm -rf ~\n" + "long " * 10
    lines = as_text([Quotes([("prompt", said)], ["right of A: 1"])], Style(width=40)).split("\n")
    assert lines[0] == "  prompt"
    assert lines[-1] == "  right of A: 1"
    assert len(lines) == 6
    assert all(line.startswith("  │ ") for line in lines[1:-1])


def test_ascii_terminal_has_other_signs_for_ours_and_keeps_texts_of_others():
    table = TableBlock(
        [
            TableColumn("value ± std err", ["0.5 ± 0.1"]),
            TableColumn("", [Interval(1.0, (-1.0, 2.0), "untold")], axis=Axis(-1, 2)),
            TableColumn("threshold", ["≥ 0.7"]),
        ],
        legend=[("untold", "cannot tell")],
    )
    shown = as_text([table, Quotes([("a → b", "c → d")])], Style(width=100, symbols=False))
    assert shown.split("\n") == [
        "o cannot tell",
        "value +/- std err   -1           0                         +2   threshold",
        "-" * 73,
        "0.5 +/- 0.1         [------------+-------------o------------]   >= 0.7",
        "",
        "  a -> b",
        "  | c → d",
    ]


def test_of_long_table_with_drawings_columns_are_left_out_and_named():
    columns = [
        TableColumn("Name", [f"name {at}" for at in range(13)], fold=8),
        TableColumn("", [Interval(1.0)] * 13, axis=Axis(0, 1)),
        *(TableColumn(f"number {at}", ["1,000,000"] * 13) for at in range(5)),
    ]
    wide, narrow = (as_text([TableBlock(columns)], Style(width=width)) for width in (120, 80))
    assert "Also there" not in wide
    assert narrow.endswith("Also there, in a wider terminal or with --json: number 4.")
    assert len(narrow.split("\n")) == 2 + 13 + 2


def test_roomy_table_is_shown_where_each_row_has_one_line():
    table = TableBlock([TableColumn(f"head {at}", ["x" * 8]) for at in range(5)])
    block = RoomyTable(table, then=[Sentences(["then"])], otherwise=[Sentences(["otherwise"])])
    assert as_text([block], Style(width=52)).split("\n")[2:] == ["   ".join(["x" * 8] * 5), "", "then"]
    assert as_text([block], Style(width=51)) == "otherwise"


def test_charts_are_left_out_and_sections_shown():
    section = Section("Latency", "median 1 s", [Charts([("x", Histogram([1.0]))]), Sentences(["about"])])
    assert as_text([section], Style()).split("\n") == ["Latency median 1 s", "about"]


def test_list_has_no_rule_and_a_head_only_if_columns_are_named():
    named = [TableColumn("RUN", ["a"]), TableColumn("SUT", [("x", Text("y", "#"))])]
    assert as_list(named, Style()) == "RUN  SUT\na    xy"
    assert as_list([TableColumn("", ["a"]), TableColumn("", ["b\nc"])], Style()) == "a  b c"
    assert as_list([TableColumn("RUN", [])], Style()) == ""
