"""What observed functions do while a `FunctionSUT` answers stands in the record, and comes back from the cache."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from modelgauge import FunctionSUT, SUTCompletion, ToolCall, run_test
from modelgauge.evals import (
    DatasetTest,
    EvaluationDataset,
    Golden,
    LLMTestCase,
    in_this_trace,
    observe,
    update_current_span,
    update_current_trace,
)
from modelgauge.metrics import Metric

QUESTIONS = ("a", "b", "c")


@observe(type="retriever")
def look_up(text):
    return [f"about {text}"]


@observe(type="tool")
async def search(text):
    await asyncio.sleep(0)
    return text


class Kept(Metric):
    """Keeps the cases that it sees."""

    def __init__(self, uid="Kept", **settings):
        self.cases = []
        super().__init__(uid, **settings)

    def score(self, test_case):
        self.cases.append(test_case)
        return 1.0


@pytest.fixture
def ask(tmp_path):
    """Asks a function the questions of a data set; returns the records of the items, and what metrics saw."""

    def ask(function, version=None):
        dataset = EvaluationDataset([Golden(one, name=one) for one in QUESTIONS])
        metric = Kept()
        record = run_test(
            DatasetTest("t", dataset, [metric]), FunctionSUT("app", function, version), data_dir=tmp_path
        )
        assert record.counts.scored == len(QUESTIONS), record.test_item_exceptions
        return record, sorted(metric.cases, key=lambda case: case.input)

    return ask


def tree(item):
    names = {span.id: span.name for span in item.spans}
    return [(span.name, names.get(span.parent)) for span in item.spans]


@observe
def plain(question):
    look_up(question)
    return question


@observe
async def coroutine(question):
    look_up(question)
    return question


@observe
def around_a_coroutine(question):
    look_up(question)

    async def later():
        await search(question)
        return question

    return later()


@pytest.mark.parametrize("app", [plain, coroutine])
def test_the_spans_of_an_observed_app_stand_in_the_record_of_each_item(ask, app):
    record, _ = ask(app)
    for item in record.test_item_records:
        assert tree(item) == [(app.__name__, None), ("look_up", app.__name__)]
        assert item.spans[0].input == {"question": item.test_item.id}
        assert item.spans[1].output == [f"about {item.test_item.id}"]
        assert item.interactions[0].response.completions[0].completion.text == item.test_item.id


def test_a_plain_function_that_returns_a_coroutine_is_one_span_until_that_has_ended(ask):
    record, _ = ask(around_a_coroutine)
    for item in record.test_item_records:
        assert tree(item) == [
            ("around_a_coroutine", None),
            ("look_up", "around_a_coroutine"),
            ("search", "around_a_coroutine"),
        ]
        assert item.spans[0].output == item.test_item.id


async def of_async(question):
    await asyncio.gather(search(question), search(question))
    return question


def of_plain(question):
    return plain(question)


@pytest.mark.parametrize(
    ("function", "inner"),
    [
        (of_plain, [("plain", "app"), ("look_up", "plain")]),
        (of_async, [("search", "app")] * 2),
        (lambda question: of_async(question), [("search", "app")] * 2),  # noqa: PLW0108  what is tested
    ],
)
def test_a_function_that_is_not_observed_is_the_span_around_those_that_are(ask, function, inner):
    record, _ = ask(function)
    for item in record.test_item_records:
        assert tree(item) == [("app", None), *inner]
        assert (item.spans[0].input, item.spans[0].output) == (
            {"request": item.test_item.id},
            item.test_item.id,
        )


def test_spans_are_kept_over_threads_and_tasks_and_not_mixed_between_items(ask):
    gate = threading.Barrier(len(QUESTIONS))

    @observe
    def app(question):
        gate.wait(timeout=30)  # all items are under way at once
        with ThreadPoolExecutor(1) as pool:
            pool.submit(in_this_trace(look_up), question).result()
        thread = threading.Thread(target=in_this_trace(look_up), args=(question,))
        thread.start()
        thread.join()
        asyncio.run(of_async(question))
        return question

    record, _ = ask(app)
    for item in record.test_item_records:
        assert tree(item) == [("app", None), *[("look_up", "app")] * 2, *[("search", "app")] * 2]
        assert {span.input["text"] for span in item.spans[1:]} == {item.test_item.id}


def test_a_cached_answer_brings_its_spans_back(ask):
    calls = []

    @observe
    def app(question):
        calls.append(question)
        update_current_trace(retrieval_context=look_up(question))
        return question

    first, seen = ask(app, version=1)
    again, seen_again = ask(app, version=1)
    assert (again.counts.sut_calls.paid, again.counts.sut_calls.cached) == (0, 3)
    assert sorted(calls) == list(QUESTIONS)
    assert seen_again == seen
    assert [record.spans for record in again.test_item_records] == [
        record.spans for record in first.test_item_records
    ]
    assert [len(record.spans) for record in again.test_item_records] == [2, 2, 2]


def test_what_an_app_says_of_its_use_reaches_the_metrics(ask):
    @observe
    def app(question):
        update_current_trace(retrieval_context=look_up(question), token_cost=0.5, completion_time=2)
        update_current_span(tools_called=[ToolCall(name="look")])
        return question

    _, seen = ask(app)
    assert seen == [
        LLMTestCase(
            one,
            one,
            name=one,
            retrieval_context=[f"about {one}"],
            tools_called=[ToolCall(name="look")],
            token_cost=0.5,
            completion_time=2,
        )
        for one in QUESTIONS
    ]


def test_what_a_completion_holds_is_kept_beside_the_trace(ask):
    @observe
    def app(question):
        update_current_trace(token_cost=0.5)
        return SUTCompletion(question, metadata={"retrieval_context": ["own"], "mine": 1})

    record, seen = ask(app)
    assert [(case.retrieval_context, case.token_cost) for case in seen] == [(["own"], 0.5)] * 3
    completion = record.test_item_records[0].interactions[0].response.completions[0].completion
    assert completion.metadata["mine"] == 1


@pytest.mark.parametrize("given", [{"output": "told"}, {"test_case": LLMTestCase("x", "told")}])
def test_an_app_may_say_what_its_output_is(ask, given):
    @observe
    def app(question):
        update_current_trace(**given)
        return f"{question} with more than the user sees"

    record, seen = ask(app)
    assert [case.actual_output for case in seen] == ["told"] * 3
    assert record.test_item_records[0].spans[0].output == "a with more than the user sees"


def test_a_function_that_calls_nothing_observed_leaves_no_trace(ask):
    record, _ = ask(lambda question: question)
    completion = record.test_item_records[0].interactions[0].response.completions[0].completion
    assert completion.metadata == {}
    assert record.test_item_records[0].spans == ()


def test_an_observed_app_that_fails_fails_its_item_alone(tmp_path):
    @observe
    def app(question):
        if question == "b":
            raise LookupError(question)
        return question

    dataset = EvaluationDataset([Golden(one, name=one) for one in QUESTIONS])
    record = run_test(DatasetTest("t", dataset, [Kept()]), FunctionSUT("app", app), data_dir=tmp_path)
    (failed,) = record.test_item_exceptions
    assert (failed.test_item.id, failed.error_type) == ("b", "LookupError")
    assert [item.test_item.id for item in record.test_item_records] == ["a", "c"]
