"""What is found out before an app is used, which goldens it is used for, and what is told of a run that stopped."""

import errno

import pytest

from modelgauge import FunctionSUT
from modelgauge.errors import (
    CallError,
    DefinitionError,
    InvalidDataError,
    InvalidOptionError,
    MissingParameterError,
    RunStoppedError,
    UnknownNameError,
    UsageError,
)
from modelgauge.evals import (
    EvaluationDataset,
    Golden,
    LLMTestCase,
    assert_test,
    evaluate,
    observe,
    update_current_span,
    update_current_trace,
)
from modelgauge.metrics import ExactMatchMetric, GEval

pytestmark = pytest.mark.usefixtures("here")

EXACT = ExactMatchMetric()
GOLDENS = [Golden(f"q{number}", expected_output=f"q{number}") for number in range(10)]
CASES = [golden.to_test_case(golden.input) for golden in GOLDENS]
BARE = Golden("bare")


class App:
    """Counts its uses; `observed` is one of its functions, decorated."""

    def __init__(self):
        self.asked = []

    def observed(self, *, metrics=()):
        @observe(metrics=list(metrics))
        def app(question):
            self.asked.append(question)
            return question

        return app


def refusals(app, golden=GOLDENS[0], **given):
    """The errors of both ways to use an app."""
    yield lambda: evaluate(goldens=[golden] * 3, observed_callback=app, print_results=False, **given)
    if not given:
        yield lambda: assert_test(golden=golden, observed_callback=app)


@pytest.mark.parametrize(
    ("of_app", "given", "golden", "error", "told"),
    [
        (["faithfulness"], {}, GOLDENS[0], UsageError, "FaithfulnessMetric needs a judge"),
        ([GEval("Kind", "be kind", model="no/such")], {}, GOLDENS[0], UnknownNameError, "no/such"),
        (["no_such"], {}, GOLDENS[0], UnknownNameError, "no_such"),
        ([], {"metrics": [GEval("Kind", "be kind")]}, GOLDENS[0], UsageError, "Kind needs a judge"),
        ([ExactMatchMetric], {}, GOLDENS[0], InvalidDataError, "class ExactMatchMetric"),
    ],
)
def test_what_can_be_known_is_refused_before_the_app_is_used(of_app, given, golden, error, told):
    app = App()
    for refused in refusals(app.observed(metrics=of_app), golden, **given):
        with pytest.raises(error, match=told):
            refused()
    assert app.asked == []


def test_where_nobody_names_a_metric_the_app_is_used_once_before_the_default_judge_is_missed():
    app = App()
    for refused in refusals(app.observed()):
        with pytest.raises(UsageError, match="AnswerRelevancyMetric needs a judge"):
            refused()
        assert len(app.asked) == 1
        app.asked.clear()


@pytest.mark.parametrize(("of_app", "given"), [([EXACT], {}), ([], {"metrics": [EXACT]})])
def test_a_golden_that_lacks_a_reference_fails_alone_since_the_app_might_have_said_it(of_app, given):
    app = App()
    with pytest.raises(CallError, match=r"1 of 3 test cases.*needs 'expected_output'.*bare"):
        evaluate(
            goldens=[GOLDENS[0], BARE, GOLDENS[1]],
            observed_callback=app.observed(metrics=of_app),
            print_results=False,
            **given,
        )
    assert sorted(app.asked) == ["bare", "q0", "q1"]


def test_a_golden_that_was_edited_into_none_is_refused_before_the_app_is_used():
    app, golden = App(), Golden("q", expected_output="q", context=[])
    golden.context.append(5)
    for refused in refusals(app.observed(metrics=[EXACT]), golden):
        with pytest.raises(InvalidDataError, match=r"context\.0"):
            refused()
    assert app.asked == []


def test_what_the_app_may_still_say_is_not_refused():
    @observe(metrics=[EXACT])
    def saying(question):
        update_current_trace(expected_output=question)
        return question

    def by_a_helper(question):
        update_current_span(expected_output=question)

    @observe(metrics=[EXACT])
    def saying_elsewhere(question):
        by_a_helper(question)
        return question

    for app in (saying, saying_elsewhere):
        assert evaluate(goldens=[BARE], observed_callback=app, print_results=False).success


class Agent:
    @observe(metrics=[EXACT])
    def step(self, question):
        update_current_span(expected_output=question)
        return question


class Pipeline:
    """The most usual form of an app: parts that methods reach over attributes."""

    def __init__(self):
        self.agent = Agent()

    def __call__(self, question):
        return self._answer(question)

    def _answer(self, question):
        return self.agent.step(question)


TOOLS = {"one": Agent()}
PIPELINE = Pipeline()


def made():
    return Agent()


def test_the_default_judge_is_not_asked_for_where_parts_have_metrics():
    agent = Agent()

    @observe
    def by_closure(question):
        return agent.step(question)

    @observe
    def by_function(question):
        local = made()
        return local.step(question)

    @observe
    def by_name(question):
        return TOOLS["one"].step(question)

    @observe
    def by_attributes(question):
        return PIPELINE(question)

    by_object = observe(Pipeline())

    for app in (by_closure, by_function, by_name, by_attributes, by_object):
        result = evaluate(goldens=GOLDENS[:1], observed_callback=app, print_results=False)
        assert [metric.component for metric in result.test_results[0].metrics_data] == ["step"]


