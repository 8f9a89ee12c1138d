"""Apps behind wrappers that call the observed function again after an error, or answer without it."""

import contextlib
import functools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from modelgauge import FunctionSUT, load_record, run_test
from modelgauge.errors import CallError, UsageError
from modelgauge.evals import (
    DatasetTest,
    Golden,
    assert_test,
    evaluate,
    in_this_trace,
    observe,
    update_current_span,
    update_current_trace,
)
from modelgauge.metrics import ExactMatchMetric, Metric

pytestmark = pytest.mark.usefixtures("here")

EXACT = ExactMatchMetric()


class Seeing(Metric):
    """Keeps the cases that it sees."""

    def __init__(self, uid=None, **settings):
        super().__init__(uid, **settings)
        self._seen = []

    @property
    def seen(self):
        return self._seen

    def score(self, test_case):
        self._seen.append(test_case)
        return 1.0


def retried(function):
    """Calls a function up to three times, as tenacity and its like do; in the end it has an answer of its own."""

    @functools.wraps(function)
    def again(question):
        for _ in range(3):
            try:
                return function(question)
            except ConnectionError:
                pass
        return "sorry"

    return again


def in_a_pool(function):
    """Calls a function in a thread of its own, as wrappers that give it a time limit do."""

    @functools.wraps(function)
    def limited(question):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(in_this_trace(function), question).result()

    return limited


def in_a_thread(function):
    @functools.wraps(function)
    def limited(question):
        answers = []
        thread = threading.Thread(target=in_this_trace(lambda: answers.append(function(question))))
        thread.start()
        thread.join()
        return answers[0]

    return limited


def retried_async(function):
    @functools.wraps(function)
    async def again(question):
        try:
            return await function(question)
        except ConnectionError:
            return await function(question)

    return again


def guarded(function):
    """Answers some questions itself, as caches and guards do."""

    @functools.wraps(function)
    def guard(question):
        moderated(question)
        return "no" if "bomb" in question else function(question)

    return guard


@observe(type="tool")
def moderated(text):
    return text


class Flaky:
    """Fails at first; says of each attempt what it found, and only of the first what it cost."""

    def __init__(self, failures=1):
        self.left = failures

    def answer(self, question):
        update_current_trace(retrieval_context=[f"{self.left} left"])
        if self.left:
            self.left -= 1
            update_current_span(token_cost=9.0)
            raise ConnectionError("flaky")
        return question


def of_evaluate(app, golden):
    (one,) = evaluate(goldens=[golden], observed_callback=app, print_results=False).test_results
    return one.spans


def of_evaluate_alone(app, golden):
    (one,) = evaluate(
        goldens=[golden], observed_callback=app, print_results=False, max_concurrent=1
    ).test_results
    return one.spans


def of_assert_test(app, golden, here):
    assert_test(golden=golden, observed_callback=app)
    (run,) = (here / "run_data/runs").iterdir()
    return load_record(run).test_item_records[0].spans


@pytest.fixture(params=["evaluate", "evaluate one by one", "assert_test"])
def use(request, here):
    """Ways to use an app on a golden; the spans that stand in the record."""
    ways = {"evaluate": of_evaluate, "evaluate one by one": of_evaluate_alone}
    return ways.get(request.param, lambda app, golden: of_assert_test(app, golden, here))


def tree(spans):
    names = {span.id: span.name for span in spans}
    return [(span.name, names.get(span.parent)) for span in spans]


# --- called again ------------------------------------------------------------------------------------------


def test_an_app_that_is_called_again_is_judged_by_the_attempt_that_answered(use):
    seeing = Seeing()
    app = retried(observe(metrics=[seeing], name="app")(Flaky().answer))
    spans = use(app, Golden("q"))
    (case,) = seeing.seen
    assert (case.actual_output, case.retrieval_context, case.token_cost) == ("q", ["0 left"], None)
    assert tree(spans) == [("app", None), ("app", "app"), ("app", "app")]
    assert [(span.output, span.error) for span in spans] == [
        ("q", None),
        (None, "ConnectionError: flaky"),
        ("q", None),
    ]
    assert [span.metrics for span in spans] == [("Seeing",), (), ()]


def test_an_async_app_too(use):
    seeing, flaky = Seeing(), Flaky()

    @retried_async
    @observe(metrics=[seeing])
    async def app(question):
        return flaky.answer(question)

    spans = use(app, Golden("q"))
    assert [case.retrieval_context for case in seeing.seen] == [["0 left"]]
    assert [(span.output, span.error) for span in spans] == [
        ("q", None),
        (None, "ConnectionError: flaky"),
        ("q", None),
    ]


