"""What an app says of its spans: what no record could hold is refused where it is said, or shown as it is."""

import math

import pytest

from modelgauge import load_record
from modelgauge.errors import CallError, DefinitionError, InvalidDataError, InvalidOptionError, UsageError
from modelgauge.evals import (
    Golden,
    assert_test,
    collect_traces,
    evaluate,
    observe,
    update_current_span,
    update_current_trace,
)
from modelgauge.metrics import ExactMatchMetric, GEval, Metric

LONE = "\ud800"


class Yes(Metric):
    def score(self, test_case):
        return 1.0


def spoken(update, given, *, metrics=()):
    """An app that says something of itself."""

    @observe(metrics=list(metrics))
    def app(question):
        update(**given)
        return question

    return app


@pytest.mark.parametrize(
    ("update", "given", "fix"),
    [
        (update_current_span, {"name": 3}, r"Give a text: name=str\(…\)"),
        (update_current_span, {"tags": "beta"}, r'tags=\["beta"\]'),
        (update_current_span, {"tags": [1]}, r'tags=\["beta"\]'),
        (update_current_span, {"tags": 5}, r'tags=\["beta"\]'),
        (update_current_span, {"metadata": "text"}, "Give a dict"),
        (update_current_span, {"metrics": "exact_match"}, "Give a list"),
        (update_current_span, {"metrics": ExactMatchMetric()}, "Give a list"),
        (update_current_trace, {"user_id": 7}, r"Give a text: user_id=str\(…\)"),
        (update_current_trace, {"thread_id": ["a"]}, "Give a text"),
        (update_current_trace, {"tags": [1]}, "Give a list of texts"),
        (update_current_trace, {"metadata": ["a"]}, "Give a dict"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_where_it_is_said(update, given, fix):
    with collect_traces(), pytest.raises(InvalidDataError, match=fix):
        spoken(update, given)("q")


def test_one_golden_whose_use_says_something_wrong_fails_alone(here):
    @observe(metrics=[Yes()])
    def app(question):
        update_current_trace(user_id=7 if question == "1" else "seven")
        return question

    result = evaluate(
        goldens=[Golden("0"), Golden("1"), Golden("2")], observed_callback=app, ignore_errors=True
    )
    assert [one.success for one in result] == [True, False, True]
    assert "user_id is 7" in result.test_results[1].error


@pytest.mark.parametrize(
    ("update", "misspelt", "meant"),
    [
        (update_current_span, "outptu", "output"),
        (update_current_span, "metricss", "metrics"),
        (update_current_trace, "userid", "user_id"),
    ],
)
def test_a_misspelt_argument_is_compared_with_all(update, misspelt, meant):
    with pytest.raises(InvalidOptionError, match=f"Did you mean '{meant}'"):
        update(**{misspelt: "x"})


def test_what_one_value_cannot_be_does_not_hide_the_others(here):
    @observe(model="m", temperature=math.nan)
    def part(question, limit):
        update_current_span(metadata={"score": math.inf, "hits": 3, 7: "seven"})

    @observe(metrics=[Yes()])
    def app(question):
        part(question, math.nan)
        return question

    result = evaluate(goldens=[Golden("q")], observed_callback=app)
    span = result.test_results[0].spans[1]
    assert span.input == {"question": "q", "limit": "nan"}
    assert span.metadata == {"model": "m", "temperature": "nan", "score": "inf", "hits": 3, "7": "seven"}


def test_a_text_that_utf8_cannot_hold_is_shown_as_it_is_written(here):
    @observe(name=f"part {LONE}", type=LONE)
    def part():
        update_current_span(tags=[LONE, "b"], metadata={LONE: LONE})

    @observe(metrics=[Yes()])
    def app(question):
        part()
        update_current_span(name=LONE)
        update_current_trace(tags=[LONE], thread_id=LONE)
        return question

    assert_test(golden=Golden("q"), observed_callback=app)
    (run,) = (here / "run_data" / "runs").iterdir()
    spans = load_record(run).test_item_records[0].spans
    assert [span.name for span in spans] == [r"'\ud800'", r"'part \ud800'"]
    assert spans[1].tags == (r"'\ud800'", "b")


def test_a_type_by_position_is_refused_with_how_to_give_it():
    with pytest.raises(DefinitionError, match=r"@observe\(type='llm'\)"):
        observe("llm")


@pytest.mark.parametrize("max_concurrent", [1, 2])
@pytest.mark.parametrize(
    ("metric", "error", "told"),
    [
        ("no_such", UsageError, "no_such"),
        (ExactMatchMetric, InvalidDataError, "class ExactMatchMetric"),
        (GEval("Kind", "be kind"), UsageError, "Kind needs a judge"),
    ],
)
def test_a_metric_of_a_part_that_can_judge_nothing_ends_the_use_of_the_app(
    metric, error, told, max_concurrent, here
):
    asked = []

    @observe(metrics=[metric])
    def part(question):
        return question

    @observe
    def app(question):
        asked.append(question)
        return part(question)

    goldens = [Golden(f"q{number}") for number in range(50)]
    with pytest.raises(error, match=told):
        evaluate(goldens=goldens, observed_callback=app, metrics=[Yes()], max_concurrent=max_concurrent)
    assert len(asked) <= 2 * max_concurrent


def test_a_part_whose_metric_lacks_something_fails_its_golden_alone(here):
    app = spoken(update_current_span, {"metrics": [ExactMatchMetric()]}, metrics=[Yes()])
    with pytest.raises(CallError, match=r"1 of 2 test cases could not be judged.*expected_output"):
        evaluate(goldens=[Golden("a", expected_output="a"), Golden("b")], observed_callback=app)
