"""What is told of goldens that cannot be judged: each error says what its reader can do about it."""

import re

import pytest
from click.testing import CliRunner

from modelgauge import FunctionSUT, PromptResponseTest, TestItem, run_test
from modelgauge.cli.main import cli
from modelgauge.errors import CallError, InvalidDataError, MissingParameterError
from modelgauge.evals import (
    ConversationalGolden,
    ConversationalTestCase,
    DatasetTest,
    Golden,
    LLMTestCase,
    Turn,
    assert_test,
    evaluate,
    observe,
    update_current_span,
    update_current_trace,
)
from modelgauge.metrics import (
    ContextualRelevancyMetric,
    ExactMatchMetric,
    RoleAdherenceMetric,
    ToolCorrectnessMetric,
)

pytestmark = pytest.mark.usefixtures("here")

EXACT, TOOLS = ExactMatchMetric(), ToolCorrectnessMetric()
ROLES = RoleAdherenceMetric(model=lambda question: "no judge")
CONTEXT = ContextualRelevancyMetric(model=lambda question: "no judge")
GOLDEN = Golden("q")
DIALOGUE = ConversationalGolden("s")


def app_with(metric, returned="a"):
    return observe(metrics=[metric])(lambda question: returned)


def app_with_part(metric, returned="a"):
    part = observe(metrics=[metric], name="look_up")(lambda text: returned)
    return observe(name="app")(lambda question: (part(question), "a")[1])


def giving_its_case(metric):
    @observe(metrics=[metric])
    def app(question):
        update_current_trace(test_case=LLMTestCase("q", "a"))

    return app


@pytest.mark.parametrize(
    ("app", "told"),
    [
        (
            app_with(EXACT),
            (
                "needs 'expected_output', which the golden 'q' does not have and the app did not say. Make the golden "
                "with it: Golden(…, expected_output=…); or let the app say it: "
                "update_current_trace(expected_output=…), or in the test case that it gives."
            ),
        ),
        (
            giving_its_case(EXACT),
            "or in the test case that it gives.",
        ),
        (
            app_with(CONTEXT),
            (
                "needs 'retrieval_context', which the app did not say of 'q'. Let it say so: "
                "update_current_trace(retrieval_context=…) in the observed function. If that is not called (for a "
                'cached answer, say), return SUTCompletion(text, metadata={"retrieval_context": …}).'
            ),
        ),
        (app_with(TOOLS), "return SUTCompletion(text, tool_calls=[…])."),
        (
            app_with(EXACT, None),
            "needs 'actual_output', and the app returned None for 'q'. Let the function that is observed return its",
        ),
        (
            app_with_part(EXACT),
            (
                "in 'look_up': MissingParameterError: ExactMatchMetric needs 'expected_output', which 'look_up' did "
                "not say of its own test case 'q'. Let it say so: update_current_span(expected_output=…)."
            ),
        ),
        (app_with_part(CONTEXT), "Let it say so: update_current_span(retrieval_context=…)."),
        (
            app_with_part(EXACT, None),
            (
                "needs 'actual_output', and 'look_up' returned None or raised. Let it return what is to be judged, or "
                "say it: update_current_span(output=…)."
            ),
        ),
        (
            app_with_part(ROLES),
            (
                "RoleAdherenceMetric judges a ConversationalTestCase, and 'look_up' makes an LLMTestCase. Give "
                "'look_up' a metric that judges single answers."
            ),
        ),
    ],
)
def test_of_a_golden_that_an_app_has_answered(app, told):
    with pytest.raises(CallError, match=re.escape(told)):
        evaluate(goldens=[GOLDEN], observed_callback=app, print_results=False)
    with pytest.raises(CallError, match=re.escape(told)):
        assert_test(golden=GOLDEN, observed_callback=app)


@pytest.mark.parametrize(
    ("golden", "metric", "told"),
    [
        (
            GOLDEN,
            ROLES,
            (
                "RoleAdherenceMetric judges a ConversationalTestCase, and an app's answer makes an LLMTestCase. Use a "
                "metric that judges single answers; a conversation is judged as a test case: "
                "ConversationalTestCase(turns=[…])."
            ),
        ),
        (
            DIALOGUE,
            EXACT,
            (
                "observed_callback answers a Golden, and got a ConversationalGolden. Give goldens with an input: "
                "Golden(input=…). Of a conversation make a test case, and judge that: golden.to_test_case(turns)."
            ),
        ),
        (
            LLMTestCase("q", "a"),
            EXACT,
            "and got an LLMTestCase. Give goldens with an input: Golden(input=…).",
        ),
    ],
)
def test_goldens_and_metrics_of_another_kind_are_refused_before_the_app_is_used(golden, metric, told):
    asked = []

    @observe(metrics=[metric])
    def app(question):
        asked.append(question)
        return "a"

    for use in (
        lambda: evaluate(goldens=[golden], observed_callback=app, print_results=False),
        lambda: assert_test(golden=golden, observed_callback=app),
    ):
        with pytest.raises((MissingParameterError, InvalidDataError), match=re.escape(told)):
            use()
    assert asked == []


def test_a_metric_of_conversations_that_may_be_skipped_is_not_refused():
    @observe(metrics=[ROLES, EXACT])
    def app(question):
        return "a"

    golden = Golden("q", expected_output="a")
    result = evaluate(
        goldens=[golden], observed_callback=app, skip_on_missing_params=True, print_results=False
    )
    assert [metric.name for metric in result.test_results[0].metrics_data] == ["ExactMatchMetric"]


