"""The public names of evals: sorted, importable, and under every name that their users know."""

from importlib import import_module

import pytest

from modelgauge import evals


def test_all_is_sorted_and_is_what_the_modules_give():
    given = [name for names in evals._MODULES.values() for name in names]
    assert evals.__all__ == sorted(set(given)) == sorted(given)


@pytest.mark.parametrize("name", evals.__all__)
def test_every_name_is_importable_from_its_module(name):
    assert getattr(evals, name) is getattr(import_module(evals._HOME[name]), name)
    assert name in dir(evals)


def test_the_old_and_the_new_names_of_parameters_are_one():
    assert evals.SingleTurnParams is evals.LLMTestCaseParams
    assert evals.MultiTurnParams is evals.TurnParams


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = evals.no_such_name
