"""Objects whose settings change between runs: the answers that are asked again, and the record of the change."""

import pytest

from modelgauge import FunctionSUT, PromptResponseSUT, SUTCompletion, SUTResponse, resume
from modelgauge.errors import RecordError
from modelgauge.evals import LLMTestCase, evaluate
from modelgauge.metrics import Metric


class App(PromptResponseSUT[str, str]):
    def __init__(self, uid="app", config=None):
        super().__init__(uid)
        self.temperature, self.config, self.calls = 0.0, config, 0

    def translate_text_prompt(self, prompt):
        return prompt.text

    def evaluate(self, request):
        self.calls += 1
        return f"{self.temperature} {self.config}"

    def translate_response(self, request, response):
        return SUTResponse([SUTCompletion(response)])


@pytest.fixture
def asked(make_test, run):
    """`asked(sut)`: the answer of a run, how many were paid, and the notes."""

    def of(sut):
        texts = []
        test = make_test(1, measure=lambda item: texts.append(item.text) or {"m": 1})
        record = run(test, sut)
        return texts[0], record.counts.sut_calls.paid, record.notes

    return of


def test_changed_setting_is_asked_again_and_noted(asked):
    sut = App()
    assert asked(sut) == ("0.0 None", 1, ())
    sut.temperature = 0.7
    assert asked(sut) == ("0.7 None", 1, ("'app' has changed since it was made: temperature is now 0.7.",))
    assert asked(sut)[:2] == ("0.7 None", 0)
    sut.temperature = 0.0
    assert asked(sut) == ("0.0 None", 0, ())
    assert asked(App())[:2] == ("0.0 None", 0)


def test_shared_dict_edited_in_place_is_asked_again(asked):
    config = {"k": [1]}
    sut = App(config=config)
    assert asked(sut)[:2] == ("0.0 {'k': [1]}", 1)
    config["k"].append(2)
    assert asked(sut)[:2] == ("0.0 {'k': [1, 2]}", 1)


def test_change_without_json_is_not_cached_for_that_run(asked):
    sut = App()
    assert asked(sut)[1:] == (1, ())
    sut.config = object()
    _, paid, (note,) = asked(sut)
    assert paid == 1
    assert note == "Not cached: 'app' has changed since it was made, to what has no exact JSON: config."
    sut.config = None
    assert asked(sut)[1:] == (0, ())


def test_record_has_settings_that_changed_and_resume_refuses_others(make_test, run, run_folder):
    sut = App()
    sut.temperature = 0.7
    record = run(make_test(2), sut, max_calls=1)
    assert record.sut_initialization["settings"] == {"temperature": 0.7}
    with pytest.raises(RecordError, match="settings changed"):
        resume(record.run_id, run_folder, test=make_test(2), sut=App())
    [resumed] = resume(record.run_id, run_folder, test=make_test(2), sut=sut, max_calls=2)
    assert resumed.failure is None


def test_record_of_unchanged_object_is_as_it_was(make_test, run):
    assert "settings" not in run(make_test(1), App()).sut_initialization


def test_judge_whose_setting_changed_is_asked_again(judged_class, make_test, run):
    sut = App()
    judge = judged_class("judge", lambda _prompt, _text: 1)
    judge.strict = False
    assert run(make_test(1, annotators={"one": judge}), sut).counts.annotator_calls.paid == 1
    judge.strict = True
    record = run(make_test(1, annotators={"one": judge}), sut)
    assert (record.counts.sut_calls.cached, record.counts.annotator_calls.paid) == (1, 1)
    assert record.annotators["one"]["settings"] == {"strict": True}


def test_judge_that_is_made_when_it_is_named_is_no_setting(judged_class, make_test, run):
    class Lazy(judged_class):
        judge, times = None, 0

        def get_suts(self):
            self.times += 1
            self.judge = self.judge or App("judge")
            return {"judge": self.judge}

    lazy, sut = Lazy("lazy", lambda _prompt, _text: 1), App()
    paid = []
    for _ in range(2):
        record = run(make_test(1, annotators={"one": lazy}), sut)
        assert "settings" not in record.annotators["one"]
        paid.append(record.counts.annotator_calls.paid)
    assert paid == [1, 0]


def test_evaluate_looks_at_metrics_and_their_judges_again(run_folder):
    judge = App("judge")

    class Judged(Metric):
        is_cheap = False

        async def score(self, test_case):
            return float((await self.ask("judge", test_case.input)).completions[0].text.split()[0])

    metric = Judged(model=judge, threshold=None)
    cases = [LLMTestCase(input="a", actual_output="b")]

    def score():
        return evaluate(cases, [metric], data_dir=run_folder).record.result["Judged"].value

    assert (score(), score(), judge.calls) == (0.0, 0.0, 1)
    judge.temperature = 0.5
    assert (score(), judge.calls) == (0.5, 2)


def test_metric_measured_outside_a_run_looks_again(monkeypatch, tmp_path):
    monkeypatch.setenv("MODELGAUGE_DATA_DIR", str(tmp_path))
    answers = []
    bot = FunctionSUT("bot", lambda _text: answers.append("0.5") or "0.5", version=1)

    class Judged(Metric):
        async def score(self, test_case):
            return float((await self.ask("judge", test_case.input)).completions[0].text)

    metric, case = Judged(model=bot), LLMTestCase(input="a", actual_output="b")
    assert [metric.measure(case).value for _ in range(2)] == [0.5, 0.5]
    assert len(answers) == 1
    bot.temperature = 1
    metric.measure(case)
    assert len(answers) == 2
