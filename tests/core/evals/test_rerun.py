"""`resume` and `rescore` of runs that evals made: what works from Python, and what is told where it cannot."""

import json

import pytest

from modelgauge import FunctionSUT, PromptResponseTest, TestItem, load_record, rescore, resume, run_test
from modelgauge.errors import RecordError, UnknownNameError, UsageError
from modelgauge.evals import DatasetTest, EvaluationDataset, Golden, LLMTestCase, evaluate
from modelgauge.metrics import ExactMatchMetric, LevenshteinMetric, Metric, judging_by_default

GOLDENS = [Golden("a", expected_output="a"), Golden("b", expected_output="x")]


def goldens_test(metric, goldens=GOLDENS):
    return DatasetTest("mine", EvaluationDataset(goldens, name="mine"), [metric])


def cut(here, run_id):
    """Leave a run as if it had been killed when its first item was done."""
    folder = here / "run_data" / "runs" / run_id
    journal = folder / "items.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)  # as the items ended
    journal.write_bytes(min(lines, key=lambda line: json.loads(line)["index"]))
    (folder / "record.json").unlink()
    return run_id


@pytest.fixture
def killed(here, match):
    """A run of objects that nobody registered, killed after the first of its two items."""
    return cut(here, run_test(goldens_test(match()), FunctionSUT("echo", str)).run_id)


def test_a_run_of_objects_is_resumed_with_the_same_objects(killed, match):
    asked = []
    sut = FunctionSUT("echo", lambda text: asked.append(text) or text)
    with pytest.raises(RecordError, match="'echo' is not what it was"):
        resume(killed, test=goldens_test(match()), sut=sut)  # another function
    (record,) = resume(killed, test=goldens_test(match()), sut=FunctionSUT("echo", str))
    assert record.counts.scored == 2
    assert record.result["Match"].value == 0.75


@pytest.mark.parametrize("function", [resume, rescore])
def test_a_run_of_an_object_says_how_to_give_it_again(killed, function):
    with pytest.raises(RecordError) as refused:
        function(killed)
    assert "'mine'" in refused.value.problem or "'echo'" in refused.value.problem
    assert f"modelgauge.{function.__name__}('{killed}', test=…" in refused.value.fix


def test_a_name_that_was_given_is_told_as_it_is(killed, match):
    with pytest.raises(UnknownNameError):
        rescore(killed, test="nothing")
    with pytest.raises(RecordError, match="'echo'"):
        resume(killed, test=goldens_test(match()))


def test_an_object_with_other_goldens_is_refused(killed, match):
    mended = [GOLDENS[0], Golden("b", expected_output="b")]
    with pytest.raises(RecordError, match="The data set 'mine' is not what it was"):
        resume(killed, test=goldens_test(match(), mended), sut=FunctionSUT("echo", str))
    (record,) = rescore(killed, test=goldens_test(match(), mended[:1]))  # another test, which was asked for
    assert record.counts.scored == 1


def test_metrics_that_have_changed_are_not_mixed_with_what_they_were(killed, match):
    with pytest.raises(RecordError, match=r"'mine' is not what it was.*arguments"):
        resume(killed, test=goldens_test(match(threshold=0.9)), sut=FunctionSUT("echo", str))


class Judged(PromptResponseTest):
    """Names other annotators than it did, although it was made as it was."""

    annotators = ("ExactMatchMetric",)

    def make_test_items(self, dependencies):
        return [TestItem("a", context=GOLDENS[0], id="a"), TestItem("b", context=GOLDENS[1], id="b")]

    def get_annotators(self):
        known = {"ExactMatchMetric": ExactMatchMetric(), "LevenshteinMetric": LevenshteinMetric()}
        return {name: known[name] for name in self.annotators}

    def measure_quality(self, item):
        return {"n": 1}


def test_a_test_that_names_other_annotators_is_refused(here, monkeypatch):
    echo = FunctionSUT("echo", str)
    killed = cut(here, run_test(Judged("j"), echo).run_id)
    monkeypatch.setattr(Judged, "annotators", ("LevenshteinMetric",))
    with pytest.raises(RecordError, match="The annotators of 'j' are not what they were"):
        resume(killed, test=Judged("j"), sut=echo)


def test_another_default_judge_is_refused(here):
    class Asking(Metric):
        needs_judge = True

        async def score(self, test_case):
            return float((await self.ask("judge", "good?")).completions[0].text)

    echo = FunctionSUT("echo", str)
    with judging_by_default(FunctionSUT("one", lambda text: "1")):
        killed = cut(here, run_test(goldens_test(Asking()), echo).run_id)
    with (
        judging_by_default(FunctionSUT("other", lambda text: "0")),
        pytest.raises(RecordError, match="'other' is not what it was"),
    ):
        resume(killed, test=goldens_test(Asking()), sut=echo)
    with judging_by_default(FunctionSUT("one", lambda text: "1")):
        (record,) = resume(killed, test=goldens_test(Asking()), sut=echo)
    assert record.result["Asking"].value == 1


# --- outputs that were given ----------------------------------------------------------------------------


@pytest.fixture
def evaluated(here, match):
    """A run of evaluate."""
    return evaluate([LLMTestCase("a", "a", "a"), LLMTestCase("b", "b", "x")], match()).run_id


def test_a_run_of_evaluate_says_what_to_do_instead(here, evaluated):
    (record,) = resume(evaluated)  # it is complete, and there is nothing to do
    assert record.counts.scored == 2
    with pytest.raises(RecordError, match=r"given to evaluate.* Call it again"):
        rescore(evaluated)
    with pytest.raises(RecordError, match=r"given to evaluate.* Call it again"):
        resume(cut(here, evaluated))


def test_recorded_outputs_of_evaluate_can_be_measured_by_other_goldens_and_metrics(here, evaluated):
    EvaluationDataset(GOLDENS).save_as("csv", here, "goldens")
    (record,) = rescore(evaluated, dataset=here / "goldens.csv", metrics=["exact_match"])
    assert (record.test_uid, record.sut_uid) == ("goldens", "given_outputs")
    assert record.result["ExactMatchMetric"].value == 0.5
    (again,) = rescore(record.run_id)
    assert again.result == record.result


def test_a_test_and_metrics_are_one_too_many(evaluated, match):
    with pytest.raises(UsageError, match="by a test, by the metrics"):
        rescore(evaluated, test=goldens_test(match()), metrics=["exact_match"])


def test_the_manifest_names_the_data_set_of_an_object_too(here, killed):
    manifest = json.loads((here / "run_data" / "runs" / killed / "run.json").read_text(encoding="utf-8"))
    assert manifest["dataset"]["name"] == "mine"
    assert manifest["inputs"]["judge"] is None
    with pytest.raises(RecordError, match="no record"):
        load_record(killed)
