"""The JSON of runs with their items, in pieces: what `--json` and `--output-file` write."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from modelgauge.data.item_records import ItemRecord
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
    """A record with its items as one JSON object, in pieces: items in the order of the test, one a line.

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
            yield from _list("test_item_records", items.in_order("item"))
        if failed:
            yield from _list("test_item_exceptions", items.in_order("exception"))
    yield "}"


def records_as_json(runs: Iterable[RecordedRun], **wanted: Any) -> Iterator[str]:
    """Several records as `{"records": [...]}`, in pieces.

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
    """Each item stands on a line of its own, so that `record_files.py` need not hold them all."""
    yield f',\n"{name}": ['
    comma = ""
    for item in items:
        yield f"\n{comma}{item.model_dump_json()}"
        comma = ","
    yield "\n]" if comma else "]"
