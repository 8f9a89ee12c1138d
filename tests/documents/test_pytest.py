"""deepeval.com/docs: getting-started, evaluation-unit-testing-in-ci-cd, evaluation-flags-and-configs.

And the guide to regression testing in CI.
"""

from modelgauge import load_record


def only_record(reader):
    (run,) = (reader.folder / "run_data" / "runs").iterdir()
    return load_record(run)


def test_a_test_file_with_logged_hyperparameters(reader):
    reader.write(
        "test_file.py",
        """
import deepeval

from deepeval.metrics import AnswerRelevancyMetric, GEval
from deepeval.test_case import LLMTestCase, SingleTurnParams
from deepeval import assert_test

def test_llm():
    test_case = LLMTestCase(input="How old is it?", actual_output="It is old.")
    answer_relevancy_metric = AnswerRelevancyMetric()
    assert_test(test_case, [answer_relevancy_metric])

def test_correctness():
    correctness_metric = GEval(
        name="Correctness",
        criteria="Find out whether the 'actual output' says what the 'expected output' says.",
        evaluation_params=[SingleTurnParams.ACTUAL_OUTPUT, SingleTurnParams.EXPECTED_OUTPUT],
        threshold=0.5
    )
    test_case = LLMTestCase(
        input="How old is it?",
        # What your app answered
        actual_output="The wrong age.",
        expected_output="Not the wrong age."
    )
    assert_test(test_case, [correctness_metric])

# These should be what your app is really set to
@deepeval.log_hyperparameters(model="gpt-4.1", prompt_template="...")
def hyperparameters():
    return {
        "temperature": 1,
        "chunk size": 500
    }
""",
    )
    code, shown = reader.command("deepeval test run test_file.py")
    assert code == 1
    assert "Metric Correctness failed: score 0.4 < threshold 0.5, because: By the rule." in shown
    assert "1 of 2 test cases passed." in shown
    record = only_record(reader)
    assert record.hyperparameters == {
        "model": "gpt-4.1",
        "prompt_template": "...",
        "temperature": 1,
        "chunk size": 500,
    }
    assert record.counts.scored == 2


DATASETS = """
import pytest

from deepeval import assert_test
from deepeval.dataset import EvaluationDataset, Golden
from deepeval.metrics import AnswerRelevancyMetric, HallucinationMetric
from deepeval.test_case import LLMTestCase

first_test_case = LLMTestCase(input="one", actual_output="right", context=["so"])
second_test_case = LLMTestCase(input="two", actual_output="right", context=["wrong"])
dataset = EvaluationDataset(
    test_cases=[first_test_case, second_test_case]
)

@pytest.mark.parametrize(
    "test_case",
    dataset,
)
def test_customer_chatbot(test_case: LLMTestCase):
    hallucination_metric = HallucinationMetric(threshold=0.3)
    answer_relevancy_metric = AnswerRelevancyMetric(threshold=0.5)
    assert_test(test_case, [hallucination_metric, answer_relevancy_metric])

@pytest.mark.parametrize("test_case", dataset.test_cases)
def test_llm_app(test_case: LLMTestCase):
    assert_test(test_case=test_case, metrics=[AnswerRelevancyMetric()])
"""


def test_cases_of_a_data_set_over_several_processes(reader):
    reader.write("test_bulk.py", DATASETS)
    code, shown = reader.command("deepeval test run test_bulk.py -n 2")
    assert code == 1
    assert "Metric HallucinationMetric failed: score 1.0 > threshold 0.3" in shown
    assert "3 of 4 test cases passed." in shown
    record = only_record(reader)
    assert record.counts.items == 4
    assert record.result["AnswerRelevancyMetric"].n == 4


def test_goldens_for_an_observed_app(reader):
    reader.write(
        "somewhere.py",
        """
from deepeval.metrics import AnswerRelevancyMetric
from deepeval.test_case import LLMTestCase
from deepeval.tracing import observe, update_current_span

@observe(metrics=[AnswerRelevancyMetric()])
def generator(input: str):
    res = "An answer to " + input
    update_current_span(test_case=LLMTestCase(input=input, actual_output=res))
    return res

@observe()
def your_llm_app(input: str):
    return generator(input)
""",
    )
    reader.write(
        "test_llm_app.py",
        """
from somewhere import your_llm_app
import pytest
from deepeval.dataset import Golden
from deepeval import assert_test

goldens = [Golden(input="this"), Golden(input="the wrong one")]

# Loop through goldens using pytest
@pytest.mark.parametrize("golden", goldens)
def test_llm_app(golden: Golden):
    assert_test(golden=golden, observed_callback=your_llm_app)
""",
    )
    code, shown = reader.command("deepeval test run test_llm_app.py")
    assert code == 1
    assert "Metric AnswerRelevancyMetric failed in 'generator': score 0.0 < threshold 0.5" in shown
    names = [[span.name for span in item.spans] for item in only_record(reader).test_item_records]
    assert names == [["your_llm_app", "generator"]] * 2


FLAGS = """
from deepeval import assert_test
from deepeval.metrics import AnswerRelevancyMetric, FaithfulnessMetric
from deepeval.test_case import LLMTestCase

def test_right():
    case = LLMTestCase(input="Question A", actual_output="right")
    assert_test(case, [AnswerRelevancyMetric(), FaithfulnessMetric()])

def test_nobody_can_judge():
    case = LLMTestCase(input="Question B", actual_output="right")
    assert_test(case, [AnswerRelevancyMetric(model=lambda prompt: "No comment.")])
"""


def test_the_flags(reader):
    reader.write("test_example.py", FLAGS)
    code, shown = reader.command(
        "deepeval test run test_example.py --repeat 2 --no-caching --ignore-errors --skip-on-missing-params "
        "--display failing --identifier nightly"
    )
    assert code == 1
    assert "2 failed, 2 passed" in shown
    assert "Metric AnswerRelevancyMetric gave no score" in shown
    table = shown.rpartition("Test case ")[2].partition("test cases passed.")[0]
    assert "Question B" in table
    assert "Question A" not in table
    record = only_record(reader)
    assert record.identifier == "nightly"
    assert (record.counts.scored, record.counts.annotator_errors) == (1, 1)


def test_conversations(reader):
    reader.write(
        "test_chatbot.py",
        """
import pytest
from deepeval import assert_test
from deepeval.test_case import ConversationalTestCase, Turn
from deepeval.metrics import TurnRelevancyMetric

test_cases = [
    ConversationalTestCase(turns=[Turn(role="user", content="Hi"), Turn(role="assistant", content="Right here.")])
]

@pytest.mark.parametrize("test_case", test_cases)
def test_chatbot(test_case: ConversationalTestCase):
    assert_test(test_case=test_case, metrics=[TurnRelevancyMetric()])
""",
    )
    code, shown = reader.command("deepeval test run test_chatbot.py")
    assert code == 0, shown
    assert only_record(reader).result["passed"].value == 1


def test_the_letters_of_flags_are_pytests_own(reader):
    reader.write("test_nothing.py", "def test_nothing():\n    print('heard')\n")
    code, shown = reader.command("deepeval test run test_nothing.py -s -v")
    assert code == 0
    assert "heard" in shown
