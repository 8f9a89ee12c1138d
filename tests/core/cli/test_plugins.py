"""`plugins` and the lists: tables, notes, and what `plugins check` hands on; `test_look.py` has the rest."""

import sys

import pytest

from modelgauge.config.entry_points import PluginEntryPoint
from modelgauge.plugins import discovery

DISPUTED = """
import modelgauge
@modelgauge.hookimpl
def modelgauge_register_suts(register):
    register("disputed", "nowhere:Nothing")
"""
EMPTY = """
import modelgauge
@modelgauge.hookimpl
def modelgauge_register_suts(register):
    pass
"""
ADDS = """
import modelgauge
@modelgauge.hookimpl
def modelgauge_register_commands(cli):
    pass
"""


@pytest.fixture
def installed(here, monkeypatch):
    """Announce modules of the working directory as installed plugins, without a version."""

    def installed(**sources):
        for name, source in sources.items():
            (here / f"{name}.py").write_text(source, encoding="utf-8")
            monkeypatch.delitem(sys.modules, name, raising=False)
        found = [PluginEntryPoint(name, name, f"dist-{name}", "") for name in sources]
        monkeypatch.setattr(discovery, "installed_entry_points", lambda: found)
        monkeypatch.syspath_prepend(here)

    return installed


def test_the_table_says_of_each_plugin_what_it_registered(run, installed, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    installed(table_disputed=DISPUTED, table_empty=EMPTY, table_adds=ADDS, table_broken="1 / 0")
    ended = run("plugins", plugin=False)
    lines = [line.split() for line in ended.out.splitlines()]
    assert lines[0] == ["PLUGIN", "FROM", "VERSION", "LOADED", "IN", "REGISTERED"]
    rows = {line[0]: line for line in lines[1:] if line}
    assert rows["table_disputed"][1:3] == ["dist-table_disputed", "-"]
    assert rows["table_disputed"][4:] == ["ms", "1", "SUT"]
    assert rows["table_empty"][4:] == ["ms", "nothing"]
    assert rows["table_adds"][4:] == ["ms", "register_commands"]
    failed = "FAILED table_broken (from dist-table_broken)\n  ZeroDivisionError: division by zero"
    assert f"\n\n{failed}" in ended.out
    data = run("plugins", "--json", plugin=False).json
    assert data.keys() == {"plugins", "failures", "conflicts"}
    (row,) = [one for one in data["plugins"] if one["name"] == "table_disputed"]
    assert 0 < row.pop("seconds") < 60
    assert row == {
        "name": "table_disputed",
        "distribution": "dist-table_disputed",
        "version": None,
        "module": "table_disputed",
        "registered": {"test": 0, "sut": 1, "annotator": 0, "metric": 0},
        "hooks": ["modelgauge_register_suts"],
    }
    (failure,) = data["failures"]
    assert failure.pop("traceback").startswith("Traceback (most recent call last)")
    assert failure == {
        "name": "table_broken",
        "distribution": "dist-table_broken",
        "version": None,
        "cause": data["failures"][0]["cause"],
    }


def test_lists_say_what_may_be_missing_and_what_is_disputed(run, installed):
    installed(list_one=DISPUTED, list_two=DISPUTED, list_broken="1 / 0", list_worse="1 / 0")
    for command in ("list", "list-tests"):
        assert run(command, plugin=False).err == (
            "Plugins that could not be loaded: list_broken, list_worse. `modelgauge plugins` says why.\n"
            "Claimed by two plugins: disputed. `modelgauge plugins` says by which.\n"
        )
    assert run("plugins", plugin=False).out.endswith(
        "\nCONFLICT sut disputed is claimed by dist-list_one and by dist-list_two\n"
    )


def test_what_a_list_says_where_there_is_little_or_nothing(run):
    assert run("list-tests", plugin=False).out == "There are no Tests.\n"
    assert run("list-secrets", plugin=False).out == "No plugin uses a secret.\n"
    shown = run("list", plugin=False).out
    assert shown.startswith("Tests (0)\n\nSUTs (1)\n  replay/…  modelgauge-framework\n\nAnnotators (0)\n\n")
    assert shown.endswith("\n1 plugin loaded.\n")
    assert run("list").out.endswith("\n2 plugins loaded.\n")
    assert run("list-suts", plugin=False).out.splitlines()[0].split() == ["UID", "FROM", "CLASS"]
    (row,) = run("list-suts", "--json", plugin=False).json["suts"]
    assert (row["uid"], row["provider"], row["distribution"]) == ("replay", True, "modelgauge-framework")
    assert row["class"] in run("list-suts", plugin=False).out


class Report:
    """Stands in for what the kit found."""

    def __init__(self, name):
        self.name, self.passed = name, name != "bad"

    def to_json(self):
        return {"name": self.name}

    def to_text(self, *, quiet):
        return f"{self.name}, {quiet}"


@pytest.fixture
def kit(monkeypatch):
    """What the kit is asked, by the name of the plugin."""
    asked = {}

    def check_plugin(name, **options):
        asked[name] = options
        return Report(name)

    monkeypatch.setattr("modelgauge.testing.check_plugin", check_plugin)
    return asked


def test_plugins_check_hands_on_what_it_is_given(run, here, kit, monkeypatch):
    monkeypatch.setenv("MODELGAUGE_PLUGINS", str(here / "plugin.py"))
    given = ("--example", "a/b", "--example", "c", "--call", "--data-dir", "data", "-q")
    ended = run("plugins", "check", "one", "bad", *given)
    assert (ended.code, ended.out) == (1, "one, True\n\nbad, True\n")
    assert kit.keys() == {"one", "bad"}
    assert kit["one"]["examples"] == ("a/b", "c")
    assert kit["one"]["call"] is True
    assert str(kit["one"]["data_dir"]) == "data"
    assert {str(here / "plugin.py"), "plugin.py"} >= {*map(str, kit["one"]["local"])} > set()
    ended = run("plugins", "check", "one", "bad", "--json")
    assert (ended.code, ended.json) == (1, {"passed": False, "plugins": [{"name": "one"}, {"name": "bad"}]})
    assert run("plugins", "check", "one", "--json").json["passed"] is True


def test_plugins_check_looks_at_the_local_files_where_nothing_is_named(run, kit):
    ended = run("plugins", "check")
    assert (ended.code, ended.out) == (0, "plugin.py, False\n")
    assert (kit["plugin.py"]["call"], kit["plugin.py"]["data_dir"]) == (False, None)
    refused = run("plugins", "check", plugin=False)
    assert refused.code == 2
    assert "There is nothing to check." in refused.err
