"""The public names of evals and metrics: each under every name that their users know."""

import pytest

from modelgauge import evals, metrics


def test_what_is_needed_on_both_sides_is_importable_from_both():
    both = set(evals.__all__) & set(metrics.__all__)
    params = {"LLMTestCaseParams", "MultiTurnParams", "SingleTurnParams", "ToolCallParams", "TurnParams"}
    assert both == params
    assert all(getattr(evals, name) is getattr(metrics, name) for name in both)


def test_the_old_and_the_new_names_of_parameters_are_one():
    assert evals.SingleTurnParams is evals.LLMTestCaseParams
    assert evals.MultiTurnParams is evals.TurnParams


@pytest.mark.parametrize("module", [evals, metrics])
def test_a_name_that_is_not_there_is_an_attribute_error(module):
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = module.no_such_name
