"""The page of a run with thresholds in a browser: verdicts, reasons, and the columns that people choose."""

import json
import re
from typing import ClassVar

import pytest

from modelgauge import PromptWithContext, TestItem
from modelgauge.data.results import Threshold
from modelgauge.evals import (
    ConversationalTestCase,
    Golden,
    LLMTestCase,
    ToolCall,
    Turn,
    evaluate,
    observe,
    update_current_span,
)
from modelgauge.metrics import ContainsMetric, Metric, Score
from modelgauge.reports import write_page
from modelgauge.testing import FakeSUT, FakeTest

HOSTILE = "</script><b>, &columns=x%2C"


class _App(FakeTest):
    thresholds: ClassVar = {name: Threshold(value=0.5) for name in ("faithfulness", "relevancy", HOSTILE)}


def _measure(item):
    number = int(item.text)
    scores = {"relevancy": 0.9, "faithfulness": 0.2 if number % 3 == 2 else 1.0}
    return scores | {HOSTILE: 0.3 if number % 6 == 5 else 0.8, "length": 1.0}


def _answer(prompt):
    if prompt.text == "4":
        raise ValueError("no answer")
    return prompt.text


@pytest.fixture
def address(report):
    items = [
        TestItem([PromptWithContext(str(number))], context={"sentence": f"A {number % 2}."}, id=f"q{number}")
        for number in range(12)
    ]
    return report((_App("app", items, _measure), FakeSUT("app", _answer)))


def _rows(page):
    rows = page.locator("tr[data-place]").all_inner_texts()
    return [[cell.strip() for cell in row.split("\t")] for row in rows]


def _heads(page):
    return page.locator(".items .table thead th").all_inner_texts()


def test_failed_items_come_first_with_the_reason_then_unjudged_ones(address, visit):
    page = visit(address)
    rows = _rows(page)
    assert [row[0] for row in rows[:6]] == ["3", "6", "9", "12", "5", "1"]
    assert rows[0][2] == "below 0.5: faithfulness"
    assert rows[1][2] == f"below 0.5: faithfulness, {HOSTILE}"
    assert rows[4][2].startswith("not judged: ValueError")
    assert rows[5][2] == "passed"
    unjudged = page.locator("tr[data-place='4'] td").nth(2)
    assert "missed" not in unjudged.get_attribute("class")
    page.locator("select[name=sort]").select_option("place")
    assert [row[0] for row in _rows(page)[:3]] == ["1", "2", "3"]


@pytest.mark.parametrize(("link", "count"), [("7 passed", 7), ("4 failed", 4), ("1 not judged", 1)])
def test_numbers_of_the_bar_lead_to_their_items(address, visit, link, count):
    page = visit(address)
    page.get_by_role("link", name=link).click()
    page.locator(f"output:text-is('{count} of 12')").wait_for()
    assert len(_rows(page)) == count


def test_items_follow_the_verdict_and_links_bring_them_into_sight(address, visit):
    page = visit(address, width=390)
    verdict, items = page.locator(".verdict"), page.locator(".items")
    details = page.locator(".facts").first
    tops = [each.bounding_box()["y"] for each in (verdict, items, details)]
    assert tops == sorted(tops)
    page.get_by_text("Scores").click()
    details.scroll_into_view_if_needed()
    page.get_by_text("How it was run").scroll_into_view_if_needed()
    assert not _is_in_sight(page, ".controls")
    page.evaluate("location.hash = 'run=0&passed=no'")
    page.locator("output:text-is('4 of 12')").wait_for()
    assert _is_in_sight(page, ".controls")


def _is_in_sight(page, query):
    box = page.locator(query).bounding_box()
    return -1 <= box["y"] <= page.viewport_size["height"] / 2


def test_metric_that_failed_most_leads_to_its_items_and_opens_its_filter(address, visit):
    page = visit(address)
    assert page.locator("select[name='faithfulness.passed']").is_hidden()
    page.get_by_role("link", name="faithfulness 4 of 11").click()
    page.locator("output:text-is('4 of 12')").wait_for()
    assert page.locator("select[name='faithfulness.passed']").input_value() == "no"
    assert page.locator("select[name='faithfulness.passed']").is_visible()


