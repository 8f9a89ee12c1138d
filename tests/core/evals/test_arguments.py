"""What `assert_test` and `evaluate` take for metrics, and which settings of calls hold for them."""

import numpy as np
import pytest

from modelgauge import Runner
from modelgauge.errors import CallError, InvalidDataError, InvalidOptionError
from modelgauge.evals import LLMTestCase, assert_test, evaluate, observe
from modelgauge.metrics import Metric

CASE = LLMTestCase("q", actual_output="a", expected_output="a")

pytestmark = pytest.mark.usefixtures("here")


@pytest.mark.parametrize("judge", [assert_test, evaluate])
@pytest.mark.parametrize("wrong", [3, 0, {"match": "exact_match"}, lambda: None])
def test_what_is_neither_a_metric_nor_several_is_refused_with_what_to_give(judge, wrong):
    with pytest.raises(InvalidDataError, match=r"metrics is .*Give a list: metrics=\[ExactMatchMetric\(\)\]"):
        judge(CASE, wrong)


@pytest.mark.parametrize("several", [list, tuple, set, iter, lambda made: np.array(made, dtype=object)])
def test_several_metrics_may_come_in_anything_that_can_be_walked(several, match, length):
    with pytest.raises(AssertionError, match="Metric Length failed"):
        assert_test(CASE, several([match(), length(threshold=0)]))


@pytest.mark.parametrize("none", [[], (), {}, "", np.array([])])
def test_what_holds_no_metric_is_none(none):
    with pytest.raises(ValueError, match=r"^Both 'test_case' and 'metrics' must be provided together\.$"):
        assert_test(CASE, none)


def test_run_async_is_yes_or_no(match):
    with pytest.raises(InvalidOptionError, match="run_async is 'no'"):
        assert_test(CASE, [match()], run_async="no")


class Asking(Metric):
    needs_judge = True

    async def score(self, test_case):
        await self.ask("judge", test_case.input)
        return 1.0


@pytest.mark.parametrize("judge", [assert_test, evaluate])
def test_the_settings_say_how_often_a_failed_call_is_repeated(judge, monkeypatch):
    monkeypatch.setenv("MODELGAUGE_MAX_RETRIES", "0")
    asked = []

    def down(question):
        asked.append(question)
        raise ConnectionResetError("no judge")

    with pytest.raises(CallError, match="no judge"):
        judge(CASE, [Asking(model=down)])
    assert asked == ["q"]


def test_an_option_goes_before_the_settings(here):
    (here / "modelgauge.toml").write_text("concurrency = 7\ntimeout = 3\n", encoding="utf-8")
    options = Runner(concurrency=None).options
    assert (options.concurrency, options.attempt_timeout, options.max_retries) == (None, 3.0, 4)
    assert Runner(attempt_timeout=5).options.concurrency == 7


@pytest.mark.parametrize(("goldens", "told"), [(3, "goldens is 3"), ([], "There is no golden")])
def test_goldens_must_be_some(goldens, told, match):
    with pytest.raises(InvalidDataError, match=rf"{told}.*goldens=\[Golden\(input=…\)\]"):
        evaluate(goldens=goldens, observed_callback=observe(metrics=[match()])(lambda question: question))
