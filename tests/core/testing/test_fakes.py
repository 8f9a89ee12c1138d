"""The fakes: real SUTs, annotators and tests that go through the engine."""

import pytest
from pydantic import BaseModel

from modelgauge import (
    ChatMessage,
    ChatPrompt,
    ProducesPerTokenLogProbabilities,
    SUTCompletion,
    SUTOptions,
    SUTResponse,
    TestItem,
    TextPrompt,
    run_test,
)
from modelgauge.testing import FakeAnnotator, FakeSUT, FakeTest, check_annotator, check_sut, check_test


class Tone(BaseModel):
    friendly: bool


def texts(record):
    return [
        completion.completion.text
        for item in record.test_item_records
        for interaction in item.interactions
        for completion in interaction.response.completions
    ]


def run(tmp_path, items, sut, **options):
    return run_test(FakeTest("t", items, **options), sut, data_dir=tmp_path)


def test_one_reply_to_everything(tmp_path):
    assert texts(run(tmp_path, ["a", "b"], FakeSUT("s", "No"))) == ["No", "No"]


def test_replies_by_prompt_and_an_unknown_prompt_fails_its_item(tmp_path):
    record = run(tmp_path, ["a", "b"], FakeSUT("s", {"a": "1"}))
    assert texts(record) == ["1"]
    assert record.test_item_exceptions[0].error_type == "MissingAnswerError"


def test_replies_of_a_function_see_text_and_chat(tmp_path):
    chat = ChatPrompt([ChatMessage(role="user", text="b")])
    sut = FakeSUT("s", lambda prompt: type(prompt).__name__)
    record = run(tmp_path, [TestItem([TextPrompt("a"), chat])], sut)
    assert texts(record) == ["TextPrompt", "ChatPrompt"]


def test_an_exception_is_raised_as_a_real_sut_would(tmp_path):
    (failed,) = run(tmp_path, ["a"], FakeSUT("s", ValueError("broken"))).test_item_exceptions
    assert (failed.stage, failed.error_type, failed.message) == ("sut", "ValueError", "broken")


def test_completions_and_responses_are_given_as_they_are(tmp_path):
    completion = SUTCompletion("x", metadata={"context": ["y"]})
    record = run(tmp_path, ["a"], FakeSUT("s", completion))
    assert record.test_item_records[0].interactions[0].response.completions[0].completion == completion
    response = SUTResponse(completions=[SUTCompletion("x"), SUTCompletion("y")])
    assert texts(run(tmp_path, ["a"], FakeSUT("s", response))) == ["x", "y"]


def test_what_options_ask_for_is_given(tmp_path):
    asked = TextPrompt("a", SUTOptions(num_completions=2, top_logprobs=3))
    record = run(tmp_path, [asked], FakeSUT("s", "two words", [ProducesPerTokenLogProbabilities]))
    assert texts(record) == ["two words", "two words"]
    logprobs = record.test_item_records[0].interactions[0].response.completions[0].completion.top_logprobs
    assert [position.top_tokens[0].token for position in logprobs] == ["two", "words"]
    assert all(len(position.top_tokens) == 3 for position in logprobs)


def test_prompts_are_kept_and_calls_are_those_that_were_paid(tmp_path):
    first, second = FakeSUT("s", "Yes"), FakeSUT("s", "Yes")
    run(tmp_path, ["a"], first)
    run(tmp_path, ["a"], second)
    assert [prompt.text for prompt in first.prompts] == [prompt.text for prompt in second.prompts] == ["a"]
    assert (len(first.calls), len(second.calls)) == (1, 0)


def test_other_replies_are_never_taken_from_the_cache(tmp_path):
    run(tmp_path, ["a"], FakeSUT("s", {"a": "1"}))
    assert texts(run(tmp_path, ["a"], FakeSUT("s", {"a": "2"}))) == ["2"]


@pytest.mark.parametrize("scripted", [Tone(friendly=True), lambda prompt, completion: Tone(friendly=True)])
def test_annotations_are_objects_of_their_class_from_the_cache_too(tmp_path, scripted):
    for _ in range(2):
        annotator = FakeAnnotator("tone", scripted, kind=Tone)
        seen = []
        run(
            tmp_path,
            ["a"],
            FakeSUT("s"),
            annotators={"tone": annotator},
            measure=lambda item: seen.append(item.annotation("tone", Tone)) or {"ok": 1},  # noqa: B023
        )
        assert seen == [Tone(friendly=True)]
    assert [(prompt.prompt.text, completion.text) for prompt, completion in annotator.calls] in (
        [],
        [("a", "Yes")],
    )


def test_an_annotator_can_fail(tmp_path):
    annotator = FakeAnnotator("tone", ValueError("no opinion"))
    (failed,) = run(tmp_path, ["a"], FakeSUT("s"), annotators={"tone": annotator}).test_item_exceptions
    assert (failed.stage, failed.message) == ("annotator", "no opinion")


def test_a_fake_test_measures_whether_there_is_an_answer_and_keeps_what_it_saw(tmp_path):
    test = FakeTest("t", ["a", TestItem(["b", "c"], id="pair")])
    record = run_test(test, FakeSUT("s", {"a": "x", "b": " ", "c": ""}), data_dir=tmp_path)
    assert [item.measurements for item in record.test_item_records] == [{"answered": 1.0}, {"answered": 0.0}]
    assert {item.test_item.id for item in test.measured} >= {"pair"}
    assert len(test.measured) == 2


def test_the_fakes_keep_what_they_promise():
    check_sut(FakeSUT("s", {"a": "b"}), call=False).raise_for_problems()
    check_sut(FakeSUT("s", "Yes"), call=True).raise_for_problems()
    check_annotator(FakeAnnotator("a", {"x": 1}), call=True).raise_for_problems()
    check_test(FakeTest("t", ["a", "b", "c"])).raise_for_problems()
