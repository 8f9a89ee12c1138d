"""What all metrics share: threshold, direction, strictness, reasons, judges; and nothing changes them."""

import asyncio
import copy
import inspect
import pickle
import re
from abc import ABC, abstractmethod
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from modelgauge import (
    FunctionSUT,
    PromptResponseSUT,
    Score,
    SUTCompletion,
    SUTResponse,
    Threshold,
    Usage,
    run_test,
)
from modelgauge.errors import (
    ArgumentError,
    CallError,
    DefinitionError,
    InvalidOptionError,
    InvalidResponseError,
    MissingParameterError,
    RunStoppedError,
    UnknownNameError,
    UsageError,
)
from modelgauge.evals import ConversationalTestCase, Golden, LLMTestCase, Turn, evaluate
from modelgauge.metrics import (
    AnswerRelevancyMetric,
    BLEUMetric,
    ChrFMetric,
    ContainsMetric,
    CostMetric,
    ExactMatchMetric,
    GEval,
    HallucinationMetric,
    JsonCorrectnessMetric,
    LatencyMetric,
    LevenshteinMetric,
    Metric,
    PatternMatchMetric,
    ROUGEMetric,
    TokenF1Metric,
    ToolCorrectnessMetric,
    judging_by_default,
)
from modelgauge.testing import FakeSUT, FakeTest

CASE = LLMTestCase("2 + 2 = ?", "4", "4", name="sum")


class Brevity(Metric):
    """One over the number of words."""

    required_params = ("actual_output",)

    def score(self, test_case):
        return 1 / len(test_case.actual_output.split())


class Rated(Metric):
    """What the judge says."""

    needs_judge = True

    async def score(self, test_case):
        response = await self.ask("judge", f"Rate {test_case.actual_output}")
        return Score(float(response.completions[0].text), reason="as the judge says")


class Priced(PromptResponseSUT):
    def translate_text_prompt(self, prompt):
        return prompt.text

    async def evaluate(self, request):
        return "0.5"

    def translate_response(self, request, response):
        return SUTResponse([SUTCompletion(response)], Usage(cost_usd=0.25))


# --- scores -------------------------------------------------------------------------------------------------


def test_a_custom_metric_is_a_class_with_score():
    score = Brevity().measure(LLMTestCase("?", "two words"))
    assert score == Score(0.5)


def test_an_async_score_inside_a_running_loop():
    class Late(Brevity):
        async def score(self, test_case):
            await asyncio.sleep(0)
            return 0.25

    async def main():
        return Late().measure(CASE)

    assert asyncio.run(main()).value == 0.25


@pytest.mark.parametrize("made", ["0.5", None, float("nan"), float("inf"), [1]])
def test_what_is_no_number_is_no_score(made):
    class Wrong(Metric):
        def score(self, test_case):
            return made

    with pytest.raises(InvalidResponseError, match="Wrong"):
        Wrong().measure(CASE)


def test_bools_and_ints_are_scores():
    class Flag(Metric):
        def score(self, test_case):
            return test_case.actual_output == "4"

    assert Flag().measure(CASE).value == 1.0


def test_a_metric_without_score_is_an_error_that_says_what_to_add():
    class Nothing(Metric):
        pass

    with pytest.raises(DefinitionError, match="def score"):
        Nothing()


def test_higher_is_better_and_lower_is_better():
    higher, lower = ExactMatchMetric(threshold=0.5), HallucinationMetric(threshold=0.5)
    assert [higher.is_successful(value) for value in (0.4, 0.5, Score(0.6))] == [False, True, True]
    assert [lower.is_successful(value) for value in (0.4, 0.5, Score(0.6))] == [True, True, False]


def test_a_score_within_a_billionth_of_the_threshold_passes_and_one_beyond_does_not():
    above, below = Threshold(value=0.7), Threshold(value=0.7, higher_is_better=False)
    for higher, lower in [
        (ExactMatchMetric(threshold=0.7).is_successful, HallucinationMetric(threshold=0.7).is_successful),
        (above.is_reached, below.is_reached),
    ]:
        assert [higher(0.7 - distance) for distance in (1e-16, 0.9e-9, 1.1e-9)] == [True, True, False]
        assert [lower(0.7 + distance) for distance in (1e-16, 0.9e-9, 1.1e-9)] == [True, True, False]


