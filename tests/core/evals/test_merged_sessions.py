"""Sessions of pytest that several machines shared, merged into one."""

import json

import pytest
from pytest_sessions import TEST_FILE, records

from modelgauge import FunctionSUT, load_record, merge, run_test
from modelgauge.bundles.run_checks import check_run
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.errors import RecordError
from modelgauge.rerun.again import resume

THRESHOLDS = """
from modelgauge.evals import LLMTestCase, assert_test
from modelgauge.metrics import Metric

class Share(Metric):
    def score(self, test_case):
        return 0.6

def test_strict(): assert_test(LLMTestCase("a", "x"), [Share(threshold=0.5)])
def test_lax(): assert_test(LLMTestCase("b", "x"), [Share(threshold=0.2)])
def test_strict_too(): assert_test(LLMTestCase("c", "x"), [Share(threshold=0.5)])
"""


@pytest.fixture
def sessions(session, here):
    """Run a test file in several sessions, each with some of its tests, and return their records."""

    def run(*chosen, source=TEST_FILE, **options):
        before = set((here / "run_data" / "runs").iterdir()) if (here / "run_data").exists() else set()
        for tests in chosen:
            session("-k", tests, source=source, **options)
        return [record for record in records(here) if record.folder not in before]

    return run


def merged(*parts):
    record = merge([part.folder for part in parts])
    assert not check_run(RunFolder(record.folder)).findings
    return record


def told(record):
    """What a record says of each item, in the order of the tests."""
    items = sorted(record.iter_items(), key=lambda item: item.index)
    return [item.model_dump(mode="json", exclude={"index", "interactions"}) for item in items]


def test_merged_session_equals_the_whole_session(sessions):
    *parts, whole = sessions("number and (0 or 1 or 2)", "number and (3 or 4 or 5)", "not number", "test")
    record = merged(*parts)
    assert told(record) == told(whole)
    assert [item.index for item in record.test_item_records] == list(range(7))
    assert record.result == whole.result
    assert (record.counts.items, record.counts.scored) == (whole.counts.items, whole.counts.scored) == (7, 7)
    assert record.hyperparameters == whole.hyperparameters
    for name in ("thresholds", "ranges", "annotators", "judges", "plugins", "repeats", "test_uid", "sut_uid"):
        assert getattr(record, name) == getattr(whole, name)
    assert record.failure is None
    assert record.merged_from == tuple(part.run_id for part in parts)


def test_merged_session_of_repeated_tests_equals_the_whole_session(sessions):
    *parts, whole = sessions("number and (3 or 4)", "not number", "not number or 3 or 4", repeat=2)
    record = merged(*parts)
    assert told(record) == told(whole)
    assert (record.repeats, record.result) == (2, whole.result)


def test_test_of_several_sessions_counts_once(sessions):
    one, two = sessions("not number or 0 or 1", "not number or 1 or 2")
    assert [item.test_item.id.rpartition("::")[2] for item in merged(one, two).iter_items()] == [
        "test_number[0]",
        "test_number[1]",
        "test_app",
        "test_number[2]",
    ]


def test_threshold_that_differs_between_sessions_is_that_of_no_measurement(sessions):
    strict, lax, also_strict = sessions("test_strict", "test_lax", "strict_too", source=THRESHOLDS)
    assert merged(strict, also_strict).thresholds == strict.thresholds
    record = merged(also_strict, lax)
    assert record.thresholds == {}
    assert [made["arguments"] for made in record.annotators.values()] == [
        {"threshold": 0.5},
        {"threshold": 0.2},
    ]
    assert set(record.annotators) == {"Share", "Share~2"}
    assert merged(record, strict).thresholds == {}  # the first of these sessions has no agreed threshold


def test_identifier_is_that_of_all_sessions_or_another(sessions):
    one, two = sessions("number and 0", "number and 1", identifier="ci")
    assert (merged(one, two).identifier, merged(one, two).test_uid) == ("ci", "ci")
    record = merge([one.folder, two.folder], identifier="nightly")
    assert (record.identifier, record.test_uid) == ("nightly", "nightly")
    assert load_record(record.folder).test_initialization["uid"] == "nightly"


def test_different_outcomes_of_a_test_are_refused(sessions):
    (one,) = sessions("number and 0")
    (two,) = sessions("number and 0", source=TEST_FILE.replace('else "right"', 'else "other"'))
    with pytest.raises(
        RecordError, match=r"test_number\[0\]' is not the same in run .*: its prompts or its context"
    ):
        merge([one.folder, two.folder])


def test_sessions_with_other_hyperparameters_or_repeats_are_refused(sessions):
    (one,) = sessions("number and 0")
    (two,) = sessions("number and 1", source=TEST_FILE.replace('"temperature": 1', '"temperature": 2'))
    with pytest.raises(RecordError, match=r"options\.hyperparameters\.temperature is 1 in the first, and 2"):
        merge([one.folder, two.folder])
    (three,) = sessions("number and 2", repeat=2)
    with pytest.raises(RecordError, match=r"options\.repeats is 1 in the first, and 2 in the second"):
        merge([one.folder, three.folder])


def test_interrupted_session_leaves_the_merged_session_interrupted(sessions):
    one, two = sessions("number and 0", "number and 1")
    path = two.folder / "record.json"
    path.write_text(
        path.read_text(encoding="utf-8").replace('"cancelled": false', '"cancelled": true'), "utf-8"
    )
    assert merged(one, two).cancelled is True
    path.unlink()
    record = merged(one, two)
    assert (record.cancelled, record.counts.items) == (True, 2)
    assert f"Run {two.run_id}: It was killed." in record.notes


def test_merged_session_cannot_be_resumed_and_is_still_a_session(sessions):
    one, two = sessions("number and 0", "number and 1")
    record = merged(one, two)
    manifest = json.loads((record.folder / "run.json").read_text(encoding="utf-8"))
    assert manifest["options"]["repeat"] == 1
    assert manifest["command"] is None
    (record.folder / "record.json").unlink()
    with pytest.raises(RecordError, match="there is nothing to resume"):
        resume(record.folder)


def test_session_and_run_are_not_merged(sessions, here):
    (one,) = sessions("number and 0")
    run = run_test("demo_01", FunctionSUT("yes", lambda text: "yes", version=1))
    for order in ((one, run), (run, one)):
        with pytest.raises(RecordError, match="are not parts of one run"):
            merge([each.folder for each in order])
