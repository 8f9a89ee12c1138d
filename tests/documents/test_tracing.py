"""deepeval.com/docs: evaluation-llm-tracing, evaluation-component-level-llm-evals, getting-started.

And confident-ai.com/docs: LLM tracing.
"""

import pytest


def test_a_component_with_a_test_case_made_at_runtime(reader):
    names = reader.run("""
from deepeval import assert_test, evaluate
from deepeval.dataset import Golden
from deepeval.metrics import AnswerRelevancyMetric
from deepeval.test_case import LLMTestCase
from deepeval.tracing import observe, update_current_span

@observe(metrics=[AnswerRelevancyMetric()])
def inner_component():
    # Anything: a call of a model, a retrieval, a tool.
    update_current_span(test_case=LLMTestCase(input="inner?", actual_output="Right. Wrong is wrong."))
    return

@observe
def llm_app(input: str):
    inner_component()
    return

result = evaluate(observed_callback=llm_app, goldens=[Golden(input="Hi!"), Golden(input="Ho!")])
assert_test(golden=Golden(input="Hi!"), observed_callback=llm_app)
""")
    for name in names["result"]:
        (data,) = name.metrics_data
        assert (data.component, data.score) == ("inner_component", 0.5)
        assert [span.name for span in name.spans] == ["llm_app", "inner_component"]


def test_components_that_are_defined_inside_of_the_app(reader):
    names = reader.run("""
from deepeval import evaluate
from deepeval.dataset import Golden
from deepeval.metrics import AnswerRelevancyMetric
from deepeval.test_case import LLMTestCase
from deepeval.tracing import observe, update_current_span

@observe()
def your_llm_app(input: str):
    def retriever(input: str):
        return ["A text from your store"]

    @observe(metrics=[AnswerRelevancyMetric()])
    def generator(input: str, retrieved_chunks):
        res = f"To {input}: {retrieved_chunks[0]}"
        update_current_span(test_case=LLMTestCase(input=input, actual_output=res))
        return res

    return generator(input, retriever(input))

result = evaluate(goldens=[Golden(input="this"), Golden(input="wrong that")], observed_callback=your_llm_app)
""")
    assert [name.success for name in names["result"]] == [True, False]
    assert names["result"].record.result["generator.AnswerRelevancyMetric"].value == 0.5


def test_an_agent_over_a_pipeline_over_a_generator(reader):
    names = reader.run("""
from typing import List

from deepeval import evaluate
from deepeval.dataset import Golden
from deepeval.metrics import AnswerRelevancyMetric, ContextualRelevancyMetric
from deepeval.test_case import LLMTestCase
from deepeval.tracing import observe, update_current_span

def retrieve_documents(query: str) -> List[str]:
    return ["A right text", "A wrong text"]

@observe(metrics=[AnswerRelevancyMetric()])
def generate_response(input: str) -> str:
    response = "Made of: " + input
    update_current_span(
        test_case=LLMTestCase(input=input, actual_output=response)
    )
    return response

@observe(name="RAG Pipeline", metrics=[ContextualRelevancyMetric()])
def rag_pipeline(query: str) -> str:
    docs = retrieve_documents(query)
    response = generate_response(docs[0])
    update_current_span(
        test_case=LLMTestCase(input=query, actual_output=response, retrieval_context=docs)
    )
    return response

@observe(type="agent")
def research_agent(query: str) -> str:
    initial_response = rag_pipeline(query)
    return generate_response(f"At first: {initial_response}")

golden = Golden(input="Does it rain?")
result = evaluate(goldens=[golden], observed_callback=research_agent)
""")
    (result,) = names["result"]
    assert [(data.component, data.score) for data in result.metrics_data] == [
        ("RAG Pipeline", 0.5),
        ("generate_response", 1),
        ("generate_response~2", 1),
    ]
    parents = {span.name: span.parent for span in result.spans}
    assert parents["RAG Pipeline"] == 0
    assert result.test_case.actual_output == "Made of: At first: Made of: A right text"


def test_spans_and_the_trace_say_what_their_test_cases_hold(reader):
    names = reader.run("""
from deepeval import evaluate
from deepeval.dataset import Golden
from deepeval.metrics import ContextualRelevancyMetric, FaithfulnessMetric
from deepeval.tracing import observe, update_current_span, update_current_trace

@observe(metrics=[ContextualRelevancyMetric()])
def retriever(query: str) -> list[str]:
    chunks = ["Right.", "Wrong is wrong."]
    update_current_span(input=query, retrieval_context=chunks)   # the span's test case
    update_current_trace(retrieval_context=chunks)               # part of that of the whole
    return chunks

@observe()
def llm_app(query: str) -> str:
    chunks = retriever(query)
    res = "An answer"
    update_current_span(input=query, output=res)
    update_current_trace(name="Questions", input=query, output=res)
    return {"text": res, "more": len(chunks)}

result = evaluate(
    goldens=[Golden(input="q", expected_output="e")], observed_callback=llm_app, metrics=[FaithfulnessMetric()]
)
""")
    (result,) = names["result"]
    assert result.test_case.retrieval_context == ["Right.", "Wrong is wrong."]
    assert (result.test_case.actual_output, result.test_case.expected_output) == ("An answer", "e")
    assert {data.component: data.score for data in result.metrics_data} == {None: 1, "retriever": 0.5}
    assert result.spans[0].output == "An answer"


def test_types_of_spans_and_what_is_worth_keeping_of_them(reader):
    names = reader.run("""
from deepeval import evaluate
from deepeval.dataset import Golden
from deepeval.metrics import AnswerRelevancyMetric
from deepeval.test_case import ToolCall
from deepeval.tracing import observe, update_current_span

@observe(type="retriever", embedder="text-embedding-3-small")
def retrieve(query: str) -> list[str]:
    return [query]

@observe(type="llm", model="gpt-4o")
def generate(prompt: str) -> str:
    return "Said of " + prompt

@observe(type="tool", description="Searches the web for a query.")
def web_search(query: str) -> str:
    return "Nothing"

@observe(type="agent", available_tools=["search", "calculator"])
def supervisor_agent(query: str) -> str:
    web_search(query)
    answer = generate(retrieve(query)[0])
    update_current_span(
        input=query,
        output=answer,
        tools_called=[ToolCall(name="web_search", input_parameters={"query": query})],
    )
    return answer

result = evaluate(goldens=[Golden(input="q")], observed_callback=supervisor_agent, metrics=[AnswerRelevancyMetric()])
""")
    (result,) = names["result"]
    assert {span.type: span.metadata for span in result.spans} == {
        "agent": {"available_tools": ["search", "calculator"]},
        "tool": {"description": "Searches the web for a query."},
        "retriever": {"embedder": "text-embedding-3-small"},
        "llm": {"model": "gpt-4o"},
    }
    assert result.test_case.tools_called[0].input_parameters == {"query": "q"}


def test_an_async_app_and_the_default_metric(reader):
    names = reader.run("""
from deepeval import assert_test
from deepeval.dataset import Golden
from deepeval.tracing import observe

@observe()
async def llm_app(input: str):
    return f"The answer to {input}"

assert_test(golden=Golden(input="this"), observed_callback=llm_app)
""")
    with pytest.raises(AssertionError, match="Metric AnswerRelevancyMetric failed"):
        reader.run('assert_test(golden=Golden(input="what is wrong"), observed_callback=llm_app)')
    with pytest.raises(ValueError, match="must be decorated with '@observe'"):
        reader.run('assert_test(golden=Golden(input="this"), observed_callback=lambda input: input)')
    assert callable(names["llm_app"])