@pytest.mark.parametrize("misspelt", ["metric", "typ", "names"])
def test_a_misspelt_argument_of_observe_is_not_taken_for_something_to_keep(misspelt):
    with pytest.raises(DefinitionError, match=f"@observe got '{misspelt}'"):
        observe(**{misspelt: [EXACT]})
    assert callable(observe(model="m", embedder="e", top_k=3, time=1))


def test_a_class_of_metrics_is_told_what_it_is():
    with pytest.raises(InvalidDataError, match="the class ExactMatchMetric"):
        evaluate(CASES, ExactMatchMetric)


# --- what an app does not answer --------------------------------------------------------------------------


def test_an_app_that_returns_none_fails_its_golden_alone_and_is_named():
    @observe(metrics=[EXACT])
    def app(question):
        return None if question == "q1" else question

    result = evaluate(goldens=GOLDENS[:3], observed_callback=app, print_results=False, ignore_errors=True)
    assert [one.success for one in result] == [True, False, True]
    assert (
        "ExactMatchMetric needs 'actual_output', and the app returned None for 'q1'."
        in result.test_results[1].error
    )
    with pytest.raises(
        CallError, match=r"1 of 3 test cases could not be judged. The first, 'q1': .*returned None"
    ):
        evaluate(goldens=GOLDENS[:3], observed_callback=app, print_results=False)
    with pytest.raises(CallError, match="the app returned None for 'q1'"):
        assert_test(golden=GOLDENS[1], observed_callback=app)
    with pytest.raises(
        MissingParameterError, match=r"Make the case with it: LLMTestCase\(…, actual_output=…\)"
    ):
        assert_test(LLMTestCase("q", expected_output="q"), [EXACT])


# --- names ------------------------------------------------------------------------------------------------


def test_a_case_has_one_name_everywhere(broken, capsys):
    cases = [LLMTestCase("What is it?", "a"), LLMTestCase("q", "a", name="named")]
    with pytest.raises(CallError, match=r"The first, 'What is it\?': "):
        evaluate(cases, broken())
    assert "What is it?" in capsys.readouterr().out
    result = evaluate(cases, broken(), ignore_errors=True, print_results=False)
    assert [one.name for one in result] == ["What is it?", "named"]
    assert [one.item_id for one in result] == [
        failure.test_item.id for failure in result.record.test_item_exceptions
    ]


# --- a part of the cases, and calls that are capped ---------------------------------------------------------


def test_some_are_chosen_and_the_result_says_so(capsys):
    result = evaluate(CASES, EXACT, max_test_items=3)
    assert (len(result), result.left_out, result.record.counts.items) == (3, 7, 3)
    assert "Note: 7 test cases were left out by max_test_items." in capsys.readouterr().out
    more = evaluate(CASES, EXACT, max_test_items=6, print_results=False)
    assert {one.name for one in result} < {one.name for one in more}
    assert evaluate(CASES, EXACT, max_test_items=20, print_results=False).left_out == 0
    with pytest.raises(InvalidOptionError, match="max_test_items is 0"):
        evaluate(CASES, EXACT, max_test_items=0)


def test_the_app_is_used_for_the_chosen_alone():
    app = App()
    dataset = EvaluationDataset(GOLDENS)
    observed = app.observed(metrics=[EXACT])
    result = evaluate(goldens=dataset, observed_callback=observed, max_test_items=3, print_results=False)
    assert sorted(app.asked) == [one.name for one in result]
    assert (len(result), result.left_out) == (3, 7)
    of_cases = evaluate(CASES, EXACT, max_test_items=3, print_results=False)
    assert [one.name for one in of_cases] == [one.name for one in result]


@pytest.mark.parametrize(("version", "kept"), [(1, "is in the cache"), (None, "is paid again")])
def test_a_cap_is_told_with_what_goes_on_from_there(version, kept):
    judge = FunctionSUT("judge", lambda question: '{"score": 9, "reason": "fine"}', version=version)
    grade = GEval("Grade", evaluation_steps=["Look."], model=judge)
    with pytest.raises(RunStoppedError) as stopped:
        evaluate(CASES, grade, max_calls=1, print_results=False)
    told = str(stopped.value)
    assert "The cap of 1 call is reached. Raise max_calls. Then evaluate again" in told
    assert kept in told
    assert "modelgauge resume" not in told


def test_a_judge_that_cannot_be_reached_is_told_with_what_goes_on_from_there():
    def judge(question):
        raise ConnectionRefusedError(errno.ECONNREFUSED, "Nobody is there")

    grade = GEval("Grade", evaluation_steps=["Look."], model=FunctionSUT("judge", judge, version=1))
    with pytest.raises(RunStoppedError) as stopped:
        evaluate(CASES, grade, call_timeout=1, print_results=False)
    assert "; or start the server. Then evaluate again, since" in str(stopped.value)
