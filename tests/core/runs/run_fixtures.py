"""Records and runs to make reports of."""

import pytest

from modelgauge.data.item_records import TestItemExceptionRecord, TestItemRecord
from modelgauge.data.items import TestItem
from modelgauge.data.records import TestRecord
from modelgauge.engine.run_files.folder import RunFolder


def make_record(**changes):
    facts = {
        "run_id": "20260131-120000-a1b2c3",
        "invocation_id": "20260131-120000-d4e5f6",
        "run_timestamp": "2026-01-31T12:00:00+00:00",
        "test_uid": "a_test",
        "test_initialization": {},
        "sut_uid": "a_sut",
        "sut_initialization": {},
        "seconds": 3.2,
    }
    return TestRecord(**{**facts, **changes})


def make_scored(index, **changes):
    item = TestItem([f"prompt {index}"], id=f"i{index}")
    return TestItemRecord(index=index, test_item=item, interactions=(), measurements={"x": 1.0}, **changes)


def make_failure(index, message="it broke", stage="sut", error_type="ValueError"):
    item = TestItem([f"prompt {index}"], id=f"i{index}")
    return TestItemExceptionRecord(
        index=index,
        test_item=item,
        stage=stage,
        source_uid="a_sut",
        error_type=error_type,
        message=message,
        traceback="Traceback: ...",
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A run's folder, where it is by default, whose journal holds the given records in the given order."""

    monkeypatch.chdir(tmp_path)

    def folder(*items):
        run = RunFolder(tmp_path / "run_data" / "runs" / "20260131-120000-a1b2c3")
        run.path.mkdir(parents=True, exist_ok=True)
        (run.path / "run.json").write_text("{}", encoding="utf-8")
        run.journal.write_text("".join(item.model_dump_json() + "\n" for item in items), encoding="utf-8")
        return run

    return folder


@pytest.fixture
def record():
    return make_record


@pytest.fixture
def scored():
    return make_scored


@pytest.fixture
def failure():
    return make_failure
