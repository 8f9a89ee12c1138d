from importlib import import_module

import pytest

from modelgauge.datasets.dataset import EvaluationDataset
from modelgauge.wording.did_you_mean import _INSTEAD, IN_DATA_SETS, closest, did_you_mean


def test_the_best_match_comes_first_whatever_its_case():
    assert closest("DEMO_YESNO", ["demo_maybe", "demo_yes_no"])[0] == "demo_yes_no"


def test_nothing_is_suggested_where_nothing_is_alike():
    assert did_you_mean("zzz", ["demo_yes_no"]) == ""
    assert did_you_mean("x", []) == ""


def test_the_sentence_stands_before_the_rest_of_a_fix():
    assert did_you_mean("demo_01x", ["demo_01"]) + "Else see the list." == (
        "Did you mean 'demo_01'? Else see the list."
    )


@pytest.mark.parametrize("module", ["modelgauge.evals", "modelgauge.metrics"])
def test_a_name_of_deepeval_that_is_not_here_says_what_to_use(module):
    for name in _INSTEAD:
        assert name not in dir(import_module(module))
        with pytest.raises(ImportError, match=f"{module} has no {name}: ") as caught:
            exec(f"from {module} import {name}")
        assert caught.value.name == name
        assert "None" not in str(caught.value)


@pytest.mark.parametrize("module", ["modelgauge", "modelgauge.evals", "modelgauge.metrics"])
def test_any_other_name_is_missed_as_in_any_module(module):
    assert not hasattr(import_module(module), "NoSuchMetric")
    with pytest.raises(ImportError, match="cannot import name 'NoSuchMetric'"):
        exec(f"from {module} import NoSuchMetric")


@pytest.mark.parametrize(
    ("module", "name", "home"),
    [
        ("modelgauge", "evaluate", "modelgauge.evals"),
        ("modelgauge", "GEval", "modelgauge.metrics"),
        ("modelgauge.evals", "GEval", "modelgauge.metrics"),
        ("modelgauge.metrics", "LLMTestCase", "modelgauge.evals"),
    ],
)
def test_a_name_of_another_module_says_where_it_is(module, name, home):
    with pytest.raises(ImportError, match=f"{module} has no {name}: import it from {home}"):
        exec(f"from {module} import {name}")


@pytest.mark.parametrize("name", [*IN_DATA_SETS])
def test_a_method_that_data_sets_of_deepeval_have_says_what_to_use(name):
    with pytest.raises(AttributeError, match=f"A data set has no '{name}'\\. [A-Z]"):
        getattr(EvaluationDataset(), name)
