"""The conformance kit in a session of pytest, as authors of plugins run it."""

import re

from processes import in_process_of_its_own

PLUGIN = """
from modelgauge import PromptResponseSUT, SUTCompletion, SUTResponse, hookimpl
from modelgauge.errors import InputFileError

class Model(PromptResponseSUT[str, str]):
    def __init__(self, uid, model):
        super().__init__(uid)
        if model != "tiny":
            raise InputFileError(f"There is no model {model!r}.", fix="Choose tiny.")
    def translate_text_prompt(self, prompt): return "constant"
    def evaluate(self, request) -> str: return request
    def translate_response(self, request, response): return SUTResponse(completions=[SUTCompletion(response)])

@hookimpl
def modelgauge_register_suts(register):
    register.provider("acme", Model)
"""

THREE_LINES = """
import pytest
from modelgauge.testing import conformance

@pytest.mark.parametrize(**conformance('plugin.py', examples=['acme/tiny']))
def test_conformance(case):
    case.check()
"""


def test_three_lines_under_pytest(here):
    (here / "plugin.py").write_text(PLUGIN, encoding="utf-8")
    (here / "test_plugin.py").write_text(THREE_LINES, encoding="utf-8")
    done = in_process_of_its_own("pytest", "-q", "-p", "no:cacheprovider", "-W", "error", "test_plugin.py")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "FAILED test_plugin.py::test_conformance[sut-acme/tiny-distinct]" in done.stdout
    assert f"{here / 'plugin.py'}:10: sut acme/tiny: distinct: problem:" in done.stdout  # not a line of ours
    assert "modelgauge/testing" not in done.stdout.replace("\\", "/")
    assert "Put the prompt into the request." in done.stdout
    assert re.search(r"^1 failed, \d+ passed, [23] skipped", done.stdout, re.MULTILINE)
    assert not (here / "run_data").exists()
