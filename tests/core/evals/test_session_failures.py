"""Sessions of pytest that cannot keep their cases, or whose settings are wrong: pytest has its say all the same."""

import re
from pathlib import Path

import pytest
from pytest_sessions import records

SOURCE = """
from modelgauge.evals import LLMTestCase, assert_test
from modelgauge.metrics import ExactMatchMetric

def test_one():
    assert_test(LLMTestCase("one", "a", "a"), [ExactMatchMetric()])

def test_two():
    assert_test(LLMTestCase("two", "a", "a"), [ExactMatchMetric()])
"""

JUDGED = """
from modelgauge import FunctionSUT
from modelgauge.evals import LLMTestCase, assert_test
from modelgauge.metrics import Metric

class Agreed(Metric):
    async def score(self, test_case):
        answer = await self.ask("judge", test_case.input)
        return float(answer.completions[0].text)

def test_one():
    judge = FunctionSUT("judge", lambda question: "1", version=1)
    assert_test(LLMTestCase("one", "a", "a"), [Agreed(model=judge)])
"""


@pytest.fixture(autouse=True)
def temporary(here, monkeypatch):
    """Where sessions leave their cases."""
    (here / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(here / "temporary"))


def test_where_no_record_can_be_written_the_session_fails_and_says_where_its_cases_are(session, here):
    (here / "run_data").mkdir()
    (here / "run_data" / "runs").write_text("in the way", encoding="utf-8")
    code, output = session(source=SOURCE)
    assert code == 1
    assert "2 passed" in output
    assert "Traceback" not in output
    assert re.search(r"There is no record of this session: The folder \S+ cannot be made: ", output)
    assert "under pytest MODELGAUGE_DATA_DIR" in output
    left = Path(re.search(r"What its test cases left is in (\S+)", output)[1])
    assert (left / "items.jsonl").read_text(encoding="utf-8").count("\n") == 2


def test_a_session_whose_folder_is_removed_meanwhile_fails_and_says_so(session):
    removes = "\n\ndef test_removes():\n    import shutil\n    shutil.rmtree('run_data')\n"
    code, output = session(source=SOURCE + removes)
    assert code == 1
    assert "3 passed" in output
    assert re.search(
        r"There is no record of this session: \S+ cannot be written: .*removed meanwhile", output
    )
    assert "What its test cases left" not in output


def test_a_data_folder_that_cannot_be_made_is_told_without_the_ways_of_the_library(
    session, here, monkeypatch
):
    (here / "file").write_text("in the way", encoding="utf-8")
    monkeypatch.setenv("MODELGAUGE_DATA_DIR", str(here / "file" / "data"))
    code, output = session(source=JUDGED)
    assert code == 1
    assert "1 failed" in output
    assert "CacheError: The cache in " in output
    assert "under pytest MODELGAUGE_DATA_DIR" in output
    assert not re.search(r"store\.py|pathlib|session\.py", output)


def test_a_defect_at_the_end_of_a_session_is_told_with_its_traceback(session, here, monkeypatch):
    def broken(self, args):
        raise LookupError("a defect")

    monkeypatch.setattr("modelgauge.evals.session.Session.finish", broken)
    code, output = session(source=SOURCE)
    assert code == 1
    assert "2 passed" in output
    assert re.search(r"Traceback.*in broken.*LookupError: a defect", output, re.DOTALL)


@pytest.mark.parametrize("plugin", ["def broken(:", "raise LookupError('gone')"])
def test_cases_that_a_broken_plugin_stops_count(session, here, plugin):
    (here / "modelgauge.toml").write_text('plugins = ["broken.py"]\n', encoding="utf-8")
    (here / "broken.py").write_text(plugin, encoding="utf-8")
    code, output = session("--tb=short", source=SOURCE)
    assert code == 1
    assert "0 of 2 test cases passed." in output
    (record,) = records(here)
    assert (record.counts.items, record.counts.unscored) == (2, 2)
    assert {item.error_type for item in record.test_item_exceptions} == {"PluginError"}


def test_settings_that_are_wrong_are_told_in_the_users_lines(session, here):
    (here / "modelgauge.toml").write_text("judg = 3\n", encoding="utf-8")
    code, output = session(source=SOURCE)
    assert code == 1
    assert "there is no setting 'judg'" in output
    assert set(re.findall(r"^(\S+\.py):\d+: ", output, re.MULTILINE)) == {"test_app.py"}


def test_an_app_that_takes_something_else_than_a_question_is_told_in_the_users_lines(session, here):
    app = (
        "from modelgauge.evals import Golden, assert_test, observe\n"
        "@observe(metrics=['exact_match'])\n"
        "def app(question, user): return question\n"
        "def test_app(): assert_test(golden=Golden('q', expected_output='q'), observed_callback=app)\n"
    )
    code, output = session(source=app)
    assert code == 1
    assert "TypeError: app() missing 1 required positional argument: 'user'" in output
    assert set(re.findall(r"^(\S+\.py):\d+: ", output, re.MULTILINE)) == {"test_app.py"}
