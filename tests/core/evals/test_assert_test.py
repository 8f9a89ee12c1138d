import asyncio
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from modelgauge import FunctionSUT, SUTCompletion, ToolCall, load_record
from modelgauge.errors import CallError, InvalidDataError, MissingParameterError
from modelgauge.evals import (
    Golden,
    LLMTestCase,
    assert_test,
    asserting,
    evaluate,
    observe,
    update_current_span,
    update_current_trace,
)
from modelgauge.metrics import Metric, judging_by_default

pytestmark = pytest.mark.usefixtures("here")

RIGHT = LLMTestCase("q", "yes", "yes")
WRONG = LLMTestCase("q", "no way", "yes")
GOLDEN = Golden("q", expected_output="yes")


@pytest.fixture
def judge():
    """A default judge, without which no app is used that names no metrics."""
    with judging_by_default(FunctionSUT("judge", lambda question: "no matter")):
        yield


@observe
def observed(question):
    return question


def plain(question):
    return question


NOT_OBSERVED = "The provided 'observed_callback' must be decorated with '@observe' from modelgauge.evals."
BOTH_MODES = "You cannot provide both ('golden' + 'observed_callback') and 'test_case'. Choose one mode."
GOLDEN_ALONE = "Both 'golden' and 'observed_callback' must be provided together."
CASE_ALONE = "Both 'test_case' and 'metrics' must be provided together."
NEITHER = "You must provide either ('golden' + 'observed_callback') or ('test_case' + 'metrics')."


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, NEITHER),
        ({"test_case": RIGHT}, CASE_ALONE),
        ({"test_case": RIGHT, "metrics": []}, CASE_ALONE),
        ({"test_case": RIGHT, "metrics": ()}, CASE_ALONE),
        ({"metrics": ["exact_match"]}, CASE_ALONE),
        ({"golden": GOLDEN}, GOLDEN_ALONE),
        ({"observed_callback": observed}, GOLDEN_ALONE),
        ({"golden": GOLDEN, "observed_callback": plain}, NOT_OBSERVED),
        ({"golden": GOLDEN, "observed_callback": 3}, "observed_callback must be callable"),
        (
            {
                "golden": GOLDEN,
                "observed_callback": observed,
                "test_case": RIGHT,
                "metrics": ["exact_match"],
            },
            BOTH_MODES,
        ),
        ({"golden": GOLDEN, "observed_callback": observed, "test_case": RIGHT}, BOTH_MODES),
    ],
)
def test_arguments_of_neither_mode_are_refused(given, message):
    with pytest.raises(ValueError) as refused:  # noqa: PT011  the whole message is compared below
        assert_test(**given)
    assert str(refused.value) == message


def test_a_golden_and_an_app_can_be_given_by_position(match):
    @observe(metrics=[match()])
    def app(question):
        update_current_span(input=question, output="yes", expected_output="yes")
        return "yes"

    assert_test(GOLDEN, app)
    assert last_item().test_item.prompts[0].prompt.text == "q"
    assert_test(GOLDEN, observed_callback=app)
    assert_test(GOLDEN, [match()], observed_callback=app)
    assert "Match" in last_item().measurements
    with pytest.raises(ValueError, match="must be decorated"):
        assert_test(GOLDEN, plain)
    for wrong in (lambda: assert_test(GOLDEN, [match()]), lambda: assert_test(RIGHT, app)):
        with pytest.raises((InvalidDataError, TypeError, ValueError)):
            wrong()


def last_item():
    """The item of the latest run: what was judged, and how."""
    (item,) = load_record(max(Path("run_data/runs").iterdir())).test_item_records
    return item


def judged_output():
    """What the metrics of the latest run saw as the app's output."""
    return last_item().interactions[0].response.completions[0].completion.text


def test_a_case_that_passes_was_judged_by_all_its_metrics(match, length):
    assert_test(RIGHT, [match(threshold=0.7), length(threshold=1)])
    assert last_item().measurements == {
        "Match": 1.0,
        "Match.passed": 1.0,
        "Length": 1.0,
        "Length.passed": 1.0,
        "passed": 1.0,
    }


