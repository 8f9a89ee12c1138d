"""SUTs that are classes leave spans as functions do, paid or cached."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge import PromptResponseSUT, SUTCompletion, SUTResponse, TestItem, ToolCall
from modelgauge.data.spans import Span, Trace
from modelgauge.engine.bookkeeping.app_trace import AppReport, with_report, without_report
from modelgauge.evals import observe, update_current_span, update_current_trace

TOLD = AppReport(
    trace=Trace(
        name="app", started="2026-01-31T12:00:00+00:00", seconds=0.5, spans=(Span(id=0, name="a", start=0.0),)
    ),
    text='{"modelgauge_told":',
    metadata={"token_cost": 0.5},
)


@observe(type="retriever", metrics=["faithfulness"])
def look_up(text):
    return [f"about {text}"]


@observe(type="tool")
async def search(text):
    await asyncio.sleep(0)
    return text


class Plain(PromptResponseSUT[dict, dict]):
    """Its requests and responses are JSON objects."""

    def __init__(self, uid="mine"):
        super().__init__(uid)

    def translate_text_prompt(self, prompt):
        return {"q": prompt.text}

    def evaluate(self, request):
        look_up(request["q"])
        asyncio.run(search(request["q"]))
        update_current_trace(retrieval_context=["found"], tools_called=[ToolCall(name="look")])
        return {"a": "yes"}

    def translate_response(self, request, response):
        return SUTResponse([SUTCompletion(response["a"], metadata={"mine": 1}), SUTCompletion("another")])


class Async(Plain):
    async def evaluate(self, request):
        look_up(request["q"])
        await asyncio.gather(search(request["q"]))
        update_current_trace(retrieval_context=["found"], tools_called=[ToolCall(name="look")])
        return {"a": "yes"}


class Observed(Async):
    @observe(name="evaluate")
    async def evaluate(self, request):
        return await super().evaluate(request)


@pytest.fixture
def asked(make_test):
    def measure(item):
        return {"right": completion(item).text == "yes"}

    return make_test([TestItem(one, id=one) for one in ("a", "b")], measure=measure)


@pytest.fixture
def ask(asked, run):
    """`ask(sut)`: the record of a run on two items."""
    return lambda sut, **options: run(asked, sut, **options)


def tree(item):
    names = {span.id: span.name for span in item.spans}
    return [(span.name, names.get(span.parent)) for span in item.spans]


def completion(item):
    return item.interactions[0].response.completions[0].completion


@pytest.mark.parametrize(("cls", "root"), [(Plain, "mine"), (Async, "mine"), (Observed, "evaluate")])
@pytest.mark.parametrize("caching", [True, False])
def test_spans_and_what_was_told_stand_in_the_first_completion(ask, cls, root, caching):
    for item in ask(cls(), caching=caching).test_item_records:
        assert tree(item) == [(root, None), ("look_up", root), ("search", root)]
        assert item.spans[0].input == {"request": {"q": item.test_item.id}}
        assert item.spans[0].output == {"a": "yes"}
        assert item.spans[1].input == {"text": item.test_item.id}
        assert completion(item).tool_calls == (ToolCall(name="look"),)
        assert completion(item).metadata["mine"] == 1
        assert completion(item).metadata["retrieval_context"] == ["found"]
        assert item.interactions[0].response.completions[1].completion.metadata == {}


@pytest.mark.parametrize("cls", [Plain, Async])
def test_a_cached_answer_is_in_all_what_the_paid_one_was(ask, cls):
    first, again = ask(cls()), ask(cls())
    assert (again.counts.sut_calls.paid, again.counts.sut_calls.cached) == (0, 2)
    assert [record.interactions for record in again.test_item_records] == [
        record.interactions for record in first.test_item_records
    ]
    assert [len(record.spans) for record in again.test_item_records] == [3, 3]


def test_items_that_ask_the_same_share_the_spans_of_the_one_call(asked, ask):
    asked.items = lambda: [TestItem("a", id=name) for name in ("one", "two")]
    record = ask(Async())
    assert record.counts.sut_calls.paid == 1
    assert [len(one.spans) for one in record.test_item_records] == [3, 3]


def test_a_dry_run_reads_cached_answers_with_what_was_told(asked, ask, make_annotator, runner):
    asked.annotators = {"judge": make_annotator(lambda prompt, text: 1.0)}
    ask(Async())
    (plan,) = runner().plan(asked, Async())
    assert (plan.sut_calls.cached, plan.annotator_calls.cached) == (2, 4)
    assert (plan.sut_calls.paid, plan.annotator_calls.paid) == (0, 0)


def test_metrics_of_spans_judge_nothing_in_a_run_which_says_so(ask):
    for _ in ("paid", "cached"):
        (note,) = ask(Async()).notes
        assert note.startswith(
            "Metrics of observed functions judged nothing here: faithfulness of 'look_up'."
        )
        assert "evaluate(goldens=…, observed_callback=…)" in note


def test_many_such_metrics_are_counted(ask):
    class Many(Async):
        async def evaluate(self, request):
            update_current_span(metrics=[f"m{number}" for number in range(8)])
            return {"a": "yes"}

    (note,) = ask(Many()).notes
    assert "m4 of 'mine' and 3 more." in note


def test_nothing_is_said_where_no_function_has_metrics(ask):
    class Without(Async):
        async def evaluate(self, request):
            await search(request["q"])
            return {"a": "yes"}

    record = ask(Without())
    assert record.notes == ()
    assert [len(one.spans) for one in record.test_item_records] == [2, 2]


def test_a_batch_of_several_items_leaves_no_spans(ask):
    class Batched(Plain):
        def evaluate_batch(self, requests):
            return [{"a": look_up("x") and "yes"} for _ in requests]

    assert [record.spans for record in ask(Batched()).test_item_records] == [(), ()]


texts = st.one_of(st.text(), st.just('{"modelgauge_told":'), st.just('{"modelgauge_told":null,"response":1}'))


@given(texts, st.sampled_from([None, TOLD]))
def test_what_is_stored_gives_back_the_text_and_what_was_told(text, told):
    assert without_report(with_report(text, told)) == (text, told)


def test_where_nothing_was_told_the_answer_alone_is_stored():
    assert with_report('"yes"', None) == '"yes"'
