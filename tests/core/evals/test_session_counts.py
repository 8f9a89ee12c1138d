"""Every `assert_test` of a session of pytest counts, in the order of the tests, and under a name of its own.

So do cases that their tests left before they were judged.
"""

import json
import re

import pytest
from pytest_sessions import PASSING, records, shown_in, summary_of

SOURCE = """
import unittest
import pytest
from modelgauge.evals import Golden, LLMTestCase, assert_test, observe
from modelgauge.metrics import ExactMatchMetric

EXACT = ExactMatchMetric()

@pytest.mark.parametrize("number", range(11))
def test_number(number):
    assert_test(LLMTestCase("same", "a", "a"), [EXACT])

def test_missing():
    assert_test(LLMTestCase("lacking", "a"), [EXACT])

def test_twice():
    assert_test(LLMTestCase("same", "a", "a"), [EXACT])
    assert_test(LLMTestCase("same", "b", "a"), [EXACT])

def test_nothing():
    assert_test()

def test_unknown():
    assert_test(LLMTestCase("unknown", "a", "a"), ["no_such"])

@observe(metrics=[EXACT])
def app(question):
    return None

def test_app():
    assert_test(golden=Golden("asked", expected_output="a"), observed_callback=app)

class TestOfUnittest(unittest.TestCase):
    def test_method(self):
        assert_test(LLMTestCase("method", "a", "a"), [EXACT])
"""


@pytest.fixture
def counted(session, here, monkeypatch):
    """Runs `SOURCE`; returns the summary and the record."""

    def run(*args, **options):
        monkeypatch.setenv("COLUMNS", "140")
        _, output = session("--tb=no", *args, source=SOURCE, **options)
        return summary_of(output), records(here)[0]

    return run


def test_refused_cases_count_as_failed_with_their_reasons(counted):
    summary, record = counted()
    assert "13 of 18 test cases passed." in summary
    counts = record.counts
    assert (counts.items, counts.scored, counts.annotator_errors, counts.unscored) == (18, 14, 2, 2)
    told = {item.test_item.id.partition("::")[2]: item for item in record.test_item_exceptions}
    assert {name: (item.stage, item.error_type) for name, item in told.items()} == {
        "test_missing": ("annotator", "MissingParameterError"),
        "test_nothing": ("measure", "ValueError"),
        "test_unknown": ("measure", "UnknownNameError"),
        "test_app": ("annotator", "MissingParameterError"),
    }
    assert "needs 'expected_output'" in told["test_missing"].message
    for reason in ("MissingParameterError:", "ValueError:", "UnknownNameError:"):
        assert reason in summary.partition("test cases passed")[0]


def test_cases_stand_in_the_order_of_the_tests(counted):
    _, record = counted()
    items = sorted([*record.test_item_records, *record.test_item_exceptions], key=lambda item: item.index)
    assert [item.test_item.id.partition("::")[2] for item in items] == [
        *(f"test_number[{number}]" for number in range(11)),
        "test_missing",
        "test_twice",
        "test_twice~2",
        "test_nothing",
        "test_unknown",
        "test_app",
        "TestOfUnittest::test_method",
    ]


def test_cases_of_one_input_are_told_apart_by_their_tests(counted):
    summary, _ = counted("-k", "number or twice or missing")
    rows = re.findall(r"^(same \(\S+\)|lacking)  ", summary, re.MULTILINE)
    numbered = [f"same (test_number[{number}])" for number in range(11)]
    assert rows == [*numbered, "lacking", "same (test_twice)", "same (test_twice~2)"]


def test_two_cases_of_one_input_are_told_apart(counted):
    summary, _ = counted("-k", "twice")
    rows = re.findall(r"^same.*?(?=  )", summary, re.MULTILINE)
    assert rows == ["same (test_twice)", "same (test_twice~2)"]


