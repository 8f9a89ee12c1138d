"""Prompts whose continuations are scored, through a run: calls, cache, journal, and scores that are missing."""

import json

import pytest

from modelgauge import (
    ChatMessage,
    ContinuationPrompt,
    FunctionSUT,
    PromptResponseSUT,
    ScoresContinuations,
    SUTCompletion,
    SUTOptions,
    SUTResponse,
    TestItem,
    load_record,
    run_test,
)
from modelgauge.errors import IncompatibleError
from modelgauge.testing import FakeSUT, FakeTest

PROMPT = ContinuationPrompt("The capital of France is", [" Paris", " <think>Lima</think>", " Rome"])


class Scorer(PromptResponseSUT[dict, list]):
    """Scores by the length of a text; `change` spoils the completions."""

    def __init__(self, uid):
        super().__init__(uid)

    def translate_continuation_prompt(self, prompt):
        context = (
            prompt.context if isinstance(prompt.context, str) else [each.text for each in prompt.context]
        )
        return {"context": context, "continuations": list(prompt.continuations)}

    def evaluate(self, request):
        return [-0.1 * len(text) for text in request["continuations"]]

    def translate_response(self, request, response):
        completions = [
            SUTCompletion(text, logprob=logprob, is_greedy=False, num_tokens=1)
            for text, logprob in zip(request["continuations"], response, strict=True)
        ]
        return SUTResponse(self.change(completions))

    def change(self, completions):
        return completions


def asking(*prompts):
    return FakeTest("asks", [TestItem([prompt]) for prompt in prompts], requires=(ScoresContinuations,))


def test_each_continuation_has_its_score_and_one_call_is_made(tmp_path):
    test = asking(PROMPT)
    record = run_test(test, Scorer("scorer"), data_dir=tmp_path)
    (item,) = test.measured
    scored = [each.completion for each in item.interactions[0].response.completions]
    expected = [(text, -0.1 * len(text)) for text in PROMPT.continuations]
    assert [(each.text, each.logprob) for each in scored] == expected
    assert all(each.reasoning is None for each in scored)  # a scored text is not split
    assert record.counts.sut_calls.paid == 1
    again = run_test(asking(PROMPT), Scorer("scorer"), data_dir=tmp_path)
    assert (again.counts.sut_calls.paid, again.counts.sut_calls.cached) == (0, 1)


def test_record_gives_prompts_and_scores_back(tmp_path):
    chat = ContinuationPrompt(
        [ChatMessage("user", "Who?"), ChatMessage("assistant", "It was")], ["me", "you"]
    )
    record = run_test(asking(PROMPT, chat), Scorer("scorer"), data_dir=tmp_path)
    read = load_record(record.run_id, data_dir=tmp_path)
    assert [item.test_item.prompts[0].prompt for item in read.test_item_records] == [PROMPT, chat]
    assert read.test_item_records == record.test_item_records
    line = json.loads((record.folder / "items.jsonl").read_text(encoding="utf-8").splitlines()[0])
    written = line["interactions"][0]["response"]["completions"][0]["completion"]
    assert written["logprob"] == pytest.approx(-0.6)
    assert "token_logprobs" not in written


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda found: found[:2], "2 completions with other texts than the 3 continuations"),
        (lambda found: found[::-1], "3 completions with other texts"),
        (
            lambda found: [found[0], found[1].replaced(logprob=None), found[2]],
            "no logprob for continuation 2 of 3",
        ),
        (
            lambda found: [each.replaced(is_greedy=None) for each in found],
            "no is_greedy for continuation 1 of 3",
        ),
        (
            lambda found: [each.replaced(num_tokens=None) for each in found],
            "no num_tokens for continuation 1 of 3",
        ),
        (lambda found: [each.replaced(logprob=0.5) for each in found], "logprob 0.5 for continuation 1 of 3"),
    ],
)
def test_missing_score_fails_the_item_and_is_no_answer(tmp_path, change, message):
    class Spoilt(Scorer):
        def change(self, completions):
            return change(completions)

    record = run_test(asking(PROMPT), Spoilt("scorer"), data_dir=tmp_path)
    (failed,) = record.test_item_exceptions
    assert message in failed.message
    assert record.test_item_records == ()


def test_number_of_completions_has_no_effect(tmp_path):
    class ManyCalls(Scorer):
        completions = "many_calls"

    options = SUTOptions(num_completions=3)
    record = run_test(asking(PROMPT), ManyCalls("scorer"), data_dir=tmp_path, sut_options=options)
    assert (record.counts.sut_calls.paid, record.counts.scored) == (1, 1)


def test_sut_without_the_capability_is_refused_before_any_call(tmp_path):
    asked = []
    with pytest.raises(IncompatibleError, match="needs ScoresContinuations"):
        run_test(asking(PROMPT), FunctionSUT("f", asked.append), data_dir=tmp_path)
    assert asked == []


def test_undeclared_need_fails_the_item(tmp_path):
    test = FakeTest("asks", [TestItem([PROMPT])], requires=())
    record = run_test(test, FunctionSUT("f", str.upper), data_dir=tmp_path)
    (failed,) = record.test_item_exceptions
    assert "takes no ContinuationPrompt" in failed.message


def test_fake_scores_its_reply_highest(tmp_path):
    test = asking(PROMPT)
    run_test(test, FakeSUT("fake", "Rome"), data_dir=tmp_path)
    scored = [each.completion for each in test.measured[0].interactions[0].response.completions]
    assert max(scored, key=lambda each: each.logprob).text == " Rome"
    assert [each.is_greedy for each in scored] == [False, False, True]
