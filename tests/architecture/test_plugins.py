"""Plugins import the public names of modelgauge and no others, so that the library can change inside.

A plugin that requires one exact version of the library is released with it, and may be made of its parts.
"""

import ast
import tomllib
from importlib import import_module
from inspect import isclass

import pytest
from code_tree import name_of, plugin_files, tree_of

PUBLIC = ("modelgauge", "modelgauge.errors", "modelgauge.stats", "modelgauge.testing", "modelgauge.text")


def public_names(module: str) -> set[str]:
    """What may be imported from a public module."""
    found = import_module(module)
    own = {name for name, value in vars(found).items() if isclass(value) and value.__module__ == module}
    return set(getattr(found, "__all__", own))


def violations(tree: ast.Module) -> list[str]:
    """Imports that reach behind the public names."""
    wrong = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.partition(".")[0] == "modelgauge"]
            wrong += [f"line {node.lineno}: import {name}" for name in names if name not in PUBLIC]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "modelgauge":
            wrong += [
                f"line {node.lineno}: from {node.module} import {alias.name}"
                for alias in node.names
                if not is_public(str(node.module), alias.name)
            ]
    return wrong


def is_public(module: str, name: str) -> bool:
    return module in PUBLIC and (f"{module}.{name}" in PUBLIC or name in public_names(module))


def is_released_with_the_library(file) -> bool:
    package = next(one for one in file.parents if (one / "pyproject.toml").is_file())
    requires = tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "dependencies"
    ]
    return any(one.startswith("modelgauge-framework==") for one in requires)


APART = [file for file in plugin_files() if not is_released_with_the_library(file)]


@pytest.mark.parametrize("file", APART, ids=name_of)
def test_a_plugin_imports_public_names_only(file) -> None:
    assert violations(tree_of(file)) == []


@pytest.mark.parametrize(
    "line",
    [
        "from modelgauge.plugins.registry import Registry",
        "from modelgauge import registry",
        "import modelgauge.engine.calls.call",
        "from modelgauge.text.answers import split_reasoning",
        "def f():\n    from modelgauge.data.prompts import TextPrompt",
    ],
)
def test_what_lies_behind_is_noticed(line: str) -> None:
    assert len(violations(ast.parse(line))) == 1


@pytest.mark.parametrize(
    "line",
    [
        "from modelgauge import PromptResponseTest, stats",
        "from modelgauge.errors import CallError",
        "from modelgauge.stats import mean",
        "import modelgauge",
        "import json, modelgauge_openai.sut",
    ],
)
def test_what_is_public_is_not(line: str) -> None:
    assert violations(ast.parse(line)) == []
