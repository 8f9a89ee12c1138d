import subprocess
import sys

import click
import pytest

from modelgauge.config.entry_points import PluginEntryPoint, installed_entry_points
from modelgauge.config.settings import Settings
from modelgauge.errors import NameCollisionError, PluginError, UnknownNameError
from modelgauge.plugins.discovery import discover

GOOD = """
from modelgauge import hookimpl

@hookimpl
def modelgauge_register_tests(register):
    register("{name}_test", "{name}_targets:Test")

@hookimpl
def modelgauge_register_suts(register):
    register("{name}_sut", "{name}_targets:SUT", size=1)
    register.provider("{name}", "{name}_targets:SUT")
"""
HALF = """
from modelgauge.plugins.hookspecs import hookimpl

@hookimpl
def modelgauge_register_suts(register):
    register("half_sut", "x:Y")

@hookimpl
def modelgauge_register_tests(register):
    register("half_test", "x:Y")
    {line}
"""
BROKEN = {
    "missing": ("import no_such_sdk", "ModuleNotFoundError: No module named 'no_such_sdk'"),
    "exits": ("raise SystemExit(1)", "SystemExit: 1"),
    "syntax": ("def", "SyntaxError"),
    "odd": ("class Odd(BaseException): pass\nraise Odd('x')", "Odd: x"),
    "raising": (HALF.format(line="raise RuntimeError('half way')"), "RuntimeError: half way"),
    "leaving": (HALF.format(line="raise SystemExit('gone')"), "SystemExit: gone"),
    "twice": (HALF.format(line="register('half_test', 'x:Z')"), "test 'half_test' is registered twice"),
    "bad_uid": (HALF.format(line="register('a b', 'x:Z')"), "white space"),
    "bad_target": (HALF.format(line="register('a', 'x')"), "not a target"),
    "hookless": ("x = 1", "It has no hooks"),
    "unknown": (
        HALF.format(line="").replace("modelgauge_register_tests", "modelgauge_register_test"),
        "no hook 'modelgauge_register_test'. Did you mean 'modelgauge_register_tests'",
    ),
    "argument": (
        HALF.format(line="").replace("register", "registry").replace("_registry_", "_register_"),
        "registry",
    ),
    "unmarked": (
        HALF.format(line="") + "def modelgauge_run_finished(record): pass\n",
        "modelgauge_run_finished is not",
    ),
    "wrapper": (
        HALF.format(line="yield").replace(
            "@hookimpl\ndef modelgauge_register_t", "@hookimpl(wrapper=True)\ndef modelgauge_register_t"
        ),
        "is a wrapper",
    ),
}


def found_in(site, plugins=()):
    return discover(plugins, installed_entry_points([str(site.folder)]))


def test_the_built_in_plugin_registers_as_others_do():
    plugins = discover(entry_points=())
    assert plugins.suts.providers == ["replay"]
    assert [(loaded.name, loaded.distribution) for loaded in plugins.loaded] == [
        ("builtin", "modelgauge-framework")
    ]
    assert plugins.loaded[0].version


def test_an_installed_plugin_is_found_and_its_targets_stay_unimported(site):
    site.plugin("good", GOOD.format(name="good"), version="1.5")
    plugins = found_in(site)
    assert plugins.tests.uids == ["good_test"]
    assert plugins.suts.uids == ["good_sut"]
    assert plugins.suts.providers == ["good", "replay"]
    assert not plugins.failures
    assert "good_targets" not in sys.modules
    loaded = plugins.loaded[1]
    assert (loaded.name, loaded.distribution, loaded.version) == ("good", "good-plugin", "1.5")
    assert loaded.module == "good_register"
    assert loaded.counts == {"test": 1, "sut": 2, "annotator": 0, "metric": 0}
    assert set(loaded.hooks) == {"modelgauge_register_tests", "modelgauge_register_suts"}
    site.module(
        "good_targets", "class SUT:\n    def __init__(self, uid, size): self.uid, self.size = uid, size\n"
    )
    assert plugins.suts.make("good_sut").size == 1


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_plugin_is_reported_and_breaks_nothing_else(site, kind):
    source, cause = BROKEN[kind]
    site.plugin("broken", source)
    site.plugin("zgood", GOOD.format(name="zgood"))
    site.plugin("agood", GOOD.format(name="agood"))
    plugins = found_in(site)
    [failure] = plugins.failures
    assert (failure.name, failure.distribution) == ("broken", "broken-plugin")
    assert cause in failure.cause
    assert "\n" not in failure.cause
    assert "Traceback" in failure.traceback
    assert plugins.tests.uids == ["agood_test", "zgood_test"]
    assert "half_sut" not in plugins.suts.uids
    assert [loaded.name for loaded in plugins.loaded] == ["builtin", "agood", "zgood"]


