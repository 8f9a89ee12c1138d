"""A finding names the author's line: of the method that is wrong, or of the statement that raised."""

import re

import pytest

from modelgauge.testing import FakeSUT, check_sut, conformance

SOURCE = """
import random
from modelgauge import PromptResponseSUT, PromptResponseTest, SUTCompletion, SUTResponse, TestItem, hookimpl

class Sound(PromptResponseSUT[str, str]):
    def translate_text_prompt(self, prompt): return prompt.text
    def evaluate(self, request) -> str: return "Yes"
    def translate_response(self, request, response): return SUTResponse(completions=[SUTCompletion(response)])

class Counting(Sound):
    def translate_text_prompt(self, prompt):  # line of counting
        return f"{random.random()} {prompt.text}"

class Unmakeable(Sound):
    def __init__(self, uid):
        super().__init__(uid)
        int("not a number")  # line of unmakeable

class Mute(PromptResponseSUT):  # line of mute
    def translate_text_prompt(self, prompt): return prompt.text
    def evaluate(self, request) -> str: return "Yes"

class Failing(Sound):
    def evaluate(self, request) -> str:
        raise ValueError("quota is used up")  # line of failing

class RaisingItems(PromptResponseTest):
    def make_test_items(self, dependencies):
        yield TestItem("One")
        raise KeyError("answer")  # line of raising_items
    def measure_quality(self, item): return {"right": 1}

class FirstLetter(PromptResponseTest):
    def make_test_items(self, dependencies):
        yield TestItem("One")
    def measure_quality(self, item):
        return {"right": item.text.strip()[0] == "Y"}  # line of first_letter

@hookimpl  # line of bad*name
def modelgauge_register_suts(register):
    for uid, cls in {"counting": Counting, "unmakeable": Unmakeable, "mute": Mute, "failing": Failing}.items():
        register(uid, cls)
    register("bad*name", Sound)

@hookimpl
def modelgauge_register_tests(register):
    register("raising_items", RaisingItems)
    register("first_letter", FirstLetter)
"""


@pytest.fixture(scope="module")
def checked(check_source):
    return check_source(SOURCE, call=True)


@pytest.mark.parametrize("uid", re.findall(r"# line of (\S+)", SOURCE))
def test_the_line_is_the_authors(checked, uid):
    (finding,) = [problem for problem in checked.report.problems if problem.subject == uid]
    marked = [
        number for number, line in enumerate(SOURCE.splitlines(), 1) if line.endswith(f"# line of {uid}")
    ]
    assert re.fullmatch(rf".*plugin\.py:{marked[0]}", finding.where)
    assert str(finding).startswith(f"{finding.where}: ")


def test_a_failing_case_begins_with_the_line(tmp_path):
    file = tmp_path / "plugin.py"
    file.write_text(SOURCE, encoding="utf-8")
    cases = {case.id: case for case in conformance(str(file))["argvalues"]}
    with pytest.raises(AssertionError, match=r"^\S+plugin\.py:11: sut counting: deterministic: problem: "):
        cases["sut-counting-deterministic"].check()


def test_an_object_that_was_given_is_blamed_by_its_class(tmp_path):
    class Constant(FakeSUT):
        def translate_text_prompt(self, prompt):
            return "always the same"

    (finding,) = [
        problem for problem in check_sut(Constant("constant")).problems if problem.rule == "distinct"
    ]
    line = Constant.translate_text_prompt.__code__.co_firstlineno
    assert finding.where == f"{__file__}:{line}"


SIDE_EFFECTS = """
import subprocess, sys
import jinja2  # line of imports
from modelgauge import hookimpl
subprocess.run([sys.executable, "-S", "-c", ""])  # line of side-effects
@hookimpl
def modelgauge_register_suts(register): register("local", "somewhere:Else")
"""


def test_what_registering_does_is_blamed_by_line(check_source):
    problems = {problem.rule: problem for problem in check_source(SIDE_EFFECTS).report.problems}
    assert problems["imports"].where.endswith("plugin.py:3")
    assert problems["side-effects"].where.endswith("plugin.py:5")


def test_a_plugin_that_does_not_load_is_blamed_by_line(check_source):
    (finding,) = check_source("import sys\n\nraise OSError('no licence')\n").report.problems
    assert finding.where.endswith("plugin.py:3")
