"""Settings that a subclass declares are the defaults of its objects."""

import inspect
import re

import pytest

from modelgauge import FunctionSUT, Score, metrics
from modelgauge.errors import InvalidOptionError
from modelgauge.evals import LLMTestCase, assert_test, evaluate
from modelgauge.metrics import (
    ExactMatchMetric,
    GEval,
    JudgeMetric,
    LatencyMetric,
    Metric,
    PatternMatchMetric,
    Rubric,
)

CASE = LLMTestCase("q", "a", "a")


class Plain(Metric):
    threshold = 0.9
    include_reason = False

    def score(self, test_case):
        return Score(0.8, "why")


class WithInit(Metric):
    threshold = 0.9

    def __init__(self, words=3, **settings):
        super().__init__(**settings)
        self.words = words

    def score(self, test_case):
        return 0.8


class OwnDefault(Metric):
    threshold = 0.9  # for those who look at the class; the constructor has the last word

    def __init__(self, threshold=0.7):
        super().__init__(threshold=threshold)

    def score(self, test_case):
        return 0.8


class Below(OwnDefault):
    threshold = 0.2


class OfBuiltIn(ExactMatchMetric):
    threshold = 0.3


class Inherited(Plain):
    pass


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("modelgauge.evals.pytest_plugin._open", [])


@pytest.mark.parametrize(
    ("metric", "default"),
    [(Plain, 0.9), (WithInit, 0.9), (OwnDefault, 0.7), (Below, 0.2), (OfBuiltIn, 0.3), (Inherited, 0.9)],
)
def test_a_threshold_of_the_class_is_the_default_and_an_argument_wins(metric, default):
    assert metric().threshold == default
    assert metric(threshold=0.5).threshold == 0.5


def test_the_verdict_goes_by_it():
    assert not evaluate(CASE, Plain(), print_results=False).success
    with pytest.raises(AssertionError, match=r"score 0\.8 < threshold 0\.9"):
        assert_test(CASE, [WithInit()])
    assert evaluate(CASE, Plain(threshold=0.8), print_results=False).success


def test_the_other_settings():
    class Strict(Metric):
        strict_mode = True

        def score(self, test_case):
            return 0.99

    assert Strict().threshold == 1.0
    assert float(Strict().measure(CASE)) == 0.0
    assert float(Strict(strict_mode=False).measure(CASE)) == 0.99
    assert Plain().measure(CASE).reason is None
    assert Plain(include_reason=True).measure(CASE).reason == "why"


def test_judges_of_the_class():
    class Rated(Metric):
        needs_judge = True
        combine = "majority"

        def model(question):  # noqa: N805  a function, not a method
            return "0.4"

        async def score(self, test_case):
            return float((await self.ask("judge", "rate")).completions[0].text)

    class Several(Rated):
        model = (lambda question: "0", lambda question: "1", lambda question: "1")

    assert float(Rated().measure(CASE)) == 0.4
    assert float(Several().measure(CASE)) == 1.0
    assert float(Several(combine="mean").measure(CASE)) == pytest.approx(2 / 3)
    assert float(Several(model=lambda question: "0.1").measure(CASE)) == 0.1


def test_a_metric_that_needs_a_threshold_may_have_it_of_its_class():
    class Quick(LatencyMetric):
        threshold = 2

    assert Quick().threshold == 2
    with pytest.raises(InvalidOptionError, match="needs a threshold"):
        LatencyMetric()


@pytest.mark.parametrize("wrong", [{"threshold": "high"}, {"strict_mode": 1}, {"model": 3}])
def test_they_are_checked_like_arguments(wrong):
    with pytest.raises(InvalidOptionError):
        type("Wrong", (Plain,), wrong)()


def test_scores_that_are_kept_are_not_those_of_another_declaration():
    asked = []

    def judge(question):
        asked.append(question)
        return '{"score": 5, "reason": "as it is"}'

    def measured(**declared):
        graded = type("Graded", (GEval,), {"__module__": __name__, "__qualname__": "Graded", **declared})
        model = FunctionSUT("judge", judge, version=1)
        return graded("Grade", evaluation_steps=["Look."], model=model).measure(CASE)

    assert measured().reason == measured().reason == "as it is"
    assert len(asked) == 1
    assert measured(include_reason=False).reason is None
    assert len(asked) == 2  # the judge is told that no reason is wanted
    assert float(measured(strict_mode=True)) == 0.0
    assert len(asked) == 2  # which is no matter of the judge's


# --- the settings of every metric ---------------------------------------------------------------------------