@pytest.mark.parametrize(
    ("args", "given"),
    [
        ((RIGHT,), {}),
        ((), {"test_case": RIGHT}),
        ((RIGHT,), {"run_async": False, "display_progress": False}),
    ],
)
def test_a_case_and_one_metric_by_position_or_by_name(match, args, given):
    assert_test(*args, metrics=match(), **given)
    assert last_item().measurements == {"Match": 1.0, "Match.passed": 1.0, "passed": 1.0}


@pytest.mark.parametrize(("given", "shown"), [({}, True), ({"display_progress": False}, False)])
def test_progress_is_shown_on_a_terminal_unless_it_is_switched_off(given, shown, monkeypatch, capsys):
    class Slow(Metric):
        async def score(self, test_case):
            await asyncio.sleep(0.6)
            return 1.0

    assert_test(RIGHT, [Slow()], **given)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert_test(RIGHT, [Slow()], **given)
    assert ("items" in capsys.readouterr().err) is shown


def test_every_failing_metric_is_named_with_score_threshold_and_reason(match, length):
    with pytest.raises(AssertionError) as failed:
        assert_test(WRONG, [match(threshold=0.7), length(threshold=1), length("Roomy", threshold=9)])
    assert str(failed.value) == (
        "Metric Match failed: score 0.5 < threshold 0.7, because: they differ\n"
        "Metric Length failed: score 2.0 > threshold 1"
    )


def test_a_score_at_the_threshold_passes_in_both_directions(match, length):
    assert_test(WRONG, [match(threshold=0.5), length(threshold=2)])
    measured = last_item().measurements
    assert (measured["Match"], measured["Length"], measured["passed"]) == (0.5, 2.0, 1.0)


def test_a_metric_that_cannot_judge_is_an_error_and_no_failed_assertion(broken):
    with pytest.raises(CallError, match=r"'q' could not be judged: Metric Broken.*no way to judge") as failed:
        assert_test(RIGHT, [broken()])
    (run,) = Path("run_data/runs").iterdir()
    assert f"modelgauge show {run.name} --failures" in failed.value.fix


def test_a_missing_parameter_is_told_before_anything_is_judged(match):
    with pytest.raises(MissingParameterError):
        assert_test(LLMTestCase("q", "a"), [match()])
    assert not Path("run_data/runs").exists()


def test_something_else_than_a_case_is_refused(match):
    with pytest.raises(InvalidDataError, match="A Golden is not a test case"):
        assert_test(GOLDEN, [match()])


def test_a_defect_of_the_library_keeps_its_traceback(match, monkeypatch):
    monkeypatch.setattr(asserting, "GivenTest", None)
    with pytest.raises(TypeError) as failed:
        assert_test(RIGHT, [match()])
    assert failed.traceback[-1].name == "_test"


@pytest.mark.usefixtures("judge")
def test_what_an_app_raises_keeps_its_context():
    @observe(metrics=[])
    def app(question):
        try:
            {}[question]
        except KeyError:
            raise LookupError("down")  # noqa: B904  as apps do

    with pytest.raises(LookupError) as failed:
        assert_test(golden=GOLDEN, observed_callback=app)
    assert isinstance(failed.value.__context__, KeyError)
    assert not failed.value.__suppress_context__


def test_in_a_running_loop(match):
    async def main():
        with pytest.raises(AssertionError):
            assert_test(WRONG, [match(threshold=0.7)])
        assert_test(golden=Golden("yes", expected_output="yes"), observed_callback=of_async(match))

    asyncio.run(main())
    assert last_item().measurements["passed"] == 1.0


def of_async(match):
    @observe(metrics=[match(threshold=0.7)])
    async def app(question):
        await asyncio.sleep(0)
        return question

    return app


# --- with an observed app -------------------------------------------------------------------------------


