import os
import sys

import pytest

from modelgauge.errors import PluginError
from modelgauge.plugins.local_plugins import load_local_plugin, module_name


def test_a_file_is_a_module_named_by_its_path(site):
    file = site.module("mine", "class MySUT: pass\n")
    module = load_local_plugin(str(file))
    assert module.__name__ == module.__file__ == module.MySUT.__module__ == str(file.resolve())
    assert sys.modules[str(file.resolve())] is module


def test_links_and_relative_paths_lead_to_one_name(site, tmp_path, monkeypatch):
    file = site.module("mine", "")
    monkeypatch.chdir(site.folder)
    assert module_name("mine.py") == module_name("./mine.py") == str(file.resolve())
    if os.name == "posix":
        (tmp_path / "link.py").symlink_to(file)
        assert module_name(str(tmp_path / "link.py")) == str(file.resolve())


def test_a_file_is_read_anew_each_time(site):
    file = site.module("mine", "x = 1\n")
    assert load_local_plugin(str(file)).x == 1
    site.module("mine", "x = 2\n")
    assert load_local_plugin(str(file)).x == 2
    assert not (site.folder / "__pycache__").exists()


def test_a_file_can_import_its_neighbours(tmp_path, site):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "local_neighbour.py").write_text("y = 3\n", encoding="utf-8")
    (folder / "mine.py").write_text("from local_neighbour import y\n", encoding="utf-8")
    assert load_local_plugin(str(folder / "mine.py")).y == 3
    assert sys.path[-1] == str(folder.resolve())


def test_a_module_is_imported_by_name_also_from_the_working_directory(site, tmp_path, monkeypatch):
    (tmp_path / "module_in_cwd.py").write_text("z = 1\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert load_local_plugin("module_in_cwd").z == 1


def test_what_is_not_there_is_said(site, tmp_path):
    with pytest.raises(PluginError, match=r"no\.py: there is no such file"):
        load_local_plugin(str(tmp_path / "no.py"))
    with pytest.raises(PluginError, match="this is a folder"):
        load_local_plugin(f"{tmp_path}/")
    with pytest.raises(PluginError, match="no_such_module: there is no file and no module"):
        load_local_plugin("no_such_module")
    with pytest.raises(PluginError, match=r"no_such\.module: there is no file and no module"):
        load_local_plugin("no_such.module")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1\nx = = 2\n", "line 2: SyntaxError: invalid syntax"),
        ("x = 1\n\nraise SystemExit('bye')\n", "line 3: SystemExit: bye"),
        ("def f():\n    1 / 0\nf()\n", "line 2: ZeroDivisionError"),
        ("import no_such_sdk\n", "line 1: ModuleNotFoundError: No module named 'no_such_sdk'"),
        ("import json\njson.loads('')\n", "line 2: JSONDecodeError"),
        ("class Odd(BaseException): pass\nraise Odd\n", "line 2: Odd"),
        ("x = '\0'\n", "SyntaxError|ValueError"),
    ],
)
def test_a_file_that_raises_is_named_with_the_line(site, source, message):
    file = site.module("mine", source)
    with pytest.raises(PluginError, match=message) as caught:
        load_local_plugin(str(file))
    assert str(file.resolve()) in str(caught.value)
    assert str(file.resolve()) not in sys.modules


def test_a_module_that_raises_is_named_with_the_line(site):
    file = site.module("broken_module", "\n\n1 / 0\n")
    with pytest.raises(PluginError, match=r"broken_module.*ZeroDivisionError"):
        load_local_plugin("broken_module")
    site.module("needs_more", "import no_such_sdk\n")
    with pytest.raises(PluginError, match=r"needs_more.*No module named 'no_such_sdk'"):
        load_local_plugin("needs_more")
    assert file.exists()


def test_a_file_that_breaks_leaves_the_earlier_module(site):
    file = site.module("mine", "")
    module = load_local_plugin(str(file))
    site.module("mine", "1 / 0")
    with pytest.raises(PluginError):
        load_local_plugin(str(file))
    assert sys.modules[str(file.resolve())] is module


def test_ctrl_c_passes(site):
    with pytest.raises(KeyboardInterrupt):
        load_local_plugin(str(site.module("mine", "raise KeyboardInterrupt")))
