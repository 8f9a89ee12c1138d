"""The page of a run with thresholds in a browser: verdicts, reasons, and the columns that people choose."""

from typing import ClassVar

import pytest

from modelgauge import PromptWithContext, TestItem
from modelgauge.data.results import Threshold
from modelgauge.evals import LLMTestCase, ToolCall, evaluate
from modelgauge.metrics import ContainsMetric
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
    return page.locator(".items thead th").all_inner_texts()


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


@pytest.fixture
def case_address(tmp_path):
    case = LLMTestCase(
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
    metric = ContainsMetric()
    result = evaluate([case], [metric], data_dir=tmp_path, print_results=False)
    write_page(result.run_id, tmp_path / "case.html", data_dir=tmp_path)
    return f"{(tmp_path / 'case.html').as_uri()}#run=0&item=refund"


def test_case_has_its_fields_by_name_and_differences_marked(case_address, visit, check_all_looks):
    page = visit(case_address)
    item = page.locator(".item")
    item.locator("h2").wait_for()
    assert item.locator("del").all_inner_texts() == ["60"]
    assert item.locator("ins").all_inner_texts() == ["30"]
    shown = item.inner_text()
    assert 'search(query="refund")' in shown
    assert "not called: lookup_order" in shown
    assert "under 1 ms" in shown
    assert "All customers have 30 days." in shown
    assert HOSTILE in shown
    for raw in ("null", "9.818", "which the SUT does not see", "passed = "):
        assert raw not in shown
    check_all_looks(page)


def test_app_page_fits_and_axe_finds_nothing(address, visit, check_all_looks):
    page = visit(address)
    page.get_by_text("columns", exact=True).click()
    page.get_by_text("more filters").click()
    check_all_looks(page)
