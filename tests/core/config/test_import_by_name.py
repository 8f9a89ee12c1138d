import sys

import pytest

from modelgauge.config.import_by_name import check_target, describe, import_target
from modelgauge.errors import PluginError


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A folder on sys.path; what is imported from it is forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_class_and_one_inside_another_are_found(package):
    (package / "target_pkg.py").write_text("class Outer:\n    class Inner: pass\n", encoding="utf-8")
    assert import_target("target_pkg:Outer", owner="x").__name__ == "Outer"
    assert import_target("target_pkg:Outer.Inner", owner="x").__qualname__ == "Outer.Inner"


@pytest.mark.parametrize("target", ["module", "", ":Class", "module:", 3, None])
def test_what_is_no_target_is_refused_without_an_import(target):
    with pytest.raises(PluginError, match="not a target"):
        check_target(target, owner="test 'x'")


def test_a_misspelt_attribute_is_suggested(package):
    (package / "target_pkg.py").write_text("class MySUT: pass\n", encoding="utf-8")
    with pytest.raises(PluginError, match=r"has no 'MySut'.*Did you mean 'MySUT'"):
        import_target("target_pkg:MySut", owner="'x'", distribution="my-plugin")


def test_a_missing_dependency_names_what_to_install(package):
    (package / "target_pkg.py").write_text("import no_such_sdk.client\n", encoding="utf-8")
    with pytest.raises(PluginError, match=r"'x' \(from my-plugin\).*no_such_sdk.*pip install no_such_sdk"):
        import_target("target_pkg:A", owner="'x'", distribution="my-plugin")


def test_a_missing_module_of_the_plugin_itself_is_not_to_be_installed_by_its_import_name():
    with pytest.raises(PluginError, match="reinstall my-plugin"):
        import_target("no_such_plugin.sut:A", owner="'x'", distribution="my-plugin")
    with pytest.raises(PluginError, match=r"Correct the target\.$"):
        import_target("no_such_plugin.sut:A", owner="'x'", distribution=__file__)


@pytest.mark.parametrize("line", ["raise SystemExit(3)", "1 / 0", "def"])
def test_whatever_the_import_raises_names_owner_and_cause(package, line):
    (package / "target_pkg.py").write_text(line, encoding="utf-8")
    with pytest.raises(
        PluginError, match=r"'x': importing 'target_pkg' failed: (SystemExit|ZeroDiv|SyntaxError)"
    ):
        import_target("target_pkg:A", owner="'x'")


def test_ctrl_c_during_an_import_passes(package):
    (package / "target_pkg.py").write_text("raise KeyboardInterrupt", encoding="utf-8")
    with pytest.raises(KeyboardInterrupt):
        import_target("target_pkg:A", owner="'x'")


def test_a_cause_is_one_line():
    assert describe(ValueError("a\n  b.")) == "ValueError: a b"
    assert describe(KeyError()) == "KeyError"
