"""Writing of the journal: its file, and the lines of items' records."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from modelgauge.cache.keys import was_redacted
from modelgauge.data.annotations import Interaction
from modelgauge.data.item_records import ItemRecord, item_from_json, json_fields
from modelgauge.data.items import Digests, PromptWithContext, TestItem, hex_digest
from modelgauge.engine.bookkeeping.failures import StageError, describe_error, exception_record
from modelgauge.engine.run_files.folder import refused
from modelgauge.engine.run_files.lines import whole_lines
from modelgauge.errors import InvalidDataError, RecordError
from modelgauge.files.lock import lock
from modelgauge.files.regular import opened
from modelgauge.files.whole import append_whole

JOURNAL_VERSION = 2  # in lines of version 1 each interaction holds its whole prompt, and no key

# While somebody looks whether a run is going on, its journal is locked for a moment.
_PATIENCE = 0.2  # seconds


class JournalFile:
    """A journal that is being written; used by the writer thread only.

    Args:
        path: opened for appending; a torn last line is cut off when the next line is appended.

    Raises:
        RunStoppedError: the disk refuses.
        RecordError: another process is writing it.
    """

    def __init__(self, path: Path) -> None:
        try:
            held = lock(path, "a+b", _PATIENCE)
            if held is None:
                raise RecordError(
                    f"Run {path.parent.name} is going on in another process.",
                    fix="Wait for it to end, or stop it; then resume it.",
                )
            self._lock = held
            self._file = opened(path, "a+b")
            self.size = sum(map(len, whole_lines(path)))
            self._is_torn = self._file.seek(0, os.SEEK_END) != self.size
        except OSError as error:
            raise refused(path, error) from error

    def append(self, data: bytes) -> None:
        """Write whole lines; they survive the process from then on. All of them are written, or none."""
        if self._is_torn:
            self._file.truncate(self.size)
            self._is_torn = False
        append_whole(self._file, data)
        self.size += len(data)

    def close(self) -> None:
        self._file.close()
        self._lock.close()


def make_line(record: ItemRecord, test_uid: str, redact: Callable[[str], str]) -> tuple[ItemRecord, bytes]:
    """Return an item's record with secrets removed, for observers, and its line in the journal.

    Args:
        record: of an item.
        test_uid: of its test, whose code alone could have put something into it that is no JSON.
        redact: takes secrets out of a JSON text.
    """
    try:
        written = _dump_record(record)
    except Exception as error:  # noqa: BLE001  whatever an author's object raises when it is written
        record = _writable(record, test_uid, error)
        written = _dump_record(record)
    clean = redact(written)
    if clean != written or was_redacted(written):
        item = record.test_item
        digests = record.digests or Digests(
            id=hex_digest(str(item.id)), item=hex_digest(item.model_dump_json())
        )
        redacted = item_from_json(clean.encode("utf-8"), "The record of an item")
        is_redacted = record.redacted or _answers(written) != _answers(clean)
        record = redacted.replaced(digests=digests, redacted=is_redacted)
        clean = _dump_record(record)
    return record, clean.encode("utf-8") + b"\n"


def blank_line(index: int, length: int) -> bytes:
    """Return a line of a given length without any text of an item, to overwrite a replaced line.

    Args:
        index: the index in the replaced line.
        length: the length of the replaced line, its newline included. No line of an item is shorter than a blank one.
    """
    failure = dict.fromkeys(("source_uid", "error_type", "message", "traceback"), "")
    item = {"prompts": [{"prompt": {"text": ""}}]}
    blank = to_json({"kind": "exception", "index": index, "test_item": item, "stage": "measure", **failure})
    return blank.ljust(length - 1) + b"\n"


def _dump_record(record: ItemRecord) -> str:
    """Serialize a record so that interactions refer to prompts by their position in the item."""
    prompts = record.test_item.prompts
    fields = json_fields(record)
    fields["interactions"] = [_interaction(interaction, prompts) for interaction in record.interactions]
    return to_json(fields).decode()


def _interaction(interaction: Interaction, prompts: Sequence[PromptWithContext]) -> dict[str, Any]:
    """Return the fields of an interaction for a line, with the prompt only if the item lacks it."""
    fields = {"prompt_index": 0, **interaction.__dict__}
    del fields["prompt"]
    if interaction.prompt is not prompts[0]:
        places = [place for place, prompt in enumerate(prompts) if prompt is interaction.prompt]
        fields |= (
            {"prompt_index": places[0]} if places else {"prompt_index": None, "prompt": interaction.prompt}
        )
    for name in ("annotation_keys", "other_keys", "time"):
        if not fields[name]:
            del fields[name]
    return fields


def _answers(written: str) -> list[Any]:
    """Return the completions in a record, without annotations."""
    responses = [interaction["response"] for interaction in json.loads(written)["interactions"]]
    return [each["completion"] for response in responses for each in response["completions"]]


def _writable(record: ItemRecord, test_uid: str, error: Exception) -> ItemRecord:
    """Return a failure record for an item that cannot be written, with everything that can."""
    item = record.test_item if _is_writable(record.test_item) else without_contexts(record.test_item)
    plain = [
        interaction.replaced(prompt=interaction.prompt.replaced(context=None))
        for interaction in record.interactions
    ]
    either = [
        (interaction if _is_writable(interaction) else bare)
        for interaction, bare in zip(record.interactions, plain, strict=True)
    ]
    kept = [interaction for interaction in either if _is_writable(interaction)]
    if not record.is_scored:
        return record.replaced(test_item=item, interactions=tuple(kept))
    unwritable = InvalidDataError(
        f"The record of item '{item.id}' cannot be written: {describe_error(error)}",
        fix="Keep intermediate values of measure_quality in local variables: what it puts into an item, a context or "
        "an annotation is recorded, and must be JSON.",
    )
    return exception_record(record.index, item, kept, StageError("measure", test_uid, unwritable))


def without_contexts(item: TestItem) -> TestItem:
    """Return an item without its contexts, for records in which they cannot be written."""
    return item.replaced(
        context=None, prompts=tuple([prompt.replaced(context=None) for prompt in item.prompts])
    )


def _is_writable(part: Any) -> bool:
    try:
        part.model_dump_json()
    except Exception:  # noqa: BLE001  its record says so
        return False
    return True