def test_chosen_columns_are_kept_in_the_address(address, visit):
    page = visit(address)
    assert _heads(page) == ["#", "question", "result", "faithfulness", HOSTILE, "relevancy", "length"]
    page.get_by_text("columns", exact=True).click()
    page.get_by_label("relevancy", exact=True).uncheck()
    page.get_by_label("answer", exact=True).check()
    chosen = ["#", "question", "result", "answer", "faithfulness", HOSTILE, "length"]
    assert _heads(page) == chosen
    assert _heads(visit(page.url)) == chosen
    page.locator("tr[data-place]").first.click()
    page.locator(".item h2").wait_for()
    page.keyboard.press("Escape")
    assert _heads(page) == chosen
    for box in page.locator("input[type=checkbox]:checked").all()[::-1]:
        box.uncheck()
    assert _heads(visit(page.url)) == ["#", "question", "result"]


MARKDOWN = """You get a **full** refund within 60 days:

1. Send `them` back
2. Wait

| day | what |
|---|---|
| 1 | <img src=x onerror=alert(1)> |

[here](javascript:steal) ![seen](https://tracker.example/x.png) [ok](https://shop.example)
```
<script>alert(3)</script>
```"""


class _Judged(Metric):
    def score(self, case):
        return Score(0.2, f"**60** days are in no text. {HOSTILE}", breakdown={"claims": 2}, cost=0.0004)


class Faithfulness(_Judged):
    pass


class OneText(Metric):
    required_params = ("retrieval_context",)

    def score(self, case):
        return Score(len(case.retrieval_context) <= 1, "2 texts")


@observe(type="retriever", metrics=[OneText(threshold=1)])
def retrieve(question):
    update_current_span(retrieval_context=["one", "two"], output="two texts")
    return ["one", "two"]


@observe(type="agent")
def shop(question):
    retrieve(question)
    return "You get it."


@pytest.fixture
def open_case(tmp_path, visit):
    """Open the only item of an evaluation in its report."""

    def of(*cases, metrics=None, **options):
        options.setdefault("data_dir", tmp_path)
        result = evaluate(*cases, metrics, print_results=False, **options)
        write_page(result.run_id, tmp_path / "case.html", data_dir=tmp_path)
        page = visit(f"{(tmp_path / 'case.html').as_uri()}#run=0&item=refund")
        page.locator(".item h2").wait_for()
        return page

    return of


@pytest.fixture
def case():
    return LLMTestCase(
        input="Do they fit?",
        actual_output="You get a full refund within 60 days.",
        expected_output="You get a full refund within 30 days.",
        name="refund",
        retrieval_context=["All customers have 30 days.", HOSTILE],
        tools_called=[ToolCall(name="search", input_parameters={"query": "refund"})],
        expected_tools=[ToolCall(name="search"), ToolCall(name="lookup_order")],
        completion_time=0.000009818,
        metadata={"topic": HOSTILE, "draft": None},
    )


def test_case_has_its_fields_by_name_and_differences_marked(case, open_case, check_all_looks):
    page = open_case([case], metrics=[ContainsMetric()])
    item = page.locator(".item")
    assert item.locator("del").all_inner_texts() == ["60"]
    assert item.locator("ins").all_inner_texts() == ["30"]
    shown = item.inner_text()
    assert 'search(query="refund")' in shown
    assert "not called: lookup_order" in shown
    assert "under 1 ms" in shown
    assert item.locator(".texts li").all_inner_texts() == ["All customers have 30 days.", HOSTILE]
    assert HOSTILE in shown
    for raw in ("null", "9.818", "which the SUT does not see", "passed = "):
        assert raw not in shown
    check_all_looks(page)