def test_cases_of_one_input_in_tests_of_one_name_are_told_apart_by_their_files(session, here, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    source = (
        "from modelgauge.evals import LLMTestCase, assert_test\n"
        "from modelgauge.metrics import ExactMatchMetric\n"
        "def test_it(): assert_test(LLMTestCase('same', 'a', 'a'), [ExactMatchMetric()])\n"
        "def test_other(): assert_test(LLMTestCase('same', 'a', 'a'), [ExactMatchMetric()])\n"
    )
    (here / "test_b.py").write_text(source.partition("def test_other")[0], encoding="utf-8")
    _, output = session("test_b.py", source=source)
    rows = re.findall(r"^same \((\S+)\)  ", summary_of(output), re.MULTILINE)
    assert rows == ["test_b.py::test_it", "test_app.py::test_it", "test_other"]


def test_what_cannot_be_repeated_is_told(counted):
    summary, record = counted("-k", "method or missing", repeat=2)
    assert record.counts.items == 2  # test_missing, which failed twice, is one
    (note,) = record.notes
    assert note.startswith("--repeat 2 did not repeat test_app.py::TestOfUnittest::test_method: ")
    assert "unittest.TestCase" in summary


UNJUDGED = (
    PASSING
    + """
import pytest
from modelgauge.evals import Golden, observe

@observe(metrics=[Needy()])
def app(question):
    getattr(pytest, question)("no way")

def use(question):
    assert_test(golden=Golden(question), observed_callback=app)

def test_passes():
    assert_test(LLMTestCase("q", "a"), [Always()])

def test_fails():
    use("fail")

@observe(metrics=[Needy()])
def leaving(question):
    raise SystemExit(question)

def test_exits():
    assert_test(golden=Golden("q"), observed_callback=leaving)

def test_is_skipped():
    use("skip")
"""
)


def test_a_case_that_its_test_leaves_counts_unless_the_test_is_skipped(session, here):
    _, output = session(source=UNJUDGED)
    assert "2 failed, 1 passed, 1 skipped" in output
    assert re.search(r"^E +(Failed|SystemExit): ", output, re.MULTILINE)
    assert "core/modelgauge" not in output
    (record,) = records(here)
    assert (record.counts.items, record.counts.scored, record.counts.sut_errors) == (3, 1, 2)
    assert "1 of 3 test cases passed." in summary_of(output)
    failed, left = record.test_item_exceptions
    assert (failed.test_item.id, failed.message) == ("test_app.py::test_fails", "Failed: no way")
    assert left.message == "SystemExit: q"
    assert [[(span.name, span.error) for span in one.spans] for one in (failed, left)] == [
        [("app", "Failed: no way")],
        [("leaving", "SystemExit: q")],
    ]
    assert shown_in("Failed: no way", summary_of(output))


def test_a_session_of_skipped_cases_alone_leaves_no_run(session, here):
    code, output = session("-k", "skipped", source=UNJUDGED)
    assert code == 0
    assert "test cases" not in output
    assert not (here / "run_data").exists()


def test_a_torn_line_of_what_a_process_says_is_dropped(session, here):
    source = PASSING + (
        "from pathlib import Path\n"
        "def test_a():\n"
        "    assert_test(LLMTestCase('q', 'a'), [Always()])\n"
        "    (log,) = Path('run_data').rglob('cases/*.jsonl')\n"
        "    os.truncate(log, log.stat().st_size - 5)\n"
        "import os\n"
    )
    code, output = session(source=source)
    assert code == 0
    (record,) = records(here)
    assert record.counts.scored == 1
    assert shown_in("test_app.py::test_a passed", summary_of(output))


IN_THREADS = """
import threading
from concurrent.futures import ThreadPoolExecutor
from modelgauge.evals import LLMTestCase, assert_test
from modelgauge.metrics import ExactMatchMetric

def test_threads():
    together = threading.Barrier(8)

    def judge(number):
        together.wait()
        assert_test(LLMTestCase(f"question {number}", "a", "a"), [ExactMatchMetric()])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(judge, range(8)))
"""


def test_cases_of_the_threads_of_one_test_all_count(session, here):
    code, output = session("--tb=short", source=IN_THREADS)
    assert code == 0, output
    (record,) = records(here)
    assert (record.counts.items, record.counts.scored) == (8, 8)
    assert {item.test_item.prompts[0].prompt.text for item in record.test_item_records} == {
        f"question {number}" for number in range(8)
    }


OUTSIDE_OF_TESTS = PASSING + (
    "import pytest\n"
    "def judge(question):\n"
    "    assert_test(LLMTestCase(question, 'a'), [Always()])\n"
    "judge('at import')\n"
    "@pytest.fixture(scope='module', autouse=True)\n"
    "def around():\n"
    "    yield\n"
    "    judge('at the end')\n"
    "def test_b(): judge('b')\n"
    "def test_a(): judge('a')\n"
)


def test_cases_outside_of_tests_count_too_and_leave_the_order_as_it_is(session, here):
    code, _ = session(source=OUTSIDE_OF_TESTS)
    assert code == 0
    (record,) = records(here)
    asked = {item.test_item.id: item.test_item.prompts[0].prompt.text for item in record.test_item_records}
    assert asked == {
        "no test": "at import",
        "test_app.py::test_b": "b",
        "test_app.py::test_a": "a",
        "test_app.py::test_a~2": "at the end",
    }


def test_cases_before_the_tests_are_collected_leave_their_order_known(session, here):
    source = OUTSIDE_OF_TESTS + (
        "from modelgauge.evals import pytest_plugin\n"
        "def test_places():\n"
        "    places = [pytest_plugin.place(f'test_app.py::test_{name}').number for name in ('b', 'a', 'places')]\n"
        "    assert places == [0, 1, 2]\n"
    )
    code, output = session(source=source)
    assert code == 0, output


LEFT = PASSING + (
    "import pytest\n"
    "from pathlib import Path\n"
    "def forget(name, beginning):\n"
    "    (file,) = Path('run_data').rglob(name)\n"
    "    lines = file.read_text().splitlines(keepends=True)\n"
    "    assert lines[-1].startswith(beginning), lines[-1]\n"
    "    file.write_text(''.join(lines[:-1]))\n"
    "class Whole(Always):\n"
    "    threshold = None\n"
    "def judged(*metrics):\n"
    "    assert_test(LLMTestCase('q', 'a'), list(metrics))\n"
    "def test_passes():\n"
    "    judged(Always())\n"
    "    forget('cases/*.jsonl', '{\"end\"')\n"
    "def test_no_verdict():\n"
    "    judged(Whole())\n"
    "    forget('cases/*.jsonl', '{\"end\"')\n"
    "def test_fails():\n"
    "    with pytest.raises(AssertionError):\n"
    "        judged(Always('never', threshold=2))\n"
    "    forget('cases/*.jsonl', '{\"end\"')\n"
    "def test_breaks():\n"
    "    with pytest.raises(Exception):\n"
    "        judged(Broken())\n"
    "    forget('cases/*.jsonl', '{\"end\"')\n"
    "def test_is_lost():\n"
    "    judged(Always())\n"
    "    forget('cases/*.jsonl', '{\"end\"')\n"
    "    forget('items.jsonl', '{')\n"
)


def test_what_cases_cannot_say_any_more_is_told_as_far_as_their_records_do(session, here, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    code, output = session(source=LEFT)
    assert code == 0, output
    rows = {
        name: " ".join(rest.split())
        for name, rest in re.findall(r"^test_app\.py::test_(\w+) (.*)$", summary_of(output), re.MULTILINE)
    }
    assert rows == {
        "passes": "passed",
        "no_verdict": "passed",
        "fails": "none failed Its process ended before it could say why.",
        "breaks": "none failed ZeroDivisionError: no way",
        "is_lost": "none failed It was begun and not judged: it was",
    }
    (record,) = records(here)
    assert (record.counts.items, record.counts.scored) == (5, 3)
    assert any(
        note.startswith("test_app.py::test_is_lost: It was begun and not judged") for note in record.notes
    )
    assert "2 of 5 test cases passed." in summary_of(output)


def test_a_case_that_is_not_in_the_journal_did_not_pass(session, here, monkeypatch):
    def interrupted(self, data):
        raise KeyboardInterrupt

    monkeypatch.setattr("modelgauge.engine.run_files.shared_journal.SharedJournal.append", interrupted)
    code, output = session(
        source=PASSING + "def test_a(): assert_test(LLMTestCase('q', 'a'), [Always()])\n",
    )
    assert code == 2
    (record,) = records(here)
    assert (record.counts.items, record.counts.scored) == (1, 0)
    assert "0 of 1 test case passed." in summary_of(output)
    assert shown_in("It was begun and not judged", summary_of(output))


def test_the_folder_of_the_record_is_told_to_who_asked_for_it(session, here):
    code, _ = session(
        source=PASSING + "def test_a(): assert_test(LLMTestCase('q', 'a'), [Always()])\n",
        folder_file=str(here / "folder"),
    )
    assert code == 0
    (folder,) = (here / "run_data" / "runs").iterdir()
    assert (here / "folder").read_text(encoding="utf-8") == str(folder)


def test_a_case_in_which_the_session_is_interrupted_was_not_judged(session, here):
    source = UNJUDGED + "@observe(metrics=[Always()])\ndef stopped(question): raise KeyboardInterrupt\n"
    source += "def test_is_stopped(): assert_test(golden=Golden('q'), observed_callback=stopped)\n"
    code, _ = session("-k", "passes or stopped", source=source)
    assert code == 2
    (record,) = records(here)
    assert (record.counts.items, record.counts.scored, record.cancelled) == (2, 1, True)
    assert any("test_is_stopped: It was begun and not judged" in note for note in record.notes)
    assert any("pytest had collected 2 tests. There are cases of 2 here" in note for note in record.notes)


def test_cases_are_recognized_by_the_names_that_they_have_in_the_record(session, here):
    session(source=PASSING + "def test_a(): assert_test(LLMTestCase('q', 'a', name='mine'), [Always()])\n")
    (journal,) = (here / "run_data" / "runs").glob("*/items.jsonl")
    (line,) = map(json.loads, journal.read_text(encoding="utf-8").splitlines())
    assert line["test_item"]["id"] == "test_app.py::test_a"
    assert line["digests"] is None