def test_the_case_is_made_of_the_golden_and_what_the_app_returns(match):
    seen = []

    class Seen(Metric):
        def score(self, test_case):
            seen.append(test_case)
            return 1.0

    @observe(type="agent", metrics=[Seen()])
    def app(question):
        update_current_trace(retrieval_context=["doc"])
        update_current_span(tools_called=[ToolCall(name="look")])
        return f"{question}!"

    golden = Golden("q", expected_output="yes", context=["fact"], name="n")
    assert_test(golden=golden, observed_callback=app)
    assert seen == [
        LLMTestCase(
            "q",
            "q!",
            "yes",
            context=["fact"],
            name="n",
            retrieval_context=["doc"],
            tools_called=[ToolCall(name="look")],
        )
    ]


def test_given_metrics_judge_the_answer_of_the_app_beside_its_own(match, length):
    @observe(metrics=[match(threshold=0.7)])
    def app(question):
        return "yes"

    golden = Golden("q", expected_output="yes")
    assert_test(golden=golden, observed_callback=app, metrics=[length(threshold=1), "exact_match"])
    names = {"Match", "Length", "ExactMatchMetric"}
    assert {name for name in last_item().measurements if "passed" not in name} == names
    with pytest.raises(AssertionError, match=r"^Metric Length failed: score 1\.0 > threshold 0"):
        assert_test(golden=golden, observed_callback=app, metrics=length(threshold=0))
    bare = observe(lambda question: "no")
    with pytest.raises(AssertionError, match=r"^Metric ExactMatchMetric failed"):
        assert_test(golden=golden, observed_callback=bare, metrics=["exact_match"])


@pytest.mark.parametrize(
    ("returned", "output"),
    [(3, "3"), ({"a": [1]}, '{"a": [1]}'), (SUTCompletion("text"), "text")],
)
def test_whatever_an_app_returns_becomes_text(match, returned, output):
    @observe(metrics=[match(threshold=0.7)])
    def app(question):
        return returned

    assert_test(golden=Golden("q", expected_output=output), observed_callback=app)
    assert judged_output() == output


def test_streamed_answers_are_judged_as_one(match):
    @observe(metrics=[match(threshold=0.7)])
    def app(question):
        yield "y"
        yield "es"

    @observe(metrics=[match(threshold=0.7)])
    async def later(question):
        yield "y"
        yield "es"

    for streamed in (app, later):
        assert_test(golden=GOLDEN, observed_callback=streamed)
        assert judged_output() == "yes"
        assert [span.output for span in last_item().spans] == ["yes"]


def test_components_are_judged_by_their_own_test_cases_and_spans_are_recorded(match):
    @observe(type="retriever", metrics=[match(threshold=0.7)])
    def retrieve(question):
        update_current_span(test_case=LLMTestCase("inner", "no", "yes"))
        return ["doc"]

    @observe(type="agent")
    def app(question):
        retrieve(question)
        retrieve(question)
        return "yes"

    with pytest.raises(AssertionError) as failed:
        assert_test(golden=GOLDEN, observed_callback=app)
    assert str(failed.value).splitlines() == [
        "Metric Match failed in 'retrieve': score 0.5 < threshold 0.7, because: they differ",
        "Metric Match failed in 'retrieve~2': score 0.5 < threshold 0.7, because: they differ",
    ]
    item = last_item()
    assert [(span.name, span.type, span.parent) for span in item.spans] == [
        ("app", "agent", None),
        ("retrieve", "retriever", 0),
        ("retrieve", "retriever", 0),
    ]
    assert item.spans[1].test_case == LLMTestCase("inner", "no", "yes")
    assert item.spans[0].input == {"question": "q"}
    assert item.measurements["retrieve~2.Match"] == 0.5


def test_an_app_without_metrics_is_judged_by_answer_relevancy():
    def judge(question):
        if "statements" in question:
            return '{"statements": ["yes"], "verdicts": [{"verdict": "yes"}], "reason": "fine"}'
        return '{"verdicts": [{"verdict": "yes"}], "reason": "fine"}'

    with judging_by_default(FunctionSUT("judge", judge)):
        assert_test(golden=GOLDEN, observed_callback=observed)
    assert "AnswerRelevancyMetric" in last_item().measurements


