"""The state of a run. If its last session wrote no record, a record is made from its other files."""

from datetime import UTC, datetime
from typing import Literal

from modelgauge.data.records import SCHEMA_VERSION, TestRecord, record_from_json
from modelgauge.data.results import RunFailure
from modelgauge.engine.bookkeeping.tally import Tally
from modelgauge.engine.run_files.folder import MANIFEST, RECORD, RunFolder, whole_lines
from modelgauge.engine.totals import Totals, read_totals
from modelgauge.runs.recorded_run import RecordedRun

State = Literal["finished", "interrupted", "stopped", "running", "killed"]

_KNOWN = (
    "run_id",
    "invocation_id",
    "run_timestamp",
    "test_uid",
    "test_initialization",
    "sut_uid",
    "sut_initialization",
    "sut_label",
    "groups",
    "dependency_versions",
    "dataset",
    "annotators",
    "judges",
    "thresholds",
    "ranges",
    "directions",
    "plugins",
)
_OF_OPTIONS = ("identifier", "hyperparameters", "repeats", "cluster", "sut_options")


def state_of(folder: RunFolder) -> tuple[State, TestRecord | None]:
    """Return the state of a run and its record; None if its last session has written no record.

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


def recorded_run(folder: RunFolder) -> RecordedRun:
    """Return a run with its record; if it has none, with a record made from manifest and journal.

    Raises:
        RecordError: one of these files is damaged, or it is not a run.
    """
    state, ended = state_of(folder)
    if ended is not None:
        return RecordedRun(ended, folder)
    manifest = folder.read_manifest()
    known = {name: manifest[name] for name in _KNOWN if name in manifest}
    options = manifest.get("options")
    if isinstance(options, dict):
        known |= {name: options[name] for name in _OF_OPTIONS if name in options}
    version = manifest.get("schema_version", SCHEMA_VERSION)
    record = record_from_json({**known, "schema_version": version}, str(folder.path / MANIFEST))
    shown = RecordedRun(record, folder, ended=False, going_on=state == "running")
    tally, totals = Tally(items=sum(1 for _ in whole_lines(folder.journal))), read_totals(folder)
    for item in shown.failures():
        tally.count(item)
    tally.outcomes["scored"] = tally.items - tally.failed
    (totals or Totals()).add_to(tally)
    failure = RunFailure(stage="run", error_type="RunUnfinished", message=_state_message(folder, state))
    unfinished = record.replaced(
        run_id=folder.run_id,
        counts=tally.frozen(),
        failure=failure,
        seconds=totals.seconds if totals else None,
        spent=totals.spent if totals else None,
    )
    return RecordedRun(
        unfinished.with_items(folder.items, folder.path), folder, ended=False, going_on=shown.going_on
    )


def _state_message(folder: RunFolder, state: State) -> str:
    latest = folder.journal if folder.journal.exists() else folder.path / MANIFEST
    written = datetime.fromtimestamp(latest.stat().st_mtime, UTC)
    became = "It is going on" if state == "running" else "It was killed, or its record could not be written"
    return f"{became}; the last item was written at {written:%Y-%m-%d %H:%M:%S} UTC."
