"""What a secret leaves in the run of a session, and what cases leave whose process ended: real sessions of pytest."""

import pytest
from processes import in_process_of_its_own
from pytest_sessions import records, shown_in, summary_of

SECRET = "sk-4f9a7c21d0e8b6"
STANDS_FOR_IT = "[secret acme.api_key]"

PLUGIN = """
from modelgauge import (
    InjectSecret, PromptResponseSUT, RequiredSecret, SecretDescription, SUTCompletion, SUTResponse, hookimpl,
)
from modelgauge.data.responses import Usage

class Key(RequiredSecret):
    @classmethod
    def description(cls):
        return SecretDescription("acme", "api_key", "Ask for one.")

class Acme(PromptResponseSUT[str, str]):
    cacheable = False

    def __init__(self, uid, key):
        super().__init__(uid)
        self.key = key

    def translate_text_prompt(self, prompt):
        return prompt.text

    def evaluate(self, request):
        return f"1 {self.key.value}"

    def translate_response(self, request, response):
        usage = Usage(input_tokens=2, output_tokens=3, cost_usd=0.25)
        return SUTResponse([SUTCompletion(response)], usage)

@hookimpl
def modelgauge_register_suts(register):
    register("acme", Acme, InjectSecret(Key))
"""

METRICS = """
import os
import pytest
from modelgauge import Score
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.evals import Golden, LLMTestCase, assert_test, log_hyperparameters, observe
from modelgauge.metrics import Metric

class Judged(Metric):
    async def score(self, test_case):
        said = (await self.ask("judge", "good?")).completions[0].text
        return Score(float(said[0]), reason=said)

class Killed(Judged):
    async def score(self, test_case):
        await super().score(test_case)
        os._exit(1)

class Needy(Metric):
    required_params = ("context",)

    def score(self, test_case):
        return 1.0

@pytest.fixture
def killed_before_its_record(monkeypatch):
    monkeypatch.setattr(RunFolder, "write_record", lambda *_: os._exit(1))

def refused(said):
    assert_test(LLMTestCase(said, "a"), [Needy()])

JUDGED = Judged(model="acme")
"""

LEAKING = (
    METRICS
    + f"""
SECRET = "{SECRET}"

@log_hyperparameters
def hyperparameters():
    return {{"key": SECRET}}

class TestThatKnowsNothing:
    @pytest.mark.parametrize("before", ["", "titles are cut in this one: "])
    def test_refused(self, before):
        refused(before + SECRET)

    def test_last(self):
        assert_test(LLMTestCase(SECRET, "a", context=[]), [Needy()])

class TestThatAsks:
    @pytest.mark.parametrize("text", [SECRET])
    def test_judged(self, text):
        assert_test(LLMTestCase(f"titles are cut in this one: {{text}}", "a"), [JUDGED])
"""
)


@pytest.fixture
def project(here):
    """A working directory with a plugin whose SUT needs a secret."""
    (here / "plugin.py").write_text(PLUGIN, encoding="utf-8")
    (here / "modelgauge.toml").write_text('plugins = ["plugin.py"]', encoding="utf-8")
    return here


@pytest.fixture
def run(project):
    """Runs a test file in processes of its own, which know the secret; returns the summary and the record."""

    def run(source, *command, **variables):
        (project / "test_app.py").write_text(source, encoding="utf-8")
        variables = {"ACME_API_KEY": SECRET, "COLUMNS": "140", **variables}
        done = in_process_of_its_own(*command, "test_app.py", "-q", "--tb=no", **variables)
        (record,) = records(project)
        return summary_of(done.stdout), record

    return run


def shown_or_left(project, summary):
    """All that a session shows and leaves, by name."""
    files = [path for path in (project / "run_data" / "runs").rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"record.json", "items.jsonl", "run.json"}
    return {"summary": summary, **{path.name: path.read_text(encoding="utf-8") for path in files}}


WITH_WORKERS = ("-n", "2", "--dist", "loadscope")  # a class for each


@pytest.mark.parametrize(
    "command",
    [("pytest",), ("pytest", *WITH_WORKERS), ("modelgauge", "test", "run", *WITH_WORKERS)],
    ids=["pytest", "workers", "test run"],
)
def test_a_secret_that_a_process_looked_up_stands_nowhere(project, run, command):
    summary, record = run(LEAKING, *command, "-k", f"not {SECRET}0")
    assert "2 of 4 test cases passed." in summary
    for name, text in shown_or_left(project, summary).items():
        assert not shown_in(SECRET[:8], text), name
        assert name == "totals.json" or shown_in(STANDS_FOR_IT, text), name
    reasons = [item.interactions[0].response.completions[0].annotations for item in record.test_item_records]
    assert [reason["Judged"]["reason"] for reason in reasons if "Judged" in reason] == [f"1 {STANDS_FOR_IT}"]
    assert {item.test_item.prompts[0].prompt.text for item in record.test_item_exceptions} == {
        STANDS_FOR_IT,
        f"titles are cut in this one: {STANDS_FOR_IT}",
    }


CUT_SHORT = (
    METRICS
    + f"""
def test_refused():
    refused("{SECRET}")

def test_judged():
    assert_test(LLMTestCase("judged", "a"), [Judged(model="acme")])

def test_killed_after(killed_before_its_record):
    assert_test(LLMTestCase("killed after", "a"), [Judged(model="acme")])

def test_killed_amid():
    assert_test(LLMTestCase("killed amid", "a"), [Killed(model="acme")])
"""
)


def test_cases_whose_process_was_killed_count_with_what_they_used(project, run):
    summary, record = run(CUT_SHORT, "pytest", "-n", "2")
    counts = record.counts
    assert (counts.items, counts.scored, counts.annotator_errors) == (4, 2, 1)
    assert counts.judge_calls.paid == counts.annotator_calls.paid == 2  # of items that were written
    assert (record.spent.attempts, record.spent.tokens, record.spent.cost_usd) == (2, 10, 0.5)
    assert {item.test_item.id.partition("::")[2]: item.index for item in record.test_item_records} == {
        "test_judged": 1,
        "test_killed_after": 2,
    }
    assert "2 of 4 test cases passed." in summary
    (note,) = [note for note in record.notes if "test_killed" in note]
    assert note.startswith("test_app.py::test_killed_amid: It was begun and not judged: ")
    assert shown_in(note, summary)
    for name, text in shown_or_left(project, summary).items():
        assert not shown_in(SECRET[:8], text), name


def test_only_those_that_were_killed_knew_the_secret(project, run):
    summary, record = run(CUT_SHORT, "pytest", "-n", "2", "-k", "refused or after")
    assert (record.counts.items, record.counts.scored) == (2, 1)
    left = shown_or_left(project, summary)
    assert STANDS_FOR_IT in left["items.jsonl"]
    for name, text in left.items():
        assert not shown_in(SECRET[:8], text), name


def test_a_secret_that_only_a_worker_had_is_named(run):
    source = METRICS + (
        "def test_a(monkeypatch):\n"
        f"    monkeypatch.setenv('ACME_API_KEY', '{SECRET}')\n"
        "    assert_test(LLMTestCase('q', 'a'), [JUDGED])\n"
    )
    _, record = run(source, "pytest", "-n", "1", ACME_API_KEY="")
    assert record.notes[-1] == (
        "The value of acme.api_key may stand here, since it could not be looked up again: "
        "it was there for a while only, in another process."
    )
    assert record.counts.scored == 1
