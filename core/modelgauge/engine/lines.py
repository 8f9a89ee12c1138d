"""An item's record as a line of the journal; where it cannot be one, a record that can, and that says so."""

from collections.abc import Callable
from typing import Any

from modelgauge.data.items import TestItem
from modelgauge.data.records import ItemRecord, TestItemExceptionRecord, item_from_json
from modelgauge.engine.failures import StageError, exception_record, message_of
from modelgauge.errors import InvalidDataError


def line_of(record: ItemRecord, test_uid: str, redact: Callable[[str], str]) -> tuple[ItemRecord, bytes]:
    """An item's record as those who watch get it, without secrets too, and its line.

    Args:
        record: of an item.
        test_uid: of its test, whose code alone could have put something into it that is no JSON.
        redact: takes secrets out of a JSON text.
    """
    try:
        written = record.model_dump_json()
    except Exception as error:  # noqa: BLE001  whatever an author's object raises when it is written
        record = _writable(record, test_uid, error)
        written = record.model_dump_json()
    clean = redact(written)
    line = clean.encode("utf-8")
    return record if clean == written else item_from_json(line, "The record of an item"), line + b"\n"


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
