"""Reading records and journal lines from files, whoever wrote them."""

import json
import subprocess
import sys

import pytest

from modelgauge.data.item_records import (
    TestItemExceptionRecord,
    TestItemRecord,
    item_from_json,
)
from modelgauge.data.items import TestItem
from modelgauge.data.records import SCHEMA_VERSION, TestRecord, record_from_json
from modelgauge.errors import InvalidDataError, RecordError

OWN = {
    "schema_version": SCHEMA_VERSION,
    "run_id": "r",
    "invocation_id": "i",
    "run_timestamp": "t",
    "test_uid": "t",
    "test_initialization": {},
    "sut_uid": "s",
    "sut_initialization": {},
    "result": {"accuracy": 0.5},
}
ITEM = TestItemRecord(index=1, test_item=TestItem("a", id="x"), interactions=(), measurements={"m": 1})
FAILED = TestItemExceptionRecord(
    index=0, test_item=TestItem("b"), stage="sut", source_uid="s", error_type="E", message="m", traceback="t"
)


def as_json(value):
    return json.loads(value.model_dump_json())


def test_a_record_with_its_items():
    later = ITEM.replaced(index=0)
    data = {
        **OWN,
        "test_item_records": [as_json(ITEM), as_json(later)],
        "test_item_exceptions": [as_json(FAILED)],
    }
    record = record_from_json(data, "file.json")
    assert record.test_item_records == (later, ITEM)
    assert record.test_item_exceptions == (FAILED,)
    assert len(list(record.iter_items())) == 3
    assert record.result == {"accuracy": 0.5}


def test_a_record_without_items_has_none():
    assert record_from_json(OWN, "file.json").test_item_records == ()


def test_unknown_fields_of_a_whole_file_are_one_warning():
    items = [{**as_json(ITEM), "new": 1}, {**as_json(ITEM), "new": 1}]
    with pytest.warns(UserWarning, match="file.json: skipped fields") as caught:
        record = record_from_json({**OWN, "newer": 1, "test_item_records": items}, "file.json")
    assert len(caught) == 1
    assert len(record.test_item_records) == 2


@pytest.mark.parametrize("version", [SCHEMA_VERSION + 1, 0, "1", None, True, 1.0])
def test_other_schema_versions_are_refused(version):
    with pytest.raises(RecordError, match="schema_version"):
        record_from_json({**OWN, "schema_version": version}, "file.json")


def test_a_newer_schema_version_is_refused_by_the_class_too():
    with pytest.raises(InvalidDataError, match="schema_version"):
        TestRecord.load({**OWN, "schema_version": SCHEMA_VERSION + 1})


@pytest.mark.parametrize(
    "data",
    [
        None, [], "x", {}, {"run_id": 1}, {**OWN, "counts": 5}, {**OWN, "test_item_records": 5},
        {**OWN, "test_item_records": "abc"}, {**OWN, "test_item_records": [5]}, {**OWN, "test_uid": None},
        {**OWN, "result": {"a": {"value": 1, "n": "x", "stderr": None, "interval": None, "bounds": None}}},
        {**OWN, "result": []}, {**OWN, "seconds": -1}, {**OWN, "seconds": 1e308},
        {**OWN, "concurrency": {"sut": [{"seconds": -1, "limit": 1, "why": "saturated"}]}},
    ],
)  # fmt: skip
def test_what_is_no_record_is_an_error_that_names_the_file(data):
    with pytest.raises(RecordError, match=r"file\.json"):
        record_from_json(data, "file.json")


@pytest.mark.parametrize("record", [ITEM, FAILED])
def test_journal_lines(record):
    line = record.model_dump_json().encode() + b"\n"
    assert item_from_json(line, "journal, line 1") == record
    shuffled = json.dumps(dict(reversed(as_json(record).items()))).encode()
    assert item_from_json(shuffled, "journal, line 1") == record
    newer = json.dumps({**as_json(record), "newer": 1}).encode()
    with pytest.warns(UserWarning, match="newer"):
        assert item_from_json(newer, "journal, line 1") == record


@pytest.mark.parametrize(
    "line",
    [b"", b"{", b"null", b"[]", b"{}", b'{"kind": "other"}', b'{"kind": []}', b'{"kind":"item","index":1}',
     b"\xff",
     b"[" * 100_000, b'{"kind":"item",' + b'"x":' + b"9" * 5000 + b"}"],
    ids=lambda line: repr(line[:20]),
)  # fmt: skip
def test_damaged_journal_lines_are_an_error_that_names_the_line(line):
    with pytest.raises(RecordError, match="journal, line 7"):
        item_from_json(line, "journal, line 7")


def test_loading_imports_no_class_that_a_record_names():
    code = """
import json, sys
from modelgauge.data.records import record_from_json
data = json.loads(sys.argv[1])
data["sut_initialization"] = {"class_name": "this:That", "arguments": {"$model": "this:That"}}
record_from_json(data, "file")
assert "this" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code, json.dumps(OWN)], check=True, timeout=60)


FAILURE = FAILED.failures[0]


def test_scored_item_has_failures_of_repeats():
    record = TestItemRecord(
        index=0,
        test_item=TestItem("a"),
        interactions=(),
        measurements={},
        failures=[FAILURE.replaced(repeat=1)],
    )
    assert record.is_scored
    assert record.failure is None
    assert record.failed_repeats == record.failures
    assert record.outcome == "failed in part"
    assert not hasattr(record, "error_type")
    assert [failure["repeat"] for failure in as_json(record)["failed_repeats"]] == [1]
    assert item_from_json(record.model_dump_json().encode(), "f") == record


def test_failed_item_has_one_failure_whose_fields_are_its_own_in_json():
    assert not FAILED.is_scored
    assert FAILED.failure == FAILURE
    assert (FAILED.stage, FAILED.source_uid, FAILED.error_type, FAILED.message) == ("sut", "s", "E", "m")
    written = as_json(FAILED)
    assert list(written)[4:10] == ["stage", "source_uid", "error_type", "message", "traceback", "traces"]
    assert "failures" not in written
    assert item_from_json(json.dumps(written).encode(), "f") == FAILED


def test_failure_of_other_kind_of_item_is_refused():
    with pytest.raises(InvalidDataError, match="failures of repeats"):
        TestItemRecord(index=0, test_item=TestItem("a"), interactions=(), measurements={}, failures=[FAILURE])
    with pytest.raises(InvalidDataError, match="one of the whole item"):
        TestItemExceptionRecord(index=0, test_item=TestItem("a"), failures=[FAILURE.replaced(repeat=0)])
