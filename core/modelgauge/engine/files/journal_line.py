"""An item's record as a line of the journal; where it cannot be one, a record that can, and that says so."""

import json
from collections.abc import Callable
from typing import Any

from pydantic_core import to_json

from modelgauge.data.items import TestItem, hex_digest
from modelgauge.data.records import ItemRecord, TestItemExceptionRecord, item_from_json
from modelgauge.engine.bookkeeping.failures import StageError, exception_record, message_of
from modelgauge.errors import InvalidDataError


def line_of(record: ItemRecord, test_uid: str, redact: Callable[[str], str]) -> tuple[ItemRecord, bytes]:
    """An item's record as those who watch get it, without secrets too, and its line.

    Args:
        record: of an item.
        test_uid: of its test, whose code alone could have put something into it that is no JSON.
        redact: takes secrets out of a JSON text.
    """
    try:
        written = _written(record)
    except Exception as error:  # noqa: BLE001  whatever an author's object raises when it is written
        record = _writable(record, test_uid, error)
        written = _written(record)
    clean = redact(written)
    if clean != written:
        redacted = item_from_json(clean.encode("utf-8"), "The record of an item")
        record = redacted.replaced(redacted=record.redacted or _answers(written) != _answers(clean))
        clean = record.model_dump_json()
    return record, clean.encode("utf-8") + b"\n"


def _written(record: ItemRecord) -> str:
    """The JSON of a record with the digests of its item, which are taken of the text that stands there anyhow."""
    written, item_id = record.model_dump_json(), record.test_item.id
    if record.digests is not None:
        return written
    begins, ends = '"test_item":', f'"id":{to_json(item_id).decode()}}}'
    begin = written.index(begins) + len(begins)
    end = written.index(f'{ends},"interactions":', begin) + len(ends)
    head, _, tail = written.rpartition('"digests":null')
    digests = f'{{"id":"{hex_digest(str(item_id))}","item":"{hex_digest(written[begin:end])}"}}'
    return f'{head}"digests":{digests}{tail}'


def _answers(written: str) -> list[Any]:
    """The responses in a record, without what was said of them."""
    responses = [one["response"] for one in json.loads(written)["interactions"]]
    return [each["completion"] for one in responses for each in one["completions"]]


def _writable(record: ItemRecord, test_uid: str, error: Exception) -> TestItemExceptionRecord:
    """The failure of an item that cannot be written, with all of it that can be."""
    item = record.test_item if _is_writable(record.test_item) else without_contexts(record.test_item)
    plain = [one.replaced(prompt=one.prompt.replaced(context=None)) for one in record.interactions]
    either = [
        (one if _is_writable(one) else bare) for one, bare in zip(record.interactions, plain, strict=True)
    ]
    kept = [one for one in either if _is_writable(one)]
    if isinstance(record, TestItemExceptionRecord):
        return record.replaced(test_item=item, interactions=tuple(kept))
    told = InvalidDataError(
        f"The record of item '{item.id}' cannot be written: {message_of(error)}",
        fix="Keep what measure_quality works out in variables of its own: what it puts into an item, a context or an "
        "annotation is recorded, and must be JSON.",
    )
    return exception_record(record.index, item, kept, StageError("measure", test_uid, told))


def without_contexts(item: TestItem) -> TestItem:
    """An item as it is recorded where its contexts cannot be written."""
    return item.replaced(
        context=None, prompts=tuple([prompt.replaced(context=None) for prompt in item.prompts])
    )


def _is_writable(part: Any) -> bool:
    try:
        part.model_dump_json()
    except Exception:  # noqa: BLE001  it is told by then
        return False
    return True
