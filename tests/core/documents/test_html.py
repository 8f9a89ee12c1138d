"""Documents as parts of a page: what each block becomes, and that every text stays text."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from modelgauge.documents.axis import Axis
from modelgauge.documents.document import (
    Charts,
    Conclusion,
    Fact,
    FactList,
    Heading,
    Histogram,
    Interval,
    OverTime,
    Quotes,
    Reliability,
    RoomyTable,
    Section,
    Sentences,
    StepChart,
    TableBlock,
    TableColumn,
    Text,
    Troubles,
    joined,
)
from modelgauge.documents.html import as_html, breakable

HOSTILE = "<script>alert(1)</script>\u202e & \"x\" 'y'"
VOID = {"br", "wbr", "line", "circle", "rect", "path", "polyline"}


class _Reader(HTMLParser):
    """Reads the texts of a page, and checks that its elements are nested."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.texts, self.open = [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert tag in VOID or self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def _document(said):
    drawn = [Interval(0.5, (0.2, 0.8), "untold", label=said), Interval(None), Interval(0.1, beside=said)]
    table = TableBlock(
        [
            TableColumn(said, [said, Text(said, "#a&b"), f"  {said}"], kind="name", about=said),
            TableColumn("", drawn, axis=Axis(0, 1), sides=(said, said)),
            TableColumn(
                said, [joined("/", [Text(said, "#"), said]), "", Text(said, look="small")], kind="number"
            ),
        ],
        caption=said,
        legend=[("untold", "cannot tell")],
        note=said,
        label=said,
        kind="results forest",
    )
    charts: list = [
        (said, Histogram([1.0, 2.0])),
        (said, OverTime([(0.0, 1.0), (1.0, 2.0)], said)),
        (said, StepChart([(0.0, 1.0), (1.0, 3.0)], 2.0, said)),
        (said, Reliability([(0.5, 0.4, (0.2, 0.6), 5)], said)),
    ]
    return [
        Heading(said, beside=said),
        Heading(said, level=2),
        Conclusion(said, "missed"),
        Sentences([said, (said, Text(said, "#x", "best"))], title=said),
        FactList([Fact(said, said), Fact("", said)]),
        Troubles("What failed", [Fact(("3 of ", Text(said, "#f")), said)]),
        Quotes([(said, said), ("", said)], remarks=[said]),
        RoomyTable(table, then=[Sentences([said], "dim")]),
        Section(said, said, [Charts(charts), Section("", said, [Conclusion(said)])]),
    ]


def test_hostile_texts_are_text_in_every_block():
    page = _Reader(as_html(_document(HOSTILE)))
    assert "script" not in {tag for tag, _ in page.tags}
    assert "\u202e" not in str(page.tags) + "".join(page.texts)
    plain = _Reader(as_html(_document("plain")))
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags]


@given(st.text(min_size=1, max_size=20))
def test_no_text_adds_an_element(text):
    ours, plain = (_Reader(as_html(_document(word))).tags for word in (f"a{text}", "ab"))
    assert [tag for tag, _ in ours if tag != "wbr"] == [tag for tag, _ in plain]


@pytest.mark.parametrize(
    ("name", "parts"),
    [("a_b.c", ["a_", "b.", "c"]), ("TokenF1Metric", ["Token", "F1Metric"]), ("<b>&_", ["&lt;b&gt;&amp;_"])],
)
def test_names_break_between_their_words(name, parts):
    assert breakable(escape(name)).split("<wbr>") == parts


def test_secrets_are_in_no_block():
    page = as_html(_document("my canary"), lambda text: text.replace("canary", "[secret]"))
    assert "canary" not in page
    assert page.count("my [secret]") > 40


def test_rows_are_named_and_parts_of_others_are_marked():
    names = ["all_of_it", "  one part", ""]
    table = TableBlock(
        [TableColumn("Result", names, kind="name"), TableColumn("n", ["1", "2", "3"], kind="number")],
        apart=[1],
    )
    shown = str(as_html([table]))
    assert '<tr><th scope="row" class="name">all_<wbr>of_<wbr>it</th><td class="number">1</td></tr>' in shown
    assert '<tr class="mean"><th scope="row" class="name part">one part</th>' in shown
    assert '<tr><td class="name"></td><td class="number">3</td></tr>' in shown


def test_facts_without_a_label_are_lines_of_the_one_before():
    shown = str(as_html([FactList([Fact("a", "1"), Fact("", "2"), Fact("b", "3")])]))
    assert "<dt>a</dt><dd>1<br>2</dd>" in shown
    assert "<dt>b</dt><dd>3</dd>" in shown


def test_link_leads_where_its_address_says():
    shown = str(as_html([Sentences([("see ", Text("2 items", '#a=1&b="'))])]))
    assert shown == '<p>see <a href="#a=1&amp;b=&#34;">2 items</a></p>\n'