def test_a_metric_may_decide_by_more_than_the_value_what_passes():
    class Both(Metric):
        async def score(self, test_case):
            return Score(1.0, breakdown={"polite": test_case.input == "please"})

        def is_successful(self, score):
            return score >= self.threshold and score.breakdown["polite"]

    cases = [LLMTestCase("please", "yes"), LLMTestCase("now", "yes")]
    results = evaluate(cases, [Both()], print_results=False).test_results
    assert [result.success for result in results] == [True, False]
    assert [result.metrics_data[0].success for result in results] == [True, False]


def test_strict_mode_leaves_the_best_score_or_the_worst():
    def strict(metric, value):
        return metric.translate_response(CASE, Score(value)).value

    assert [strict(ExactMatchMetric(strict_mode=True), value) for value in (0.99, 1.0)] == [0.0, 1.0]
    assert strict(ExactMatchMetric(strict_mode=True), 1 - 1e-12) == 1 - 1e-12
    assert [strict(HallucinationMetric(strict_mode=True), value) for value in (0.01, 0.0)] == [1.0, 0.0]
    assert ExactMatchMetric(strict_mode=True, threshold=0.2).threshold == 1.0
    assert HallucinationMetric(strict_mode=True, threshold=0.2).threshold == 0.0


@pytest.mark.parametrize(
    ("make", "threshold"),
    [(HallucinationMetric, 50), (AnswerRelevancyMetric, -0.1), (ExactMatchMetric, 1.01)],
)
def test_a_threshold_beyond_all_scores_would_tell_no_case_from_another(make, threshold):
    with pytest.raises(InvalidOptionError, match=r"its scores lie between 0 and 1\. Give one that they can"):
        make(threshold=threshold)
    for edge in (0, 1):
        assert make(threshold=edge).threshold == edge


def test_a_threshold_may_be_any_number_where_the_scores_are_not_known():
    class Words(Metric):
        def score(self, test_case):
            return len(test_case.input.split())

    assert not Words(threshold=50).is_successful(Words().measure(LLMTestCase("two words")))


def test_a_reason_is_left_out_where_it_is_not_wanted():
    assert ExactMatchMetric().measure(CASE).reason is not None
    assert ExactMatchMetric(include_reason=False).measure(CASE).reason is None


# --- names and settings -------------------------------------------------------------------------------------


def test_names():
    assert (AnswerRelevancyMetric().uid, AnswerRelevancyMetric().name) == (
        "answer_relevancy",
        "AnswerRelevancyMetric",
    )
    assert (AnswerRelevancyMetric("mine").uid, AnswerRelevancyMetric("mine").name) == ("mine", "mine")
    assert AnswerRelevancyMetric("answer_relevancy?threshold=0.7").name == "AnswerRelevancyMetric"


def test_a_list_of_metrics_can_be_read():
    metrics = [Brevity(threshold=0.7), Brevity("brevity?name=Short")]
    assert (
        repr(metrics) == "[<Brevity 'brevity', threshold 0.7>, <Brevity 'brevity?name=Short', threshold 0.5>]"
    )


def test_a_metric_with_a_constructor_of_its_own():
    class Length(Metric):
        def __init__(self, most, threshold=0.9):
            self.most = most
            self.threshold = threshold

        def score(self, test_case):
            return len(test_case.actual_output) <= self.most

    short = Length(3)
    assert (short.uid, short.threshold, short.include_reason) == ("length", 0.9, True)
    assert short.measure(CASE).value == 1.0
    assert short.identity() != Length(4).identity()


@pytest.mark.parametrize(
    "settings",
    [
        {"threshold": "high"},
        {"threshold": True},
        {"threshold": float("nan")},
        {"threshold": 10**400},
        {"strict_mode": 1},
        {"include_reason": "no"},
        {"combine": "median"},
        {"model": 3},
        {"model": []},
    ],
)
def test_wrong_settings_are_errors(settings):
    with pytest.raises(InvalidOptionError):
        Rated(**settings)


class Handing(Metric):
    def __init__(self, uid: str | None = None, *, size: int = 1, **settings: Any) -> None:
        super().__init__(uid, **settings)
        self.size = size

    def score(self, test_case):
        return float(self.size)


class Swallowing(Metric):
    def __init__(self, **_: Any) -> None:
        super().__init__()
        raise TypeError("of its own")

    def score(self, test_case):
        return 1.0


