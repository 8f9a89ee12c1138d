"""What is told of a run whose last session has written no record."""

import json
import os

import pytest

from modelgauge.data.item_records import Failure
from modelgauge.data.results import CallCounts, RunFailure, Spent
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.engine.run_files.journal import JournalFile
from modelgauge.engine.totals import Totals
from modelgauge.runs.recorded_run import read_state, recorded_run

BROKEN = RunFailure(stage="run", error_type="OSError", message="full")
WRITTEN = 1_769_860_800  # 2026-01-31 12:00:00 UTC
KINDS = ("sut_calls", "annotator_calls", "judge_calls")
TIME = "2026-01-31 12:00:00 UTC."


@pytest.fixture
def begun(folder, record):
    """A run of the given items with its manifest, and what else a session may have written."""

    def begun(*items, record_says=None, **totals):
        run = folder(*items)
        manifest = json.loads(record(dependency_versions={"words": "1"}).model_dump_json())
        (run.path / "run.json").write_text(json.dumps({**manifest, "more": 1}), encoding="utf-8")
        if totals:
            run.totals.write_text(Totals.load(totals).model_dump_json(), encoding="utf-8")
        if record_says is not None:
            run.write_record(record(**record_says), str)
        return run

    return begun


@pytest.mark.parametrize(
    ("record_says", "totals", "state"),
    [
        ({}, {}, "finished"),
        ({}, {"ended": False, "tokens": 1}, "finished"),
        ({"failure": BROKEN}, {}, "stopped"),
        ({"cancelled": True}, {}, "interrupted"),
        ({"failure": BROKEN, "cancelled": True}, {"ended": True}, "interrupted"),
        ({"failure": BROKEN}, {"ended": True}, "stopped"),
        ({"failure": BROKEN}, {"ended": False, "tokens": 1}, "killed"),
        (None, {}, "killed"),
        (None, {"ended": True}, "killed"),
    ],
)
def test_record_and_totals_tell_what_became_of_a_run(begun, record_says, totals, state):
    run = begun(record_says=record_says, **totals)
    told, record = read_state(run)
    assert told == state
    assert (record is None) == (state == "killed")
    journal = JournalFile(run.journal)
    assert read_state(run)[0] == ("finished" if state == "finished" else "running")
    journal.close()


def test_a_run_with_its_record_is_shown_as_that_says(begun, scored):
    shown = recorded_run(begun(scored(0), record_says={"result": {"x": 1}}))
    assert (shown.ended, shown.going_on, shown.record.result) == (True, False, {"x": 1})
    assert isinstance(shown.folder, RunFolder)


def test_a_killed_run_is_counted_from_its_journal_and_its_totals(begun, scored, failure):
    facts = {"source_uid": "a_sut", "error_type": "E", "message": "m", "traceback": ""}
    torn = tuple(Failure(repeat=n, stage="sut", **facts) for n in range(2))
    items = [
        scored(0),
        scored(1, failed_repeats=torn),
        scored(2, failed_repeats=torn[:1]),
        *(failure(n) for n in (3, 4, 5)),
        *(failure(n, stage="annotator") for n in (6, 7)),
        failure(8, stage="measure"),
    ]
    used = {kind: CallCounts(paid=n, cached=n + 1) for n, kind in enumerate(KINDS)}
    run = begun(*items, seconds=7.5, attempts=9, tokens=8, cost=0.5, **used)
    os.utime(run.journal, (WRITTEN, WRITTEN))
    shown = recorded_run(run)
    assert (shown.ended, shown.going_on, shown.folder) == (False, False, run)
    counts = shown.record.counts
    assert (counts.items, counts.scored, counts.failed) == (9, 3, 6)
    assert (counts.partial, counts.failed_repeats) == (2, 3)
    assert (counts.sut_errors, counts.annotator_errors, counts.unscored) == (3, 2, 1)
    assert {kind: getattr(counts, kind) for kind in KINDS} == used
    assert shown.record.seconds == 7.5
    assert shown.record.spent == Spent(attempts=9, tokens=8, cost_usd=0.5)
    assert shown.record.dependency_versions == {"words": "1"}
    assert [item.index for item in shown.record.iter_items()] == list(range(9))
    assert shown.record.failure.message == (
        f"It was killed, or its record could not be written; its last activity was at {TIME}"
    )


def test_a_run_that_is_going_on_says_so(begun, scored):
    run = begun(scored(0))
    journal = JournalFile(run.journal)
    os.utime(run.journal, (WRITTEN, WRITTEN))
    shown = recorded_run(run)
    journal.close()
    assert (shown.ended, shown.going_on) == (False, True)
    assert shown.record.failure.stage == "run"
    assert shown.record.failure.message == f"It is going on; its last activity was at {TIME}"


def test_of_a_run_that_kept_no_count_neither_time_nor_calls_are_known(begun):
    run = begun()
    run.journal.unlink()
    os.utime(run.path / "run.json", (WRITTEN, WRITTEN))
    shown = recorded_run(run)
    assert (shown.record.seconds, shown.record.spent) == (None, None)
    assert shown.record.counts.items == 0
    assert shown.record.failure.message.endswith(f"its last activity was at {TIME}")


def test_a_manifest_gives_no_result_to_a_run_without_an_end(begun, scored):
    run = begun(scored(0))
    manifest = json.loads((run.path / "run.json").read_text(encoding="utf-8"))
    ended = {"result": {"accuracy": 1.0}, "notes": ["All is well."], "cancelled": True}
    (run.path / "run.json").write_text(json.dumps({**manifest, **ended}), encoding="utf-8")
    found = recorded_run(run).record
    assert (dict(found.result), found.notes, found.cancelled) == ({}, (), False)
