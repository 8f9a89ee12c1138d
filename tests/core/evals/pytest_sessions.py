"""Sessions of pytest: test files for them, what they leave, and a working directory in which none is open."""

from contextlib import contextmanager

import pytest

from modelgauge import load_record
from modelgauge.evals.inputs import forget_hyperparameters

TEST_FILE = """
import pytest
from modelgauge.evals import Golden, LLMTestCase, assert_test, log_hyperparameters, observe
from modelgauge.metrics import Metric

class Match(Metric):
    required_params = ("actual_output", "expected_output")

    def score(self, test_case):
        return 1.0 if test_case.actual_output == test_case.expected_output else 0.5

@log_hyperparameters(model="m", prompt_template="p")
def hyperparameters():
    return {"temperature": 1}

@pytest.mark.parametrize("number", range(6))
def test_number(number):
    answer = "wrong" if number == 3 else "right"
    assert_test(LLMTestCase(f"question {number}", answer, "right"), [Match(threshold=0.7)])

@observe(metrics=[Match()])
def app(question):
    return "right"

def test_app():
    assert_test(golden=Golden("q", expected_output="right"), observed_callback=app)

def test_without_modelgauge(): pass
"""

PASSING = """
from modelgauge.evals import LLMTestCase, assert_test
from modelgauge.metrics import Metric

class Always(Metric):
    def score(self, test_case):
        return 1.0

class Needy(Always):
    required_params = ("context",)

class Broken(Metric):
    def score(self, test_case):
        raise ZeroDivisionError("no way")
"""


@contextmanager
def outside_of_any_session(folder, monkeypatch):
    """Work in a folder without settings; nothing is logged, and no session of pytest is known."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("modelgauge.evals.pytest_plugin._open", [])
    for name in ("MODELGAUGE_JUDGE", "MODELGAUGE_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    forget_hyperparameters()
    yield folder
    forget_hyperparameters()


def records(project):
    return [load_record(run) for run in sorted((project / "run_data" / "runs").iterdir())]


def summary_of(output):
    """What a session says of its cases at its end."""
    return output.partition("= modelgauge =")[2].partition("short test summary")[0]


def shown_in(text, summary):
    """Whether a text is shown, broken into lines anywhere."""
    return "".join(text.split()) in "".join(summary.split())


def check_record(record, output):
    """The record of `TEST_FILE`, whoever ran it."""
    assert "Metric Match failed: score 0.5 < threshold 0.7" in output
    assert "6 of 7 test cases passed." in output
    assert record.run_id in output
    assert [item.test_item.id for item in record.test_item_records] == [
        *(f"test_app.py::test_number[{number}]" for number in range(6)),
        "test_app.py::test_app",
    ]
    assert (record.counts.items, record.counts.scored) == (7, 7)
    assert record.result["passed"].value == pytest.approx(6 / 7)
    assert record.thresholds == {}  # the tests do not agree on that of Match
    assert record.hyperparameters == {"model": "m", "prompt_template": "p", "temperature": 1}
    assert record.test_item_records[-1].spans[0].name == "app"