def test_item_reads_like_a_verdict(case, open_case):
    page = open_case([case], metrics=[ContainsMetric(), Faithfulness(threshold=0.7)])
    assert page.locator(".item .verdict").inner_text() == "below 1: ContainsMetric; below 0.7: Faithfulness"
    rows = [row.split("\t") for row in page.locator(".metrics tbody tr").all_inner_texts()]
    name, score, threshold, verdict, reason, cost = [cell.strip() for cell in rows[1]]
    assert [name, score, threshold, verdict, cost] == ["Faithfulness", "0.2", "≥ 0.7", "failed", "$0.0004"]
    assert reason.startswith("**60** days are in no text.")
    page.keyboard.press("r")
    record = json.loads(page.locator(".item pre.text:visible").inner_text())
    assert record["measurements"]["Faithfulness"] == 0.2
    page.keyboard.press("r")
    assert page.locator(".metrics").is_visible()


def test_markdown_on_request_is_never_markup(case, open_case):
    page = open_case([case.replaced(actual_output=MARKDOWN)], metrics=[Faithfulness(threshold=0.7)])
    assert page.locator(".markdown").count() == 0
    page.keyboard.press("m")
    answer = page.locator(".side .markdown").first
    assert answer.locator("strong").inner_text() == "full"
    assert answer.locator("ol > li").all_inner_texts() == ["Send them back", "Wait"]
    assert answer.locator("td").all_inner_texts() == ["1", "<img src=x onerror=alert(1)>"]
    assert answer.locator("pre").inner_text() == "<script>alert(3)</script>"
    assert "here (javascript:steal) seen (https://tracker.example/x.png)" in answer.inner_text()
    assert page.locator(".markdown :is(a, img, script)").count() == 0
    page.keyboard.press("m")
    assert page.locator(".item .answer").first.inner_text() == MARKDOWN


def test_components_are_a_tree_with_times_and_their_metrics(open_case):
    golden = Golden(input="What fits?", expected_output="You get it.", name="refund")
    page = open_case(goldens=[golden], observed_callback=shop)
    spans = page.locator(".spans li")
    assert spans.nth(0).inner_text().startswith("shop (agent) · ")
    assert re.fullmatch(
        r"retrieve \(retriever\) · (under )?\d+ ms · OneText 0 failed", spans.nth(1).inner_text()
    )
    indents = [
        span.evaluate("each => parseFloat(getComputedStyle(each).paddingLeft)") for span in spans.all()
    ]
    assert indents[0] < indents[1]
    page.get_by_text("Component retrieve").click()
    assert page.locator(".texts li").all_inner_texts() == ["one", "two"]


class Tact(Metric):
    test_case_type = ConversationalTestCase

    def score(self, case):
        return Score(0.5, "One of two turns has tact.")


def test_conversation_is_a_chat_with_what_each_turn_found(open_case):
    turns = [
        Turn("user", "Hello"),
        Turn("assistant", "Hi", retrieval_context=["a fact"], tools_called=[ToolCall(name="greet")]),
        Turn("user", "A refund?"),
        Turn("assistant", "No."),
    ]
    talk = ConversationalTestCase(turns=turns, scenario="shoes", expected_outcome="money", name="refund")
    page = open_case([talk], metrics=[Tact(threshold=0.7)])
    assert page.locator(".turn").all_inner_texts() == ["user\nHello", "assistant\nHi", "user\nA refund?"]
    headed = page.locator(".item section:has(> h3)")
    shown = dict(text.split("\n", 1) for text in headed.all_inner_texts())
    assert shown["Answer"].strip() == "No."
    assert shown["Expected outcome"].strip() == "money"
    assert shown["Retrieved in turn 2"].strip() == "a fact"
    assert shown["Tools in turn 2"].split() == ["called", "greet()"]
    assert shown["Metadata"].split() == ["scenario", "shoes"]


def test_app_page_fits_and_axe_finds_nothing(address, visit, check_all_looks):
    page = visit(address)
    page.get_by_text("columns", exact=True).click()
    page.get_by_text("more filters").click()
    check_all_looks(page)
