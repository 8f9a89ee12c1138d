"""Records with their items as JSON: written in pieces, for `--json` and `--output-file`; items are read on demand."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from heapq import merge
from itertools import islice, starmap
from operator import attrgetter
from pathlib import Path
from typing import Any

from modelgauge.data.item_records import ItemRecord, item_from_json
from modelgauge.data.records import ITEM_FIELDS, TestRecord, record_from_json
from modelgauge.engine.run_files.folder import parsed_json, read_json
from modelgauge.engine.run_files.lines import unreadable
from modelgauge.errors import RecordError
from modelgauge.files.regular import opened
from modelgauge.runs.recorded_run import RecordedRun


def record_as_json(
    run: RecordedRun,
    *,
    scored: bool = True,
    failed: bool = True,
    not_passed: bool = False,
    chosen: Callable[[RecordedRun], Iterable[ItemRecord]] | None = None,
    redact_json: Callable[[Any], Any] = lambda value: value,
) -> Iterator[str]:
    """Yield a record with its items as one JSON object, in pieces: items in the order of the test, one per line.

    Args:
        run: its record and where it lies.
        scored: with `test_item_records`.
        failed: with `test_item_exceptions`.
        not_passed: with those of the `test_item_records` that are below a threshold or failed in part.
        chosen: returns the items that are wanted, whatever the other arguments say.
        redact_json: takes secrets out of the record; out of the items they were taken when written.
    """
    yield json.dumps(redact_json(run.record.model_dump(mode="json")), ensure_ascii=False)[:-1]
    if chosen is not None:
        for name, kind in (("test_item_records", "item"), ("test_item_exceptions", "exception")):
            yield from _list(name, (record for record in chosen(run) if record.kind == kind))
        yield "}"
        return
    if not scored and not_passed:
        yield from _list("test_item_records", run.not_passed(partial=True))
    if scored or failed:
        items = run.items()
        if scored:
            yield from _list("test_item_records", items.records(~items.failed))
        if failed:
            yield from _list("test_item_exceptions", items.records(items.failed))
    yield "}"


def records_as_json(runs: Iterable[RecordedRun], **wanted: Any) -> Iterator[str]:
    """Yield several records as `{"records": [...]}`, in pieces.

    Args:
        runs: their records and where they lie.
        wanted: see `record_as_json`.
    """
    yield '{"records": ['
    for place, run in enumerate(runs):
        yield ",\n" if place else "\n"
        yield from record_as_json(run, **wanted)
    yield "]}"


def _list(name: str, items: Iterable[ItemRecord]) -> Iterator[str]:
    """Yield a list with each item on its own line, so that a reader need not load them all."""
    yield f',\n"{name}": ['
    comma = ""
    for item in items:
        yield f"\n{comma}{item.model_dump_json()}"
        comma = ","
    yield "\n]" if comma else "]"


# --- reading ---------------------------------------------------------------------------------------


_ITEM = re.compile(rb',?\{"kind":"(?:item|exception)","index":\d{1,18},.*\}\n')
"""A line that is an item and nothing else, as this version writes it."""


def records_in(file: Path) -> list[TestRecord]:
    """Return the records in a file of `--output-file`, or the record in a `record.json` without its run.

    Raises:
        RecordError: it holds something else.
    """
    found = _without_items(file)
    if found is not None:
        return [_record(record, file) for record in found]
    return [record_from_json(record, str(file)) for record in _records(read_json(file, links=True))]


def _records(data: Any) -> list[Any]:
    several = data.get("records") if isinstance(data, dict) else None
    return several if isinstance(several, list) else [data]


def _without_items(file: Path) -> list[dict[str, Any]] | None:
    """Return the records of a file as JSON, with [offset, number] of its lines in place of each list of items.

    None if items are not on lines of their own, as in files of older versions or other programs.
    """
    parts: list[bytes] = []
    offset = number = 0  # of lines of items that follow each other
    try:
        with opened(file, links=True) as lines:
            for line in lines:
                if _ITEM.fullmatch(line):
                    parts += [] if number else [b"%d" % offset]
                    number += 1
                else:
                    parts += [b",%d" % number, line] if number else [line]
                    number = 0
                offset += len(line)
        found = _records(parsed_json(b"".join(parts).decode()))
    except OSError as error:
        raise unreadable(file, error) from None
    except (ValueError, RecursionError):
        return None
    return found if all(map(_names_lines, found)) else None


def _names_lines(data: Any) -> bool:
    return isinstance(data, dict) and all(
        isinstance(lines := data.get(name, []), list) and list(map(type, lines)) in ([], [int, int])
        for name in ITEM_FIELDS
    )


def _record(data: dict[str, Any], file: Path) -> TestRecord:
    lists = [lines for name in ITEM_FIELDS if (lines := data.get(name))]
    record = record_from_json({**data, **dict.fromkeys(ITEM_FIELDS)}, str(file))
    return record.with_items(lambda: merge(*starmap(partial(_items, file), lists), key=attrgetter("index")))


def _items(file: Path, offset: int, number: int) -> Iterator[ItemRecord]:
    """Yield the items on consecutive lines from an offset on."""
    with opened(file, links=True) as lines:
        lines.seek(offset)
        for line in islice(lines, number):
            try:
                yield item_from_json(line.lstrip(b","), str(file))
            except RecordError as error:
                raise RecordError(error.problem, fix="Give a file that modelgauge wrote.") from None
