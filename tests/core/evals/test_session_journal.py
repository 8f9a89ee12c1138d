"""The journal of a session of pytest is only appended to, and each case counts once at any moment."""

from collections import Counter

import pytest
from pytest_sessions import records

from modelgauge.bundles.run_checks import check_run
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.engine.run_files.shared_journal import SharedJournal
from modelgauge.errors import RunStoppedError
from modelgauge.runs.recorded_run import recorded_run

SOURCE = """
import os
import pytest
from pathlib import Path
from modelgauge.evals import LLMTestCase, assert_test
from modelgauge.metrics import ExactMatchMetric

kept = Path("kept")

def judge(name, output="right"):
    assert_test(LLMTestCase(name, output, "right"), [ExactMatchMetric()])

@pytest.fixture(autouse=True)
def keep_journal():
    yield
    for journal in Path("run_data").glob("runs/*/items.jsonl"):
        kept.mkdir(exist_ok=True)
        (kept / str(len(list(kept.iterdir())))).write_bytes(journal.read_bytes())

judge("at import")

def test_one(): judge("one")
def test_plain(): pass
def test_skipped(): pytest.skip("none")

@pytest.mark.parametrize("number", range(2))
def test_several(number):
    for call in range(3):
        judge(f"several {call}")

def test_fails(): judge("fails", "wrong")
def test_refused(): assert_test()
def test_last(): judge("last")
"""
ORDER = [
    "no test",
    "test_one",
    *(f"test_several[{number}]{call}" for number in range(2) for call in ("", "~2", "~3")),
    "test_fails",
    "test_refused",
    "test_last",
]


def run_of(project):
    (run,) = (project / "run_data" / "runs").iterdir()
    return RunFolder(run)


def ids(run):
    return [item.test_item.id.rpartition("::")[2] for item in recorded_run(run).items().records()]


@pytest.mark.parametrize("repeat", [1, 2])
def test_journal_is_only_appended_to(session, here, repeat):
    session(source=SOURCE, repeat=repeat)
    final = run_of(here).journal.read_bytes()
    kept = [path.read_bytes() for path in (here / "kept").iterdir()]
    assert len(kept) == repeat * 8
    assert all(final.startswith(before) for before in kept)
    assert ids(run_of(here)) == ORDER
    assert check_run(run_of(here)).findings == []


def test_session_of_one_case_a_test_appends_nothing_at_its_end(session, here):
    session("-k", "one or plain or fails or last", source=SOURCE.replace('judge("at import")', ""))
    items = list(recorded_run(run_of(here)).items().records())
    assert run_of(here).journal.read_bytes().count(b"\n") == len(items) == 3
    assert [item.index for item in items] == [0, 2, 3]  # test_plain is a test of the session too


@pytest.mark.parametrize("repeat", [1, 2])
@pytest.mark.parametrize("appended", range(0, 11, 3))
def test_each_case_counts_once_wherever_the_end_of_a_session_is_cut_short(
    session, here, monkeypatch, repeat, appended
):
    real, left = SharedJournal.append, [appended]

    def append(self, data):
        if b'"replaces"' in data:
            if not left[0]:
                raise RunStoppedError("The disk is full.", fix="Free it.")
            left[0] -= 1
        return real(self, data)

    monkeypatch.setattr(SharedJournal, "append", append)
    code, output = session(source=SOURCE, repeat=repeat)
    assert (code, "The disk is full." in output) == (1, True)
    counted = Counter(item.test_item.id.rpartition("::")[2] for item in run_of(here).items())
    if repeat == 1:
        assert counted == Counter(ORDER)
    else:  # repeats count one by one until they are joined
        assert counted.total() == 2 * len(ORDER) - 1 - appended


TORN = """
from pathlib import Path
from modelgauge.evals import LLMTestCase, assert_test
from modelgauge.metrics import ExactMatchMetric

def test_a():
    assert_test(LLMTestCase("a", "x", "x"), [ExactMatchMetric()])
    (journal,) = Path("run_data").glob("runs/*/items.jsonl")
    with journal.open("ab") as file:
        file.write(b'{"kind":"item","index":7,"torn')

def test_b():
    assert_test(LLMTestCase("b", "x", "x"), [ExactMatchMetric()])
"""


def test_line_that_a_killed_process_left_unfinished_spoils_no_other(session, here):
    session(source=TORN)
    (record,) = records(here)
    assert record.counts.scored == 2
    assert ids(run_of(here)) == ["test_a", "test_b"]


def test_case_of_which_one_repeat_was_not_judged_is_scored_by_the_others(session, here, monkeypatch):
    real, written = SharedJournal.append, []

    def interrupted(self, data):
        written.append(data)
        if len(written) == 2:
            raise KeyboardInterrupt
        return real(self, data)

    monkeypatch.setattr(SharedJournal, "append", interrupted)
    session(source=SOURCE.replace('judge("at import")', ""), repeat=2)
    (record,) = records(here)
    (item,) = record.test_item_records
    assert (record.counts.items, record.counts.scored, record.counts.partial) == (1, 1, 1)
    assert [failure.error_type for failure in item.failed_repeats] == ["NotJudged"]
    assert check_run(run_of(here)).findings == []