@pytest.mark.parametrize(
    ("make", "suggestion", "own"),
    [
        (lambda: ExactMatchMetric(treshold=1), "threshold", "ignore_case"),
        (lambda: GEval("tone", criterion="Is it kind?"), "criteria", "evaluation_steps"),
        (lambda: Rated(strict=True), "strict_mode", "include_reason"),
        (lambda: Handing(siez=1), "size", "threshold"),
    ],
)
def test_a_misspelt_argument_is_told_the_right_one(make, suggestion, own):
    with pytest.raises(ArgumentError) as caught:
        make()
    assert isinstance(caught.value, TypeError)
    assert f"Did you mean '{suggestion}'?" in caught.value.fix
    assert own in caught.value.fix.partition("The arguments are: ")[2]


def test_a_type_error_of_the_authors_own_stays_what_it_is():
    with pytest.raises(TypeError, match=r"^of its own$"):
        Swallowing(treshold=1)


def test_a_metric_does_not_change():
    metric = ExactMatchMetric()
    with pytest.raises(AttributeError, match=r"ExactMatchMetric\(threshold=0.9\)"):
        metric.threshold = 0.9
    before = dict(metric.__dict__)
    metric.measure(CASE)
    assert metric.__dict__ == before
    assert metric.threshold == 1.0


def test_metrics_can_be_copied_and_pickled():
    metric = ExactMatchMetric("mine", threshold=0.3, ignore_case=True)
    for other in (copy.copy(metric), copy.deepcopy(metric), pickle.loads(pickle.dumps(metric))):
        assert (other.uid, other.threshold, other.ignore_case) == ("mine", 0.3, True)
        assert other.measure(CASE).value == 1.0


def test_settings_of_other_libraries_are_taken():
    assert ExactMatchMetric(async_mode=False, verbose_mode=True).measure(CASE).value == 1.0


# --- cases --------------------------------------------------------------------------------------------------


def test_a_missing_parameter_names_metric_parameter_and_case():
    with pytest.raises(MissingParameterError, match=r"ExactMatchMetric needs 'expected_output'.*'sum'"):
        ExactMatchMetric().measure(LLMTestCase("2 + 2 = ?", "4", name="sum"))
    assert ExactMatchMetric().missing_params(LLMTestCase("?")) == ["actual_output", "expected_output"]


def test_a_case_of_another_kind_is_an_error():
    with pytest.raises(MissingParameterError, match=r"LLMTestCase.*ConversationalTestCase"):
        ExactMatchMetric().measure(ConversationalTestCase([Turn("user", "hi")]))


# --- judges -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (Golden("q"), r"got a Golden\. Make a case of what was answered: golden\.to_test_case\(…\)\.$"),
        ("q", r"got a str\. Give it an LLMTestCase\.$"),
    ],
)
def test_what_is_no_case_is_told_what_to_give(given, told):
    with pytest.raises(MissingParameterError, match=told):
        ExactMatchMetric().measure(given)


def test_a_judge_is_a_function_an_async_function_or_a_sut(sut):
    async def late(question):
        return "0.25"

    assert Rated(model=lambda question: "0.75").measure(CASE).value == 0.75
    assert Rated(model=late).measure(CASE).value == 0.25
    assert Rated(model=sut(lambda question: "1")).measure(CASE).value == 1.0


def test_a_judge_is_a_uid_and_looked_up_when_it_is_needed(tmp_path, monkeypatch):
    plugin = tmp_path / "judges.py"
    plugin.write_text(
        "from modelgauge import FunctionSUT, hookimpl\n"
        "@hookimpl\n"
        "def modelgauge_register_suts(register):\n"
        "    register('half', FunctionSUT, function=lambda question: '0.5', version=1)\n",
        encoding="utf-8",
    )
    known, unknown = Rated(model="half"), Rated(model="nobody")
    (tmp_path / "modelgauge.toml").write_text("plugins = ['judges.py']", encoding="utf-8")
    assert known.measure(CASE).value == 0.5
    with pytest.raises(UsageError, match="'nobody'"):
        unknown.measure(CASE)
    monkeypatch.setenv("MODELGAUGE_JUDGE", "half")
    assert Rated().measure(CASE).value == 0.5


