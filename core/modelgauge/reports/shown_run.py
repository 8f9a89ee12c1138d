"""A run as reports and commands show it: its record, its items in the order of the test, all of it as JSON.

A journal holds items in the order in which they finished, and may be larger than memory: only its offsets are held.
Of a run that has no record, one is made of what its files say.
"""

import json
import shlex
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from modelgauge.data.records import (
    SCHEMA_VERSION,
    ItemRecord,
    RunFailure,
    TestRecord,
    item_from_json,
    record_from_json,
)
from modelgauge.data.results import GIVEN
from modelgauge.engine.bookkeeping.tally import Tally
from modelgauge.engine.run_files.folder import MANIFEST, RECORD, RunFolder, whole_lines
from modelgauge.engine.totals import Totals, read_totals
from modelgauge.errors import NewRunNeededError
from modelgauge.files.regular import opened
from modelgauge.reports.thresholds import failing

_CAPS = {"--max-calls": "N", "--max-tokens-total": "N", "--max-cost": "USD"}
_PARTIAL = b'"failed_repeats":['
_SCORED = b'{"kind":"item"'  # how our own lines begin; any other line is parsed to see what it is


class JournalItems:
    """The items of a journal in the order of the test; of an item that stands twice, the last record.

    Args:
        journal: the `items.jsonl` of a run; it may be missing.
    """

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        places: dict[int, int] = {}  # the offset of an item's line; of a failed item its complement, below 0
        offset = 0
        for number, line in enumerate(whole_lines(journal), start=1):
            item = item_from_json(line, f"{journal}, line {number}")
            places[item.index] = offset if item.kind == "item" else ~offset
            offset += len(line)
        self._places = array("q", (places[index] for index in sorted(places)))

    def in_order(self, *kinds: str) -> Iterator[ItemRecord]:
        """The records of these kinds, or all."""
        wanted = [one for one in self._places if not kinds or ("item" if one >= 0 else "exception") in kinds]
        if not wanted:
            return
        with opened(self._journal) as file:
            for place in wanted:
                file.seek(max(place, ~place))
                yield item_from_json(file.readline(), str(self._journal))


class HeldItems:
    """The items of a record that holds them in memory, in the order of the test.

    Args:
        record: read from a file that `--output-file` wrote.
    """

    def __init__(self, record: TestRecord) -> None:
        self._items = sorted(record.iter_items(), key=lambda item: item.index)

    def in_order(self, *kinds: str) -> Iterator[ItemRecord]:
        """The records of these kinds, or all."""
        return (item for item in self._items if not kinds or item.kind in kinds)


@dataclass(frozen=True, slots=True)
class ShownRun:
    """A record, and where its run lies.

    Args:
        record: of the run.
        folder: the run's; None where the record comes from a file that `--output-file` wrote.
        ended: False where there is no record yet, and this one says how far the run is.
        going_on: whether a process works on the run now.
    """

    record: TestRecord
    folder: RunFolder | None = None
    ended: bool = True
    going_on: bool = False

    def items(self) -> JournalItems | HeldItems:
        """The items in the order of the test."""
        return HeldItems(self.record) if self.folder is None else JournalItems(self.folder.journal)

    def command(self, verb: str) -> str:
        """The command line that does something with the run."""
        return f"modelgauge {verb} {self.record.run_id}" if self.folder is None else self.folder.command(verb)

    @property
    def needs_correction(self) -> bool:
        """Whether it ended by an error of its test's author: done again, it ends alike."""
        return self.record.failure is not None and self.record.failure.stage != "run"

    def to_go_on(self) -> str | None:
        """The command that does what a run that was stopped has left to do; None where there is nothing to go on with,
        or only its caller can."""
        counts, failure = self.record.counts, self.record.failure
        if failure is not None and failure.error_type == NewRunNeededError.__name__:
            return None
        if self.needs_correction and not counts.scored + counts.failed:
            return None
        rescored = None if self.folder is None else self.folder.rescores()
        if self.record.sut_uid == GIVEN and rescored is None:  # nobody could be asked for more
            command = None if self.folder is None else self.folder.command_line()
            return shlex.join(command) if command and command[0] in ("pytest", "modelgauge") else None
        if rescored is None or self.folder is None:
            return self._of_objects() or f"{self.command('resume')}{higher_cap([self.record])}"
        command = self.folder.command_line()  # with the test or the metrics that it was given
        if command and command[0] == "modelgauge":  # a manifest may come from anybody
            return shlex.join(command)
        return RunFolder(self.folder.path.parent / rescored).command("rescore")

    def _of_objects(self) -> str | None:
        """How a run of a caller's own objects goes on, in Python: no command knows them."""
        inputs = {} if self.folder is None else self.folder.read_manifest().get("inputs")
        objects = inputs.get("objects") if isinstance(inputs, dict) else None
        if self.folder is None or not isinstance(objects, list):
            return None
        uids = {"test": self.record.test_uid, "sut": self.record.sut_uid}
        given = "".join(f", {kind}=…" for kind, uid in uids.items() if uid in objects)
        by_id = self.command("resume") == f"modelgauge resume {self.record.run_id}"
        run = self.record.run_id if by_id else str(self.folder.path)
        return f"modelgauge.resume({run!r}{given})" if given else None

    def failures(self) -> Iterator[ItemRecord]:
        """The records of the items that failed, wholly or in part, in any order."""
        if self.folder is None:
            yield from (one for one in self.record.iter_items() if one.failures)
            return
        journal = self.folder.journal
        for number, line in enumerate(whole_lines(journal), start=1):
            if line.startswith(_SCORED) and _PARTIAL not in line:  # wholly scored: it is not parsed
                continue
            record = item_from_json(line, f"{journal}, line {number}")
            if record.failures:
                yield record

    def not_passed(self, *, partial: bool = False) -> Iterator[ItemRecord]:
        """The scored items that are below a threshold, in the order of the test.

        Args:
            partial: those too of which repeats failed.
        """
        for record in self.items().in_order("item"):
            if failing(record) or (partial and record.failures):
                yield record


