"""The public names: sorted, all there, each with a docstring, and the same for type checkers."""

import ast
import inspect
from importlib import import_module
from pathlib import Path

import pytest
from code_tree import tree_of

import modelgauge

LAZY = (
    "modelgauge",
    *(f"modelgauge.{part}" for part in ("evals", "metrics", "reports", "stats", "testing")),
)
MODULES = (*LAZY, "modelgauge.text")


@pytest.mark.parametrize("name", MODULES)
def test_all_is_sorted_and_there(name: str) -> None:
    module = import_module(name)
    assert list(module.__all__) == sorted(set(module.__all__))
    for public in module.__all__:
        assert getattr(module, public) is not None
        assert not public.startswith("_")
    assert set(module.__all__) <= set(dir(module))


@pytest.mark.parametrize("name", MODULES)
def test_public_names_explain_themselves(name: str) -> None:
    module = import_module(name)
    mute = [
        public
        for public in module.__all__
        if (inspect.isclass(value := getattr(module, public)) or inspect.isfunction(value))
        and not (value.__doc__ or "").strip()
    ]
    assert mute == []


@pytest.mark.parametrize("package", LAZY)
def test_type_checkers_see_the_same_names(package: str) -> None:
    """`__init__` imports each name for type checkers, and `lazy_names` reads these imports: both must agree."""
    module = import_module(package)
    seen = {
        alias.asname: getattr(import_module(str(node.module)), alias.name)
        for node in ast.walk(tree_of(Path(str(module.__file__))))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    assert seen == {name: getattr(module, name) for name in module.__all__}


@pytest.mark.parametrize("package", LAZY)
def test_all_names_can_be_imported_at_once(package: str) -> None:
    found: dict[str, object] = {}
    exec(f"from {package} import *", found)
    assert found.keys() - {"__builtins__"} == {*import_module(package).__all__}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'TextPromt'"):
        _ = modelgauge.TextPromt