def test_the_default_judge():
    with pytest.raises(UsageError, match=r"Rated needs a judge.*MODELGAUGE_JUDGE") as caught:
        Rated().measure(CASE)
    assert "modelgauge.toml" in str(caught.value)
    assert "--judge" in str(caught.value)
    with judging_by_default(lambda question: "0.5"):
        assert Rated().measure(CASE).value == 0.5
    with pytest.raises(UsageError):
        Rated().measure(CASE)


@pytest.mark.parametrize(
    ("combine", "said", "value"),
    [
        ("mean", ["0.2", "0.4", "0.9"], 0.5),
        ("majority", ["0.2", "0.9", "0.8"], 0.8),
        ("majority", ["0.9", "0.1"], 0.1),
        ("majority", ["1", "1", "0", "1"], 1.0),
    ],
)
def test_several_judges(combine, said, value):
    judges = [lambda question, one=one: one for one in said]
    score = Rated(model=judges, combine=combine).measure(CASE)
    assert score.value == pytest.approx(value)
    assert score.breakdown["judge_2"]["score"] == float(said[1])
    assert "judge_2" in score.reason


def test_of_two_judges_in_the_middle_the_worse_counts_where_lower_is_better():
    class Bad(Rated):
        higher_is_better = False

    judges = [lambda question: "0.1", lambda question: "0.9"]
    assert Bad(model=judges, combine="majority").measure(CASE).value == 0.9


def test_one_of_several_judges_that_fails_leaves_the_case_without_a_score():
    def down(question):
        raise ValueError("down")

    with pytest.raises(CallError, match="down"):
        Rated(model=[lambda question: "1", down]).measure(CASE)


def test_what_the_judges_cost():
    assert Rated(model=Priced("priced")).measure(CASE).cost == 0.25
    assert Rated(model=[Priced("priced"), Priced("other")]).measure(CASE).cost == 0.5
    assert Rated(model=lambda question: "1").measure(CASE).cost is None


def test_a_judge_is_paid_once(scripted, sut):
    script = scripted("0.5")
    judge = sut(script)
    for metric in (Rated(model=judge), Rated(model=judge), Rated(model=judge, threshold=0.9)):
        assert metric.measure(CASE).value == 0.5
    assert len(script.asked) == 1


# --- in a test ----------------------------------------------------------------------------------------------


def test_a_metric_is_an_annotator_in_any_test(tmp_path, sut, scripted):
    script = scripted("1", "0.5")
    test = FakeTest(
        "rated",
        ["a", "b"],
        annotators={"rated": Rated(model=sut(script))},
        measure=lambda item: {"rated": item.annotation("rated", Score).value},
    )
    for _ in range(2):
        record = run_test(test, FakeSUT("echo", lambda prompt: prompt.text), concurrency=1)
        assert record.result["rated"].value == 0.75
    assert (record.counts.judge_calls.paid, record.counts.judge_calls.cached) == (0, 2)
    assert len(script.asked) == 2


# --- what is not there --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "use",
    [
        lambda score: score > 0.5,
        lambda score: score >= 0.5,
        lambda score: score == 1.0,
        lambda score: score != 1,
        bool,
        float,
        round,
        lambda score: f"{score:.2f}",
        lambda score: score * 100,
        lambda score: sum([score, score]),
    ],
)
@pytest.mark.parametrize("metric", [ExactMatchMetric(), Brevity(), GEval("Kind", "Is it kind?")])
def test_a_metrics_score_is_no_number_and_says_where_the_number_is(use, metric):
    with pytest.raises(TypeError, match=r"score = metric\.measure\(case\); score\.value"):
        use(metric.score)


def test_a_metrics_score_is_a_method_like_any_other():
    class Abstract(Metric, ABC):
        @abstractmethod
        def score(self, test_case):
            """Judge."""

    class Doubled(Brevity):
        def score(self, test_case):
            return 2 * super().score(test_case)

    metric = Doubled()
    assert metric.score(CASE) == metric.score(test_case=CASE) == 2
    assert Brevity.score(metric, CASE) == 1
    assert metric.score == metric.score != Doubled().score
    assert len({metric.score, metric.score}) == 1
    assert list(inspect.signature(metric.score).parameters) == ["test_case"]
    assert copy.copy(metric).score(CASE) == pickle.loads(pickle.dumps(Brevity())).score(CASE) + 1
    with pytest.raises(TypeError, match="abstract"):
        Abstract()


