"""The first screen of a run with thresholds: does it pass, and if not, why."""

import re
from typing import ClassVar

import pytest

from modelgauge import PromptWithContext, TestItem, run_test
from modelgauge.data.results import Threshold
from modelgauge.reports import write_page
from modelgauge.reports.pages.item_columns import ItemColumn, reason_of, shown_columns
from modelgauge.testing import FakeSUT, FakeTest


class _Judged(FakeTest):
    thresholds: ClassVar = {
        "faith": Threshold(value=0.7),
        "harm": Threshold(value=0.5, higher_is_better=False),
    }


def _page(tmp_path, test):
    record = run_test(test, FakeSUT("app", _answer), data_dir=tmp_path)
    pieces = []
    write_page(record, pieces.append, data_dir=tmp_path)
    return "".join(pieces)


def _answer(prompt):
    if prompt.text == "5":
        raise ValueError("no answer")
    return prompt.text


def _items():
    return [TestItem([PromptWithContext(str(number))], id=f"q{number}") for number in range(6)]


def _measure(item):
    number = int(item.text)
    return {"faith": 0.2 if number < 2 else 0.9, "harm": 0.8 if number < 1 else 0.1}


def test_verdicts_come_first_and_lead_to_their_items(tmp_path):
    page = _page(tmp_path, _Judged("app", _items(), _measure))
    assert "3 of 5 items passed all thresholds. 1 could not be judged.</p>" in page
    assert 'aria-label="3 passed, 2 failed, 1 not judged"' in page
    links = dict(re.findall(r'<a href="#run=0&amp;([^"]*)"[^>]*>([^<]*)</a>', page))
    assert links["passed=no"] == "2 failed"
    assert links["passed=none"] == "1 not judged"
    assert [links["faith.passed=no"], links["harm.passed=no"]] == ["faith 2 of 5", "harm 1 of 5"]
    assert page.index("faith 2 of 5") < page.index("harm 1 of 5")
    assert "<b>Scores</b> faith 0.62" in page


def test_items_that_all_passed_have_no_list_of_failures(tmp_path):
    page = _page(tmp_path, _Judged("app", _items()[2:5], _measure))
    assert '<p class="verdict met">All items passed their thresholds.</p>' in page
    assert 'aria-label="3 passed"' in page
    assert "Failed most often" not in page


def test_runs_without_thresholds_keep_their_table_of_results(tmp_path):
    page = _page(tmp_path, FakeTest("plain", _items(), _measure))
    assert 'class="portions"' not in page
    assert "<b>Scores</b>" not in page


LIMITS = {"faith": Threshold(value=0.7), "harm": Threshold(value=0.5, higher_is_better=False)}
FAILED = {"faith": 0.2, "faith.passed": 0.0, "passed": 0.0}


@pytest.mark.parametrize(
    ("measured", "failure", "reason"),
    [
        ({"faith": 0.9, "faith.passed": 1.0, "passed": 1.0}, "", "passed"),
        (FAILED, "", "below 0.7: faith"),
        (FAILED | {"harm": 0.8, "harm.passed": 0.0}, "", "below 0.7: faith; above 0.5: harm"),
        ({"faith": 0.8, "faith.passed": 0.0, "passed": 0.0}, "", "failed: faith"),  # in one of its repeats
        ({"faith": 0.2, "faith.passed": 0.0}, "ValueError at SUT", "not judged: below 0.7: faith"),
        ({}, "ValueError at SUT", "not judged: ValueError at SUT"),
        ({}, "", "not judged"),
    ],
)
def test_reason_names_the_metrics_that_failed_and_their_thresholds(measured, failure, reason):
    assert reason_of(measured, LIMITS, failure) == reason


def test_columns_of_an_address_survive_any_name():
    columns = [ItemColumn(name, True, True) for name in ("a,b", "ü %", "plain")]
    assert shown_columns(columns, "a%2Cb,%C3%BC%20%25") == columns[:2]
    assert shown_columns(columns, "") == columns
    assert shown_columns(columns, ",") == []