def test_a_golden_whose_metrics_were_all_skipped_is_named_with_what_it_lacks():
    with pytest.raises(
        CallError,
        match=r"Every metric was skipped for 'q', so it cannot pass: ExactMatchMetric needs 'expected_output'\. Give "
        r"the golden what its metrics need, let the app say it: update_current_trace\(…\), or use metrics that",
    ):
        evaluate(
            goldens=[GOLDEN],
            observed_callback=app_with(EXACT),
            skip_on_missing_params=True,
            print_results=False,
        )


def test_a_golden_for_which_the_app_did_nothing_that_has_metrics_is_named():
    @observe(metrics=[EXACT])
    def part(question):
        update_current_span(expected_output=question)
        return question

    @observe
    def app(question):
        return part(question) if question == "q" else "nothing"

    with pytest.raises(
        CallError,
        match=r"No metric judges 'other': the app called nothing that has one\. Give the app itself metrics: "
        r"@observe\(metrics=\[…\]\), or evaluate\(…, metrics=\[…\]\)\.",
    ):
        evaluate(goldens=[GOLDEN, Golden("other")], observed_callback=app, print_results=False)


@pytest.mark.parametrize(
    ("judge", "told"),
    [
        (
            lambda golden: evaluate(golden, EXACT),
            "A Golden is not a test case. Let your app answer it: goldens=…",
        ),
        (lambda golden: assert_test(golden, [EXACT]), "or make a case of an answer: golden.to_test_case("),
    ],
)
def test_a_golden_instead_of_a_case(judge, told):
    with pytest.raises(InvalidDataError, match=re.escape(told)):
        judge(GOLDEN)


def test_a_conversation_instead_of_a_case():
    with pytest.raises(
        InvalidDataError, match=r"Make a case of the conversation: golden\.to_test_case\(turns\)"
    ):
        evaluate(DIALOGUE, ROLES)


# --- any SUT ----------------------------------------------------------------------------------------------


OF_DATA_SETS = [
    (
        GOLDEN,
        EXACT,
        (
            "needs 'expected_output', which the golden 'q' does not have. Make the golden with it: "
            "Golden(…, expected_output=…); in a file it is the column expected_output."
        ),
    ),
    (
        GOLDEN,
        ROLES,
        (
            "RoleAdherenceMetric judges a ConversationalTestCase, and the golden 'q' makes an LLMTestCase. Use a "
            "metric that judges single answers, or give goldens of conversations: ConversationalGolden(turns=[…]); in "
            "a file it is the column turns."
        ),
    ),
    (
        DIALOGUE,
        EXACT,
        (
            "ExactMatchMetric judges an LLMTestCase, and the golden 's' makes a ConversationalTestCase. Use a metric "
            "that judges conversations, or give goldens with an input: Golden(input=…); in a file it is the "
            "column input."
        ),
    ),
]


@pytest.mark.parametrize(("golden", "metric", "told"), OF_DATA_SETS)
def test_of_a_golden_in_a_data_set(golden, metric, told):
    with pytest.raises(MissingParameterError, match=re.escape(told)):
        DatasetTest("t", [golden], [metric])


@pytest.mark.parametrize(
    ("file", "metric", "told"),
    [
        ("input\nq\n", "exact_match", OF_DATA_SETS[0][2]),
        ("input\nq\n", "role_adherence", OF_DATA_SETS[1][2]),
        ("scenario\ns\n", "exact_match", OF_DATA_SETS[2][2]),
    ],
)
def test_of_a_golden_in_a_file(invoke, here, file, metric, told):
    (here / "goldens.csv").write_text(file, encoding="utf-8")
    result = invoke(
        "run-test", "--dataset", "goldens.csv", "--metric", metric, "--sut", "replay", "--judge", "x"
    )
    assert result.exit_code == 2
    assert told in " ".join(result.output.split())


@pytest.fixture
def invoke():
    return lambda *args: CliRunner().invoke(cli, args)


def test_what_a_sut_does_not_say():
    for function, told in (
        (lambda question: "a", 'Let the SUT say it: SUTCompletion(text, metadata={"retrieval_context": …})'),
        (observe(lambda question: "a"), "Let it say so: update_current_trace(retrieval_context=…)"),
    ):
        test = DatasetTest("t", [GOLDEN], [CONTEXT])
        (item,) = run_test(test, FunctionSUT("s", function)).test_item_exceptions
        assert "needs 'retrieval_context', which " in item.message
        assert told in item.message


def test_what_a_test_of_ones_own_does_not_give():
    class Own(PromptResponseTest):
        def make_test_items(self, dependencies):
            return [TestItem("q")]

        def get_annotators(self):
            return {"exact": EXACT}

        def measure_quality(self, item):
            return {}

    (item,) = run_test(Own("own"), FunctionSUT("s", lambda question: "a")).test_item_exceptions
    assert (
        "Give it in the prompt's context: PromptWithContext(prompt, context=Golden(…, expected_output=…))"
        in (item.message)
    )


# --- given cases --------------------------------------------------------------------------------------------


def test_a_given_case_is_its_authors_to_mend():
    with pytest.raises(MissingParameterError) as raised:
        evaluate(LLMTestCase("q", "a"), CONTEXT)
    assert raised.value.fix == "Make the case with it: LLMTestCase(…, retrieval_context=…)."
    with pytest.raises(MissingParameterError) as raised:
        evaluate(LLMTestCase("q", "a"), ROLES)
    assert raised.value.fix == "Give it a ConversationalTestCase, or use a metric that judges single answers."
    with pytest.raises(MissingParameterError) as raised:
        evaluate(ConversationalTestCase([Turn("user", "q")]), EXACT)
    assert raised.value.problem == "ExactMatchMetric judges an LLMTestCase, and got a ConversationalTestCase."
    assert raised.value.fix == "Give it an LLMTestCase, or use a metric that judges conversations."
