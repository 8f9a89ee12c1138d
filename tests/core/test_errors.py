"""The tree of errors: each is what its users catch, and ends with the fix."""

import inspect
import pickle

import pytest

from modelgauge import errors, load_record
from modelgauge.config.settings import load_settings
from modelgauge.evals import EvaluationDataset, Golden, LLMTestCase, Turn, evaluate
from modelgauge.metrics import ExactMatchMetric

CLASSES = [one for one in vars(errors).values() if inspect.isclass(one)]
OF_CALLS = (errors.ArgumentError, errors.DefinitionError)


@pytest.mark.parametrize("cls", CLASSES)
def test_wrong_use_is_a_value_error_and_wrong_arguments_are_a_type_error(cls):
    assert issubclass(cls, ValueError) == issubclass(cls, errors.UsageError)
    assert issubclass(cls, TypeError) == issubclass(cls, OF_CALLS)
    assert not issubclass(cls, OSError)  # those are retried


@pytest.mark.parametrize("cls", CLASSES)
def test_an_error_says_the_problem_and_the_fix_and_comes_back_from_another_process(cls):
    error = cls("It is broken.", fix="Repair it.")
    for one in (error, pickle.loads(pickle.dumps(error))):
        assert (type(one), str(one), one.problem, one.fix) == (
            cls,
            "It is broken. Repair it.",
            "It is broken.",
            "Repair it.",
        )


@pytest.mark.parametrize(
    ("use", "kind"),
    [
        (lambda: LLMTestCase(inptu="?"), ValueError),
        (LLMTestCase, ValueError),
        (lambda: LLMTestCase(input=1), ValueError),
        (lambda: Golden(input="?", expected="!"), ValueError),
        (lambda: Turn("robot", "Hello"), ValueError),
        (lambda: setattr(Golden("?"), "inptu", "?"), ValueError),
        (lambda: ExactMatchMetric(treshold=1), TypeError),
        (lambda: ExactMatchMetric(threshold="high"), ValueError),
        (lambda: ExactMatchMetric().measure(LLMTestCase("?")), ValueError),
        (lambda: evaluate([LLMTestCase("?", "!", "!")], ["no_such_metric"]), ValueError),
        (lambda: evaluate([LLMTestCase("?", "!", "!")], [ExactMatchMetric()], no_such=1), ValueError),
        (lambda: EvaluationDataset.from_file("missing.csv"), (OSError, ValueError)),
        (lambda: load_record("missing"), (OSError, ValueError)),
        (lambda: load_settings(concurrency="many"), ValueError),
    ],
)
def test_wrong_use_is_caught_as_with_other_libraries(use, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind) as caught:
        use()
    assert isinstance(caught.value, errors.ModelGaugeError)
