"""The table of a dry run."""

import pytest

from modelgauge.data.results import CallCounts
from modelgauge.documents.terminal import Style, as_text
from modelgauge.engine.planning import Plan
from modelgauge.reports.plans import plans_document


def render_plans(plans, style, redact=str):
    return as_text(plans_document(plans), style, redact)


def make_plan(paid=10, cached=2, judged=0, cost=None, **changes):
    facts = {"test_uid": "a_test", "sut_uid": "a_sut", "items": 12, "cost_usd": cost}
    calls = {"sut_calls": CallCounts(paid=paid, cached=cached), "annotator_calls": CallCounts(paid=judged)}
    return Plan(**{**facts, **calls, **changes})


def test_a_plan_without_annotators_and_prices_has_no_columns_for_them():
    lines = render_plans([make_plan()], Style()).split("\n")
    assert lines[0].split() == ["Test", "SUT", "items", "SUT", "calls", "cached"]
    assert lines[2].split() == ["a_test", "a_sut", "12", "10", "2"]
    assert lines[4] == "To pay: 10 calls; the cost is unknown."


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


@pytest.mark.parametrize(
    ("cost", "shown"),
    [
        (0.0, "$0.00"),
        (0.0994, "$0.099"),
        (0.1, "$0.10"),
        (0.00001234, "$1.2e-05"),
        (12345.678, "$12,345.68"),
        (None, "unknown"),
    ],
)
def test_a_price_has_cents_or_its_first_two_digits(cost, shown):
    lines = render_plans([make_plan(cost=cost), make_plan(cost=1.0)], Style(width=100)).split("\n")
    assert lines[2].split()[-1] == shown


def test_a_plan_that_sends_less_pays_less():
    shown = render_plans([make_plan(paid=1000, judged=500, unsent=300), make_plan(paid=1)], Style(width=100))
    assert "To pay: 1,201 calls; the cost is unknown." in shown


def test_prices_of_pairs_that_ask_nothing_have_no_column_and_lack_nothing():
    lines = render_plans([make_plan(paid=0, cost=0.5), make_plan(paid=1)], Style(width=100)).split("\n")
    assert "cost" not in lines[0]
    known = render_plans([make_plan(paid=0), make_plan(paid=1, cost=0.5)], Style(width=100))
    assert "To pay: 1 call; about $0.50.\nNothing was sent. Questions" in known


def test_numbers_are_aligned_on_the_right_and_long_reasons_are_cut():
    plans = [make_plan(paid=1), make_plan(paid=1000, failing=1, reasons=("r" * 600,))]
    lines = render_plans(plans, Style(width=600)).split("\n")
    assert lines[0].index("SUT calls") + len("SUT calls") == lines[3].index("1,000") + len("1,000")
    assert lines[2][lines[3].index("1,000") + 4] == "1"
    assert f"  {'r' * 497}..." in lines


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
