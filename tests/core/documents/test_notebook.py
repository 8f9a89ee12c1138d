"""What notebooks show of records, results, comparisons, evaluations and data sets."""

from html.parser import HTMLParser

import pytest
from IPython.core.formatters import DisplayFormatter

from modelgauge import TestItem, compare, run_test
from modelgauge.documents.document import (
    Charts,
    Conclusion,
    Fact,
    FactList,
    Heading,
    Histogram,
    Quotes,
    RoomyTable,
    Section,
    Sentences,
    TableBlock,
    TableColumn,
    Troubles,
)
from modelgauge.documents.notebook import as_notebook
from modelgauge.evals import EvaluationDataset, Golden, LLMTestCase, evaluate
from modelgauge.metrics import ContainsMetric, ExactMatchMetric
from modelgauge.testing import FakeSUT, FakeTest

HOSTILE = "<script>alert(1)</script> $5 & \u202e"


class _Reader(HTMLParser):
    """Reads the texts of cells and paragraphs, and which tags there are."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.cells, self.open = set(), [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.cells.append(data)


def _shown(value):
    """The plain text and the HTML that a notebook shows of a value."""
    data, _ = DisplayFormatter().format(value)
    read = _Reader(data["text/html"])
    assert read.open == []
    assert read.tags <= {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td"}
    assert "color" not in data["text/html"]
    assert len(data["text/plain"]) < 400
    return data["text/plain"], read.cells


def _answer(prompt):
    if prompt.text == "fails":
        raise ValueError(HOSTILE)
    return prompt.text


@pytest.fixture
def record(tmp_path):
    items = [TestItem(text, id=text) for text in ("yes", "no", "fails")]
    test = FakeTest(HOSTILE, items, lambda item: {"good": item.text == "yes"})
    return run_test(test, FakeSUT("sut", _answer), data_dir=tmp_path)


def test_a_record_shows_its_results_and_says_how_many_items_failed(record):
    text, cells = _shown(record)
    assert text.startswith(f"<TestRecord {record.run_id}: <script>")
    assert text.endswith(" on sut, 2 of 3 items scored, 1 failed, good 0.50 ± 0.50>")
    assert cells[0] == "<script>alert(1)</script> $5 & \\u202e on sut"
    assert cells[1:9] == [
        "Result",
        "value ± std err",
        "95 % interval",
        "n",
        "good",
        "0.50 ± 0.50",
        "0.09 to 0.91",
        "2",
    ]
    assert cells[9:] == ["2 of 3 items scored, 1 failed.", f"Run {record.run_id}"]


def test_records_of_items_are_short(record):
    scored, failed = record.test_item_records[0], record.test_item_exceptions[0]
    assert repr(scored) == f"{scored}" == "<TestItemRecord 0: yes, good = 1>"
    assert str(record) == repr(record)
    assert str(failed) == repr(failed)
    assert repr(failed).startswith("<TestItemExceptionRecord 2: fails, failed at sut: ValueError: <script>")
    long = failed.replaced(message="word " * 1000)
    assert len(repr(long)) < 300


def test_results_show_their_groups(record):
    many = {f"g{place}": record.result["good"] for place in range(30)}
    grouped = record.replaced(result={"by group": many, "n": 2})
    _, cells = _shown(grouped)
    assert cells[5:7] == ["by group", "· g0"]
    assert "· ... 10 more" in cells
    _, cells = _shown(record.result)
    assert cells[0] == "Results"
    assert "0.50 ± 0.50" in cells


def test_a_stopped_run_says_why(record):
    why = {"stage": "run", "error_type": "RunStoppedError", "message": "the cap"}
    stopped = type(record).model_validate({**record.model_dump(), "failure": why})
    assert "It stopped early: RunStoppedError: the cap" in _shown(stopped)[1]


def test_a_comparison_shows_its_verdicts(record, tmp_path):
    test = FakeTest(
        HOSTILE, [TestItem(text, id=text) for text in ("yes", "no", "fails")], lambda item: {"good": True}
    )
    other = run_test(test, FakeSUT("other"), data_dir=tmp_path)
    found = compare(record, other)
    text, cells = _shown(found)
    assert text.startswith("<Comparison of other with sut: <script>")
    assert cells[0] == "other against sut"
    assert found.comparisons[0].verdict_text in cells


def test_an_evaluation_shows_what_did_not_pass_and_why(tmp_path):
    cases = [
        LLMTestCase(input=f"{HOSTILE} {place}", actual_output="x", expected_output="y") for place in range(12)
    ]
    cases.append(LLMTestCase(input="good", actual_output="z", expected_output="z"))
    result = evaluate(cases, [ExactMatchMetric(), ContainsMetric()], data_dir=tmp_path)
    _, cells = _shown(result)
    assert cells[0] == "1 of 13 test cases passed"
    assert "ExactMatchMetric" in cells
    assert "<script>alert(1)</script> $5 & \\u202e 0" in cells
    assert sum("Not in the output" in cell for cell in cells) == 10
    assert "2 more" in cells
    passed = evaluate(cases[-1:], [ExactMatchMetric()], data_dir=tmp_path)
    assert "Not passed" not in _shown(passed)[1]


def test_a_data_set_shows_its_first_members():
    goldens = [Golden(input=f"{HOSTILE} {place}", context=["a"]) for place in range(12)]
    _, cells = _shown(EvaluationDataset(goldens, name="n"))
    assert cells[:5] == [
        "EvaluationDataset 'n': 12 goldens, 0 test cases",
        "input",
        "context",
        cells[3],
        '["a"]',
    ]
    assert cells[-1] == "2 more"
    assert _shown(EvaluationDataset())[1] == ["EvaluationDataset 0 goldens, 0 test cases"]


def test_long_cells_are_cut_and_mathematics_is_left_alone():
    html = as_notebook([TableBlock([TableColumn("a", ["word " * 1000, ""])])])
    assert len(html) < 1000
    assert "mathjax_ignore" in html


def test_every_block_is_shown_but_for_charts():
    table = TableBlock([TableColumn("a", ["b", "  c"])], caption="caption", note="note")
    blocks = [
        Conclusion("conclusion"),
        Sentences(["sentence"], title="title"),
        FactList([Fact("label", "fact"), Fact("", "more")]),
        Troubles("Troubles", [Fact("1", "trouble")]),
        Quotes([("who", HOSTILE)], remarks=["remark"]),
        RoomyTable(table, then=[Sentences(["then"])], otherwise=[Sentences(["otherwise"])]),
        Section("section", "summary", [Charts([("chart", Histogram([1.0]))]), Heading("inside")]),
    ]
    read = _Reader(as_notebook(blocks))
    assert "".join(read.cells).replace("<script>alert(1)</script> $5 & \\u202e", "hostile") == (
        "conclusiontitle: sentencelabel factmore1 troublewho hostileremarkcaptionab· cnotethensection summaryinside"
    )
    assert "script" not in read.tags