NEEDED = {
    "GEval": {"name": "Kindness", "criteria": "Is it kind?"},
    "LatencyMetric": {"threshold": 0.7},
    "CostMetric": {"threshold": 0.7},
    "PatternMatchMetric": {"pattern": "a"},
}
OWN = {
    "BLEUMetric": {"tokenize": "char", "lowercase": True},
    "ChrFMetric": {"word_order": 2},
    "ROUGEMetric": {"rouge_type": "rouge1", "use_stemmer": True},
    "ContainsMetric": {"texts": ("a", "b"), "require": "any", "ignore_case": True},
    "PatternMatchMetric": {"pattern": "b+", "ignore_case": True},
    "ExactMatchMetric": {"ignore_case": True},
    "JsonCorrectnessMetric": {"expected_schema": list[int]},
    "ToolCorrectnessMetric": {
        "evaluation_params": ("output",),
        "should_consider_ordering": True,
        "should_exact_match": True,
    },
    "TurnRelevancyMetric": {"window_size": 3},
    "RoleAdherenceMetric": {"window_size": 3},
    "GEval": {
        "name": "Kindness",
        "criteria": "Is it polite?",
        "evaluation_steps": ("Read.",),
        "evaluation_params": ("context",),
        "rubric": (Rubric((0, 10), "any"),),
        "logprobs": False,
    },
}
CLASSES = [
    one
    for name in metrics.__all__
    if isinstance(one := getattr(metrics, name), type)
    and issubclass(one, Metric)
    and not inspect.isabstract(one)
    if one not in (Metric, JudgeMetric)
]


def held(metric, name):
    if isinstance(metric, GEval) and name == "evaluation_params":
        name = "required_params"
    if isinstance(metric, PatternMatchMetric):
        return metric.pattern.pattern if name == "pattern" else bool(metric.pattern.flags & re.IGNORECASE)
    return getattr(metric, name)


def made(cls, **settings):
    return cls(**{**NEEDED.get(cls.__name__, {}), **settings})


@pytest.mark.parametrize("cls", CLASSES)
def test_every_metric_goes_by_the_threshold_that_it_was_given(cls):
    for threshold in (0, 0.3, 0.9, 1):
        metric = made(cls, threshold=threshold)
        assert metric.threshold == threshold
        below, above = metric.is_successful(threshold - 0.01), metric.is_successful(threshold + 0.01)
        assert (below, above) == ((False, True) if metric.higher_is_better else (True, False))
    assert made(cls, threshold=None).threshold is made(cls, threshold=None).is_successful(0.3) is None


@pytest.mark.parametrize("cls", CLASSES)
def test_every_metric_takes_the_settings_of_all(cls):
    def judge(question):
        return "?"

    plain = made(cls)
    assert (plain.strict_mode, plain.include_reason, plain.model, plain.combine) == (
        False,
        True,
        None,
        "mean",
    )
    assert plain.translate_response(CASE, Score(0.95, "why")) == Score(0.95, "why")
    brief = made(cls, include_reason=False)
    assert brief.translate_response(CASE, Score(0.95, "why")) == Score(0.95, None)
    several = made(cls, model=[judge, judge], combine="majority")
    assert several.combine == "majority"
    assert len(several.get_suts()) == (0 if cls.asks_nobody else 2)
    assert made(cls, async_mode=False, verbose_mode=True).threshold == plain.threshold
    if cls.best_score is None:
        with pytest.raises(InvalidOptionError, match="cannot be strict"):
            made(cls, strict_mode=True)
        return
    strict = made(cls, strict_mode=True, threshold=0.3)
    assert (strict.strict_mode, strict.threshold) == (True, cls.best_score)
    said = [strict.translate_response(CASE, Score(value)).value for value in (0.95, cls.best_score)]
    assert said == [cls.worst_score, cls.best_score]


@pytest.mark.parametrize("cls", CLASSES)
def test_every_metric_keeps_the_arguments_of_its_own(cls):
    signature = inspect.signature(cls.__init__).parameters.values()
    names = {one.name for one in signature if one.kind is not one.VAR_KEYWORD} - {"self", "uid"}
    own = OWN.get(cls.__name__, {})
    assert own.keys() == names - inspect.signature(Metric.__init__).parameters.keys()
    for name, value in own.items():
        metric = made(cls, **{name: value})
        assert held(metric, name) == value
        assert held(made(cls), name) != value or name == "name"


def test_a_range_is_inherited_until_the_score_is_replaced():
    class Share(Metric):
        score_range = (0.0, 1.0)
        asks_nobody = True

    class Half(Share):
        def score(self, test_case):
            return 0.5

    class Points(Half):
        def score(self, test_case):
            return 50.0

    assert (Half.score_range, Half.asks_nobody) == ((0.0, 1.0), True)
    assert (Points.score_range, Points.asks_nobody) == (None, False)
