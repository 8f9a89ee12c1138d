"""`merge`: runs that each measured some items of a test become one run."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from modelgauge.data.records import TestRecord
from modelgauge.data.results import GIVEN
from modelgauge.engine.joined_run import join
from modelgauge.engine.observers import Observer, Observers
from modelgauge.engine.parts import RunPart, SessionPart
from modelgauge.engine.run_files.folder import RUNS, RunFolder
from modelgauge.engine.run_files.manifest import surroundings
from modelgauge.errors import RecordError, UsageError
from modelgauge.rerun.original import OriginalRun
from modelgauge.runs.naming import RUN, data_folder, find_each
from modelgauge.runs.recorded_run import read_state


def merge(
    runs: Iterable[str | Path],
    data_dir: str | Path | None = None,
    *,
    identifier: str | None = None,
    observers: Sequence[Observer] = (),
    command: Sequence[str] | None = None,
) -> TestRecord:
    """Join runs that each measured some items of a test into one new run. Nothing is asked, and they stay as they are.

    The runs must be of the same test, data and SUT, with the same options; only their items differ. Or they are
    sessions of pytest, each with some tests of a project. An item that several runs have counts once. If it failed in
    one and was scored in another, the score counts.

    If items are missing, the record says so in `failure`, and `resume` asks them. So it does for a test with an
    `aggregate_measurements` of its own: `resume` computes the result.

    Args:
        runs: ids or folders of runs; the id of an invocation means all its runs.
        data_dir: where runs are looked up, and where the new run is made.
        identifier: a name for the new run; by default that of the runs, if all have the same.
        observers: hear of the new run. Plugins do not: they heard of its parts.
        command: the command line, for the manifest.

    Returns:
        The record of the new run; `merged_from` has the ids of the runs.

    Raises:
        RecordError: there is no such run, the runs are not parts of one run, or two of them contradict each other.
        UsageError: fewer than two runs are named.
    """
    names = list(runs)
    for name in names:
        RUN.check("runs", name)
    folder = data_folder(data_dir)
    found = find_each(folder, map(str, names))
    if len(found) < 2:
        raise UsageError(
            f"{'One run is' if found else 'No runs are'} named.",
            fix="Name the runs that are parts of one: at least two.",
        )
    made = surroundings(command, ())
    record = join([_part(run) for run in found], (folder / RUNS).absolute(), made, identifier)
    told = Observers(observers)
    told.run_started(RunFolder(folder / RUNS / record.run_id).read_manifest())
    told.run_finished(record)
    return record


def _part(folder: RunFolder) -> RunPart:
    """Read a run that is to be joined with others.

    Raises:
        RecordError: it is going on, it has no SUT, or a file of it is damaged.
    """
    original = OriginalRun(folder)
    state, record = read_state(folder)
    if state == "running":
        raise RecordError(f"Run {folder.run_id} is still in progress.", fix="Wait for its end, or stop it.")
    if (rescored := folder.rescores()) is not None:
        raise RecordError(
            f"Run {folder.run_id} measures the answers of run {rescored} again.",
            fix="Merge the runs that have the answers, then rescore the merged run.",
        )
    if original.described.sut_uid == GIVEN and not original.is_session:
        raise original.of_given_outputs("it cannot be a part of a run")
    kind = SessionPart if original.is_session else RunPart
    return kind(folder, folder.read_manifest(), original.described, record, original.is_own)
