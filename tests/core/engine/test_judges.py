"""Annotators that ask SUTs: cached, counted, limited, and without deadlock."""

# ruff: noqa: ASYNC110  what is waited for happens in a thread or another task

import asyncio

import pytest

from modelgauge import CompletionAnnotator, ProducesStructuredOutput
from modelgauge.errors import DefinitionError
from modelgauge.testing import FakeSUT


class Judge(CompletionAnnotator[bool]):
    """Asks its SUT whether an answer is right."""

    def __init__(self, uid, sut, name="judge"):
        super().__init__(uid)
        self.sut, self.name = sut, name

    identity_excludes = frozenset({"sut", "name"})

    def get_suts(self):
        return {"judge": self.sut}

    def translate_request(self, prompt, completion):
        return {"question": prompt.prompt.text, "answer": completion.text}

    async def annotate(self, request):
        response = await self.ask(self.name, f"Is {request['answer']} right for {request['question']}?")
        return response.completions[0].text

    def translate_response(self, request, response):
        return response == "yes"


def judged(make_test, judge, items=6):
    return make_test(
        items, annotators={"j": judge}, measure=lambda item: {"right": item.annotation("j", bool)}
    )


def test_a_judges_questions_are_calls_cached_and_counted(make_test, make_sut, run):
    sut, judge_sut = make_sut(lambda text: text.upper(), "answers"), make_sut(uid="judges")
    test = judged(make_test, Judge("judge", judge_sut))
    record = run(test, sut)
    assert record.result["right"].value == 1
    assert record.counts.judge_calls.paid == len(judge_sut.asked) == 6
    again = run(test, sut)
    assert again.counts.annotator_calls.cached == 6
    assert len(judge_sut.asked) == 6


def test_a_judge_that_asks_another_sut_is_another_judge(make_test, make_sut, run):
    sut = make_sut()
    first, second = make_sut("yes", "judge 1"), make_sut("no", "judge 2")
    values = [
        run(judged(make_test, Judge("judge", one)), sut).result["right"].value for one in (first, second)
    ]
    assert values == [1, 0]


def test_a_sut_can_judge_itself_through_one_place(make_test, make_sut, run):
    sut = make_sut()
    record = run(judged(make_test, Judge("judge", sut), 20), sut, concurrency=1)
    assert record.counts.scored == 20
    assert len(sut.asked) == 40


def test_a_name_that_a_judge_did_not_name_is_an_error_that_lists_those_it_did(make_test, make_sut, run):
    record = run(judged(make_test, Judge("judge", make_sut(uid="j"), name="jugde"), 1), make_sut())
    (failed,) = record.test_item_exceptions
    assert failed.stage == "annotator"
    assert "'jugde'" in failed.message
    assert "It names: judge" in failed.message


def test_a_judge_knows_what_its_sut_can_do(make_test, make_sut, run):
    class Wary(Judge):
        async def annotate(self, request):
            return sorted(capability.__name__ for capability in self.sut_capabilities("judge"))

        def translate_response(self, request, response):
            return "ProducesStructuredOutput" in response

    able = FakeSUT("able", capabilities=[ProducesStructuredOutput])
    values = [
        run(judged(make_test, Wary(f"of {one.uid}", one)), make_sut()).result["right"].value
        for one in (able, make_sut(uid="plain"))
    ]
    assert values == [1, 0]
    with pytest.raises(DefinitionError, match="outside a run"):
        Wary("wary", able).sut_capabilities("judge")


def test_a_judges_question_is_not_retried_twice_over(make_test, make_sut, run, slept):
    def fail(text):
        raise OSError("down")

    judge_sut = make_sut(fail, "judges")
    record = run(judged(make_test, Judge("judge", judge_sut), 1), make_sut())
    assert len(judge_sut.asked) == 5
    (failed,) = record.test_item_exceptions
    assert (failed.stage, failed.source_uid, failed.error_type) == ("annotator", "judge", "CallError")
    assert "down" in failed.message
    assert "in fail" in failed.traceback


def test_a_cap_that_a_judge_reaches_stops_the_run(make_test, make_sut, run, slept):
    record = run(
        judged(make_test, Judge("judge", make_sut(uid="j")), 5), make_sut(), max_calls=5, concurrency=1
    )
    assert record.failure.stage == "run"
    assert record.counts.failed == 0


def test_a_question_whose_first_asker_timed_out_is_asked_by_the_next(make_test, make_sut, run, accounted):
    """Two judges ask one question; the annotation that asked first is cut off, and the other goes on."""
    begun, release = [], asyncio.Event()

    class Impatient(Judge):
        def translate_request(self, prompt, completion):
            return prompt.prompt.text

        async def annotate(self, request):
            if request == "question 0":
                asking = asyncio.create_task(self.ask("judge", "same"))
                while not begun:
                    await asyncio.sleep(0)
                asking.cancel()
                release.set()
                raise ValueError("gave up")
            while not begun:
                await asyncio.sleep(0)
            return (await self.ask("judge", "same")).completions[0].text

    async def answer(text):
        begun.append(text)
        if len(begun) == 1:
            await asyncio.Event().wait()
        return "yes"

    judge_sut = make_sut(answer, "judges")
    record = accounted(run(judged(make_test, Impatient("judge", judge_sut), 2), make_sut()))
    assert (record.counts.scored, record.counts.annotator_errors) == (1, 1)
    assert begun == ["same", "same"]


def test_asking_outside_a_run_is_an_error(make_sut, make_test, runner):
    judge = Judge("judge", make_sut(uid="j"))
    ready, sut = runner(), make_sut()

    async def main():
        await ready.run_async([judged(make_test, judge, 1)], [sut])
        with pytest.raises(TypeError, match="outside a run"):
            await judge.ask("judge", "x")

    asyncio.run(main())
