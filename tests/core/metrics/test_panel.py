"""Several judges, of which some give no score."""

import pytest

from modelgauge import FunctionSUT
from modelgauge.errors import CallError, InvalidResponseError
from modelgauge.evals import LLMTestCase, evaluate
from modelgauge.metrics import GEval, Metric

CASE = LLMTestCase("q", "a")


def good(question):
    return '{"score": 8, "reason": "fine"}'


def babbling(question):
    return "no idea"


def down(question):
    raise ValueError("out of order")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def panel(*judges, combine):
    return GEval("Grade", evaluation_steps=["Look."], model=list(judges), combine=combine)


@pytest.mark.parametrize("combine", ["mean", "majority"])
@pytest.mark.parametrize(
    ("failing", "error", "why"),
    [(babbling, InvalidResponseError, "no JSON object"), (down, CallError, "out of order")],
)
def test_a_case_has_no_score_where_a_judge_gives_none_and_the_judge_is_named(combine, failing, error, why):
    judges = (good, FunctionSUT("second", failing), good)
    with pytest.raises(error) as failed:
        panel(*judges, combine=combine).measure(CASE)
    told = str(failed.value)
    assert told.startswith("1 of 3 judges gave no score: judge_2 ('second'); ")
    assert f"the {combine} of the others would not be that of all" in told
    assert why in told
    result = evaluate(CASE, panel(*judges, combine=combine), ignore_errors=True, print_results=False)
    assert result.test_results[0].metrics_data[0].score is None
    assert "judge_2 ('second')" in result.test_results[0].metrics_data[0].error


def test_all_judges_that_failed_are_named():
    with pytest.raises(
        CallError, match=r"^2 of 3 judges gave no score: judge \('down'\), judge_3 \('babbling'\); "
    ):
        panel(down, good, babbling, combine="majority").measure(CASE)


def test_one_judge_alone_is_told_of_as_it_is():
    with pytest.raises(InvalidResponseError, match=r"^The judge of Grade replied twice"):
        panel(babbling, combine="majority").measure(CASE)


@pytest.mark.parametrize("grade", range(11))
def test_the_mean_of_equal_scores_is_that_score(grade):
    def judge(question):
        return f'{{"score": {grade}, "reason": "so"}}'

    metric = GEval(
        "Grade", evaluation_steps=["Look."], model=[judge, judge, judge], threshold=grade / 10, combine="mean"
    )
    score = metric.measure(CASE)
    assert score.value == grade / 10
    assert metric.is_successful(score)


def test_a_defect_of_the_metric_is_no_failure_of_its_judges():
    class Defective(Metric):
        needs_judge = True

        async def score(self, test_case):
            raise ZeroDivisionError("a defect")

    with pytest.raises(ZeroDivisionError, match=r"^a defect$"):
        Defective(model=[good, good]).measure(CASE)