def higher_cap(records: Iterable[TestRecord]) -> str:
    """The options that `resume` needs, since caps were reached; nothing where none was."""
    messages = " ".join(record.failure.message for record in records if record.failure is not None)
    return "".join(
        f" {option} {metavar}" for option, metavar in _CAPS.items() if f"Raise {option}," in messages
    )


def record_as_json(
    run: ShownRun,
    *,
    scored: bool = True,
    failed: bool = True,
    not_passed: bool = False,
    redact_json: Callable[[Any], Any] = lambda value: value,
) -> Iterator[str]:
    """A record with its items as one JSON object, in pieces: items in the order of the test, one a line.

    Args:
        run: its record and where it lies.
        scored: with `test_item_records`.
        failed: with `test_item_exceptions`.
        not_passed: with those of the `test_item_records` that are below a threshold or failed in part.
        redact_json: takes secrets out of the record; out of the items they were taken when written.
    """
    yield json.dumps(redact_json(run.record.model_dump(mode="json")), ensure_ascii=False)[:-1]
    if not scored and not_passed:
        yield from _list("test_item_records", run.not_passed(partial=True))
    if scored or failed:
        items = run.items()
        if scored:
            yield from _list("test_item_records", items.in_order("item"))
        if failed:
            yield from _list("test_item_exceptions", items.in_order("exception"))
    yield "}"


def records_as_json(runs: Iterable[ShownRun], **wanted: Any) -> Iterator[str]:
    """Several records as `{"records": [...]}`, in pieces.

    Args:
        runs: their records and where they lie.
        wanted: as for `record_as_json`.
    """
    yield '{"records": ['
    for place, run in enumerate(runs):
        yield ",\n" if place else "\n"
        yield from record_as_json(run, **wanted)
    yield "]}"


def _list(name: str, items: Iterable[ItemRecord]) -> Iterator[str]:
    yield f',\n"{name}": ['
    for place, item in enumerate(items):
        yield f"{',' if place else ''}\n{item.model_dump_json()}"
    yield "]"


# --- runs without a record of their last session: going on, or killed -----------------------------

State = Literal["finished", "interrupted", "stopped", "running", "killed"]

_KNOWN = (
    "run_id",
    "invocation_id",
    "run_timestamp",
    "test_uid",
    "test_initialization",
    "sut_uid",
    "sut_initialization",
    "dependency_versions",
)


def state_of(folder: RunFolder) -> tuple[State, TestRecord | None]:
    """What became of a run, and the record that says so; None where its last session has written none.

    Raises:
        RecordError: one of its files is damaged.
    """
    record = folder.read_record() if (folder.path / RECORD).exists() else None
    if record is not None and record.failure is None and not record.cancelled:
        return "finished", record
    if folder.is_going_on():
        return "running", None
    totals = read_totals(folder)
    if record is None or not (totals is None or totals.ended):  # an earlier session's, which a kill survived
        return "killed", None
    return "interrupted" if record.cancelled else "stopped", record


def shown_run(folder: RunFolder) -> ShownRun:
    """A run as far as it is: with its record where it has one, else with what manifest and journal say.

    Raises:
        RecordError: one of these files is damaged, or it is no run.
    """
    state, ended = state_of(folder)
    if ended is not None:
        return ShownRun(ended, folder)
    manifest = folder.read_manifest()
    known = {name: manifest[name] for name in _KNOWN if name in manifest}
    version = manifest.get("schema_version", SCHEMA_VERSION)
    record = record_from_json({**known, "schema_version": version}, str(folder.path / MANIFEST))
    shown = ShownRun(record, folder, ended=False, going_on=state == "running")
    tally, totals = Tally(items=sum(1 for _ in whole_lines(folder.journal))), read_totals(folder)
    for one in shown.failures():
        tally.count(one)
    tally.outcomes["scored"] = tally.items - tally.failed
    (totals or Totals()).begin(tally)
    failure = RunFailure(stage="run", error_type="RunUnfinished", message=_state_message(folder, state))
    unfinished = record.replaced(
        run_id=folder.run_id,
        counts=tally.frozen(),
        failure=failure,
        seconds=totals.seconds if totals else None,
        spent=totals.spent if totals else None,
    )
    return ShownRun(unfinished.with_items(folder.items), folder, ended=False, going_on=shown.going_on)


def _state_message(folder: RunFolder, state: State) -> str:
    latest = folder.journal if folder.journal.exists() else folder.path / MANIFEST
    written = datetime.fromtimestamp(latest.stat().st_mtime, UTC)
    became = "It is going on" if state == "running" else "It was killed, or its record could not be written"
    return f"{became}; the last item was written at {written:%Y-%m-%d %H:%M:%S} UTC."