@pytest.mark.parametrize(
    ("name", "where"), [("reason", "score.reason"), ("success", "metric.is_successful(score)")]
)
def test_what_a_metric_found_is_not_looked_for_in_the_metric(name, where):
    metric = Rated(model=lambda question: "1")
    metric.measure(CASE)
    with pytest.raises(AttributeError, match=f"score = metric.measure\\(case\\); {re.escape(where)}"):
        getattr(metric, name)
    with pytest.raises(AttributeError, match="'Rated' object has no attribute 'treshold'"):
        _ = metric.treshold
    with pytest.raises(TypeError, match=r"score = metric.measure\(case\); metric.is_successful\(score\)"):
        metric.is_successful()
    assert list(inspect.signature(metric.is_successful).parameters) == ["score"]


@pytest.mark.parametrize(
    ("required", "told"),
    [
        ("actual_output", r"is one text, 'actual_output'\. .*\('actual_output',\)"),
        (("actual_outptu",), r"names 'actual_outptu', .*Did you mean 'actual_output'"),
        (("turns",), "names 'turns', which is not a field"),
    ],
)
def test_required_params_that_no_case_has_are_told_when_the_class_is_defined(required, told):
    with pytest.raises(DefinitionError, match=told):
        type("Odd", (Brevity,), {"required_params": required})


def test_required_params_are_those_of_the_kind_of_case():
    attributes = {"required_params": ["turns"], "test_case_type": ConversationalTestCase}
    assert type("Fine", (Brevity,), attributes)().required_params == ["turns"]
    with pytest.raises(DefinitionError, match="names 'actual_output', which is not a field"):
        type("Odd", (Brevity,), {"test_case_type": ConversationalTestCase})


def test_a_threshold_by_position_is_told_to_be_named():
    with pytest.raises(InvalidOptionError, match=r"Brevity\(threshold=0\.7\)"):
        Brevity(0.7)


def test_other_libraries_async_measure_is_told_what_there_is():
    with pytest.raises(AttributeError, match=r"evaluate\(cases, \[metric\]\)"):
        Brevity().a_measure  # noqa: B018  it is looked up


def test_the_name_among_the_options_of_a_uid():
    assert Brevity("brevity?name=How%20short&threshold=0.4").name == "How short"
    assert Brevity("brevity?name=").name == "Brevity"
    assert Brevity("terse?threshold=0.4").name == "terse"


@pytest.mark.parametrize("number", [np.float32(0.5), np.float64(0.5), np.int64(1), Fraction(1, 2)])
def test_a_score_may_be_any_real_number(number):
    class Given(Metric):
        def score(self, test_case):
            return number

    metric = Given(threshold=number)
    score = metric.measure(LLMTestCase("q"))
    assert score == float(number)
    assert metric.is_successful(score)


def test_a_metric_may_have_abstract_methods():
    class Base(Metric, ABC):
        @abstractmethod
        def word(self): ...

        def score(self, test_case):
            return float(self.word() in test_case.actual_output)

    class Polite(Base):
        def word(self):
            return "please"

    with pytest.raises(TypeError, match="abstract"):
        Base()
    assert Polite().measure(LLMTestCase("q", "yes, please")) == 1.0


@pytest.mark.parametrize("name", ["passed", "Kind.passed", "a.b.passed"])
@pytest.mark.parametrize(
    "make",
    [
        ExactMatchMetric,
        lambda name: GEval(name, evaluation_steps=["Look."]),
        lambda name: GEval(f"g_eval?name={name}", evaluation_steps=["Look."]),
    ],
)
def test_a_name_that_results_need_is_refused(make, name):
    with pytest.raises(
        InvalidOptionError, match=r"results call so whether a case has passed\. Choose a name"
    ):
        make(name)


@pytest.mark.parametrize("name", ["Passed", "has passed", "passed.Kind", "not_passed"])
def test_a_name_like_it_is_taken(name):
    assert ExactMatchMetric(name).name == name


@pytest.mark.parametrize(
    ("value", "score"),
    [
        (np.True_, 1.0),
        (np.False_, 0.0),
        (Decimal("0.25"), 0.25),
    ],
)
def test_a_score_may_be_what_python_calls_no_real_number(value, score):
    class Given(Metric):
        def score(self, test_case):
            return value

    assert Given().measure(CASE).value == score


@pytest.mark.parametrize(
    "value", [Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), 10**400, "0.5", None]
)
def test_what_is_no_finite_number_is_no_score(value):
    class Given(Metric):
        def score(self, test_case):
            return value

    with pytest.raises(InvalidResponseError, match="not a finite number"):
        Given().measure(CASE)