def test_plain_apps_run_in_the_thread_of_the_caller(match):
    threads = []

    @observe(metrics=[match(threshold=0.7)])
    def app(question):
        threads.append(threading.current_thread())
        return "yes"

    assert_test(golden=GOLDEN, observed_callback=app)
    assert threads == [threading.current_thread()]


@pytest.mark.usefixtures("judge")
def test_what_the_app_raises_reaches_the_caller():
    @observe
    def app(question):
        raise LookupError("app")

    with pytest.raises(LookupError, match="app"):
        assert_test(golden=GOLDEN, observed_callback=app)


@pytest.mark.usefixtures("judge")
@pytest.mark.parametrize("metrics", [[], ["answer_relevancy"]])
def test_what_the_app_did_until_it_raised_stands_in_the_record(metrics):
    @observe(type="tool")
    def look_up(text):
        raise LookupError(f"no {text}")

    @observe(metrics=metrics)
    async def app(question):
        look_up("index")

    with pytest.raises(LookupError, match="no index") as raised:
        assert_test(golden=GOLDEN, observed_callback=app)
    run = max(Path("run_data/runs").iterdir())
    (item,) = load_record(run).test_item_exceptions
    assert (item.stage, item.error_type, item.message) == ("sut", "LookupError", "no index")
    assert [(span.name, span.error) for span in item.spans] == [
        ("app", "LookupError: no index"),
        ("look_up", "LookupError: no index"),
    ]
    assert all(span.seconds >= 0 for span in item.spans)
    assert "in look_up" in item.traceback
    (note,) = raised.value.__notes__
    assert f"modelgauge show {run.name} --failures" in note


@dataclass(frozen=True)
class DeniedError(Exception):
    """Refuses every assignment to its attributes, as exceptions that are frozen dataclasses do."""

    why: str


@pytest.mark.usefixtures("judge")
@pytest.mark.parametrize(
    "use",
    [
        lambda app: assert_test(golden=GOLDEN, observed_callback=app),
        lambda app: evaluate(goldens=[GOLDEN], observed_callback=app),
    ],
    ids=["assert_test", "evaluate"],
)
@pytest.mark.parametrize("metrics", [[], ["answer_relevancy"]])
def test_an_exception_that_cannot_be_changed_reaches_the_caller_with_its_note(use, metrics):
    denied = DeniedError("log in first")

    @observe(metrics=metrics)
    def app(question):
        raise denied

    with pytest.raises(DeniedError) as raised:
        use(app)
    assert raised.value is denied
    assert raised.traceback[-1].name == "app"
    (note,) = denied.__notes__
    assert "stands in the record of the run" in note


def test_methods_of_an_app(match):
    class App:
        @observe(metrics=[match(threshold=0.7)])
        async def answer(self, question):
            return "yes"

    assert_test(golden=GOLDEN, observed_callback=App().answer)
    assert last_item().measurements["Match"] == 1.0
    assert [(span.name, span.input) for span in last_item().spans] == [("answer", {"question": "q"})]


def in_notebook(work):
    async def cell():
        work()

    asyncio.run(cell())


@pytest.mark.parametrize("call", [lambda work: work(), in_notebook])
def test_a_client_that_an_app_and_a_judge_keep_serves_the_next_test_too(call, match):
    kept = []

    async def client(text):
        """Is bound to the loop of its first call, as clients of most libraries are."""
        if not kept:
            kept.append((asyncio.get_running_loop(), asyncio.Lock()))
        loop, lock = kept[0]
        assert asyncio.get_running_loop() is loop
        async with lock:
            await asyncio.sleep(0)
        return text

    class Asking(Metric):
        async def score(self, test_case):
            return float((await self.ask("judge", "1")).completions[0].text)

    app = observe(metrics=[match(), Asking(model=client)])(client)
    for question in "abc":
        golden = Golden(question, expected_output=question)
        call(lambda golden=golden: assert_test(golden=golden, observed_callback=app))
    call(lambda: Asking(model=client).measure(RIGHT))