def test_where_the_wrapper_is_observed_its_part_is_judged_by_the_attempt_that_answered(use):
    part, whole = Seeing("part"), Seeing("whole")
    inner = observe(metrics=[part], name="inner")(Flaky(2).answer)
    app = observe(metrics=[whole], name="app")(retried(inner))
    spans = use(app, Golden("q"))
    assert [(case.input, case.actual_output) for case in part.seen] == [("q", "q")]
    assert [case.actual_output for case in whole.seen] == ["q"]
    assert [(span.name, span.error) for span in spans] == [
        ("app", None),
        *[("inner", "ConnectionError: flaky")] * 2,
        ("inner", None),
    ]


def test_a_part_that_failed_and_was_not_called_again_is_not_left_out():
    part = ExactMatchMetric()

    @observe(metrics=[part])
    def look_up(text):
        update_current_span(expected_output=text)
        if text == "a":
            raise LookupError(text)
        return text

    @observe
    def app(question):
        for text in "ab":
            with contextlib.suppress(LookupError):
                look_up(text)
        return "yes"

    with pytest.raises(CallError, match="look_up"):
        assert_test(golden=Golden("q"), observed_callback=app)


def test_an_app_that_fails_each_time_is_recorded_with_all_attempts():
    flaky = Flaky(2)

    @retried_async
    @observe(metrics=[EXACT])
    async def app(question):
        return flaky.answer(question)

    with pytest.raises(ConnectionError):
        evaluate(goldens=[Golden("q")], observed_callback=app, print_results=False)
    flaky.left = 2
    (one,) = evaluate(
        goldens=[Golden("q")], observed_callback=app, print_results=False, ignore_errors=True
    ).test_results
    assert tree(one.spans) == [("app", None), ("app", "app"), ("app", "app")]
    assert [span.error for span in one.spans] == ["ConnectionError: flaky"] * 3


# --- answered without it -------------------------------------------------------------------------------------


def test_an_answer_from_a_cache_is_judged_like_any_other(use):
    app = functools.lru_cache(observe(metrics=[EXACT])(lambda question: question))
    app("q")
    (span,) = use(app, Golden("q", expected_output="q"))
    assert (span.name, span.input, span.output, span.error) == ("<lambda>", {"input": "q"}, "q", None)
    with pytest.raises((AssertionError, CallError)):
        assert_test(golden=Golden("q", expected_output="other"), observed_callback=app)


def test_what_was_observed_meanwhile_stands_below_the_use(use):
    app = guarded(observe(metrics=[EXACT], name="app")(lambda question: question))
    spans = use(app, Golden("a bomb", expected_output="no"))
    assert tree(spans) == [("app", None), ("moderated", "app")]
    assert spans[0].output == "no"


def test_what_is_observed_beside_the_app_is_kept_beside_it(use):
    app = guarded(observe(metrics=[EXACT], name="app")(lambda question: question))
    spans = use(app, Golden("q", expected_output="q"))
    assert tree(spans) == [("app", None), ("moderated", "app"), ("app", "app")]
    assert [span.output for span in spans] == ["q"] * 3


def test_what_an_app_says_of_its_span_is_said_of_the_use_that_is_wrapped_around_it(use):
    @guarded
    @observe(metrics=[EXACT])
    def app(question):
        update_current_span(expected_output=question, metrics=[seeing])
        return question

    seeing = Seeing()
    spans = use(app, Golden("q"))
    assert [span.metrics for span in spans] == [("ExactMatchMetric", "Seeing"), (), ()]
    assert [case.expected_output for case in seeing.seen] == ["q"]


def test_an_answer_after_all_attempts_have_failed_is_the_wrappers_own(use):
    seeing = Seeing()
    app = retried(observe(metrics=[seeing], name="app")(Flaky(3).answer))
    spans = use(app, Golden("q"))
    (case,) = seeing.seen
    assert (case.actual_output, case.retrieval_context, case.token_cost) == ("sorry", ["1 left"], None)
    assert [span.error for span in spans] == [None, *["ConnectionError: flaky"] * 3]
    assert {span.parent for span in spans[1:]} == {0}


