"""The table of a dry run."""

import pytest

from modelgauge.data.records import CallCounts
from modelgauge.engine.planning import Plan
from modelgauge.report.page import Style
from modelgauge.report.plans import render_plans


def make_plan(paid=10, cached=2, judged=0, cost=None, **changes):
    facts = {"test_uid": "a_test", "sut_uid": "a_sut", "items": 12, "cost_usd": cost}
    calls = {"sut_calls": CallCounts(paid=paid, cached=cached), "annotator_calls": CallCounts(paid=judged)}
    return Plan(**{**facts, **calls, **changes})


def test_a_plan_without_annotators_and_prices_has_no_columns_for_them():
    lines = render_plans([make_plan()], Style()).split("\n")
    assert lines[0].split() == ["Test", "SUT", "items", "SUT", "calls", "cached"]
    assert lines[2].split() == ["a_test", "a_sut", "12", "10", "2"]
    assert lines[4] == "To pay: 10 calls; what they cost is not known."


def test_calls_and_costs_are_summed_up():
    plans = [make_plan(judged=10, cost=0.5), make_plan(paid=1000, judged=3, cost=1234.5, sut_uid="dear")]
    lines = render_plans(plans, Style(width=100)).split("\n")
    assert lines[2].split() == ["a_test", "a_sut", "12", "10", "2", "10", "0", "$0.50"]
    assert lines[3].split() == ["a_test", "dear", "12", "1,000", "2", "3", "0", "$1,234.50"]
    assert lines[5] == "To pay: 1,023 calls; about $1,235.00."


def test_a_sum_that_lacks_prices_says_so():
    shown = render_plans([make_plan(cost=0.012), make_plan(sut_uid="other")], Style())
    assert "unknown" in shown
    assert "about $0.012 and what SUTs without known prices ask." in shown


@pytest.mark.parametrize("cost", [None, 0.0])
def test_what_is_all_cached_costs_nothing(cost):
    assert "To pay: 0 calls." in render_plans([make_plan(paid=0, cost=cost)], Style())


def test_items_that_will_fail_are_told_with_the_reason():
    plans = [make_plan(), make_plan(failing=2, reasons=("'a_sut': ValueError: two\nlines",))]
    lines = render_plans(plans, Style()).split("\n")
    told = lines.index("2 items of a_test on a_sut will fail:")
    assert lines[told + 1] == "  'a_sut': ValueError: two lines"
    assert sum("will fail" in line for line in lines) == 1


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_line_is_longer_than_the_terminal(width):
    plan = make_plan(judged=1_000_000, cost=2.0, sut_uid="acme/model?" + "x" * 100)
    assert max(map(len, render_plans([plan], Style(width=width)).split("\n"))) <= width


def test_control_characters_and_secrets_are_not_shown():
    shown = render_plans(
        [make_plan(sut_uid="\x1bsut?key=abc")], Style(), lambda text: text.replace("abc", "***")
    )
    assert "\x1b" not in shown
    assert "***" in shown
