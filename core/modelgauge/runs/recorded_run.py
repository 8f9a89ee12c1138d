"""`RecordedRun`: the record of a run, its folder, its items, its state, and the command that continues it.

If the last session of a run wrote no record, a record is made from its other files.
"""

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from modelgauge.data.item_records import ItemRecord
from modelgauge.data.records import SCHEMA_VERSION, RunIdentity, TestRecord, record_from_json
from modelgauge.data.results import GIVEN, RunFailure
from modelgauge.data.thresholds import failing
from modelgauge.engine.bookkeeping.tally import Tally
from modelgauge.engine.run_files.folder import MANIFEST, RECORD, RunFolder
from modelgauge.engine.run_files.lines import ItemLines, JournalLines, RecordLines
from modelgauge.engine.totals import Totals, read_totals
from modelgauge.errors import NewRunNeededError

if TYPE_CHECKING:
    from modelgauge.engine.items.item_frame import ItemFrame, ItemRecords

_CAPS = {"--max-calls": "N", "--max-tokens-total": "N", "--max-cost": "USD"}


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A record, and the folder of its run.

    Args:
        record: of the run.
        folder: the run's; None if the record comes from a file that `--output-file` wrote.
        ended: False if the run has no record yet; then this record says how far the run is.
        going_on: whether a process works on the run now.
    """

    record: TestRecord
    folder: RunFolder | None = None
    ended: bool = True
    going_on: bool = False

    def items(self) -> "ItemRecords":
        """Return the records of the items in the order of the test."""
        records: ItemRecords = _frames().ItemRecords(self._lines())
        return records

    def frame(self, *, match: str | None = None, group: str | None = None) -> "ItemFrame":
        """Return the columns of the items in the order of the test.

        Args:
            match: see `ItemFrame`.
            group: see `ItemFrame`.
        """
        frame: ItemFrame = _frames().ItemFrame(self._lines(), self.record, match=match, group=group)
        return frame

    def _lines(self) -> ItemLines:
        return RecordLines(self.record) if self.folder is None else JournalLines(self.folder.journal)

    def command(self, verb: str) -> str:
        """Return a command line for this run."""
        return f"modelgauge {verb} {self.record.run_id}" if self.folder is None else self.folder.command(verb)

    @property
    def needs_correction(self) -> bool:
        """True if it ended with an error of its test's author, which would occur again."""
        return self.record.failure is not None and self.record.failure.stage != "run"

    def to_go_on(self) -> str | None:
        """Return the command that continues a stopped run; None if nothing is left, or only its caller can continue
        it.
        """
        failure = self.record.failure
        if failure is not None and failure.error_type == NewRunNeededError.__name__:
            return None
        if self.needs_correction and not self.record.counts.finished:
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
        """Return how to continue a run of a caller's own objects in Python, since no command has them."""
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
        """Yield the records of the items that failed, wholly or in part, in the order in which they were written."""
        items = self.items()
        written = items.written
        yield from items.records(written[items.has_failures[written]])

    def not_passed(self, *, partial: bool = False) -> Iterator[ItemRecord]:
        """Return the scored items below a threshold, in the order of the test.

        Args:
            partial: those too of which repeats failed.
        """
        items = self.items()
        for record in items.records(~items.failed):
            if failing(record.measurements) or (partial and record.failures):
                yield record


def _frames() -> Any:
    """Import the module of frames when it is used: it needs numpy, which a worker does without."""
    return import_module("modelgauge.engine.items.item_frame")


def higher_cap(records: Iterable[TestRecord]) -> str:
    """Return the options that `resume` needs because caps were reached; "" if none was."""
    messages = " ".join(record.failure.message for record in records if record.failure is not None)
    return "".join(
        f" {option} {metavar}" for option, metavar in _CAPS.items() if f"Raise {option}," in messages
    )


# --- the state of a run ----------------------------------------------------------------------------


State = Literal["finished", "interrupted", "stopped", "running", "killed"]

# What a manifest may say: of a result, whatever it says, there is none.
_KNOWN = ("schema_version", "run_id", "invocation_id", "run_timestamp", *RunIdentity.model_fields, "plugins")
_OF_OPTIONS = ("identifier", "hyperparameters", "repeats", "cluster", "sut_options")


def read_state(folder: RunFolder) -> tuple[State, TestRecord | None]:
    """Return the state of a run and its record; None if its last session has written no record.

    Raises:
        RecordError: one of its files is damaged.
    """
    record = folder.read_record() if (folder.path / RECORD).exists() else None
    if record is not None and not record.ended_early:
        return "finished", record
    if folder.is_going_on():
        return "running", None
    totals = read_totals(folder)
    if record is None or not (totals is None or totals.ended):  # an earlier session's, which a kill survived
        return "killed", None
    return "interrupted" if record.cancelled else "stopped", record


def recorded_run(folder: RunFolder) -> RecordedRun:
    """Return a run with its record; if it has none, with a record made from manifest and journal.

    Raises:
        RecordError: one of these files is damaged, or it is not a run.
    """
    state, ended = read_state(folder)
    if ended is not None:
        return RecordedRun(ended, folder)
    manifest = folder.read_manifest()
    known = {name: manifest[name] for name in _KNOWN if name in manifest}
    options = manifest.get("options")
    if isinstance(options, dict):
        known |= {name: options[name] for name in _OF_OPTIONS if name in options}
    record = record_from_json({"schema_version": SCHEMA_VERSION, **known}, str(folder.path / MANIFEST))
    items, totals = RecordedRun(record, folder).items(), read_totals(folder)
    tally = Tally(items=len(items))
    for item in items.records(items.has_failures):
        tally.count(item)
    tally.outcomes["scored"] = tally.items - tally.failed
    failure = RunFailure(stage="run", error_type="RunUnfinished", message=_state_message(folder, state))
    unfinished = record.replaced(
        run_id=folder.run_id,
        counts=tally.counts((totals or Totals()).used),
        failure=failure,
        seconds=totals.used.seconds if totals else None,
        spent=totals.used.spent if totals else None,
    )
    unfinished = unfinished.with_items(folder.items, folder.path)
    return RecordedRun(unfinished, folder, ended=False, going_on=state == "running")


def _state_message(folder: RunFolder, state: State) -> str:
    latest = folder.journal if folder.journal.exists() else folder.path / MANIFEST
    written = datetime.fromtimestamp(latest.stat().st_mtime, UTC)
    became = "It is going on" if state == "running" else "It was killed, or its record could not be written"
    return f"{became}; its last activity was at {written:%Y-%m-%d %H:%M:%S} UTC."
