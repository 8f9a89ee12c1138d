"""Documents in GitHub's Markdown; hostile texts are in `reports/comparisons/test_formats.py`."""

from modelgauge.documents.document import (
    Conclusion,
    Fact,
    FactList,
    Heading,
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
from modelgauge.documents.markdown import as_markdown


def test_each_block_has_its_form():
    table = TableBlock(
        [
            TableColumn("A|B", ["x_y"]),
            TableColumn("n", [("1", "/", Text("2", "#"))]),
            TableColumn("", [Interval(1.0, beside="up")]),
        ],
        note="2 more.",
    )
    blocks = [
        Heading("Is *a* better?"),
        Conclusion("Yes."),
        Sentences(["one", "two"]),
        Sentences(["three"], title="Also"),
        FactList([Fact("Failed", "a gate"), Fact("", "1 of 2 passed")]),
        Troubles("What failed", [Fact("stopped", "why")]),
        RoomyTable(table, then=[Sentences(["then"])], otherwise=[Sentences(["otherwise"])]),
        Quotes([("prompt", "How\nmany?")], remarks=["right: 1"]),
        Section("Latency", "1 s", [Sentences(["inside"])]),
    ]
    assert as_markdown(blocks).split("\n") == [
        *(r"### Is \*a\* better?", ""),
        *("**Yes.**", ""),
        *("- one", "- two", ""),
        *("Also:", "", "- three", ""),
        *("- **Failed** a gate", "- 1 of 2 passed", ""),
        *("- **stopped** why", ""),
        *(r"| A\|B | n |  |", "| --- | --- | --- |", r"| x\_y | 1/2 | up |", "", "2 more.", "", "- then", ""),
        *("- **prompt** How many?", "- right: 1", ""),
        *("### Latency 1 s", "", "- inside", ""),
    ]


def test_secrets_are_taken_out():
    shown = as_markdown([FactList([Fact("canary", "canary")])], lambda text: text.replace("canary", "x"))
    assert shown == "- **x** x\n"
