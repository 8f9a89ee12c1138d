"""What registering may do: nothing but register. Broken plugins are really installed, or loaded by path."""

import pytest
from tests.core.testing.conftest import Checked

from modelgauge.testing import Status, check_plugin

SOUND = """
from modelgauge import InjectSecret, hookimpl

@hookimpl
def modelgauge_register_suts(register):
    register("kit_{name}", "{name}_sut:EchoSUT")
"""

SUT = """
import jinja2
from modelgauge import PromptResponseSUT, SUTCompletion, SUTResponse

class EchoSUT(PromptResponseSUT[str, str]):
    def translate_text_prompt(self, prompt): return prompt.text
    def evaluate(self, request) -> str: return request
    def translate_response(self, request, response): return SUTResponse(completions=[SUTCompletion(response)])
"""

ACTS = {
    "open('{folder}/left_behind.txt', 'w').close()": "writes {folder}/left_behind.txt",
    "import socket\nwith socket.socket(type=socket.SOCK_DGRAM) as one: one.connect(('127.0.0.1', 9))": (
        "connects to ('127.0.0.1', 9)"
    ),
    "import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', ''])": "starts a process",
    "print('Hello!')": "prints 'Hello!",
    "import logging; logging.basicConfig()": "configures logging",
}

# In the process that measures, the clock is put forward: a pause would have to be long beside an import under load.
A_MINUTE_LATER = """
import sys, time
if "pytest" not in sys.modules:
    time.perf_counter = lambda now=time.perf_counter: now() + 60
"""

BROKEN = {
    "eager": ("imports", "import {name}_sut", "jinja2"),
    "slow": ("import-cost", A_MINUTE_LATER, "at import"),
    "acting": ("side-effects", "\n".join(ACTS), "Do it where it is needed"),
    "raising": ("loads", "raise OSError('no licence')", "no licence"),
    "crashing": ("loads", "import sys; sys.exit(3)", "SystemExit"),
    "spaced": ("loads", "SPACE = ' '", "white space"),
}


def installed(site, name, extra=""):
    source = SOUND.format(name=name).replace("kit_spaced", "kit spaced")
    site.module(f"{name}_sut", SUT)
    site.plugin(name, f"{source}\n{extra.format(name=name, folder=site.folder.as_posix())}\n")
    return Checked(check_plugin(f"{name}-plugin"))


def test_a_sound_installed_plugin_keeps_every_promise(site):
    checked = installed(site, "sound")
    assert checked.report.passed
    assert {one.rule for one in checked.of("sound-plugin")} == {
        "loads",
        "imports",
        "import-cost",
        "side-effects",
    }
    assert not checked.report.warnings


@pytest.mark.parametrize("name", BROKEN)
def test_each_broken_registration_is_caught_by_exactly_its_rule(site, name):
    rule, extra, said = BROKEN[name]
    checked = installed(site, name, extra)
    assert checked.broken(f"{name}-plugin") == {rule}
    problems = [problem for problem in checked.report.problems if problem.rule == rule]
    assert said in " ".join(map(str, problems))
    assert all(problem.fix.strip() for problem in problems)


def test_each_act_is_told(site, capsys):
    checked = installed(site, "acting", "\n".join(ACTS))
    told = " ".join(problem.message for problem in checked.report.problems)
    for act in ACTS.values():
        assert act.format(folder=site.folder.as_posix()) in told


def test_what_does_not_load_is_not_looked_at_further(site):
    checked = installed(site, "raising", "raise OSError")
    statuses = {one.rule: one.status for one in checked.of("raising-plugin")}
    assert statuses.pop("loads") is Status.problem
    assert set(statuses.values()) == {Status.not_applicable}


def test_a_process_that_registration_ends_is_reported(site):
    # Not in the process of the test, for nothing can catch it.
    checked = installed(site, "dying", "import os, sys\nif 'pytest' not in sys.modules: os._exit(5)")
    assert "code 5: it printed no error." in checked.only("dying-plugin", "imports").message


def test_a_local_file_may_define_its_classes_in_itself(check_source):
    checked = check_source(
        SUT.replace("import jinja2", "from modelgauge import hookimpl")
        + """
@hookimpl
def modelgauge_register_suts(register): register("local", EchoSUT)
"""
    )
    assert checked.report.passed


def test_a_local_file_that_imports_an_sdk_is_caught(check_source):
    checked = check_source(
        """
import jinja2
from helper import NAME
from modelgauge import hookimpl
@hookimpl
def modelgauge_register_suts(register): register(NAME, "somewhere:Else")
""",
        beside={"helper.py": "NAME = 'local'"},
    )
    (finding,) = [problem for problem in checked.report.problems if problem.rule == "imports"]
    assert "jinja2" in finding.message
    assert "helper" not in finding.message.partition(".")[0]


def test_a_package_of_a_namespace_is_told_apart_from_its_sdk(site):
    package = site.folder / "acme_space" / "gauge"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "light.py").write_text("UID = 'acme_sut'", encoding="utf-8")
    (package / "register.py").write_text(
        "from modelgauge import hookimpl\nimport acme_space.sdk\nfrom acme_space.gauge.light import UID\n"
        "@hookimpl\ndef modelgauge_register_suts(register): register(UID, 'acme_space.gauge.sut:SUT')\n",
        encoding="utf-8",
    )
    (site.folder / "acme_space" / "sdk.py").write_text("", encoding="utf-8")
    site.distribution("acme-gauge", "acme = acme_space.gauge.register")
    checked = Checked(check_plugin("acme-gauge"))
    finding = checked.only("acme-gauge", "imports")
    assert finding.message.startswith("Registering imports acme_space.sdk.")
