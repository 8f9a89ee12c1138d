"""The public names of evals and metrics: sorted, importable, and under every name that their users know."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

from modelgauge import evals, metrics

PUBLIC = [(module, name) for module in (evals, metrics) for name in module.__all__]


@pytest.mark.parametrize("module", [evals, metrics])
def test_all_is_sorted_and_is_what_the_modules_give_and_type_checkers_see(module):
    given = [name for names in module._MODULES.values() for name in names]
    assert module.__all__ == sorted(set(given)) == sorted(given)
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    seen = {
        alias.asname: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("modelgauge.")
        for alias in node.names
        if alias.asname
    }
    assert seen == module._HOME


@pytest.mark.parametrize(("module", "name"), PUBLIC)
def test_every_name_is_importable_from_its_module(module, name):
    assert getattr(module, name) is getattr(import_module(module._HOME[name]), name)
    assert name in dir(module)


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
