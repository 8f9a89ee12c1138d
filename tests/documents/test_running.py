"""deepeval.com/docs: evaluation-introduction, evaluation-end-to-end-llm-evals, evaluation-flags-and-configs.

And the guide to optimizing hyperparameters.
"""

import pytest

from modelgauge.errors import MissingParameterError

CASES = """
from deepeval.test_case import LLMTestCase

test_cases = [
    LLMTestCase(input="one", actual_output="It is right."),
    LLMTestCase(input="two", actual_output="It is wrong."),
]
"""


def test_an_app_that_returns_its_answer_and_what_it_found(reader):
    names = reader.run("""
from deepeval import evaluate
from deepeval.dataset import EvaluationDataset, Golden
from deepeval.metrics import AnswerRelevancyMetric, FaithfulnessMetric
from deepeval.test_case import LLMTestCase

def your_llm_app(input: str):
    def retriever(input: str):
        return ["A text from your store"]

    def generator(input: str, retrieved_chunks):
        return "An answer from " + retrieved_chunks[0]

    retrieval_context = retriever(input)
    return generator(input, retrieval_context), retrieval_context

dataset = EvaluationDataset(goldens=[Golden(input="q")])
for golden in dataset.goldens:
    answer, retrieved_chunks = your_llm_app(golden.input)
    dataset.add_test_case(
        LLMTestCase(
            input=golden.input,
            actual_output=answer,
            retrieval_context=retrieved_chunks,
        )
    )

result = evaluate(
    test_cases=dataset.test_cases,
    metrics=[AnswerRelevancyMetric(), FaithfulnessMetric()],
)
""")
    (result,) = names["result"]
    assert [data.score for data in result.metrics_data] == [1, 1]
    assert result.test_case.retrieval_context == ["A text from your store"]


def test_positions_instead_of_names(reader):
    names = reader.run(
        CASES
        + """
from deepeval import evaluate
from deepeval.metrics import HallucinationMetric

test_case = LLMTestCase(input="q", actual_output="a", context=["It is so."])
metric = HallucinationMetric(threshold=0.7)
result = evaluate([test_case], [metric])
"""
    )
    assert names["result"].success


def test_configs(reader, capsys):
    names = reader.run(
        CASES
        + """
from deepeval import evaluate
from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig, ErrorConfig
from deepeval.metrics import AnswerRelevancyMetric

defaults = evaluate(
    test_cases=test_cases,
    metrics=[AnswerRelevancyMetric()],
    async_config=AsyncConfig(), display_config=DisplayConfig(), error_config=ErrorConfig(), cache_config=CacheConfig()
)
result = evaluate(
    test_cases=test_cases,
    metrics=[AnswerRelevancyMetric()],
    async_config=AsyncConfig(
        run_async=False,
        max_concurrent=20,
        throttle_value=0,
    ),
    display_config=DisplayConfig(display="failing", print_results=True, show_indicator=False),
    cache_config=CacheConfig(use_cache=False),
)
"""
    )
    assert (
        [name.success for name in names["defaults"]]
        == [name.success for name in names["result"]]
        == [True, False]
    )
    assert names["defaults"].record.counts.judge_calls.paid == 4
    assert names["result"].record.counts.judge_calls.paid == 4
    shown = capsys.readouterr().out
    assert shown.count("two ") == 2
    assert shown.count("one ") == 1


def test_what_becomes_of_missing_parameters_and_of_errors(reader):
    names = reader.run(
        CASES
        + """
from deepeval import evaluate
from deepeval.evaluate import ErrorConfig
from deepeval.metrics import AnswerRelevancyMetric, FaithfulnessMetric

metrics = [AnswerRelevancyMetric(), FaithfulnessMetric()]
result = evaluate(
    test_cases=test_cases,
    metrics=metrics,
    error_config=ErrorConfig(skip_on_missing_params=True)
)
unheard = evaluate(
    test_cases=test_cases,
    metrics=[AnswerRelevancyMetric(model=lambda prompt: "I would rather not say.")],
    error_config=ErrorConfig(ignore_errors=True)
)
"""
    )
    assert [len(name.metrics_data) for name in names["result"]] == [1, 1]
    assert [name.success for name in names["unheard"]] == [False, False]
    with pytest.raises(MissingParameterError, match="FaithfulnessMetric needs 'retrieval_context'"):
        reader.run("evaluate(test_cases=test_cases, metrics=metrics)")


def test_hyperparameters_of_several_runs(reader):
    names = reader.run(
        CASES
        + """
from deepeval import evaluate
from deepeval.metrics import AnswerRelevancyMetric

metric = AnswerRelevancyMetric()
results = []
for model in ["small", "large"]:
    for prompt_template in ["Be brief.", "Be kind."]:
        results.append(evaluate(
            test_cases=test_cases,
            metrics=[metric],
            hyperparameters={
                "model": model,
                "prompt template": prompt_template
            }
        ))
"""
    )
    logged = [result.record.hyperparameters for result in names["results"]]
    assert logged[2] == {"model": "large", "prompt template": "Be brief."}
    assert len({result.run_id for result in names["results"]}) == 4
    assert names["results"][3].record.counts.judge_calls.paid == 0  # the judge said it before


@pytest.mark.parametrize(
    ("decorator", "more"),
    [
        ("@deepeval.log_hyperparameters", {}),
        (
            '@deepeval.log_hyperparameters(model="gpt-4.1", prompt_template="…")',
            {"model": "gpt-4.1", "prompt_template": "…"},
        ),
    ],
)
@pytest.mark.parametrize("own", [{}, {"temperature": 1, "chunk size": 500}])
def test_log_hyperparameters(reader, decorator, more, own):
    names = reader.run(
        CASES
        + f"""
import deepeval
from deepeval.metrics import AnswerRelevancyMetric

{decorator}
def hyperparameters():
    return {own}

result = deepeval.evaluate(test_cases=test_cases, metrics=[AnswerRelevancyMetric()])
"""
    )
    assert names["result"].record.hyperparameters == {**more, **own}


def test_assert_test_outside_of_pytest(reader):
    reader.run(
        CASES
        + """
from deepeval import assert_test
from deepeval.metrics import AnswerRelevancyMetric

assert_test(test_cases[0], [AnswerRelevancyMetric()], run_async=True)
assert_test(test_case=test_cases[0], metrics=[AnswerRelevancyMetric()], run_async=False)
"""
    )
    with pytest.raises(
        AssertionError, match=r"Metric AnswerRelevancyMetric failed: score 0.0 < threshold 0.5"
    ):
        reader.run("assert_test(test_cases[1], [AnswerRelevancyMetric()])")