def test_ctrl_c_while_loading_passes(site):
    site.plugin("stopped", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        found_in(site)


def test_an_entry_point_can_name_an_object(site):
    site.module(
        "objects",
        "from modelgauge.plugins.hookspecs import hookimpl\n"
        "class Plugin:\n"
        "    @hookimpl\n"
        "    def modelgauge_register_tests(self, register):\n"
        "        register('from_object', 'x:Y')\n"
        "class Holder:\n"
        "    plugin = Plugin()\n",
    )
    site.distribution("objects", "objects = objects:Holder.plugin")
    plugins = found_in(site)
    assert plugins.tests.uids == ["from_object"]
    assert plugins.loaded[1].module == "objects"


def test_two_distributions_may_call_their_plugins_alike(site):
    for name in ("one", "two"):
        site.module(f"{name}_register", GOOD.format(name=name))
        site.distribution(name, f"plugin = {name}_register")
    assert found_in(site).tests.uids == ["one_test", "two_test"]


def test_one_module_under_two_names_is_one_plugin(site):
    site.module("one_register", GOOD.format(name="one"))
    site.distribution("one", "a = one_register\nb = one_register")
    site.distribution("one-renamed", "a = one_register")
    plugins = found_in(site)
    assert [loaded.name for loaded in plugins.loaded] == ["builtin", "a"]
    assert not plugins.failures


def test_two_plugins_of_one_distribution_share_its_uids(site):
    site.module("one_register", GOOD.format(name="same"))
    site.module("two_register", GOOD.format(name="same"))
    site.distribution("acme", "one = one_register\ntwo = two_register")
    plugins = found_in(site)
    assert [failure.name for failure in plugins.failures] == ["two"]
    assert "another plugin of acme" in plugins.failures[0].cause


def test_distributions_that_claim_one_uid_are_named_when_it_is_asked_for(site):
    for name in ("one", "two"):
        site.plugin(name, GOOD.format(name="same"))
    plugins = found_in(site)
    assert not plugins.failures
    assert plugins.tests.conflicts == {"same_test": ["one-plugin", "two-plugin"]}
    with pytest.raises(NameCollisionError, match="one-plugin and by two-plugin"):
        plugins.tests.make("same_test")


def test_seconds_are_measured_for_each_plugin(site):
    site.plugin("slow", "import time\ntime.sleep(0.05)\n" + GOOD.format(name="slow"))
    site.plugin("quick", GOOD.format(name="quick"))
    seconds = {loaded.name: loaded.seconds for loaded in found_in(site).loaded}
    assert seconds["slow"] >= 0.05
    assert seconds["quick"] > 0


def test_an_entry_point_to_nowhere_is_a_failure():
    plugins = discover(
        entry_points=[PluginEntryPoint("gone", "modelgauge.config.settings:gone", "acme", "3")]
    )
    assert [(failure.name, failure.announced_version) for failure in plugins.failures] == [("gone", "3")]
    assert "AttributeError" in plugins.failures[0].cause


@pytest.mark.parametrize("kind", ["tests", "suts", "annotators", "metrics"])
def test_a_name_that_is_not_found_mentions_broken_plugins(kind, site):
    site.plugin("broken", "1 / 0")
    with pytest.raises(UnknownNameError, match="could not be loaded: broken"):
        getattr(found_in(site), kind).make("whatever")


# --- local plugins --------------------------------------------------------------------------------


def test_a_local_file_is_a_plugin(site):
    source = (
        GOOD.format(name="mine").replace('"mine_targets:Test"', "Test")
        + "class Test:\n    def __init__(self, uid): self.uid = uid\n"
    )
    file = site.module("mine", source)
    plugins = discover([str(file), str(file), str(site.folder / "." / "mine.py")], entry_points=())
    [_, loaded] = plugins.loaded
    assert loaded.name == str(file)
    assert loaded.distribution == loaded.module == str(file.resolve())
    assert loaded.version == ""
    made = plugins.tests.make("mine_test")
    assert type(made).__module__ == str(file.resolve())


def test_a_target_in_a_local_file_can_be_named_too(site):
    file = site.module(
        "mine",
        "from modelgauge import hookimpl\n"
        "@hookimpl\n"
        "def modelgauge_register_suts(register):\n"
        "    register('mine', f'{__name__}:MySUT')\n"
        "class MySUT:\n    def __init__(self, uid): self.uid = uid\n",
    )
    assert discover([str(file)], entry_points=()).suts.make("mine").uid == "mine"


@pytest.mark.parametrize("kind", sorted(set(BROKEN) - {"hookless"}))
def test_a_broken_local_plugin_ends_it(site, kind):
    source, cause = BROKEN[kind]
    file = site.module("mine", source)
    with pytest.raises(PluginError) as caught:
        discover([str(file)], entry_points=())
    assert cause.partition(": ")[0] in str(caught.value)
    assert str(caught.value).startswith(f"--plugin {file}")


def test_a_local_file_without_hooks_is_told_how(site):
    with pytest.raises(PluginError, match=r"(?s)It has no hooks.*@hookimpl") as caught:
        discover([str(site.module("mine", "class MyTest: pass"))], entry_points=())
    assert "def modelgauge_register_tests(register)" in str(caught.value)


def test_an_installed_module_asked_for_again_is_the_same_plugin(site):
    site.plugin("good", GOOD.format(name="good"))
    plugins = found_in(site, ["good_register"])
    assert [loaded.name for loaded in plugins.loaded] == ["builtin", "good"]


# --- other hooks ----------------------------------------------------------------------------------

OBSERVER = """
from modelgauge.plugins.hookspecs import hookimpl
seen = []
@hookimpl
def modelgauge_item_finished(record, run_id):
    seen.append((run_id, record))
    {line}
@hookimpl
def modelgauge_run_finished():
    seen.append("end")
"""


def test_observers_are_called_and_cannot_break_a_run(site):
    site.plugin("watching", OBSERVER.format(line=""))
    site.plugin("breaking", OBSERVER.format(line="raise SystemExit('stop')"))
    plugins = found_in(site)
    for number in range(3):
        plugins.item_finished("r", number)
    plugins.run_finished(None)
    plugins.run_started({})
    for name in ("watching", "breaking"):
        assert sys.modules[f"{name}_register"].seen == [("r", 0), ("r", 1), ("r", 2), "end"]
    [failure] = plugins.failures
    assert (failure.name, failure.distribution) == ("breaking", "breaking-plugin")
    assert failure.cause == "modelgauge_item_finished: SystemExit: stop"


SETTINGS = """
from modelgauge import hookimpl
seen = []
@hookimpl
def modelgauge_run_started(settings): seen.append(settings)
@hookimpl
def modelgauge_item_finished(settings): seen.append(settings)
@hookimpl
def modelgauge_run_finished(settings): seen.append(settings)
@hookimpl
def modelgauge_register_commands(cli, settings): seen.append(settings)
"""


def test_hooks_get_the_settings_of_their_plugin(site):
    site.plugin("sender", SETTINGS)
    site.plugin("other", SETTINGS)
    mine = site.module("mine", SETTINGS)
    settings = Settings(of_plugins={"sender": {"send": True}, "mine": {"port": 1}})
    plugins = discover([str(mine)], installed_entry_points([str(site.folder)]), settings)
    plugins.run_started({})
    plugins.item_finished("r", None)
    plugins.run_finished(None)
    plugins.register_commands(click.Group("modelgauge"))
    assert plugins.failures == []
    for name, expected in {"sender_register": {"send": True}, "other_register": {}}.items():
        assert sys.modules[name].seen == 4 * [expected]
    assert sys.modules[str(mine.resolve())].seen == 4 * [{"port": 1}]


def test_settings_that_no_plugin_has_are_a_failure_and_a_warning(site):
    site.plugin("sender", SETTINGS)
    site.plugin("deaf", OBSERVER.format(line=""))
    settings = Settings(of_plugins={"sendr": {"send": True}})
    with pytest.warns(UserWarning, match=r"\[plugin\.sendr\]: There is no plugin 'sendr'.*mean 'sender'\?"):
        plugins = discover((), installed_entry_points([str(site.folder)]), settings)
    assert [failure.name for failure in plugins.failures] == ["[plugin.sendr]"]


def test_a_plugin_whose_hooks_take_no_settings_has_none(site):
    site.plugin("deaf", OBSERVER.format(line=""))
    with pytest.warns(UserWarning, match="no plugin 'deaf' that has settings"):
        discover((), installed_entry_points([str(site.folder)]), Settings(of_plugins={"deaf": {}}))


COMMANDS = """
from modelgauge.plugins.hookspecs import hookimpl
@hookimpl
def modelgauge_register_commands(cli):
    import click
    @cli.command("{name}")
    def command(): pass
    {line}
"""


def test_commands_of_a_plugin_that_raises_are_taken_back(site):
    site.plugin("fine", COMMANDS.format(name="fine", line=""))
    site.plugin("half", COMMANDS.format(name="half", line="1 / 0"))
    cli = click.Group("modelgauge", commands=[click.Command("run-test")])
    plugins = found_in(site)
    plugins.register_commands(cli)
    assert sorted(cli.commands) == ["fine", "run-test"]
    assert [failure.cause for failure in plugins.failures] == [
        "modelgauge_register_commands: ZeroDivisionError: division by zero"
    ]


# --- start-up -------------------------------------------------------------------------------------


def test_listing_imports_nothing_heavy():
    script = (
        "import sys\n"
        "from modelgauge import hookimpl\n"
        "from modelgauge.plugins.discovery import discover\n"
        "plugins = discover(entry_points=())\n"
        "uids = [registry.uids for registry in plugins.registries]\n"
        "from modelgauge.config.entry_points import installed_entry_points\n"
        "installed_entry_points()\n"
        "heavy = {'pydantic', 'numpy', 'aiohttp', 'asyncio', 'click', 'ssl', 'diskcache',\n"
        "         'importlib.metadata', 'email', 'json', 'tomllib', 'difflib', 'traceback', 'logging'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, encoding="utf-8"
    )
    assert ran.stdout.strip() == "[]"


def test_the_whole_of_it_in_an_interpreter_of_its_own(site):
    site.plugin("good", GOOD.format(name="good"))
    site.plugin("broken", "raise SystemExit(1)")
    script = (
        f"import sys; sys.path.insert(0, {str(site.folder)!r})\n"
        "from modelgauge.plugins.discovery import discover\n"
        "plugins = discover()\n"
        "failed = [failure.name for failure in plugins.failures]\n"
        "print('good_test' in plugins.tests, 'broken' in failed,\n"
        "      sorted({'pydantic', 'numpy', 'aiohttp', 'asyncio', 'good_targets'} & set(sys.modules)))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, encoding="utf-8"
    )
    assert ran.stdout.strip() == "True True []"


def test_ctrl_c_in_a_hook_passes(site):
    stops = (
        "from modelgauge import hookimpl\n\n@hookimpl\ndef modelgauge_{}():\n    raise KeyboardInterrupt\n"
    )
    site.plugin("starting", stops.format("run_started"))
    site.plugin("commanding", stops.format("register_commands"))
    plugins = found_in(site)
    with pytest.raises(KeyboardInterrupt):
        plugins.run_started({})
    with pytest.raises(KeyboardInterrupt):
        plugins.register_commands(click.Group())
    assert not plugins.failures
    with pytest.raises(KeyboardInterrupt):
        found_in(site, [str(site.module("local", stops.format("register_tests")))])
