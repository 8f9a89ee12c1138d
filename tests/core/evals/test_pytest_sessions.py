"""`assert_test` in sessions of pytest inside this process; those in processes of their own are `tests/sessions`."""

import json
import os
import re
import subprocess
import sys

import pytest
from pytest_sessions import PASSING, TEST_FILE, check_record, records, summary_of

from modelgauge import rescore, resume
from modelgauge.bundles.run_checks import check_run
from modelgauge.data.results import Threshold
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.engine.totals import read_totals
from modelgauge.errors import RecordError
from modelgauge.evals import ConversationalGolden, EvaluationDataset, Golden, LLMTestCase, Turn
from modelgauge.evals.pytest_plugin import VARIABLE
from modelgauge.runs.ratings import Rating, RatingsFile, digest_answer, first_answer
from modelgauge.runs.recorded_run import recorded_run


@pytest.fixture
def project(here):
    """The working directory, with one test file."""
    (here / "test_app.py").write_text(TEST_FILE, encoding="utf-8")
    return here


def test_all_cases_of_a_session_end_in_one_run_record(session, project):
    code, output = session()
    assert code == 1
    (record,) = records(project)
    check_record(record, output)
    assert record.test_uid == "pytest"
    assert VARIABLE not in os.environ or json.loads(os.environ[VARIABLE])["cwd"] != str(project)


OF_SAVED_GOLDENS = """
import pytest
from modelgauge.evals import EvaluationDataset, LLMTestCase, assert_test
from modelgauge.metrics import ExactMatchMetric

goldens = EvaluationDataset.pull("sums").goldens
EDITED = EvaluationDataset.pull("edited")
EDITED.goldens[0].input = "own"

@pytest.mark.parametrize("golden", goldens)
def test_sums(golden):
    assert_test(golden.to_test_case(actual_output="4"), [ExactMatchMetric()])

def test_another():
    assert_test(LLMTestCase("own", "a", "a"), [ExactMatchMetric()])
"""


def test_the_manifest_names_the_saved_versions_that_cases_are_of(session, here):
    saved = EvaluationDataset([Golden(one, expected_output="4") for one in ("2+2", "3+1")]).push("sums")
    EvaluationDataset([Golden("edited since")]).push("edited")
    (here / "test_app.py").write_text(OF_SAVED_GOLDENS, encoding="utf-8")
    assert session()[0] == 0
    (record,) = records(here)
    manifest = RunFolder(here / "run_data" / "runs" / record.run_id).read_manifest()
    assert manifest["data_sets"] == [{"name": "sums", "digest": saved.content_hash, "version": 1}]


OF_SAVED_CASES = """
import pytest
from modelgauge.evals import ConversationalTestCase, EvaluationDataset, LLMTestCase, Turn, assert_test
from modelgauge.metrics import Metric

class Always(Metric):
    def score(self, test_case):
        return 1.0

class AlwaysTalk(Always):
    test_case_type = ConversationalTestCase

pulled = [EvaluationDataset.pull(name) for name in ("cases", "chats", "others")]

def test_case():
    assert_test(LLMTestCase("asked", "another answer"), [Always()])

def test_chat():
    turns = [Turn("user", "hi"), Turn("assistant", "yo"), Turn("user", "bye"), Turn("assistant", "cu")]
    assert_test(ConversationalTestCase(turns, scenario="greets"), [AlwaysTalk()])
"""


def test_manifest_names_saved_test_cases_and_conversations_and_no_others(session, here):
    cases = EvaluationDataset()
    cases.add_test_case(LLMTestCase("asked", "answer"))
    begun = [Turn("user", "hi"), Turn("assistant", "yo")]
    chats = EvaluationDataset([ConversationalGolden("greets", turns=begun)])
    others = EvaluationDataset([ConversationalGolden("greets", turns=[Turn("user", "hello")])])
    saved = {name: made.push(name) for name, made in (("cases", cases), ("chats", chats), ("others", others))}
    code, output = session(source=OF_SAVED_CASES)
    assert code == 0, output
    (record,) = records(here)
    manifest = RunFolder(here / "run_data" / "runs" / record.run_id).read_manifest()
    assert manifest["data_sets"] == [
        {"name": name, "digest": saved[name].content_hash, "version": 1} for name in ("cases", "chats")
    ]