def test_an_answer_after_one_attempt_that_failed_is_the_wrappers_own_too(use):
    def forgiving(function):
        @functools.wraps(function)
        def once(question):
            with contextlib.suppress(ConnectionError):
                return function(question)
            return "sorry"

        return once

    seeing = Seeing()
    spans = use(forgiving(observe(metrics=[seeing], name="app")(Flaky().answer)), Golden("q"))
    assert [(case.actual_output, case.token_cost) for case in seeing.seen] == [("sorry", None)]
    assert [(span.output, span.error) for span in spans] == [
        ("sorry", None),
        (None, "ConnectionError: flaky"),
    ]


def test_what_a_wrapper_raises_by_itself_fails_its_golden_alone(use):
    @functools.wraps(observe(metrics=[EXACT])(lambda question: question))
    def locked(question):
        raise PermissionError("log in first")

    with pytest.raises(PermissionError, match="log in first"):
        use(locked, Golden("q", expected_output="q"))
    app = guarded(observe(metrics=[EXACT])(lambda question: question))

    @functools.wraps(app)
    def choosy(question):
        return locked(question) if question == "b" else app(question)

    goldens = [Golden(one, expected_output=one) for one in "abc"]
    result = evaluate(goldens=goldens, observed_callback=choosy, print_results=False, ignore_errors=True)
    assert [one.success for one in result] == [True, False, True]
    assert result.test_results[1].error == "PermissionError: log in first"


def test_the_default_judge_is_missed_once_the_app_itself_has_answered():
    asked = []

    @guarded
    @observe
    def app(question):
        asked.append(question)
        return question

    with pytest.raises(UsageError, match="AnswerRelevancyMetric needs a judge"):
        evaluate(goldens=[Golden(one) for one in "abc"], observed_callback=app, print_results=False)
    assert asked == ["a"]


def test_no_default_judge_is_missed_for_a_golden_that_the_app_itself_did_not_answer():
    @observe(metrics=[EXACT])
    def part(question):
        update_current_span(expected_output=question)
        return question

    app = guarded(observe(part))
    goldens = [Golden("a bomb"), Golden("b")]
    result = evaluate(goldens=goldens, observed_callback=app, print_results=False, ignore_errors=True)
    assert [one.success for one in result] == [False, True]


# --- as a SUT ---------------------------------------------------------------------------------------------------


def spans_of_sut(app, here):
    seeing = Seeing()
    test = DatasetTest("t", [Golden("q")], [seeing])
    record = run_test(test, FunctionSUT("sut", app), data_dir=here)
    (item,) = record.test_item_records
    return item.spans, seeing.seen[0]


def test_a_sut_is_judged_by_the_attempt_that_answered(here):
    spans, case = spans_of_sut(retried(observe(name="app")(Flaky().answer)), here)
    assert (case.retrieval_context, case.token_cost) == (["0 left"], None)
    assert [(span.name, span.output, span.error) for span in spans] == [
        ("sut", "q", None),
        ("app", None, "ConnectionError: flaky"),
        ("app", "q", None),
    ]


def test_the_answer_of_a_sut_that_comes_from_a_cache_has_no_trace(here):
    app = functools.lru_cache(observe(lambda question: question))
    app("q")
    spans, case = spans_of_sut(app, here)
    assert (spans, case.actual_output) == ((), "q")


def test_the_attempts_of_a_sut_that_all_failed_stand_below_its_use(here):
    spans, case = spans_of_sut(retried(observe(name="app")(Flaky(3).answer)), here)
    assert (case.actual_output, case.retrieval_context) == ("sorry", ["1 left"])
    assert tree(spans) == [("sut", None), *[("app", "sut")] * 3]


@pytest.mark.parametrize("wrapper", [in_a_pool, in_a_thread])
@pytest.mark.parametrize("max_concurrent", [1, 2])
def test_an_app_that_its_wrapper_calls_in_a_thread_is_recorded_with_its_parts(wrapper, max_concurrent):
    whole, inner = Seeing("whole"), Seeing("inner")

    @observe(metrics=[inner])
    def part(question):
        return question.upper()

    @wrapper
    @observe(metrics=[whole])
    def app(question):
        update_current_trace(retrieval_context=["doc"])
        return part(question)

    result = evaluate(
        goldens=[Golden("a"), Golden("b")],
        observed_callback=app,
        max_concurrent=max_concurrent,
        print_results=False,
    )
    for one in result:
        assert [(span.name, span.parent) for span in one.spans] == [("app", None), ("part", 0)]
    assert sorted(case.actual_output for case in inner.seen) == ["A", "B"]
    assert [case.retrieval_context for case in whole.seen] == [["doc"], ["doc"]]