def test_what_is_found_of_a_case_is_returned_and_not_set():
    class SetsSelf(Metric):
        def score(self, test_case):
            self.reason = "x"
            return 1

    with pytest.raises(AttributeError, match=r"return Score\(value, reason=…"):
        SetsSelf().measure(CASE)


@pytest.mark.parametrize(
    ("metric", "flag"),
    [
        (ExactMatchMetric, "ignore_case"),
        (partial(PatternMatchMetric, pattern="x"), "ignore_case"),
        (ContainsMetric, "ignore_case"),
        (BLEUMetric, "lowercase"),
        (ROUGEMetric, "use_stemmer"),
        (ToolCorrectnessMetric, "should_exact_match"),
        (ToolCorrectnessMetric, "should_consider_ordering"),
        (partial(GEval, "G", "Right?"), "logprobs"),
    ],
)
def test_switches_are_true_or_false(metric, flag):
    with pytest.raises(InvalidOptionError, match=rf"(Metric|GEval)\.{flag} is 'no'\. Give True or False"):
        metric(**{flag: "no"})


@pytest.mark.parametrize(
    "metric",
    [
        ExactMatchMetric,
        partial(PatternMatchMetric, pattern="a"),
        ContainsMetric,
        LevenshteinMetric,
        TokenF1Metric,
        BLEUMetric,
        ChrFMetric,
        ROUGEMetric,
        ToolCorrectnessMetric,
        JsonCorrectnessMetric,
        partial(LatencyMetric, threshold=2),
        partial(CostMetric, threshold=2),
    ],
)
def test_who_asks_nobody_needs_no_judge(metric):
    case = LLMTestCase("?", "a", "a", tools_called=[], expected_tools=[], token_cost=1, completion_time=1)
    metric(model=["nobody/registered-this", "nor/this"]).measure(case)


def test_a_score_of_ones_own_may_ask_although_the_metric_that_it_extends_does_not():
    class Asks(ExactMatchMetric):
        async def score(self, test_case):
            return len((await self.ask("judge", "?")).completions[0].text)

    assert Asks(model=lambda question: "yes").measure(CASE).value == 3


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "The judge of AnswerRelevancyMetric, named by MODELGAUGE_JUDGE: There is no SUT 'nope'"),
        ({"model": "nope"}, "The judge of AnswerRelevancyMetric: There is no SUT 'nope'"),
    ],
)
def test_an_unknown_judge_is_told_with_where_its_name_stands(settings, told, monkeypatch):
    monkeypatch.setenv("MODELGAUGE_JUDGE", "nope")
    metric = AnswerRelevancyMetric(**settings)
    with pytest.raises(UnknownNameError, match=told):
        metric.measure(CASE)
    with pytest.raises(UnknownNameError, match=told):
        evaluate(CASE, metric, print_results=False)


def test_a_metric_may_ask_a_sut_of_its_own_by_its_name():
    class Critical(Metric):
        def get_suts(self):
            return {"critic": FunctionSUT("critic", lambda question: "0.25")}

        async def score(self, test_case):
            return float((await self.ask("critic", "How good?")).completions[0].text)

    assert Critical().measure(CASE).value == 0.25


def test_a_plain_score_may_return_what_is_to_be_awaited():
    class Late(Metric):
        def score(self, test_case):
            return self.later()

        async def later(self):
            await asyncio.sleep(0)
            return 0.25

    assert Late().measure(CASE).value == 0.25


def test_a_judge_that_cannot_be_opened_is_told_of():
    class Shut(FunctionSUT):
        async def open(self):
            raise OSError("no way in")

    with pytest.raises(RunStoppedError, match="'shut' could not be opened: OSError: no way in"):
        Rated(model=Shut("shut", lambda question: "1")).measure(CASE)


def test_what_an_author_only_notes_for_a_while_can_be_deleted():
    class Noting(Metric):
        def __init__(self):
            super().__init__()
            self.draft = 1
            del self.draft

        def score(self, test_case):
            self._words = test_case.actual_output.split()
            number = len(self._words)
            del self._words
            return number

    metric = Noting()
    assert not hasattr(metric, "draft")
    assert metric.measure(CASE).value == 1
    assert not hasattr(metric, "_words")
