"""A work whose items workers do: the brief that they get, and the records that they send."""

import hashlib
import logging
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from modelgauge.config.run_options import RunOptions
from modelgauge.data.item_records import ItemRecord, item_from_json
from modelgauge.data.items import TestItem, hex_digest
from modelgauge.engine.bookkeeping.failures import StageError, exception_record
from modelgauge.engine.executors.base import Executor
from modelgauge.engine.executors.messages import END, Brief, MessageError, packed
from modelgauge.engine.executors.pool import Pool
from modelgauge.engine.executors.remote_worker import Recorded
from modelgauge.engine.items.answers import Answerer
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.engine.run_files.journal import make_line
from modelgauge.engine.work import Work
from modelgauge.errors import RecordError, WorkerLostError
from modelgauge.files.regular import read_bytes

_KEY = re.compile(r"[0-9a-f]{64}")


class RemoteWork:
    """The items of a work, while workers work on them.

    Args:
        work: is done.
        number: of the work.
        pool: of the workers.
        answerer: hands answers on that are recorded.
        options: of the run.
    """

    def __init__(self, work: Work, number: int, pool: Pool, answerer: Answerer, options: RunOptions) -> None:
        self._work, self._number, self._pool, self._answerer = work, number, pool, answerer
        self._redact = options.redactor.redact_json_text

    async def recorded(self, index: int, item: TestItem) -> tuple[ItemRecord, bytes]:
        """Return the record of an item, with secrets removed, and its line in the journal.

        Raises:
            RunStoppedError: no call may be sent any more; the item is not done.
        """
        try:
            return await self._pool.recorded(
                self._number,
                index,
                item,
                self._answerer.handed_on(index),
                lambda line: self._read(index, item, line),
            )
        except WorkerLostError as error:
            failure = StageError("sut", self._work.answer_source.uid, error)
            return make_line(exception_record(index, item, (), failure), self._work.test.uid, self._redact)

    def _read(self, index: int, item: TestItem, line: bytes) -> Recorded:
        """Read a record from a line of a worker.

        Raises:
            MessageError: the line is not a record of this item.
        """
        try:
            record = item_from_json(line, "a line that")
        except RecordError as error:
            raise MessageError(error.problem.rstrip(".")) from error
        _check_record(index, item, record)
        text = line.decode()
        if self._redact(text) != text:
            # A worker redacts the secrets that it has; this machine may have others.
            return make_line(record, self._work.test.uid, self._redact)
        return record, line + END

    async def notes(self) -> tuple[str, ...]:
        """Return the workers' notes for the record of the work. All counts are in the tally by then."""
        return tuple(await self._pool.report(self._number))


def _check_record(index: int, item: TestItem, record: ItemRecord) -> None:
    """Check that a record belongs to an item. Contexts may differ, since measuring may change them."""
    recorded = record.test_item
    if record.digests is None:
        prompts = [prompt.prompt for prompt in item.prompts]
        is_same = recorded.id == item.id and [prompt.prompt for prompt in recorded.prompts] == prompts
    else:  # secrets were removed
        is_same = record.digests.id == hex_digest(str(item.id))
    if record.index != index or not is_same:
        raise MessageError(f"a record of another item than {index}")
    for interaction in record.interactions:
        if not all(_KEY.fullmatch(key) for key in interaction.keys):
            raise MessageError(f"a record of item {index} with an invalid cache key")


def briefed(
    works: Iterable[tuple[Work, RunFolder, Mapping[str, Any]]],
    options: RunOptions,
    executor: Executor,
    secrets: Mapping[str, str],
) -> bytes:
    """Build the message that tells workers their work.

    Args:
        works: each with the folder of its run, and the manifest.
        options: of the run.
        executor: starts the workers.
        secrets: values by name.
    """
    listed = list(works)
    manifests = tuple(options.redactor.redact_json(dict(manifest)) for _, _, manifest in listed)
    journals = [work.answer_source.journal for work, _, _ in listed]
    brief = Brief(
        works=manifests,
        folders=tuple(str(folder.path.absolute()) for _, folder, _ in listed),
        answers=tuple(None if folder is None else str(folder.path.absolute()) for folder in journals),
        data_dir=str(options.data_dir),
        cache=options.cache,
        files=hash_files(manifests[0].get("inputs", {}).get("plugins", ())),
        secrets=dict(secrets) if executor.hands_secrets else None,
        path=tuple(sys.path) if executor.hands_secrets else None,
        log_level=logging.getLogger("modelgauge").getEffectiveLevel(),
        retry_failed=options.retry_failed,
    )
    return packed("brief", body=brief.model_dump_json().encode())


def hash_files(plugins: Iterable[str]) -> dict[str, str]:
    """SHA-256 of those plugins that are files; modules belong to a distribution, whose version counts."""
    files = [plugin for plugin in plugins if Path(plugin).is_absolute()]
    return {file: hash_file(Path(file)) for file in files}


def hash_file(file: Path) -> str:
    """SHA-256 of a file; a plain text where there is none."""
    return hashlib.sha256(read_bytes(file)).hexdigest() if file.is_file() else "no such file"
