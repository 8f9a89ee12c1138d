"""Runs with items of one's own, as records in memory and as folders."""

import json

from modelgauge.data.item_records import TestItemExceptionRecord, TestItemRecord
from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.data.records import TestRecord
from modelgauge.engine.run_files.folder import RunFolder


def item(index, value=1.0, *, item_id=None, source=None, context=None, prompt=None, **fields):
    """The record of an item; of a failed one where the value is None."""
    prompts = prompt if isinstance(prompt, list) else [prompt or f"question {index}"]
    asked = TestItem(
        [PromptWithContext(prompt, source, context) for prompt in prompts],
        id=f"i{index}" if item_id is None else item_id,
    )
    if value is None:
        failure = {"stage": "sut", "source_uid": "s", "error_type": "E", "message": "m", "traceback": "t"}
        return TestItemExceptionRecord(index=index, test_item=asked, **failure, **fields)
    measurements = value if isinstance(value, dict) else {"right": value}
    return TestItemRecord(index=index, test_item=asked, interactions=(), measurements=measurements, **fields)


def record(sut, *items, run_id=None, **fields):
    """The record of a run that holds its items."""
    said = {
        "run_id": run_id or f"20260131-120000-{sut}",
        "invocation_id": "20260131-120000-000000",
        "run_timestamp": "2026-01-31T12:00:00+00:00",
        "test_uid": "exam",
        "test_initialization": {
            "uid": "exam",
            "class_name": "tests:Exam",
            "cache_version": 0,
            "arguments": {},
        },
        "sut_uid": sut,
        "sut_initialization": {"uid": sut, "class_name": "suts:Any", "cache_version": 0, "arguments": {}},
        "directions": {},
        "ranges": {},
    }
    return TestRecord(**{**said, **fields}).with_items(lambda: items)


def folder(data_dir, made, *, ended=True):
    """The folder of a run, with a manifest, a journal, and where it ended a record."""
    run = RunFolder(data_dir / "runs" / made.run_id)
    run.path.mkdir(parents=True)
    manifest = made.model_dump(mode="json", exclude={"counts", "result"})
    (run.path / "run.json").write_text(json.dumps(manifest), encoding="utf-8")
    run.journal.write_text(
        "".join(f"{record.model_dump_json()}\n" for record in made.iter_items()), encoding="utf-8"
    )
    if ended:
        run.write_record(made, str)
    return run