def test_the_plugin_imports_the_standard_library_alone():
    code = (
        "import sys; before = set(sys.modules); import modelgauge.evals.pytest_plugin;"
        "print([name for name in set(sys.modules) - before"
        " if name.partition('.')[0] not in sys.stdlib_module_names | {'modelgauge'}])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_repeats_of_a_case_are_one_item(session, project):
    code, output = session("-k", "number", repeat=2, display="failing", identifier="v2")
    assert code == 1
    (record,) = records(project)
    assert (record.counts.items, record.counts.scored) == (6, 6)
    assert record.thresholds == {"Match": Threshold(value=0.7)}
    ids = [item.test_item.id for item in record.test_item_records]
    assert ids == [f"test_app.py::test_number[{number}]" for number in range(6)]
    assert (record.result["passed"].n, record.result["passed"].value) == (6, pytest.approx(5 / 6))
    table = summary_of(output)
    assert table.count("failed") == 2
    assert "≥ 0.7   passed" not in table
    assert "10 of 12 repeats of 6 test cases passed." in table


REPEATED = """
import pytest
from modelgauge import FunctionSUT
from modelgauge.evals import Golden, LLMTestCase, assert_test, observe
from modelgauge.metrics import GEval, Metric

asked, times = [], []

def judge(question):
    asked.append(question)
    return '{"score": %d, "reason": "r"}' % len(asked)

JUDGED = GEval(name="G", evaluation_steps=["s"], model=FunctionSUT("j", judge, version=1), threshold=0)

@pytest.mark.parametrize("number", ["run1-a", "b"])
def test_judged(number):
    assert_test(LLMTestCase("q", number), [JUDGED])

class Sometimes(Metric):
    def score(self, test_case):
        times.append(1)
        if len(times) == 2:
            raise ZeroDivisionError("this once")
        return 1.0

def test_fails_once():
    assert_test(LLMTestCase("q", "first"), [JUDGED])
    assert_test(LLMTestCase("q", "second"), [JUDGED, Sometimes()])
"""


def test_each_repeat_asks_the_judge_anew_and_a_case_is_one_item_of_them_all(session, project):
    for _ in range(2):  # the second time the cache has all answers
        session("-k", "judged", source=REPEATED, repeat=3)
    first, second = records(project)
    assert (first.counts.judge_calls.paid, second.counts.judge_calls.paid) == (6, 0)
    for record in (first, second):
        one, other = record.test_item_records
        assert one.test_item.id == "test_app.py::test_judged[run1-a]"
        assert [held.repeat for held in one.interactions] == [0, 1, 2]
        scores = [held["G"] for item in (one, other) for held in item.repeat_measurements]
        assert sorted(scores) == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
        assert one.measurements["G"] == pytest.approx(sum(scores[:3]) / 3)
        assert (record.result["G"].n, record.result["G"].value) == (2, pytest.approx(0.35))


def run_of(project):
    (run,) = (project / "run_data" / "runs").iterdir()
    return RunFolder(run)


RERUNS = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    if any(report.failed for report in reports):  # as pytest-rerunfailures does
        item._initrequest()
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    return True
"""

RERUN = """
from modelgauge.evals import LLMTestCase, assert_test
from modelgauge.metrics import ExactMatchMetric

times = []

def test_three():
    times.append(1)
    for name in ("first", "second", "third"):
        output = "wrong" if name == "second" and len(times) == 1 else "right"
        assert_test(LLMTestCase("q", output, "right", name=name), [ExactMatchMetric()])
"""


@pytest.mark.parametrize("repeat", [1, 2])
def test_a_test_that_is_run_again_repeats_its_cases(session, project, repeat):
    (project / "conftest.py").write_text(RERUNS, encoding="utf-8")
    code, output = session(source=RERUN, repeat=repeat)
    assert code == 0
    (record,) = records(project)
    items = record.test_item_records
    assert [item.test_item.id for item in items] == [
        f"test_app.py::test_three{number}" for number in ("", "~2", "~3")
    ]
    assert [item.measurements["passed"] for item in items] == [1, repeat / (repeat + 1), 1]
    assert sorted(held.repeat for held in items[1].interactions) == [0, 1, 2][: repeat + 1]
    assert f"{3 * repeat + 1} of {3 * repeat + 2} repeats of 3 test cases passed." in summary_of(output)
    assert check_run(run_of(project)).findings == []


VARYING = """
import unittest
from modelgauge.evals import Golden, LLMTestCase, assert_test, observe
from modelgauge.metrics import ExactMatchMetric

answers = []

@observe(metrics=[ExactMatchMetric(threshold=None)])
def app(question):
    answers.append(question)
    return f"answer {len(answers)}"

def test_app():
    assert_test(golden=Golden("q", expected_output="a"), observed_callback=app)

class TestOfUnittest(unittest.TestCase):
    def test_once(self):
        assert_test(LLMTestCase("q", "a", "a"), [ExactMatchMetric()])
"""


def test_repeats_whose_answers_or_number_differ_are_nothing_wrong(session, project):
    session(source=VARYING, repeat=2)
    (record,) = records(project)
    assert [len(item.interactions) for item in record.test_item_records] == [2, 1]
    assert check_run(run_of(project)).findings == []


def test_a_case_of_which_a_repeat_fails_is_scored_by_the_others(session, project):
    _, output = session("-k", "once", "--tb=no", source=REPEATED, repeat=2, ignore_errors=True)
    (record,) = records(project)
    counts = record.counts
    assert (counts.items, counts.scored, counts.failed, counts.partial, counts.failed_repeats) == (
        2,
        2,
        0,
        1,
        1,
    )
    assert "3 of 4 repeats of 2 test cases passed." in summary_of(output)
    partial = record.test_item_records[1]
    assert partial.test_item.id == "test_app.py::test_fails_once~2"
    assert set(partial.measurements) == {"G", "G.passed", "Sometimes", "Sometimes.passed", "passed"}
    assert [(failure.repeat, failure.error_type) for failure in partial.failed_repeats] == [
        (1, "ZeroDivisionError")
    ]
    assert (len(partial.interactions), len(partial.repeat_measurements), record.repeats) == (2, 1, 2)
    assert (record.result["passed"].n, record.result["passed"].bounds) == (2, (0.75, 1.0))


ALWAYS_BROKEN = """
from modelgauge.evals import LLMTestCase, assert_test
from modelgauge.metrics import ExactMatchMetric, Metric

class Never(Metric):
    def score(self, test_case):
        raise ZeroDivisionError("never")

def test_never():
    assert_test(LLMTestCase("q", "a", "a"), [ExactMatchMetric(), Never()])
"""


def test_a_case_of_which_all_repeats_fail_is_failed_with_what_all_of_them_scored(session, project):
    session("--tb=no", source=ALWAYS_BROKEN, repeat=2, ignore_errors=True)
    (record,) = records(project)
    (failed,) = record.test_item_exceptions
    assert set(failed.measurements) == {"ExactMatchMetric", "ExactMatchMetric.passed"}
    assert (len(failed.interactions), record.counts.annotator_errors) == (2, 1)


def test_display_of_those_that_pass(session, project):
    _, output = session("-k", "number", display="passing")
    table = summary_of(output)
    assert table.count("≥ 0.7   passed") == 5
    assert "failed" not in table


NEEDY = (
    PASSING
    + """
def test_needy():
    assert_test(LLMTestCase("q", "a"), [Always(), Needy()])

def test_broken():
    assert_test(LLMTestCase("q", "a"), [Always(), Broken()])
"""
)


def test_what_cannot_be_judged_is_an_error(session):
    code, output = session(source=NEEDY)
    assert code == 1
    assert "MissingParameterError: Needy needs 'context'" in output
    assert "CallError: The test case 'q' could not be judged: Metric Broken gave no score:" in output
    assert "modelgauge show RUN --failures (RUN is named at the end of this session)" in output
    assert "core/modelgauge" not in output  # the way through the library does not help


WRONG_USES = (
    PASSING
    + """
import asyncio
import pytest
from modelgauge.evals import Golden, observe

CASE = LLMTestCase("q", "a")

def plain(question):
    raise LookupError("the app is down")

@observe(metrics=[Always()])
def app(question):
    return plain(question)

@observe(metrics=[Always()])
async def slow_app(question):
    await asyncio.sleep(0)
    return plain(question)

def test_text(): assert_test("q", [Always()])
def test_none(): assert_test(CASE, [])
def test_both(): assert_test(CASE, [Always()], golden=Golden("q"), observed_callback=app)
def test_plain(): assert_test(golden=Golden("q"), observed_callback=plain)
def test_name(): assert_test(CASE, ["exact_mach"])
def test_down(): assert_test(golden=Golden("q"), observed_callback=app)
def test_slow(): assert_test(golden=Golden("q"), observed_callback=slow_app)
def test_loop():
    async def run(): assert_test(CASE, [Always(threshold=2)])
    asyncio.run(run())
def test_field(): LLMTestCase("q", actual_ouput="a")
def test_argument(): Always(treshold=1)
"""
)


def test_a_failure_shows_the_users_lines_and_not_the_librarys(session):
    code, output = session(source=WRONG_USES)
    assert code == 1
    assert "10 failed" in output
    assert "core/modelgauge" not in output
    for call in (
        'assert_test("q"',
        "assert_test(CASE, [])",
        "async def run(): assert_test",
        "Always(treshold",
    ):
        assert re.search(rf"^> .*{re.escape(call)}", output, re.MULTILINE)
    assert output.count('>       raise LookupError("the app is down")') == 2
    assert output.count("    return plain(question)") == 2
    for told in (
        "A str is not a test case",
        "'exact_match'",
        "must be decorated",
        "'actual_output'",
        "'threshold'",
    ):
        assert re.search(rf"^E .*{re.escape(told)}", output, re.MULTILINE)


def test_errors_can_be_ignored_and_metrics_skipped_but_nothing_passes_by_it(session, project):
    code, output = session(source=NEEDY, skip_on_missing_params=True, ignore_errors=True)
    assert code == 1
    assert "1 failed, 1 passed" in output
    assert "AssertionError: Metric Broken gave no score: ZeroDivisionError: no way" in output
    (record,) = records(project)
    assert (record.counts.scored, record.counts.annotator_errors) == (1, 1)


def test_a_case_of_which_every_metric_is_skipped_does_not_pass(session):
    source = PASSING + 'def test_a():\n    assert_test(LLMTestCase("q", "a"), [Needy()])\n'
    code, output = session(source=source, skip_on_missing_params=True)
    assert code == 1
    assert "Every metric was skipped" in output


def test_a_test_that_changes_its_working_directory_leaves_its_case_with_the_others(session, project):
    source = PASSING + (
        "def test_a(tmp_path, monkeypatch):\n"
        "    monkeypatch.chdir(tmp_path)\n"
        "    assert_test(LLMTestCase('q', 'a'), [Always()])\n"
    )
    code, _ = session("--basetemp", "elsewhere", source=source)
    assert code == 0
    (record,) = records(project)
    manifest = project / "run_data" / "runs" / record.run_id / "run.json"
    assert json.loads(manifest.read_text(encoding="utf-8"))["command"][0] == "pytest"


def test_judges_are_asked_anew_only_without_the_cache(session, project):
    source = """
from pathlib import Path
from modelgauge import FunctionSUT
from modelgauge.evals import LLMTestCase, assert_test
from modelgauge.metrics import Metric

def judge(question):
    with Path("asked.txt").open("a") as file:
        file.write("x")
    return "1"

class Judged(Metric):
    async def score(self, test_case):
        return float((await self.ask("judge", "good?")).completions[0].text)

def test_a():
    assert_test(LLMTestCase("q", "a"), [Judged(model=FunctionSUT("judge", judge, version=1))])
"""
    asked = []
    for use_cache in (True, True, False):
        code, output = session(source=source, use_cache=use_cache)
        assert code == 0, output
        asked.append(len((project / "asked.txt").read_text(encoding="utf-8")))
    assert asked == [1, 1, 2]


def test_the_run_of_a_session_is_complete_and_is_measured_anew_by_running_its_tests(session, project):
    session("-k", "number")
    (record,) = records(project)
    assert resume(record.run_id) == [record]
    with pytest.raises(RecordError, match=r"its test cannot be made again") as refused:
        rescore(record.run_id)
    assert "Run the tests again: pytest -q" in refused.value.fix
    assert "-k number test_app.py. What judges answered is in the cache." in refused.value.fix


def test_what_people_said_of_the_outputs_of_a_session_becomes_a_run(session, project):
    session("-k", "number")
    (record,) = records(project)
    folder = RunFolder(project / "run_data" / "runs" / record.run_id)
    first = next(recorded_run(folder).items().records())
    rating = Rating(
        item_id=first.test_item.id, answers=digest_answer(first_answer(first)), rater="ann", score=4
    )
    RatingsFile.of(folder).add(rating)
    [rated] = rescore(record.run_id, ratings=True)
    assert (rated.result["human"].value, rated.result["human"].n) == (4, 1)
    assert rated.counts.annotator_errors == record.counts.scored - 1


def test_the_manifest_of_a_session_says_what_judged_its_cases(session, project):
    session()
    (record,) = records(project)
    folder = project / "run_data" / "runs" / record.run_id
    manifest = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    made = {name: one["arguments"] for name, one in manifest["annotators"].items()}
    assert made == {"Match": {"threshold": 0.7}, "Match~2": {}}
    assert manifest["judges"] == {}
    assert manifest["inputs"] == {"plugins": [], "dependencies": {}, "judge": None}
    assert sorted(path.name for path in folder.iterdir()) == [
        *("items.jsonl", "record.json", "report.html", "run.json", "totals.json"),
    ]
    totals = read_totals(RunFolder(folder))
    assert (totals.ended, totals.used.annotator_calls.paid) == (True, 7)


def test_the_record_of_a_session_says_what_measurements_can_be_where_all_cases_agree(session, project):
    source = (
        "from modelgauge.evals import LLMTestCase, assert_test\n"
        "from modelgauge.metrics import ContainsMetric, ExactMatchMetric, LatencyMetric\n"
        "CASE = LLMTestCase('q', 'a', 'a', completion_time=1.0)\n"
        "def test_a(): assert_test(CASE, [ExactMatchMetric(), LatencyMetric(threshold=2)])\n"
        "def test_b(): assert_test(CASE, [ExactMatchMetric(threshold=0.5), ContainsMetric()])\n"
    )
    code, _ = session(source=source)
    assert code == 0
    (record,) = records(project)
    assert {
        name: (threshold.value, threshold.higher_is_better) for name, threshold in record.thresholds.items()
    } == {
        "ContainsMetric": (1, True),
        "LatencyMetric": (2, False),
    }
    metrics = ("ContainsMetric", "ExactMatchMetric", "LatencyMetric")
    assert [record.directions[name] for name in metrics] == ["higher", "higher", "lower"]
    assert [record.ranges[name] for name in metrics] == [(0, 1), (0, 1), (0, None)]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"repeat": 2},
        {"use_cache": False},
        {"ignore_errors": True},
        {"skip_on_missing_params": True},
        {"display": "failing"},
        {"identifier": "new prompt"},
    ],
)
def test_the_manifest_of_a_session_holds_its_options(given, session, project):
    session("-k", "number and 3", **given)
    (record,) = records(project)
    manifest = json.loads((project / "run_data" / "runs" / record.run_id / "run.json").read_text("utf-8"))
    usual = {"repeat": 1, "use_cache": True, "ignore_errors": False, "skip_on_missing_params": False}
    assert manifest["options"] == {**usual, "display": "all", "identifier": None, **given}


def test_a_case_that_was_judged_before_an_interruption_is_shown(session, project, monkeypatch):
    def interrupted(self, *said):
        raise KeyboardInterrupt

    monkeypatch.setattr("modelgauge.engine.observers.Observers.item_finished", interrupted)
    source = PASSING + (
        "def test_a(): assert_test(LLMTestCase('q', 'a'), [Always()])\n"
        "def test_b(): assert_test(LLMTestCase('q', 'a'), [Always()])\n"
    )
    code, output = session(source=source)
    assert code == 2
    (record,) = records(project)
    assert (record.cancelled, record.counts.scored) == (True, 1)
    assert re.search(r"^q +Always +1 +≥ 0.5 +passed", summary_of(output), re.MULTILINE)
    assert "pytest had collected 2 tests. There are cases of 1 here." in " ".join(summary_of(output).split())


@pytest.mark.parametrize("args", [("-x",), ("--maxfail=1",)])
def test_a_session_that_pytest_itself_ends_was_not_interrupted(session, project, args):
    code, _ = session(*args)
    assert code == 1
    assert records(project)[0].cancelled is False


def test_repeats_are_told_from_parameters_whatever_their_order(session, here):
    """A conftest.py comes first with its parameters, decorators come last."""
    (here / "conftest.py").write_text(
        "def pytest_generate_tests(metafunc):\n"
        "    if 'first' in metafunc.fixturenames:\n"
        "        metafunc.parametrize('first', ['x'])\n",
        encoding="utf-8",
    )
    source = PASSING + (
        "import pytest\n"
        "def judged(): assert_test(LLMTestCase('q', 'a'), [Always()])\n"
        "def test_plain(): judged()\n"
        "def test_before(first): judged()\n"
        "@pytest.mark.parametrize('last', ['y'])\n"
        "def test_after(last): judged()\n"
        "@pytest.mark.parametrize('last', ['y'])\n"
        "def test_around(first, last): judged()\n"
    )
    code, output = session(source=source, repeat=2)
    assert code == 0, output
    (record,) = records(here)
    names = [item.test_item.id.partition("::")[2] for item in record.test_item_records]
    assert names == ["test_plain", "test_before[x]", "test_after[y]", "test_around[x-y]"]


def test_a_session_has_a_page_unless_none_is_wanted(session, project, monkeypatch):
    _, output = session()
    (page,) = project.glob("run_data/runs/*/report.html")
    assert f"\nPage: {page.relative_to(project)}\n" in output
    assert "<h1>pytest</h1>" in page.read_text(encoding="utf-8")
    page.unlink()
    monkeypatch.setenv("MODELGAUGE_REPORT", "no")
    assert "\nPage: " not in session()[1]
    assert not list(project.glob("run_data/runs/*/report.html"))


SENDER = """
from pathlib import Path
from modelgauge import hookimpl
@hookimpl
def modelgauge_run_finished(record, settings):
    has_page = (record.folder / "report.html").is_file()
    Path("told.txt").write_text(f"{record.run_id} {record.counts.scored} {has_page} {settings}")
    if settings:
        raise ValueError("No such server.")
"""


def test_plugins_hear_of_the_end_of_a_session(session, project):
    (project / "sender.py").write_text(SENDER, encoding="utf-8")
    (project / "modelgauge.toml").write_text("plugins = ['sender.py']\n", encoding="utf-8")
    _, output = session()
    (record,) = records(project)
    told = (project / "told.txt").read_text(encoding="utf-8")
    assert told == f"{record.run_id} {record.counts.scored} True {{}}"
    assert "Warning" not in output


def test_a_plugin_that_fails_at_the_end_of_a_session_is_a_warning(session, project):
    (project / "sender.py").write_text(SENDER, encoding="utf-8")
    (project / "modelgauge.toml").write_text(
        "plugins = ['sender.py']\n[plugin.sender]\nport = 1\n", encoding="utf-8"
    )
    _, output = session()
    assert "Warning: the plugin " in output
    assert "modelgauge_run_finished: ValueError: No such server" in output
    assert "{'port': 1}" in (project / "told.txt").read_text(encoding="utf-8")
