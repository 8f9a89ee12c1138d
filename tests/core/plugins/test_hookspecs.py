import inspect

import pytest

import modelgauge
from modelgauge.plugins import hookspecs

HOOKS = [name for name in dir(hookspecs) if name.startswith("modelgauge_")]


def test_the_hooks_are_these():
    assert HOOKS == [
        "modelgauge_item_finished",
        "modelgauge_register_annotators",
        "modelgauge_register_commands",
        "modelgauge_register_metrics",
        "modelgauge_register_suts",
        "modelgauge_register_tests",
        "modelgauge_run_finished",
        "modelgauge_run_started",
    ]


@pytest.mark.parametrize("name", HOOKS)
def test_each_hook_is_a_page_of_the_manual(name):
    hook = getattr(hookspecs, name)
    document = inspect.getdoc(hook)
    assert hasattr(hook, "modelgauge_spec")
    assert f"def {name}(" in document.partition("Example:")[2]
    for argument in inspect.signature(hook).parameters:
        assert f"{argument}:" in document.partition("Args:")[2]


def test_plugins_import_the_marker_from_the_package():
    assert modelgauge.hookimpl is hookspecs.hookimpl
